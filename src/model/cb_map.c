/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sum visits the circular buffers of a device in order of their addresses, and keeps the
 * highest end so far for each core: what lies above that end is new.
 *
 * Before that, circular buffers of the same cores whose addresses meet become one interval. Cached
 * programs plan over the same addresses, so thousands of circular buffers become a few intervals.
 * A hostile process can prevent that; then the sum costs a step for each core of each circular
 * buffer, which TTM_CB_CELLS_MAX bounds.
 */
#include "model/cb_map.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define CORES (TTM_CORE_GRID * TTM_CORE_GRID)
#define SETS (TTM_DEVICE_COUNT + TTM_DEVICE_SETS_MAX) /* numbers that a device set can have */

void ttm_cb_map_init(struct ttm_cb_map *map, uint64_t seed)
{
    *map = (struct ttm_cb_map){0};
    ttm_u64_map_init(&map->by_serial, seed);
    ttm_u64_map_init(&map->by_note, seed);
}

/* ---- sets of cores ---- */

int ttm_cb_map_find_cores(const struct ttm_cb_map *map, uint32_t note)
{
    uint32_t place;

    return ttm_u64_map_find(&map->by_note, note, &place) ? (int)place : -ENOENT;
}

/* Returns 0 or -EINVAL. */
static int read_ranges(const struct ttm_core_range *ranges, uint32_t count,
                       struct ttm_core_set *set)
{
    for (uint32_t i = 0; i < count; i++) {
        if (ranges[i].end_x >= TTM_CORE_GRID || ranges[i].end_y >= TTM_CORE_GRID)
            return -EINVAL;
        const uint32_t up_to_end = (2u << ranges[i].end_x) - 1; /* 2u << 31 is 0 */
        const uint32_t row = ranges[i].start_x <= ranges[i].end_x
                                 ? up_to_end >> ranges[i].start_x << ranges[i].start_x
                                 : 0;
        for (uint32_t y = ranges[i].start_y; y <= ranges[i].end_y; y++)
            set->rows[y] |= row;
    }
    for (uint32_t y = 0; y < TTM_CORE_GRID; y++)
        set->count += (uint32_t)__builtin_popcount(set->rows[y]);
    return 0;
}

int ttm_cb_map_add_cores(struct ttm_cb_map *map, uint32_t note, const struct ttm_core_range *ranges,
                         uint32_t count)
{
    struct ttm_core_set set = {.note = note};

    if (map->core_set_count == TTM_CORE_SETS_MAX || !ttm_quota_allows(map->core_set_quota, 1))
        return -ENOSPC;
    int r = read_ranges(ranges, count, &set);
    if (r < 0)
        return r;
    if (map->core_set_count == map->core_set_room) {
        const uint32_t room = map->core_set_room ? map->core_set_room * 2 : 16;
        struct ttm_core_set *grown = realloc(map->core_sets, room * sizeof(grown[0]));
        if (!grown)
            return -ENOMEM;
        map->core_sets = grown;
        map->core_set_room = room;
    }
    r = ttm_u64_map_add(&map->by_note, note, map->core_set_count);
    if (r < 0)
        return r;
    map->core_sets[map->core_set_count] = set;
    ttm_quota_add(map->core_set_quota, 1);
    return (int)map->core_set_count++;
}

/* ---- circular buffers ---- */

/* A sum over one group of devices, by a hash of what it depends on. */
struct remembered {
    uint64_t key; /* 0: none */
    uint64_t bytes;
};

#define REMEMBERED 64

/* What sums remember until the map changes. */
struct ttm_cb_sorted {
    bool is_current;
    uint32_t *order; /* indexes of circular buffers, by address; has as much room as the map */
    uint32_t room;
    uint32_t *sets; /* numbers of the device sets that they are on */
    uint32_t set_count;
    /* A hash of the device sets that each device is in; 0: it is in none. */
    uint64_t device_keys[TTM_DEVICE_COUNT];
    struct remembered sums[REMEMBERED];
    uint32_t next_sum; /* place for the next one to be remembered */
    uint64_t steps;
};

void ttm_cb_map_done(struct ttm_cb_map *map)
{
    ttm_quota_subtract(map->cb_quota, map->count);
    ttm_quota_subtract(map->core_set_quota, map->core_set_count);
    free(map->cbs);
    free(map->core_sets);
    if (map->sorted) {
        free(map->sorted->order);
        free(map->sorted->sets);
        free(map->sorted);
    }
    ttm_u64_map_done(&map->by_serial);
    ttm_u64_map_done(&map->by_note);
    ttm_cb_map_init(map, map->by_serial.seed);
}

static void note_change(struct ttm_cb_map *map)
{
    map->is_changed = true;
    map->sorted->is_current = false;
}

