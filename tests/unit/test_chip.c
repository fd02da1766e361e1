/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include "base/clock.h"
#include "telemetry/chip.h"

#define CLASS "/sys/class/tenstorrent/tenstorrent!3/"
#define PCI "/sys/devices/pci0000:40/0000:41:00.0/"
#define HWMON PCI "hwmon/hwmon4/"
#define S TTM_NS_PER_S

/* A Wormhole n300 as driver 2.10 shows it, under the number 3. */
static void make_chip(void)
{
    tree_link(CLASS "device", "../../../devices/pci0000:40/0000:41:00.0");
    tree_text(CLASS "tt_card_type", "n300\n");
    tree_text(CLASS "tt_serial", "010001451172208F\n");
    tree_text(CLASS "tt_asic_id", "6A1D3F0027B5C4E1\n");
    tree_text(CLASS "tt_fw_bundle_ver", "18.12.0.0\n");
    tree_text(CLASS "tt_aiclk", "500\n");
    tree_text(CLASS "tt_heartbeat", "7018819\n");
    tree_text(PCI "device", "0x401e\n");
    tree_text(PCI "current_link_speed", "16.0 GT/s PCIe\n");
    tree_text(PCI "current_link_width", "16\n");
    tree_text(HWMON "name", "wormhole\n");
    tree_text(HWMON "temp1_input", "54312\n");
    tree_text(HWMON "temp1_max", "75000\n");
    tree_text(HWMON "power1_input", "12000000\n");
    tree_text(HWMON "in0_input", "795\n");
    tree_text(HWMON "curr1_input", "16000\n");
}

static void read_chip(struct ttm_chip *chip)
{
    ttm_chip_init(root, chip, "0000:41:00.0", 3);
    ttm_chip_read(root, chip);
}

static void assert_sensor(const struct ttm_chip *chip, enum ttm_sensor sensor, uint64_t number)
{
    assert_int_equal(chip->sensors[sensor].validity, TTM_VALID);
    assert_int_equal(chip->sensors[sensor].number, number);
}

static void what_the_driver_tells_is_read(void **state)
{
    struct ttm_chip chip;
    (void)state;

    make_chip();
    read_chip(&chip);
    assert_int_equal(chip.state, TTM_CHIP_OK);
    assert_string_equal(chip.arch, "wormhole_b0");
    assert_string_equal(chip.board, "n300");
    assert_string_equal(chip.firmware, "18.12.0.0");
    assert_int_equal(chip.asic_id.number, 0x6a1d3f0027b5c4e1);
    assert_int_equal(chip.board_id.number, 0x010001451172208f);
    assert_sensor(&chip, TTM_SENSOR_TEMPERATURE_MC, 54312);
    assert_sensor(&chip, TTM_SENSOR_POWER_UW, 12000000);
    assert_sensor(&chip, TTM_SENSOR_VOLTAGE_MV, 795);
    assert_sensor(&chip, TTM_SENSOR_CURRENT_MA, 16000);
    assert_sensor(&chip, TTM_SENSOR_AICLK_MHZ, 500);
    assert_sensor(&chip, TTM_SENSOR_HEARTBEAT, 7018819);
    assert_int_equal(chip.sensors[TTM_SENSOR_FAN_RPM].validity, TTM_ABSENT);
    assert_int_equal(chip.limits[TTM_LIMIT_TEMPERATURE_MC].number, 75000);
    assert_int_equal(chip.limits[TTM_LIMIT_POWER_UW].validity, TTM_ABSENT);
    assert_int_equal(chip.link_gen.number, 4);
    assert_int_equal(chip.link_width.number, 16);
    assert_int_equal(chip.link_gen_max.validity, TTM_ABSENT);
    assert_int_equal(chip.holders_validity, TTM_ABSENT);
}

