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
 * zero to be filled again: there are no gravestones.
 * When buckets begin to overflow, a larger generation comes into use; lives stay in
 * the generation they were born in.
 *
 * The nursery has a place for each remainder of an id, which needs no entry. One who finds it taken
 * by a life that is not young any more moves that to the table, while others may end or read it. At
 * each moment one word says where it lives:
 *
 *   place in the nursery   place in the table
 *   its serial             (nothing, or a copy)     it lives in the nursery
 *   serial | APART         serial | APART           in the table; whoever finds it finishes the move
 *   serial | APART         its serial               in the table
 *   serial | APART         0                        it has ended, as who did so is about to say
 *   anything else          its serial               in the table
 *   anything else          serial | APART           it has ended; the copy is nobody's
 *
 * The rows follow each other. To end it is to swap that word for 0, which fails when it has gone on
 * to the next row: then it is looked for again. A life is moved by the one who has put its serial
 * beside it and by nobody else, so that there is one copy that it may become. That thread may end at
 * any instruction; the life stays where it is. APART without a serial is a place in the nursery that is
 * being filled.
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
#include "client/live_spares.h"

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
#define ID_STEP ((UINT64_C(1) << 16) - 1)
#define GROW_SHARE 2u     /* of the overflow buckets in use: time for the next generation */
#define SHARE 16u         /* of the address space, where that is limited */
#define OVERFLOW_SHARE 8u /* one overflow bucket for so many buckets */
#define SAMPLED 4096u     /* places that an estimate looks at, or up to twice as many */

#define APART TTM_NURSERY_APART
/* What lives for so long may live on: it makes room in the nursery. A loop's step takes less. */
#define GROWN_UP_NS (UINT64_C(1) << 21)

struct ttm_live_bucket {
    _Alignas(64) _Atomic uint32_t entries[ENTRIES]; /* hash << 24 | place + 1; 0: empty */
    _Atomic uint32_t overflow;                      /* number of a bucket + 1 */
};

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
    _Static_assert(TTM_LIVE_SERIAL_MAX < APART, "a bit that no serial has");
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

/* ---- the nursery ---- */

static inline struct ttm_live_place *nursery_place(struct ttm_live_table *table, uint64_t id)
{
    return &ttm_nursery_line(table->nursery, id)->place;
}

/* ---- moves ---- */

/*
 * Makes a copy the life, whose place in the nursery says that it is on its way. Any thread may; others
 * may end it meanwhile, and use its place for another.
 */
static void finish_move(struct ttm_live_table *table, const struct ttm_live_place *nursed,
                        struct ttm_live_place *copy, uint64_t serial)
{
    const uint64_t named = ttm_place_get(nursed, TTM_PLACE_TAKEN);
    uint64_t not_yet = serial;

    /* The first one passes it on. Whoever comes late finds a name there, or what is another's. */
    if (ttm_place_get(nursed, TTM_PLACE_SERIAL) == serial)
        (void)atomic_compare_exchange_strong_explicit(&copy->words[TTM_PLACE_TAKEN], &not_yet,
                                                      named, memory_order_acq_rel,
                                                      memory_order_relaxed);
    /* release: pairs with the acquire in has_met(). */
    atomic_fetch_add_explicit(&table->moves, 1, memory_order_release);
    (void)ttm_place_swap_serial(copy, serial, serial & ~APART);
}

/* The serial of a copy that has become the life; 0 when it has not, or has ended. */
static __attribute__((noinline, cold)) uint64_t look_at_copy(struct ttm_live_table *table,
                                                             struct ttm_live_place *copy,
                                                             uint64_t id, uint64_t serial)
{
    const struct ttm_live_place *nursed = nursery_place(table, id);
    const uint64_t arrived = serial & ~APART;

    if (ttm_place_get(nursed, TTM_PLACE_SERIAL) == serial)
        finish_move(table, nursed, copy, serial);
    /*
     * In this order: the place in the nursery is given up when the copy says that it is none. It
     * may have ended since, and its place be another's, whose key nobody has compared.
     */
    return ttm_place_get(copy, TTM_PLACE_SERIAL) == arrived ? arrived : 0;
}

/* ---- walks ---- */

