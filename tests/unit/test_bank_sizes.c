/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/bank_sizes.h"

#include <pthread.h>
#include <string.h>

#include "testing.h"

#define THREADS 4

static struct ttm_bank_sizes sizes;

static int begin(void **state)
{
    (void)state;
    memset(&sizes, 0, sizeof(sizes));
    return 0;
}

static struct ttm_buffer_facts facts_of(uint64_t bytes, uint64_t page_bytes, uint8_t region)
{
    return (struct ttm_buffer_facts){.bytes = bytes, .page_bytes = page_bytes, .region = region};
}

/* What was found for such a buffer; 0: nothing. */
static uint64_t footprint_of(const struct ttm_buffer_facts *facts)
{
    const struct ttm_bank_size *size =
        ttm_bank_sizes_find(&sizes, facts->region, facts->bytes, facts->page_bytes);

    return size ? size->size.footprint_bytes : 0;
}

static void add(const struct ttm_buffer_facts *facts, uint64_t footprint_bytes)
{
    const struct ttm_live placed = {.bytes = facts->bytes,
                                    .footprint_bytes = footprint_bytes,
                                    .allocator = 7,
                                    .banks = 12,
                                    .devices = 1030,
                                    .region = facts->region};

    ttm_bank_sizes_add(&sizes, facts, &placed);
}

static void a_size_is_known_by_all_that_it_depends_on(void **state)
{
    const struct ttm_buffer_facts known = facts_of(65536, 2048, TTMEM_DRAM);
    const struct ttm_buffer_facts others[] = {
        facts_of(65536 + 2048, 2048, TTMEM_DRAM),
        facts_of(65536, 1024, TTMEM_DRAM),
        facts_of(65536, 2048, TTMEM_L1),
    };
    (void)state;

    assert_int_equal(footprint_of(&known), 0);
    add(&known, 73728);
    assert_int_equal(footprint_of(&known), 73728);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_int_equal(footprint_of(&others[i]), 0);
    const struct ttm_bank_size *size = ttm_bank_sizes_find(&sizes, TTMEM_DRAM, 65536, 2048);
    assert_non_null(size);
    assert_int_equal(size->size.spread.allocator, 7);
    assert_int_equal(size->size.spread.banks, 12);
    assert_int_equal(size->size.spread.devices, 1030);
    assert_true(size->size.key == ttm_live_key(7, TTMEM_DRAM, 0));
}

static void what_is_forgotten_may_be_different_next_time(void **state)
{
    const struct ttm_buffer_facts facts = facts_of(65536, 2048, TTMEM_TRACE);
    (void)state;

    add(&facts, 73728);
    ttm_bank_sizes_forget(&sizes);
    assert_int_equal(footprint_of(&facts), 0);
    add(&facts, 81920);
    assert_int_equal(footprint_of(&facts), 81920);
}

static void one_that_is_not_spread_page_by_page_is_not_kept(void **state)
{
    const struct ttm_buffer_facts sharded = facts_of(65536, 0, TTMEM_L1);
    struct ttm_buffer_facts by_core = facts_of(65536, 2048, TTMEM_L1);
    (void)state;

    by_core.banks = 3;
    add(&sharded, 1024);
    assert_int_equal(footprint_of(&sharded), 0);
    add(&by_core, 1024);
    assert_int_equal(footprint_of(&by_core), 0);
}

/* Whatever finds no place is not known; whatever is known is right. */
static void more_sizes_than_places_are_never_mixed_up(void **state)
{
    uint32_t found = 0;
    (void)state;

    for (uint64_t i = 1; i <= 5000; i++) {
        const struct ttm_buffer_facts facts = facts_of(i * 2048, 2048, TTMEM_DRAM);
        add(&facts, i * 7);
    }
    for (uint64_t i = 1; i <= 5000; i++) {
        const struct ttm_buffer_facts facts = facts_of(i * 2048, 2048, TTMEM_DRAM);
        if (footprint_of(&facts) == 0)
            continue;
        assert_int_equal(footprint_of(&facts), i * 7);
        found++;
    }
    assert_in_range(found, (1u << TTM_BANK_SIZES_BITS) / 2, 1u << TTM_BANK_SIZES_BITS);
}

static _Atomic uint32_t wrong;

static void *add_and_find(void *unused)
{
    for (uint64_t i = 1; i <= 20000; i++) {
        const struct ttm_buffer_facts facts = facts_of(i % 3000 * 64 + 64, 64, TTMEM_L1);
        const uint64_t found = footprint_of(&facts);
        if (found != 0)
            wrong += found != facts.bytes + 1;
        else
            add(&facts, facts.bytes + 1);
    }
    return unused;
}

static void threads_find_what_is_whole(void **state)
{
    pthread_t threads[THREADS];
    (void)state;

    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_and_find, NULL), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_size_is_known_by_all_that_it_depends_on, begin),
        cmocka_unit_test_setup(what_is_forgotten_may_be_different_next_time, begin),
        cmocka_unit_test_setup(one_that_is_not_spread_page_by_page_is_not_kept, begin),
        cmocka_unit_test_setup(more_sizes_than_places_are_never_mixed_up, begin),
        cmocka_unit_test_setup(threads_find_what_is_whole, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
