/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_rows.h"

#include <stdlib.h>

#include "cli/report_causes.h"
#include "testing.h"

#define COUNT 6

static const struct ttm_frame_words weights_line = {
    .file = "/m/model.py", .function = "load", .line = 55};
static const struct ttm_frame_words leak_line = {
    .file = "/m/model.py", .function = "cache", .line = 66};
static const uint16_t device = 0;
static const struct ttm_report_choice remaining = {.devices.is_all = true, .region = -1};

static struct ttm_report_origin origin_at(const struct ttm_frame_words *line, const char *name,
                                          uint64_t bytes)
{
    return (struct ttm_report_origin){
        .words = {.python = line,
                  .python_count = 1,
                  .operation = "ttnn.zeros",
                  .name = name,
                  .context = "",
                  .thread = ""},
        .devices = &device,
        .device_count = 1,
        .remaining = {.count = 1, .bytes = bytes, .footprint_bytes = bytes},
        .bars = {1},
        .verdict = {.class = TTM_CLASS_STEADY},
    };
}

/* Two of a leak, three weights and something that is gone. */
static void make(struct ttm_report_origin origins[COUNT],
                 const struct ttm_report_origin *order[COUNT])
{
    origins[0] = origin_at(&leak_line, "", 10);
    origins[1] = origin_at(&leak_line, "", 8);
    origins[2] = origin_at(&weights_line, "layer 0", 30);
    origins[3] = origin_at(&weights_line, "layer 1", 20);
    origins[4] = origin_at(&weights_line, "layer 0", 5);
    origins[5] = origin_at(&weights_line, "layer 2", 0);
    origins[5].remaining.count = 0;
    for (int i = 0; i < 2; i++)
        origins[i].verdict = (struct ttm_verdict){.class = TTM_CLASS_GROWING, .is_suspect = true};
    for (int i = 0; i < COUNT; i++)
        order[i] = &origins[i];
}

static void what_differs_in_its_name_alone_is_one_row(void **state)
{
    struct ttm_report_origin origins[COUNT];
    const struct ttm_report_origin *order[COUNT];
    struct ttm_report_row *rows;
    uint32_t count;
    (void)state;

    make(origins, order);
    assert_int_equal(ttm_report_rows(&remaining, order, COUNT, true, &rows, &count), 0);
    assert_int_equal(count, 2);
    assert_ptr_equal(rows[0].origin, &origins[0]); /* smaller, but a suspect */
    assert_int_equal(rows[0].origins, 2);
    assert_int_equal(rows[0].names, 0);
    assert_int_equal(rows[0].held.footprint_bytes, 18);
    assert_ptr_equal(rows[1].origin, &origins[2]);
    assert_int_equal(rows[1].origins, 3);
    assert_int_equal(rows[1].names, 1);
    assert_int_equal(rows[1].held.count, 3);
    assert_int_equal(rows[1].held.footprint_bytes, 55);
    assert_int_equal(rows[1].bars[0], 3);
    free(rows);
}

static void another_region_class_context_or_line_is_another_row(void **state)
{
    struct ttm_report_origin origins[COUNT];
    const struct ttm_report_origin *order[COUNT];
    struct ttm_report_row *rows;
    uint32_t count;
    (void)state;

    make(origins, order);
    origins[1].region = 1;
    origins[3].verdict.class = TTM_CLASS_UNSURE;
    origins[4].words.context = "decode";
    assert_int_equal(ttm_report_rows(&remaining, order, COUNT, true, &rows, &count), 0);
    assert_int_equal(count, 5);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(rows[i].origins, 1);
    free(rows);
}

