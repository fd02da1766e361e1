/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was alive at the peak, in one pass. Each region of a group has a version that
 * goes up with each new peak. Before a cell changes, it saves what it holds, once for
 * each version: the first change after a peak finds the cell as it was at the peak.
 * So at the end a cell whose saved version is the current one held, at the last peak,
 * what it saved; any other has not changed since and holds it still. A new peak costs
 * one increment however many cells there are, a change one comparison for each group
 * of its devices. A second pass to the known moment of the peak would read the file
 * twice, and a snapshot at each new peak would cost every cell while a program fills
 * the memory. Marks that are asked for work the same way, with one version each.
 */
#include "analysis/ledger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/ledger_cbs.h"
#include "analysis/ledger_cells.h"
#include "analysis/ledger_failures.h"
#include "analysis/origin_words.h"
#include "base/hash.h"
#include "wire/life_row.h"

#define CB_INTERVAL_NS 1000000u

struct ttm_live {
    uint64_t birth_ns;
    uint64_t birth; /* number among the births of the process */
    uint64_t address;
    struct ttm_held held;
    uint32_t cell;    /* + 1, 0: none */
    uint32_t reused;  /* place of its address + 1, 0: not watched */
    uint32_t ordinal; /* number among the births of its kin */
    uint32_t visit;   /* of the process; what tells it from the one before is enough */
    bool is_placed;
};

void ttm_ledger_init(struct ttm_ledger *ledger, uint32_t process, uint64_t seed)
{
    *ledger = (struct ttm_ledger){.process = process, .seed = seed, .first_ns = UINT64_MAX};
    ledger->cbs_interval_ns = CB_INTERVAL_NS;
    ledger->paired_slot = -1;
    for (uint32_t i = 0; i < TTM_MOMENT_SLOTS; i++)
        ledger->moment_version[i] = 1;
    ttm_notebook_init(&ledger->notes, seed);
    ttm_groups_init(&ledger->groups);
    ttm_device_sets_init(&ledger->cb_sets, seed);
    ttm_cb_map_init(&ledger->cbs, seed);
    ttm_addresses_init(&ledger->addresses, seed);
    ttm_seats_init(&ledger->seats);
    ttm_u64_map_init(&ledger->kin_places, seed);
    ttm_arena_init(&ledger->texts);
}

void ttm_ledger_done(struct ttm_ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->cell_count; i++) {
        free(ledger->cells[i].peaks);
        free(ledger->cells[i].remaining.sizes);
        ttm_u64_map_done(&ledger->cells[i].remaining.size_places);
    }
    free(ledger->cells);
    free(ledger->cell_index);
    free(ledger->kins);
    free(ledger->sessions);
    free(ledger->threads);
    free(ledger->lives);
    free(ledger->marks);
    free(ledger->failures);
    free(ledger->devices);
    free(ledger->command);
    ttm_notebook_done(&ledger->notes);
    ttm_groups_done(&ledger->groups);
    ttm_device_sets_done(&ledger->cb_sets);
    ttm_cb_map_done(&ledger->cbs);
    ttm_addresses_done(&ledger->addresses);
    ttm_seats_done(&ledger->seats);
    ttm_u64_map_done(&ledger->kin_places);
    ttm_arena_done(&ledger->texts);
    *ledger = (struct ttm_ledger){0};
}

/* ---- devices ---- */

const struct ttm_recorded_device *ttm_ledger_device(const struct ttm_ledger *ledger, uint16_t id)
{
    for (uint32_t i = 0; i < ledger->device_count; i++) {
        if (ledger->devices[i].id == id)
            return &ledger->devices[i];
    }
    return NULL;
}

static int take_device(struct ttm_ledger *ledger, const struct ttm_recorded_device *device)
{
    if (device->id >= TTM_DEVICE_COUNT || ttm_ledger_device(ledger, device->id))
        return 0;
    struct ttm_recorded_device *grown =
        realloc(ledger->devices, (ledger->device_count + 1) * sizeof(grown[0]));
    if (!grown)
        return -ENOMEM;
    ledger->devices = grown;
    grown[ledger->device_count] = *device;
    grown[ledger->device_count++].board =
        ttm_arena_text(&ledger->texts, device->board, device->board_length);
    return ledger->texts.failed ? -ENOMEM : 0;
}

/* ---- what cells held at a moment ---- */

