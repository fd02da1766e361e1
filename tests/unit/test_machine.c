/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "cli/machine.h"

#define N300_SERIAL 0x010001451172208full
#define N150_SERIAL 0x0001018511732079ull

/* Filled by each test, then joined. */
static struct ttm_machine machine;
static struct ttm_telemetry_chip chips[8];
static struct ttm_upstream_file files[4];
static struct ttm_device_row rows[8];
static struct ttm_answer_process processes[4];

static int set_up(void **state)
{
    (void)state;
    memset(&machine, 0, sizeof(machine));
    memset(chips, 0, sizeof(chips));
    memset(files, 0, sizeof(files));
    memset(rows, 0, sizeof(rows));
    memset(processes, 0, sizeof(processes));
    machine.telemetry.chips = chips;
    machine.upstream.files = files;
    return 0;
}

/* Nothing of it but the devices is on the heap. */
static int tear_down(void **state)
{
    (void)state;
    free(machine.devices);
    return 0;
}

static struct ttm_chip *add_chip(unsigned number, int metal_id, const char *board)
{
    struct ttm_telemetry_chip *chip = &chips[machine.telemetry.count++];

    chip->metal_id = metal_id;
    chip->chip.number = number;
    chip->chip.arch = "wormhole_b0";
    (void)snprintf(chip->chip.board, sizeof(chip->chip.board), "%s", board);
    return &chip->chip;
}

static struct ttm_upstream_file *add_file(uint64_t unique_id, int device_id, int32_t pid,
                                          uint64_t bytes)
{
    struct ttm_upstream_file *file = &files[machine.upstream.count++];

    file->unique_id = unique_id;
    file->device_id = device_id;
    file->process_count = 1;
    file->processes[0].pid = pid;
    file->processes[0].totals.bytes[TTM_UPSTREAM_DRAM] = bytes;
    return file;
}

/* A server that knows the devices of the rows so far, and one process. */
static void add_server(size_t row_count, int32_t pid)
{
    struct ttm_answer *answer = &machine.answers[machine.answer_count++];

    answer->devices = rows;
    answer->device_count = row_count;
    answer->processes = processes;
    answer->process_count = 1;
    processes[0].row.pid = pid;
}

static uint64_t dram_of(unsigned id)
{
    const struct ttm_machine_device *device = ttm_machine_by_id(&machine, id);

    assert_non_null(device);
    assert_true(device->regions[TTM_REGION_DRAM].is_known);
    return device->regions[TTM_REGION_DRAM].bytes;
}

static void remote_chips_follow_all_others(void **state)
{
    (void)state;

    add_chip(0, 2, "n300");
    add_chip(1, 0, "p150a");
    add_chip(5, 1, "n300");
    assert_int_equal(ttm_machine_join(&machine), 0);
    assert_int_equal(machine.device_count, 5);
    /* By address the card 5 comes before the card 0, so its second chip does too. */
    assert_int_equal(machine.devices[3].id, 6);
    assert_int_equal(machine.devices[3].metal_id, 3);
    assert_true(machine.devices[3].is_remote);
    assert_int_equal(machine.devices[3].chip->chip.number, 5);
    assert_int_equal(machine.devices[4].id, 7);
    assert_int_equal(machine.devices[4].metal_id, 4);
    assert_int_equal(machine.devices[4].chip->chip.number, 0);
    assert_int_equal(machine.devices[4].capacity_bytes[TTM_REGION_DRAM], 12ull << 30);
}

/* The server was told of a Blackhole, which has gone; its number is a Wormhole's by now. */
static void what_is_told_of_another_chip_is_not_taken_for_this_one(void **state)
{
    (void)state;

    add_chip(0, 0, "n150");
    rows[0].arch = TTM_ARCH_BLACKHOLE;
    rows[0].capacity_bytes[TTM_REGION_DRAM] = 77;
    rows[0].bank_count[TTM_REGION_L1] = 10;
    rows[0].totals.region[TTM_REGION_DRAM].bytes = 5;
    add_server(1, 4242);
    assert_int_equal(ttm_machine_join(&machine), 0);
    assert_true(ttm_machine_is_other(&machine.devices[0], &rows[0]));
    assert_string_equal(machine.devices[0].arch, "wormhole_b0");
    assert_int_equal(machine.devices[0].capacity_bytes[TTM_REGION_DRAM], 12ull << 30);
    assert_int_equal(machine.devices[0].l1_reserved_bytes, 0);
    assert_int_equal(dram_of(0), 5); /* somebody has it */
}

