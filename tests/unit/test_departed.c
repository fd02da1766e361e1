/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "model/departed.h"
#include "wire/life_row.h"

static struct ttm_registry *reg;
static struct ttm_departed departed;

static int set_up(void **state)
{
    (void)state;
    reg = ttm_registry_new(0x5eed5eed5eed5eedull);
    assert_non_null(reg);
    ttm_departed_init(&departed, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_departed_done(&departed);
    ttm_registry_free(reg);
    return faults_pages_out() == 0 ? 0 : -1;
}

static struct ttm_process *new_process(int32_t pid, const char *command)
{
    struct ttm_process_info info = {.pid = pid};
    struct ttm_process *made = NULL;

    (void)snprintf(info.command, sizeof(info.command), "%s", command);
    assert_int_equal(ttm_registry_add_process(reg, &info, &made), 0);
    return made;
}

static void give_birth(struct ttm_process *to, uint32_t set, uint8_t region, uint64_t id,
                       uint64_t bytes)
{
    const struct ttm_birth birth = {
        .id = id,
        .bytes = bytes,
        .footprint_bytes = bytes + 10,
        .site = {.allocator = set, .device_set = set, .region = region},
    };

    assert_int_equal(ttm_registry_birth(reg, to, &birth, NULL), 0);
}

static void end(struct ttm_process *of, uint32_t allocator, uint8_t region, uint64_t id)
{
    struct ttm_ended ended;

    assert_int_equal(ttm_registry_end(reg, of, allocator, 1u << region, id, &ended), 0);
}

/* As the server does it. */
static void depart(struct ttm_process *process)
{
    struct ttm_departure departure;

    ttm_departed_add(&departed, reg, process, false);
    ttm_registry_end_process(reg, process, &departure);
}

static void what_a_process_did_outlives_it(void **state)
{
    struct ttm_process *process = new_process(7, "python decode.py");
    (void)state;

    process->counters.lost_events = 3;
    process->counters.replaced = 2;
    for (uint64_t id = 1; id <= 10; id++)
        give_birth(process, 0, TTM_REGION_DRAM, id, 100);
    for (uint64_t id = 1; id <= 4; id++)
        end(process, 0, TTM_REGION_DRAM, id);
    depart(process);

    assert_int_equal(departed.process_count, 1);
    const struct ttm_departed_process *p = &departed.processes[0];
    assert_int_equal(p->pid, 7);
    assert_string_equal(p->command, "python decode.py");
    assert_false(p->is_running);
    assert_int_equal(p->sums.births, 10);
    assert_int_equal(p->sums.ends, 4);
    assert_int_equal(p->sums.remaining, 6);
    assert_int_equal(p->sums.remaining_footprint_bytes, 660);
    assert_int_equal(p->sums.lost_events, 3);
    assert_int_equal(p->sums.replaced, 2);
    assert_memory_equal(&departed.sums, &p->sums, sizeof(p->sums));

    assert_int_equal(departed.device_count, 1);
    const struct ttm_totals *totals = &departed.devices[0].totals.region[TTM_REGION_DRAM];
    assert_int_equal(totals->count, 6);
    assert_int_equal(totals->footprint_bytes, 660);
    assert_int_equal(totals->peak_footprint_bytes, 1100);
    assert_int_equal(totals->births, 10);
    assert_int_equal(totals->ends, 4);
}

static void remains_that_are_alike_are_counted_together(void **state)
{
    struct ttm_process *one = new_process(1, "one"), *two = new_process(2, "two");
    (void)state;

    for (uint64_t id = 1; id <= 5; id++)
        give_birth(one, 0, TTM_REGION_L1, id, 64);
    give_birth(one, 0, TTM_REGION_DRAM, 6, 64); /* another region */
    give_birth(one, 1, TTM_REGION_L1, 7, 64);   /* another device */
    give_birth(two, 0, TTM_REGION_L1, 8, 64);   /* another process is no other kind */
    give_birth(two, 0, TTM_REGION_L1, 9, 65);   /* another size */
    depart(one);
    depart(two);

    assert_int_equal(departed.remains.count, 4);
    uint64_t counts[4];
    for (size_t i = 0; i < 4; i++)
        counts[i] = departed.remains.list[i].count;
    /* They come in the order of the store, which is that of their births here. */
    assert_int_equal(counts[0], 6);
    assert_int_equal(counts[1] + counts[2] + counts[3], 3);
    assert_int_equal(departed.sums.remaining, 9);
}

static void a_mesh_is_one_allocation_on_each_of_its_devices(void **state)
{
    struct ttm_process *process = new_process(1, "mesh");
    const uint16_t ids[] = {3, 1, 2, 0, 4, 5, 6, 7};
    uint32_t set;
    (void)state;

    assert_int_equal(ttm_registry_hold_set(reg, process, ids, 8, &set), 0);
    give_birth(process, set, TTM_REGION_L1, 1, 90);
    depart(process);

    assert_int_equal(departed.sums.births, 1);
    assert_int_equal(departed.sums.remaining, 1);
    assert_int_equal(departed.sums.remaining_footprint_bytes, 800);
    assert_int_equal(departed.device_count, 8);
    for (uint16_t i = 0; i < 8; i++) {
        assert_int_equal(departed.devices[i].id, i); /* ascending, whatever came first */
        assert_int_equal(departed.devices[i].totals.region[TTM_REGION_L1].count, 1);
    }
    assert_int_equal(departed.remains.list[0].device_count, 8);
    assert_int_equal(departed.remains.list[0].devices[TTM_REMAINS_DEVICES - 1], 5);
    assert_int_equal(departed.remains.list[0].last_device, 7);
}

static void what_remains_of_different_meshes_stays_apart_though_a_number_is_used_again(void **state)
{
    uint32_t first, second;
    (void)state;

    struct ttm_process *process = new_process(1, "one");
    assert_int_equal(ttm_registry_hold_set(reg, process, (uint16_t[]){0, 1}, 2, &first), 0);
    give_birth(process, first, TTM_REGION_L1, 1, 90);
    depart(process);
    process = new_process(2, "two");
    assert_int_equal(ttm_registry_hold_set(reg, process, (uint16_t[]){2, 3}, 2, &second), 0);
    assert_int_equal(second, first);
    give_birth(process, second, TTM_REGION_L1, 1, 90);
    depart(process);
    process = new_process(3, "three");
    assert_int_equal(ttm_registry_hold_set(reg, process, (uint16_t[]){0, 1}, 2, &first), 0);
    give_birth(process, first, TTM_REGION_L1, 1, 90);
    depart(process);

    assert_int_equal(departed.remains.count, 2);
    assert_int_equal(departed.remains.list[0].devices[0], 0);
    assert_int_equal(departed.remains.list[0].count, 2);
    assert_int_equal(departed.remains.list[1].devices[0], 2);
    assert_int_equal(departed.remains.list[1].count, 1);
}

static void a_mesh_that_cannot_be_kept_counts_among_the_others(void **state)
{
    struct ttm_process *process = new_process(1, "mesh");
    struct ttm_departure departure;
    uint32_t set;
    (void)state;

    assert_int_equal(ttm_registry_hold_set(reg, process, (uint16_t[]){0, 1}, 2, &set), 0);
    give_birth(process, set, TTM_REGION_L1, 1, 90);
    for (unsigned grants = 0; grants < 20; grants++) {
        struct ttm_departed short_one;
        ttm_departed_init(&short_one, 1);
        faults_begin(grants);
        ttm_departed_add(&short_one, reg, process, false);
        const bool has_failed = faults_end();
        if (!short_one.is_short) {
            assert_int_equal(short_one.remains.others + short_one.remains.count, 1);
            assert_true(has_failed || short_one.remains.count == 1);
        }
        if (short_one.remains.others > 0)
            assert_int_equal(short_one.remains.others_footprint_bytes, 200);
        ttm_departed_done(&short_one);
    }
    ttm_registry_end_process(reg, process, &departure);
}

/* Serials, as those have whose devices can be closed. */
static void give_birth_from(struct ttm_process *to, uint64_t serial, uint32_t origin,
                            uint64_t bytes, uint8_t flags)
{
    const struct ttm_birth birth = {
        .serial = serial,
        .id = serial,
        .bytes = bytes,
        .footprint_bytes = bytes + 10,
        .site = {.region = TTM_REGION_L1, .origin = origin, .flags = flags},
    };

    assert_int_equal(ttm_registry_birth(reg, to, &birth, NULL), 0);
}

static void end_as(struct ttm_process *of, uint64_t serial, enum ttm_end how)
{
    struct ttm_ended ended;

    assert_int_equal(ttm_registry_end_serial(reg, of, serial, how, &ended), 0);
}

static void what_only_a_closed_device_ended_remains(void **state)
{
    struct ttm_process *process = new_process(1, "closes");
    (void)state;

    process->has_serials = true;
    for (uint64_t serial = 1; serial <= 9; serial++)
        give_birth_from(process, serial, 0, 90, serial == 9 ? TTM_SITE_ALIAS : 0);
    for (uint64_t serial = 1; serial <= 4; serial++)
        end_as(process, serial, TTM_END_CLOSED);
    end_as(process, 5, TTM_END_FREED);
    end_as(process, 6, TTM_END_REPLACED);
    end_as(process, 9, TTM_END_CLOSED); /* a view, which owns nothing */
    depart(process);

    assert_int_equal(departed.sums.births, 8);
    assert_int_equal(departed.sums.ends, 1);
    assert_int_equal(departed.sums.remaining, 6); /* four closed, two alive */
    assert_int_equal(departed.sums.closed, 4);
    assert_int_equal(departed.sums.remaining_footprint_bytes, 600);
    assert_int_equal(departed.remains.count, 1);
    assert_int_equal(departed.remains.list[0].count, 6);
    const struct ttm_totals *totals = &departed.devices[0].totals.region[TTM_REGION_L1];
    assert_int_equal(totals->footprint_bytes, 200);
    assert_int_equal(totals->closed_count, 4);
    assert_int_equal(totals->closed_footprint_bytes, 400);
}

static void remains_carry_their_origin(void **state)
{
    static const char *const python[] = {"a.py:1:f\nb.py:2:g", "a.py:1:f\nc.py:3:h", "d.py:4:i"};
    (void)state;

    for (int32_t pid = 1; pid <= 2; pid++) {
        struct ttm_process *process = new_process(pid, "one of two");
        process->has_serials = true;
        for (uint32_t i = 0; i < 3; i++) {
            /* Each process has numbers of its own. */
            const struct ttm_origin origin = {.number = (uint32_t)pid * 1000 + i,
                                              .text = {"", "", "", "ttnn.add", python[i], ""}};
            assert_int_equal(ttm_origin_table_add(&process->origins, &origin), 0);
            give_birth_from(process, i + 1, origin.number, 90, 0);
        }
        give_birth_from(process, 4, 4711, 90, 0); /* nothing is known of that one */
        end_as(process, 1, TTM_END_CLOSED);
        depart(process);
    }

    assert_int_equal(departed.origins.count, 2); /* the way to a line does not matter here */
    assert_int_equal(departed.remains.count, 3);
    uint64_t counts[3] = {0};
    for (uint32_t i = 0; i < 3; i++)
        counts[departed.remains.list[i].origin] = departed.remains.list[i].count;
    assert_int_equal(counts[0], 2);
    for (uint32_t n = 1; n <= 2; n++) {
        const bool is_first =
            strcmp(ttm_origin_book_get(&departed.origins, n)->place, "a.py:1:f") == 0;
        assert_int_equal(counts[n], is_first ? 4 : 2);
    }
}

static void failures_are_counted(void **state)
{
    struct ttm_process *process = new_process(1, "fails");
    const struct ttm_failure_row failure = {.region = TTM_REGION_L1};
    (void)state;

    for (uint32_t i = 0; i < 3 * TTM_FAILURES_MAX; i++)
        assert_int_equal(ttm_story_add_failure(&process->story, &failure), 0);
    depart(process);
    assert_int_equal(departed.sums.failures, 3 * TTM_FAILURES_MAX);
}

static void peaks_are_of_all_processes_together(void **state)
{
    struct ttm_process *one = new_process(1, "one"), *two = new_process(2, "two");
    (void)state;

    give_birth(one, 0, TTM_REGION_DRAM, 1, 90);
    give_birth(two, 0, TTM_REGION_DRAM, 1, 190);
    end(one, 0, TTM_REGION_DRAM, 1);
    depart(one);
    end(two, 0, TTM_REGION_DRAM, 1);
    depart(two); /* and with it the device */
    struct ttm_process *three = new_process(3, "three");
    give_birth(three, 0, TTM_REGION_DRAM, 1, 40);
    depart(three);

    const struct ttm_totals *totals = &departed.devices[0].totals.region[TTM_REGION_DRAM];
    assert_int_equal(totals->peak_footprint_bytes, 300);
    assert_int_equal(totals->births, 3);
    assert_int_equal(totals->footprint_bytes, 50);
}

static void a_view_of_memory_counts_nowhere(void **state)
{
    struct ttm_process *process = new_process(1, "view");
    const struct ttm_birth view = {
        .id = 1,
        .bytes = 64,
        .footprint_bytes = 64,
        .site = {.region = TTM_REGION_L1, .flags = TTM_SITE_ALIAS},
    };
    (void)state;

    assert_int_equal(ttm_registry_birth(reg, process, &view, NULL), 0);
    depart(process);
    assert_int_equal(departed.sums.births, 0);
    assert_int_equal(departed.sums.remaining, 0);
    assert_int_equal(departed.remains.count, 0);
}

static void one_that_is_running_is_left_as_it_is(void **state)
{
    struct ttm_process *process = new_process(1, "daemon");
    (void)state;

    give_birth(process, 0, TTM_REGION_L1, 1, 64);
    ttm_departed_add(&departed, reg, process, true);
    assert_int_equal(departed.running_count, 1);
    assert_true(departed.processes[0].is_running);
    assert_int_equal(departed.sums.remaining, 1);
    assert_int_equal(reg->lives, 1);
    end(process, 0, TTM_REGION_L1, 1);
}

static void circular_buffers_go_with_their_process(void **state)
{
    struct ttm_process *first = new_process(1, "killed"), *second = new_process(2, "daemon");
    (void)state;

    give_birth(first, 0, TTM_REGION_CB, 1, 54);
    give_birth(first, 0, TTM_REGION_L1, 1, 54);
    first->devices[0].totals.cb = (struct ttm_cb_totals){.resident_bytes = 64};
    depart(first);
    const struct ttm_device_totals *totals = &departed.devices[0].totals;
    assert_int_equal(totals->cb.resident_bytes, 0);
    assert_int_equal(totals->region[TTM_REGION_CB].footprint_bytes, 0);
    assert_int_equal(totals->region[TTM_REGION_CB].closed_footprint_bytes, 64);
    assert_int_equal(totals->region[TTM_REGION_L1].footprint_bytes, 64);
    assert_int_equal(departed.sums.remaining, 2);

    give_birth(second, 0, TTM_REGION_CB, 1, 22);
    second->devices[0].totals.cb = (struct ttm_cb_totals){.resident_bytes = 32};
    ttm_departed_add(&departed, reg, second, true);
    totals = &departed.devices[0].totals;
    assert_int_equal(totals->cb.resident_bytes, 32);
    assert_int_equal(totals->region[TTM_REGION_CB].footprint_bytes, 32);
    end(second, 0, TTM_REGION_CB, 1);
}

static void one_that_ended_with_losses_is_not_exact(void **state)
{
    struct ttm_process *process = new_process(1, "lossy");
    (void)state;

    process->counters.lost_events = 5;
    process->counters.is_inexact = true;
    depart(process);
    assert_int_equal(departed.inexact_count, 1);
}

static void what_was_missed_is_remembered(void **state)
{
    struct ttm_process *process = new_process(1, "gap");
    (void)state;

    process->counters.has_gap = true;
    memcpy(process->runtime, "ttnn", 5);
    depart(process);
    assert_int_equal(departed.gap_count, 1);
    assert_true(ttm_departed_has_missed(&departed));
    assert_false(ttm_departed_is_inexact(&departed)); /* it was asked what is live */
    process = new_process(2, "full");                 /* nothing of it was tracked */
    process->counters.untracked = 5;
    process->counters.refused = 1;
    process->counters.senseless = 2;
    process->counters.notes_left_out = 7;
    depart(process);
    assert_int_equal(departed.process_count, 2);
    assert_int_equal(departed.sums.untracked, 5);
    assert_int_equal(departed.sums.refused, 3);
    assert_int_equal(departed.sums.notes_left_out, 7);
    assert_true(ttm_departed_is_inexact(&departed));
}

static void one_that_ended_with_tracking_off_is_not_exact(void **state)
{
    struct ttm_process *process = new_process(1, "off");
    (void)state;

    process->counters.is_disabled = true;
    memcpy(process->runtime, "ttnn", 5);
    depart(process);
    assert_int_equal(departed.off_count, 1);
    assert_true(ttm_departed_is_inexact(&departed));
}

static void one_that_never_did_anything_is_left_out(void **state)
{
    struct ttm_process *process = new_process(1, "true");
    (void)state;

    ttm_departed_add(&departed, reg, process, false);
    assert_int_equal(departed.process_count, 0);
    assert_null(ttm_departed_trouble(&departed));
    assert_false(ttm_departed_has_news(&departed));
    (void)snprintf(process->trouble, sizeof(process->trouble), "ttnn is too old");
    ttm_departed_add(&departed, reg, process, false); /* but what is wrong is told */
    assert_int_equal(departed.process_count, 1);
    assert_string_equal(ttm_departed_trouble(&departed), "ttnn is too old");
    assert_false(ttm_departed_has_news(&departed));
    give_birth(process, 0, TTM_REGION_DRAM, 1, 100);
    ttm_departed_add(&departed, reg, process, false);
    assert_true(ttm_departed_has_news(&departed));
}

static void one_with_tt_metal_and_no_device_is_left_out_but_for_what_became_of_it(void **state)
{
    struct ttm_process *process = new_process(1, "import");
    (void)state;

    (void)snprintf(process->runtime, sizeof(process->runtime), "ttnn 0.81.1");
    ttm_departed_add(&departed, reg, process, false);
    assert_false(ttm_departed_has_news(&departed));
    assert_string_equal(departed.runtime, "ttnn 0.81.1");
    assert_string_equal(departed.opening, "");
    (void)snprintf(process->opening, sizeof(process->opening), "opening a device failed");
    (void)snprintf(process->trouble, sizeof(process->trouble), "it is tracked in part");
    ttm_departed_add(&departed, reg, process, false);
    assert_false(ttm_departed_has_news(&departed));
    assert_string_equal(departed.opening, "opening a device failed");
    give_birth(process, 0, TTM_REGION_DRAM, 1, 100); /* by libttmem itself: it has news */
    ttm_departed_add(&departed, reg, process, false);
    assert_true(ttm_departed_has_news(&departed));
}

static void what_ended_with_its_device_remained_too(void **state)
{
    struct ttm_process *one = new_process(1, "one"), *two = new_process(2, "two");
    (void)state;

    one->has_serials = two->has_serials = true;
    for (uint64_t serial = 1; serial <= 5; serial++) {
        give_birth_from(one, serial, 0, 90, 0);
        give_birth_from(two, serial, 0, 90, 0);
    }
    for (uint64_t serial = 1; serial <= 3; serial++)
        end_as(one, serial, TTM_END_CLOSED);
    end_as(two, 1, TTM_END_CLOSED);
    depart(two);
    depart(one);

    assert_int_equal(departed.processes[0].sums.remaining, 5); /* of them 1 closed */
    assert_int_equal(departed.processes[1].sums.remaining, 5); /* 3 */
    assert_int_equal(departed.sums.remaining_footprint_bytes, 1000);
    assert_int_equal(departed.sums.ends, 0);
    assert_int_equal(departed.sums.closed, 4);
    assert_int_equal(departed.remains.count, 1);
    assert_int_equal(departed.remains.list[0].count, 10);
    const struct ttm_totals *totals = &departed.devices[0].totals.region[TTM_REGION_L1];
    assert_int_equal(totals->footprint_bytes + totals->closed_footprint_bytes, 1000);
}

static void parts_of_programs_are_in_the_sums_alone(void **state)
{
    struct ttm_process *process = new_process(1, "cache");
    (void)state;

    process->has_serials = true;
    give_birth_from(process, 1, 0, 90, TTM_SITE_PROGRAM);
    give_birth_from(process, 2, 0, 90, TTM_SITE_PROGRAM);
    give_birth_from(process, 3, 0, 90, 0);
    give_birth_from(process, 4, 0, 90, 0);
    end_as(process, 1, TTM_END_CLOSED);
    end_as(process, 3, TTM_END_CLOSED);
    depart(process);
    assert_int_equal(departed.sums.remaining, 4);
    assert_int_equal(departed.sums.remaining_footprint_bytes, 400);
    assert_int_equal(departed.sums.program_parts, 2); /* one closed, one alive */
    assert_int_equal(departed.sums.program_footprint_bytes, 200);
    assert_int_equal(departed.sums.closed, 1);
    assert_int_equal(departed.remains.count, 1);
    assert_int_equal(departed.remains.list[0].count, 2);
}

static void buffers_that_programs_keep_are_counted_apart(void **state)
{
    struct ttm_process *process = new_process(1, "cache");
    struct ttm_birth birth = {.bytes = 90, .footprint_bytes = 100};
    (void)state;

    process->has_serials = true;
    birth.site.region = TTM_REGION_DRAM;
    birth.site.kind = TTM_BUFFER_OF_PROGRAM;
    for (birth.serial = 1; birth.serial <= 3; birth.serial++) {
        birth.id = birth.serial;
        assert_int_equal(ttm_registry_birth(reg, process, &birth, NULL), 0);
    }
    give_birth_from(process, 4, 0, 90, TTM_SITE_PROGRAM);
    give_birth_from(process, 5, 0, 90, 0);
    end_as(process, 1, TTM_END_CLOSED);
    depart(process);
    assert_int_equal(departed.sums.remaining, 5);
    assert_int_equal(departed.sums.program_parts, 4);
    assert_int_equal(departed.sums.program_buffers, 3); /* one closed, two alive */
    assert_int_equal(departed.sums.program_footprint_bytes, 400);
    assert_int_equal(departed.remains.count, 1);
    assert_int_equal(departed.remains.list[0].count, 1);
}

static void add_origin(struct ttm_process *process, uint32_t number, const char *name,
                       const char *thread)
{
    struct ttm_origin origin = {.number = number};

    for (unsigned i = 0; i < TTM_ORIGIN_TEXTS; i++)
        origin.text[i] = "";
    origin.text[TTM_ORIGIN_NAME] = name;
    origin.text[TTM_ORIGIN_THREAD] = thread;
    assert_int_equal(ttm_origin_table_add(&process->origins, &origin), 0);
}

static void origins_that_say_the_same_are_one_whoever_numbered_them(void **state)
{
    struct ttm_process *one = new_process(1, "one"), *two = new_process(2, "two");
    (void)state;

    one->has_serials = two->has_serials = true;
    add_origin(one, 7, "weights", "main");
    add_origin(one, 8, "cache", "main");
    add_origin(two, 3, "weights", "worker");
    give_birth_from(one, 1, 7, 90, 0);
    give_birth_from(one, 2, 8, 90, 0);
    give_birth_from(two, 1, 3, 90, 0);
    give_birth_from(two, 2, 99, 90, 0); /* one that was never told */
    depart(one);
    depart(two);
    assert_int_equal(departed.remains.count, 3);
    const char *const expected[] = {"weights", "cache", NULL};
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t origin = departed.remains.list[i].origin;
        if (!expected[i])
            assert_int_equal(origin, 0);
        else
            assert_string_equal(ttm_origin_book_get(&departed.origins, origin)->name, expected[i]);
    }
    assert_int_equal(departed.remains.list[0].count, 2);
}

