/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells whose words are the same are one origin: people do not care that the native
 * stacks below one line differ. What an origin shows of the native stack is that of
 * its largest cell. Without Python frames the native stack is what tells them apart.
 */
#include "analysis/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/by_process.h"
#include "analysis/ledger_failures.h"
#include "analysis/report_making.h"
#include "base/u64_map.h"
#include "model/board.h"

#define PROGRESS_RECORDS 65536
#define BANK_RUNS_ALL 16384

/* ---- reading ---- */

struct reading {
    struct ttm_by_process ledgers;
    struct ttm_recording *recording;
    const struct ttm_report_options *options;
    struct ttm_report *report;
};

static struct ttm_ledger *ledger_at(const struct reading *reading, uint32_t place)
{
    return reading->ledgers.objects[place];
}

static struct ttm_ledger *ledger_of(struct reading *reading, uint32_t process)
{
    struct ttm_ledger *ledger = ttm_by_process_find(&reading->ledgers, process);

    if (ledger)
        return ledger;
    ledger = malloc(sizeof(*ledger));
    if (!ledger || ttm_by_process_add(&reading->ledgers, process, ledger) < 0) {
        free(ledger);
        return NULL;
    }
    ttm_ledger_init(ledger, process, reading->options->seed);
    ledger->keeps_drawings = reading->options->wants_drawings;
    ttm_ledger_ask(ledger, reading->options->moments);
    struct ttm_recording_info info;
    ttm_recording_info(reading->recording, &info);
    const struct ttm_ledger_judging judging = {.mark = reading->options->after_mark,
                                               .has_warmup = reading->options->has_warmup,
                                               .warmup_ns = reading->options->warmup_ns,
                                               .wall_offset_ns = info.wall_offset_ns};
    ttm_ledger_judge_after(ledger, &judging);
    return ledger;
}

static int take(struct reading *reading, const struct ttm_recorded *record)
{
    if (record->type == TTM_RECORDED_GAP) {
        reading->report->gaps++;
        return 0;
    }
    struct ttm_ledger *ledger = ledger_of(reading, record->process);
    return ledger ? ttm_ledger_take(ledger, record) : -ENOMEM;
}

static void tell_progress(const struct reading *reading, struct ttm_recording *recording)
{
    struct ttm_recording_info info;

    if (!reading->options->progress)
        return;
    ttm_recording_info(recording, &info);
    reading->options->progress(reading->options->progress_arg, info.offset, info.size_bytes);
}

static int read_all(struct reading *reading, struct ttm_recording *recording)
{
    const struct ttm_recorded *record;
    int r;

    while ((r = ttm_recording_next(recording, &record)) != 0) {
        if (r == -EBADMSG) /* told by the recording's info */
            continue;
        if (r < 0)
            return r;
        r = take(reading, record);
        if (r < 0)
            return r;
        if (++reading->report->records % PROGRESS_RECORDS == 0)
            tell_progress(reading, recording);
    }
    for (uint32_t i = 0; i < reading->ledgers.count; i++) {
        r = ttm_ledger_finish(ledger_at(reading, i));
        if (r < 0)
            return r;
    }
    ttm_recording_info(recording, &reading->report->info);
    return 0;
}

/* ---- origins ---- */

static int compare_stacks(const struct ttm_stack_words *a, const struct ttm_stack_words *b)
{
    if (a->count != b->count)
        return compare_numbers(a->count, b->count);
    for (uint32_t i = 0; i < a->count; i++) {
        const struct ttm_frame_words *x = &a->frames[i], *y = &b->frames[i];
        int order = compare_numbers(x->line, y->line);
        if (order == 0)
            order = strcmp(x->file, y->file);
        if (order == 0)
            order = strcmp(x->function, y->function);
        if (order != 0)
            return order;
    }
    return 0;
}

static int compare_native(const struct ttm_origin_words *a, const struct ttm_origin_words *b)
{
    if (a->native_count != b->native_count)
        return compare_numbers(a->native_count, b->native_count);
    for (uint32_t i = 0; i < a->native_count; i++) {
        const int order = strcmp(a->native[i], b->native[i]);
        if (order != 0)
            return order;
    }
    return 0;
}

static int compare_words(const struct ttm_origin_words *a, const struct ttm_origin_words *b)
{
    const struct ttm_stack_words x = ttm_origin_users_stack(a), y = ttm_origin_users_stack(b);
    int order = compare_numbers(a->python_count, b->python_count);

    if (order == 0)
        order = compare_stacks(&x, &y);
    if (order == 0)
        order = strcmp(a->operation, b->operation);
    if (order == 0)
        order = strcmp(a->name, b->name);
    if (order == 0)
        order = strcmp(a->context, b->context);
    if (order == 0)
        order = strcmp(a->thread, b->thread);
    if (order == 0 && a->python_count == 0)
        order = compare_native(a, b);
    return order;
}