/* Before a cell changes: what it holds is what it held at moments that have not saved it yet. */
static inline void save_cell(struct ttm_ledger *ledger, struct ttm_cell *cell)
{
    const struct ttm_group_set *set = &ledger->groups.sets[cell->set];

    for (uint32_t i = 0; i < set->group_count; i++) {
        const uint64_t version =
            ledger->groups.groups[set->groups[i]].region[cell->region].peak_version;
        if (cell->peaks[i].version != version + 1)
            cell->peaks[i] = (struct ttm_saved){version + 1, cell->now};
    }
    for (uint32_t i = 0; i < ledger->moment_slots; i++) {
        if (cell->moments[i].version != ledger->moment_version[i])
            cell->moments[i] = (struct ttm_saved){ledger->moment_version[i], cell->now};
    }
}

struct ttm_held ttm_cell_at_peak(const struct ttm_ledger *ledger, const struct ttm_cell *cell,
                                 uint32_t place)
{
    const struct ttm_group_set *set = &ledger->groups.sets[cell->set];
    const struct ttm_group *group = &ledger->groups.groups[set->groups[place]];

    return cell->peaks[place].version == group->region[cell->region].peak_version + 1
               ? cell->peaks[place].held
               : cell->now;
}

static uint32_t slot_of(const struct ttm_ledger *ledger, uint32_t moment)
{
    if (moment > 0)
        return moment;
    return ledger->paired_slot >= 0 ? (uint32_t)ledger->paired_slot : ledger->newest_slot;
}

void ttm_ledger_ask(struct ttm_ledger *ledger, const char *const names[TTM_MOMENTS])
{
    memcpy(ledger->moment_names, names, sizeof(ledger->moment_names));
    ledger->moment_slots = !names[0] ? 0 : !names[1] ? 1 : TTM_MOMENT_SLOTS;
}

void ttm_ledger_judge_after(struct ttm_ledger *ledger, const struct ttm_ledger_judging *judging)
{
    ledger->judging = *judging;
}

bool ttm_ledger_moment(const struct ttm_ledger *ledger, uint32_t moment, uint64_t *ret_ns)
{
    const uint32_t slot = slot_of(ledger, moment);

    *ret_ns = ledger->moment_ns[slot];
    return ledger->moment_version[slot] > 1;
}

struct ttm_held ttm_cell_at_moment(const struct ttm_ledger *ledger, const struct ttm_cell *cell,
                                   uint32_t moment)
{
    const uint32_t slot = slot_of(ledger, moment);

    if (ledger->moment_version[slot] == 1)
        return (struct ttm_held){0};
    return cell->moments[slot].version == ledger->moment_version[slot] ? cell->moments[slot].held
                                                                       : cell->now;
}

/* ---- totals ---- */

/* Only where it was asked for: drawings are for pages, and most reports have none. */
int ttm_ledger_draw(const struct ttm_ledger *ledger, struct ttm_group_region *region,
                    uint64_t time_ns, uint64_t bytes)
{
    if (!ledger->keeps_drawings)
        return 0;
    if (!region->course)
        region->course = ttm_course_new(ledger->first_ns);
    if (!region->course)
        return -ENOMEM;
    ttm_course_put(region->course, time_ns, bytes);
    return 0;
}

/* Circular buffers have a course of their own: those of cached programs lie on each other. */
static int draw_region(const struct ttm_ledger *ledger, struct ttm_group_region *region,
                       uint8_t number, uint64_t time_ns)
{
    return number == TTM_REGION_CB
               ? 0
               : ttm_ledger_draw(ledger, region, time_ns, region->now.footprint_bytes);
}

/* While ends are lost, sums may be too high: a peak is what was held for sure. */
static void raise_peaks(const struct ttm_ledger *ledger, struct ttm_group_region *region,
                        uint64_t time_ns)
{
    if (ledger->is_loss_open)
        return;
    if (region->now.bytes > region->peak_bytes)
        region->peak_bytes = region->now.bytes;
    if (region->now.footprint_bytes > region->peak_footprint_bytes) {
        region->peak_footprint_bytes = region->now.footprint_bytes;
        region->peak_ns = time_ns;
        region->peak_births = ledger->births;
        region->peak_version++;
    }
}

static void take_loss(struct ttm_ledger *ledger, const struct ttm_recorded_loss *loss,
                      uint64_t time_ns)
{
    ledger->lost_events += loss->events;
    ledger->is_loss_open = loss->is_open;
    for (uint32_t i = 0; i < ledger->groups.count; i++) {
        for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
            raise_peaks(ledger, &ledger->groups.groups[i].region[r], time_ns);
    }
}