int ttm_cb_map_add(struct ttm_cb_map *map, const struct ttm_cb *cb)
{
    const uint32_t cells = map->core_sets[cb->core_set].count;

    if (map->count == TTM_CBS_MAX || cells > TTM_CB_CELLS_MAX - map->cells ||
        !ttm_quota_allows(map->cb_quota, 1))
        return -ENOSPC;
    if (!map->sorted)
        map->sorted = calloc(1, sizeof(*map->sorted));
    if (!map->sorted)
        return -ENOMEM;
    if (map->count == map->room) {
        const uint32_t room = map->room ? map->room * 2 : 64;
        struct ttm_cb *grown = realloc(map->cbs, room * sizeof(grown[0]));
        if (!grown)
            return -ENOMEM;
        map->cbs = grown;
        map->room = room;
    }
    const int r = ttm_u64_map_add(&map->by_serial, cb->serial, map->count);
    if (r < 0)
        return r;
    map->cbs[map->count++] = *cb;
    map->cells += cells;
    ttm_quota_add(map->cb_quota, 1);
    note_change(map);
    return 0;
}

void ttm_cb_map_remove(struct ttm_cb_map *map, uint64_t serial)
{
    uint32_t place, moved;

    if (!ttm_u64_map_take(&map->by_serial, serial, &place))
        return;
    map->cells -= map->core_sets[map->cbs[place].core_set].count;
    ttm_quota_subtract(map->cb_quota, 1);
    if (place != --map->count) {
        map->cbs[place] = map->cbs[map->count];
        (void)ttm_u64_map_take(&map->by_serial, map->cbs[place].serial, &moved);
        /* There is room: one more was there a moment ago. */
        (void)ttm_u64_map_add(&map->by_serial, map->cbs[place].serial, place);
    }
    note_change(map);
}

void ttm_cb_map_clear(struct ttm_cb_map *map)
{
    if (map->count == 0)
        return;
    ttm_quota_subtract(map->cb_quota, map->count);
    map->count = 0;
    map->cells = 0;
    ttm_u64_map_done(&map->by_serial);
    note_change(map);
}

/* ---- order by address ---- */

struct place {
    uint64_t address;
    uint32_t cb;
};

#define DIGITS 8 /* of eight bits each */

/* Stable, by one digit. 'counts' says how many have each value of it. */
static void sort_by_digit(const struct place *from, struct place *to, uint32_t count,
                          unsigned digit, const uint32_t counts[256])
{
    uint32_t next[256];
    uint32_t sum = 0;

    for (unsigned value = 0; value < 256; value++) {
        next[value] = sum;
        sum += counts[value];
    }
    for (uint32_t i = 0; i < count; i++)
        to[next[from[i].address >> 8 * digit & 255]++] = from[i];
}

/*
 * Sorts by radix: linear whatever the addresses are. Those of a chip differ in three digits of eight.
 * 'spare' has as many places; the result is in either.
 */
static const struct place *sort_places(struct place *places, struct place *spare, uint32_t count)
{
    uint32_t counts[DIGITS][256] = {0};

    for (uint32_t i = 0; i < count; i++)
        for (unsigned digit = 0; digit < DIGITS; digit++)
            counts[digit][places[i].address >> 8 * digit & 255]++;
    for (unsigned digit = 0; digit < DIGITS; digit++) {
        if (counts[digit][places[0].address >> 8 * digit & 255] == count)
            continue; /* the same everywhere */
        sort_by_digit(places, spare, count, digit, counts[digit]);
        struct place *const sorted = spare;
        spare = places;
        places = sorted;
    }
    return places;
}

static int make_order(const struct ttm_cb_map *map, struct ttm_cb_sorted *sorted)
{
    struct place *places = malloc(2 * (size_t)map->count * sizeof(places[0]));

    if (!places)
        return -ENOMEM;
    for (uint32_t i = 0; i < map->count; i++)
        places[i] = (struct place){map->cbs[i].address, i};
    const struct place *by_address = sort_places(places, places + map->count, map->count);
    for (uint32_t i = 0; i < map->count; i++)
        sorted->order[i] = by_address[i].cb;
    free(places);
    sorted->steps += UINT64_C(4) * DIGITS * map->count;
    return 0;
}

/* Which device sets there are, and for each device a hash of those that it is in. */
static void find_devices(const struct ttm_cb_map *map, const struct ttm_device_sets *sets,
                         struct ttm_cb_sorted *sorted)
{
    uint64_t is_known[SETS / 64] = {0};