static int compare_named(const struct named *a, const struct named *b)
{
    int order = compare_numbers(a->cell->region, b->cell->region);

    if (order == 0)
        order = compare_numbers(a->cell->kind, b->cell->kind);
    if (order == 0)
        order = compare_numbers(a->cell->set, b->cell->set);
    return order != 0 ? order : compare_words(&a->words, &b->words);
}

/* Cells of one origin side by side, the largest first. */
static int by_origin(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = compare_named(x, y);

    if (order == 0)
        order = compare_numbers(y->cell->remaining.held.footprint_bytes,
                                x->cell->remaining.held.footprint_bytes);
    if (order == 0)
        order = compare_numbers(y->cell->allocs, x->cell->allocs);
    return order != 0 ? order : compare_numbers(x->index, y->index);
}

static struct ttm_held larger(struct ttm_held a, struct ttm_held b)
{
    return b.footprint_bytes > a.footprint_bytes ? b : a;
}

static struct ttm_held peak_of(const struct ttm_ledger *ledger, const struct ttm_cell *cell)
{
    struct ttm_held most = {0};

    for (uint32_t i = 0; i < ledger->groups.sets[cell->set].group_count; i++)
        most = larger(most, ttm_cell_at_peak(ledger, cell, i));
    return most;
}

static int by_size(const void *a, const void *b)
{
    const struct ttm_size_count *x = a, *y = b;

    return compare_numbers(x->bytes, y->bytes);
}

/* The sizes of all cells of an origin, each size once. */
static void join_sizes(struct making *making, const struct named *first, uint32_t count,
                       struct ttm_report_origin *origin)
{
    size_t all = 0, at = 0;

    for (uint32_t i = 0; i < count; i++)
        all += first[i].cell->remaining.size_count;
    struct ttm_size_count *sizes = ttm_arena_take(&making->report->arena, all, sizeof(sizes[0]));
    if (!sizes || all == 0)
        return;
    for (uint32_t i = 0; i < count; i++) {
        const struct ttm_remaining *remaining = &first[i].cell->remaining;
        if (remaining->size_count > 0)
            memcpy(sizes + at, remaining->sizes, remaining->size_count * sizeof(sizes[0]));
        at += remaining->size_count;
    }
    qsort(sizes, all, sizeof(sizes[0]), by_size);
    uint32_t n = 0;
    for (size_t i = 0; i < all; i++) {
        if (n > 0 && sizes[n - 1].bytes == sizes[i].bytes)
            sizes[n - 1].count += sizes[i].count;
        else
            sizes[n++] = sizes[i];
    }
    origin->sizes = sizes;
    origin->size_count = n;
}

static void add_cell(const struct making *making, const struct ttm_cell *cell,
                     struct ttm_report_origin *origin)
{
    const struct ttm_held peak = peak_of(making->ledger, cell);

    origin->allocs += cell->allocs;
    origin->born_bytes += cell->born_bytes;
    origin->frees += cell->frees;
    origin->replaced += cell->replaced;
    origin->lifetime_ns += cell->lifetime_ns;
    ttm_held_add(&origin->late, &cell->late.held);
    ttm_held_add(&origin->remaining, &cell->remaining.held);
    ttm_held_add(&origin->peak, &peak);
    for (uint32_t i = 0; i < TTM_MOMENTS; i++) {
        const struct ttm_held held = ttm_cell_at_moment(making->ledger, cell, i);
        ttm_held_add(&origin->moments[i], &held);
    }
}

/* When it was born, and how its births lie over the run: of what remains, if anything does. */
static void add_times(const struct making *making, const struct named *first, uint32_t count,
                      struct ttm_report_origin *origin)
{
    const bool is_all = origin->remaining.count == 0;
    struct ttm_spread sum = {0};

    origin->first_ns = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const struct ttm_cell *cell = first[i].cell;
        const uint64_t first_ns = is_all ? cell->first_ns : cell->remaining.first_ns;
        const uint64_t last_ns = is_all ? cell->last_ns : cell->remaining.last_ns;
        if (first_ns < origin->first_ns)
            origin->first_ns = first_ns;
        if (last_ns > origin->last_ns)
            origin->last_ns = last_ns;
        ttm_spread_merge(&sum, is_all ? &cell->times : &cell->remaining.times);
    }
    ttm_spread_bars(&sum, making->ledger->last_ns - making->ledger->first_ns, TTM_REPORT_BARS,
                    origin->bars);
}

static void make_origin(struct making *making, const struct named *first, uint32_t count,
                        struct ttm_report_origin *origin)
{
    const struct ttm_group_set *set = &making->ledger->groups.sets[first->cell->set];
    uint16_t *devices =
        ttm_arena_take(&making->report->arena, set->device_count, sizeof(devices[0]));

