/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include <time.h>

#include "telemetry/telemetry.h"

#define PATIENCE_MS 30000 /* ends a test that hangs */

/* A chip with a temperature; 'bdf' has one digit that differs: "0000:01:00.0". */
static void make_chip(unsigned number, const char *bdf, const char *temperature)
{
    char path[256], target[256];

    (void)snprintf(path, sizeof(path), "/sys/class/tenstorrent/tenstorrent!%u/device", number);
    (void)snprintf(target, sizeof(target), "../../../devices/%s", bdf);
    tree_link(path, target);
    (void)snprintf(path, sizeof(path), "/sys/devices/%s/device", bdf);
    tree_text(path, "0x401e\n");
    (void)snprintf(path, sizeof(path), "/sys/devices/%s/hwmon/hwmon0/temp1_input", bdf);
    tree_text(path, temperature);
}

static uint64_t temperature_of(const struct ttm_telemetry_chip *chip)
{
    return chip->chip.sensors[TTM_SENSOR_TEMPERATURE_MC].number;
}

/* Looks until 'is_so', which the caller checks on the view that is left in 'ret'. */
static void look_until(struct ttm_telemetry *t, bool (*is_so)(const struct ttm_telemetry_view *),
                       struct ttm_telemetry_view *ret)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    for (unsigned i = 0; i < PATIENCE_MS; i++) {
        assert_int_equal(ttm_telemetry_look(t, ret), 0);
        if (is_so(ret))
            return;
        ttm_telemetry_view_done(ret);
        (void)nanosleep(&pause, NULL);
    }
    fail_msg("it did not come to that");
}

static void without_a_driver_there_is_nothing(void **state)
{
    struct ttm_telemetry *t;
    struct ttm_telemetry_view view;
    (void)state;

    assert_int_equal(ttm_telemetry_new(root, 0, &t), 0);
    assert_true(ttm_telemetry_wait(t, 0));
    assert_int_equal(ttm_telemetry_look(t, &view), 0);
    assert_int_equal(view.count, 0);
    assert_string_equal(view.driver, "");
    ttm_telemetry_view_done(&view);
    ttm_telemetry_free(t);
    ttm_telemetry_free(NULL);
}

/* The driver's numbers and TT-Metal's need not have the same order. */
static void chips_have_the_drivers_number_and_metals(void **state)
{
    struct ttm_telemetry *t;
    struct ttm_telemetry_view view;
    (void)state;

    tree_text("/sys/module/tenstorrent/version", "2.10.0\n");
    make_chip(0, "0000:41:00.0", "54000\n");
    make_chip(1, "0000:01:00.0", "38000\n");
    make_chip(19, "0000:02:00.0", "40000\n");
    assert_int_equal(ttm_telemetry_new(root, 0, &t), 0);
    assert_true(ttm_telemetry_wait(t, PATIENCE_MS));
    assert_int_equal(ttm_telemetry_look(t, &view), 0);
    assert_string_equal(view.driver, "2.10.0");
    assert_int_equal(view.count, 3);
    assert_int_equal(view.chips[0].chip.number, 0);
    assert_int_equal(view.chips[0].metal_id, 2);
    assert_int_equal(temperature_of(&view.chips[0]), 54000);
    assert_int_equal(view.chips[1].metal_id, 0);
    assert_string_equal(view.chips[1].chip.bdf, "0000:01:00.0");
    assert_int_equal(view.chips[2].chip.number, 19);
    assert_int_equal(view.chips[2].metal_id, 1);
    assert_true(view.chips[2].has_reading);
    ttm_telemetry_view_done(&view);
    ttm_telemetry_free(t);
}

static bool is_warmer(const struct ttm_telemetry_view *view)
{
    return temperature_of(&view->chips[0]) == 60000;
}

static void values_are_read_again_and_again(void **state)
{
    struct ttm_telemetry *t;
    struct ttm_telemetry_view view;
    (void)state;

    make_chip(0, "0000:41:00.0", "54000\n");
    assert_int_equal(ttm_telemetry_new(root, 1, &t), 0);
    assert_true(ttm_telemetry_wait(t, PATIENCE_MS));
    tree_text("/sys/devices/0000:41:00.0/hwmon/hwmon0/temp1_input", "60000\n");
    look_until(t, is_warmer, &view);
    ttm_telemetry_view_done(&view);
    ttm_telemetry_free(t);
}

