/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "cli/failure_text.h"
#include "own_place.h"

static const struct ttm_terminal plain = {.has_utf8 = true, .columns = 80, .rows = 24};
static const struct ttm_terminal broad = {.has_utf8 = true, .columns = 120, .rows = 40};
static const struct ttm_terminal ascii = {.columns = 80, .rows = 24};

static struct ttm_failure_row failure;
static struct ttm_failure_view view;
static struct ttm_text text;

static const struct ttm_origin_brief nowhere = {"", "", "", ""};
static const struct ttm_origin_brief worker = {"decode.py:44:worker\ndecode.py:9:main",
                                               "ttnn.zeros", "", ""};
static const struct ttm_origin_brief attention = {"model.py:210:attention", "ttnn.add", "kv",
                                                  "layer_0"};

static int set_up(void **state)
{
    (void)state;
    failure = (struct ttm_failure_row){
        .wanted_bytes = 32 << 20,
        .bank_wanted_bytes = 512 << 10,
        .bank_free_bytes = 640 << 10,
        .bank_largest_bytes = 320 << 10,
        .region = TTM_REGION_L1,
    };
    view = (struct ttm_failure_view){
        .failure = &failure,
        .where = {.words = {"decode.py:61:main", "ttnn.matmul", "", ""}},
        .bank_count = 64,
        .bank_bytes = 1392640,
        .holders = {.largest = {{1, 80, 40 << 20, 40 << 20}, {2, 1, 16 << 20, 16 << 20}},
                    .count = 2,
                    .origins = 2,
                    .all = {0, 81, 56 << 20, 56 << 20}},
        .holder_places = {{.words = worker}, {.words = attention}},
        .map = {.start = 0x19000, .end = 0x16d000, .cell_count = 4, .cells = {2, 0, 2, 2}},
    };
    ttm_text_init(&text);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_text_done(&text);
    return 0;
}

static const char *text_on(const struct ttm_terminal *terminal)
{
    ttm_text_clear(&text);
    ttm_failure_text(&view, terminal, &text);
    assert_false(ttm_text_failed(&text));
    return ttm_text_string(&text);
}

static void it_says_what_failed_how_much_is_free_and_who_holds_it(void **state)
{
    (void)state;
    assert_string_equal(
        text_on(&broad),
        "tt-mem: out of memory in L1 of device 0 at decode.py:61 main (ttnn.matmul): 32.0 MiB wanted, "
        "512 KiB in each of 64 banks\n"
        "  free 640 KiB a bank, largest block 320 KiB → fragmented, not exhausted\n"
        "  who holds L1         40.0 MiB      80 buffers  decode.py:44 worker (ttnn.zeros)\n"
        "                       16.0 MiB       1 buffer   model.py:210 attention (ttnn.add) \"kv\" in "
        "layer_0\n"
        "  bank ▕█░██▏ 0x19000 … 0x16d000 of 1.3 MiB  █ held ░ free\n");
}

static void a_caller_stands_between_place_and_operation(void **state)
{
    static const struct ttm_frame_words place = {"model.py", "attention", 210};
    static const struct ttm_frame_words caller = {"model.py", "forward", 9};
    (void)state;

    view.holder_places[1].frame = &place;
    view.holder_places[1].caller.frame = &caller;
    assert_has(text_on(&plain), "1 buffer   model.py:210 ← forward (ttnn.add) \"kv\" in layer_0\n");
    assert_has(text_on(&broad), " model.py:210 attention ← model.py:9 forward (ttnn.add) \"kv\"");
    assert_has(text_on(&ascii), "model.py:210 < forward (ttnn.add)");
    view.where = view.holder_places[1];
    view.where.words = (struct ttm_origin_brief){"model.py:210:attention", "", "", ""};
    assert_has(text_on(&plain), "of device 0 at model.py:210 ← forward\n");
}

static void exhausted_is_told_from_fragmented(void **state);

static void a_place_in_a_library_is_told_without_folders(void **state)
{
    (void)state;
    view.where.words = (struct ttm_origin_brief){
        "/opt/ttnn/build/lib/libtt_metal.so+0xc77272\n/opt/ttnn/ttnn/_ttnncpp.so+0x12", "", "", ""};
    assert_non_null(strstr(text_on(&broad), "device 0 at libtt_metal.so+0xc77272: 32.0 MiB"));
}

