/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Screens as they were found to be good: tests/data/screens. With TTM_UPDATE_SCREENS set they are
 * written anew, to be looked at before they are committed.
 */
#include "dashboard_testing.h"

#include "dashboard/draw.h"

static struct ttm_view view;
static struct ttm_grid grid;

static const struct {
    size_t columns, rows;
} sizes[] = {{40, 12}, {80, 24}, {120, 40}, {200, 60}};

static int set_up(void **state)
{
    (void)state;
    grid = (struct ttm_grid){.has_utf8 = true, .has_braille = true};
    ttm_view_init(&view, &ttm_view_defaults);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_view_done(&view);
    ttm_grid_done(&grid);
    return 0;
}

/* A minute of history: DRAM rises, L1 goes up and down. */
static void take_a_minute(size_t devices)
{
    for (unsigned s = 0; s <= 60; s++) {
        make_facts(devices, 1000 + s);
        for (size_t i = 0; i < devices; i++) {
            made_devices[i].regions[TTM_REGION_DRAM] = made_usage((s + 1) * 64 * MIB);
            made_devices[i].regions[TTM_REGION_L1] = made_usage((s % 20 + 1) * 2 * MIB);
        }
        made_processes[0].regions[TTM_REGION_DRAM] = made_usage((s + 1) * 64 * MIB);
        assert_int_equal(ttm_view_take(&view, &made_facts), 0);
    }
}

static void draw(size_t columns, size_t rows)
{
    assert_int_equal(ttm_grid_resize(&grid, columns, rows), 0);
    ttm_draw(&view, &grid);
}

static void assert_same_as(const char *path, const struct ttm_text *text)
{
    char *expected = calloc(1, 1 << 18);
    FILE *file;

    assert_non_null(expected);
    if (getenv("TTM_UPDATE_SCREENS")) {
        file = fopen(path, "w");
        assert_non_null(file);
        assert_int_equal(fwrite(ttm_text_string(text), 1, text->length, file), text->length);
        assert_int_equal(fclose(file), 0);
    }
    file = fopen(path, "r");
    if (!file)
        fail_msg("there is no '%s'", path);
    const size_t length = fread(expected, 1, (1 << 18) - 1, file);
    (void)fclose(file);
    if (length != text->length || memcmp(expected, ttm_text_string(text), length) != 0)
        fail_msg("'%s' is not what is drawn now:\n%s", path, ttm_text_string(text));
    free(expected);
}

/* Compares with the screen of that name. */
static void assert_screen(const char *name, size_t columns, size_t rows)
{
    char path[512];
    struct ttm_text text;

    draw(columns, rows);
    ttm_text_init(&text);
    ttm_grid_print(&grid, false, &text);
    (void)snprintf(path, sizeof(path), "%s/screens/%s.%zux%zu.txt", TTM_TEST_DATA, name, columns,
                   rows);
    assert_same_as(path, &text);
    ttm_text_done(&text);
}

static void assert_all_sizes(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        assert_screen(name, sizes[i].columns, sizes[i].rows);
}

static void without_device_and_server_it_says_what_to_do(void **state)
{
    (void)state;
    make_facts(0, 1);
    assert_int_equal(ttm_view_take(&view, &made_facts), 0);
    assert_all_sizes("nothing");
}

static void one_device(void **state)
{
    (void)state;
    take_a_minute(1);
    assert_all_sizes("devices-1");
}

static void two_devices(void **state)
{
    (void)state;
    take_a_minute(2);
    assert_all_sizes("devices-2");
}

static void eight_devices(void **state)
{
    (void)state;
    take_a_minute(8);
    for (unsigned i = 0; i < 8; i++) {
        made_devices[i].l1_reserved_bytes = 6 * MIB + i * 1000;
        made_devices[i].cb_registered_bytes = 5 * MIB;
    }
    made_devices[1].regions[TTM_REGION_DRAM] = made_usage(5 * MIB);  /* next to nothing */
    made_devices[2].regions[TTM_REGION_DRAM] = made_usage(11 * GIB); /* nearly full */
    made_devices[3].regions[TTM_REGION_L1_SMALL] = made_usage(999 * 1024);
    made_devices[3].regions[TTM_REGION_TRACE] = made_usage(123 * MIB);
    assert_all_sizes("devices-8");
}

