/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "model/registry.h"
#include "server/failure.h"

#define SECOND UINT64_C(1000000000)

static struct ttm_registry *reg;
static struct ttm_process *proc;
static struct ttm_failure_watch watch;
static uint64_t next_id;

static int set_up(void **state)
{
    const struct ttm_process_info info = {.pid = 1};
    (void)state;

    reg = ttm_registry_new(0x5eed5eed5eed5eedull);
    assert_non_null(reg);
    assert_int_equal(ttm_registry_add_process(reg, &info, &proc), 0);
    watch = (struct ttm_failure_watch){0};
    next_id = 1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_registry_free(reg);
    return faults_pages_out() == 0 ? 0 : -1;
}

static void give_birth(uint8_t region, uint32_t origin)
{
    const struct ttm_birth birth = {
        .id = next_id++,
        .bytes = 64,
        .footprint_bytes = 64,
        .site = {.region = region, .origin = origin},
    };

    proc->counters.events++;
    assert_int_equal(ttm_registry_birth(reg, proc, &birth, NULL), 0);
}

static struct ttm_failure_row fail_in(uint8_t region, uint8_t kind, uint64_t now_ns)
{
    struct ttm_failure_row failure = {.region = region, .kind = kind};

    proc->counters.events++;
    ttm_failure_find_owners(&watch, reg, proc, now_ns, &failure);
    return failure;
}

static void the_owners_are_those_of_that_moment(void **state)
{
    (void)state;
    give_birth(TTM_REGION_L1, 3);
    struct ttm_failure_row failure = fail_in(TTM_REGION_L1, TTM_FAILURE_OUT_OF_MEMORY, SECOND);
    assert_int_equal(failure.owner_count, 1);
    assert_int_equal(failure.owners[0].count, 1);
    failure =
        fail_in(TTM_REGION_L1, TTM_FAILURE_OUT_OF_MEMORY, SECOND + 1); /* nothing has changed */
    assert_int_equal(failure.owner_count, 1);
    assert_int_equal(failure.owners[0].origin, 3);
    give_birth(TTM_REGION_L1, 3);
    failure = fail_in(TTM_REGION_L1, TTM_FAILURE_OUT_OF_MEMORY, SECOND + 2);
    assert_int_equal(failure.owners[0].count, 2);
    failure = fail_in(TTM_REGION_DRAM, TTM_FAILURE_OUT_OF_MEMORY, SECOND + 3);
    assert_int_equal(failure.owner_count, 0);
}

static void with_a_clash_the_owners_hold_l1(void **state)
{
    (void)state;
    give_birth(TTM_REGION_CB, 1);
    give_birth(TTM_REGION_L1, 2);
    const struct ttm_failure_row failure = fail_in(TTM_REGION_CB, TTM_FAILURE_CB_CLASH, SECOND);
    assert_int_equal(failure.owner_count, 1);
    assert_int_equal(failure.owners[0].origin, 2);
}

/* A thousand sites and a storm of failures with something between them: a second has its limit. */
static void a_storm_has_a_limit_and_names_nobody_rather_than_who_it_was(void **state)
{
    uint32_t named = 0, failures = 0;
    (void)state;

    for (uint32_t origin = 1; origin <= 1000; origin++)
        give_birth(TTM_REGION_L1, origin);
    while (failures < 3000) {
        give_birth(TTM_REGION_L1, 1);
        const struct ttm_failure_row failure =
            fail_in(TTM_REGION_L1, TTM_FAILURE_OUT_OF_MEMORY, 5 * SECOND + failures++);
        if (failure.owner_count > 0)
            assert_int_equal(failure.owners[0].count, 1 + failures);
        named += failure.owner_count > 0;
    }
    assert_in_range(named, 200, 263);
    assert_int_equal(fail_in(TTM_REGION_L1, TTM_FAILURE_OUT_OF_MEMORY, 6 * SECOND).owner_count,
                     TTM_OWNERS_MAX);
}

static void allocations_of_one_site_cost_no_more_than_one(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++)
        give_birth(TTM_REGION_L1, 1);
    for (uint32_t failures = 0; failures < 10000; failures++) {
        give_birth(TTM_REGION_L1, 1);
        assert_int_equal(
            fail_in(TTM_REGION_L1, TTM_FAILURE_OUT_OF_MEMORY, 5 * SECOND + failures).owner_count,
            1);
    }
}

static void when_memory_is_short_nobody_is_named(void **state)
{
    (void)state;
    give_birth(TTM_REGION_L1, 1);
    faults_begin(0);
    struct ttm_failure_row failure = fail_in(TTM_REGION_L1, TTM_FAILURE_OUT_OF_MEMORY, SECOND);
    assert_true(faults_end());
    assert_int_equal(failure.owner_count, 0);
    failure = fail_in(TTM_REGION_L1, TTM_FAILURE_OUT_OF_MEMORY, SECOND);
    assert_int_equal(failure.owner_count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_owners_are_those_of_that_moment, set_up, tear_down),
        cmocka_unit_test_setup_teardown(with_a_clash_the_owners_hold_l1, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_storm_has_a_limit_and_names_nobody_rather_than_who_it_was,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(allocations_of_one_site_cost_no_more_than_one, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(when_memory_is_short_nobody_is_named, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
