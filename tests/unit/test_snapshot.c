/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "model/snapshot.h"

static struct ttm_registry *reg;
static struct ttm_process *proc;

static int set_up(void **state)
{
    const struct ttm_process_info info = {.pid = 100};
    (void)state;

    reg = ttm_registry_new(1);
    assert_non_null(reg);
    return ttm_registry_add_process(reg, &info, &proc);
}

static int tear_down(void **state)
{
    (void)state;
    ttm_registry_free(reg);
    return faults_pages_out() == 0 ? 0 : -1;
}

static void give_birth(uint16_t device, uint8_t region, uint64_t id, uint64_t bytes)
{
    const struct ttm_birth birth = {
        .id = id,
        .bytes = bytes,
        .footprint_bytes = bytes,
        .site = {.allocator = device, .device_set = device, .region = region},
    };

    assert_true(ttm_registry_birth(reg, proc, &birth, NULL) >= 0);
}

static void end(uint16_t device, uint64_t id)
{
    struct ttm_ended ended;

    assert_int_equal(ttm_registry_end(reg, proc, device, UINT32_MAX >> 1, id, &ended), 0);
}

/* The lives of the first process in a snapshot, which are used up. */
static uint64_t sum_lives(struct ttm_snapshot *snap, uint64_t *ret_count)
{
    const struct ttm_life *life;
    uint64_t at = 0, bytes = 0;

    *ret_count = 0;
    while ((life = ttm_life_view_next(&snap->processes[0].lives, &at)) != NULL) {
        bytes += life->bytes;
        (*ret_count)++;
    }
    return bytes;
}

static void an_empty_registry_has_an_empty_snapshot(void **state)
{
    struct ttm_registry *empty = ttm_registry_new(1);
    struct ttm_snapshot *snap = ttm_snapshot_take(empty, 77);
    (void)state;

    assert_non_null(snap);
    assert_int_equal(snap->time_ns, 77);
    assert_int_equal(snap->process_count, 0);
    ttm_snapshot_free(snap);
    ttm_snapshot_free(NULL);
    ttm_registry_free(empty);
}

static void a_snapshot_shows_the_old_state_while_changes_go_on(void **state)
{
    uint64_t count;
    (void)state;

    for (uint64_t id = 0; id < 3000; id++)
        give_birth(0, TTM_REGION_L1, id, 10);
    proc->counters.unknown_frees = 4;
    struct ttm_snapshot *snap = ttm_snapshot_take(reg, 1);
    assert_non_null(snap);
    for (uint64_t id = 0; id < 2000; id++)
        end(0, id);
    for (uint64_t id = 5000; id < 9000; id++)
        give_birth(1, TTM_REGION_DRAM, id, 999);
    give_birth(0, TTM_REGION_L1, 2500, 777); /* replaces */
    proc->counters.unknown_frees = 9;

    const struct ttm_snapshot_process *p = &snap->processes[0];
    assert_int_equal(p->live_count, 3000);
    assert_int_equal(p->device_count, 1);
    assert_int_equal(p->devices[0].totals.region[TTM_REGION_L1].count, 3000);
    assert_int_equal(p->devices[0].totals.region[TTM_REGION_L1].bytes, 30000);
    assert_int_equal(p->site_count, 1);
    assert_int_equal(p->site_counts[0].births, 3000);
    assert_int_equal(p->site_counts[0].ends, 0);
    assert_int_equal(p->counters.unknown_frees, 4);
    assert_int_equal(sum_lives(snap, &count), 30000);
    assert_int_equal(count, 3000);
    ttm_snapshot_free(snap);
    assert_int_equal(ttm_registry_check(reg), 0);
}

static void a_snapshot_outlives_the_process(void **state)
{
    struct ttm_departure departure;
    uint64_t count;
    (void)state;

    for (uint64_t id = 0; id < 3000; id++)
        give_birth(0, TTM_REGION_L1, id, 10);
    struct ttm_snapshot *snap = ttm_snapshot_take(reg, 1);
    ttm_registry_end_process(reg, proc, &departure);
    while (ttm_registry_reclaim(reg))
        ;
    assert_int_equal(snap->processes[0].process->info.pid, 100);
    assert_int_equal(ttm_site_table_get(&snap->processes[0].process->sites, 0)->region,
                     TTM_REGION_L1);
    assert_int_equal(sum_lives(snap, &count), 30000);
    assert_int_equal(count, 3000);
    ttm_snapshot_free(snap);
    assert_int_equal(faults_pages_out(), 0);
}

static void two_snapshots_each_show_their_own_moment(void **state)
{
    uint64_t count;
    (void)state;

    give_birth(0, TTM_REGION_L1, 1, 10);
    struct ttm_snapshot *first = ttm_snapshot_take(reg, 1);
    give_birth(0, TTM_REGION_L1, 2, 100);
    struct ttm_snapshot *second = ttm_snapshot_take(reg, 2);
    end(0, 1);
    assert_int_equal(sum_lives(first, &count), 10);
    assert_int_equal(sum_lives(second, &count), 110);
    ttm_snapshot_free(first);
    ttm_snapshot_free(second);
    assert_int_equal(reg->lives, 1);
}