/* What is not known of processes, and what to do about it: as much as there is room for. */
static void what_to_do_about_processes_is_said(void **state)
{
    (void)state;
    take_a_minute(2);
    made_processes[1].reports = "disabled";
    made_facts.foreign_count = 1;
    made_facts.hidden_count = 2;
    assert_int_equal(ttm_view_take(&view, &made_facts), 0);
    assert_screen("advice", 40, 12);
    assert_screen("advice", 80, 24);
    made_facts.server = TTM_SERVER_NONE;
    assert_screen("advice-no-server", 80, 24);
}

/* Nothing is used, and of the second nothing is known. */
static void charts_of_nothing(void **state)
{
    (void)state;
    view.settings.page = TTM_PAGE_CHARTS;
    make_facts(2, 1000);
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
        made_devices[0].regions[r] = made_usage(0);
    made_devices[1] = (struct ttm_facts_device){.id = 1, .place = "no card"};
    assert_int_equal(ttm_view_take(&view, &made_facts), 0);
    assert_screen("charts-nothing", 80, 24);
}

/* Chips that give no values, each for a reason of its own. */
static void devices_in_trouble(void **state)
{
    static const char *const places[] = {"hangs", "in reset", "removed", "reading", "no card"};
    (void)state;

    take_a_minute(6);
    for (unsigned i = 0; i < COUNT_OF(places); i++) {
        made_devices[i] = (struct ttm_facts_device){.id = i, .name = "n150", .place = places[i]};
        made_devices[i].capacity_bytes[TTM_REGION_DRAM] = 12 * GIB;
    }
    made_devices[0].temperature_mc = made_value(54312); /* of the last reading */
    made_devices[0].age_ns = 72 * TTM_NS_PER_S;
    made_devices[5].place = "";
    made_devices[5].temperature_mc = made_value(74000); /* of 75 */
    made_devices[5].temperature_limit_mc = made_value(75000);
    made_devices[5].power_uw = (struct ttm_value){TTM_IMPLAUSIBLE, 0};
    assert_all_sizes("trouble");
    made_devices[0].temperature_mc = (struct ttm_value){TTM_ABSENT, 0};
    made_devices[0].age_ns = 130 * TTM_NS_PER_S;
    assert_screen("trouble-without-temperature", 80, 24);
}

static void a_galaxy(void **state)
{
    (void)state;
    take_a_minute(32);
    assert_all_sizes("devices-32");
}

/* More processes than there is room for, which all devices go before; and names that are too long. */
static void a_galaxy_in_use(void **state)
{
    static struct ttm_facts_process many[40];
    (void)state;

    take_a_minute(32);
    for (unsigned i = 0; i < 32; i++)
        (void)snprintf(made_devices[i].name, sizeof(made_devices[i].name), "galaxy-wormhole");
    for (unsigned i = 0; i < COUNT_OF(many); i++) {
        many[i] = made_processes[0];
        many[i].pid += (int32_t)i;
    }
    made_facts.processes = many;
    made_facts.process_count = COUNT_OF(many);
    assert_int_equal(ttm_view_take(&view, &made_facts), 0);
    assert_all_sizes("galaxy");
    view.settings.page = TTM_PAGE_CHARTS;
    assert_screen("charts-galaxy", 80, 24);
}

static void charts_of_two_devices(void **state)
{
    (void)state;
    view.settings.page = TTM_PAGE_CHARTS;
    take_a_minute(2);
    assert_all_sizes("charts-2");
}

static void charts_of_a_galaxy(void **state)
{
    (void)state;
    view.settings.page = TTM_PAGE_CHARTS;
    take_a_minute(32);
    assert_all_sizes("charts-32");
}

static void origins_and_the_detail_of_one(void **state)
{
    const struct ttm_origins_source source = make_lives();
    (void)state;

    view.settings.page = TTM_PAGE_ORIGINS;
    take_a_minute(2);
    assert_int_equal(ttm_view_take_lives(&view, &source, made_facts.time_ns - 4 * TTM_NS_PER_S), 0);
    assert_int_equal(ttm_view_take_lives(&view, &source, made_facts.time_ns), 0);
    assert_all_sizes("origins");
    view.lives_ns -= 12 * TTM_NS_PER_S;
    assert_screen("origins-old", 80, 24);
    (void)ttm_view_key(&view, &source, TTM_KEY_ENTER);
    assert_all_sizes("detail");
}