/* Seen with driver 2.7-rc1 and firmware 19.6. */
static void numbers_that_cannot_be_are_implausible(void **state)
{
    struct ttm_chip chip;
    (void)state;

    make_chip();
    tree_text(HWMON "in0_input", "3211313\n");
    tree_text(HWMON "curr1_input", "3342387000\n");
    tree_text(HWMON "power1_input", "4080000000\n");
    tree_text(HWMON "fan1_input", "4294967295\n");
    tree_text(HWMON "temp1_input", "65535000\n");
    tree_text(HWMON "temp1_max", "0\n");
    read_chip(&chip);
    for (size_t i = TTM_SENSOR_TEMPERATURE_MC; i <= TTM_SENSOR_FAN_RPM; i++)
        assert_int_equal(chip.sensors[i].validity, TTM_IMPLAUSIBLE);
    assert_int_equal(chip.limits[TTM_LIMIT_TEMPERATURE_MC].validity, TTM_IMPLAUSIBLE);
    assert_sensor(&chip, TTM_SENSOR_AICLK_MHZ, 500);
    assert_int_equal(chip.state, TTM_CHIP_OK);
}

static void temperatures_of_drivers_before_1_34_are_put_right(void **state)
{
    static const struct {
        const char *version;
        uint64_t temperature;
    } versions[] = {
        {"1.33\n", 53039},  {"1.27.1\n", 53039}, {"0.9\n", 53039},  {"1.34\n", 54312},
        {"2.4.1\n", 54312}, {"2\n", 54312},      {"none\n", 54312}, {"", 54312},
    };
    struct ttm_chip chip;
    (void)state;

    make_chip();
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        tree_text("/sys/module/tenstorrent/version", versions[i].version);
        read_chip(&chip);
        ttm_chip_read(root, &chip); /* the architecture is known from the start */
        assert_sensor(&chip, TTM_SENSOR_TEMPERATURE_MC, versions[i].temperature);
    }
    tree_text("/sys/module/tenstorrent/version", "1.33\n");
    tree_text(PCI "device", "0xb140\n"); /* of Blackhole they were right */
    read_chip(&chip);
    assert_sensor(&chip, TTM_SENSOR_TEMPERATURE_MC, 54312);
}

static void a_new_firmware_is_seen_after_a_reset(void **state)
{
    struct ttm_chip chip;
    (void)state;

    make_chip();
    read_chip(&chip);
    tree_text(HWMON "temp1_input", "");
    tree_text(HWMON "power1_input", "");
    tree_text(HWMON "in0_input", "");
    tree_text(HWMON "curr1_input", "");
    tree_text(CLASS "tt_aiclk", "");
    tree_text(CLASS "tt_heartbeat", "");
    ttm_chip_read(root, &chip);
    assert_int_equal(chip.state, TTM_CHIP_RESET);
    tree_text(CLASS "tt_aiclk", "800\n");
    tree_text(CLASS "tt_fw_bundle_ver", "19.1.0.0\n");
    ttm_chip_read(root, &chip);
    assert_int_equal(chip.state, TTM_CHIP_OK);
    assert_string_equal(chip.firmware, "19.1.0.0");
}

static void empty_all_values(void)
{
    static const char *const files[] = {
        CLASS "tt_card_type", CLASS "tt_serial",    CLASS "tt_asic_id",  CLASS "tt_fw_bundle_ver",
        CLASS "tt_aiclk",     CLASS "tt_heartbeat", HWMON "temp1_input", HWMON "power1_input",
        HWMON "in0_input",    HWMON "curr1_input",  HWMON "temp1_max",
    };

    for (size_t i = 0; i < COUNT_OF(files); i++)
        tree_text(files[i], "");
}

static void a_chip_in_reset_keeps_its_identity(void **state)
{
    struct ttm_chip chip;
    (void)state;

    make_chip();
    read_chip(&chip);
    empty_all_values();
    ttm_chip_read(root, &chip);
    assert_int_equal(chip.state, TTM_CHIP_RESET);
    assert_int_equal(chip.sensors[TTM_SENSOR_TEMPERATURE_MC].validity, TTM_IN_RESET);
    assert_int_equal(chip.sensors[TTM_SENSOR_TEMPERATURE_MC].number, 0);
    assert_string_equal(chip.board, "n300");
    assert_string_equal(chip.firmware, "18.12.0.0");
    assert_int_equal(chip.asic_id.validity, TTM_VALID);
    assert_int_equal(chip.limits[TTM_LIMIT_TEMPERATURE_MC].number, 75000);
    ttm_chip_init(root, &chip, "0000:41:00.0", 3); /* before the driver is asked */
    assert_string_equal(chip.arch, "wormhole_b0");
    read_chip(&chip); /* and one that was never seen before has what PCI tells */
    assert_int_equal(chip.state, TTM_CHIP_RESET);
    assert_string_equal(chip.board, "");
    assert_string_equal(chip.arch, "wormhole_b0");
    assert_int_equal(chip.link_gen.number, 4);
}