    *origin = (struct ttm_report_origin){
        .words = first->words,
        .devices = devices,
        .device_count = devices ? set->device_count : 0,
        .region = first->cell->region,
        .kind = first->cell->kind,
    };
    if (devices)
        memcpy(devices, set->devices, set->device_count * sizeof(devices[0]));
    for (uint32_t i = 0; i < count; i++)
        add_cell(making, first[i].cell, origin);
    add_times(making, first, count, origin);
    join_sizes(making, first, count, origin);
}

/* ---- what keeps it ---- */

static int find_keepers(struct making *making, uint32_t count)
{
    struct ttm_keepers_index index;
    const int r = ttm_keepers_index_init(&index, &making->ledger->notes, making->options->seed);

    /* From the last to the first, so that the largest cell of an origin has the word. */
    for (uint32_t i = count; r == 0 && i-- > 0;) {
        const struct ttm_cell *cell = making->named[i].cell;
        struct ttm_report_origin *origin = &making->process->origins[making->named[i].origin];
        if (cell->remaining.held.count > 0)
            ttm_keepers_find(&index, cell->origin, &making->report->arena, &origin->keepers);
    }
    ttm_keepers_index_done(&index);
    return r;
}

/* ---- a process ---- */

static int by_remaining(const void *a, const void *b)
{
    const struct ttm_report_origin *x = *(const struct ttm_report_origin *const *)a;
    const struct ttm_report_origin *y = *(const struct ttm_report_origin *const *)b;
    int order = compare_numbers(y->remaining.footprint_bytes, x->remaining.footprint_bytes);

    if (order == 0)
        order = compare_numbers(y->remaining.count, x->remaining.count);
    if (order == 0)
        order = compare_numbers(y->allocs, x->allocs);
    return order != 0 ? order : compare_numbers(x->first_ns, y->first_ns);
}

/* Largest first, and the cells know where their origin has gone. */
static int sort_origins(struct making *making, uint32_t cell_count)
{
    struct ttm_report_process *process = making->process;
    const uint32_t n = process->origin_count;
    const struct ttm_report_origin **order = malloc((n + 1) * sizeof(void *));
    struct ttm_report_origin *sorted = ttm_arena_take(&making->report->arena, n, sizeof(sorted[0]));
    uint32_t *place = malloc((n + 1) * sizeof(place[0]));
    const int r = order && sorted && place ? 0 : -ENOMEM;

    for (uint32_t i = 0; r == 0 && i < n; i++)
        order[i] = &process->origins[i];
    if (r == 0)
        qsort(order, n, sizeof(void *), by_remaining);
    for (uint32_t i = 0; r == 0 && i < n; i++) {
        sorted[i] = *order[i];
        place[order[i] - process->origins] = i;
    }
    for (uint32_t i = 0; r == 0 && i < cell_count; i++)
        making->origin_of_cell[making->named[i].index] = place[making->named[i].origin];
    if (r == 0)
        process->origins = sorted;
    free(order);
    free(place);
    return r;
}

/* The words of a cell's origin. Cells that differ in their region or device have them in common. */
static int read_words(struct making *making, struct ttm_u64_map *first_of, struct named *named)
{
    uint32_t first;

    if (ttm_u64_map_find(first_of, named->cell->origin, &first)) {
        named->words = making->named[first].words;
        return 0;
    }
    ttm_origin_words_read(&making->ledger->notes, named->cell->origin, &making->options->namer,
                          &making->report->arena, &named->words);
    return ttm_u64_map_add(first_of, named->cell->origin, (uint32_t)(named - making->named));
}

/* Gives each cell that is left the words of its origin. Returns how many there are, or -ENOMEM. */
static int name_cells(struct making *making)
{
    const struct ttm_ledger *ledger = making->ledger;
    struct ttm_u64_map first_of; /* origin to the first in 'named' */
    uint32_t count = 0;
    int r = 0;

    ttm_u64_map_init(&first_of, making->options->seed);
    for (uint32_t i = 0; r == 0 && i < ledger->cell_count; i++) {
        making->origin_of_cell[i] = UINT32_MAX;
        if (ledger->cells[i].allocs == 0) /* all were renamed */
            continue;
        struct named *named = &making->named[count++];
        *named = (struct named){.cell = &ledger->cells[i], .index = i};
        r = read_words(making, &first_of, named);
        if (named->words.python_count > 0 && !named->words.is_device_open &&
            named->cell->first_ns < making->first_users_ns)
            making->first_users_ns = named->cell->first_ns;
        if (named->cell->region == TTM_REGION_L1 && named->cell->lowest_address < making->l1_base)
            making->l1_base = named->cell->lowest_address;
    }
    ttm_u64_map_done(&first_of);
    return r < 0 ? r : (int)count;
}

