/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "base/hash.h"
#include "model/life_table.h"

static struct ttm_life_table table;

/* In these tests a life's address is its hash. */
static uint64_t hash_of(const void *context, const struct ttm_life *life)
{
    assert_ptr_equal(context, &table);
    return life->address;
}

static int set_up(void **state)
{
    (void)state;
    ttm_life_table_init(&table, hash_of, &table);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_life_table_done(&table);
    return faults_pages_out() == 0 ? 0 : -1;
}

static void add(uint64_t hash, uint64_t id)
{
    const struct ttm_life life = {.id = id, .address = hash};

    assert_int_equal(ttm_life_table_add(&table, hash, &life), 0);
}

/* The n-th life of that hash, or TTM_LIFE_NONE. */
static uint32_t find(uint64_t hash, size_t n)
{
    uint32_t ref = ttm_life_table_first(&table, hash);

    while (ref != TTM_LIFE_NONE && (ttm_life_table_get(&table, ref)->address != hash || n-- > 0))
        ref = ttm_life_table_next(&table, ref);
    return ref;
}

static void an_empty_table_finds_nothing_and_takes_no_memory(void **state)
{
    (void)state;
    assert_int_equal(ttm_life_table_first(&table, 0), TTM_LIFE_NONE);
    assert_int_equal(ttm_life_table_first(&table, UINT64_MAX), TTM_LIFE_NONE);
    assert_int_equal(ttm_life_table_bytes(&table), 0);
}

static void lives_of_one_hash_come_newest_first(void **state)
{
    (void)state;
    for (uint64_t id = 1; id <= 5; id++)
        add(42, id);
    for (size_t n = 0; n < 5; n++)
        assert_int_equal(ttm_life_table_get(&table, find(42, n))->id, 5 - n);
    assert_int_equal(find(42, 5), TTM_LIFE_NONE);
}

static void first_middle_and_last_of_a_chain_can_be_removed(void **state)
{
    static const uint64_t left[3][2] = {{2, 1}, {3, 1}, {3, 2}};
    (void)state;

    for (size_t gone = 0; gone < 3; gone++) {
        for (uint64_t id = 1; id <= 3; id++)
            add(7, id);
        ttm_life_table_remove(&table, 7, find(7, gone));
        assert_int_equal(ttm_life_table_get(&table, find(7, 0))->id, left[gone][0]);
        assert_int_equal(ttm_life_table_get(&table, find(7, 1))->id, left[gone][1]);
        assert_int_equal(find(7, 2), TTM_LIFE_NONE);
        ttm_life_table_remove(&table, 7, find(7, 0));
        ttm_life_table_remove(&table, 7, find(7, 0));
        assert_int_equal(find(7, 0), TTM_LIFE_NONE);
    }
}

static void newest_first_survives_growing_and_shrinking(void **state)
{
    (void)state;
    for (uint64_t id = 1; id <= 10; id++)
        add(99, id);
    for (uint64_t h = 1000; h < 21000; h++)
        add(h, 0);
    for (size_t n = 0; n < 10; n++)
        assert_int_equal(ttm_life_table_get(&table, find(99, n))->id, 10 - n);
    for (uint64_t h = 1000; h < 21000; h++)
        ttm_life_table_remove(&table, h, find(h, 0));
    for (size_t n = 0; n < 10; n++)
        assert_int_equal(ttm_life_table_get(&table, find(99, n))->id, 10 - n);
    assert_int_equal(table.store.live, 10);
}

static void there_are_as_many_buckets_as_lives_and_fewer_when_they_go(void **state)
{
    (void)state;
    for (uint64_t h = 0; h < 100000; h++) {
        add(ttm_hash_u64(h), h);
        assert_true(table.store.live <= table.buckets);
        assert_true(table.half <= table.buckets && table.buckets < 2 * table.half);
    }
    for (uint64_t h = 0; h < 100000; h++) {
        const uint64_t hash = ttm_hash_u64(h);
        ttm_life_table_remove(&table, hash, find(hash, 0));
        assert_true(table.half <= table.buckets && table.buckets < 2 * table.half);
    }
    assert_true(table.buckets <= 64);
}