static bool is_first_removed(const struct ttm_telemetry_view *view)
{
    return view->chips[0].chip.state == TTM_CHIP_REMOVED;
}

static bool are_two_read(const struct ttm_telemetry_view *view)
{
    return view->count == 2 && view->chips[0].has_reading && view->chips[1].has_reading;
}

static bool is_back_under_another_number(const struct ttm_telemetry_view *view)
{
    return view->count == 2 && view->chips[1].chip.number == 7 &&
           view->chips[1].chip.state == TTM_CHIP_OK;
}

static void chips_come_and_go(void **state)
{
    struct ttm_telemetry *t;
    struct ttm_telemetry_view view;
    (void)state;

    make_chip(0, "0000:41:00.0", "54000\n");
    assert_int_equal(ttm_telemetry_new(root, 1, &t), 0);
    make_chip(1, "0000:42:00.0", "38000\n");
    look_until(t, are_two_read, &view);
    assert_int_equal(view.chips[1].metal_id, 1);
    ttm_telemetry_view_done(&view);

    tree_remove("/sys/class/tenstorrent/tenstorrent!0");
    look_until(t, is_first_removed, &view);
    assert_int_equal(view.count, 2);
    assert_int_equal(view.chips[0].metal_id, -1);
    assert_int_equal(temperature_of(&view.chips[0]), 54000);
    assert_int_equal(view.chips[1].metal_id, 0);
    ttm_telemetry_view_done(&view);

    tree_link("/sys/class/tenstorrent/tenstorrent!7/device", "../../../devices/0000:41:00.0");
    look_until(t, is_back_under_another_number, &view);
    ttm_telemetry_view_done(&view);
    ttm_telemetry_free(t);
}

/* Opening a FIFO waits for a writer, as a read of a chip waits for the end of its reset. */
static void make_hang(const char *path)
{
    char fifo[512];

    /* At once, so that no reader finds nothing there. */
    (void)snprintf(fifo, sizeof(fifo), "%s", tree_path("/fifo"));
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(rename(fifo, tree_path(path)), 0);
}

static void end_hang(const char *path)
{
    const int fd = open(tree_path(path), O_RDWR | O_NONBLOCK | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "61000\n", 6), 6);
    (void)close(fd);
}

static bool is_second_stalled(const struct ttm_telemetry_view *view)
{
    return view->chips[1].is_stalled;
}

static bool is_second_awake(const struct ttm_telemetry_view *view)
{
    return !view->chips[1].is_stalled && temperature_of(&view->chips[1]) == 70000;
}