    memset(sorted->device_keys, 0, sizeof(sorted->device_keys));
    sorted->set_count = 0;
    for (uint32_t i = 0; i < map->count; i++) {
        const uint32_t number = map->cbs[i].device_set;
        if (number >= SETS || is_known[number / 64] >> (number % 64) & 1)
            continue;
        is_known[number / 64] |= UINT64_C(1) << (number % 64);
        sorted->sets[sorted->set_count++] = number;
        const struct ttm_device_set set = ttm_device_sets_get(sets, number);
        for (uint16_t d = 0; d < set.count; d++)
            sorted->device_keys[set.devices[d]] +=
                ttm_hash_u64(map->by_serial.seed ^ (number + UINT64_C(1)));
        sorted->steps += set.count;
    }
    sorted->steps += map->count;
}

/* Returns 0 or -ENOMEM. */
static int bring_up_to_date(const struct ttm_cb_map *map, const struct ttm_device_sets *sets)
{
    struct ttm_cb_sorted *sorted = map->sorted;

    if (sorted->is_current)
        return 0;
    if (sorted->room < map->count) {
        uint32_t *order = realloc(sorted->order, map->room * sizeof(order[0]));
        if (!order)
            return -ENOMEM;
        sorted->order = order;
        uint32_t *numbers = realloc(sorted->sets, map->room * sizeof(numbers[0]));
        if (!numbers)
            return -ENOMEM;
        sorted->sets = numbers;
        sorted->room = map->room;
    }
    const int r = make_order(map, sorted);
    if (r < 0)
        return r;
    find_devices(map, sets, sorted);
    memset(sorted->sums, 0, sizeof(sorted->sums));
    sorted->is_current = true;
    return 0;
}

/* ---- one sum ---- */

struct interval {
    uint64_t start, end;
    uint32_t core_set;
    uint32_t program; /* index in the list; 0 when all programs are summed */
};

struct work {
    const struct ttm_cb_map *map;
    uint64_t is_on_device[SETS / 64]; /* a bit for each device set */
    const uint64_t *programs;         /* NULL: all */
    uint32_t program_count;           /* at least 1 */
    struct interval *intervals;       /* by start */
    uint32_t count;
    uint32_t *open; /* the last interval of each program and core set, + 1 */
    /* The cores on which each program of the list is the newest; of all programs, every core. */
    uint32_t rows[TTM_CB_PROGRAMS_MAX][TTM_CORE_GRID];
    uint64_t highest[CORES]; /* end so far */
    uint64_t steps;
};

static void find_sets(struct work *work, const struct ttm_device_sets *sets, uint16_t device)
{
    const struct ttm_cb_sorted *sorted = work->map->sorted;

    for (uint32_t i = 0; i < sorted->set_count; i++) {
        const uint32_t number = sorted->sets[i];
        const struct ttm_device_set set = ttm_device_sets_get(sets, number);
        if (ttm_device_set_has(&set, device))
            work->is_on_device[number / 64] |= UINT64_C(1) << (number % 64);
    }
    work->steps += UINT64_C(10) * sorted->set_count;
}

/* The index of a program in the list; its count when it is not there. */
static uint32_t find_program(const struct work *work, uint64_t program)
{
    uint32_t at = 0;

    while (work->programs && at < work->program_count && work->programs[at] != program)
        at++;
    return at;
}

static uint64_t end_of(const struct ttm_cb *cb)
{
    uint64_t end;

    return __builtin_add_overflow(cb->address, cb->core_bytes, &end) ? UINT64_MAX : end;
}

/* Adds a circular buffer to the last interval of its cores, or begins a new one. */
static void add_interval(struct work *work, const struct ttm_cb *cb, uint32_t program)
{
    uint32_t *open = &work->open[(size_t)program * work->map->core_set_count + cb->core_set];
    struct interval *last = *open != 0 ? &work->intervals[*open - 1] : NULL;
    const uint64_t end = end_of(cb);

    if (end == cb->address)
        return;
    if (last && cb->address <= last->end) {
        if (end > last->end)
            last->end = end;
        return;
    }
    work->intervals[work->count++] = (struct interval){cb->address, end, cb->core_set, program};
    *open = work->count;
}

static void find_intervals(struct work *work)
{
    const struct ttm_cb_map *map = work->map;

    for (uint32_t i = 0; i < map->count; i++) {
        const struct ttm_cb *cb = &map->cbs[map->sorted->order[i]];
        const uint32_t set = cb->device_set;
        if (set >= SETS || !(work->is_on_device[set / 64] >> (set % 64) & 1))
            continue;
        const uint32_t program = find_program(work, cb->program);
        if (program < work->program_count)
            add_interval(work, cb, program);
    }
    work->steps += UINT64_C(4) * map->count;
}

/*
 * A core belongs to the newest program of the list that has bytes there. A program without
 * circular buffers leaves those of the one before as they were.
 */
