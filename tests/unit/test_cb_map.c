/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "model/cb_map.h"

static struct ttm_cb_map map;
static struct ttm_device_sets sets;

static int set_up(void **state)
{
    (void)state;
    ttm_cb_map_init(&map, 0x5eed);
    ttm_device_sets_init(&sets, 0x5eed);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_cb_map_done(&map);
    ttm_device_sets_done(&sets);
    return 0;
}

static uint32_t cores(uint32_t note, struct ttm_core_range range)
{
    const int r = ttm_cb_map_add_cores(&map, note, &range, 1);

    assert_true(r >= 0);
    return (uint32_t)r;
}

static void add(uint64_t serial, uint64_t program, uint64_t address, uint64_t bytes,
                uint32_t core_set, uint32_t device_set)
{
    const struct ttm_cb cb = {.serial = serial,
                              .program = program,
                              .address = address,
                              .core_bytes = bytes,
                              .core_set = core_set,
                              .device_set = device_set};

    assert_int_equal(ttm_cb_map_add(&map, &cb), 0);
}

static void assert_sums(uint16_t device, const uint64_t *programs, uint32_t count,
                        uint64_t registered, uint64_t resident)
{
    struct ttm_cb_sums sums;

    assert_int_equal(ttm_cb_map_sum(&map, &sets, device, programs, count, &sums), 0);
    assert_true(sums.registered_bytes == registered);
    assert_true(sums.resident_bytes == resident);
}

static void an_empty_map_sums_to_nothing(void **state)
{
    const uint64_t programs[] = {1};
    (void)state;

    assert_sums(0, programs, 1, 0, 0);
    assert_false(map.is_changed);
}

static void programs_over_the_same_addresses_take_the_union_and_not_the_sum(void **state)
{
    const uint32_t four = cores(1024, (struct ttm_core_range){0, 0, 1, 1});
    const uint64_t programs[] = {1};
    (void)state;

    add(1, 1, 1000, 100, four, 0);
    add(2, 2, 1000, 100, four, 0); /* the same */
    assert_sums(0, programs, 1, 4 * 100, 4 * 100);
    add(3, 3, 1050, 100, four, 0); /* half of it */
    assert_sums(0, programs, 1, 4 * 150, 4 * 100);
    add(4, 4, 1010, 10, four, 0); /* within */
    add(5, 4, 2000, 1, four, 0);  /* apart */
    add(6, 4, 2001, 1, four, 0);  /* beside */
    assert_sums(0, programs, 1, 4 * 152, 4 * 100);
}

static void what_is_resident_on_a_core_belongs_to_the_newest_program_there(void **state)
{
    const uint32_t left = cores(1024, (struct ttm_core_range){0, 0, 0, 3});
    const uint32_t all = cores(1030, (struct ttm_core_range){0, 0, 1, 3});
    const uint64_t one_first[] = {1, 2, 3};
    const uint64_t two_first[] = {2, 1};
    const uint64_t unknown_first[] = {77, 1};
    (void)state;

    add(1, 1, 0, 100, left, 0);
    add(2, 2, 0, 70, all, 0);
    assert_sums(0, NULL, 0, 4 * 100 + 4 * 70, 0); /* nothing was sent yet */
    assert_sums(0, one_first, 3, 4 * 100 + 4 * 70, 4 * 100 + 4 * 70);
    assert_sums(0, two_first, 2, 4 * 100 + 4 * 70, 8 * 70);
    /* A program without circular buffers leaves what was there. */
    assert_sums(0, unknown_first, 2, 4 * 100 + 4 * 70, 4 * 100);
}

static void a_circular_buffer_lies_on_each_device_of_its_set_and_on_no_other(void **state)
{
    const uint32_t one = cores(1024, (struct ttm_core_range){5, 5, 5, 5});
    const uint16_t devices[] = {2, 9, 1023};
    const uint64_t programs[] = {1};
    uint32_t set;
    (void)state;

    assert_int_equal(ttm_device_sets_intern(&sets, devices, 3, &set), 0);
    add(1, 1, 0, 8, one, set);
    add(2, 1, 8, 8, one, 9);
    assert_sums(2, programs, 1, 8, 8);
    assert_sums(9, programs, 1, 16, 16);
    assert_sums(1023, programs, 1, 8, 8);
    assert_sums(0, programs, 1, 0, 0);
    assert_sums(3, programs, 1, 0, 0);
}