static int make_origins(struct making *making)
{
    const int named = name_cells(making);
    const uint32_t count = (uint32_t)named;

    if (named < 0)
        return named;
    qsort(making->named, count, sizeof(making->named[0]), by_origin);
    struct ttm_report_process *process = making->process;
    process->origins = ttm_arena_take(&making->report->arena, count, sizeof(process->origins[0]));
    if (!process->origins)
        return -ENOMEM;
    for (uint32_t i = 0, next; i < count; i = next) {
        for (next = i + 1;
             next < count && compare_named(&making->named[i], &making->named[next]) == 0; next++)
            ;
        for (uint32_t k = i; k < next; k++)
            making->named[k].origin = process->origin_count;
        make_origin(making, &making->named[i], next - i,
                    &process->origins[process->origin_count++]);
    }
    int r = find_keepers(making, count);
    if (r == 0)
        r = ttm_report_classify(making, count);
    return r < 0 ? r : sort_origins(making, count);
}

static int by_share(const void *a, const void *b)
{
    const struct ttm_report_share *x = a, *y = b;
    const int order = compare_numbers(y->held.footprint_bytes, x->held.footprint_bytes);

    return order != 0 ? order : compare_numbers(x->origin, y->origin);
}

/* Shares of cells become those of origins: 'shares' has one for each cell with something. */
static uint32_t join_shares(struct ttm_report_share *shares, uint32_t count)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = 0;
        while (at < n && shares[at].origin != shares[i].origin)
            at++;
        if (at < n)
            ttm_held_add(&shares[at].held, &shares[i].held);
        else
            shares[n++] = shares[i];
    }
    qsort(shares, n, sizeof(shares[0]), by_share);
    return n;
}

/* The same for many, by order: 'sums' has a place for each origin. */
static void share_peak(struct making *making, uint32_t group, unsigned region,
                       struct ttm_held *sums, struct ttm_report_region *ret)
{
    const struct ttm_ledger *ledger = making->ledger;
    const uint32_t n = making->process->origin_count;
    uint32_t count = 0;

    memset(sums, 0, n * sizeof(sums[0]));
    for (uint32_t i = 0; i < ledger->cell_count; i++) {
        const struct ttm_cell *cell = &ledger->cells[i];
        const struct ttm_group_set *set = &ledger->groups.sets[cell->set];
        if (cell->region != region)
            continue;
        for (uint32_t k = 0; k < set->group_count; k++) {
            const struct ttm_held held = ttm_cell_at_peak(ledger, cell, k);
            if (set->groups[k] == group && held.count > 0 &&
                making->origin_of_cell[i] != UINT32_MAX)
                ttm_held_add(&sums[making->origin_of_cell[i]], &held);
        }
    }
    for (uint32_t i = 0; i < n; i++)
        count += sums[i].count > 0;
    struct ttm_report_share *shares =
        ttm_arena_take(&making->report->arena, count, sizeof(shares[0]));
    if (!shares)
        return;
    for (uint32_t i = 0, at = 0; i < n; i++) {
        if (sums[i].count > 0)
            shares[at++] = (struct ttm_report_share){.origin = i, .held = sums[i]};
    }
    qsort(shares, count, sizeof(shares[0]), by_share);
    ret->shares = shares;
    ret->share_count = count;
}

static void make_region(const struct ttm_group_region *from, struct ttm_report_region *ret)
{
    *ret = (struct ttm_report_region){
        .allocs = from->births,
        .frees = from->frees,
        .remaining = from->now,
        .at_mark = from->at_mark,
        .peak_bytes = from->peak_bytes,
        .peak_footprint_bytes = from->peak_footprint_bytes,
        .peak_ns = from->peak_ns,
    };
    ttm_held_add(&ret->remaining, &from->closed);
}

static void make_device(const struct making *making, uint16_t id,
                        const struct ttm_report_device *like, struct ttm_report_device *ret)
{
    const struct ttm_recorded_device *known = ttm_ledger_device(making->ledger, id);

    *ret = *like;
    ret->id = id;
    ret->arch = known ? known->arch : 0;
    ret->board =
        known ? ttm_arena_text(&making->report->arena, known->board, strlen(known->board)) : "";
    for (unsigned r = 0; known && r < TTM_REGION_COUNT; r++) {
        ret->bank_count[r] = known->bank_count[r];
        ret->region[r].capacity_bytes = known->bank_bytes[r] * known->bank_count[r];
    }
    /* No bank has circular buffers: they may take all of L1. */
    const struct ttm_board *board = known ? ttm_board_find(known->board) : NULL;
    if (board)
        ret->region[TTM_REGION_CB].capacity_bytes = ttm_board_capacity(board, TTM_REGION_CB);
}

static bool has_group(const struct ttm_group_set *set, uint32_t group)
{
    for (uint32_t i = 0; i < set->group_count; i++) {
        if (set->groups[i] == group)
            return true;
    }
    return false;
}