static void one_value_that_is_lost_is_no_reset(void **state)
{
    struct ttm_chip chip;
    (void)state;

    make_chip();
    tree_text(HWMON "in0_input", "");
    read_chip(&chip);
    assert_int_equal(chip.state, TTM_CHIP_OK);
    assert_int_equal(chip.sensors[TTM_SENSOR_VOLTAGE_MV].validity, TTM_IN_RESET);
}

static void a_chip_that_has_gone_keeps_what_was_known(void **state)
{
    struct ttm_chip chip;
    (void)state;

    make_chip();
    read_chip(&chip);
    tree_remove("/sys/class/tenstorrent/tenstorrent!3");
    ttm_chip_read(root, &chip);
    assert_int_equal(chip.state, TTM_CHIP_REMOVED);
    assert_string_equal(chip.board, "n300");
    assert_sensor(&chip, TTM_SENSOR_TEMPERATURE_MC, 54312);
}

static void a_number_that_went_to_another_card_is_not_this_chip(void **state)
{
    struct ttm_chip chip;
    (void)state;

    make_chip();
    ttm_chip_init(root, &chip, "0000:01:00.0", 3);
    ttm_chip_read(root, &chip);
    assert_int_equal(chip.state, TTM_CHIP_REMOVED);
    assert_string_equal(chip.board, "");
}

static void an_old_driver_shows_less(void **state)
{
    struct ttm_chip chip;
    (void)state;

    tree_link(CLASS "device", "../../../devices/pci0000:40/0000:41:00.0");
    tree_text(PCI "device", "0xb140\n");
    read_chip(&chip);
    assert_int_equal(chip.state, TTM_CHIP_OK);
    assert_string_equal(chip.arch, "blackhole");
    assert_string_equal(chip.board, "");
    for (size_t i = 0; i < TTM_SENSOR_COUNT; i++)
        assert_int_equal(chip.sensors[i].validity, TTM_ABSENT);
}

static void a_board_is_told_by_its_serial_number_when_the_driver_does_not_know_it(void **state)
{
    struct ttm_chip chip;
    (void)state;

    make_chip();
    tree_text(CLASS "tt_card_type", "unknown\n");
    tree_text(CLASS "tt_serial", "0000046031914049\n");
    read_chip(&chip);
    assert_string_equal(chip.board, "p300c");
    tree_text(CLASS "tt_serial", "000F046031914049\n"); /* no board that is known */
    read_chip(&chip);
    assert_string_equal(chip.board, "");
    tree_text(PCI "subsystem_device", "0x0035\n");
    read_chip(&chip);
    assert_string_equal(chip.board, "galaxy-wormhole");
}

static void an_architecture_is_told_by_hwmon_when_pci_does_not_tell(void **state)
{
    struct ttm_chip chip;
    (void)state;

    make_chip();
    tree_remove(PCI "device");
    read_chip(&chip);
    assert_string_equal(chip.arch, "wormhole_b0");
    tree_text(HWMON "name", "k10temp\n");
    read_chip(&chip);
    assert_string_equal(chip.arch, "unknown");
    tree_text(PCI "device", "0x1234\n");
    read_chip(&chip);
    assert_string_equal(chip.arch, "unknown");
}

static void of_two_hwmon_folders_the_one_with_values_is_taken(void **state)
{
    struct ttm_chip chip;
    (void)state;

    make_chip();
    tree_text(PCI "hwmon/hwmon1/temp1_input", "\n"); /* in the order of names before the other */
    tree_text(PCI "hwmon/hwmon1/in0_input", "812\n");
    read_chip(&chip);
    assert_sensor(&chip, TTM_SENSOR_TEMPERATURE_MC, 54312);
    assert_sensor(&chip, TTM_SENSOR_VOLTAGE_MV, 812);
}

