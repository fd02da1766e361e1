/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A place holds a life; a bucket of 64 bytes holds fifteen entries, each the
 * number of a place and eight bits of its key's hash, and the number of an
 * overflow bucket.
 *
 * Whether a life is live is decided by one word, its serial in its place: 0 is
 * free. Adding fills the place, puts an entry where a bucket has a zero, then
 * stores the serial: a life that is live can be found. Removing finds the entry, compares the key, and swaps the
 * serial it saw for 0: of several who try, one succeeds, and as serials are never
 * used twice it ended the life it meant. Only then is the entry cleared, by the
 * one who succeeded, and the place goes to that thread's cache.
 *
 * A thread may end in between, at any instruction. Then a place and an entry are
 * nobody's any more, which is all: a place leaves the cache before it is filled,
 * and comes there after all else is done.
 *
 * Lookups scan a whole bucket and its overflow, so a cleared entry is just a
 * zero to be filled again: there are no gravestones and nothing is ever moved.
 * When buckets begin to overflow, a larger generation comes into use; lives stay in
 * the generation they were born in.
 */
#include "client/live_table.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
#include <emmintrin.h>
#define HAS_SSE2
#endif

#include "base/hash.h"

#define ENTRIES 15u
/*
 * The first generation is small: most programs have a few thousand live at most, and
 * between two events the program's own work leaves little of a large table in the
 * caches. From the second one on they are large, as each one more is one more to
 * search.
 */
#define FIRST_BUCKETS 256u   /* 16 KiB */
#define SECOND_BUCKETS 8192u /* 512 KiB where all are touched */
/*
 * With these, places and buckets together are at most 64 bytes a life and the first two
 * generations, also when the next generation has just begun (see test_live_table.c).
 */
#define GROWTH 2u
#define GROW_SHARE 2u     /* of the overflow buckets in use: time for the next generation */
#define SHARE 16u         /* of the address space, where that is limited */
#define OVERFLOW_SHARE 8u /* one overflow bucket for so many buckets */
#define SAMPLED 4096u     /* places that an estimate looks at, or up to twice as many */

/*
 * The words of a place. All are atomic: a walk reads places that others fill. A
 * word is stored with release and loaded with acquire, so whoever has read a new
 * word also sees that the serial has changed; on x86 that costs nothing.
 */
enum word {
    SERIAL,  /* 0: free */
    ID,      /* of a free place in a batch: the next place of the batch + 1 */
    BIRTH,   /* birth / 64 ns | banks << 54; of the first place in a batch: that of the next + 1 */
    ADDRESS, /* address | allocator << 40 | region << 56 | kind << 59 | flags << 61 */
    BYTES,   /* bytes | devices << 40 */
    TAKEN,   /* footprint | origin << 40 */
    WORDS
};

struct ttm_live_place {
    _Atomic uint64_t words[WORDS];
};

struct ttm_live_bucket {
    _Alignas(64) _Atomic uint32_t entries[ENTRIES]; /* hash << 24 | place + 1; 0: empty */
    _Atomic uint32_t overflow;                      /* number of a bucket + 1 */
};

/* 54 bits of 64 ns are 36 years since the machine was started. */
#define BIRTH_SHIFT 6
#define BANKS_AT 54
#define BIRTH_MASK ((UINT64_C(1) << BANKS_AT) - 1)

_Static_assert(sizeof(struct ttm_live_place) == 48, "with its share of a bucket 64 bytes a life");
_Static_assert(sizeof(struct ttm_live_bucket) == 64, "one cache line");

static void *reserve(size_t bytes)
{
    void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (mem == MAP_FAILED)
        return NULL;
    (void)madvise(mem, bytes, MADV_DONTDUMP);
    (void)madvise(mem, bytes, MADV_NOHUGEPAGE); /* a page at a time is what we promise */
    return mem;
}

static size_t generation_bytes(uint32_t buckets)
{
    return (size_t)(buckets + buckets / OVERFLOW_SHARE) * sizeof(struct ttm_live_bucket);
}