static int add_to_groups(struct ttm_ledger *ledger, const struct ttm_cell *cell,
                         const struct ttm_held *held, uint64_t time_ns)
{
    const struct ttm_group_set *set = &ledger->groups.sets[cell->set];
    int r = 0;

    for (uint32_t i = 0; i < set->group_count && r == 0; i++) {
        struct ttm_group *group = &ledger->groups.groups[set->groups[i]];
        struct ttm_group_region *region = &group->region[cell->region];
        group->births = ledger->births;
        ttm_held_add(&region->now, held);
        region->births++;
        raise_peaks(ledger, region, time_ns);
        if (cell->region == TTM_REGION_KERNEL)
            group->kernel_bytes[cell->kind] += held->bytes;
        r = draw_region(ledger, region, cell->region, time_ns);
    }
    return r;
}

static bool is_closing_end(uint8_t how)
{
    return how == TTM_ENDED_DEVICE_CLOSED || how == TTM_ENDED_ALLOCATOR_CLOSED;
}

static bool is_remaining_end(uint8_t how)
{
    return is_closing_end(how) || how == TTM_ENDED_PROCESS_ENDED;
}

/* Whether its owner gave it back: a program gives back what is its own when it goes. */
static bool is_freeing_end(uint8_t how)
{
    return how == TTM_ENDED_FREED || how == TTM_ENDED_PROGRAM_ENDED;
}

static int take_from_groups(struct ttm_ledger *ledger, const struct ttm_cell *cell,
                            const struct ttm_held *held, uint8_t how, uint64_t time_ns)
{
    const struct ttm_group_set *set = &ledger->groups.sets[cell->set];
    int r = 0;

    for (uint32_t i = 0; i < set->group_count && r == 0; i++) {
        struct ttm_group *group = &ledger->groups.groups[set->groups[i]];
        struct ttm_group_region *region = &group->region[cell->region];
        ttm_held_take(&region->now, held);
        region->frees += is_freeing_end(how);
        if (is_remaining_end(how))
            ttm_held_add(&region->closed, held);
        else if (cell->region == TTM_REGION_KERNEL)
            group->kernel_bytes[cell->kind] -= held->bytes;
        r = draw_region(ledger, region, cell->region, time_ns);
    }
    return r;
}

static int take_dispatch(struct ttm_ledger *ledger, const struct ttm_recorded_dispatch *dispatch,
                         uint64_t time_ns)
{
    const int r = ttm_ledger_cbs_settle(ledger, time_ns);
    const int set = r == 0 ? ttm_ledger_set(ledger, dispatch->devices) : r;

    if (set < 0)
        return set;
    ttm_ledger_cbs_dispatch(ledger, &ledger->groups.sets[set], dispatch->program, time_ns);
    return 0;
}

/* ---- addresses ---- */

/*
 * The part of each bank that a life takes; 0 when the banks are not known, or the life is
 * not one that has memory for itself.
 */
static uint64_t bank_bytes_of(const struct ttm_ledger *ledger, const struct ttm_cell *cell,
                              uint64_t footprint_bytes)
{
    if (cell->region >= TTM_REGION_CB || ledger->seen.source != TTM_SOURCE_TRACKED)
        return 0;
    const uint16_t first = ledger->groups.sets[cell->set].devices[0];
    const struct ttm_recorded_device *device = ttm_ledger_device(ledger, first);
    const uint32_t banks = device ? device->bank_count[cell->region] : 0;
    return banks > 0 ? footprint_bytes / banks : 0;
}

/* ---- lives ---- */

static int make_live_room(struct ttm_ledger *ledger, uint32_t slot)
{
    uint32_t room = ledger->live_room ? ledger->live_room : 256;

    if (slot < ledger->live_room)
        return 0;
    while (room <= slot)
        room *= 2;
    struct ttm_live *grown = realloc(ledger->lives, (size_t)room * sizeof(grown[0]));
    if (!grown)
        return -ENOMEM;
    memset(grown + ledger->live_room, 0, (room - ledger->live_room) * sizeof(grown[0]));
    ledger->lives = grown;
    ledger->live_room = room;
    return 0;
}

