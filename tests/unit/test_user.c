/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "model/brief.h"
#include "model/registry.h"
#include "model/snapshot.h"

#define UID 1000

static struct ttm_registry *reg;
static struct ttm_process *one, *two; /* of the same user */
static struct ttm_user *user;

static struct ttm_process *new_process(uint32_t uid)
{
    const struct ttm_process_info info = {.pid = 1, .uid = uid};
    struct ttm_process *made = NULL;

    assert_int_equal(ttm_registry_add_process(reg, &info, &made), 0);
    made->has_serials = true;
    return made;
}

static void end_process(struct ttm_process *proc)
{
    struct ttm_departure departure;

    ttm_registry_end_process(reg, proc, &departure);
}

static int set_up(void **state)
{
    (void)state;
    reg = ttm_registry_new(0x5eed5eed5eed5eedull);
    assert_non_null(reg);
    one = new_process(UID);
    two = new_process(UID);
    user = one->user;
    assert_ptr_equal(two->user, user);
    return 0;
}

static int tear_down(void **state)
{
    const int64_t mismatches = ttm_registry_check(reg);
    (void)state;

    ttm_registry_free(reg);
    return mismatches == 0 && faults_pages_out() == 0 ? 0 : -1;
}

static struct ttm_birth birth_of(uint64_t serial, uint32_t origin)
{
    return (struct ttm_birth){
        .serial = serial,
        .id = serial,
        .bytes = 64,
        .footprint_bytes = 64,
        .site = {.region = TTM_REGION_L1, .origin = origin},
    };
}

static int allocate(struct ttm_process *proc, uint64_t serial, uint32_t origin)
{
    const struct ttm_birth birth = birth_of(serial, origin);

    return ttm_registry_birth(reg, proc, &birth, NULL);
}

static void release(struct ttm_process *proc, uint64_t serial)
{
    struct ttm_ended ended;

    assert_int_equal(ttm_registry_end_serial(reg, proc, serial, TTM_END_FREED, &ended), 0);
}

static void a_user_is_there_once_and_goes_with_its_last_process(void **state)
{
    (void)state;
    struct ttm_process *other = new_process(UID + 1);
    assert_ptr_not_equal(other->user, user);
    assert_int_equal(user->refs, 2);
    assert_int_equal(other->user->refs, 1);
    end_process(one);
    assert_int_equal(user->refs, 1);
    end_process(two);
    struct ttm_process *again = new_process(UID);
    assert_int_equal(again->user->refs, 1);
    assert_int_equal(again->user->uid, UID);
    for (uint32_t uid = 0; uid < 1000; uid++)
        assert_int_equal(new_process(5000 + uid)->user->uid, 5000 + uid);
}

static void limits_are_for_users_but_root_and_the_owner_of_the_registry(void **state)
{
    (void)state;
    assert_false(user->is_privileged);
    assert_int_equal(user->allocations.max, 4194304);
    assert_int_equal(user->sites.max, 65536);
    assert_int_equal(user->origin_bytes.max, 64 << 20);
    assert_int_equal(user->devices.max, 2048);
    assert_int_equal(user->device_sets.max, 1024);
    assert_int_equal(user->cbs.max, 65536);
    assert_int_equal(user->core_sets.max, 16384);
    assert_true(new_process(0)->user->is_privileged);
    assert_false(new_process(77)->user->is_privileged);
    ttm_registry_set_owner(reg, 78);
    const struct ttm_user *owner = new_process(78)->user;
    assert_true(owner->is_privileged);
    const struct ttm_quota *quotas[] = {
        &owner->allocations, &owner->sites,        &owner->device_sets, &owner->cbs,
        &owner->core_sets,   &owner->origin_bytes, &owner->devices,
    };
    for (size_t i = 0; i < COUNT_OF(quotas); i++)
        assert_true(quotas[i]->max == TTM_QUOTA_NONE);
    assert_false(new_process(TTM_USER_NONE)->user->is_privileged);
}