static void all_memory_but_a_little_is_back_after_a_large_table_was_emptied(void **state)
{
    (void)state;
    for (uint64_t h = 0; h < 300000; h++)
        add(ttm_hash_u64(h), h);
    const size_t full = ttm_life_table_bytes(&table);
    assert_true(full <= 300000 * 64);
    assert_in_range(full, faults_pages_out(), faults_pages_out() + 16384);
    for (uint64_t h = 0; h < 300000; h++) {
        const uint64_t hash = ttm_hash_u64(h);
        ttm_life_table_remove(&table, hash, find(hash, 0));
    }
    assert_true(ttm_life_table_bytes(&table) <= TTM_CHUNK_SIZE + 2 * 16384 + 16384);
    assert_in_range(ttm_life_table_bytes(&table), faults_pages_out(), faults_pages_out() + 16384);
}

static void lives_taken_over_leave_an_empty_table_that_can_be_used(void **state)
{
    struct ttm_life_view view;
    const struct ttm_life *life;
    uint64_t at = 0, sum = 0;
    (void)state;

    for (uint64_t h = 1; h <= 5000; h++)
        add(h, h);
    ttm_life_table_take_over(&table, &view);
    assert_int_equal(ttm_life_table_bytes(&table), 0);
    assert_int_equal(ttm_life_table_first(&table, 1), TTM_LIFE_NONE);
    add(1, 77);
    assert_int_equal(ttm_life_table_get(&table, find(1, 0))->id, 77);
    while ((life = ttm_life_view_next(&view, &at)) != NULL)
        sum += life->id;
    assert_int_equal(sum, 5000ull * 5001 / 2);
    assert_true(ttm_life_view_release(&view, UINT32_MAX));
}

static void short_memory_adds_nothing(void **state)
{
    const struct ttm_life life = {.id = 1, .address = 1};
    unsigned grants = 0;
    (void)state;

    while (true) {
        faults_begin(grants);
        const int r = ttm_life_table_add(&table, 1, &life);
        if (!faults_end()) {
            assert_int_equal(r, 0);
            break;
        }
        assert_int_equal(r, -ENOMEM);
        assert_int_equal(table.store.live, 0);
        assert_int_equal(find(1, 0), TTM_LIFE_NONE);
        grants++;
    }
    assert_true(grants >= 3); /* the index and the chunk, each with its array */
}

/* Some of them where others were, and some where nobody was: over the border of a chunk. */
static void several_at_once_are_found_as_if_each_had_come_alone(void **state)
{
    struct ttm_life lives[64];
    uint64_t hashes[64];
    (void)state;

    for (uint64_t h = 0; h < TTM_CHUNK_LIVES - 20; h++)
        add(h, h);
    for (uint64_t h = 100; h < 110; h++)
        ttm_life_table_remove(&table, h, find(h, 0));
    for (uint64_t i = 0; i < 64; i++) {
        hashes[i] = 5000 + i / 2; /* two of each hash */
        lives[i] = (struct ttm_life){.id = i, .address = hashes[i], .bytes = 7 * i};
    }
    assert_int_equal(ttm_life_table_add_many(&table, hashes, lives, 64), 64);
    assert_int_equal(table.store.live, TTM_CHUNK_LIVES - 20 - 10 + 64);
    assert_true(table.buckets >= table.store.live);
    assert_int_equal(table.store.chunk_count, 2);
    for (uint64_t i = 0; i < 64; i++) {
        const struct ttm_life *life = ttm_life_table_get(&table, find(hashes[i], 1 - i % 2));
        assert_int_equal(life->id, i);
        assert_int_equal(life->bytes, 7 * i);
    }
    for (uint64_t h = 0; h < TTM_CHUNK_LIVES - 20; h++) {
        if (h < 100 || h >= 110)
            assert_int_equal(ttm_life_table_get(&table, find(h, 0))->id, h);
    }
}

static void of_several_as_many_are_added_as_there_is_memory_for(void **state)
{
    struct ttm_life lives[64];
    uint64_t hashes[64];
    (void)state;

    for (uint64_t h = 0; h < TTM_CHUNK_LIVES - 20; h++)
        add(h, h);
    for (uint64_t i = 0; i < 64; i++) {
        hashes[i] = 5000 + i;
        lives[i] = (struct ttm_life){.id = i, .address = hashes[i]};
    }
    faults_begin(0);
    assert_int_equal(ttm_life_table_add_many(&table, hashes, lives, 64), 20);
    assert_true(faults_end());
    assert_int_equal(table.store.live, TTM_CHUNK_LIVES);
    assert_int_equal(ttm_life_table_get(&table, find(5019, 0))->id, 19);
    assert_int_equal(find(5020, 0), TTM_LIFE_NONE);
    assert_int_equal(ttm_life_table_add_many(&table, hashes + 20, lives + 20, 44), 44);
    assert_int_equal(ttm_life_table_get(&table, find(5063, 0))->id, 63);
}