static void link_speeds_are_generations(void **state)
{
    static const struct {
        const char *text;
        enum ttm_validity validity;
        uint64_t generation;
    } speeds[] = {
        {"2.5 GT/s PCIe\n", TTM_VALID, 1},   {"5.0 GT/s PCIe\n", TTM_VALID, 2},
        {"5 GT/s\n", TTM_VALID, 2},          {"8 GT/s\n", TTM_VALID, 3},
        {"32.0 GT/s PCIe\n", TTM_VALID, 5},  {"64.0 GT/s PCIe\n", TTM_VALID, 6},
        {"Unknown\n", TTM_IMPLAUSIBLE, 0},   {"16.0\n", TTM_IMPLAUSIBLE, 0},
        {"17.0 GT/s\n", TTM_IMPLAUSIBLE, 0}, {" GT/s\n", TTM_IMPLAUSIBLE, 0},
        {"2 GT/s\n", TTM_IMPLAUSIBLE, 0},    {"", TTM_IN_RESET, 0},
    };
    struct ttm_chip chip;
    (void)state;

    make_chip();
    for (size_t i = 0; i < COUNT_OF(speeds); i++) {
        tree_text(PCI "current_link_speed", speeds[i].text);
        read_chip(&chip);
        if (chip.link_gen.validity != speeds[i].validity ||
            chip.link_gen.number != speeds[i].generation)
            fail_msg("'%s' gave %d, %d", speeds[i].text, (int)chip.link_gen.validity,
                     (int)chip.link_gen.number);
    }
    tree_text(PCI "current_link_width", "63\n"); /* what a dead link shows */
    read_chip(&chip);
    assert_int_equal(chip.link_width.validity, TTM_IMPLAUSIBLE);
}

static void holders_are_told_once_with_their_open_files(void **state)
{
    struct ttm_chip chip;
    (void)state;

    make_chip();
    tree_text("/proc/driver/tenstorrent/3/pids", "0\n3999\n4242\n4242\n0\n");
    read_chip(&chip);
    assert_int_equal(chip.holders_validity, TTM_VALID);
    assert_int_equal(chip.holder_count, 2);
    assert_int_equal(chip.holders[0].pid, 3999);
    assert_int_equal(chip.holders[1].pid, 4242);
    assert_int_equal(chip.holders[1].fd_count, 2);
    assert_int_equal(chip.foreign_fd_count, 2);
    tree_text("/proc/driver/tenstorrent/3/pids", "");
    ttm_chip_read(root, &chip);
    assert_int_equal(chip.holders_validity, TTM_VALID);
    assert_int_equal(chip.holder_count + chip.foreign_fd_count, 0);
}

static void nonsense_among_the_holders_is_passed_over(void **state)
{
    struct ttm_chip chip;
    (void)state;

    make_chip();
    tree_text("/proc/driver/tenstorrent/3/pids",
              "-1\nx\n\n12 13\n99999999999999999999\n4294967296\n42\n77");
    read_chip(&chip);
    assert_int_equal(chip.holder_count, 1);
    assert_int_equal(chip.holders[0].pid, 42); /* 77 has no end: it may be 777 */
}

static void more_holders_than_there_is_room_for_are_left_out(void **state)
{
    char *text = malloc(200000);
    size_t length = 0;
    struct ttm_chip chip;
    (void)state;

    assert_non_null(text);
    for (int pid = 100000; pid < 120000; pid++)
        length += (size_t)sprintf(text + length, "%d\n", pid);
    make_chip();
    tree_bytes("/proc/driver/tenstorrent/3/pids", text, length);
    read_chip(&chip);
    assert_int_equal(chip.holder_count, TTM_CHIP_HOLDERS_MAX);
    free(text);
}