static int add_size(struct ttm_remaining *remaining, uint64_t bytes)
{
    uint32_t place;

    if (!ttm_u64_map_find(&remaining->size_places, bytes, &place)) {
        place = remaining->size_count;
        if ((place & (place - 1)) == 0) { /* full at each power of two */
            struct ttm_size_count *grown =
                realloc(remaining->sizes, (place ? place * 2 : 1) * sizeof(grown[0]));
            if (!grown)
                return -ENOMEM;
            remaining->sizes = grown;
        }
        if (ttm_u64_map_add(&remaining->size_places, bytes, place) < 0)
            return -ENOMEM;
        remaining->sizes[place] = (struct ttm_size_count){.bytes = bytes};
        remaining->size_count++;
    }
    remaining->sizes[place].count++;
    return 0;
}

static int add_seat(struct ttm_ledger *ledger, const struct ttm_live *live, uint64_t births)
{
    struct ttm_seat seat = {.address = live->address, .births = births, .cell = live->cell - 1};

    if (!ledger->keeps_drawings)
        return 0;
    seat.bank_bytes = bank_bytes_of(ledger, &ledger->cells[seat.cell], live->held.footprint_bytes);
    const bool is_placed = seat.bank_bytes > 0 && seat.address + seat.bank_bytes > seat.address;
    return is_placed ? ttm_seats_add(&ledger->seats, &seat) : 0;
}

/* It was never given back; there were so many births when it ended, if it did. */
static int add_remaining(struct ttm_ledger *ledger, struct ttm_cell *cell,
                         const struct ttm_live *live, uint64_t births)
{
    struct ttm_remaining *remaining = &cell->remaining;

    ttm_held_add(&remaining->held, &live->held);
    if (live->birth_ns < remaining->first_ns)
        remaining->first_ns = live->birth_ns;
    if (live->birth_ns > remaining->last_ns)
        remaining->last_ns = live->birth_ns;
    if (live->birth < remaining->first_birth)
        remaining->first_birth = live->birth;
    if (live->birth > remaining->last_birth)
        remaining->last_birth = live->birth;
    ttm_spread_add(&remaining->times,
                   live->birth_ns > ledger->first_ns ? live->birth_ns - ledger->first_ns : 0);
    ttm_spread_add(&remaining->births, live->birth);
    ledger->kins[cell->kin].remaining_ranks += live->ordinal;
    const int r = add_size(remaining, live->held.bytes);
    return r < 0 ? r : add_seat(ledger, live, births);
}

/* Not of a program, which keeps what it has whatever the loop does that runs it. */
static bool is_of_user(const struct ttm_cell *cell)
{
    return cell->region < TTM_REGION_CB && !cell->is_program &&
           !ttm_is_buffer_of_program(cell->region, cell->kind);
}

/*
 * A loop that allocates on one line alone, and gives back the last buffer when it has the
 * next: the program comes back, although from nowhere else. A comprehension keeps all of them.
 */
static bool is_next_turn(const struct ttm_ledger *ledger)
{
    return ledger->visit_live <= 1 &&
           (ledger->is_turning ||
            (ledger->visit_births > 2 && ledger->visit_births - ledger->visit_live > 1));
}

static void count_visit(struct ttm_ledger *ledger, const struct ttm_cell *cell, uint64_t bytes)
{
    struct ttm_kin *kin = &ledger->kins[cell->kin];
    const uint64_t line = cell->line ? cell->line : ttm_hash_u64(bytes) | 1;

    if (line != ledger->last_line || is_next_turn(ledger)) {
        ledger->is_turning = line == ledger->last_line;
        ledger->last_line = line;
        ledger->visit++;
        ledger->given_back += ledger->visit_births > 0 && ledger->visit_live == 0;
        ledger->visit_births = ledger->visit_live = 0;
    }
    if (is_of_user(cell)) {
        ledger->visit_births++;
        ledger->visit_live++;
    }
    if (kin->last_visit == ledger->visit)
        return;
    if (kin->visits++ == 0)
        kin->first_visit = ledger->visit;
    else {
        if (ledger->visit - kin->last_visit > kin->longest_gap)
            kin->longest_gap = ledger->visit - kin->last_visit;
        kin->separated += ledger->marks_ever != kin->last_mark || cell->phase != kin->last_phase;
    }
    kin->last_visit = ledger->visit;
    kin->last_mark = ledger->marks_ever;
    kin->last_phase = cell->phase;
}