/* A bank can be drawn finely when there are few of them. */
static uint32_t bank_runs(const struct making *making)
{
    const uint64_t kinds = (uint64_t)making->ledger->groups.count * making->process_total;
    const uint64_t share = BANK_RUNS_ALL / kinds;

    return share < 32 ? 32 : share > 1024 ? 1024 : (uint32_t)share;
}

/*
 * What lay in the region's banks last: live at the end, or there when the device was
 * closed for the last time. After that nothing was born there any more.
 */
static int draw_bank(struct making *making, uint32_t index, unsigned region,
                     struct ttm_report_region *ret)
{
    const struct ttm_ledger *ledger = making->ledger;
    const struct ttm_seats *seats = &ledger->seats;
    struct ttm_bank_piece *pieces =
        seats->count > 0 ? malloc(seats->count * sizeof(pieces[0])) : NULL;
    uint32_t count = 0;

    if (seats->count > 0 && !pieces)
        return -ENOMEM;
    for (uint32_t i = 0; i < seats->count; i++) {
        const struct ttm_seat *seat = &seats->seats[i];
        const struct ttm_cell *cell = &ledger->cells[seat->cell];
        if (cell->region == region && seat->births >= ledger->groups.groups[index].births &&
            has_group(&ledger->groups.sets[cell->set], index))
            pieces[count++] = (struct ttm_bank_piece){
                .start = seat->address,
                .end = seat->address + seat->bank_bytes,
                .origin = making->origin_of_cell[seat->cell],
            };
    }
    ret->bank = ttm_bank_draw(pieces, count, bank_runs(making), &making->report->arena);
    free(pieces);
    return 0;
}

static int make_group(struct making *making, uint32_t index, struct ttm_report_device *ret)
{
    const struct ttm_group *group = &making->ledger->groups.groups[index];
    struct ttm_held *sums = malloc((making->process->origin_count + 1) * sizeof(sums[0]));

    if (!sums)
        return -ENOMEM;
    *ret = (struct ttm_report_device){.board = "", .group = index};
    int status = 0;
    for (unsigned r = 0; r < TTM_REGION_COUNT && status == 0; r++) {
        make_region(&group->region[r], &ret->region[r]);
        share_peak(making, index, r, sums, &ret->region[r]);
        ret->region[r].course = ttm_course_keep(group->region[r].course, &making->report->arena);
        status = draw_bank(making, index, r, &ret->region[r]);
    }
    memcpy(ret->kernel_bytes, group->kernel_bytes, sizeof(ret->kernel_bytes));
    ret->has_cbs = group->region[TTM_REGION_CB].now.count > 0;
    /* One device of several may be closed before the others. */
    const bool is_closed = making->ledger->are_cbs_closed && !ret->has_cbs;
    ret->cbs = (struct ttm_cb_totals){
        .coreless_bytes = group->cbs.coreless_bytes,
        .registered_bytes =
            is_closed ? group->cbs.kept_registered_bytes : group->cbs.registered_bytes,
        .resident_bytes = is_closed ? group->cbs.kept_resident_bytes : group->cbs.resident_bytes,
        .peak_registered_bytes = group->cbs.peak_registered_bytes,
        .peak_resident_bytes = group->cbs.peak_resident_bytes,
    };
    ret->mark_resident_bytes = group->cbs.mark_resident_bytes;
    ret->mark_registered_bytes = group->cbs.mark_registered_bytes;
    free(sums);
    return status;
}

static int make_devices(struct making *making)
{
    const struct ttm_groups *groups = &making->ledger->groups;
    struct ttm_report_device none = {.board = "", .group = groups->count};
    struct ttm_report_device *like = calloc(groups->count + 1, sizeof(like[0]));
    struct ttm_report_process *process = making->process;
    uint32_t count = 0;
    int r = like ? 0 : -ENOMEM;

    for (uint32_t i = 0; r == 0 && i < groups->count; i++)
        r = make_group(making, i, &like[i]);
    for (uint16_t d = 0; d < TTM_DEVICE_COUNT; d++)
        count += groups->of_device[d] != 0 || ttm_ledger_device(making->ledger, d);
    if (r == 0) {
        process->devices =
            ttm_arena_take(&making->report->arena, count, sizeof(process->devices[0]));
        r = process->devices ? 0 : -ENOMEM;
    }
    for (uint16_t d = 0; r == 0 && d < TTM_DEVICE_COUNT; d++) {
        const uint32_t group = groups->of_device[d];
        if (group != 0 || ttm_ledger_device(making->ledger, d))
            make_device(making, d, group ? &like[group - 1] : &none,
                        &process->devices[process->device_count++]);
    }
    free(like);
    return r;
}