static void without_memory_for_more_buckets_chains_grow_and_nothing_is_lost(void **state)
{
    (void)state;
    for (uint64_t h = 0; h < 4096; h++)
        add(h, h);
    for (uint64_t h = 4096; h < 4 * TTM_CHUNK_LIVES; h++) { /* the chunk at hand has room */
        faults_begin(0);
        add(h, h);
        assert_true(faults_end()); /* the next segment of buckets was refused */
    }
    for (uint64_t h = 0; h < 4 * TTM_CHUNK_LIVES; h++)
        assert_int_equal(ttm_life_table_get(&table, find(h, 0))->id, h);
    for (uint64_t h = 0; h < 4 * TTM_CHUNK_LIVES; h++)
        ttm_life_table_remove(&table, h, find(h, 0));
}

/* The naive truth: for each hash a stack of ids. */
#define HASH_COUNT 20000
#define STACK_SIZE 6

static struct {
    uint64_t ids[STACK_SIZE];
    uint32_t count;
} stacks[HASH_COUNT];

static void assert_chain_is_stack(uint64_t hash, uint32_t number)
{
    uint32_t ref = ttm_life_table_first(&table, hash);

    for (uint32_t n = stacks[number].count; n > 0; n--) {
        while (ref != TTM_LIFE_NONE && ttm_life_table_get(&table, ref)->address != hash)
            ref = ttm_life_table_next(&table, ref);
        assert_int_not_equal(ref, TTM_LIFE_NONE);
        assert_int_equal(ttm_life_table_get(&table, ref)->id, stacks[number].ids[n - 1]);
        ref = ttm_life_table_next(&table, ref);
    }
    while (ref != TTM_LIFE_NONE) {
        assert_true(ttm_life_table_get(&table, ref)->address != hash);
        ref = ttm_life_table_next(&table, ref);
    }
}

static void remove_from_stack(uint64_t hash, uint32_t number, uint32_t from_top)
{
    const uint32_t at = stacks[number].count - 1 - from_top;

    ttm_life_table_remove(&table, hash, find(hash, from_top));
    memmove(&stacks[number].ids[at], &stacks[number].ids[at + 1],
            (stacks[number].count - 1 - at) * sizeof(stacks[number].ids[0]));
    stacks[number].count--;
}

static void a_hundred_thousand_random_changes_agree_with_a_naive_table(void **state)
{
    uint64_t seed = 31337;
    uint32_t live = 0;
    (void)state;

    memset(stacks, 0, sizeof(stacks));
    for (uint64_t step = 0; step < 300000; step++) {
        const bool is_growing = step / 60000 % 2 == 0;
        const uint32_t number = random_below(&seed, HASH_COUNT);
        /* Half of them well mixed, half of them side by side. */
        const uint64_t hash = number % 2 ? ttm_hash_u64(number) : number;
        const bool wants_more = random_below(&seed, 4) != 0 ? is_growing : !is_growing;

        if (wants_more && stacks[number].count < STACK_SIZE) {
            add(hash, step + 1);
            stacks[number].ids[stacks[number].count++] = step + 1;
            live++;
        } else if (stacks[number].count > 0) {
            remove_from_stack(hash, number, random_below(&seed, stacks[number].count));
            live--;
        }
        assert_int_equal(table.store.live, live);
        assert_chain_is_stack(hash, number);
    }
    assert_true(live > 1000);
    for (uint32_t number = 0; number < HASH_COUNT; number++) {
        const uint64_t hash = number % 2 ? ttm_hash_u64(number) : number;
        assert_chain_is_stack(hash, number);
        while (stacks[number].count > 0)
            remove_from_stack(hash, number, 0);
    }
    assert_int_equal(table.store.live, 0);
    assert_true(table.buckets <= 64);
}

static void an_index_that_expects_lives_is_there_before_them_and_goes_when_it_does_not(void **state)
{
    (void)state;

    ttm_life_table_expect(&table, 10000);
    for (uint64_t id = 0; id < 1000; id++)
        add(ttm_hash_u64(id), id);
    assert_int_equal(table.buckets, 10000);
    for (uint64_t id = 0; id < 1000; id++)
        assert_int_equal(ttm_life_table_get(&table, find(ttm_hash_u64(id), 0))->id, id);
    /* While they are expected, it does not shrink. */
    for (uint64_t id = 0; id < 500; id++)
        ttm_life_table_remove(&table, ttm_hash_u64(id), find(ttm_hash_u64(id), 0));
    assert_int_equal(table.buckets, 10000);
    ttm_life_table_expect(&table, 0);
    for (uint64_t id = 500; id < 1000; id++)
        ttm_life_table_remove(&table, ttm_hash_u64(id), find(ttm_hash_u64(id), 0));
    assert_int_equal(table.buckets, 10000 - 2 * 500);
}