static void the_check_looks_at_every_life_in_steps(void **state)
{
    struct ttm_snapshot_check check;
    int steps = 0;
    (void)state;

    for (uint64_t id = 0; id < 1000; id++)
        give_birth((uint16_t)(id % 5), (uint8_t)(id % TTM_REGION_COUNT), id, id + 1);
    assert_int_equal(ttm_snapshot_check_init(&check, reg, ttm_snapshot_take(reg, 1)), 0);
    give_birth(7, TTM_REGION_L1, 5000, 5); /* what comes later is no mismatch */
    while (ttm_snapshot_check_step(&check, 100) == 0)
        steps++;
    assert_in_range(steps, 9, 10);
    assert_int_equal(check.lives, 1000);
    assert_int_equal(check.mismatches, 0);
    ttm_snapshot_check_done(&check);
}

static void the_check_survives_the_end_of_the_process_between_its_steps(void **state)
{
    struct ttm_snapshot_check check;
    struct ttm_departure departure;
    (void)state;

    for (uint64_t id = 0; id < 500; id++)
        give_birth(0, TTM_REGION_L1, id, 10);
    assert_int_equal(ttm_snapshot_check_init(&check, reg, ttm_snapshot_take(reg, 1)), 0);
    assert_int_equal(ttm_snapshot_check_step(&check, 100), 0);
    ttm_registry_end_process(reg, proc, &departure);
    while (ttm_registry_reclaim(reg))
        ;
    while (ttm_snapshot_check_step(&check, 100) == 0)
        ;
    assert_int_equal(check.lives, 500);
    assert_int_equal(check.mismatches, 0);
    ttm_snapshot_check_done(&check);
}

static void the_check_finds_a_planted_mismatch_in_every_total(void **state)
{
    (void)state;
    give_birth(0, TTM_REGION_L1, 1, 10);
    give_birth(0, TTM_REGION_KERNEL, 1, 10);
    give_birth(1, TTM_REGION_DRAM, 1, 10);
    struct ttm_device_totals *own = &proc->devices[0].totals;
    struct ttm_device_totals *all = &reg->devices[0]->totals;
    uint64_t *const totals[] = {
        &own->region[TTM_REGION_L1].count,
        &own->region[TTM_REGION_L1].bytes,
        &own->region[TTM_REGION_L1].footprint_bytes,
        &own->region[TTM_REGION_TRACE].count, /* where there should be nothing */
        &own->kernel_bytes[TTM_KERNEL_APPLICATION],
        &own->kernel_bytes[TTM_KERNEL_DISPATCH],
        &all->region[TTM_REGION_L1].count,
        &all->region[TTM_REGION_L1].bytes,
        &all->region[TTM_REGION_L1].footprint_bytes,
        &all->kernel_bytes[TTM_KERNEL_APPLICATION],
        &reg->devices[1]->totals.region[TTM_REGION_DRAM].bytes,
        &proc->sites.counts[0].live,
        &proc->sites.counts[1].bytes,
        &proc->sites.counts[2].footprint_bytes,
        &proc->sites.counts[0].first_ns, /* behind the only birth */
    };

    assert_int_equal(ttm_registry_check(reg), 0);
    for (size_t i = 0; i < COUNT_OF(totals); i++) {
        (*totals[i])++;
        if (ttm_registry_check(reg) <= 0)
            fail_msg("number %zu was not found", i);
        (*totals[i])--;
        assert_int_equal(ttm_registry_check(reg), 0);
    }
}

static void the_check_finds_a_life_that_no_total_has(void **state)
{
    const struct ttm_life stray = {.id = 9, .bytes = 1, .site = 0};
    (void)state;

    give_birth(0, TTM_REGION_L1, 1, 10);
    assert_int_equal(ttm_life_table_add(&proc->lives, 12345, &stray), 0);
    assert_true(ttm_registry_check(reg) > 0);
}

static void short_memory_takes_no_snapshot_and_leaves_nothing_behind(void **state)
{
    unsigned grants = 0;
    (void)state;

    for (uint64_t id = 0; id < 3000; id++)
        give_birth(0, TTM_REGION_L1, id, 10);
    while (true) {
        faults_begin(grants);
        struct ttm_snapshot *snap = ttm_snapshot_take(reg, 1);
        if (!faults_end()) {
            assert_non_null(snap);
            ttm_snapshot_free(snap);
            break;
        }
        assert_null(snap);
        assert_int_equal(proc->refs, 1);
        grants++;
    }
    assert_true(grants >= 5);
    faults_begin(0);
    assert_int_equal(ttm_registry_check(reg), -ENOMEM);
    assert_true(faults_end());
    assert_int_equal(ttm_registry_check(reg), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_empty_registry_has_an_empty_snapshot),
        TEST(a_snapshot_shows_the_old_state_while_changes_go_on),
        TEST(a_snapshot_outlives_the_process),
        TEST(two_snapshots_each_show_their_own_moment),
        TEST(the_check_looks_at_every_life_in_steps),
        TEST(the_check_survives_the_end_of_the_process_between_its_steps),
        TEST(the_check_finds_a_planted_mismatch_in_every_total),
        TEST(the_check_finds_a_life_that_no_total_has),
        TEST(short_memory_takes_no_snapshot_and_leaves_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