/* Sizes that differ by a byte, an origin that has held something for long, more than fits a screen. */
static void an_origin_with_many_sizes(void **state)
{
    static struct ttm_life_row many[60];
    const struct ttm_origins_source source = make_lives();
    (void)state;

    for (size_t i = 0; i < COUNT_OF(many); i++)
        many[i] = (struct ttm_life_row){
            .address = 0x100000 + i * 4096,
            .bytes = 2048 + i % 3,
            .footprint_bytes = 4096,
            .age_ns = (1624 + i) * TTM_NS_PER_S,
        };
    made_process.lives = many;
    made_process.live_count = COUNT_OF(many);
    view.settings.page = TTM_PAGE_ORIGINS;
    take_a_minute(2);
    assert_int_equal(ttm_view_take_lives(&view, &source, made_facts.time_ns), 0);
    assert_screen("origins-long", 120, 24);
    (void)ttm_view_key(&view, &source, TTM_KEY_ENTER);
    assert_screen("detail-long", 80, 24);
    assert_screen("detail-long", 40, 12);
}

/* While lives are still to come, and when there are too many of them. */
static void what_is_not_known_of_origins_is_said(void **state)
{
    struct ttm_origins_source source = make_lives();
    (void)state;

    view.settings.page = TTM_PAGE_ORIGINS;
    take_a_minute(2);
    source.is_partial = true;
    source.lives_count = 0;
    made_answer.left_out.sites = 1203;
    assert_int_equal(ttm_view_take_lives(&view, &source, made_facts.time_ns), 0);
    assert_screen("origins-asking", 80, 24);
    (void)ttm_view_key(&view, &source, TTM_KEY_ENTER);
    assert_screen("detail-asking", 80, 24);

    assert_true(ttm_view_wants_closer(&view, &source.look));
    source.has_look = true;
    source.lives_count = 1;
    made_process.live_count = 2; /* of three */
    made_answer.left_out.lives = 1;
    assert_int_equal(ttm_view_take_closer(&view, &source), 0);
    assert_screen("detail-left-out", 80, 24);
}

/* Where a detail does not fit, its rest is reached page by page, and not beyond its end. */
static void a_detail_can_be_read_to_its_end(void **state)
{
    const struct ttm_origins_source source = make_lives();
    struct ttm_text text;
    (void)state;

    view.settings.page = TTM_PAGE_ORIGINS;
    take_a_minute(2);
    assert_int_equal(ttm_view_take_lives(&view, &source, TTM_NS_PER_S), 0);
    (void)ttm_view_key(&view, &source, TTM_KEY_ENTER);
    ttm_text_init(&text);
    for (unsigned i = 0; i < 9; i++) {
        draw(60, 16);
        ttm_text_clear(&text);
        ttm_grid_print(&grid, false, &text);
        assert_int_equal(strstr(ttm_text_string(&text), "PgDn: more") != NULL, i == 0);
        assert_int_equal(strstr(ttm_text_string(&text), "0x100000") != NULL, i > 0);
        (void)ttm_view_key(&view, &source, TTM_KEY_PAGE_DOWN);
    }
    (void)ttm_view_key(&view, &source, TTM_KEY_HOME);
    draw(60, 16);
    ttm_text_clear(&text);
    ttm_grid_print(&grid, false, &text);
    assert_non_null(strstr(ttm_text_string(&text), "growth"));
    ttm_text_done(&text);
}

static void ascii_alone(void **state)
{
    (void)state;
    grid.has_utf8 = false;
    take_a_minute(2);
    assert_screen("ascii-devices", 80, 24);
    view.settings.page = TTM_PAGE_CHARTS;
    assert_screen("ascii-charts", 80, 24);
    for (size_t i = 0; i < grid.columns * grid.rows; i++)
        assert_true(grid.cells[i].character < 0x7f);
}

static void what_processes_are_sorted_by_is_shown(void **state)
{
    (void)state;
    take_a_minute(1);
    view.settings.process_sort = TTM_SORT_GROWTH;
    assert_screen("sorted", 80, 24);
    view.settings.is_reversed[TTM_PAGE_DEVICES] = true;
    assert_screen("sorted-reversed", 80, 24);
}