static void what_is_removed_or_cleared_is_gone_and_the_map_says_that_it_changed(void **state)
{
    const uint32_t one = cores(1024, (struct ttm_core_range){0, 0, 0, 0});
    (void)state;

    for (uint64_t i = 1; i <= 5; i++)
        add(i, i, 100 * i, 10, one, 0);
    assert_true(map.is_changed);
    map.is_changed = false;
    ttm_cb_map_remove(&map, 77);
    assert_false(map.is_changed);
    assert_sums(0, NULL, 0, 50, 0);
    ttm_cb_map_remove(&map, 1);
    assert_true(map.is_changed);
    ttm_cb_map_remove(&map, 5);
    ttm_cb_map_remove(&map, 5);
    assert_sums(0, NULL, 0, 30, 0);
    map.is_changed = false;
    ttm_cb_map_clear(&map);
    assert_true(map.is_changed);
    assert_sums(0, NULL, 0, 0, 0);
    map.is_changed = false;
    ttm_cb_map_clear(&map);
    assert_false(map.is_changed);
    assert_int_equal(ttm_cb_map_find_cores(&map, 1024), one); /* sets of cores stay */
}

static void ranges_that_overlap_count_a_core_once_and_cores_beyond_the_grid_are_refused(
    void **state)
{
    const struct ttm_core_range overlapping[] = {{0, 0, 3, 3}, {2, 2, 5, 3}, {1, 1, 1, 1}};
    const struct ttm_core_range corner = {31, 31, 31, 31};
    const struct ttm_core_range beyond[] = {{0, 0, 32, 0}, {0, 0, 0, 32}, {255, 255, 255, 255}};
    (void)state;

    const int r = ttm_cb_map_add_cores(&map, 2000, overlapping, 3);
    assert_int_equal(r, 0);
    assert_int_equal(map.core_sets[r].count, 16 + 4);
    assert_int_equal(ttm_cb_map_find_cores(&map, 2000), 0);
    assert_int_equal(ttm_cb_map_find_cores(&map, 2001), -ENOENT);
    assert_int_equal(ttm_cb_map_add_cores(&map, 2001, &corner, 1), 1);
    assert_int_equal(map.core_sets[1].count, 1);
    for (size_t i = 0; i < COUNT_OF(beyond); i++)
        assert_int_equal(ttm_cb_map_add_cores(&map, 2002, &beyond[i], 1), -EINVAL);
    assert_int_equal(map.core_set_count, 2);
}

static void the_map_has_bounds(void **state)
{
    const struct ttm_core_range range = {0, 0, 0, 0};
    struct ttm_cb cb = {.serial = 1};
    (void)state;

    for (uint32_t i = 0; i < TTM_CORE_SETS_MAX; i++)
        assert_int_equal(ttm_cb_map_add_cores(&map, i, &range, 1), i);
    assert_int_equal(ttm_cb_map_add_cores(&map, 9999, &range, 1), -ENOSPC);
    for (; cb.serial <= TTM_CBS_MAX; cb.serial++)
        assert_int_equal(ttm_cb_map_add(&map, &cb), 0);
    assert_int_equal(ttm_cb_map_add(&map, &cb), -ENOSPC);
    ttm_cb_map_remove(&map, 7);
    assert_int_equal(ttm_cb_map_add(&map, &cb), 0);
}

static void the_number_of_cores_of_all_circular_buffers_has_a_bound(void **state)
{
    const uint32_t all = cores(1, (struct ttm_core_range){0, 0, 31, 31});
    const uint32_t one = cores(2, (struct ttm_core_range){0, 0, 0, 0});
    struct ttm_cb cb = {.serial = 1, .core_set = all};
    (void)state;

    for (; cb.serial <= TTM_CB_CELLS_MAX / 1024; cb.serial++)
        assert_int_equal(ttm_cb_map_add(&map, &cb), 0);
    cb.core_set = one;
    assert_int_equal(ttm_cb_map_add(&map, &cb), -ENOSPC);
    ttm_cb_map_remove(&map, 1);
    assert_int_equal(ttm_cb_map_add(&map, &cb), 0);
    cb.serial++;
    cb.core_set = all;
    assert_int_equal(ttm_cb_map_add(&map, &cb), -ENOSPC);
    ttm_cb_map_clear(&map);
    assert_int_equal(map.cells, 0);
    assert_int_equal(ttm_cb_map_add(&map, &cb), 0);
}