static void what_no_program_gets_of_l1_is_reserved(void **state)
{
    (void)state;

    rows[0].arch = TTM_ARCH_WORMHOLE_B0;
    rows[0].bank_count[TTM_REGION_L1] = 64;
    rows[0].capacity_bytes[TTM_REGION_L1] = 64 * 1300 * 1024;
    rows[0].capacity_bytes[TTM_REGION_L1_SMALL] = 64 * 32 * 1024;
    rows[1].id = 1; /* one that has told nothing */
    add_server(2, 4242);
    assert_int_equal(ttm_machine_join(&machine), 0);
    assert_int_equal(machine.devices[0].l1_reserved_bytes, 64 * (1464 - 1300 - 32) * 1024);
    assert_int_equal(machine.devices[1].l1_reserved_bytes, 0);
}

static void circular_buffers_take_what_is_resident(void **state)
{
    (void)state;

    rows[0].totals.region[TTM_REGION_CB].bytes = 900;
    rows[0].totals.region[TTM_REGION_CB].footprint_bytes = 1000;
    rows[0].totals.cb.resident_bytes = 300;
    rows[0].totals.cb.registered_bytes = 400;
    rows[0].totals.region[TTM_REGION_L1].footprint_bytes = 50;
    add_server(1, 4242);
    assert_int_equal(ttm_machine_join(&machine), 0);
    const struct ttm_usage *cb = &machine.devices[0].regions[TTM_REGION_CB];
    assert_int_equal(cb->used_bytes, 300);
    assert_int_equal(cb->registered_bytes, 400);
    assert_int_equal(cb->bytes, 900);
    assert_int_equal(machine.devices[0].regions[TTM_REGION_L1].used_bytes, 50);
    assert_int_equal(machine.devices[0].regions[TTM_REGION_L1].registered_bytes, 0);
}

static void a_removed_card_has_no_remote_chip_and_no_number_of_metals(void **state)
{
    (void)state;

    add_chip(0, -1, "n300");
    add_chip(1, 0, "p150a");
    assert_int_equal(ttm_machine_join(&machine), 0);
    assert_int_equal(machine.device_count, 2);
    assert_int_equal(machine.devices[0].metal_id, -1);
}

static void a_servers_devices_are_joined_by_metals_number(void **state)
{
    (void)state;

    add_chip(0, 1, "p150a");
    add_chip(1, 0, "unheard-of");
    rows[0].id = 0;
    rows[0].totals.region[TTM_REGION_DRAM].bytes = 100;
    rows[0].capacity_bytes[TTM_REGION_DRAM] = 5000; /* a program has told */
    rows[1].id = 7;
    rows[1].arch = TTM_ARCH_BLACKHOLE;
    rows[1].totals.region[TTM_REGION_DRAM].bytes = 300;
    add_server(2, 10);
    assert_int_equal(ttm_machine_join(&machine), 0);
    assert_int_equal(machine.device_count, 3);
    assert_int_equal(dram_of(0), 0);
    assert_int_equal(dram_of(1), 100);
    assert_int_equal(ttm_machine_by_id(&machine, 1)->capacity_bytes[TTM_REGION_DRAM], 5000);
    assert_int_equal(dram_of(7), 300);
    assert_null(ttm_machine_by_id(&machine, 7)->chip);
    assert_string_equal(ttm_machine_by_id(&machine, 7)->arch, "blackhole");
}

static void several_servers_are_added_up(void **state)
{
    (void)state;

    rows[0].id = 3;
    rows[0].totals.region[TTM_REGION_DRAM].bytes = 100;
    add_server(1, 10);
    add_server(1, 11);
    assert_int_equal(ttm_machine_join(&machine), 0);
    assert_int_equal(machine.device_count, 1);
    assert_int_equal(dram_of(3), 200);
}

static void without_any_server_nothing_is_known(void **state)
{
    (void)state;

    add_chip(0, 0, "p150a");
    assert_int_equal(ttm_machine_join(&machine), 0);
    assert_false(machine.devices[0].regions[TTM_REGION_DRAM].is_known);
    assert_false(machine.devices[0].regions[TTM_REGION_DRAM].has_footprint);
}

/* Every way in which the runtime has named files. */
static void a_file_is_matched_to_its_chip(void **state)
{
    static const struct {
        uint64_t unique_id;
        int id; /* of the device, -1: none */
    } names[] = {
        {0xf5ddd9f78d7e0bee, 1},     /* the ASIC id of a Blackhole */
        {N150_SERIAL, 2},            /* the serial number */
        {N150_SERIAL * 32 + 5, 2},   /* with the place on the board */
        {N150_SERIAL * 2 + 1, 2},    /* as it was before */
        {(N150_SERIAL << 8) | 1, 2}, /* and before that */
        {9956368527ull, 0},          /* n300, the chip with PCIe */
        {14251335823ull, 3},         /* n300, the other */
        {N300_SERIAL, -1},           /* n300, and nobody can tell which chip */
        {0, -1},                     /* simulated */
        {9000000000ull, -1},         /* simulated */
        {9956368528ull, -1},         /* another card's */
        {UINT64_MAX, -1},
    };
    (void)state;

    struct ttm_chip *n300 = add_chip(0, 1, "n300");
    n300->board_id = (struct ttm_value){TTM_VALID, N300_SERIAL};
    struct ttm_chip *p150a = add_chip(1, 0, "p150a");
    p150a->board_id = (struct ttm_value){TTM_VALID, 0x0000040331914049};
    p150a->asic_id = (struct ttm_value){TTM_VALID, 0xf5ddd9f78d7e0bee};
    add_chip(2, 2, "n150")->board_id = (struct ttm_value){TTM_VALID, N150_SERIAL};
    assert_int_equal(ttm_machine_join(&machine), 0);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct ttm_upstream_file file = {.unique_id = names[i].unique_id, .device_id = 99};
        const struct ttm_machine_device *device = ttm_machine_of_file(&machine, &file);
        const int id = device ? (int)device->id : -1;
        if (id != names[i].id)
            fail_msg("%llx is of %d, not %d", (unsigned long long)names[i].unique_id, id,
                     names[i].id);
    }
}