static int make_failures(struct making *making)
{
    const struct ttm_ledger *ledger = making->ledger;
    struct ttm_report_process *process = making->process;
    struct ttm_arena *arena = &making->report->arena;

    process->failures_ever = ledger->failures_ever;
    process->failures = ttm_arena_take(arena, ledger->failure_count, sizeof(process->failures[0]));
    if (!process->failures)
        return -ENOMEM;
    for (uint32_t i = 0; i < ledger->failure_count; i++) {
        const struct ttm_ledger_failure *from = &ledger->failures[i];
        struct ttm_report_failure *failure = &process->failures[process->failure_count++];
        struct ttm_report_share *owners =
            ttm_arena_take(arena, from->owner_count, sizeof(owners[0]));
        if (!owners)
            return -ENOMEM;
        *failure =
            (struct ttm_report_failure){.failure = from->failure,
                                        .time_ns = from->time_ns,
                                        .device_id = from->device,
                                        .shortage = ttm_ledger_failure_shortage(&from->failure),
                                        .is_last = from->is_last,
                                        .alike = from->alike,
                                        .first_ns = from->first_ns};
        ttm_origin_words_read(&ledger->notes, from->failure.origin, &making->options->namer, arena,
                              &failure->words);
        uint32_t count = 0;
        for (uint32_t k = 0; k < from->owner_count; k++) {
            if (making->origin_of_cell[from->owners[k].cell] != UINT32_MAX)
                owners[count++] = (struct ttm_report_share){
                    .origin = making->origin_of_cell[from->owners[k].cell],
                    .held = from->owners[k].held};
        }
        failure->owners = owners;
        failure->owner_count = join_shares(owners, count);
    }
    return 0;
}

static int by_use(const void *a, const void *b)
{
    const struct ttm_reused *x = &((const struct ttm_report_address *)a)->used;
    const struct ttm_reused *y = &((const struct ttm_report_address *)b)->used;
    const int order = compare_numbers(y->births, x->births);

    return order != 0 ? order : compare_numbers(x->address, y->address);
}

/* The devices of each set, once for all addresses. Returns 0 or -ENOMEM. */
static int find_devices(struct making *making, struct ttm_report_address *list, uint32_t count)
{
    const struct ttm_groups *groups = &making->ledger->groups;
    uint16_t **kept = calloc(groups->set_count + 1, sizeof(kept[0]));
    int r = kept ? 0 : -ENOMEM;

    for (uint32_t i = 0; r == 0 && i < count; i++) {
        const int found = ttm_groups_find(groups, list[i].used.devices);
        const uint32_t at = found < 0 ? 0 : (uint32_t)found;
        const struct ttm_group_set *set = &groups->sets[at];
        if (!kept[at]) {
            kept[at] = ttm_arena_take(&making->report->arena, set->device_count, sizeof(**kept));
            r = kept[at] ? 0 : -ENOMEM;
            if (r == 0)
                memcpy(kept[at], set->devices, set->device_count * sizeof(**kept));
        }
        list[i].devices = kept[at];
        list[i].device_count = set->device_count;
    }
    free(kept);
    return r;
}

static int make_addresses(struct making *making)
{
    const struct ttm_addresses *from = &making->ledger->addresses;
    uint32_t count = 0;

    for (uint32_t i = 0; i < from->reused_count; i++)
        count += from->reused[i].births > 1;
    struct ttm_report_address *list =
        ttm_arena_take(&making->report->arena, count, sizeof(list[0]));
    if (!list)
        return -ENOMEM;
    making->process->addresses = list;
    for (uint32_t i = 0; i < from->reused_count; i++) {
        if (from->reused[i].births > 1)
            list[making->process->address_count++] =
                (struct ttm_report_address){.used = from->reused[i]};
    }
    qsort(list, count, sizeof(list[0]), by_use);
    return find_devices(making, list, count);
}

static int make_rest(struct making *making)
{
    const struct ttm_ledger *ledger = making->ledger;
    struct ttm_report_process *process = making->process;
    struct ttm_arena *arena = &making->report->arena;
    struct ttm_ledger_mark *marks = ttm_arena_take(arena, ledger->mark_count, sizeof(marks[0]));

    if (!marks)
        return -ENOMEM;
    for (uint32_t i = 0; i < ledger->mark_count; i++)
        marks[i] = (struct ttm_ledger_mark){
            .time_ns = ledger->marks[i].time_ns,
            .name = ttm_arena_text(arena, ledger->marks[i].name, strlen(ledger->marks[i].name))};
    process->marks = marks;
    process->mark_count = ledger->mark_count;
    process->overlaps = ledger->addresses.overlaps;
    memcpy(process->overlap, ledger->addresses.overlap, sizeof(process->overlap));
    process->overlap_region = ledger->addresses.overlap_region;
    for (uint32_t i = 0; i < TTM_MOMENTS; i++)
        process->has_moment[i] = ttm_ledger_moment(ledger, i, &process->moment_ns[i]);
    return make_addresses(making);
}