/* What its kin and its thread have in common with others of theirs. */
static void count_kin(struct ttm_ledger *ledger, struct ttm_cell *cell, struct ttm_live *live)
{
    struct ttm_kin *kin = &ledger->kins[cell->kin];

    live->visit = (uint32_t)ledger->visit;
    live->ordinal = kin->births++;
    kin->work = ledger->given_back - kin->given_back;
    if (++kin->live > kin->most) {
        kin->most = kin->live;
        kin->most_birth = live->ordinal;
    }
    struct ttm_ledger_thread *thread = &ledger->threads[cell->thread];
    cell->thread_last = thread->births++;
    if (is_of_user(cell) && thread->kin != cell->kin + 1) {
        kin->before = thread->kin;
        thread->kin = cell->kin + 1;
    }
}

static void count_birth(const struct ttm_ledger *ledger, struct ttm_cell *cell,
                        const struct ttm_live *live, uint64_t address)
{
    const uint64_t birth_ns = live->birth_ns;

    cell->allocs++;
    cell->born_bytes += live->held.footprint_bytes;
    if (birth_ns < cell->first_ns)
        cell->first_ns = birth_ns;
    if (birth_ns > cell->last_ns)
        cell->last_ns = birth_ns;
    if (address < cell->lowest_address)
        cell->lowest_address = address;
    if (address > cell->highest_address)
        cell->highest_address = address;
    ttm_spread_add(&cell->times, birth_ns > ledger->first_ns ? birth_ns - ledger->first_ns : 0);
}

static int take_birth(struct ttm_ledger *ledger, const struct ttm_recorded_life *life,
                      uint64_t time_ns)
{
    uint32_t index = 0;
    int r = make_live_room(ledger, life->slot);

    if (r == 0)
        r = ttm_ledger_cell(ledger, life, &index);
    if (r != 0)
        return r;
    struct ttm_cell *cell = &ledger->cells[index];
    struct ttm_group_set *set = &ledger->groups.sets[cell->set];
    struct ttm_live *live = &ledger->lives[life->slot];
    set->live++;
    set->is_closing = false;
    *live = (struct ttm_live){.birth_ns = life->birth_ns,
                              .birth = ledger->births,
                              .address = life->address,
                              .held = {1, life->bytes, life->footprint_bytes},
                              .cell = index + 1};
    if (life->region == TTM_REGION_CB) {
        r = ttm_ledger_cbs_settle(ledger, time_ns);
        if (r == 0)
            r = ttm_ledger_cbs_sum_mark(ledger);
        ledger->are_cbs_closed = false;
        if (r == 0)
            r = ttm_ledger_cbs_birth(ledger, life, set, &live->is_placed);
        ttm_ledger_cbs_change(ledger, time_ns);
    } else {
        live->is_placed = ttm_addresses_put(&ledger->addresses, life,
                                            bank_bytes_of(ledger, cell, life->footprint_bytes));
    }
    if (!life->is_told) /* else nobody knows what it came after */
        count_visit(ledger, cell, life->bytes);
    count_kin(ledger, cell, live);
    count_birth(ledger, cell, live, life->address);
    live->reused = ttm_addresses_count(&ledger->addresses, life);
    ledger->births++;
    ledger->told += life->is_told;
    save_cell(ledger, cell);
    ttm_held_add(&cell->now, &live->held);
    const int added = add_to_groups(ledger, cell, &live->held, time_ns);
    return r < 0 ? r : added;
}

static void count_late(const struct ttm_ledger *ledger, struct ttm_cell *cell,
                       const struct ttm_live *live)
{
    struct ttm_late *late = &cell->late;

    if (late->births != ledger->births)
        *late = (struct ttm_late){.births = ledger->births, .first_ns = UINT64_MAX};
    ttm_held_add(&late->held, &live->held);
    if (live->birth > late->last_birth)
        late->last_birth = live->birth;
    if (live->birth_ns < late->first_ns)
        late->first_ns = live->birth_ns;
    if (live->birth_ns > late->last_ns)
        late->last_ns = live->birth_ns;
}

static void count_given_back(struct ttm_ledger *ledger, const struct ttm_live *live)
{
    if (live->visit != (uint32_t)ledger->visit)
        ledger->given_back++;
    else if (ledger->visit_live > 0)
        ledger->visit_live--;
}

/*
 * A device that is closed leaves nothing: what ends with an allocator while others stay, as that
 * of a sub-device, closes no session. A log tells it of each life when another takes its place.
 */
