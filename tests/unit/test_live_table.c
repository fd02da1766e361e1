/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/hash.h"
#include "client/live_table.h"
#include "live_count.h"
#include "live_crowd.h"

#define SEED 0x5eed

static struct ttm_live_table table;

/* Removes what has that key, and tells what it was. */
static int remove_key(struct ttm_live_cache *own, uint16_t allocator, uint8_t region, uint64_t id,
                      struct ttm_live *ret)
{
    const struct ttm_live key = {.allocator = allocator, .region = region, .id = id};

    do {
        if (ttm_live_table_get(&table, &key, ret) < 0)
            return -ENOENT;
    } while (ttm_live_table_remove(&table, own, ttm_live_key_of(&key), id, ret->serial) == 0);
    return 0;
}

static struct ttm_live_cache cache;

static int set_up(void **state)
{
    (void)state;
    memset(&cache, 0, sizeof(cache));
    return ttm_live_table_init(&table, SEED);
}

static int tear_down(void **state)
{
    (void)state;
    ttm_live_table_done(&table);
    return 0;
}

/* Births are kept to 64 ns, for 36 years. */
#define BIRTH_MAX ((UINT64_C(1) << 60) - 64)

/* A life whose every field but the key's id follows from its serial, so that a torn one shows. */
static struct ttm_live life_of(uint64_t serial, uint64_t id)
{
    const uint64_t mixed = ttm_hash_u64(serial);

    return (struct ttm_live){
        .serial = serial,
        .id = id,
        .birth_ns = (mixed ^ 1) & BIRTH_MAX,
        .address = ttm_hash_u64(mixed ^ 2) & TTM_LIVE_NUMBER_MAX,
        .bytes = ttm_hash_u64(mixed ^ 3) & TTM_LIVE_NUMBER_MAX,
        .footprint_bytes = ttm_hash_u64(mixed ^ 4) & TTM_LIVE_NUMBER_MAX,
        .devices = (uint32_t)mixed & TTM_LIVE_NOTE_MAX,
        .origin = (uint32_t)(mixed >> 32) & TTM_LIVE_NOTE_MAX,
        .allocator = (uint16_t)(id % 5),
        .banks = mixed >> 24 & TTM_LIVE_BANKS_MAX,
        .region = (uint8_t)(id % 7),
        .kind = mixed >> 8 & TTM_LIVE_KIND_MAX,
        .flags = mixed >> 16 & (TTM_LIVE_FLAGS_MAX & ~TTM_LIVE_PROGRAM),
    };
}

static bool is_same(const struct ttm_live *a, const struct ttm_live *b)
{
    return a->serial == b->serial && a->id == b->id && a->birth_ns == b->birth_ns &&
           a->address == b->address && a->bytes == b->bytes &&
           a->footprint_bytes == b->footprint_bytes && a->devices == b->devices &&
           a->origin == b->origin && a->allocator == b->allocator && a->banks == b->banks &&
           a->region == b->region && a->kind == b->kind && a->flags == b->flags;
}

static bool is_life_of(const struct ttm_live *live, uint64_t serial, uint64_t id)
{
    const struct ttm_live expected = life_of(serial, id);

    return is_same(live, &expected);
}

static int add(uint64_t serial, uint64_t id)
{
    const struct ttm_live live = life_of(serial, id);
    uint64_t replaced;

    return ttm_live_table_add(&table, &cache, &live, &replaced);
}

/* Removes the life of that id, whose serial it is not told. */
static bool take(struct ttm_live_cache *own, uint64_t serial, uint64_t id)
{
    const struct ttm_live key = {
        .allocator = (uint16_t)(id % 5), .region = (uint8_t)(id % 7), .id = id};
    struct ttm_live live;

    return ttm_live_table_get(&table, &key, &live) == 0 && is_life_of(&live, serial, id) &&
           ttm_live_table_remove(&table, own, ttm_live_key_of(&key), id, 0) == serial;
}

/* ---- one thread ---- */