/* As many generations as there is address space for; one is enough to begin with. */
static int reserve_generations(struct ttm_live_table *table)
{
    uint32_t buckets = FIRST_BUCKETS;

    for (uint32_t i = 0; i < TTM_LIVE_GENERATIONS; i++) {
        table->generations[i].buckets = reserve(generation_bytes(buckets));
        if (!table->generations[i].buckets)
            break;
        table->generations[i].bucket_count = buckets;
        table->generations_reserved = i + 1;
        buckets = i == 0 ? SECOND_BUCKETS : buckets * GROWTH;
    }
    if (table->generations_reserved == 0)
        return -ENOMEM;
    atomic_init(&table->generation_count, 1);
    return 0;
}

/* A program under a limit of its address space gets a smaller table: it has other plans for it. */
static uint32_t places_wanted(void)
{
    struct rlimit limit;
    uint32_t count = TTM_LIVES_PER_PROCESS;

    if (getrlimit(RLIMIT_AS, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
        return count;
    while (count >= 1u << 18 && count * sizeof(struct ttm_live_place) > limit.rlim_cur / SHARE)
        count /= 4;
    return count;
}

int ttm_live_table_init(struct ttm_live_table *table, uint64_t seed)
{
    memset(table, 0, sizeof(*table));
    table->seed = seed;
    for (uint32_t count = places_wanted(); count >= 1u << 16; count /= 4) {
        table->places = reserve(count * sizeof(struct ttm_live_place));
        table->place_count = count;
        if (table->places)
            break;
    }
    if (!table->places || reserve_generations(table) < 0) {
        ttm_live_table_done(table);
        return -ENOMEM;
    }
    return 0;
}

void ttm_live_table_done(struct ttm_live_table *table)
{
    for (uint32_t i = 0; i < table->generations_reserved; i++)
        (void)munmap(table->generations[i].buckets,
                     generation_bytes(table->generations[i].bucket_count));
    if (table->places)
        (void)munmap(table->places, table->place_count * sizeof(struct ttm_live_place));
    memset(table, 0, sizeof(*table));
}

size_t ttm_live_table_bytes(const struct ttm_live_table *table)
{
    const uint32_t generations = atomic_load(&table->generation_count);
    size_t bytes = atomic_load(&table->next_place) * sizeof(struct ttm_live_place);

    for (uint32_t i = 0; i < generations; i++)
        bytes += generation_bytes(table->generations[i].bucket_count);
    return bytes;
}

/* ---- places ---- */

static struct ttm_live_place *place_at(const struct ttm_live_table *table, uint32_t number)
{
    return &table->places[number];
}

static uint64_t get(const struct ttm_live_place *place, enum word word)
{
    return atomic_load_explicit(&place->words[word], memory_order_acquire);
}

static void set(struct ttm_live_place *place, enum word word, uint64_t value)
{
    atomic_store_explicit(&place->words[word], value, memory_order_release);
}

static void cache_place(struct ttm_live_cache *cache, uint32_t number)
{
    cache->places[cache->count] = number;
    /* The thread may be cancelled here, and what it has at hand is given back then. */
    atomic_signal_fence(memory_order_seq_cst);
    cache->count++;
}

/* A batch that some thread gave back becomes this thread's. The version keeps the stack from being
 * mistaken for the same when it only looks the same. */
static __attribute__((noinline, cold)) bool take_batch(struct ttm_live_table *table,
                                                       struct ttm_live_cache *cache)
{
    uint64_t head = atomic_load_explicit(&table->spare, memory_order_acquire);

    while ((uint32_t)head != 0) {
        const uint32_t first = (uint32_t)head - 1;
        /* Others may take it meanwhile and write there: then the swap fails. */
        const uint32_t next_batch = (uint32_t)get(place_at(table, first), BIRTH);
        const uint64_t want = ((head >> 32) + 1) << 32 | next_batch;
        /* acquire: pairs with the release in give_batch(); the chain is there. */
        if (!atomic_compare_exchange_weak_explicit(&table->spare, &head, want, memory_order_acquire,
                                                   memory_order_acquire))
            continue;
        for (uint32_t at = first + 1; at != 0;) {
            const uint32_t number = at - 1;
            at = (uint32_t)get(place_at(table, number), ID);
            cache_place(cache, number);
        }
        return true;
    }
    return false;
}

/* Chains the last 'count' places of the cache and gives them to whoever needs some. */
static __attribute__((noinline, cold)) void give_batch(struct ttm_live_table *table,
                                                       struct ttm_live_cache *cache, uint32_t count)
{
    uint32_t chain = 0;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t number = cache->places[--cache->count];
        set(place_at(table, number), ID, chain);
        chain = number + 1;
    }
    if (chain == 0)
        return;
    uint64_t head = atomic_load_explicit(&table->spare, memory_order_relaxed);
    uint64_t want;
    do {
        set(place_at(table, chain - 1), BIRTH, (uint32_t)head);
        want = ((head >> 32) + 1) << 32 | chain;
        /* release: pairs with the acquire in take_batch(). */
    } while (!atomic_compare_exchange_weak_explicit(&table->spare, &head, want,
                                                    memory_order_release, memory_order_relaxed));
}

#define BATCH (TTM_LIVE_CACHE / 2)

static __attribute__((noinline, cold)) bool take_fresh(struct ttm_live_table *table,
                                                       struct ttm_live_cache *cache)
{
    /* relaxed: the numbers are ours by the addition alone. */
    if (atomic_load_explicit(&table->next_place, memory_order_relaxed) >= table->place_count)
        return false;
    const uint32_t first =
        atomic_fetch_add_explicit(&table->next_place, BATCH, memory_order_relaxed);
    for (uint32_t i = BATCH; i > 0;
         i--) { /* the lowest comes out first: pages are filled in order */
        if (first < table->place_count && first + i - 1 < table->place_count)
            cache_place(cache, first + i - 1);
    }
    return cache->count > 0;
}

static bool take_place(struct ttm_live_table *table, struct ttm_live_cache *cache, uint32_t *ret)
{
    if (cache->count == 0 && !take_batch(table, cache) && !take_fresh(table, cache))
        return false;
    *ret = cache->places[--cache->count];
    return true;
}

static void give_place(struct ttm_live_table *table, struct ttm_live_cache *cache, uint32_t number)
{
    if (cache->count == TTM_LIVE_CACHE)
        give_batch(table, cache, BATCH);
    cache_place(cache, number);
}

void ttm_live_table_flush(struct ttm_live_table *table, struct ttm_live_cache *cache)
{
    while (cache->count > 0)
        give_batch(table, cache, cache->count < BATCH ? cache->count : BATCH);
}

/* ---- the contents of a place ---- */

/* The part of the word ADDRESS that belongs to the key. */
#define KEY_MASK (UINT64_C(0x7ffff) << 40 | (uint64_t)TTM_LIVE_PROGRAM << 61)

/* What that word has besides the address. */
static uint64_t top_of(const struct ttm_live *live)
{
    return ttm_live_key_of(live) | (uint64_t)live->kind << 59 | (uint64_t)live->flags << 61;
}

/* All but the serial, which is stored when there is an entry. */
static inline __attribute__((always_inline)) void fill_place(struct ttm_live_place *place,
                                                             const struct ttm_live *live,
                                                             uint64_t top)
{
    set(place, ID, live->id);
    set(place, BIRTH,
        (live->birth_ns >> BIRTH_SHIFT & BIRTH_MASK) | (uint64_t)live->banks << BANKS_AT);
    set(place, ADDRESS, live->address | top);
    set(place, BYTES, live->bytes | (uint64_t)live->devices << 40);
    set(place, TAKEN, live->footprint_bytes | (uint64_t)live->origin << 40);
}

static inline __attribute__((always_inline)) void read_place(const struct ttm_live_place *place,
                                                             struct ttm_live *ret)
{
    const uint64_t birth = get(place, BIRTH);
    const uint64_t address = get(place, ADDRESS);
    const uint64_t bytes = get(place, BYTES);
    const uint64_t taken = get(place, TAKEN);

    ret->id = get(place, ID);
    ret->birth_ns = (birth & BIRTH_MASK) << BIRTH_SHIFT;
    ret->banks = (uint16_t)(birth >> BANKS_AT);
    ret->address = address & TTM_LIVE_NUMBER_MAX;
    ret->bytes = bytes & TTM_LIVE_NUMBER_MAX;
    ret->footprint_bytes = taken & TTM_LIVE_NUMBER_MAX;
    ret->devices = (uint32_t)(bytes >> 40);
    ret->origin = (uint32_t)(taken >> 40);
    ret->allocator = (uint16_t)(address >> 40);
    ret->region = (uint8_t)(address >> 56 & TTM_LIVE_REGION_MAX);
    ret->kind = (uint8_t)(address >> 59 & TTM_LIVE_KIND_MAX);
    ret->flags = (uint8_t)(address >> 61);
}

bool ttm_live_table_next(const struct ttm_live_table *table, uint32_t *at, struct ttm_live *ret)
{
    uint32_t used = atomic_load_explicit(&table->next_place, memory_order_acquire);

    if (used > table->place_count)
        used = table->place_count;
    while (*at < used) {
        const struct ttm_live_place *place = place_at(table, (*at)++);
        while ((ret->serial = get(place, SERIAL)) != 0) {
            read_place(place, ret);
            if (get(place, SERIAL) == ret->serial)
                return true;
        }
    }
    return false;
}

uint32_t ttm_live_table_estimate(const struct ttm_live_table *table)
{
    /* relaxed: it is an estimate. */
    uint32_t used = atomic_load_explicit(&table->next_place, memory_order_relaxed), live = 0;

    if (used > table->place_count)
        used = table->place_count;
    /* Odd, as threads take places by the batch and begin each with the same ones. */
    const uint32_t step = used > SAMPLED ? used / SAMPLED | 1 : 1;
    for (uint32_t at = 0; at < used; at += step)
        live +=
            atomic_load_explicit(&place_at(table, at)->words[SERIAL], memory_order_relaxed) != 0;
    return live * step < used ? live * step : used;
}

/* ---- the index ---- */

static uint64_t key_hash(const struct ttm_live_table *table, uint64_t key, uint64_t id)
{
    return ttm_hash_pair(id ^ table->seed, key);
}

/* What an entry has of the hash; never 0, so that an empty one is like none. */
static uint32_t tag_of(uint64_t hash)
{
    return (uint32_t)(hash >> 56) | 1;
}

static uint32_t entry_of(uint64_t hash, uint32_t place)
{
    return tag_of(hash) << 24 | (place + 1);
}

/*
 * The tags of a bucket's entries, and a bit for each that is the one that is asked for. They are a
 * hint, as others change entries meanwhile: whoever acts on it looks at the entry. The last word of
 * the line is no entry, but far too small to have a tag.
 */
#ifdef HAS_SSE2
struct tags {
    __m128i bytes;
};

static inline struct tags tags_in(const struct ttm_live_bucket *bucket)
{
    const __m128i *rows = (const __m128i *)(const void *)bucket->entries; /* aligned to the line */
    const __m128i low = _mm_packs_epi32(_mm_srli_epi32(_mm_load_si128(rows), 24),
                                        _mm_srli_epi32(_mm_load_si128(rows + 1), 24));
    const __m128i high = _mm_packs_epi32(_mm_srli_epi32(_mm_load_si128(rows + 2), 24),
                                         _mm_srli_epi32(_mm_load_si128(rows + 3), 24));

    return (struct tags){_mm_packus_epi16(low, high)};
}

static inline uint32_t entries_with(const struct tags *tags, uint32_t tag)
{
    const __m128i wanted = _mm_set1_epi32((int)(tag * 0x01010101u));

    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(tags->bytes, wanted));
}
#else
struct tags {
    uint8_t bytes[ENTRIES];
};