static void a_serial_or_note_that_is_there_is_refused_and_changes_nothing(void **state)
{
    const struct ttm_core_range range = {0, 0, 3, 3};
    const uint32_t four = cores(1024, (struct ttm_core_range){0, 0, 1, 1});
    const struct ttm_cb again = {.serial = 1, .core_bytes = 7, .core_set = four};
    (void)state;

    add(1, 1, 0, 5, four, 0);
    map.is_changed = false;
    assert_int_equal(ttm_cb_map_add(&map, &again), -EEXIST);
    assert_int_equal(ttm_cb_map_add_cores(&map, 1024, &range, 1), -EEXIST);
    assert_false(map.is_changed);
    assert_int_equal(map.count, 1);
    assert_int_equal(map.cells, 4);
    assert_int_equal(map.core_set_count, 1);
    assert_sums(0, NULL, 0, 4 * 5, 0);
}

static void addresses_that_pass_the_end_of_64_bits_end_there(void **state)
{
    const uint32_t one = cores(1024, (struct ttm_core_range){0, 0, 0, 0});
    const uint64_t programs[] = {1};
    (void)state;

    add(1, 1, UINT64_MAX - 10, 100, one, 0);
    assert_sums(0, programs, 1, 10, 10);
    add(2, 1, UINT64_MAX - 20, UINT64_MAX, one, 0);
    assert_sums(0, programs, 1, 20, 20);
    add(3, 1, UINT64_MAX, UINT64_MAX, one, 0);
    add(4, 1, 5, 3, one, 0);
    assert_sums(0, programs, 1, 23, 23);
}

static void a_program_with_no_bytes_on_a_core_leaves_those_of_the_one_before(void **state)
{
    const uint32_t one = cores(1024, (struct ttm_core_range){0, 0, 0, 0});
    const uint64_t programs[] = {2, 2, 1};
    (void)state;

    add(1, 1, 0, 100, one, 0);
    add(2, 2, 0, 0, one, 0);
    assert_sums(0, programs, 3, 100, 100);
}

/* ---- against a map of every byte of every core ---- */

#define GRID 6
#define L1_BYTES 256
#define CBS 24
#define PROGRAMS 4
#define DEVICES 2

struct plain {
    struct ttm_cb cb;
    struct ttm_core_range range;
    uint16_t devices; /* a bit for each */
};

static bool covers(const struct plain *p, unsigned device, unsigned x, unsigned y)
{
    return (p->devices >> device & 1) != 0 && x >= p->range.start_x && x <= p->range.end_x &&
           y >= p->range.start_y && y <= p->range.end_y;
}

/* Bytes that a program has on a core, of all programs when it is 0. */
static uint64_t count_bytes(const struct plain *all, uint32_t count, unsigned device, unsigned x,
                            unsigned y, uint64_t program)
{
    uint8_t bytes[L1_BYTES] = {0};
    uint64_t sum = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (!covers(&all[i], device, x, y) || (program != 0 && all[i].cb.program != program))
            continue;
        memset(bytes + all[i].cb.address, 1, all[i].cb.core_bytes);
    }
    for (size_t i = 0; i < L1_BYTES; i++)
        sum += bytes[i];
    return sum;
}

static void assert_as_counted(const struct plain *all, uint32_t count, unsigned device,
                              const uint64_t *programs, uint32_t program_count)
{
    uint64_t registered = 0, resident = 0;

    for (unsigned y = 0; y < GRID; y++) {
        for (unsigned x = 0; x < GRID; x++) {
            uint64_t there = 0;
            registered += count_bytes(all, count, device, x, y, 0);
            for (uint32_t p = 0; p < program_count && there == 0; p++)
                there = count_bytes(all, count, device, x, y, programs[p]);
            resident += there;
        }
    }
    assert_sums((uint16_t)device, programs, program_count, registered, resident);
}

static struct plain random_cb(uint64_t *seed, uint64_t serial, uint32_t both)
{
    struct plain p = {.cb = {.serial = serial,
                             .program = 1 + random_below(seed, PROGRAMS),
                             .address = random_below(seed, L1_BYTES - 64),
                             .core_bytes = 1 + random_below(seed, 64)}};

    p.range.start_x = (uint8_t)random_below(seed, GRID);
    p.range.start_y = (uint8_t)random_below(seed, GRID);
    p.range.end_x = (uint8_t)(p.range.start_x + random_below(seed, GRID - p.range.start_x));
    p.range.end_y = (uint8_t)(p.range.start_y + random_below(seed, GRID - p.range.start_y));
    p.devices = (uint16_t)(1 + random_below(seed, 3));
    p.cb.device_set = p.devices == 3 ? both : p.devices - 1u;
    p.cb.core_set = cores((uint32_t)serial, p.range);
    return p;
}