static void a_life_is_kept_with_all_that_it_is_up_to_the_limits(void **state)
{
    static const struct ttm_live lives[] = {
        {.serial = 1},
        {.serial = TTM_LIVE_SERIAL_MAX,
         .id = UINT64_MAX,
         .birth_ns = BIRTH_MAX,
         .address = TTM_LIVE_NUMBER_MAX,
         .bytes = TTM_LIVE_NUMBER_MAX,
         .footprint_bytes = TTM_LIVE_NUMBER_MAX,
         .devices = TTM_LIVE_NOTE_MAX,
         .origin = TTM_LIVE_NOTE_MAX,
         .allocator = UINT16_MAX,
         .banks = TTM_LIVE_BANKS_MAX,
         .region = TTM_LIVE_REGION_MAX,
         .kind = TTM_LIVE_KIND_MAX,
         .flags = TTM_LIVE_FLAGS_MAX},
        {.serial = 2, .id = 1, .address = TTM_LIVE_NUMBER_MAX},
        {.serial = 3, .id = 2, .bytes = TTM_LIVE_NUMBER_MAX},
        {.serial = 4, .id = 3, .footprint_bytes = TTM_LIVE_NUMBER_MAX},
        {.serial = 5, .id = 4, .devices = TTM_LIVE_NOTE_MAX},
        {.serial = 6, .id = 5, .origin = TTM_LIVE_NOTE_MAX},
        {.serial = 7, .id = 6, .allocator = UINT16_MAX},
        {.serial = 8, .id = 7, .region = TTM_LIVE_REGION_MAX},
        {.serial = 9, .id = 8, .kind = TTM_LIVE_KIND_MAX},
        {.serial = 10, .id = 9, .flags = TTM_LIVE_FLAGS_MAX},
        {.serial = 11, .id = 10, .banks = TTM_LIVE_BANKS_MAX},
        {.serial = 12, .id = 11, .birth_ns = BIRTH_MAX},
    };
    struct ttm_live got;
    uint64_t none;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(lives); i++)
        assert_int_equal(ttm_live_table_add(&table, &cache, &lives[i], &none), 0);
    assert_int_equal(live_count(&table), COUNT_OF(lives));
    for (size_t i = 0; i < COUNT_OF(lives); i++) {
        assert_int_equal(ttm_live_table_get(&table, &lives[i], &got), 0);
        assert_true(is_same(&got, &lives[i]));
        assert_true(ttm_live_table_remove(&table, &cache, ttm_live_key_of(&lives[i]), lives[i].id,
                                          0) == lives[i].serial);
    }
    assert_int_equal(live_count(&table), 0);
}

static void a_plain_life_is_kept_as_any_other(void **state)
{
    struct ttm_live life = life_of(9, 12), got;
    uint64_t replaced = 0;
    (void)state;

    life.kind = life.flags = 0;
    const uint64_t key = ttm_live_key_of(&life);
    assert_int_equal(ttm_live_table_add_plain(&table, &cache, &life, key, &replaced), 0);
    assert_int_equal(ttm_live_table_get(&table, &life, &got), 0);
    assert_true(is_same(&got, &life));
    life.serial = 10;
    assert_int_equal(ttm_live_table_add_plain(&table, &cache, &life, key, &replaced), 1);
    assert_int_equal(replaced, 9);
    assert_true(ttm_live_table_remove(&table, &cache, key, 12, 0) == 10);
    assert_int_equal(live_count(&table), 0);
}

static void a_life_is_read_and_gets_another_origin_while_it_lives(void **state)
{
    const struct ttm_live life = life_of(5, 10);
    const struct ttm_live key = {.id = 10, .allocator = life.allocator, .region = life.region};
    struct ttm_live wrong = key, got, expected = life;
    (void)state;

    assert_int_equal(ttm_live_table_get(&table, &key, &got), -ENOENT);
    assert_int_equal(ttm_live_table_set_origin(&table, &key, 1), -ENOENT);
    assert_int_equal(add(5, 10), 0);
    assert_int_equal(ttm_live_table_get(&table, &key, &got), 0);
    assert_true(is_same(&got, &life));

    assert_int_equal(ttm_live_table_set_origin(&table, &key, TTM_LIVE_NOTE_MAX), 0);
    expected.origin = TTM_LIVE_NOTE_MAX;
    assert_int_equal(ttm_live_table_get(&table, &life, &got), 0); /* by key and serial */
    assert_true(is_same(&got, &expected));
    wrong.serial = 6; /* of another life that had the key */
    assert_int_equal(ttm_live_table_get(&table, &wrong, &got), -ENOENT);
    assert_int_equal(ttm_live_table_set_origin(&table, &wrong, 1), -ENOENT);
    assert_int_equal(ttm_live_table_remove(&table, &cache, ttm_live_key_of(&key), 10, 6), 0);
    assert_int_equal(ttm_live_table_set_origin(&table, &life, 0), 0);
    expected.origin = 0;
    assert_int_equal(ttm_live_table_get(&table, &key, &got), 0);
    assert_true(is_same(&got, &expected));
    assert_int_equal(ttm_live_table_remove(&table, &cache, ttm_live_key_of(&key), 10, 5), 5);
    assert_int_equal(ttm_live_table_get(&table, &key, &got), -ENOENT);
}