static struct tags tags_in(const struct ttm_live_bucket *bucket)
{
    struct tags tags;

    for (uint32_t i = 0; i < ENTRIES; i++)
        tags.bytes[i] =
            (uint8_t)(atomic_load_explicit(&bucket->entries[i], memory_order_relaxed) >> 24);
    return tags;
}

static uint32_t entries_with(const struct tags *tags, uint32_t tag)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < ENTRIES; i++)
        found |= (uint32_t)(tags->bytes[i] == tag) << i;
    return found;
}
#endif

static inline uint32_t empty_entries(const struct tags *tags)
{
    return entries_with(tags, 0) & ((1u << ENTRIES) - 1);
}

/* Where an entry was found. */
struct spot {
    _Atomic uint32_t *entry;
    struct ttm_live_place *place;
    uint32_t number;
    uint64_t serial;
};

/* Looks for the key in one bucket. */
static inline bool search_bucket(const struct ttm_live_table *table, struct ttm_live_bucket *bucket,
                                 uint64_t hash, uint64_t key, uint64_t id, struct spot *ret)
{
    const struct tags tags = tags_in(bucket);

    for (uint32_t rest = entries_with(&tags, tag_of(hash)); rest != 0; rest &= rest - 1) {
        _Atomic uint32_t *at = &bucket->entries[(uint32_t)__builtin_ctz(rest)];
        /* acquire: pairs with the release that put it there; its place is filled. */
        const uint32_t entry = atomic_load_explicit(at, memory_order_acquire);
        if (__builtin_expect(entry == 0, 0))
            continue;
        const uint32_t number = (entry & 0xffffff) - 1;
        struct ttm_live_place *place = place_at(table, number);
        const uint64_t serial = get(place, SERIAL);
        if (__builtin_expect(
                serial == 0 || get(place, ID) != id || (get(place, ADDRESS) & KEY_MASK) != key, 0))
            continue;
        /*
         * The life we saw may have ended and its key been born again in the same place, with its
         * entry elsewhere. Once a new serial was read, an entry cleared before it reads as such.
         */
        if (__builtin_expect(atomic_load_explicit(at, memory_order_acquire) != entry, 0))
            continue;
        *ret = (struct spot){at, place, number, serial};
        return true;
    }
    return false;
}

