/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "model/holders.h"
#include "model/registry.h"
#include "model/snapshot.h"
#include "wire/life_row.h"

static struct ttm_registry *reg;
static struct ttm_process *proc;
static struct ttm_holders holders;
static uint64_t next_id;

static int set_up(void **state)
{
    const struct ttm_process_info info = {.pid = 1};
    (void)state;

    reg = ttm_registry_new(0x5eed5eed5eed5eedull);
    assert_non_null(reg);
    assert_int_equal(ttm_registry_add_process(reg, &info, &proc), 0);
    next_id = 1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_registry_free(reg);
    return faults_pages_out() == 0 ? 0 : -1;
}

static void give_birth(uint32_t set, uint8_t region, uint32_t origin, uint64_t bytes, uint8_t flags)
{
    const struct ttm_birth birth = {
        .id = next_id++,
        .bytes = bytes,
        .footprint_bytes = bytes + 24,
        .site = {.device_set = set, .region = region, .origin = origin, .flags = flags},
    };

    assert_int_equal(ttm_registry_birth(reg, proc, &birth, NULL), 0);
}

static void assert_owner(uint32_t i, uint32_t origin, uint64_t count, uint64_t bytes)
{
    assert_int_equal(holders.largest[i].origin, origin);
    assert_int_equal(holders.largest[i].count, count);
    assert_int_equal(holders.largest[i].bytes, bytes);
    assert_int_equal(holders.largest[i].footprint_bytes, bytes + 24 * count);
}

static void who_holds_most_comes_first(void **state)
{
    (void)state;
    give_birth(0, TTM_REGION_L1, 7, 1000, 0);
    for (int i = 0; i < 5; i++)
        give_birth(0, TTM_REGION_L1, 9, 500, 0);
    give_birth(0, TTM_REGION_L1, 0, 40, 0);
    assert_int_equal(ttm_holders_find(reg, proc, 0, TTM_REGION_L1, &holders), 0);
    assert_int_equal(holders.count, 3);
    assert_int_equal(holders.origins, 3);
    assert_owner(0, 9, 5, 2500);
    assert_owner(1, 7, 1, 1000);
    assert_owner(2, 0, 1, 40);
    assert_int_equal(holders.all.count, 7);
    assert_int_equal(holders.all.bytes, 3540);
}

static void other_memory_and_views_do_not_count(void **state)
{
    const uint16_t both[] = {0, 1};
    uint32_t mesh;
    (void)state;

    assert_int_equal(ttm_registry_hold_set(reg, proc, both, 2, &mesh), 0);
    give_birth(0, TTM_REGION_DRAM, 1, 1000, 0);
    give_birth(1, TTM_REGION_L1, 1, 1000, 0);
    give_birth(0, TTM_REGION_L1, 1, 1000, TTM_SITE_ALIAS);
    give_birth(mesh, TTM_REGION_L1, 5, 100, 0);
    give_birth(0, TTM_REGION_L1, 5, 10, 0); /* another site, the same origin */
    assert_int_equal(ttm_holders_find(reg, proc, 0, TTM_REGION_L1, &holders), 0);
    assert_int_equal(holders.count, 1);
    assert_owner(0, 5, 2, 110);
    assert_int_equal(ttm_holders_find(reg, proc, 2, TTM_REGION_L1, &holders), 0);
    assert_int_equal(holders.count, 0);
    assert_int_equal(holders.all.count, 0);
}

static void add_origin(uint32_t number, const char *thread, const char *context)
{
    const struct ttm_origin origin = {
        .number = number,
        .text = {context, "", thread, "ttnn.empty", "decode.py:28:cache_kv\n", ""},
    };

    assert_int_equal(ttm_origin_table_add(&proc->origins, &origin), 0);
}

static void threads_that_came_the_same_way_are_one(void **state)
{
    (void)state;
    add_origin(3, "worker-1", "");
    add_origin(5, "worker-2", "");
    add_origin(6, "worker-2", "warm up");
    add_origin(8, "worker-3", "");
    give_birth(0, TTM_REGION_L1, 8, 300, 0);
    give_birth(0, TTM_REGION_L1, 5, 100, 0);
    give_birth(0, TTM_REGION_L1, 6, 350, 0);
    give_birth(0, TTM_REGION_L1, 3, 200, 0);
    give_birth(0, TTM_REGION_L1, 9, 20, 0); /* nothing is known of it */
    give_birth(0, TTM_REGION_L1, 0, 10, 0);
    assert_int_equal(ttm_holders_find(reg, proc, 0, TTM_REGION_L1, &holders), 0);
    assert_int_equal(holders.count, 4);
    assert_int_equal(holders.origins, 4);
    assert_owner(0, 3, 3, 600);
    assert_owner(1, 6, 1, 350);
    assert_owner(2, 9, 1, 20);
    assert_owner(3, 0, 1, 10);
    assert_int_equal(holders.all.count, 6);
}

static void those_beyond_the_bound_are_in_the_sum(void **state)
{
    (void)state;
    for (uint32_t origin = 1; origin <= 3 * TTM_OWNERS_MAX; origin++)
        give_birth(0, TTM_REGION_L1, origin, 100 * origin, 0);
    assert_int_equal(ttm_holders_find(reg, proc, 0, TTM_REGION_L1, &holders), 0);
    assert_int_equal(holders.count, TTM_OWNERS_MAX);
    assert_int_equal(holders.origins, 3 * TTM_OWNERS_MAX);
    assert_owner(0, 24, 1, 2400);
    assert_owner(7, 17, 1, 1700);
    assert_int_equal(holders.all.count, 24);
    assert_int_equal(holders.all.bytes, 100 * 24 * 25 / 2);
}