static void a_glance_reads_what_changes_all_the_time(void **state)
{
    struct ttm_chip chip;
    struct ttm_chip_files files = TTM_CHIP_FILES_NONE;
    (void)state;

    make_chip();
    tree_text("/proc/driver/tenstorrent/3/pids", "42\n");
    read_chip(&chip);
    assert_false(ttm_chip_glance(&files, root, &chip)); /* nothing is open */
    ttm_chip_files_open(&files, root, &chip);
    tree_text(HWMON "temp1_input", "61000\n");
    tree_text(HWMON "power1_input", "44000000\n");
    tree_text(HWMON "in0_input", "900\n");
    tree_text(CLASS "tt_aiclk", "1000\n");
    tree_text(CLASS "tt_heartbeat", "7018820\n");
    tree_text("/proc/driver/tenstorrent/3/pids", "43\n44\n");
    assert_true(ttm_chip_glance(&files, root, &chip));
    assert_sensor(&chip, TTM_SENSOR_TEMPERATURE_MC, 61000);
    assert_sensor(&chip, TTM_SENSOR_POWER_UW, 44000000);
    assert_sensor(&chip, TTM_SENSOR_AICLK_MHZ, 1000);
    assert_sensor(&chip, TTM_SENSOR_HEARTBEAT, 7018820);
    assert_sensor(&chip, TTM_SENSOR_VOLTAGE_MV, 795); /* waits for the whole reading */
    assert_int_equal(chip.holder_count, 2);
    assert_int_equal(chip.holders[0].pid, 43);
    assert_int_equal(chip.state, TTM_CHIP_OK);
    ttm_chip_files_close(&files);
    ttm_chip_files_close(&files);
}

static void a_glance_is_not_enough_when_the_chip_changes(void **state)
{
    struct ttm_chip chip;
    struct ttm_chip_files files = TTM_CHIP_FILES_NONE;
    (void)state;

    make_chip();
    read_chip(&chip);
    ttm_chip_files_open(&files, root, &chip);
    assert_true(ttm_chip_glance(&files, root, &chip)); /* also where nobody tells of holders */
    assert_int_equal(chip.holders_validity, TTM_ABSENT);
    tree_text(HWMON "power1_input", ""); /* in reset */
    assert_false(ttm_chip_glance(&files, root, &chip));
    tree_text(HWMON "power1_input", "1\n");
    read_chip(&chip);
    tree_remove(HWMON "temp1_input");
    tree_text(HWMON "temp1_input", "1\n"); /* another file */
    assert_false(ttm_chip_glance(&files, root, &chip));
    ttm_chip_files_open(&files, root, &chip);
    assert_true(ttm_chip_glance(&files, root, &chip));
    tree_remove(CLASS "device");
    assert_false(ttm_chip_glance(&files, root, &chip)); /* another card, or none */
    tree_remove("/sys/class");
    assert_false(ttm_chip_glance(&files, root, &chip));
    make_chip(); /* the card is back, in a folder of its own */
    assert_false(ttm_chip_glance(&files, root, &chip));
    chip.state = TTM_CHIP_REMOVED;
    ttm_chip_files_open(&files, root, &chip);
    assert_false(ttm_chip_glance(&files, root, &chip));
    ttm_chip_files_close(&files);
}

static void traffic_is_the_difference_and_wraps(void **state)
{
    struct ttm_chip chip;
    struct ttm_link_counters before;
    (void)state;

    make_chip();
    tree_text(CLASS "pcie_perf_counters/slv_posted_wr_data_word_received0", "4294967290\n");
    tree_text(CLASS "pcie_perf_counters/mst_rd_data_word_received1", "100\n");
    tree_text(CLASS "pcie_perf_counters/mst_posted_wr_data_word_sent1", "7\n");
    read_chip(&chip);
    before = chip.counters;
    tree_text(CLASS "pcie_perf_counters/slv_posted_wr_data_word_received0", "10\n");
    tree_text(CLASS "pcie_perf_counters/mst_rd_data_word_received1", "150\n");
    ttm_chip_read(root, &chip);
    assert_int_equal(ttm_link_traffic(&before, &chip.counters, TTM_INTO_CHIP).number, 16 + 50);
    assert_int_equal(ttm_link_traffic(&before, &chip.counters, TTM_OUT_OF_CHIP).validity,
                     TTM_VALID);
    assert_int_equal(ttm_link_traffic(&before, &chip.counters, TTM_OUT_OF_CHIP).number, 0);
    tree_remove(CLASS "pcie_perf_counters");
    ttm_chip_read(root, &chip);
    assert_int_equal(ttm_link_traffic(&before, &chip.counters, TTM_INTO_CHIP).validity, TTM_ABSENT);
}