static struct ttm_live_bucket *overflow_of(const struct ttm_live_table *table, uint32_t generation,
                                           struct ttm_live_bucket *bucket)
{
    const uint32_t number = atomic_load_explicit(&bucket->overflow, memory_order_acquire);

    if (number == 0)
        return NULL;
    const struct ttm_live_generation *of = &table->generations[generation];
    return &of->buckets[of->bucket_count + number - 1];
}

static struct ttm_live_bucket *bucket_of(const struct ttm_live_table *table, uint32_t generation,
                                         uint64_t hash)
{
    const struct ttm_live_generation *of = &table->generations[generation];

    return &of->buckets[hash & (of->bucket_count - 1)];
}

static bool find(const struct ttm_live_table *table, uint64_t hash, uint64_t key, uint64_t id,
                 struct spot *ret)
{
    uint32_t generation = atomic_load_explicit(&table->generation_count, memory_order_acquire);

    while (generation-- > 0) {
        struct ttm_live_bucket *bucket = bucket_of(table, generation, hash);
        for (; bucket; bucket = overflow_of(table, generation, bucket)) {
            if (search_bucket(table, bucket, hash, key, id, ret))
                return true;
        }
    }
    return false;
}

/*
 * Nearly always there is one generation, and the bucket of the key has not overflowed; else the
 * long way has to be gone.
 */