static void a_recursion_is_one_row_however_deep_but_not_other_lines(void **state)
{
    const struct ttm_frame_words frames[] = {leak_line, weights_line, weights_line, weights_line,
                                             leak_line, weights_line, leak_line};
    struct ttm_report_origin origins[COUNT];
    const struct ttm_report_origin *order[COUNT];
    struct ttm_report_row *rows;
    uint32_t count;
    (void)state;

    make(origins, order);
    for (uint32_t i = 0; i < 5; i++)
        origins[i] = origin_at(frames, "", 10);
    origins[0].words.python_count = 2; /* leak, weights: once, twice and three times */
    origins[1].words.python_count = 3;
    origins[1].words.native_count = 5;
    origins[2].words.python_count = 4;
    origins[3].words.python_count = 5; /* and who called that */
    origins[4].words.python = frames + 4;
    origins[4].words.python_count = 3;
    assert_int_equal(ttm_report_rows(&remaining, order, COUNT, true, &rows, &count), 0);
    assert_int_equal(count, 2);
    assert_int_equal(rows[0].origins, 3);
    assert_int_equal(rows[1].origins, 2);
    free(rows);
}

static void rows_that_grew_by_folding_move_up(void **state)
{
    struct ttm_report_origin origins[COUNT];
    const struct ttm_report_origin *order[COUNT];
    struct ttm_report_row *rows;
    uint32_t count;
    (void)state;

    make(origins, order);
    origins[0] = origin_at(&leak_line, "", 40); /* no suspect, and the largest by itself */
    origins[1] = origin_at(&weights_line, "layer 3", 35);
    assert_int_equal(ttm_report_rows(&remaining, order, COUNT, true, &rows, &count), 0);
    assert_int_equal(count, 2);
    assert_ptr_equal(rows[0].origin, &origins[1]);
    assert_int_equal(rows[0].held.footprint_bytes, 90);
    free(rows);
}

static void unfolded_each_that_remains_has_a_row(void **state)
{
    struct ttm_report_origin origins[COUNT];
    const struct ttm_report_origin *order[COUNT];
    struct ttm_report_row *rows;
    uint32_t count;
    (void)state;

    make(origins, order);
    assert_int_equal(ttm_report_rows(&remaining, order, COUNT, false, &rows, &count), 0);
    assert_int_equal(count, COUNT - 1);
    for (uint32_t i = 0; i < count; i++)
        assert_ptr_equal(rows[i].origin, &origins[i]);
    free(rows);
}

static void rows_of_one_cause_stand_together_where_all_of_them_would(void **state)
{
    static const struct ttm_frame_words at[COUNT] = {{"m.py", "a", 1}, {"m.py", "b", 2},
                                                     {"m.py", "c", 3}, {"m.py", "d", 4},
                                                     {"m.py", "e", 5}, {"m.py", "f", 6}};
    static const uint64_t bytes[COUNT] = {90, 50, 40, 30, 20, 10};
    uint32_t of_origin[COUNT] = {0, 0, 1, 1, 2, 1};
    struct ttm_root_cause list[] = {{.held.footprint_bytes = 40 + 30},
                                    {.held.footprint_bytes = 20}};
    const struct ttm_root_causes causes = {.list = list, .count = 2, .of_origin = of_origin};
    struct ttm_report_origin origins[COUNT];
    const struct ttm_report_process process = {.origins = origins, .origin_count = COUNT};
    struct ttm_report_row *rows;
    uint32_t count;
    (void)state;

    for (int i = 0; i < COUNT; i++) {
        origins[i] = origin_at(&at[i], "", bytes[i]);
        origins[i].verdict.is_suspect = i < 5; /* the last has the cause, but does not grow */
    }
    assert_int_equal(ttm_report_rows_of(&remaining, &process, &rows, &count), 0);
    assert_int_equal(count, COUNT);
    ttm_report_causes_order(&process, &causes, rows, count);
    static const uint32_t expected[COUNT] = {0, 2, 3, 1, 4, 5};
    static const uint32_t numbers[COUNT] = {0, 1, 1, 0, 0, 1}; /* one alone needs no heading */
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(rows[i].origin - origins, expected[i]);
        assert_int_equal(rows[i].cause, numbers[i]);
    }
    free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_differs_in_its_name_alone_is_one_row),
        cmocka_unit_test(another_region_class_context_or_line_is_another_row),
        cmocka_unit_test(a_recursion_is_one_row_however_deep_but_not_other_lines),
        cmocka_unit_test(rows_that_grew_by_folding_move_up),
        cmocka_unit_test(unfolded_each_that_remains_has_a_row),
        cmocka_unit_test(rows_of_one_cause_stand_together_where_all_of_them_would),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