static void over_the_bounds_only_sums_are_kept(void **state)
{
    struct ttm_process *process = new_process(1, "many kinds");
    (void)state;

    for (uint64_t id = 1; id <= TTM_REMAINS_MAX + 5; id++)
        give_birth(process, 0, TTM_REGION_DRAM, id, id);
    depart(process);
    for (int32_t pid = 2; pid <= TTM_DEPARTED_PROCESSES_MAX + 3; pid++) {
        struct ttm_process *other = new_process(pid, "one of many");
        give_birth(other, 0, TTM_REGION_DRAM, 1, 1);
        depart(other);
    }

    assert_int_equal(departed.remains.count, TTM_REMAINS_MAX);
    assert_int_equal(departed.remains.others, 5);
    uint64_t bytes = departed.remains.others_footprint_bytes, count = departed.remains.others;
    for (uint32_t i = 0; i < departed.remains.count; i++) {
        count += departed.remains.list[i].count;
        bytes += departed.remains.list[i].count * departed.remains.list[i].footprint_bytes;
    }
    assert_int_equal(count, departed.sums.remaining);
    assert_int_equal(bytes, departed.sums.remaining_footprint_bytes);
    assert_int_equal(departed.process_count, TTM_DEPARTED_PROCESSES_MAX);
    assert_int_equal(departed.processes_left_out, 3);
}