/* Why something in it was not tracked, in its own words. */
static const char *trouble_of(struct ttm_report *report, const struct ttm_ledger *ledger)
{
    const struct ttm_noted *note =
        ttm_notebook_find(&ledger->notes, ledger->counters.trouble, TTM_NOTED_STRING);

    return note ? ttm_arena_text(&report->arena, (const char *)note->bytes, note->length)
                : "something in it was not tracked";
}

/* How far the numbers can be trusted; the weightiest reason is told. */
static void judge(struct ttm_report *report, const struct ttm_ledger *ledger,
                  struct ttm_report_process *process)
{
    const struct ttm_recording_info *info = &report->info;
    const struct ttm_recorded_counters *c = &process->counters;
    const bool is_whole = info->is_finished || info->is_being_written || process->has_ended;
    const bool is_original = ledger->seen.source == TTM_SOURCE_ORIGINAL;
    const bool is_end_unheard = ledger->has_ended && ledger->end.how == TTM_PROCESS_UNHEARD;

    process->is_complete = (info->is_exact || process->has_ended) && is_whole && !is_end_unheard &&
                           c->unknown_frees == 0 && c->refused == 0 &&
                           !(is_original && c->lost_events > 0) && !ledger->is_loss_open &&
                           c->untracked == 0 && c->trouble == 0 && !c->is_off && !c->is_inexact &&
                           ledger->odd == 0;
    const bool is_damaged = report->gaps > 0 || info->damaged_blocks > 0 ||
                            info->skipped_blocks > 0 || info->is_head_damaged;
    process->is_history_complete = process->is_complete && c->lost_events == 0 && !is_damaged &&
                                   ledger->told == 0 && !c->has_gap;
    process->is_cut = !is_whole || is_damaged;
    process->has_missed =
        c->has_gap || c->is_off || c->untracked > 0 || (c->refused > 0 && !process->is_logged);
    process->why_incomplete =
        is_end_unheard || (is_damaged && !process->is_complete)
            ? "a part of the recording is damaged, and with it the end of this process"
        : !is_whole ? "the recording breaks off: what came later is not in it"
        : !info->is_exact && !process->has_ended
            ? "the recording is damaged: what was live at its end is not known"
        : c->trouble != 0      ? trouble_of(report, ledger)
        : c->is_off            ? (process->has_ended ? "tracking was off when it ended"
                                                     : "tracking is switched off in it")
        : c->unknown_frees > 0 ? (process->is_logged ? "it freed what its log has no allocation of"
                                  : process->source == TTM_SOURCE_TRACKED
                                      ? "it freed what was not allocated, or freed it twice"
                                      : "it freed what it had allocated before tracking began")
        : c->refused > 0       ? (process->is_logged ? "some lines of its log cannot be read"
                                                     : "some of its messages made no sense")
        : c->untracked > 0     ? "it had no room to keep track of some of its allocations"
        : ledger->odd > 0      ? "the recording refers to what is not in it"
        : ledger->is_loss_open
            ? (process->has_ended
                   ? "some of its events were lost, and it ended before that was made good"
                   : "some of its events were lost, and that was not made good yet")
        : c->is_inexact      ? "it ended before it had told all that it held"
        : c->lost_events > 0 ? "some of its events were lost; peaks may have been higher"
        : is_damaged         ? "a part of the recording is damaged: its history has a gap"
        : c->has_gap || ledger->told > 0 ? "it was not listened to from its start without a break"
                                         : "";
}

static int make_sessions(struct making *making)
{
    const struct ttm_ledger *ledger = making->ledger;
    struct ttm_report_session *sessions =
        ttm_arena_take(&making->report->arena, ledger->session_count, sizeof(sessions[0]));

    if (!sessions)
        return -ENOMEM;
    for (uint32_t i = 0; i < ledger->session_count; i++)
        sessions[i] = (struct ttm_report_session){.first = ledger->sessions[i].first_births,
                                                  .last = ledger->sessions[i].births};
    making->process->sessions = sessions;
    making->process->session_count = ledger->session_count;
    return 0;
}

/*
 * A process that sets no such mark is judged if it began after another one's: a worker that the
 * program started when it was warm.
 */
static bool is_unjudged(const struct making *making)
{
    const struct ttm_ledger *ledger = making->ledger;

    if (ledger->is_judging || (!making->options->after_mark && !making->options->has_warmup))
        return false;
    return making->options->has_warmup || ledger->first_ns < making->mark_ns;
}