static void a_part_of_a_program_has_a_key_of_its_own(void **state)
{
    const struct ttm_live buffer = {.serial = 1, .id = 7, .allocator = 3, .region = 5};
    const struct ttm_live part = {
        .serial = 2, .id = 7, .allocator = 3, .region = 5, .flags = TTM_LIVE_PROGRAM};
    const struct ttm_live key = {.id = 7, .allocator = 3, .region = 5};
    struct ttm_live got;
    uint64_t none;
    (void)state;

    assert_int_equal(ttm_live_table_add(&table, &cache, &buffer, &none), 0);
    assert_int_equal(ttm_live_table_add(&table, &cache, &part, &none), 0); /* replaces nothing */
    assert_int_equal(ttm_live_table_get(&table, &key, &got), 0);
    assert_true(got.serial == 1);
    assert_int_equal(remove_key(&cache, 3, 5, 7, &got), 0);
    assert_true(got.serial == 1);
    assert_int_equal(remove_key(&cache, 3, 5, 7, &got), -ENOENT);
    assert_int_equal(ttm_live_table_get(&table, &part, &got), 0);
    assert_int_equal(got.flags, TTM_LIVE_PROGRAM);
    assert_int_equal(ttm_live_table_remove(&table, &cache, ttm_live_key_of(&part), 7, 0), 2);
}

static void the_end_of_an_unknown_key_changes_nothing(void **state)
{
    const struct ttm_live life = {.serial = 1, .id = 10, .allocator = 3, .region = 2};
    struct ttm_live got;
    uint64_t none;
    (void)state;

    assert_int_equal(ttm_live_table_remove(&table, &cache, ttm_live_key(3, 2, 0), 10, 0), 0);
    assert_int_equal(ttm_live_table_add(&table, &cache, &life, &none), 0);
    assert_int_equal(ttm_live_table_remove(&table, &cache, ttm_live_key(4, 2, 0), 10, 0), 0);
    assert_int_equal(ttm_live_table_remove(&table, &cache, ttm_live_key(3, 1, 0), 10, 0), 0);
    assert_int_equal(ttm_live_table_remove(&table, &cache, ttm_live_key(3, 2, 0), 11, 0), 0);
    assert_int_equal(live_count(&table), 1);
    assert_int_equal(remove_key(&cache, 3, 2, 10, &got), 0);
    assert_int_equal(remove_key(&cache, 3, 2, 10, &got), -ENOENT);
}

static void a_key_that_is_born_again_replaces_the_life_it_had(void **state)
{
    uint64_t replaced;
    (void)state;

    assert_int_equal(add(1, 77), 0);
    for (uint64_t serial = 2; serial < 100; serial++) {
        const struct ttm_live again = life_of(serial, 77);
        assert_int_equal(ttm_live_table_add(&table, &cache, &again, &replaced), 1);
        assert_int_equal(replaced, serial - 1);
        assert_int_equal(live_count(&table), 1);
    }
    assert_true(take(&cache, 99, 77));
    assert_int_equal(live_count(&table), 0);
    assert_int_equal(add(100, 77), 0);
}

static void the_same_number_in_another_allocator_or_region_is_another_life(void **state)
{
    struct ttm_live got;
    uint64_t serial = 0, none;
    (void)state;

    for (uint16_t allocator = 0; allocator < 300; allocator++) {
        for (uint8_t region = 0; region < 7; region++) {
            const struct ttm_live life = {
                .serial = ++serial, .id = 5, .allocator = allocator, .region = region};
            assert_int_equal(ttm_live_table_add(&table, &cache, &life, &none), 0);
        }
    }
    assert_int_equal(live_count(&table), serial);
    assert_int_equal(remove_key(&cache, 299, 6, 5, &got), 0);
    assert_int_equal(got.serial, serial);
}