static void a_native_place_has_the_name_of_its_function(void **state)
{
    char place[4096];
    (void)state;

    own_place(exhausted_is_told_from_fragmented, place, sizeof(place));
    view.where.words = (struct ttm_origin_brief){place, "", "", ""};
    assert_has(text_on(&broad), " at test_failure_text+0x");
    view.names = ttm_native_names_new();
    assert_has(text_on(&broad), " exhausted_is_told_from_fragmented");
    assert_null(strstr(text_on(&broad), "+0x"));
    ttm_native_names_free(view.names);
}

static void what_does_not_fit_a_line_takes_two(void **state)
{
    (void)state;
    assert_has(text_on(&plain), "(ttnn.matmul)\n  32.0 MiB wanted, 512 KiB in each of 64 banks\n");
}

static void exhausted_is_told_from_fragmented(void **state)
{
    (void)state;
    failure.bank_free_bytes = 100 << 10;
    failure.bank_largest_bytes = 64 << 10;
    assert_has(text_on(&plain), "  free 100 KiB a bank, largest block 64.0 KiB → exhausted\n");
    failure.bank_free_bytes = failure.bank_largest_bytes = 1
                                                           << 20; /* it failed for another reason */
    assert_lacks(text_on(&plain), "→");
}

static void what_is_not_known_is_not_said(void **state)
{
    (void)state;
    view.where.words = nowhere;
    view.bank_count = 0;
    view.bank_bytes = 0;
    view.map.cell_count = 0;
    view.holder_places[1].words = nowhere;
    assert_has(text_on(&plain), "of device 0: 32.0 MiB wanted, 512 KiB a bank\n");
    assert_lacks(text_on(&plain), "  bank ");
    assert_has(text_on(&plain), "1 buffer   from where is not known\n");
    failure.bank_wanted_bytes = 0;
    assert_has(text_on(&plain), "of device 0: 32.0 MiB wanted\n");
    assert_lacks(text_on(&plain), "free");
    view.holders = (struct ttm_holders){0};
    assert_has(text_on(&plain), "  nothing that is tracked holds L1 of device 0\n");
}

static void the_process_is_named_where_there_are_several(void **state)
{
    (void)state;
    view.pid = 4242;
    assert_has(text_on(&plain), "of device 0 in process 4242 at decode.py:61 main");
    view.where.words = (struct ttm_origin_brief){"", "ttnn.matmul", "", ""};
    assert_has(text_on(&plain), "in process 4242 (ttnn.matmul)");
}

static void those_beyond_the_list_are_one_line(void **state)
{
    (void)state;
    view.holders.origins = 1202;
    view.holders.all = (struct ttm_owner){0, 1281, 57 << 20, 57 << 20};
    assert_has(text_on(&plain),
               "                        1.0 MiB   1,200 buffers  from 1,200 other places\n");
}

static void circular_buffers_are_one_line(void **state)
{
    (void)state;
    view.cb_bytes = 8 << 20;
    view.program_count = 3;
    view.operations[0] = "ttnn.softmax";
    view.operations[1] = "ttnn.\033matmul";
    view.operation_count = 2;
    assert_has(text_on(&plain), "   8.0 MiB  circular buffers of 3 programs (ttnn.softmax, "
                                "ttnn.\\x1bmatmul)\n");
    const struct ttm_terminal screen = {.is_terminal = true, .has_utf8 = true, .columns = 84};
    assert_has(text_on(&screen), "of 3 programs (ttnn.softmax, …)\n"); /* nothing is cut off */
    view.operation_count = 0;
    view.program_count = 1;
    assert_has(text_on(&plain), "circular buffers of 1 program\n");
}

