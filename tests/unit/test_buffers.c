/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/buffers.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "hook/caller.h"
#include "hook/hot.h"
#include "hook/lanes.h"
#include "hook/own.h"
#include "testing.h"

/* The functions that stand in for those of the runtime. */
uint64_t _ZN2tt8tt_metal13AllocatorImpl15allocate_bufferEPNS0_6BufferE(void *self, void *buffer);
uint64_t _ZN2tt8tt_metal13AllocatorImpl17deallocate_bufferEPNS0_6BufferE(void *self, void *buffer);

#define ALLOCATE _ZN2tt8tt_metal13AllocatorImpl15allocate_bufferEPNS0_6BufferE
#define DEALLOCATE _ZN2tt8tt_metal13AllocatorImpl17deallocate_bufferEPNS0_6BufferE

static uint64_t allocator, buffer;
static bool was_inside, is_inside, has_newborn;

static uint32_t depth(void)
{
    return ttm_own.gate.line ? atomic_load(ttm_own.gate.line) : 0;
}

/* A function of the runtime that does not return. What unwinds is no exception, but does the same. */
static uint64_t leave_thread(void *self, void *argument)
{
    (void)self, (void)argument;
    was_inside = depth() == 1;
    pthread_exit(NULL);
}

static void look(void *unused)
{
    (void)unused;
    is_inside = depth() != 0;
    has_newborn = ttm_own.newborn != NULL;
}

static void *allocate(void *unused)
{
    pthread_cleanup_push(look, NULL);
    (void)ALLOCATE(&allocator, &buffer);
    pthread_cleanup_pop(1);
    return unused;
}

static void *deallocate(void *unused)
{
    pthread_cleanup_push(look, NULL);
    (void)DEALLOCATE(&allocator, &buffer);
    pthread_cleanup_pop(1);
    return unused;
}

/* A runtime whose functions are called by this file. */
static int set_up(void **state)
{
    static const struct ttm_metal metal;
    const uintptr_t here = (uintptr_t)&allocate;
    (void)state;

    ttm_runtimes[0].metal = &metal;
    for (enum ttm_hook_point point = 0; point < TTM_HOT_POINTS; point++) {
        *(ttm_method *)&ttm_runtimes[0].originals[point] = leave_thread;
        ttm_hot.caller_starts[point] = here - (1u << 20);
        atomic_store(&ttm_hot.caller_lengths[point], 2u << 20);
    }
    was_inside = is_inside = has_newborn = false;
    return 0;
}

static void run(void *(*function)(void *))
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, function, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void an_allocation_that_does_not_return_leaves_the_gate(void **state)
{
    (void)state;
    run(allocate);
    assert_true(was_inside);
    assert_false(is_inside);
    assert_false(has_newborn);
}

static void a_release_that_does_not_return_leaves_the_gate(void **state)
{
    (void)state;
    run(deallocate);
    assert_true(was_inside);
    assert_false(is_inside);
}

static void lanes_are_entered_from_outside_of_the_gate_alone(void **state)
{
    _Atomic uint32_t line = 1;
    (void)state;

    ttm_own.gate.line = &line;
    ttm_own.last.impl = &allocator;
    ttm_own.last.state = TTM_GATE_TRACKING;
    atomic_store(&ttm_hot.state, TTM_GATE_TRACKING);
    assert_false(ttm_lanes_enter(&allocator)); /* a handler, or one event within another */
    assert_int_equal(line, 1);
    line = 0;
    assert_false(ttm_lanes_enter(&buffer)); /* another allocator */
    atomic_store(&ttm_hot.state, TTM_GATE_TRACKING | TTM_GATE_CLOSED);
    assert_false(ttm_lanes_enter(&allocator));
    atomic_store(&ttm_hot.state, TTM_GATE_TRACKING + TTM_ALLOCATORS_END);
    assert_false(ttm_lanes_enter(&allocator)); /* one has ended: it may be another by now */
    assert_int_equal(line, 0);
    atomic_store(&ttm_hot.state, TTM_GATE_TRACKING);
    assert_true(ttm_lanes_enter(&allocator));
    assert_int_equal(line, 1);

    /* What is announced one event within another, or without a line, is not told in a lane. */
    ttm_own.newborn = &buffer;
    ttm_own.slot = (struct ttm_slot *)&buffer; /* is not looked at */
    line = 2;
    assert_false(ttm_lanes_announced(&buffer));
    assert_int_equal(line, 2);
    ttm_own.gate.line = NULL;
    assert_false(ttm_lanes_announced(&buffer));
    assert_false(ttm_lanes_enter(&allocator));
    ttm_own = (struct ttm_own){0};
    atomic_store(&ttm_hot.state, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_allocation_that_does_not_return_leaves_the_gate, set_up),
        cmocka_unit_test(lanes_are_entered_from_outside_of_the_gate_alone),
        cmocka_unit_test_setup(a_release_that_does_not_return_leaves_the_gate, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