static void live_allocations_of_all_processes_of_a_user_have_a_limit(void **state)
{
    (void)state;
    user->allocations.max = 3;
    assert_int_equal(allocate(one, 1, 0), 0);
    assert_int_equal(allocate(one, 2, 0), 0);
    assert_int_equal(allocate(two, 1, 0), 0);
    assert_int_equal(allocate(two, 2, 0), -ENOSPC);
    assert_int_equal(allocate(one, 3, 0), -ENOSPC);
    assert_int_equal(allocate(new_process(UID + 1), 1, 0), 0); /* another user */
    release(one, 1);
    assert_int_equal(allocate(two, 2, 0), 0);
    assert_int_equal(user->allocations.used, 3);
    ttm_registry_forget_lives(reg, two);
    assert_int_equal(user->allocations.used, 1);
    assert_int_equal(allocate(one, 3, 0), 0);
    assert_int_equal(allocate(two, 4, 0), 0);
    end_process(one);
    assert_int_equal(user->allocations.used, 1);
    assert_int_equal(ttm_registry_check(reg), 0);
    user->allocations.used++;
    assert_int_equal(ttm_registry_check(reg), 1);
    user->allocations.used--;
}

static void a_replaced_allocation_is_counted_once(void **state)
{
    (void)state;
    two->has_serials = false;
    user->allocations.max = 2;
    assert_int_equal(allocate(two, 5, 0), 0);
    assert_int_equal(allocate(two, 5, 0), 1);
    assert_int_equal(user->allocations.used, 1);
    assert_int_equal(allocate(two, 6, 0), 0);
    assert_int_equal(allocate(two, 7, 0), -ENOSPC);
}

static void many_allocations_at_once_stop_at_the_limit(void **state)
{
    struct ttm_life lives[10] = {{0}};
    (void)state;

    assert_int_equal(allocate(one, 1, 0), 0);
    for (uint64_t i = 0; i < 10; i++)
        lives[i] = (struct ttm_life){
            .serial = 10 + i, .bytes = 1, .footprint_bytes = 1, .site = one->sites.last};
    user->allocations.max = 5;
    assert_true(ttm_brief_has_room(reg, one, 4));
    assert_false(ttm_brief_has_room(reg, one, 5));
    assert_int_equal(ttm_registry_births(reg, one, lives, 10), 4);
    assert_int_equal(user->allocations.used, 5);
    assert_int_equal(ttm_registry_births(reg, one, lives + 4, 6), 0);
    user->allocations.max = TTM_QUOTA_NONE;
    assert_int_equal(ttm_registry_births(reg, one, lives + 4, 6), 6);
    assert_int_equal(user->allocations.used, 11);
}

static void sites_of_all_processes_of_a_user_have_a_limit(void **state)
{
    (void)state;
    user->sites.max = 3;
    assert_int_equal(allocate(one, 1, 1), 0);
    assert_int_equal(allocate(one, 2, 2), 0);
    assert_int_equal(allocate(two, 1, 1), 0);
    assert_int_equal(allocate(two, 2, 2), -ENOSPC);
    assert_int_equal(user->allocations.used, 3);
    assert_int_equal(ttm_registry_set_origin(reg, one, 1, 9), -ENOSPC);
    assert_int_equal(allocate(two, 2, 1), 0); /* a site that is there */
    end_process(one);
    assert_int_equal(user->sites.used, 1);
    assert_int_equal(allocate(two, 3, 2), 0);
}

static int add_origin(struct ttm_process *proc, uint32_t number)
{
    const struct ttm_origin origin = {.number = number, .text = {"", "", "", "", "a.py:1:f\n", ""}};

    return ttm_origin_table_add(&proc->origins, &origin);
}

static void bytes_of_origins_of_all_processes_of_a_user_have_a_limit(void **state)
{
    (void)state;
    assert_int_equal(add_origin(one, 1), 0);
    const uint64_t bytes = user->origin_bytes.used;
    assert_true(bytes > 10);
    user->origin_bytes.max = 3 * bytes - 1;
    assert_int_equal(add_origin(two, 1), 0);
    assert_int_equal(add_origin(two, 2), -ENOSPC);
    assert_null(ttm_origin_table_find(&two->origins, 2));
    end_process(one);
    assert_int_equal(user->origin_bytes.used, bytes);
    assert_int_equal(add_origin(two, 2), 0);
}