static void a_clash_names_both_sides(void **state)
{
    (void)state;
    failure = (struct ttm_failure_row){.kind = TTM_FAILURE_CB_CLASH,
                                       .region = TTM_REGION_CB,
                                       .device_id = 3,
                                       .wanted_bytes = 9 << 20,
                                       .bank_wanted_bytes = 169312,
                                       .bank_free_bytes = 17056,
                                       .bank_largest_bytes = 17056};
    view.map.lowest[0] = (struct ttm_bank_low){0x1e000, 2 << 20, 1};
    view.map.lowest[1] = (struct ttm_bank_low){0x3e000, 1 << 20, 2};
    view.map.lowest_count = 2;
    view.lowest_places[0].words = worker;
    view.lowest_places[1].words = attention;
    const char *string = text_on(&plain);
    assert_has(string, "tt-mem: circular buffers clash with L1 buffers on device 3 at "
                       "decode.py:61 main (ttnn.matmul)\n");
    assert_has(string,
               "  circular buffers would end at 0x29560 and take 9.0 MiB on all cores together\n"
               "  lowest L1 buffers  0x1e000       2.0 MiB  decode.py:44 worker (ttnn.zeros)\n"
               "                     0x3e000       1.0 MiB  model.py:210 attention");
    assert_has(string, "  free 16.7 KiB a bank, largest block 16.7 KiB\n");
    assert_has(string, "  who holds L1  ");
    assert_lacks(string, "exhausted");
}

static void a_part_of_a_cell_is_shown_as_such(void **state)
{
    (void)state;
    view.map.cells[1] = TTM_CELL_PART;
    assert_has(text_on(&plain), "▕█▒██▏");
    assert_has(text_on(&broad), "█ held ▒ in part ░ free\n");
    view.bank_bytes = 1392639; /* less than the map is long */
    assert_lacks(text_on(&plain), "  bank ");
}

static void without_utf8_all_is_ascii(void **state)
{
    (void)state;
    view.map.cells[3] = TTM_CELL_PART;
    for (const char *c = text_on(&ascii); *c; c++)
        assert_in_range(*c, '\n', '~');
    assert_has(text_on(&ascii), "|#.#+| 0x19000 ... 0x16d000 of 1.3 MiB  # held . free\n");
    assert_has(text_on(&ascii), " -> fragmented");
}

static void colours_are_only_where_they_are_wanted(void **state)
{
    struct ttm_terminal colour = plain;
    (void)state;

    assert_lacks(text_on(&plain), "\033");
    colour.has_colour = true;
    assert_has(text_on(&colour), "\033[31mout of memory\033[0m");
}

static void a_map_fits_its_line(void **state)
{
    (void)state;
    view.map.cells[1] = TTM_CELL_PART;
    view.map.start = 0x40000000;
    view.map.end = 0x7fffffff; /* DRAM */
    view.bank_bytes = 1 << 30;
    for (size_t columns = 80; columns <= 200; columns += 40) {
        struct ttm_terminal terminal = plain;
        terminal.columns = columns;
        view.map.cell_count = ttm_failure_map_cells(&terminal);
        assert_in_range(view.map.cell_count, 16, TTM_BANK_CELLS_MAX);
        const char *line = strstr(text_on(&terminal), "  bank");
        assert_non_null(line);
        assert_in_range(ttm_terminal_width(line), 60, columns + 1); /* and the newline */
    }
}

static void when_memory_is_short_nothing_half_is_shown(void **state)
{
    bool has_failed = true;
    (void)state;

    for (unsigned grants = 0; has_failed; grants++) {
        struct ttm_text out;
        ttm_text_init(&out);
        faults_begin(grants);
        ttm_failure_text(&view, &plain, &out);
        has_failed = faults_end();
        if (has_failed)
            assert_true(ttm_text_failed(&out));
        ttm_text_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_says_what_failed_how_much_is_free_and_who_holds_it,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_caller_stands_between_place_and_operation, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_place_in_a_library_is_told_without_folders, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_native_place_has_the_name_of_its_function, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_does_not_fit_a_line_takes_two, set_up, tear_down),
        cmocka_unit_test_setup_teardown(exhausted_is_told_from_fragmented, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_known_is_not_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_process_is_named_where_there_are_several, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(those_beyond_the_list_are_one_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(circular_buffers_are_one_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_clash_names_both_sides, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_part_of_a_cell_is_shown_as_such, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_utf8_all_is_ascii, set_up, tear_down),
        cmocka_unit_test_setup_teardown(colours_are_only_where_they_are_wanted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_map_fits_its_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(when_memory_is_short_nothing_half_is_shown, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