static void when_memory_is_short_the_sums_still_hold(void **state)
{
    (void)state;
    for (unsigned grants = 0;; grants++) {
        struct ttm_process *process = new_process(1, "short");
        give_birth(process, 0, TTM_REGION_DRAM, 1, 90);
        give_birth(process, 0, TTM_REGION_DRAM, 2, 190);
        faults_begin(grants);
        ttm_departed_add(&departed, reg, process, false);
        const bool has_failed = faults_end();
        struct ttm_departure departure;
        ttm_registry_end_process(reg, process, &departure);
        assert_int_equal(departed.sums.births, 2);
        if (has_failed) /* then either it is said, or it is in the sums of what was left out */
            assert_true(departed.is_short || departed.processes_left_out == 1 ||
                        departed.remains.others > 0);
        else
            assert_int_equal(departed.sums.remaining, 2);
        ttm_departed_done(&departed);
        if (!has_failed)
            return;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_a_process_did_outlives_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(remains_that_are_alike_are_counted_together, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            what_remains_of_different_meshes_stays_apart_though_a_number_is_used_again, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(a_mesh_that_cannot_be_kept_counts_among_the_others, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_mesh_is_one_allocation_on_each_of_its_devices, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_only_a_closed_device_ended_remains, set_up, tear_down),
        cmocka_unit_test_setup_teardown(remains_carry_their_origin, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failures_are_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(peaks_are_of_all_processes_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_view_of_memory_counts_nowhere, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_is_running_is_left_as_it_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(circular_buffers_go_with_their_process, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_ended_with_losses_is_not_exact, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_missed_is_remembered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_ended_with_tracking_off_is_not_exact, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(one_that_never_did_anything_is_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            one_with_tt_metal_and_no_device_is_left_out_but_for_what_became_of_it, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(what_ended_with_its_device_remained_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parts_of_programs_are_in_the_sums_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(buffers_that_programs_keep_are_counted_apart, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(origins_that_say_the_same_are_one_whoever_numbered_them,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(over_the_bounds_only_sums_are_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(when_memory_is_short_the_sums_still_hold, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