static void devices_of_all_processes_of_a_user_have_a_limit(void **state)
{
    (void)state;
    user->devices.max = 3;
    assert_int_equal(ttm_registry_know_device(reg, one, 4), 0);
    assert_int_equal(ttm_registry_know_device(reg, one, 5), 0);
    assert_int_equal(ttm_registry_know_device(reg, two, 4), 0);
    assert_int_equal(ttm_registry_know_device(reg, two, 4), 0); /* known */
    assert_int_equal(ttm_registry_know_device(reg, two, 6), -ENOSPC);
    assert_null(reg->devices[6]);
    assert_int_equal(allocate(two, 1, 0), -ENOSPC); /* on device 0 */
    end_process(one);
    assert_int_equal(user->devices.used, 1);
    assert_int_equal(allocate(two, 1, 0), 0);
}

static int hold(struct ttm_process *proc, uint16_t a, uint16_t b, uint32_t *ret)
{
    return ttm_registry_hold_set(reg, proc, (uint16_t[]){a, b}, 2, ret);
}

static void device_sets_of_all_processes_of_a_user_have_a_limit(void **state)
{
    uint32_t number, again;
    (void)state;

    user->device_sets.max = 3;
    assert_int_equal(hold(one, 0, 1, &number), 0);
    assert_int_equal(hold(one, 1, 0, &again), 0); /* the same one */
    assert_int_equal(again, number);
    assert_int_equal(hold(one, 6, 6, &again), 0); /* one device */
    assert_int_equal(again, 6);
    assert_int_equal(user->device_sets.used, 1);
    assert_int_equal(hold(two, 0, 1, &again), 0); /* the same one, of another process */
    assert_int_equal(again, number);
    assert_int_equal(hold(two, 0, 2, &again), 0);
    assert_int_equal(hold(two, 0, 3, &again), -ENOSPC);
    assert_int_equal(hold(two, 0, 2, &again), 0);
    assert_int_equal(reg->sets.count, 2);
    assert_int_equal(hold(new_process(UID + 1), 0, 3, &again), 0);
    end_process(one);
    assert_int_equal(user->device_sets.used, 2);
    assert_int_equal(ttm_device_sets_get(&reg->sets, number).count, 2);
    end_process(two);
    assert_int_equal(ttm_device_sets_get(&reg->sets, number).count, 0);
    assert_int_equal(reg->sets.count, 1);
}

static void a_process_has_a_limit_on_sets_and_releases_all_of_them(void **state)
{
    uint32_t number;
    (void)state;

    for (uint16_t i = 1; i <= TTM_PROCESS_SETS_MAX; i++)
        assert_int_equal(hold(one, 0, i, &number), 0);
    assert_int_equal(hold(one, 1, 2, &number), -ENOSPC);
    assert_int_equal(hold(one, 0, 1, &number), 0);
    assert_int_equal(reg->sets.count, TTM_PROCESS_SETS_MAX);
    end_process(one);
    assert_int_equal(reg->sets.count, 0);
}

static void a_snapshot_keeps_the_sets_of_a_process_that_has_ended(void **state)
{
    struct ttm_birth birth = birth_of(1, 0);
    (void)state;

    assert_int_equal(hold(one, 3, 4, &birth.site.device_set), 0);
    assert_int_equal(ttm_registry_birth(reg, one, &birth, NULL), 0);
    struct ttm_snapshot *snap = ttm_snapshot_take(reg, 0);
    assert_non_null(snap);
    end_process(one);
    end_process(two);
    assert_int_equal(ttm_device_sets_get(&reg->sets, birth.site.device_set).count, 2);
    ttm_snapshot_free(snap);
    assert_int_equal(ttm_device_sets_get(&reg->sets, birth.site.device_set).count, 0);
}