static inline bool is_only_bucket(const struct ttm_live_table *table,
                                  const struct ttm_live_bucket *bucket)
{
    return __builtin_expect(atomic_load_explicit(&table->generation_count, memory_order_acquire) ==
                                    1 &&
                                atomic_load_explicit(&bucket->overflow, memory_order_acquire) == 0,
                            1);
}

static bool put_in_bucket(struct ttm_live_bucket *bucket, uint32_t entry)
{
    const struct tags tags = tags_in(bucket);

    for (uint32_t rest = empty_entries(&tags); rest != 0; rest &= rest - 1) {
        uint32_t empty = 0;
        /* release: pairs with the acquire in search_bucket(). */
        if (atomic_compare_exchange_strong_explicit(&bucket->entries[__builtin_ctz(rest)], &empty,
                                                    entry, memory_order_release,
                                                    memory_order_relaxed))
            return true;
    }
    return false;
}

/*
 * Chains a fresh overflow bucket to a full one, unless somebody else just did. When
 * a few are in use, the buckets are full enough for the next generation to begin.
 */
static bool add_overflow(struct ttm_live_table *table, uint32_t generation,
                         struct ttm_live_bucket *bucket)
{
    const uint32_t room = table->generations[generation].bucket_count / OVERFLOW_SHARE;
    uint32_t none = 0;