/* Else nobody would know why rows are missing. */
static void a_filter_that_was_kept_is_shown(void **state)
{
    const struct ttm_origins_source source = make_lives();
    (void)state;

    take_a_minute(1);
    assert_int_equal(ttm_view_take_lives(&view, &source, made_facts.time_ns), 0);
    for (const char *key = "/decode"; *key; key++)
        (void)ttm_view_key(&view, &source, (uint32_t)*key);
    (void)ttm_view_key(&view, &source, TTM_KEY_ENTER);
    assert_screen("filtered", 40, 12);
    assert_screen("filtered", 80, 24);
    view.settings.page = TTM_PAGE_ORIGINS;
    assert_screen("filtered-origins", 80, 24);
}

static void help_fits_the_smallest_screen(void **state)
{
    (void)state;
    take_a_minute(1);
    view.has_help = true;
    assert_screen("help", 40, 12);
    assert_screen("help", 80, 24);
}

/* No cell is written outside the grid, and nothing crashes, whatever the size. */
static void every_size_can_be_drawn(void **state)
{
    const struct ttm_origins_source source = make_lives();
    const size_t counts[] = {0, 1, 2, 7, 32};
    (void)state;

    for (size_t c = 0; c < COUNT_OF(counts); c++) {
        ttm_view_done(&view);
        ttm_view_init(&view, &ttm_view_defaults);
        take_a_minute(counts[c]);
        assert_int_equal(ttm_view_take_lives(&view, &source, 1), 0);
        for (unsigned page = 0; page < TTM_PAGE_COUNT; page++) {
            view.settings.page = page;
            for (size_t columns = 0; columns < 300; columns += 7) {
                view.has_detail = columns % 2;
                for (size_t rows = 0; rows < 80; rows += 3)
                    draw(columns, rows);
            }
        }
    }
}

static void the_header_tells_how_the_server_is(void **state)
{
    static const char *const words[] = {
        [TTM_SERVER_NONE] = "no server",
        [TTM_SERVER_OK] = "server ok",
        [TTM_SERVER_SILENT] = "server does not answer",
        [TTM_SERVER_GONE] = "server gone",
        [TTM_SERVER_REFUSED] = "server refuses: not you",
    };
    struct ttm_text text;
    (void)state;

    ttm_text_init(&text);
    for (unsigned server = 0; server < COUNT_OF(words); server++) {
        make_facts(1, 1);
        made_facts.server = server;
        (void)snprintf(made_facts.server_text, sizeof(made_facts.server_text), "not you");
        assert_int_equal(ttm_view_take(&view, &made_facts), 0);
        draw(100, 20);
        ttm_text_clear(&text);
        ttm_grid_print(&grid, false, &text);
        if (!strstr(ttm_text_string(&text), words[server]))
            fail_msg("no '%s' in %s", words[server], ttm_text_string(&text));
    }
    ttm_text_done(&text);
}

#define DRAW_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DRAW_TEST(without_device_and_server_it_says_what_to_do),
        DRAW_TEST(one_device),
        DRAW_TEST(two_devices),
        DRAW_TEST(eight_devices),
        DRAW_TEST(what_to_do_about_processes_is_said),
        DRAW_TEST(charts_of_nothing),
        DRAW_TEST(devices_in_trouble),
        DRAW_TEST(a_galaxy),
        DRAW_TEST(a_galaxy_in_use),
        DRAW_TEST(an_origin_with_many_sizes),
        DRAW_TEST(charts_of_two_devices),
        DRAW_TEST(charts_of_a_galaxy),
        DRAW_TEST(origins_and_the_detail_of_one),
        DRAW_TEST(what_is_not_known_of_origins_is_said),
        DRAW_TEST(a_detail_can_be_read_to_its_end),
        DRAW_TEST(ascii_alone),
        DRAW_TEST(what_processes_are_sorted_by_is_shown),
        DRAW_TEST(a_filter_that_was_kept_is_shown),
        DRAW_TEST(help_fits_the_smallest_screen),
        DRAW_TEST(every_size_can_be_drawn),
        DRAW_TEST(the_header_tells_how_the_server_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