static void find_newest(struct work *work)
{
    if (!work->programs) {
        memset(work->rows[0], 0xff, sizeof(work->rows[0]));
        return;
    }
    for (uint32_t i = 0; i < work->count; i++) {
        const struct interval *interval = &work->intervals[i];
        for (uint32_t y = 0; y < TTM_CORE_GRID; y++)
            work->rows[interval->program][y] |= work->map->core_sets[interval->core_set].rows[y];
    }
    for (uint32_t y = 0; y < TTM_CORE_GRID; y++) {
        uint32_t newer = 0;
        for (uint32_t p = 0; p < work->program_count; p++) {
            const uint32_t own = work->rows[p][y];
            work->rows[p][y] = own & ~newer;
            newer |= own;
        }
    }
    work->steps += work->count * UINT64_C(8);
}

/* What an interval adds to the cores of a row; 'highest' is of its first core. */
static uint64_t add_to_row(uint64_t *highest, uint32_t row, uint64_t start, uint64_t end)
{
    uint64_t sum = 0;

    for (; row != 0; row &= row - 1) {
        uint64_t *top = &highest[__builtin_ctz(row)];
        const uint64_t from = *top > start ? *top : start;
        const uint64_t to = end > from ? end : from;
        sum += to - from;
        *top = to;
    }
    return sum;
}

static uint64_t sum_intervals(struct work *work)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < work->count; i++) {
        const struct interval *interval = &work->intervals[i];
        const struct ttm_core_set *cores = &work->map->core_sets[interval->core_set];
        for (uint32_t y = 0; y < TTM_CORE_GRID; y++) {
            const uint32_t row = cores->rows[y] & work->rows[interval->program][y];
            if (row != 0)
                sum += add_to_row(&work->highest[(size_t)y * TTM_CORE_GRID], row, interval->start,
                                  interval->end);
        }
        work->steps += TTM_CORE_GRID + cores->count;
    }
    return sum;
}

/* Of all programs when 'programs' is NULL. Returns 0 or -ENOMEM. */
static int sum_device(const struct ttm_cb_map *map, const struct ttm_device_sets *sets,
                      uint16_t device, const uint64_t *programs, uint32_t program_count,
                      uint64_t *ret)
{
    struct work work = {.map = map, .programs = programs, .program_count = program_count};

    work.intervals = malloc(map->count * sizeof(work.intervals[0]));
    work.open = calloc((size_t)program_count * map->core_set_count, sizeof(work.open[0]));
    const int r = work.intervals && work.open ? 0 : -ENOMEM;
    if (r == 0) {
        find_sets(&work, sets, device);
        find_intervals(&work);
        find_newest(&work);
        *ret = sum_intervals(&work);
        map->sorted->steps += work.steps;
    }
    free(work.intervals);
    free(work.open);
    return r;
}

/* As sum_device(), unless the sum of that key is remembered. */
static int sum_once(const struct ttm_cb_map *map, const struct ttm_device_sets *sets,
                    uint16_t device, const uint64_t *programs, uint32_t program_count, uint64_t key,
                    uint64_t *ret)
{
    struct ttm_cb_sorted *sorted = map->sorted;

    sorted->steps += REMEMBERED;
    for (uint32_t i = 0; i < REMEMBERED; i++) {
        if (sorted->sums[i].key == key) {
            *ret = sorted->sums[i].bytes;
            return 0;
        }
    }
    const int r = sum_device(map, sets, device, programs, program_count, ret);
    if (r == 0)
        sorted->sums[sorted->next_sum++ % REMEMBERED] = (struct remembered){key, *ret};
    return r;
}

int ttm_cb_map_sum(const struct ttm_cb_map *map, const struct ttm_device_sets *sets,
                   uint16_t device, const uint64_t *programs, uint32_t program_count,
                   struct ttm_cb_sums *ret)
{
    assert(program_count <= TTM_CB_PROGRAMS_MAX);
    *ret = (struct ttm_cb_sums){0};
    if (map->count == 0)
        return 0;
    int r = bring_up_to_date(map, sets);
    if (r < 0)
        return r;
    uint64_t key = map->sorted->device_keys[device];
    if (key == 0)
        return 0;
    struct ttm_cb_sums sums = {0};
    r = sum_once(map, sets, device, NULL, 1, key, &sums.registered_bytes);
    if (r == 0 && program_count > 0) {
        for (uint32_t i = 0; i < program_count; i++)
            key = ttm_hash_u64(key + 1) ^ ttm_hash_u64(programs[i] ^ map->by_serial.seed);
        r = sum_once(map, sets, device, programs, program_count, key, &sums.resident_bytes);
    }
    if (r == 0)
        *ret = sums;
    return r;
}

uint64_t ttm_cb_map_steps(const struct ttm_cb_map *map)
{
    return map->sorted ? map->sorted->steps : 0;
}