static int count_close(struct ttm_ledger *ledger, const struct ttm_cell *cell, uint8_t how,
                       uint64_t time_ns)
{
    struct ttm_group_set *set = &ledger->groups.sets[cell->set];
    struct ttm_log_note log;

    set->live--;
    set->is_closing |= is_closing_end(how);
    if (!set->is_closing || !ttm_cell_is_open(ledger, cell))
        return 0;
    if (set->live > 0 && !(is_closing_end(how) && ttm_origin_log(&ledger->notes, &log)))
        return 0;
    return ttm_ledger_close_session(ledger, cell->set, time_ns);
}

static int take_end(struct ttm_ledger *ledger, const struct ttm_recorded_life *life, uint8_t how,
                    uint64_t time_ns)
{
    struct ttm_live *live = life->slot < ledger->live_room ? &ledger->lives[life->slot] : NULL;
    int r = 0;

    if (!live || live->cell == 0) {
        ledger->odd++;
        return 0;
    }
    struct ttm_cell *cell = &ledger->cells[live->cell - 1];
    const struct ttm_group_set *set = &ledger->groups.sets[cell->set];
    if (life->region == TTM_REGION_CB) {
        r = ttm_ledger_cbs_settle(ledger, time_ns);
        if (r == 0)
            r = ttm_ledger_cbs_sum_mark(ledger);
        if (r == 0 && is_remaining_end(how) && !ledger->are_cbs_closed)
            r = ttm_ledger_cbs_close(ledger);
        if (live->is_placed)
            ttm_cb_map_remove(&ledger->cbs, life->serial);
        else
            ttm_ledger_cbs_coreless(ledger, set, 0 - life->footprint_bytes);
        if (ledger->cb_program == life->id) /* it may be laid out, or told of, anew */
            ledger->cb_program = 0;
        ttm_ledger_cbs_change(ledger, time_ns);
    } else if (live->is_placed) {
        ttm_addresses_take(&ledger->addresses, life,
                           bank_bytes_of(ledger, cell, life->footprint_bytes));
    }
    save_cell(ledger, cell);
    ttm_held_take(&cell->now, &live->held);
    const int taken = take_from_groups(ledger, cell, &live->held, how, time_ns);
    r = r < 0 ? r : taken;
    ledger->kins[cell->kin].live--;
    if (is_freeing_end(how)) {
        cell->frees++;
        if (life->region < TTM_REGION_CB)
            count_given_back(ledger, live);
        count_late(ledger, cell, live);
        cell->lifetime_ns += time_ns > live->birth_ns ? time_ns - live->birth_ns : 0;
        if (live->reused > 0)
            ledger->addresses.reused[live->reused - 1].frees++;
    } else if (is_remaining_end(how)) {
        const int added = add_remaining(ledger, cell, live, ledger->births);
        r = r < 0 ? r : added;
    } else {
        cell->replaced += how == TTM_ENDED_REPLACED;
        cell->unheard += how != TTM_ENDED_REPLACED;
    }
    live->cell = 0;
    const int closed = count_close(ledger, cell, how, time_ns);
    return r < 0 ? r : closed;
}

static void move_saved(struct ttm_saved *from, struct ttm_saved *to, const struct ttm_held *held)
{
    ttm_held_take(&from->held, held);
    ttm_held_add(&to->held, held);
}

/* Both cells have saved what they held; where this life was a part of it, it moves as well. */
static void move_past(struct ttm_ledger *ledger, struct ttm_cell *from, struct ttm_cell *to,
                      const struct ttm_live *live)
{
    const struct ttm_group_set *set = &ledger->groups.sets[from->set];

    for (uint32_t i = 0; i < set->group_count; i++) {
        const struct ttm_group *group = &ledger->groups.groups[set->groups[i]];
        if (live->birth < group->region[from->region].peak_births)
            move_saved(&from->peaks[i], &to->peaks[i], &live->held);
    }
    for (uint32_t i = 0; i < ledger->moment_slots; i++) {
        if (live->birth < ledger->moment_births[i])
            move_saved(&from->moments[i], &to->moments[i], &live->held);
    }
}

/* The cell that a live allocation moves to: of the session in which it was allocated. */
static int find_renamed(struct ttm_ledger *ledger, const struct ttm_live *live,
                        const struct ttm_recorded_life *life, uint32_t *ret)
{
    const struct ttm_cell *from = &ledger->cells[live->cell - 1];
    const uint32_t set = from->set, current = ledger->groups.sets[set].session;

    if (ttm_cell_is_current(ledger, from))
        return ttm_ledger_cell(ledger, life, ret);
    ledger->groups.sets[set].session = from->session + 1;
    const int r = ttm_ledger_find_cell(ledger, life, ret);
    ledger->groups.sets[set].session = current;
    return r;
}