/* Reads the life of a place. Returns the word of its serial, which has APART or is 0 where there is none. */
static inline uint64_t read_life(const struct ttm_live_place *place, struct ttm_live *ret)
{
    uint64_t serial;

    while ((serial = ttm_place_get(place, TTM_PLACE_SERIAL)) != 0) {
        ttm_place_read(place, ret);
        if (ttm_place_get(place, TTM_PLACE_SERIAL) == serial)
            break;
    }
    ret->serial = serial;
    return serial;
}

/* Those that are on their way out are met in the table. */
static bool next_nursed(const struct ttm_live_table *table, struct ttm_live_walk *walk,
                        struct ttm_live *ret)
{
    while (walk->at < TTM_NURSERY_LINES) {
        const uint64_t serial = read_life(&table->nursery[walk->at++].place, ret);
        if (!ttm_nursery_is_life(serial))
            continue;
        walk->serials[walk->count++] = serial;
        return true;
    }
    return false;
}

/* Whether it was in the nursery when the walk passed there, and came to the table since. */
static bool has_met(const struct ttm_live_table *table, const struct ttm_live_walk *walk,
                    uint64_t serial)
{
    bool is_there = false;

    /* acquire: pairs with the release in finish_move(); a move that was seen was counted before. */
    if (atomic_load_explicit(&table->moves, memory_order_acquire) == walk->moves)
        return false;
    for (uint32_t i = 0; i < walk->count; i++)
        is_there |= walk->serials[i] == serial;
    return is_there;
}

static uint64_t read_copied(struct ttm_live_table *table, struct ttm_live_place *place,
                            struct ttm_live *ret)
{
    const uint64_t serial = read_life(place, ret);

    if (__builtin_expect((serial & APART) == 0, 1))
        return serial;
    return look_at_copy(table, place, ret->id, serial) != 0 ? read_life(place, ret) : 0;
}