static void the_table_holds_what_a_plain_array_holds(void **state)
{
    static uint64_t serials[4096]; /* by id; 0: not live */
    uint64_t random = 99, live = 0;
    (void)state;

    memset(serials, 0, sizeof(serials));
    for (uint64_t serial = 1; serial < 200000; serial++) {
        const uint32_t id = random_below(&random, COUNT_OF(serials));
        if (random_below(&random, 2) == 0) {
            assert_int_equal(add(serial, id), serials[id] != 0);
            live += serials[id] == 0;
            serials[id] = serial;
        } else {
            assert_int_equal(take(&cache, serials[id], id), serials[id] != 0);
            live -= serials[id] != 0;
            serials[id] = 0;
        }
    }
    assert_int_equal(live_count(&table), live);
    /* Places were used again: no more than there were lives at once, and a cache. */
    assert_in_range(atomic_load(&table.next_place), live, COUNT_OF(serials) + TTM_LIVE_CACHE);
}

static void the_number_of_lives_is_exact_of_few_and_about_right_of_many(void **state)
{
    struct ttm_live got;
    uint64_t none;
    (void)state;

    assert_int_equal(ttm_live_table_estimate(&table), 0);
    for (uint64_t id = 1; id <= 100000; id++) {
        const struct ttm_live life = {.serial = id, .id = id};
        assert_int_equal(ttm_live_table_add(&table, &cache, &life, &none), 0);
        if (id == 3000)
            assert_int_equal(ttm_live_table_estimate(&table), 3000);
    }
    assert_in_range(ttm_live_table_estimate(&table), 98000, 101000);
    /* What is left lies side by side by the half of a batch. */
    for (uint64_t id = 1; id <= 100000; id++) {
        if (id % 64 >= 32)
            assert_int_equal(remove_key(&cache, 0, 0, id, &got), 0);
    }
    assert_in_range(ttm_live_table_estimate(&table), 48000, 52000);
}

/* The buckets of each generation made a hundred times fewer, so that a test can fill them all. */
static const uint32_t few_buckets[TTM_LIVE_GENERATIONS] = {8,   16,  32,   64,  128,
                                                           256, 512, 1024, 2048};

static void all_generations_fill_and_empty_and_a_full_table_says_so(void **state)
{
    struct ttm_live_generation generations[TTM_LIVE_GENERATIONS];
    uint64_t count = 0;
    int r;
    (void)state;

    assert_int_equal(table.generations_reserved, TTM_LIVE_GENERATIONS);
    memcpy(generations, table.generations, sizeof(generations));
    for (uint32_t i = 0; i < TTM_LIVE_GENERATIONS; i++)
        table.generations[i].bucket_count = few_buckets[i];

    while ((r = add(count + 1, count)) == 0)
        count++;
    assert_int_equal(r, -ENOSPC);
    assert_int_equal(atomic_load(&table.generation_count), TTM_LIVE_GENERATIONS);
    assert_in_range(count, 30000, 4088 * 15 * 9 / 8); /* most of the entries there are */
    assert_int_equal(live_count(&table), count);
    assert_int_equal(add(count + 1, count), -ENOSPC); /* and nothing has changed */
    assert_int_equal(live_count(&table), count);
    /* A life that ends makes room, and every one of them is found. */
    for (uint64_t id = 0; id < count; id++)
        assert_true(take(&cache, id + 1, id));
    assert_int_equal(live_count(&table), 0);
    for (uint64_t id = 0; id < 20000; id++)
        assert_int_equal(add(count + id + 2, id), 0);
    assert_int_equal(live_count(&table), 20000);
    memcpy(table.generations, generations, sizeof(generations));
}

