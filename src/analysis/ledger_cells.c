/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/ledger_cells.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/origin_words.h"
#include "base/hash.h"

#define CELLS_MAX (1u << 22)
#define THREADS_MAX 4096

/* ---- sets of devices ---- */

/* A group goes on as two: each cell on its devices has held the same on both. */
static int split_cells(void *arg, uint32_t group, uint32_t twin)
{
    struct ttm_ledger *ledger = arg;

    for (uint32_t i = 0; i < ledger->cell_count; i++) {
        struct ttm_cell *cell = &ledger->cells[i];
        const struct ttm_group_set *set = &ledger->groups.sets[cell->set];
        const uint32_t n = set->group_count;
        uint32_t at = 0;
        if (n < 2 || set->groups[n - 1] != twin)
            continue;
        struct ttm_saved *grown = realloc(cell->peaks, n * sizeof(grown[0]));
        if (!grown)
            return -ENOMEM;
        cell->peaks = grown;
        while (set->groups[at] != group)
            at++;
        grown[n - 1] = grown[at];
    }
    return 0;
}

int ttm_ledger_set(struct ttm_ledger *ledger, uint32_t number)
{
    uint16_t devices[TTM_DEVICE_COUNT];
    const int known = ttm_groups_find(&ledger->groups, number);

    if (known >= 0)
        return known;
    const uint32_t count = ttm_notebook_devices(&ledger->notes, number, devices);
    int r = ttm_groups_add(&ledger->groups, number, devices, count, split_cells, ledger);
    if (r == -EINVAL) {
        ledger->odd++;
        devices[0] = 0;
        r = ttm_groups_add(&ledger->groups, number, devices, 1, split_cells, ledger);
    }
    return r == -EINVAL ? 0 : r;
}

/* ---- sessions ---- */

/* The set goes on in a new one. Returns 0 or -ENOMEM. */
static int begin_session(struct ttm_ledger *ledger, uint32_t set, uint64_t time_ns)
{
    const uint32_t n = ledger->session_count;

    if ((n & (n - 1)) == 0) { /* full at each power of two */
        struct ttm_ledger_session *grown =
            realloc(ledger->sessions, (n ? n * 2 : 1) * sizeof(grown[0]));
        if (!grown)
            return -ENOMEM;
        ledger->sessions = grown;
    }
    ledger->sessions[n] =
        (struct ttm_ledger_session){.first_births = ledger->births, .first_ns = time_ns};
    ledger->groups.sets[set].session = ++ledger->session_count;
    return 0;
}

/* At the latest time that was seen: records of several threads are in order but for a little. */
static void end_session(const struct ttm_ledger *ledger, struct ttm_ledger_session *session)
{
    session->births = ledger->births;
    session->visits = ledger->visit;
    session->last_ns = ledger->last_ns;
}

static void close_one(const struct ttm_ledger *ledger, struct ttm_ledger_session *session)
{
    end_session(ledger, session);
    session->is_closed = true;
}

int ttm_ledger_close_session(struct ttm_ledger *ledger, uint32_t set, uint64_t time_ns)
{
    struct ttm_ledger_session *session = &ledger->sessions[ledger->groups.sets[set].session - 1];

    ledger->groups.sets[set].is_closing = false;
    if (ledger->reopened == TTM_LEDGER_REOPENED) {
        session->is_blended = true;
        return 0;
    }
    ledger->reopened++;
    close_one(ledger, session);
    if (session->early > 0)
        close_one(ledger, &ledger->sessions[session->early - 1]);
    ledger->last_line = 0;
    return begin_session(ledger, set, time_ns);
}

int ttm_ledger_begin_judging(struct ttm_ledger *ledger, uint64_t time_ns)
{
    ledger->is_judging = true;
    ledger->judging_ns = time_ns;
    ledger->last_line = 0;
    for (uint32_t i = 0; i < ledger->session_count; i++)
        ledger->sessions[i].is_early = true;
    for (uint32_t set = 0; set < ledger->groups.set_count; set++) {
        const uint32_t early = ledger->groups.sets[set].session;
        if (early == 0) /* nothing was allocated there yet */
            continue;
        if (begin_session(ledger, set, time_ns) < 0)
            return -ENOMEM;
        ledger->sessions[ledger->session_count - 1].early = early;
    }
    return 0;
}