static void a_chip_that_hangs_holds_up_nobody_and_shows_its_age(void **state)
{
    static const char hang[] = "/sys/devices/0000:42:00.0/hwmon/hwmon0/temp1_input";
    struct ttm_telemetry *t;
    struct ttm_telemetry_view view;
    (void)state;

    make_chip(0, "0000:41:00.0", "54000\n");
    make_chip(1, "0000:42:00.0", "38000\n");
    assert_int_equal(ttm_telemetry_new(root, 1, &t), 0);
    assert_true(ttm_telemetry_wait(t, PATIENCE_MS));
    make_hang(hang);
    look_until(t, is_second_stalled, &view);
    assert_int_equal(temperature_of(&view.chips[1]), 38000); /* the last value */
    assert_true(view.chips[1].age_ns >= 1000000000);         /* stalled means that long */
    assert_false(view.chips[0].is_stalled);
    ttm_telemetry_view_done(&view);

    tree_text("/sys/devices/0000:41:00.0/hwmon/hwmon0/temp1_input", "60000\n");
    look_until(t, is_warmer, &view);
    ttm_telemetry_view_done(&view);

    /* The reader has the FIFO itself open; the file in its place is for the next time. */
    const int fd = open(tree_path(hang), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(remove(tree_path(hang)), 0);
    tree_text(hang, "70000\n");
    assert_int_equal(write(fd, "61000\n", 6), 6);
    look_until(t, is_second_awake, &view);
    ttm_telemetry_view_done(&view);
    ttm_telemetry_free(t);
    (void)close(fd);
}

static void a_wait_for_a_chip_that_hangs_comes_to_an_end(void **state)
{
    static const char hang[] = "/sys/devices/0000:42:00.0/hwmon/hwmon0/temp1_input";
    struct ttm_telemetry *t;
    struct ttm_telemetry_view view;
    (void)state;

    make_chip(0, "0000:42:00.0", "38000\n");
    make_hang(hang);
    assert_int_equal(ttm_telemetry_new(root, 0, &t), 0);
    assert_false(ttm_telemetry_wait(t, 1));
    assert_int_equal(ttm_telemetry_look(t, &view), 0);
    assert_int_equal(view.count, 1);
    assert_false(view.chips[0].has_reading);
    assert_string_equal(view.chips[0].chip.bdf, "0000:42:00.0");
    ttm_telemetry_view_done(&view);
    ttm_telemetry_free(t); /* and the thread goes when the driver lets it */
    end_hang(hang);
}

static void more_chips_than_there_is_room_for_are_left_out(void **state)
{
    char path[128];
    struct ttm_telemetry *t;
    struct ttm_telemetry_view view;
    (void)state;

    for (unsigned i = 0; i < TTM_TELEMETRY_CHIPS_MAX + 10; i++) {
        (void)snprintf(path, sizeof(path), "/sys/class/tenstorrent/tenstorrent!%u", i);
        tree_folder(path);
        (void)snprintf(path, sizeof(path), "/sys/class/tenstorrent/tenstorrent!%u/device", i);
        char target[32];
        (void)snprintf(target, sizeof(target), "../%04x:00:00.0", i);
        tree_link(path, target);
    }
    assert_int_equal(ttm_telemetry_new(root, 0, &t), 0);
    assert_true(ttm_telemetry_wait(t, PATIENCE_MS));
    assert_int_equal(ttm_telemetry_look(t, &view), 0);
    assert_int_equal(view.count, TTM_TELEMETRY_CHIPS_MAX);
    ttm_telemetry_view_done(&view);
    ttm_telemetry_free(t);
}

static void what_is_no_chip_is_passed_over(void **state)
{
    struct ttm_telemetry *t;
    struct ttm_telemetry_view view;
    (void)state;

    tree_folder("/sys/class/tenstorrent/tenstorrent!");
    tree_folder("/sys/class/tenstorrent/tenstorrent!x");
    tree_folder("/sys/class/tenstorrent/tenstorrent!1x");
    tree_folder("/sys/class/tenstorrent/tenstorrent!99999999999");
    tree_folder("/sys/class/tenstorrent/power");
    assert_int_equal(ttm_telemetry_new(root, 0, &t), 0);
    assert_int_equal(ttm_telemetry_look(t, &view), 0);
    assert_int_equal(view.count, 0);
    ttm_telemetry_view_done(&view);
    ttm_telemetry_free(t);
}

static void short_memory_is_told(void **state)
{
    struct ttm_telemetry *t = NULL;
    (void)state;

    tree_folder("/sys/class/tenstorrent");
    faults_begin(0);
    assert_int_equal(ttm_telemetry_new(root, 0, &t), -ENOMEM);
    assert_true(faults_end());
    assert_null(t);
}

static void cards_without_a_driver_are_counted(void **state)
{
    (void)state;

    assert_int_equal(ttm_telemetry_count_pci(root), 0);
    tree_text("/sys/bus/pci/devices/0000:41:00.0/vendor", "0x1e52\n");
    tree_text("/sys/bus/pci/devices/0000:42:00.0/vendor", "0x1E52\n");
    tree_text("/sys/bus/pci/devices/0000:43:00.0/vendor", "0x8086\n");
    tree_text("/sys/bus/pci/devices/0000:44:00.0/vendor", "");
    tree_folder("/sys/bus/pci/devices/0000:45:00.0");
    assert_int_equal(ttm_telemetry_count_pci(root), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(without_a_driver_there_is_nothing),
        TREE_TEST(chips_have_the_drivers_number_and_metals),
        TREE_TEST(values_are_read_again_and_again),
        TREE_TEST(chips_come_and_go),
        TREE_TEST(a_chip_that_hangs_holds_up_nobody_and_shows_its_age),
        TREE_TEST(a_wait_for_a_chip_that_hangs_comes_to_an_end),
        TREE_TEST(more_chips_than_there_is_room_for_are_left_out),
        TREE_TEST(what_is_no_chip_is_passed_over),
        TREE_TEST(short_memory_is_told),
        TREE_TEST(cards_without_a_driver_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