static void a_table_without_places_left_says_so(void **state)
{
    const uint32_t place_count = table.place_count;
    uint64_t count = 0;
    (void)state;

    table.place_count = 1000; /* not a multiple of a batch */
    while (add(count + 1, count) == 0)
        count++;
    assert_int_equal(count, 1000);
    assert_int_equal(add(2000, 5), -ENOSPC); /* a birth that would replace, too: it needs a place */
    assert_int_equal(live_count(&table), 1000);
    assert_true(take(&cache, 6, 5));
    assert_int_equal(add(2000, 5), 0);
    assert_int_equal(live_count(&table), 1000);
    table.place_count = place_count;
}

/* The thread sanitizer is slow, and has nothing to see where there is one thread. */
#ifdef __SANITIZE_THREAD__
#define MANY 150000u
#else
#define MANY 1000000u
#endif

static void up_to_a_million_lives_take_64_bytes_each(void **state)
{
    /* The first two generations, and an overflow bucket for every eight. */
    const size_t first = (size_t)64 *
                         (table.generations[0].bucket_count + table.generations[1].bucket_count) *
                         9 / 8;
    uint32_t generations = 1;
    (void)state;

    assert_in_range(first, 1, 1 << 20);
    for (uint64_t id = 0; id < MANY; id++) {
        if (add(id + 1, id << 12) != 0)
            fail_msg("no room for %llu", (unsigned long long)id);
        /* The worst is when a generation has just begun; small tables are within the first two. */
        if (atomic_load(&table.generation_count) == generations && id != MANY - 1)
            continue;
        generations = atomic_load(&table.generation_count);
        assert_in_range(ttm_live_table_bytes(&table), 48 * (id + 1), 64 * (id + 1) + first);
    }
    assert_in_range(generations, 2, TTM_LIVE_GENERATIONS);
    assert_int_equal(live_count(&table), MANY);
    for (uint64_t id = 0; id < MANY; id++) {
        if (!take(&cache, id + 1, id << 12))
            fail_msg("%llu is not there", (unsigned long long)id);
    }
    assert_int_equal(live_count(&table), 0);
}

/* Ids of which each 16384 are beyond all that were before, below them, or anywhere. */
static uint64_t id_in_waves(uint64_t number)
{
    const uint64_t wave = number / 16384, middle = UINT64_C(1) << 40;

    if (wave % 3 == 2)
        return ttm_hash_u64(number) | 1;
    return (wave % 3 == 0 ? middle + 2 * number : middle - 2 * number) & ~UINT64_C(1);
}

static void whatever_way_ids_go_they_are_found_in_each_generation(void **state)
{
    const uint64_t count = 150000;
    uint64_t replaced;
    (void)state;

    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(add(i + 1, id_in_waves(i)), 0);
    assert_in_range(atomic_load(&table.generation_count), 3, TTM_LIVE_GENERATIONS);
    /* One that is born again ends the one before, wherever that is. */
    for (uint64_t i = 0; i < count; i += 2) {
        const struct ttm_live live = life_of(count + i + 1, id_in_waves(i));
        assert_int_equal(ttm_live_table_add(&table, &cache, &live, &replaced), 1);
        assert_int_equal(replaced, i + 1);
    }
    assert_int_equal(live_count(&table), count);
    for (uint64_t i = 0; i < count; i++)
        assert_true(take(&cache, i % 2 == 0 ? count + i + 1 : i + 1, id_in_waves(i)));
    assert_int_equal(live_count(&table), 0);
}

static void the_largest_id_is_as_good_as_any(void **state)
{
    (void)state;

    for (uint64_t i = 0; i < 20000; i++)
        assert_int_equal(add(i + 1, UINT64_MAX - i), 0);
    for (uint64_t i = 0; i < 20000; i++)
        assert_true(take(&cache, i + 1, UINT64_MAX - i));
}

/* ---- under a limit of the address space ---- */

static uint64_t mapped_bytes(void)
{
    char line[128];
    FILE *file = fopen("/proc/self/statm", "re");

    assert_non_null(file);
    assert_non_null(fgets(line, sizeof(line), file));
    assert_int_equal(fclose(file), 0);
    const uint64_t pages = strtoull(line, NULL, 10);
    assert_int_not_equal(pages, 0);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Makes the table with only so much address space left. */
static int init_within(uint64_t room)
{
    const uint64_t before = mapped_bytes();
    struct rlimit limit, small;

    assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
    small = (struct rlimit){.rlim_cur = before + room, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &small), 0);
    const int r = ttm_live_table_init(&table, SEED);
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    return r;
}