static void of_chips_on_one_board_the_programs_number_decides(void **state)
{
    (void)state;

    for (unsigned i = 0; i < 2; i++)
        add_chip(i, (int)i, "p300c")->board_id = (struct ttm_value){TTM_VALID, 0x46ull << 36};
    assert_int_equal(ttm_machine_join(&machine), 0);
    struct ttm_upstream_file file = {.unique_id = (0x46ull << 36) * 32 + 1, .device_id = 1};
    assert_int_equal(ttm_machine_of_file(&machine, &file)->id, 1);
    file.device_id = 5; /* it is one of two, and nobody can tell which */
    assert_null(ttm_machine_of_file(&machine, &file));
}

static void the_runtime_is_believed_only_for_living_processes_that_nobody_tracks(void **state)
{
    (void)state;

    add_chip(0, 0, "n300")->board_id = (struct ttm_value){TTM_VALID, N300_SERIAL};
    rows[0].id = 0;
    rows[0].totals.region[TTM_REGION_DRAM].bytes = 1000;
    add_server(1, 10);
    struct ttm_upstream_file *file = add_file(N300_SERIAL, 0, 10, 1); /* tracked */
    file->process_count = 3;
    file->processes[1] = file->processes[0];
    file->processes[1].pid = 11;
    file->processes[1].totals.bytes[TTM_UPSTREAM_DRAM] = 20;
    file->processes[2] = file->processes[1];
    file->processes[2].pid = 12;
    file->processes[2].is_stale = true;
    assert_int_equal(ttm_machine_join(&machine), 0);
    assert_int_equal(dram_of(0), 1020);
    assert_int_equal(machine.devices[0].regions[TTM_REGION_DRAM].runtime_bytes, 20);
    assert_false(machine.devices[0].regions[TTM_REGION_DRAM].has_footprint);
    assert_true(machine.devices[0].regions[TTM_REGION_L1].has_footprint); /* of nothing */
}

static void without_cards_the_runtimes_devices_are_simulated_ones(void **state)
{
    (void)state;

    add_file(9000000003, 3, 10, 5);
    add_file(9000000004, -4, 10, 5);
    add_file(9000000005, 5000, 10, 5);
    add_file(9000000006, 6, 10, 5)->processes[0].is_stale = true;
    assert_int_equal(ttm_machine_join(&machine), 0);
    assert_int_equal(machine.device_count, 1);
    assert_int_equal(dram_of(3), 5);
}

static void short_memory_is_told_and_leaks_nothing(void **state)
{
    bool has_failed = true;
    (void)state;

    for (unsigned i = 0; i < 5; i++)
        add_chip(i, (int)i, "n300");
    for (unsigned grants = 0; has_failed; grants++) {
        assert_in_range(grants, 0, 100);
        free(machine.devices);
        machine.devices = NULL;
        machine.device_count = 0;
        faults_begin(grants);
        const int r = ttm_machine_join(&machine);
        has_failed = faults_end();
        assert_int_equal(r, has_failed ? -ENOMEM : 0);
    }
    assert_int_equal(machine.device_count, 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(remote_chips_follow_all_others),
        TEST(what_is_told_of_another_chip_is_not_taken_for_this_one),
        TEST(what_no_program_gets_of_l1_is_reserved),
        TEST(circular_buffers_take_what_is_resident),
        TEST(a_removed_card_has_no_remote_chip_and_no_number_of_metals),
        TEST(a_servers_devices_are_joined_by_metals_number),
        TEST(several_servers_are_added_up),
        TEST(without_any_server_nothing_is_known),
        TEST(a_file_is_matched_to_its_chip),
        TEST(of_chips_on_one_board_the_programs_number_decides),
        TEST(the_runtime_is_believed_only_for_living_processes_that_nobody_tracks),
        TEST(without_cards_the_runtimes_devices_are_simulated_ones),
        TEST(short_memory_is_told_and_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
