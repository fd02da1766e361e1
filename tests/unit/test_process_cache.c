/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include "base/clock.h"
#include "cli/process_cache.h"

#define PROCESSES 30
#define FIRST_PID 100
#define LOOK_NS (500 * TTM_NS_PER_MS)

static struct ttm_process_cache cache;

static int set_up(void **state)
{
    cache = (struct ttm_process_cache){0};
    return tree_set_up(state);
}

static int tear_down(void **state)
{
    ttm_process_cache_done(&cache);
    return tree_tear_down(state);
}

/* A process of that number, which started then. */
static void make_process(int32_t pid, const char *command, unsigned start)
{
    char path[64], stat[128];

    (void)snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
    tree_text(path, command);
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    (void)snprintf(stat, sizeof(stat), "%d (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %u 0\n", pid,
                   start);
    tree_text(path, stat);
}

static void make_processes(const char *command, unsigned start)
{
    for (int32_t i = 0; i < PROCESSES; i++)
        make_process(FIRST_PID + i, command, start);
}

/* Returns how many have that command. */
static unsigned look_at_all(uint64_t now_ns, const char *command)
{
    struct ttm_process process;
    unsigned count = 0;

    ttm_process_cache_turn(&cache, now_ns);
    for (int32_t i = 0; i < PROCESSES; i++) {
        assert_int_equal(ttm_process_cache_read(&cache, root, FIRST_PID + i, &process), 0);
        assert_int_equal(process.pid, FIRST_PID + i);
        count += strcmp(process.command, command) == 0;
    }
    return count;
}

static void within_five_seconds_all_are_looked_at_and_never_all_at_once(void **state)
{
    uint64_t now_ns = TTM_NS_PER_S;
    unsigned changed = 0;
    (void)state;

    make_processes("old", 1);
    assert_int_equal(look_at_all(now_ns, "old"), PROCESSES);
    /* Twice: they keep apart once each of them was looked at. */
    for (unsigned round = 0; round < 2; round++) {
        make_processes(round ? "newest" : "new", 2 + round);
        changed = 0;
        for (unsigned i = 0; i < 10; i++) {
            now_ns += LOOK_NS + i % 2; /* a look may be late */
            const unsigned now = look_at_all(now_ns, round ? "newest" : "new");
            assert_in_range(now - changed, 1, 6);
            changed = now;
        }
        assert_int_equal(changed, PROCESSES);
    }
}

static void a_process_that_is_the_same_is_not_read_anew(void **state)
{
    (void)state;

    make_processes("old", 1);
    assert_int_equal(look_at_all(TTM_NS_PER_S, "old"), PROCESSES);
    make_processes("what it calls itself now", 1); /* it started when it did before */
    assert_int_equal(look_at_all(60 * TTM_NS_PER_S, "old"), PROCESSES);
}

static void who_has_ended_or_is_not_asked_for_is_forgotten(void **state)
{
    struct ttm_process process;
    (void)state;

    make_processes("old", 1);
    assert_int_equal(look_at_all(TTM_NS_PER_S, "old"), PROCESSES);
    tree_remove("/proc/100");
    ttm_process_cache_turn(&cache, 60 * TTM_NS_PER_S);
    assert_int_equal(ttm_process_cache_read(&cache, root, 100, &process), -ESRCH);
    assert_int_equal(ttm_process_cache_read(&cache, root, 129, &process), 0);
    assert_int_equal(ttm_process_cache_read(&cache, root, 101, &process), 0); /* in any order */
    assert_int_equal(process.pid, 101);
    ttm_process_cache_turn(&cache, 61 * TTM_NS_PER_S);
    assert_int_equal(cache.count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(within_five_seconds_all_are_looked_at_and_never_all_at_once,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_process_that_is_the_same_is_not_read_anew, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_has_ended_or_is_not_asked_for_is_forgotten, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