static void a_program_with_little_address_space_gets_a_smaller_table(void **state)
{
    uint64_t count = 0;
    (void)state;

    memset(&cache, 0, sizeof(cache));
    assert_int_equal(init_within(24 << 20), 0);
    assert_in_range(table.place_count, 1 << 16, TTM_LIVES_PER_PROCESS / 4);
    assert_in_range(table.generations_reserved, 1, TTM_LIVE_GENERATIONS - 1);
    while (count < 150000 && add(count + 1, count) == 0)
        count++;
    assert_int_equal(count, 150000);
    assert_int_equal(live_count(&table), count);
    for (uint64_t id = 0; id < count; id++)
        assert_true(take(&cache, id + 1, id));
    ttm_live_table_done(&table);
}

static void a_program_with_none_is_refused_and_keeps_what_it_had(void **state)
{
    const uint64_t before = mapped_bytes();
    (void)state;

    assert_int_equal(init_within(1 << 20), -ENOMEM);
    assert_int_equal(mapped_bytes(), before);
}

/* ---- caches ---- */

static void what_ended_threads_had_at_hand_is_used_again(void **state)
{
    uint64_t serial = 0;
    (void)state;

    for (int thread = 0; thread < 5000; thread++) {
        struct ttm_live_cache own = {0};
        uint64_t none;
        const uint64_t first = serial + 1;
        for (int i = 0; i < 150; i++) { /* more than a cache holds */
            serial++;
            const struct ttm_live life = life_of(serial, serial);
            assert_int_equal(ttm_live_table_add(&table, &own, &life, &none), 0);
        }
        for (uint64_t s = first; s <= serial; s++)
            assert_true(take(&own, s, s));
        ttm_live_table_flush(&table, &own);
        assert_int_equal(own.count, 0);
    }
    assert_in_range(atomic_load(&table.next_place), 150, 150 + 2 * TTM_LIVE_CACHE);
}

/* ---- several threads ---- */

static uint64_t add_numbered(struct ttm_live_cache *own, uint64_t serial)
{
    const struct ttm_live life = life_of(serial, serial);
    uint64_t none;

    return ttm_live_table_add(&table, own, &life, &none) != 0;
}

static uint64_t take_numbered(struct ttm_live_cache *own, uint64_t serial)
{
    return !take(own, serial, serial);
}

static uint64_t is_torn(const struct ttm_live *live)
{
    return !is_life_of(live, live->serial, live->serial);
}

static void lives_added_by_one_thread_and_removed_by_another_are_never_torn_or_lost(void **state)
{
    struct crowd crowd = {.table = &table,
                          .lives_each = 60000,
                          .staying = 1000,
                          .ahead = 256,
                          .add = add_numbered,
                          .end = take_numbered,
                          .meet = is_torn};
    (void)state;

    crowd_run(&crowd);
    assert_int_equal(live_count(&table), crowd.staying + CROWD_PAIRS * crowd_stays(&crowd));
    for (uint32_t pair = 0; pair < CROWD_PAIRS; pair++) {
        for (uint64_t n = 0; n < crowd.lives_each; n += CROWD_STAYS)
            assert_int_equal(take_numbered(&cache, crowd_serial(pair, n)), 0);
    }
    for (uint64_t serial = 1; serial <= crowd.staying; serial++)
        assert_int_equal(take_numbered(&cache, serial), 0);
    assert_int_equal(live_count(&table), 0);
}

#define FIGHTERS 4u
#define FIGHTS 60000u

struct fighter {
    pthread_t thread;
    uint64_t number;
    uint64_t added, removed, wrong;
};

/* Whether a serial was given to a life of a contended key. */
static bool is_of_a_fight(uint64_t serial)
{
    return serial >> 48 != 0 && serial >> 48 <= FIGHTERS && serial % 2 == 1;
}

/*
 * Everybody adds and removes the same two keys, as a confused program does, and
 * between that lives of its own, which must not come to harm.
 */