static void random_maps_sum_to_what_counting_every_byte_of_every_core_gives(void **state)
{
    const uint16_t two[] = {0, 1};
    uint64_t seed = 0x5eed;
    uint32_t both;
    (void)state;

    assert_int_equal(ttm_device_sets_intern(&sets, two, 2, &both), 0);
    for (unsigned round = 0; round < 60; round++) {
        struct plain all[CBS];
        uint64_t programs[PROGRAMS];
        uint32_t count = 0;
        ttm_cb_map_done(&map);
        for (uint64_t serial = 1; serial <= CBS; serial++) {
            all[count] = random_cb(&seed, serial, both);
            assert_int_equal(ttm_cb_map_add(&map, &all[count].cb), 0);
            count++;
            if (random_below(&seed, 3) == 0) {
                const uint32_t gone = random_below(&seed, count);
                ttm_cb_map_remove(&map, all[gone].cb.serial);
                all[gone] = all[--count];
            }
            const uint64_t program = 1 + random_below(&seed, PROGRAMS);
            if (random_below(&seed, 4) == 0) /* what is remembered of this must be forgotten */
                assert_as_counted(all, count, random_below(&seed, DEVICES), &program, 1);
        }
        const uint32_t sent = random_below(&seed, PROGRAMS + 1);
        for (uint32_t i = 0; i < sent; i++)
            programs[i] = 1 + random_below(&seed, PROGRAMS);
        for (unsigned device = 0; device < DEVICES; device++)
            assert_as_counted(all, count, device, programs, sent);
    }
}

/* ---- what sums cost ---- */

static uint64_t steps_of(uint16_t device, const uint64_t *programs, uint32_t count)
{
    const uint64_t before = ttm_cb_map_steps(&map);
    struct ttm_cb_sums sums;

    assert_int_equal(ttm_cb_map_sum(&map, &sets, device, programs, count, &sums), 0);
    return ttm_cb_map_steps(&map) - before;
}

static void devices_with_the_same_circular_buffers_and_programs_cost_one_sum(void **state)
{
    const uint32_t all = cores(1024, (struct ttm_core_range){0, 0, 7, 7});
    const uint64_t programs[] = {5, 9}, others[] = {9, 5};
    uint16_t devices[32];
    uint32_t mesh;
    (void)state;

    for (uint16_t i = 0; i < 32; i++)
        devices[i] = i;
    assert_int_equal(ttm_device_sets_intern(&sets, devices, 32, &mesh), 0);
    for (uint64_t i = 0; i < 15000; i++)
        add(i, i / 30, i % 30 * 1000, 900, all, mesh);
    assert_true(steps_of(0, programs, 2) > 15000);
    for (uint16_t i = 1; i < 32; i++)
        assert_in_range(steps_of(i, programs, 2), 0, 1000);
    assert_sums(31, programs, 2, 64 * 30 * 900, 64 * 30 * 900);
    assert_true(steps_of(31, others, 2) > 15000);
    add(99999, 5, 100000, 1, all, 31); /* this device is another one now */
    assert_sums(30, programs, 2, 64 * 30 * 900, 64 * 30 * 900);
    assert_sums(31, programs, 2, 64 * (30 * 900 + 1), 64 * (30 * 900 + 1));
}