/* ---- against a walk over all allocations ---- */

#define ORIGINS 40
#define DEVICES 3

static void assert_as_walked(uint16_t device, uint8_t region)
{
    struct ttm_owner sums[ORIGINS] = {0}, all = {0};
    struct ttm_life_view view;
    const struct ttm_life *life;
    uint64_t at = 0;
    uint32_t origins = 0;

    assert_int_equal(ttm_life_view_take(&proc->lives.store, &view), 0);
    while ((life = ttm_life_view_next(&view, &at)) != NULL) {
        const struct ttm_site *site = ttm_site_table_get(&proc->sites, life->site);
        const struct ttm_device_set set = ttm_device_sets_get(&reg->sets, site->device_set);
        bool is_there = site->region == region && !(site->flags & TTM_SITE_ALIAS);
        for (uint16_t i = 0; is_there && i < set.count; i++) {
            if (set.devices[i] != device)
                continue;
            struct ttm_owner *both[] = {&sums[site->origin], &all};
            for (size_t b = 0; b < 2; b++) {
                both[b]->count++;
                both[b]->bytes += life->bytes;
                both[b]->footprint_bytes += life->footprint_bytes;
            }
        }
    }
    (void)ttm_life_view_release(&view, UINT32_MAX);
    for (uint32_t i = 0; i < ORIGINS; i++)
        origins += sums[i].count > 0;
    assert_int_equal(ttm_holders_find(reg, proc, device, region, &holders), 0);
    assert_int_equal(holders.origins, origins);
    assert_int_equal(holders.count, origins < TTM_OWNERS_MAX ? origins : TTM_OWNERS_MAX);
    assert_memory_equal(&holders.all, &all, sizeof(all));
    for (uint32_t i = 0; i < holders.count; i++) {
        const struct ttm_owner *owner = &holders.largest[i];
        struct ttm_owner *sum = &sums[owner->origin];
        uint64_t most = 0;
        for (uint32_t o = 0; o < ORIGINS; o++)
            most = sums[o].footprint_bytes > most ? sums[o].footprint_bytes : most;
        assert_int_equal(owner->footprint_bytes, most);
        assert_int_equal(owner->footprint_bytes, sum->footprint_bytes);
        assert_int_equal(owner->count, sum->count);
        assert_int_equal(owner->bytes, sum->bytes);
        *sum = (struct ttm_owner){0};
    }
}

static void the_sums_of_sites_give_what_a_walk_over_all_allocations_gives(void **state)
{
    const uint16_t both[] = {0, 2};
    uint64_t seed = 0x5eed, serial = 0, oldest = 1;
    uint32_t mesh;
    (void)state;

    assert_int_equal(ttm_registry_hold_set(reg, proc, both, 2, &mesh), 0);
    proc->has_serials = true;
    for (unsigned step = 0; step < 4000; step++) {
        const struct ttm_birth birth = {
            .serial = ++serial,
            .bytes = 1 + random_below(&seed, 5000),
            .footprint_bytes = 1 + random_below(&seed, 5000),
            .site = {.device_set = random_below(&seed, 3) ? random_below(&seed, DEVICES) : mesh,
                     .region = (uint8_t)random_below(&seed, 2),
                     .flags = random_below(&seed, 4) ? 0 : TTM_SITE_ALIAS,
                     .origin = random_below(&seed, ORIGINS)},
        };
        struct ttm_ended ended;
        assert_int_equal(ttm_registry_birth(reg, proc, &birth, NULL), 0);
        if (random_below(&seed, 3) == 0)
            (void)ttm_registry_end_serial(reg, proc, oldest++, TTM_END_FREED, &ended);
        if (random_below(&seed, 3) == 0)
            (void)ttm_registry_set_origin(reg, proc, oldest + random_below(&seed, 50),
                                          random_below(&seed, ORIGINS));
        if (step % 100 == 0)
            assert_as_walked((uint16_t)random_below(&seed, DEVICES + 1),
                             (uint8_t)random_below(&seed, 3));
        if (step == 2000)
            ttm_registry_forget_lives(reg, proc);
    }
    assert_int_equal(ttm_registry_check(reg), 0);
}

static void a_process_without_lives_holds_nothing(void **state)
{
    (void)state;
    holders.count = 99;
    assert_int_equal(ttm_holders_find(reg, proc, 0, TTM_REGION_L1, &holders), 0);
    assert_int_equal(holders.count, 0);
}

static void when_memory_is_short_nobody_is_named(void **state)
{
    bool has_failed = true;
    (void)state;

    give_birth(0, TTM_REGION_L1, 1, 1000, 0);
    for (unsigned grants = 0; has_failed; grants++) {
        faults_begin(grants);
        const int r = ttm_holders_find(reg, proc, 0, TTM_REGION_L1, &holders);
        has_failed = faults_end();
        assert_int_equal(r, has_failed ? -ENOMEM : 0);
        assert_int_equal(holders.count, has_failed ? 0 : 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_holds_most_comes_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_memory_and_views_do_not_count, set_up, tear_down),
        cmocka_unit_test_setup_teardown(threads_that_came_the_same_way_are_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(those_beyond_the_bound_are_in_the_sum, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_sums_of_sites_give_what_a_walk_over_all_allocations_gives, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_process_without_lives_holds_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(when_memory_is_short_nobody_is_named, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