static int add_cb(struct ttm_process *proc, uint64_t serial)
{
    const struct ttm_cb cb = {.serial = serial, .core_bytes = 4};

    return ttm_cb_map_add(&proc->cbs, &cb);
}

static void circular_buffers_and_core_sets_of_all_processes_of_a_user_have_limits(void **state)
{
    const struct ttm_core_range range = {0, 0, 1, 1};
    (void)state;

    user->core_sets.max = 2;
    assert_int_equal(ttm_cb_map_add_cores(&one->cbs, 1, &range, 1), 0);
    assert_int_equal(ttm_cb_map_add_cores(&two->cbs, 1, &range, 1), 0);
    assert_int_equal(ttm_cb_map_add_cores(&two->cbs, 2, &range, 1), -ENOSPC);
    user->cbs.max = 3;
    assert_int_equal(add_cb(one, 1), 0);
    assert_int_equal(add_cb(one, 2), 0);
    assert_int_equal(add_cb(two, 1), 0);
    assert_int_equal(add_cb(two, 2), -ENOSPC);
    ttm_cb_map_remove(&one->cbs, 1);
    assert_int_equal(add_cb(two, 2), 0);
    ttm_cb_map_clear(&two->cbs);
    assert_int_equal(user->cbs.used, 1);
    end_process(one);
    assert_int_equal(user->cbs.used, 0);
    assert_int_equal(user->core_sets.used, 1);
    assert_int_equal(ttm_cb_map_add_cores(&two->cbs, 2, &range, 1), 1);
}

static void short_memory_refuses_a_process_or_a_set_and_counts_nothing(void **state)
{
    const struct ttm_process_info info = {.pid = 1, .uid = 4321};
    struct ttm_process *made = NULL;
    bool has_failed = true;
    uint32_t number;
    (void)state;

    for (unsigned grants = 0; has_failed; grants++) {
        faults_begin(grants);
        const int r = ttm_registry_add_process(reg, &info, &made);
        has_failed = faults_end();
        assert_int_equal(r, has_failed ? -ENOMEM : 0);
    }
    assert_int_equal(made->user->refs, 1);
    has_failed = true;
    for (unsigned grants = 0; has_failed; grants++) {
        faults_begin(grants);
        const int r = hold(made, 5, 9, &number);
        has_failed = faults_end();
        assert_int_equal(r, has_failed ? -ENOMEM : 0);
        assert_int_equal(made->user->device_sets.used, has_failed ? 0 : 1);
        assert_int_equal(reg->sets.count, has_failed ? 0 : 1);
    }
    has_failed = true;
    for (unsigned grants = 0; has_failed; grants++) {
        faults_begin(grants);
        const int r = ttm_registry_know_device(reg, made, 900);
        has_failed = faults_end();
        assert_int_equal(r, has_failed ? -ENOMEM : 0);
        assert_int_equal(made->user->devices.used, has_failed ? 0 : 1);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_user_is_there_once_and_goes_with_its_last_process),
        TEST(limits_are_for_users_but_root_and_the_owner_of_the_registry),
        TEST(live_allocations_of_all_processes_of_a_user_have_a_limit),
        TEST(a_replaced_allocation_is_counted_once),
        TEST(many_allocations_at_once_stop_at_the_limit),
        TEST(sites_of_all_processes_of_a_user_have_a_limit),
        TEST(bytes_of_origins_of_all_processes_of_a_user_have_a_limit),
        TEST(devices_of_all_processes_of_a_user_have_a_limit),
        TEST(device_sets_of_all_processes_of_a_user_have_a_limit),
        TEST(a_process_has_a_limit_on_sets_and_releases_all_of_them),
        TEST(a_snapshot_keeps_the_sets_of_a_process_that_has_ended),
        TEST(circular_buffers_and_core_sets_of_all_processes_of_a_user_have_limits),
        TEST(short_memory_refuses_a_process_or_a_set_and_counts_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
