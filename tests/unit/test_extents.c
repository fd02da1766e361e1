/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <stdlib.h>

#include "analysis/extents.h"

static void what_touches_does_not_overlap(void **state)
{
    struct ttm_extents extents;
    struct ttm_extent other;
    (void)state;

    ttm_extents_init(&extents);
    assert_int_equal(ttm_extents_add(&extents, 100, 200, &other), 0);
    assert_int_equal(ttm_extents_add(&extents, 200, 300, &other), 0);
    assert_int_equal(ttm_extents_add(&extents, 50, 100, &other), 0);
    assert_int_equal(ttm_extents_add(&extents, 199, 200, &other), 1);
    assert_int_equal(other.start, 100);
    assert_int_equal(ttm_extents_add(&extents, 0, 51, &other), 1);
    assert_int_equal(other.start, 50);
    assert_false(ttm_extents_remove(&extents, 100, 199));
    assert_true(ttm_extents_remove(&extents, 100, 200));
    assert_int_equal(ttm_extents_add(&extents, 120, 130, &other), 0);
    ttm_extents_done(&extents);
}

#define UNITS 512

/* Thousands of changes on a small memory, against a map of who has each unit. */
static void random_changes_agree_with_a_map_of_every_unit(void **state)
{
    static uint16_t owner[UNITS];
    static struct ttm_extent lives[UNITS + 1];
    struct ttm_extents extents;
    struct ttm_extent other;
    uint64_t random = 88172645463325252ull;
    uint32_t overlaps = 0;
    (void)state;

    ttm_extents_init(&extents);
    for (unsigned step = 0; step < 60000; step++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        const uint32_t at = (uint32_t)(random >> 33) % UNITS;
        if (owner[at] != 0 && (random >> 20) % 3 == 0) {
            const struct ttm_extent gone = lives[owner[at]];
            assert_true(ttm_extents_remove(&extents, gone.start, gone.end));
            for (uint64_t i = gone.start; i < gone.end; i++)
                owner[i] = 0;
            continue;
        }
        const uint32_t length = 1 + (uint32_t)(random >> 50) % 3;
        const uint32_t end = at + length < UNITS ? at + length : UNITS;
        uint16_t taken = 0;
        for (uint32_t i = at; i < end && taken == 0; i++)
            taken = owner[i];
        const int r = ttm_extents_add(&extents, at, end, &other);
        assert_int_equal(r, taken != 0);
        overlaps += taken != 0;
        for (uint32_t i = at; taken == 0 && i < end; i++)
            owner[i] = (uint16_t)(at + 1);
        if (taken == 0)
            lives[at + 1] = (struct ttm_extent){at, end};
    }
    assert_true(overlaps > 1000);
    assert_true(extents.count > 2);
    ttm_extents_done(&extents);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_touches_does_not_overlap),
        cmocka_unit_test(random_changes_agree_with_a_map_of_every_unit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