static int make_process(struct making *making)
{
    const struct ttm_ledger *ledger = making->ledger;
    struct ttm_report_process *process = making->process;
    const char *command = ledger->command ? ledger->command : "";

    *process = (struct ttm_report_process){
        .pid = ledger->seen.pid,
        .uid = ledger->seen.uid,
        .source = ledger->seen.source,
        .command = ttm_arena_text(&making->report->arena, command, strlen(command)),
        .start_wall_ns = ledger->seen.start_wall_ns,
        .first_ns = ledger->first_ns == UINT64_MAX ? 0 : ledger->first_ns,
        .last_ns = ledger->last_ns,
        .has_ended = ledger->has_ended,
        .end = ledger->end,
        .counters = ledger->counters,
    };
    if (ledger->lost_events > process->counters.lost_events)
        process->counters.lost_events = ledger->lost_events;
    for (uint32_t i = 0; i < ledger->cell_count; i++) {
        process->allocs += ledger->cells[i].allocs;
        process->frees += ledger->cells[i].frees;
    }
    struct ttm_log_note log;
    process->is_logged = ttm_origin_log(&ledger->notes, &log);
    process->is_untimed = process->is_logged && log.is_untimed;
    process->is_unjudged = is_unjudged(making);
    judge(making->report, ledger, process);
    int r = make_sessions(making);
    if (r == 0)
        r = make_origins(making);
    if (r == 0)
        r = make_devices(making);
    if (r == 0)
        r = make_failures(making);
    return r < 0 ? r : make_rest(making);
}

static uint64_t first_mark_ns(const struct reading *reading)
{
    uint64_t first_ns = UINT64_MAX;

    for (uint32_t i = 0; i < reading->ledgers.count; i++) {
        const struct ttm_ledger *ledger = ledger_at(reading, i);
        if (ledger->is_judging && ledger->judging_ns < first_ns)
            first_ns = ledger->judging_ns;
    }
    return first_ns;
}

/*
 * True if nothing was heard of the process but that it was there: one that has TT-Metal loaded and
 * opened no device, as the parent of workers.
 */
static bool is_idle_process(const struct ttm_ledger *ledger)
{
    const struct ttm_recorded_counters *counters = &ledger->counters;

    return ledger->device_count == 0 && ledger->births == 0 && ledger->marks_ever == 0 &&
           ledger->failures_ever == 0 && ledger->lost_events == 0 && counters->lost_events == 0 &&
           counters->unknown_frees == 0 && counters->refused == 0 && counters->untracked == 0 &&
           counters->trouble == 0;
}

/* How many have done anything; all of them where none has. */
static uint32_t count_shown(const struct reading *reading)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < reading->ledgers.count; i++)
        count += !is_idle_process(ledger_at(reading, i));
    return count > 0 ? count : reading->ledgers.count;
}

static int make_report(const struct reading *reading)
{
    struct ttm_report *report = reading->report;
    const uint64_t mark_ns = first_mark_ns(reading);
    const uint32_t total = count_shown(reading);
    int r = 0;

    report->processes = ttm_arena_take(&report->arena, total, sizeof(report->processes[0]));
    if (!report->processes)
        return -ENOMEM;
    for (uint32_t i = 0; r == 0 && i < reading->ledgers.count; i++) {
        if (total < reading->ledgers.count && is_idle_process(ledger_at(reading, i)))
            continue;
        const uint32_t cells = ledger_at(reading, i)->cell_count;
        struct making making = {
            .ledger = ledger_at(reading, i),
            .options = reading->options,
            .report = report,
            .process = &report->processes[report->process_count],
            .first_users_ns = UINT64_MAX,
            .process_total = total,
            .l1_base = UINT64_MAX,
            .mark_ns = mark_ns,
            .named = malloc((cells + 1) * sizeof(struct named)),
            .origin_of_cell = malloc((cells + 1) * sizeof(uint32_t)),
        };
        r = making.named && making.origin_of_cell ? make_process(&making) : -ENOMEM;
        report->process_count++;
        free(making.named);
        free(making.origin_of_cell);
    }
    return r == 0 && report->arena.failed ? -ENOMEM : r;
}

int ttm_report_read(struct ttm_recording *recording, const struct ttm_report_options *options,
                    struct ttm_report *ret)
{
    struct reading reading = {.options = options, .report = ret, .recording = recording};

    *ret = (struct ttm_report){0};
    ttm_arena_init(&ret->arena);
    ttm_by_process_init(&reading.ledgers, options->seed);
    int r = read_all(&reading, recording);
    if (r == 0)
        r = make_report(&reading);
    for (uint32_t i = 0; i < reading.ledgers.count; i++) {
        ttm_ledger_done(ledger_at(&reading, i));
        free(ledger_at(&reading, i));
    }
    ttm_by_process_done(&reading.ledgers);
    if (r < 0)
        ttm_report_done(ret);
    return r;
}

void ttm_report_done(struct ttm_report *report)
{
    ttm_arena_done(&report->arena);
    *report = (struct ttm_report){0};
}