bool ttm_live_table_next(struct ttm_live_table *table, struct ttm_live_walk *walk,
                         struct ttm_live *ret)
{
    if (walk->at == 0)
        walk->moves = atomic_load_explicit(&table->moves, memory_order_acquire);
    if (next_nursed(table, walk, ret))
        return true;
    /* After that: what has moved before it was met is there. */
    uint32_t used = atomic_load_explicit(&table->next_place, memory_order_acquire);
    if (used > table->place_count)
        used = table->place_count;
    while (walk->at - TTM_NURSERY_LINES < used) {
        const uint64_t serial =
            read_copied(table, ttm_live_place_at(table, walk->at++ - TTM_NURSERY_LINES), ret);
        if (serial != 0 && (serial & APART) == 0 && !has_met(table, walk, serial))
            return true;
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
        live += atomic_load_explicit(&ttm_live_place_at(table, at)->words[TTM_PLACE_SERIAL],
                                     memory_order_relaxed) != 0;
    live = live * step < used ? live * step : used;
    for (uint32_t i = 0; i < TTM_NURSERY_LINES; i++)
        live += ttm_place_get(&table->nursery[i].place, TTM_PLACE_SERIAL) != 0;
    return live;
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

/* Where a life was found. */
struct spot {
    _Atomic uint32_t *entry; /* NULL: in the nursery */
    struct ttm_live_place *place;
    uint32_t number;
    uint64_t serial;
};

/* Looks for the key in one bucket. */
static inline bool search_bucket(struct ttm_live_table *table, struct ttm_live_bucket *bucket,
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
        struct ttm_live_place *place = ttm_live_place_at(table, number);
        uint64_t serial = ttm_place_get(place, TTM_PLACE_SERIAL);
        if (__builtin_expect(serial == 0 || !ttm_place_has_key(place, key, id), 0))
            continue;
        if (__builtin_expect((serial & APART) != 0, 0) &&
            (serial = look_at_copy(table, place, id, serial)) == 0)
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

/* Ids mostly grow, so that one which was just born is in none but the newest. */
static bool may_have(const struct ttm_live_table *table, uint32_t generation, uint64_t id)
{
    /* acquire: pairs with the release of an entry, before which it was raised. */
    return generation == 0 || id <= atomic_load_explicit(&table->generations[generation].highest_id,
                                                         memory_order_acquire);
}

/* With many live, none of the buckets that it may be in is in the caches: all come at once. */
static void fetch_buckets(const struct ttm_live_table *table, uint32_t generations, uint64_t hash,
                          uint64_t id)
{
    for (uint32_t i = 0; i + 1 < generations; i++) {
        if (may_have(table, i, id))
            __builtin_prefetch(bucket_of(table, i, hash));
    }
}

static bool find_in_table(struct ttm_live_table *table, uint64_t hash, uint64_t key, uint64_t id,
                          struct spot *ret)
{
    uint32_t generation = atomic_load_explicit(&table->generation_count, memory_order_acquire);

    fetch_buckets(table, generation, hash, id);
    while (generation-- > 0) {
        struct ttm_live_bucket *bucket =
            may_have(table, generation, id) ? bucket_of(table, generation, hash) : NULL;
        for (; bucket; bucket = overflow_of(table, generation, bucket)) {
            if (search_bucket(table, bucket, hash, key, id, ret))
                return true;
        }
    }
    return false;
}

/* First in the nursery: what is not there any more is in the table already. */
static bool find(struct ttm_live_table *table, uint64_t hash, uint64_t key, uint64_t id,
                 struct spot *ret)
{
    struct ttm_live_place *nursed = nursery_place(table, id);
    const uint64_t serial = ttm_place_get(nursed, TTM_PLACE_SERIAL);

    if (!ttm_nursery_is_life(serial) || !ttm_place_has_key(nursed, key, id) ||
        ttm_place_get(nursed, TTM_PLACE_SERIAL) != serial)
        return find_in_table(table, hash, key, id, ret);
    *ret = (struct spot){NULL, nursed, 0, serial};
    return true;
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

/* By large steps: threads that are born with ids of their own would write it in turns. */
static void raise_highest_id(struct ttm_live_table *table, uint32_t generation, uint64_t id)
{
    _Atomic uint64_t *highest_id = &table->generations[generation].highest_id;
    uint64_t highest = atomic_load_explicit(highest_id, memory_order_relaxed);

    /* relaxed: the release of the entry that follows is after it. */
    while (generation > 0 && id > highest &&
           !atomic_compare_exchange_strong_explicit(highest_id, &highest, id | ID_STEP,
                                                    memory_order_relaxed, memory_order_relaxed))
        continue;
}

/* Puts the entry into a generation that was the newest, or into an older one when that is full. */
static bool put_in_generation(struct ttm_live_table *table, uint32_t newest, uint64_t hash,
                              uint64_t id, uint32_t entry)
{
    struct ttm_live_bucket *bucket = bucket_of(table, newest, hash);

    raise_highest_id(table, newest, id);
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
        raise_highest_id(table, older, id);
        if (put_in_bucket(bucket_of(table, older, hash), entry))
            return true;
    }
    return false;
}

static bool put_entry(struct ttm_live_table *table, uint64_t hash, uint64_t id, uint32_t entry)
{
    uint32_t count = atomic_load_explicit(&table->generation_count, memory_order_acquire);

    while (!put_in_generation(table, count - 1, hash, id, entry)) {
        /* We may have slept while the generation that we knew filled up and others began. */
        const uint32_t now = atomic_load_explicit(&table->generation_count, memory_order_acquire);
        if (now == count)
            return false;
        count = now;
    }
    return true;
}

/* Ends the life at a spot in the table if it still is the one that was seen. */
static inline __attribute__((always_inline)) bool end_life(struct ttm_live_table *table,
                                                           struct ttm_live_cache *cache,
                                                           uint64_t id, const struct spot *spot)
{
    struct ttm_live_place *nursed = nursery_place(table, id);
    const uint64_t moving = spot->serial | APART;

    if (!ttm_place_swap_serial(spot->place, spot->serial, 0))
        return false;
    /* Whoever was moving it may be gone, and its place there would stay taken. */
    if (__builtin_expect(ttm_place_get(nursed, TTM_PLACE_SERIAL) == moving, 0))
        (void)ttm_place_swap_serial(nursed, moving, 0);
    /* The place is ours now, and so is its entry. */
    atomic_store_explicit(spot->entry, 0, memory_order_release);
    ttm_live_place_give(table, cache, spot->number);
    return true;
}

/* The same for any spot. */
static bool end_anywhere(struct ttm_live_table *table, struct ttm_live_cache *cache, uint64_t id,
                         const struct spot *spot)
{
    return spot->entry ? end_life(table, cache, id, spot)
                       : ttm_place_swap_serial(spot->place, spot->serial, 0);
}

/* Finds the life of a key, of any serial or of the one that is given. */
static bool find_live(struct ttm_live_table *table, const struct ttm_live *live, struct spot *ret)
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
        if (end_anywhere(table, cache, id, &spot))
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
        __builtin_expect(!end_life(table, cache, id, &spot), 0))
        return remove_slowly(table, cache, key, id, serial);
    return spot.serial;
}

/* Cold for the compiler alone: where it is called from, that is what is rare. */
static __attribute__((noinline, cold)) uint64_t remove_grown_up(struct ttm_live_table *table,
                                                                struct ttm_live_cache *cache,
                                                                uint64_t key, uint64_t id)
{
    return ttm_live_table_remove(table, cache, key, id, 0);
}

__attribute__((hot)) uint64_t ttm_live_table_remove_plain(struct ttm_live_table *table,
                                                          struct ttm_live_cache *cache,
                                                          uint64_t key, uint64_t id)
{
    struct ttm_live_place *nursed = nursery_place(table, id);
    const uint64_t serial = ttm_place_get(nursed, TTM_PLACE_SERIAL);

    /* Another key comes with another serial: when the swap succeeds, the key was of that life. */
    if (!ttm_nursery_is_life(serial) || !ttm_place_has_key(nursed, key, id) ||
        !ttm_place_swap_serial(nursed, serial, 0))
        return remove_grown_up(table, cache, key, id);
    return serial;
}

int ttm_live_table_get(struct ttm_live_table *table, const struct ttm_live *key,
                       struct ttm_live *ret)
{
    struct spot spot;