/* As many circular buffers, cores and device sets as there may be, and none that meet. */
static void a_hostile_map_costs_a_few_steps_for_each_core(void **state)
{
    const uint64_t programs[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const uint32_t per_cb = TTM_CB_CELLS_MAX / TTM_CBS_MAX;
    uint32_t next = 0;
    (void)state;

    for (uint32_t i = 0; i < TTM_CORE_SETS_MAX; i++) {
        const uint8_t y = (uint8_t)(i % (TTM_CORE_GRID - per_cb / TTM_CORE_GRID));
        const uint8_t last = (uint8_t)(y + per_cb / TTM_CORE_GRID - 1);
        assert_int_equal(cores(i, (struct ttm_core_range){0, y, 31, last}), i);
    }
    for (uint64_t i = 0; i < TTM_CBS_MAX; i++) {
        const struct ttm_cb cb = {
            .serial = i,
            .program = i % 8,
            .address = (i * 0x9e3779b97f4a7c15ull) | 1,
            .core_bytes = 1,
            .core_set = (uint32_t)i % TTM_CORE_SETS_MAX,
            .device_set = next++ % TTM_DEVICE_COUNT,
        };
        assert_int_equal(ttm_cb_map_add(&map, &cb), 0);
    }
    for (uint16_t device = 0; device < TTM_DEVICE_COUNT; device++)
        assert_in_range(steps_of(device, programs, 8), 1, UINT64_C(1) << 20);
    for (uint32_t i = 0; i < map.count; i++)
        map.cbs[i].device_set = 3;
    ttm_cb_map_remove(&map, 0); /* a change */
    assert_in_range(steps_of(3, programs, 8), TTM_CB_CELLS_MAX, 3 * TTM_CB_CELLS_MAX);
}

/* More combinations of core sets than are remembered: each core has one of its own. */
static void cores_that_all_differ_are_each_summed(void **state)
{
    uint64_t expected = 0;
    (void)state;

    for (uint8_t y = 0; y < TTM_CORE_GRID; y += 2) {
        for (uint8_t x = 0; x < TTM_CORE_GRID; x += 2) {
            const uint32_t set = cores(2000 + y * 32u + x, (struct ttm_core_range){x, y, x, y});
            add(1 + y * 32u + x, 1, 0, 1 + y * 32u + x, set, 0);
            expected += 1 + y * 32u + x;
        }
    }
    const uint64_t programs[] = {1};
    assert_sums(0, programs, 1, expected, expected);
}

static void when_memory_is_short_nothing_is_lost(void **state)
{
    const struct ttm_core_range range = {0, 0, 0, 0};
    const struct ttm_cb cb = {.serial = 1, .program = 3, .core_bytes = 5};
    const uint64_t program = 3;
    struct ttm_cb_sums sums;
    bool has_failed = true;
    (void)state;

    for (unsigned grants = 0; grants < 2; grants++) {
        faults_begin(grants);
        assert_int_equal(ttm_cb_map_add_cores(&map, 1, &range, 1), -ENOMEM);
        assert_true(faults_end());
        assert_int_equal(ttm_cb_map_find_cores(&map, 1), -ENOENT);
    }
    assert_int_equal(ttm_cb_map_add_cores(&map, 1, &range, 1), 0);
    for (unsigned grants = 0; has_failed; grants++) {
        faults_begin(grants);
        const int r = ttm_cb_map_add(&map, &cb);
        has_failed = faults_end();
        assert_int_equal(r, has_failed ? -ENOMEM : 0);
        assert_int_equal(map.count, has_failed ? 0 : 1);
    }
    has_failed = true;
    for (unsigned grants = 0; has_failed; grants++) {
        faults_begin(grants);
        const int r = ttm_cb_map_sum(&map, &sets, 0, &program, 1, &sums);
        has_failed = faults_end();
        assert_int_equal(r, has_failed ? -ENOMEM : 0);
        assert_int_equal(sums.registered_bytes, has_failed ? 0 : 5);
    }
    assert_sums(0, NULL, 0, 5, 0);
}

#define WITH_MAP(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_MAP(an_empty_map_sums_to_nothing),
        WITH_MAP(programs_over_the_same_addresses_take_the_union_and_not_the_sum),
        WITH_MAP(what_is_resident_on_a_core_belongs_to_the_newest_program_there),
        WITH_MAP(a_circular_buffer_lies_on_each_device_of_its_set_and_on_no_other),
        WITH_MAP(what_is_removed_or_cleared_is_gone_and_the_map_says_that_it_changed),
        WITH_MAP(ranges_that_overlap_count_a_core_once_and_cores_beyond_the_grid_are_refused),
        WITH_MAP(the_map_has_bounds),
        WITH_MAP(the_number_of_cores_of_all_circular_buffers_has_a_bound),
        WITH_MAP(a_serial_or_note_that_is_there_is_refused_and_changes_nothing),
        WITH_MAP(addresses_that_pass_the_end_of_64_bits_end_there),
        WITH_MAP(a_program_with_no_bytes_on_a_core_leaves_those_of_the_one_before),
        WITH_MAP(random_maps_sum_to_what_counting_every_byte_of_every_core_gives),
        WITH_MAP(devices_with_the_same_circular_buffers_and_programs_cost_one_sum),
        WITH_MAP(a_hostile_map_costs_a_few_steps_for_each_core),
        WITH_MAP(cores_that_all_differ_are_each_summed),
        WITH_MAP(when_memory_is_short_nothing_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