    /* relaxed: the number is ours by the addition alone. */
    if (atomic_load_explicit(&table->next_overflow[generation], memory_order_relaxed) >= room)
        return false;
    const uint32_t number =
        atomic_fetch_add_explicit(&table->next_overflow[generation], 1, memory_order_relaxed);
    if (number >= room)
        return false;
    /* A bucket that loses the race stays unused: it is rare, and 64 bytes. */
    (void)atomic_compare_exchange_strong_explicit(&bucket->overflow, &none, number + 1,
                                                  memory_order_release, memory_order_relaxed);
    if (number >= room / GROW_SHARE && generation + 1 < table->generations_reserved) {
        uint32_t count = generation + 1;
        /* release: pairs with the acquires of the count; the generation is zeros. */
        (void)atomic_compare_exchange_strong_explicit(&table->generation_count, &count, count + 1,
                                                      memory_order_release, memory_order_relaxed);
    }
    return true;
}

/* Puts the entry into a generation that was the newest, or into an older one when that is full. */
static bool put_in_generation(struct ttm_live_table *table, uint32_t newest, uint64_t hash,
                              uint32_t entry)
{
    struct ttm_live_bucket *bucket = bucket_of(table, newest, hash);

    while (true) {
        if (put_in_bucket(bucket, entry))
            return true;
        struct ttm_live_bucket *next = overflow_of(table, newest, bucket);
        if (!next && add_overflow(table, newest, bucket))
            next = overflow_of(table, newest, bucket);
        if (!next)
            break;
        bucket = next;
    }
    for (uint32_t older = newest; older-- > 0;) {
        if (put_in_bucket(bucket_of(table, older, hash), entry))
            return true;
    }
    return false;
}

static bool put_entry(struct ttm_live_table *table, uint64_t hash, uint32_t entry)
{
    uint32_t count = atomic_load_explicit(&table->generation_count, memory_order_acquire);

    while (!put_in_generation(table, count - 1, hash, entry)) {
        /* We may have slept while the generation that we knew filled up and others began. */
        const uint32_t now = atomic_load_explicit(&table->generation_count, memory_order_acquire);
        if (now == count)
            return false;
        count = now;
    }
    return true;
}

/* Ends the life at the spot if it still is the one that was seen. */
static inline __attribute__((always_inline)) bool end_life(struct ttm_live_table *table,
                                                           struct ttm_live_cache *cache,
                                                           const struct spot *spot)
{
    uint64_t serial = spot->serial;

    /* acq_rel: whoever reads 0 or a later serial sees that this life is over. */
    if (!atomic_compare_exchange_strong_explicit(&spot->place->words[SERIAL], &serial, 0,
                                                 memory_order_acq_rel, memory_order_relaxed))
        return false;
    /* The place is ours now, and so is its entry. */
    atomic_store_explicit(spot->entry, 0, memory_order_release);
    give_place(table, cache, spot->number);
    return true;
}

/* Finds the life of a key, of any serial or of the one that is given. */
static bool find_live(const struct ttm_live_table *table, const struct ttm_live *live,
                      struct spot *ret)
{
    const uint64_t key = ttm_live_key_of(live);

    return find(table, key_hash(table, key, live->id), key, live->id, ret) &&
           (live->serial == 0 || live->serial == ret->serial);
}

static __attribute__((noinline, cold)) uint64_t remove_slowly(struct ttm_live_table *table,
                                                              struct ttm_live_cache *cache,
                                                              uint64_t key, uint64_t id,
                                                              uint64_t serial)
{
    const uint64_t hash = key_hash(table, key, id);
    struct spot spot;

    while (find(table, hash, key, id, &spot) && (serial == 0 || serial == spot.serial)) {
        if (end_life(table, cache, &spot))
            return spot.serial;
    }
    return 0;
}

__attribute__((hot)) uint64_t ttm_live_table_remove(struct ttm_live_table *table,
                                                    struct ttm_live_cache *cache, uint64_t key,
                                                    uint64_t id, uint64_t serial)
{
    const uint64_t hash = key_hash(table, key, id);
    struct ttm_live_bucket *bucket = bucket_of(table, 0, hash);
    struct spot spot;

    if (__builtin_expect(!is_only_bucket(table, bucket), 0) ||
        __builtin_expect(!search_bucket(table, bucket, hash, key, id, &spot), 0) ||
        __builtin_expect(serial != 0 && serial != spot.serial, 0) ||
        __builtin_expect(!end_life(table, cache, &spot), 0))
        return remove_slowly(table, cache, key, id, serial);
    return spot.serial;
}