    while (find_live(table, key, &spot)) {
        ttm_place_read(spot.place, ret);
        ret->serial = spot.serial;
        if (ttm_place_get(spot.place, TTM_PLACE_SERIAL) == spot.serial)
            return 0;
    }
    return -ENOENT;
}

/*
 * Returns false when the life is not there any more. One that ends just now, or moves out of the
 * nursery, and is followed in its place by one of the same size and origin would pass its new name
 * on to it; one that has moved gets it, too. Who names what another thread frees, or sleeps just
 * here while another takes the place, has to live with that: the word has no room for more.
 */
static bool change_origin(const struct spot *spot, uint32_t origin)
{
    _Atomic uint64_t *word = &spot->place->words[TTM_PLACE_TAKEN];
    uint64_t taken = ttm_place_get(spot->place, TTM_PLACE_TAKEN);

    do {
        if (ttm_place_get(spot->place, TTM_PLACE_SERIAL) != spot->serial)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(
        word, &taken, (taken & TTM_LIVE_NUMBER_MAX) | (uint64_t)origin << 40, memory_order_acq_rel,
        memory_order_acquire));
    /* Else it may have been moved with the origin that it had. */
    return ttm_place_get(spot->place, TTM_PLACE_SERIAL) == spot->serial;
}

int ttm_live_table_set_origin(struct ttm_live_table *table, const struct ttm_live *key,
                              uint32_t origin)
{
    struct spot spot;

    while (find_live(table, key, &spot)) {
        if (change_origin(&spot, origin))
            return 0;
    }
    return -ENOENT;
}

static __attribute__((noinline, cold)) int add_slowly(struct ttm_live_table *table,
                                                      struct ttm_live_cache *cache,
                                                      const struct ttm_live *live, uint64_t top,
                                                      uint64_t *ret_replaced)
{
    const uint64_t key = top & TTM_PLACE_KEY_MASK;
    const uint64_t hash = key_hash(table, key, live->id);
    struct spot old = {0};
    uint32_t number;

    bool is_in_table = find(table, hash, key, live->id, &old) && old.entry;
    const uint64_t replaced = old.serial;
    if (!ttm_live_place_take(table, cache, &number))
        return -ENOSPC;
    ttm_place_fill(ttm_live_place_at(table, number), live, top);
    if (!put_entry(table, hash, live->id, entry_of(hash, number))) {
        ttm_live_place_give(table, cache, number);
        return -ENOSPC;
    }
    const bool was_nursed = replaced != 0 && !is_in_table;
    bool has_ended = was_nursed && ttm_place_swap_serial(old.place, replaced, 0);
    /* Another has moved or ended it. It is looked for before the new one is there to be found. */
    if (was_nursed && !has_ended)
        is_in_table = find_in_table(table, hash, key, live->id, &old) && old.serial == replaced;
    ttm_place_set(ttm_live_place_at(table, number), TTM_PLACE_SERIAL, live->serial);
    /* After that: a thread that ends in here has one place at most that is not live. */
    if (is_in_table)
        has_ended = end_life(table, cache, live->id, &old);
    if (has_ended)
        *ret_replaced = replaced;
    return has_ended;
}

static inline __attribute__((always_inline)) int add(struct ttm_live_table *table,
                                                     struct ttm_live_cache *cache,
                                                     const struct ttm_live *live, uint64_t key,
                                                     uint64_t top, uint64_t *ret_replaced)
{
    const uint64_t hash = key_hash(table, key, live->id);
    struct ttm_live_bucket *bucket = bucket_of(table, 0, hash);

    if (__builtin_expect(!is_only_bucket(table, bucket), 0) ||
        __builtin_expect(ttm_place_get(nursery_place(table, live->id), TTM_PLACE_SERIAL) != 0, 0))
        return add_slowly(table, cache, live, top, ret_replaced);
    const struct tags tags = tags_in(bucket);
    const uint32_t empty = empty_entries(&tags);
    /* Without an entry of its tag the key is not there yet. */
    if (__builtin_expect(empty == 0 || cache->count == 0 || entries_with(&tags, tag_of(hash)) != 0,
                         0))
        return add_slowly(table, cache, live, top, ret_replaced);
    const uint32_t number = cache->places[--cache->count];
    struct ttm_live_place *place = ttm_live_place_at(table, number);
    uint32_t none = 0;
    ttm_place_fill(place, live, top);
    /* release: pairs with the acquire in search_bucket(). */
    if (__builtin_expect(!atomic_compare_exchange_strong_explicit(
                             &bucket->entries[(uint32_t)__builtin_ctz(empty)], &none,
                             entry_of(hash, number), memory_order_release, memory_order_relaxed),
                         0)) {
        ttm_live_cache_place(cache, number);
        return add_slowly(table, cache, live, top, ret_replaced);
    }
    ttm_place_set(place, TTM_PLACE_SERIAL, live->serial);
    return 0;
}

__attribute__((hot)) int ttm_live_table_add(struct ttm_live_table *table,
                                            struct ttm_live_cache *cache,
                                            const struct ttm_live *live, uint64_t *ret_replaced)
{
    return add(table, cache, live, ttm_live_key_of(live), ttm_place_top(live), ret_replaced);
}

/* Takes back the copy of a life that has ended meanwhile. */
static void withdraw(struct ttm_live_table *table, struct ttm_live_cache *cache, uint64_t hash,
                     uint32_t number)
{
    uint32_t generation = atomic_load_explicit(&table->generation_count, memory_order_acquire);

    ttm_place_set(ttm_live_place_at(table, number), TTM_PLACE_SERIAL, 0);
    while (generation-- > 0) {
        struct ttm_live_bucket *bucket = bucket_of(table, generation, hash);
        for (; bucket; bucket = overflow_of(table, generation, bucket)) {
            for (uint32_t i = 0; i < ENTRIES; i++) {
                uint32_t entry = entry_of(hash, number); /* there is one with that place */
                (void)atomic_compare_exchange_strong_explicit(
                    &bucket->entries[i], &entry, 0, memory_order_release, memory_order_relaxed);
            }
        }
    }
    ttm_live_place_give(table, cache, number);
}

/* Makes a copy in the table, which is not the life yet. Returns false when there is no room. */
static bool copy_out(struct ttm_live_table *table, struct ttm_live_cache *cache, uint64_t hash,
                     const struct ttm_live *live, uint32_t *ret_number)
{
    if (!ttm_live_place_take(table, cache, ret_number))
        return false;
    struct ttm_live_place *copy = ttm_live_place_at(table, *ret_number);
    ttm_place_fill(copy, live, ttm_place_top(live));
    /* It may be named until it leaves: see finish_move(). Nothing else is ever like this. */
    ttm_place_set(copy, TTM_PLACE_TAKEN, live->serial | APART);
    if (!put_entry(table, hash, live->id, entry_of(hash, *ret_number))) {
        ttm_live_place_give(table, cache, *ret_number);
        return false;
    }
    ttm_place_set(copy, TTM_PLACE_SERIAL, live->serial | APART);
    return true;
}

/*
 * Whether the caller is the one to move that life. Who has slept since it read the life must not
 * put its serial over that of one which came after it, or that could be claimed twice. So it looks
 * in this order: when the life is still there, what was claimed before has left. No serial comes
 * back then, and of several one succeeds.
 */
static bool claim_move(struct ttm_nursery_line *line, uint64_t serial)
{
    /* acquire: pairs with the release below; the place has nothing older than what was claimed. */
    uint64_t earlier = atomic_load_explicit(&line->mover_of, memory_order_acquire);

    return earlier != serial && ttm_place_get(&line->place, TTM_PLACE_SERIAL) == serial &&
           atomic_compare_exchange_strong_explicit(&line->mover_of, &earlier, serial,
                                                   memory_order_release, memory_order_relaxed);
}

/* Moves a life to the table. Returns whether it lives there now, or has ended there. */
static bool move_out(struct ttm_live_table *table, struct ttm_live_cache *cache,
                     struct ttm_live_place *nursed, const struct ttm_live *live)
{
    const uint64_t hash = key_hash(table, ttm_live_key_of(live), live->id);
    uint32_t number;

