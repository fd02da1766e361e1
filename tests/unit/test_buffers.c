/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/buffers.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "hook/caller.h"
#include "hook/hot.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_allocation_that_does_not_return_leaves_the_gate, set_up),
        cmocka_unit_test_setup(a_release_that_does_not_return_leaves_the_gate, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