void ttm_ledger_end_sessions(struct ttm_ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->session_count; i++) {
        if (!ledger->sessions[i].is_closed)
            end_session(ledger, &ledger->sessions[i]);
    }
}

/* ---- cells, their kin and their threads ---- */

static uint64_t hash_of(const struct ttm_ledger *ledger, const struct ttm_recorded_life *life)
{
    const uint64_t low = (uint64_t)life->origin << 32 | life->devices;
    const uint64_t high =
        (uint64_t)life->region << 16 | (uint64_t)life->kind << 8 | (life->flags & TTM_SITE_PROGRAM);

    return ttm_hash_u64(low ^ high << 40 ^ ledger->seed);
}

static int grow_index(struct ttm_ledger *ledger)
{
    const uint32_t size = ledger->cell_index_size ? ledger->cell_index_size * 2 : 64;
    uint32_t *index = calloc(size, sizeof(index[0]));

    if (!index)
        return -ENOMEM;
    for (uint32_t i = 0; i < ledger->cell_count; i++) {
        const struct ttm_cell *cell = &ledger->cells[i];
        if (!ttm_cell_is_current(ledger, cell)) /* nobody will look for it */
            continue;
        const struct ttm_recorded_life like = {
            .origin = cell->origin,
            .devices = cell->devices,
            .region = cell->region,
            .kind = cell->kind,
            .flags = cell->is_program ? TTM_SITE_PROGRAM : 0,
        };
        uint64_t at = hash_of(ledger, &like) & (size - 1);
        while (index[at] != 0)
            at = (at + 1) & (size - 1);
        index[at] = i + 1;
    }
    free(ledger->cell_index);
    ledger->cell_index = index;
    ledger->cell_index_size = size;
    return 0;
}

static int make_cell_room(struct ttm_ledger *ledger)
{
    if (ledger->cell_count < ledger->cell_room)
        return 0;
    const uint32_t room = ledger->cell_room ? ledger->cell_room * 2 : 16;
    struct ttm_cell *grown = realloc(ledger->cells, room * sizeof(grown[0]));
    if (!grown)
        return -ENOMEM;
    ledger->cells = grown;
    ledger->cell_room = room;
    return 0;
}

/* The index of a thread, or -ENOMEM. */
static int thread_of(struct ttm_ledger *ledger, uint32_t note)
{
    for (uint32_t i = 0; i < ledger->thread_count; i++) {
        if (ledger->threads[i].note == note)
            return (int)i;
    }
    /* A program that makes a thread for each task: from here on they are not told apart. */
    if (ledger->thread_count == THREADS_MAX)
        return THREADS_MAX - 1;
    struct ttm_ledger_thread *grown =
        realloc(ledger->threads, (ledger->thread_count + 1) * sizeof(grown[0]));
    if (!grown)
        return -ENOMEM;
    ledger->threads = grown;
    grown[ledger->thread_count] = (struct ttm_ledger_thread){.note = note};
    return (int)ledger->thread_count++;
}

/* The kin of a new cell, or -ENOMEM. */
static int kin_of(struct ttm_ledger *ledger, const struct ttm_recorded_life *life,
                  struct ttm_origin_line line, uint32_t session)
{
    /* A session has devices of its own. */
    const uint64_t key =
        ttm_hash_u64(line.code ^ ttm_hash_u64(((uint64_t)session << 16) +
                                              ((uint64_t)life->region << 8) + life->kind));
    uint32_t place;