int ttm_live_table_get(const struct ttm_live_table *table, const struct ttm_live *key,
                       struct ttm_live *ret)
{
    struct spot spot;

    while (find_live(table, key, &spot)) {
        read_place(spot.place, ret);
        ret->serial = spot.serial;
        if (get(spot.place, SERIAL) == spot.serial)
            return 0;
    }
    return -ENOENT;
}

int ttm_live_table_set_origin(struct ttm_live_table *table, const struct ttm_live *key,
                              uint32_t origin)
{
    struct spot spot;

    if (!find_live(table, key, &spot))
        return -ENOENT;
    uint64_t taken = get(spot.place, TAKEN);
    /*
     * A life that ends just now and is followed in its place by one of the same size and origin
     * would pass its new name on to it. Who names what another thread frees has to live with that.
     */
    do {
        if (get(spot.place, SERIAL) != spot.serial)
            return -ENOENT;
    } while (!atomic_compare_exchange_weak_explicit(
        &spot.place->words[TAKEN], &taken, (taken & TTM_LIVE_NUMBER_MAX) | (uint64_t)origin << 40,
        memory_order_acq_rel, memory_order_acquire));
    return 0;
}

static __attribute__((noinline, cold)) int add_slowly(struct ttm_live_table *table,
                                                      struct ttm_live_cache *cache,
                                                      const struct ttm_live *live, uint64_t top,
                                                      uint64_t *ret_replaced)
{
    const uint64_t key = top & KEY_MASK;
    const uint64_t hash = key_hash(table, key, live->id);
    struct spot old;
    uint32_t number;

    const bool has_old = find(table, hash, key, live->id, &old);
    if (!take_place(table, cache, &number))
        return -ENOSPC;
    fill_place(place_at(table, number), live, top);
    if (!put_entry(table, hash, entry_of(hash, number))) {
        give_place(table, cache, number);
        return -ENOSPC;
    }
    set(place_at(table, number), SERIAL, live->serial);
    if (!has_old || !end_life(table, cache, &old))
        return 0;
    *ret_replaced = old.serial;
    return 1;
}

static inline __attribute__((always_inline)) int add(struct ttm_live_table *table,
                                                     struct ttm_live_cache *cache,
                                                     const struct ttm_live *live, uint64_t key,
                                                     uint64_t top, uint64_t *ret_replaced)
{
    const uint64_t hash = key_hash(table, key, live->id);
    struct ttm_live_bucket *bucket = bucket_of(table, 0, hash);

    if (__builtin_expect(!is_only_bucket(table, bucket), 0))
        return add_slowly(table, cache, live, top, ret_replaced);
    const struct tags tags = tags_in(bucket);
    const uint32_t empty = empty_entries(&tags);
    /* Without an entry of its tag the key is not there yet. */
    if (__builtin_expect(empty == 0 || cache->count == 0 || entries_with(&tags, tag_of(hash)) != 0,
                         0))
        return add_slowly(table, cache, live, top, ret_replaced);
    const uint32_t number = cache->places[--cache->count];
    struct ttm_live_place *place = place_at(table, number);
    uint32_t none = 0;
    fill_place(place, live, top);
    /* release: pairs with the acquire in search_bucket(). */
    if (__builtin_expect(!atomic_compare_exchange_strong_explicit(
                             &bucket->entries[(uint32_t)__builtin_ctz(empty)], &none,
                             entry_of(hash, number), memory_order_release, memory_order_relaxed),
                         0)) {
        cache_place(cache, number);
        return add_slowly(table, cache, live, top, ret_replaced);
    }
    set(place, SERIAL, live->serial);
    return 0;
}

__attribute__((hot)) int ttm_live_table_add(struct ttm_live_table *table,
                                            struct ttm_live_cache *cache,
                                            const struct ttm_live *live, uint64_t *ret_replaced)
{
    return add(table, cache, live, ttm_live_key_of(live), top_of(live), ret_replaced);
}

__attribute__((hot)) int ttm_live_table_add_plain(struct ttm_live_table *table,
                                                  struct ttm_live_cache *cache,
                                                  const struct ttm_live *live, uint64_t key,
                                                  uint64_t *ret_replaced)
{
    return add(table, cache, live, key, key, ret_replaced);
}
