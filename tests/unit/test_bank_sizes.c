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

static void a_size_is_known_by_all_that_it_depends_on(void **state)
{
    const struct ttm_buffer_facts known = facts_of(65536, 2048, TTMEM_DRAM);
    const struct ttm_buffer_facts others[] = {
        facts_of(65536 + 2048, 2048, TTMEM_DRAM),
        facts_of(65536, 1024, TTMEM_DRAM),
        facts_of(65536, 2048, TTMEM_L1),
    };
    uint64_t bytes = 0;
    (void)state;

    assert_false(ttm_bank_sizes_find(&sizes, &known, &bytes));
    ttm_bank_sizes_add(&sizes, &known, 6144);
    assert_true(ttm_bank_sizes_find(&sizes, &known, &bytes));
    assert_int_equal(bytes, 6144);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(ttm_bank_sizes_find(&sizes, &others[i], &bytes));
}

static void one_that_is_not_spread_page_by_page_is_not_kept(void **state)
{
    const struct ttm_buffer_facts sharded = facts_of(65536, 0, TTMEM_L1);
    uint64_t bytes;
    (void)state;

    ttm_bank_sizes_add(&sizes, &sharded, 1024);
    assert_false(ttm_bank_sizes_find(&sizes, &sharded, &bytes));
}

/* Whatever finds no place is not known; whatever is known is right. */
static void more_sizes_than_places_are_never_mixed_up(void **state)
{
    uint32_t found = 0;
    (void)state;

    for (uint64_t i = 1; i <= 5000; i++) {
        const struct ttm_buffer_facts facts = facts_of(i * 2048, 2048, TTMEM_DRAM);
        ttm_bank_sizes_add(&sizes, &facts, i * 7);
    }
    for (uint64_t i = 1; i <= 5000; i++) {
        const struct ttm_buffer_facts facts = facts_of(i * 2048, 2048, TTMEM_DRAM);
        uint64_t bytes;
        if (!ttm_bank_sizes_find(&sizes, &facts, &bytes))
            continue;
        assert_int_equal(bytes, i * 7);
        found++;
    }
    assert_in_range(found, (1u << TTM_BANK_SIZES_BITS) / 2, 1u << TTM_BANK_SIZES_BITS);
}

static _Atomic uint32_t wrong;

static void *add_and_find(void *unused)
{
    for (uint64_t i = 1; i <= 20000; i++) {
        const struct ttm_buffer_facts facts = facts_of(i % 3000 * 64 + 64, 64, TTMEM_L1);
        uint64_t bytes;
        if (ttm_bank_sizes_find(&sizes, &facts, &bytes))
            wrong += bytes != facts.bytes + 1;
        else
            ttm_bank_sizes_add(&sizes, &facts, facts.bytes + 1);
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
        cmocka_unit_test_setup(one_that_is_not_spread_page_by_page_is_not_kept, begin),
        cmocka_unit_test_setup(more_sizes_than_places_are_never_mixed_up, begin),
        cmocka_unit_test_setup(threads_find_what_is_whole, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