    if (ttm_u64_map_find(&ledger->kin_places, key, &place))
        return (int)place;
    if ((ledger->kin_count & (ledger->kin_count - 1)) == 0) {
        struct ttm_kin *grown = realloc(
            ledger->kins, (ledger->kin_count ? ledger->kin_count * 2 : 1) * sizeof(grown[0]));
        if (!grown)
            return -ENOMEM;
        ledger->kins = grown;
    }
    if (ttm_u64_map_add(&ledger->kin_places, key, ledger->kin_count) < 0)
        return -ENOMEM;
    /* Regions apart, as a kin is of one; keys of both kinds are hashes, in one map. */
    const uint64_t spot =
        ttm_hash_u64(line.spot ^ ((uint64_t)life->region << 56) ^ ttm_hash_u64(~(uint64_t)session));
    if (!ttm_u64_map_find(&ledger->kin_places, spot, &place)) {
        place = ledger->kin_count;
        if (ttm_u64_map_add(&ledger->kin_places, spot, place) < 0)
            return -ENOMEM;
    }
    ledger->kins[ledger->kin_count] = (struct ttm_kin){
        .code = line.code,
        .function = line.function,
        .spot = place,
        .session = session,
        .first_birth = ledger->births,
        .given_back = ledger->given_back,
    };
    return (int)ledger->kin_count++;
}

static int add_cell(struct ttm_ledger *ledger, const struct ttm_recorded_life *life, uint32_t *ret)
{
    const int set = ttm_ledger_set(ledger, life->devices);
    if (set < 0)
        return set;
    if (ledger->cell_count == CELLS_MAX || make_cell_room(ledger) < 0)
        return -ENOMEM;
    if (ledger->groups.sets[set].session == 0 &&
        begin_session(ledger, (uint32_t)set,
                      ledger->is_judging ? ledger->judging_ns : ledger->first_ns) < 0)
        return -ENOMEM;
    struct ttm_cell cell = {
        .origin = life->origin,
        .devices = life->devices,
        .region = life->region,
        .kind = life->kind,
        .is_program = (life->flags & TTM_SITE_PROGRAM) != 0,
        .set = (uint32_t)set,
        .session = ledger->groups.sets[set].session - 1,
        .first_ns = UINT64_MAX,
        .lowest_address = UINT64_MAX,
        .remaining = {.first_ns = UINT64_MAX, .first_birth = UINT64_MAX},
    };
    ttm_u64_map_init(&cell.remaining.size_places, ledger->seed);
    const struct ttm_origin_line line = ttm_origin_line(&ledger->notes, life->origin);
    const int kin = kin_of(ledger, life, line, cell.session);
    const int thread = thread_of(ledger, line.thread);
    if (kin < 0 || thread < 0)
        return -ENOMEM;
    cell.kin = (uint32_t)kin;
    cell.thread = (uint32_t)thread;
    cell.thread_first = ledger->threads[thread].births;
    /* Without any origin, sizes take the place of lines. */
    cell.line = line.code ? ttm_hash_u64(line.code ^ line.context) | 1 : 0;
    cell.phase = line.phase;
    cell.peaks = calloc(ledger->groups.sets[set].group_count, sizeof(cell.peaks[0]));
    if (!cell.peaks)
        return -ENOMEM;
    ledger->cells[ledger->cell_count] = cell;
    *ret = ledger->cell_count++;
    return 0;
}

int ttm_ledger_find_cell(struct ttm_ledger *ledger, const struct ttm_recorded_life *life,
                         uint32_t *ret)
{
    if (ledger->cell_count * 2 >= ledger->cell_index_size && grow_index(ledger) < 0)
        return -ENOMEM;
    uint64_t at = hash_of(ledger, life) & (ledger->cell_index_size - 1);
    while (ledger->cell_index[at] != 0 &&
           !ttm_cell_is_of(&ledger->cells[ledger->cell_index[at] - 1], life))
        at = (at + 1) & (ledger->cell_index_size - 1);
    const uint32_t known = ledger->cell_index[at];
    if (known != 0 && ttm_cell_is_current(ledger, &ledger->cells[known - 1])) {
        *ret = ledger->last_cell = known - 1;
        return 0;
    }
    const int r = add_cell(ledger, life, ret);
    if (r < 0)
        return r;
    ledger->cell_index[at] = *ret + 1; /* in the place of that of an earlier session */
    ledger->last_cell = *ret;
    return 0;
}