static void *fight(void *arg)
{
    struct fighter *fighter = arg;
    struct ttm_live_cache own = {0};
    uint64_t random = fighter->number + 1, replaced;
    struct ttm_live got;

    for (uint64_t n = 0; n < FIGHTS; n++) {
        const uint64_t serial = (fighter->number + 1) << 48 | (2 * n + 1);
        const uint64_t contended = next_random(&random) >> 20 & 1;
        const struct ttm_live life = life_of(serial, contended);
        const int r = ttm_live_table_add(&table, &own, &life, &replaced);
        fighter->wrong += r < 0 || (r == 1 && !is_of_a_fight(replaced));
        fighter->added++;
        fighter->removed += r == 1;

        const struct ttm_live bystander = life_of(serial + 1, serial + 1);
        fighter->wrong += ttm_live_table_add(&table, &own, &bystander, &replaced) != 0;

        if (n % 2 == 0) { /* whichever it is */
            const uint64_t ended =
                ttm_live_table_remove(&table, &own, ttm_live_key_of(&life), contended, 0);
            fighter->removed += ended != 0;
            fighter->wrong += ended != 0 && !is_of_a_fight(ended);
        } else if (remove_key(&own, (uint16_t)contended, (uint8_t)contended, contended, &got) ==
                   0) {
            fighter->removed++;
            fighter->wrong += !is_life_of(&got, got.serial, contended);
        }
        fighter->wrong += !take(&own, serial + 1, serial + 1);
    }
    ttm_live_table_flush(&table, &own);
    return NULL;
}

static void threads_that_fight_over_a_key_do_no_harm_to_others(void **state)
{
    struct ttm_live_generation generations[TTM_LIVE_GENERATIONS];
    struct fighter fighters[FIGHTERS] = {0};
    uint64_t left = 0;
    struct ttm_live got;
    (void)state;

    /* One bucket in the first generation: all entries are neighbours. */
    memcpy(generations, table.generations, sizeof(generations));
    table.generations[0].bucket_count = 4;
    for (uint64_t i = 0; i < FIGHTERS; i++) {
        fighters[i].number = i;
        assert_int_equal(pthread_create(&fighters[i].thread, NULL, fight, &fighters[i]), 0);
    }
    for (uint64_t i = 0; i < FIGHTERS; i++) {
        assert_int_equal(pthread_join(fighters[i].thread, NULL), 0);
        assert_int_equal(fighters[i].wrong, 0);
        left += fighters[i].added - fighters[i].removed;
    }
    assert_int_equal(live_count(&table), left);
    for (uint16_t key = 0; key < 2; key++) {
        while (remove_key(&cache, key, (uint8_t)key, key, &got) == 0)
            left--;
    }
    assert_int_equal(left, 0); /* what was there could be found */
    assert_int_equal(live_count(&table), 0);
    memcpy(table.generations, generations, sizeof(generations));
}

#define WITH_TABLE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TABLE(a_life_is_kept_with_all_that_it_is_up_to_the_limits),
        WITH_TABLE(the_end_of_an_unknown_key_changes_nothing),
        WITH_TABLE(a_plain_life_is_kept_as_any_other),
        WITH_TABLE(a_life_is_read_and_gets_another_origin_while_it_lives),
        WITH_TABLE(a_part_of_a_program_has_a_key_of_its_own),
        WITH_TABLE(a_key_that_is_born_again_replaces_the_life_it_had),
        WITH_TABLE(the_same_number_in_another_allocator_or_region_is_another_life),
        WITH_TABLE(the_table_holds_what_a_plain_array_holds),
        WITH_TABLE(the_number_of_lives_is_exact_of_few_and_about_right_of_many),
        WITH_TABLE(all_generations_fill_and_empty_and_a_full_table_says_so),
        WITH_TABLE(a_table_without_places_left_says_so),
        WITH_TABLE(up_to_a_million_lives_take_64_bytes_each),
        WITH_TABLE(whatever_way_ids_go_they_are_found_in_each_generation),
        WITH_TABLE(the_largest_id_is_as_good_as_any),
        cmocka_unit_test(a_program_with_little_address_space_gets_a_smaller_table),
        cmocka_unit_test(a_program_with_none_is_refused_and_keeps_what_it_had),
        WITH_TABLE(what_ended_threads_had_at_hand_is_used_again),
        WITH_TABLE(lives_added_by_one_thread_and_removed_by_another_are_never_torn_or_lost),
        WITH_TABLE(threads_that_fight_over_a_key_do_no_harm_to_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