static void an_index_that_grows_at_once_keeps_what_is_there_in_its_order(void **state)
{
    (void)state;

    for (uint64_t id = 0; id < 1500; id++)
        add(ttm_hash_u64(id % 500), id);
    ttm_life_table_expect(&table, 100000);
    assert_int_equal(table.buckets, 100000);
    for (uint64_t id = 0; id < 500; id++) {
        for (uint32_t i = 0; i < 3; i++)
            assert_int_equal(ttm_life_table_get(&table, find(ttm_hash_u64(id), i))->id,
                             id + 1000 - 500 * i);
        assert_int_equal(find(ttm_hash_u64(id), 3), TTM_LIFE_NONE);
    }
    ttm_life_table_expect(&table, 0);
    for (uint64_t id = 0; id < 1500; id++)
        ttm_life_table_remove(&table, ttm_hash_u64(id % 500), find(ttm_hash_u64(id % 500), 0));
    assert_int_equal(table.buckets, 100000 - 2 * 1500);
}

static void an_index_that_expects_millions_takes_at_most_a_million_at_once(void **state)
{
    (void)state;

    ttm_life_table_expect(&table, UINT32_MAX);
    assert_int_equal(table.buckets, 1u << 20);
    assert_int_equal(faults_pages_out(), 4u << 20);
}

static void without_memory_an_index_that_expects_lives_grows_as_ever(void **state)
{
    (void)state;

    add(1, 1);
    faults_begin(0);
    ttm_life_table_expect(&table, 100000);
    assert_true(faults_end());
    assert_int_equal(table.buckets, 64);
    assert_int_equal(ttm_life_table_get(&table, find(1, 0))->id, 1);
    add(2, 2);
    assert_true(table.buckets > 64);
}

static void lives_of_other_hashes_in_a_bucket_are_mostly_not_looked_at(void **state)
{
    uint32_t looks = 0;
    (void)state;

    for (uint64_t id = 0; id < 4096; id++)
        add(ttm_hash_u64(id), id);
    for (uint64_t id = 4096; id < 8192; id++)
        looks += ttm_life_table_first(&table, ttm_hash_u64(id)) != TTM_LIFE_NONE;
    /* 63 % of the buckets have a life, and one bit of eight is that of a life in them. */
    assert_in_range(looks, 1, 4096 / 4);
}

static void hashes_that_are_fetched_are_none_the_different(void **state)
{
    const uint64_t hashes[] = {0, 42, UINT64_MAX};
    (void)state;

    ttm_life_table_fetch(&table, hashes, 3);
    ttm_life_table_fetch_lives(&table, hashes, 3);
    add(42, 1);
    ttm_life_table_fetch(&table, hashes, 3);
    ttm_life_table_fetch_lives(&table, hashes, 3);
    assert_int_equal(ttm_life_table_get(&table, find(42, 0))->id, 1);
    assert_int_equal(find(UINT64_MAX, 0), TTM_LIFE_NONE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_empty_table_finds_nothing_and_takes_no_memory),
        TEST(lives_of_one_hash_come_newest_first),
        TEST(first_middle_and_last_of_a_chain_can_be_removed),
        TEST(newest_first_survives_growing_and_shrinking),
        TEST(there_are_as_many_buckets_as_lives_and_fewer_when_they_go),
        TEST(all_memory_but_a_little_is_back_after_a_large_table_was_emptied),
        TEST(lives_taken_over_leave_an_empty_table_that_can_be_used),
        TEST(short_memory_adds_nothing),
        TEST(several_at_once_are_found_as_if_each_had_come_alone),
        TEST(of_several_as_many_are_added_as_there_is_memory_for),
        TEST(without_memory_for_more_buckets_chains_grow_and_nothing_is_lost),
        TEST(an_index_that_expects_lives_is_there_before_them_and_goes_when_it_does_not),
        TEST(an_index_that_grows_at_once_keeps_what_is_there_in_its_order),
        TEST(an_index_that_expects_millions_takes_at_most_a_million_at_once),
        TEST(without_memory_an_index_that_expects_lives_grows_as_ever),
        TEST(lives_of_other_hashes_in_a_bucket_are_mostly_not_looked_at),
        TEST(hashes_that_are_fetched_are_none_the_different),
        TEST(a_hundred_thousand_random_changes_agree_with_a_naive_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