/* A link of the fourth generation with so many lanes: 1.97 GB/s each. */
static struct ttm_chip make_link(uint64_t width, uint32_t words, uint64_t heartbeat)
{
    struct ttm_chip chip = {.link_gen = {TTM_VALID, 4}, .link_width = {TTM_VALID, width}};

    chip.counters.words[0] = (struct ttm_value){TTM_VALID, words};
    chip.counters.heartbeat = (struct ttm_value){TTM_VALID, heartbeat};
    return chip;
}

static void a_rate_is_told_where_it_can_be_true(void **state)
{
    const uint64_t second = 1000000000;
    const struct ttm_chip before = make_link(16, 100, 50);
    struct ttm_chip after = make_link(16, 100 + 4000000, 70);
    (void)state;

    assert_int_equal(ttm_link_capacity(&after), 31520000000);
    struct ttm_value rate = ttm_link_rate(&before.counters, &after, 2 * second, TTM_INTO_CHIP);
    assert_int_equal(rate.validity, TTM_VALID);
    assert_int_equal(rate.number, 64000000);
    /* The other way nothing was counted, which is not the same as nothing. */
    assert_int_equal(ttm_link_rate(&before.counters, &after, second, TTM_OUT_OF_CHIP).validity,
                     TTM_ABSENT);
    assert_int_equal(ttm_link_rate(&before.counters, &after, 0, TTM_INTO_CHIP).validity,
                     TTM_ABSENT);
    /* After 4.4 s such a link may have made a counter wrap twice; one of 4 lanes, after 17 s. */
    assert_in_range(ttm_link_unambiguous_ns(&after), 4 * second, 5 * second);
    assert_int_equal(ttm_link_rate(&before.counters, &after, 5 * second, TTM_INTO_CHIP).validity,
                     TTM_ABSENT);
    after = make_link(4, 100 + 4000000, 70);
    assert_int_equal(ttm_link_rate(&before.counters, &after, 5 * second, TTM_INTO_CHIP).number,
                     25600000);
    /* More than it can carry, as after a reset that nobody saw; and a reset that is seen. */
    after = make_link(4, 99, 70);
    assert_int_equal(ttm_link_rate(&before.counters, &after, second, TTM_INTO_CHIP).validity,
                     TTM_ABSENT);
    after = make_link(16, 4000, 3);
    assert_int_equal(ttm_link_rate(&before.counters, &after, second, TTM_INTO_CHIP).validity,
                     TTM_ABSENT);
    after = make_link(16, 4000, 70);
    after.link_width.validity = TTM_ABSENT;
    assert_int_equal(ttm_link_capacity(&after), 0);
    assert_int_equal(ttm_link_rate(&before.counters, &after, second, TTM_INTO_CHIP).validity,
                     TTM_ABSENT);
}

static void counters_are_read_without_the_rest(void **state)
{
    struct ttm_chip_files files = TTM_CHIP_FILES_NONE;
    struct ttm_chip chip;
    (void)state;

    make_chip();
    tree_text(CLASS "pcie_perf_counters/mst_rd_data_word_received0", "100\n");
    read_chip(&chip);
    ttm_chip_files_open(&files, root, &chip);
    tree_text(CLASS "pcie_perf_counters/mst_rd_data_word_received0", "300\n");
    assert_true(ttm_chip_glance(&files, root, &chip));
    assert_string_equal(ttm_link_counter_name(4), "mst_rd_data_word_received0");
    assert_int_equal(chip.counters.words[4].number, 100);
    ttm_chip_count(&files, &chip);
    assert_int_equal(chip.counters.words[4].number, 300);
    ttm_chip_files_close(&files);
}