    if (!claim_move(ttm_nursery_line(table->nursery, live->id), live->serial) ||
        !copy_out(table, cache, hash, live, &number))
        return false;
    if (!ttm_place_swap_serial(nursed, live->serial, live->serial | APART)) {
        withdraw(table, cache, hash, number);
        return false;
    }
    finish_move(table, nursed, ttm_live_place_at(table, number), live->serial | APART);
    return true;
}

/* Takes a place in the nursery that was found taken, if it is free now or who is there has grown up. */
static bool take_over(struct ttm_live_table *table, struct ttm_live_cache *cache,
                      struct ttm_live_place *nursed, uint64_t now_ns)
{
    struct ttm_live old;
    const uint64_t serial = read_life(nursed, &old);

    if (!ttm_nursery_is_life(serial))
        return serial == 0 && ttm_nursery_take(nursed);
    /* The last swap fails when it has ended since: then end_life() has given the place up. */
    return now_ns - old.birth_ns >= GROWN_UP_NS && move_out(table, cache, nursed, &old) &&
           ttm_place_swap_serial(nursed, serial | APART, APART);
}

static __attribute__((noinline, cold)) int add_grown_up(struct ttm_live_table *table,
                                                        struct ttm_live_cache *cache,
                                                        const struct ttm_live *live, uint64_t key,
                                                        uint64_t *ret_replaced)
{
    struct ttm_live_place *nursed = nursery_place(table, live->id);

    if (!take_over(table, cache, nursed, live->birth_ns))
        return add_slowly(table, cache, live, key, ret_replaced);
    ttm_place_fill(nursed, live, key);
    ttm_place_set(nursed, TTM_PLACE_SERIAL, live->serial);
    return 0;
}

__attribute__((hot)) int ttm_live_table_add_plain(struct ttm_live_table *table,
                                                  struct ttm_live_cache *cache,
                                                  const struct ttm_live *live, uint64_t key,
                                                  uint64_t *ret_replaced)
{
    struct ttm_live_place *nursed = nursery_place(table, live->id);

    if (__builtin_expect(!ttm_nursery_take(nursed), 0))
        return add_grown_up(table, cache, live, key, ret_replaced);
    ttm_place_fill(nursed, live, key);
    ttm_place_set(nursed, TTM_PLACE_SERIAL, live->serial);
    return 0;
}