/* A name that is given later holds from the birth on: in all that is told of it. */
static int take_rename(struct ttm_ledger *ledger, const struct ttm_recorded_life *life)
{
    struct ttm_live *live = life->slot < ledger->live_room ? &ledger->lives[life->slot] : NULL;
    uint32_t index;

    if (!live || live->cell == 0) {
        ledger->odd++;
        return 0;
    }
    const int r = find_renamed(ledger, live, life, &index);
    if (r < 0)
        return r;
    struct ttm_cell *from = &ledger->cells[live->cell - 1], *to = &ledger->cells[index];
    if (from == to)
        return 0;
    save_cell(ledger, from);
    save_cell(ledger, to);
    move_past(ledger, from, to, live);
    ttm_held_take(&from->now, &live->held);
    ttm_held_add(&to->now, &live->held);
    from->allocs--;
    from->born_bytes -= live->held.footprint_bytes;
    count_birth(ledger, to, live, life->address);
    live->cell = index + 1;
    return 0;
}

/* A view adds nothing: the memory is another life's. */
static int take_life(struct ttm_ledger *ledger, const struct ttm_recorded *record)
{
    if (record->life->flags & TTM_SITE_ALIAS)
        return 0;
    if (record->type == TTM_RECORDED_BIRTH)
        return take_birth(ledger, record->life, record->time_ns);
    if (record->type == TTM_RECORDED_END)
        return take_end(ledger, record->life, record->how, record->time_ns);
    return take_rename(ledger, record->life);
}

/* ---- moments ---- */

/* What each device holds: cells keep that by themselves, and for more marks than one. */
static void keep_mark(struct ttm_ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->groups.count; i++) {
        struct ttm_group *group = &ledger->groups.groups[i];
        for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
            group->region[r].at_mark = group->region[r].now;
    }
    ttm_ledger_cbs_mark(ledger);
}

static void take_moment(struct ttm_ledger *ledger, uint32_t slot, uint64_t time_ns)
{
    ledger->moment_version[slot]++;
    ledger->moment_ns[slot] = time_ns;
    ledger->moment_births[slot] = ledger->births;
}

/*
 * A mark may come often. What is compared with the last of the second is the last of the first
 * before it: of those that come later nobody knows yet whether one of the second follows, so
 * they use another slot.
 */
static void take_moments(struct ttm_ledger *ledger, const char *name, uint64_t time_ns)
{
    const char *const *names = ledger->moment_names;

    if (names[0] && names[1] && strcmp(names[1], name) == 0) {
        take_moment(ledger, 1, time_ns);
        if (ledger->moment_version[ledger->newest_slot] > 1)
            ledger->paired_slot = (int)ledger->newest_slot;
    }
    if (names[0] && strcmp(names[0], name) == 0) {
        if ((int)ledger->newest_slot == ledger->paired_slot)
            ledger->newest_slot = ledger->newest_slot == 0 ? 2 : 0;
        take_moment(ledger, ledger->newest_slot, time_ns);
        keep_mark(ledger);
    }
}

static bool is_judge_mark(const struct ttm_ledger *ledger, const struct ttm_recorded_mark *mark)
{
    const char *name = ledger->judging.mark;

    return name && strlen(name) == mark->name_length &&
           memcmp(name, mark->name, mark->name_length) == 0;
}

static int take_mark(struct ttm_ledger *ledger, const struct ttm_recorded_mark *mark,
                     uint64_t time_ns)
{
    ledger->last_line = 0; /* what comes after a mark is another visit */
    ledger->marks_ever++;
    if (!ledger->is_judging && is_judge_mark(ledger, mark) &&
        ttm_ledger_begin_judging(ledger, time_ns) < 0)
        return -ENOMEM;
    if (ledger->mark_count == TTM_LEDGER_MARKS)
        return 0;
    if ((ledger->mark_count & (ledger->mark_count - 1)) == 0) {
        struct ttm_ledger_mark *grown = realloc(
            ledger->marks, (ledger->mark_count ? ledger->mark_count * 2 : 1) * sizeof(grown[0]));
        if (!grown)
            return -ENOMEM;
        ledger->marks = grown;
    }
    const char *name = ttm_arena_text(&ledger->texts, mark->name, mark->name_length);
    ledger->marks[ledger->mark_count++] =
        (struct ttm_ledger_mark){.time_ns = time_ns, .name = name};
    take_moments(ledger, name, time_ns);
    return ledger->texts.failed ? -ENOMEM : 0;
}