static enum ttm_heartbeat_state beat(struct ttm_heartbeat *heartbeat, uint64_t value,
                                     uint64_t now_ns)
{
    const struct ttm_value read = {TTM_VALID, value};

    return ttm_heartbeat_take(heartbeat, read, now_ns);
}

static void a_heartbeat_is_not_known_before_two_seconds(void **state)
{
    struct ttm_heartbeat heartbeat = {0};
    (void)state;

    assert_int_equal(beat(&heartbeat, 10, 100 * S), TTM_HEARTBEAT_UNKNOWN);
    assert_int_equal(beat(&heartbeat, 20, 101 * S), TTM_HEARTBEAT_UNKNOWN);
    assert_int_equal(beat(&heartbeat, 30, 102 * S), TTM_HEARTBEAT_UNKNOWN);
    assert_int_equal(beat(&heartbeat, 40, 102 * S + 1), TTM_HEARTBEAT_OK);
}

static void a_heartbeat_that_stands_still_is_dead_until_it_goes_on(void **state)
{
    struct ttm_heartbeat heartbeat = {0};
    (void)state;

    assert_int_equal(beat(&heartbeat, 10, 100 * S), TTM_HEARTBEAT_UNKNOWN);
    assert_int_equal(beat(&heartbeat, 10, 103 * S), TTM_HEARTBEAT_DEAD);
    assert_int_equal(beat(&heartbeat, 11, 104 * S), TTM_HEARTBEAT_OK);
    assert_int_equal(beat(&heartbeat, 11, 105 * S), TTM_HEARTBEAT_OK);
    assert_int_equal(beat(&heartbeat, 11, 107 * S), TTM_HEARTBEAT_DEAD);
    assert_int_equal(beat(&heartbeat, 0, 108 * S), TTM_HEARTBEAT_OK); /* it wraps */
}

static void a_reset_begins_the_heartbeat_anew(void **state)
{
    const struct ttm_value none = {TTM_IN_RESET, 0};
    struct ttm_heartbeat heartbeat = {0};
    (void)state;

    (void)beat(&heartbeat, 10, 100 * S);
    assert_int_equal(beat(&heartbeat, 11, 103 * S), TTM_HEARTBEAT_OK);
    assert_int_equal(ttm_heartbeat_take(&heartbeat, none, 104 * S), TTM_HEARTBEAT_UNKNOWN);
    assert_int_equal(beat(&heartbeat, 11, 110 * S), TTM_HEARTBEAT_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(what_the_driver_tells_is_read),
        TREE_TEST(numbers_that_cannot_be_are_implausible),
        TREE_TEST(temperatures_of_drivers_before_1_34_are_put_right),
        TREE_TEST(a_new_firmware_is_seen_after_a_reset),
        TREE_TEST(a_chip_in_reset_keeps_its_identity),
        TREE_TEST(one_value_that_is_lost_is_no_reset),
        TREE_TEST(a_chip_that_has_gone_keeps_what_was_known),
        TREE_TEST(a_number_that_went_to_another_card_is_not_this_chip),
        TREE_TEST(an_old_driver_shows_less),
        TREE_TEST(a_board_is_told_by_its_serial_number_when_the_driver_does_not_know_it),
        TREE_TEST(an_architecture_is_told_by_hwmon_when_pci_does_not_tell),
        TREE_TEST(of_two_hwmon_folders_the_one_with_values_is_taken),
        TREE_TEST(link_speeds_are_generations),
        TREE_TEST(holders_are_told_once_with_their_open_files),
        TREE_TEST(nonsense_among_the_holders_is_passed_over),
        TREE_TEST(more_holders_than_there_is_room_for_are_left_out),
        TREE_TEST(a_glance_reads_what_changes_all_the_time),
        TREE_TEST(a_glance_is_not_enough_when_the_chip_changes),
        TREE_TEST(traffic_is_the_difference_and_wraps),
        TREE_TEST(a_rate_is_told_where_it_can_be_true),
        TREE_TEST(counters_are_read_without_the_rest),
        TREE_TEST(a_heartbeat_is_not_known_before_two_seconds),
        TREE_TEST(a_heartbeat_that_stands_still_is_dead_until_it_goes_on),
        TREE_TEST(a_reset_begins_the_heartbeat_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