static int take_failure(struct ttm_ledger *ledger, const struct ttm_recorded_failure *failure,
                        uint64_t time_ns)
{
    const int set = ttm_ledger_set(ledger, failure->devices);

    ledger->failures_ever++;
    if (set < 0)
        return set;
    const struct ttm_ledger_failure one = {
        .failure = *failure, .time_ns = time_ns, .device = ledger->groups.sets[set].devices[0]};
    return ttm_ledger_keep_failure(ledger, &one);
}

/* ---- records ---- */

static int take_process(struct ttm_ledger *ledger, const struct ttm_recorded_process *seen)
{
    char *command = ledger->command ? NULL : strndup(seen->command, seen->command_length);

    if (ledger->command)
        return 0;
    if (!command)
        return -ENOMEM;
    ledger->command = command;
    ledger->seen = *seen;
    ledger->seen.command = command;
    /* A wall clock that was set in between makes this wrong: then the first record counts. */
    const uint64_t start_ns = seen->start_wall_ns - (uint64_t)ledger->judging.wall_offset_ns;
    if (seen->start_wall_ns > 0 && start_ns < ledger->first_ns)
        ledger->start_ns = start_ns;
    return 0;
}

/* Returns 0 or -ENOMEM. */
static int take_time(struct ttm_ledger *ledger, uint64_t time_ns)
{
    if (time_ns < ledger->first_ns)
        ledger->first_ns = time_ns;
    if (time_ns > ledger->last_ns)
        ledger->last_ns = time_ns;
    if (ledger->is_judging || !ledger->judging.has_warmup)
        return 0;
    const uint64_t start_ns = ledger->start_ns > 0 ? ledger->start_ns : ledger->first_ns;
    const bool is_warm = time_ns >= start_ns && time_ns - start_ns >= ledger->judging.warmup_ns;
    return is_warm ? ttm_ledger_begin_judging(ledger, time_ns) : 0;
}

int ttm_ledger_take(struct ttm_ledger *ledger, const struct ttm_recorded *record)
{
    if (record->type != TTM_RECORDED_NOTE && record->type != TTM_RECORDED_GAP &&
        take_time(ledger, record->time_ns) < 0)
        return -ENOMEM;
    switch (record->type) {
    case TTM_RECORDED_PROCESS:
        return take_process(ledger, &record->seen);
    case TTM_RECORDED_PROCESS_END:
        ledger->has_ended = true;
        ledger->end = record->end;
        return 0;
    case TTM_RECORDED_DEVICE:
        return take_device(ledger, &record->device);
    case TTM_RECORDED_NOTE: {
        const struct ttm_noted note = {record->note.number, record->note.kind, record->note.bytes,
                                       record->note.length};
        return ttm_notebook_add(&ledger->notes, &note);
    }
    case TTM_RECORDED_BIRTH:
    case TTM_RECORDED_END:
    case TTM_RECORDED_RENAME:
        return take_life(ledger, record);
    case TTM_RECORDED_DISPATCH:
        return take_dispatch(ledger, &record->dispatch, record->time_ns);
    case TTM_RECORDED_MARK:
        return take_mark(ledger, &record->mark, record->time_ns);
    case TTM_RECORDED_FAILURE:
        return take_failure(ledger, &record->failure, record->time_ns);
    case TTM_RECORDED_LOSS:
        take_loss(ledger, &record->loss, record->time_ns);
        return 0;
    case TTM_RECORDED_COUNTERS:
        ledger->counters = record->counters;
        return 0;
    default:
        return 0;
    }
}

int ttm_ledger_finish(struct ttm_ledger *ledger)
{
    int r = ledger->are_cbs_changed ? ttm_ledger_cbs_sum(ledger) : 0;

    if (r == 0)
        r = ttm_ledger_cbs_sum_mark(ledger);
    for (uint32_t slot = 0; slot < ledger->live_room && r == 0; slot++) {
        const struct ttm_live *live = &ledger->lives[slot];
        if (live->cell != 0)
            r = add_remaining(ledger, &ledger->cells[live->cell - 1], live, UINT64_MAX);
    }
    ttm_ledger_end_sessions(ledger);
    for (uint32_t i = 0; i < ledger->cell_count; i++) {
        if (ledger->cells[i].late.births != ledger->births)
            ledger->cells[i].late = (struct ttm_late){.first_ns = UINT64_MAX};
    }
    return r;
}
