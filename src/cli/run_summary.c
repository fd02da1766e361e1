/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One screen: the head says how it ended, then come devices, what remains, the
 * processes when there were several, and what to type next. The lists share the rows
 * of the terminal; what does not fit is counted in a line of its own.
 */
#include "cli/run_summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/origin_text.h"
#include "cli/region_line.h"
#include "cli/report_text.h"
#include "wire/region.h"

#define COMMAND_MIN 12
#define COMMAND_MAX 60
#define PROCESS_COMMAND_MIN 20
#define PROCESS_COMMAND_MAX 60
#define BAR_MIN 4
#define BAR_MAX 40
#define RUNNING_NAMED 4
#define ROWS_HIGH 40 /* a terminal with this many shows longer lists */

struct sheet {
    const struct ttm_run_summary *summary;
    const struct ttm_departed *departed;
    const struct ttm_terminal *terminal;
    struct ttm_text *out;
};

static void put(const struct sheet *sheet, const char *text)
{
    ttm_text_append(sheet->out, text);
}

static void put_in(const struct sheet *sheet, enum ttm_colour colour, const char *text)
{
    ttm_terminal_colour(sheet->terminal, sheet->out, colour);
    put(sheet, text);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
}

/* Lets go of a text that was put together apart; what failed there has failed here. */
static void part_done(const struct sheet *sheet, struct ttm_text *part)
{
    sheet->out->failed |= ttm_text_failed(part);
    ttm_text_done(part);
}

static const char *plural(uint64_t count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}

static size_t within(size_t value, size_t low, size_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* A command line for people, cut to so many columns. Returns those it takes. */
static size_t put_command(const struct sheet *sheet, const char *command, size_t columns,
                          bool is_padded)
{
    struct ttm_text safe;

    ttm_text_init(&safe);
    ttm_terminal_command(&safe, command);
    const char *text = ttm_text_string(&safe);
    const size_t width = ttm_terminal_width(text);
    const size_t taken = is_padded || width > columns ? columns : width;
    ttm_text_append_column(sheet->out, text, taken, sheet->terminal->has_utf8);
    part_done(sheet, &safe);
    return taken;
}

/* ---- the head ---- */

static void put_end(const struct sheet *sheet)
{
    const struct ttm_child_end *end = &sheet->summary->end;
    char duration[TTM_NUMBER_SIZE], how[64];
    const char *name = end->signal > 0 ? sigabbrev_np(end->signal) : NULL;

    ttm_text_format(sheet->out, " ended after %s, ",
                    ttm_format_duration(end->duration_ns, duration));
    if (end->signal == 0)
        (void)snprintf(how, sizeof(how), "exit %d", end->exit_code);
    else if (name)
        (void)snprintf(how, sizeof(how), "killed by SIG%s", name);
    else
        (void)snprintf(how, sizeof(how), "killed by signal %d", end->signal);
    put_in(sheet, ttm_child_status(end) == 0 ? TTM_PLAIN : TTM_RED, how);
    if (end->has_dumped_core)
        put(sheet, " (core dumped)");
}

/* Why nothing was heard of it. */
static const char *reason_of(const struct ttm_run_summary *summary)
{
    const char *trouble = ttm_departed_trouble(summary->departed);

    if (trouble)
        return trouble;
    if (summary->is_untracked)
        return "it was not tracked";
    if (summary->is_server_gone)
        return "the server has gone, nothing is known of it";
    switch (summary->program) {
    case TTM_PROGRAM_STATIC:
        return "not tracked: it is linked statically";
    case TTM_PROGRAM_PRIVILEGED:
        return "not tracked: it runs as another user";
    case TTM_PROGRAM_FOREIGN:
        return "not tracked: it is built for another system";
    case TTM_PROGRAM_ORDINARY:
        break;
    }
    return "it reported no TT-Metal";
}

static void put_lost(const struct sheet *sheet, uint64_t lost_events)
{
    char text[TTM_NUMBER_SIZE + 16], number[TTM_NUMBER_SIZE];

    if (lost_events == 0) {
        put(sheet, "nothing lost");
        return;
    }
    (void)snprintf(text, sizeof(text), "%s %s lost", ttm_format_count(lost_events, number),
                   plural(lost_events, "event", "events"));
    put_in(sheet, TTM_RED, text);
}

static void put_counts(const struct sheet *sheet)
{
    const struct ttm_departed *d = sheet->departed;
    const char *server = sheet->summary->server;
    char births[TTM_NUMBER_SIZE], ends[TTM_NUMBER_SIZE];

    put(sheet, "tracked");
    if (!server || d->device_count > 0)
        ttm_text_format(sheet->out, " on %u %s", d->device_count,
                        plural(d->device_count, "device", "devices"));
    if (server) {
        put(sheet, " by the server at ");
        ttm_text_append_safe(sheet->out, server);
        return;
    }
    ttm_text_format(sheet->out, "%s%s %s, %s %s, ", ttm_terminal_dot(sheet->terminal),
                    ttm_format_count(d->sums.births, births),
                    plural(d->sums.births, "allocation", "allocations"),
                    ttm_format_count(d->sums.ends, ends), plural(d->sums.ends, "free", "frees"));
    put_lost(sheet, d->sums.lost_events);
}

/* How the command ended, and what was heard of it: one line where both fit, else two. */
static void put_head(const struct sheet *sheet)
{
    const bool is_heard_of = ttm_departed_has_news(sheet->departed);
    const size_t width = sheet->terminal->columns;
    struct ttm_text end, heard;
    struct sheet part = *sheet;

    ttm_text_init(&end);
    ttm_text_init(&heard);
    part.out = &end;
    put_end(&part);
    part.out = &heard;
    if (is_heard_of)
        put_counts(&part);
    else
        ttm_text_append_safe(part.out, reason_of(sheet->summary));
    const size_t end_width = ttm_terminal_width(ttm_text_string(&end)) + strlen("tt-mem: ");
    const size_t heard_width = ttm_terminal_width(ttm_text_string(&heard)) + strlen(" - ");
    const size_t taken = is_heard_of ? end_width : end_width + heard_width;
    const size_t room = within(width > taken ? width - taken : 0, COMMAND_MIN, COMMAND_MAX);

    put(sheet, "tt-mem: ");
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_BOLD);
    const size_t command_width = put_command(sheet, sheet->summary->command, room, false);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
    put(sheet, ttm_text_string(&end));
    const bool is_one_line = !is_heard_of || end_width + command_width + heard_width <= width;
    put(sheet, is_one_line ? ttm_terminal_dot(sheet->terminal) : "\n  ");
    put(sheet, ttm_text_string(&heard));
    put(sheet, "\n");
    part_done(sheet, &end);
    part_done(sheet, &heard);
}

static void put_trouble(const struct sheet *sheet)
{
    const char *trouble = ttm_departed_trouble(sheet->departed);

    if (!trouble)
        return;
    put(sheet, "  ");
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_YELLOW);
    ttm_text_append_safe(sheet->out, trouble);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
    put(sheet, "\n");
}

static void add_oddity(const struct sheet *sheet, struct ttm_text *list, uint64_t count,
                       const char *what)
{
    char number[TTM_NUMBER_SIZE];

    if (count == 0)
        return;
    if (list->length > 0)
        ttm_text_append(list, ttm_terminal_dot(sheet->terminal));
    ttm_text_format(list, "%s %s", ttm_format_count(count, number), what);
}

/* What should not be there, in one line, when there is any. */
static void put_oddities(const struct sheet *sheet)
{
    const struct ttm_departed_sums *sums = &sheet->departed->sums;
    struct ttm_text list;

    ttm_text_init(&list);
    if (sheet->departed->inexact_count > 0)
        ttm_text_append(&list, "it ended before that was made good: nothing below is exact");
    else if (sums->lost_events > 0)
        ttm_text_append(&list, "what remains is exact; allocations and frees were more");
    add_oddity(sheet, &list, sums->unknown_frees,
               plural(sums->unknown_frees, "free of something unknown", "unknown frees"));
    add_oddity(sheet, &list, sums->replaced, "replaced without a free");
    add_oddity(sheet, &list, sums->failures,
               plural(sums->failures, "allocation failed", "allocations failed"));
    if (sheet->departed->is_short)
        ttm_text_format(&list, "%smemory was short: the lists are not whole",
                        list.length > 0 ? ttm_terminal_dot(sheet->terminal) : "");
    if (list.length > 0)
        ttm_text_format(sheet->out, "  %s\n", ttm_text_string(&list));
    part_done(sheet, &list);
}

/* ---- devices ---- */

/* Devices that look the same take one block: a mesh is not 32 times as long. */
struct block {
    const struct ttm_departed_device *device; /* the first of them */
    uint32_t count;
    uint16_t ids[TTM_REMAINS_DEVICES];
    uint16_t last;
    uint32_t rows;
    uint64_t peak_bytes;
};

static bool is_used(const struct ttm_totals *totals)
{
    return totals->births > 0 || totals->peak_footprint_bytes > 0;
}

/*
 * Circular buffers of cached programs share addresses: what counts is what is resident,
 * and with a closed device nothing is.
 */
static struct ttm_totals totals_of(const struct ttm_departed_device *device, unsigned region)
{
    struct ttm_totals totals = device->totals.region[region];

    if (region == TTM_REGION_CB && device->totals.cb.peak_registered_bytes > 0) {
        totals.footprint_bytes = device->totals.cb.resident_bytes;
        totals.peak_footprint_bytes = device->totals.cb.peak_resident_bytes;
        totals.closed_footprint_bytes = 0;
    }
    return totals;
}

/* On one device; what it was closed on is never given back. */
static uint64_t remaining_bytes(const struct ttm_totals *totals)
{
    return totals->footprint_bytes + totals->closed_footprint_bytes;
}

static bool looks_alike(const struct ttm_departed_device *a, const struct ttm_departed_device *b)
{
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        const struct ttm_totals x = totals_of(a, r), y = totals_of(b, r);
        if (is_used(&x) != is_used(&y) || remaining_bytes(&x) != remaining_bytes(&y) ||
            x.peak_footprint_bytes != y.peak_footprint_bytes ||
            a->capacity_bytes[r] != b->capacity_bytes[r])
            return false;
    }
    return a->arch == b->arch && strcmp(a->board, b->board) == 0;
}

static struct block new_block(const struct ttm_departed_device *device)
{
    struct block block = {.device = device, .rows = 1};

    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        block.rows += is_used(&device->totals.region[r]);
        block.peak_bytes += device->totals.region[r].peak_footprint_bytes;
    }
    return block;
}

/* 'blocks' has room for every device. Returns how many there are. */
static size_t make_blocks(const struct ttm_departed *departed, struct block *blocks)
{
    size_t count = 0;

    for (uint32_t i = 0; i < departed->device_count; i++) {
        const struct ttm_departed_device *device = &departed->devices[i];
        size_t b = 0;
        while (b < count && !looks_alike(blocks[b].device, device))
            b++;
        if (b == count)
            blocks[count++] = new_block(device);
        if (blocks[b].count < TTM_REMAINS_DEVICES)
            blocks[b].ids[blocks[b].count] = device->id;
        blocks[b].last = device->id;
        blocks[b].count++;
    }
    return count;
}

/* "0", "0-7", "0,2,5": ids in ascending order, of which 'ids' has the first. */
static void put_ids(const struct sheet *sheet, const uint16_t ids[TTM_REMAINS_DEVICES],
                    uint32_t count, uint16_t last)
{
    if (count > 2 && (uint32_t)(last - ids[0]) + 1 == count) {
        ttm_text_format(sheet->out, "%u-%u", ids[0], last);
        return;
    }
    for (uint32_t i = 0; i < count && i < TTM_REMAINS_DEVICES; i++)
        ttm_text_format(sheet->out, "%s%u", i ? "," : "", ids[i]);
    if (count > TTM_REMAINS_DEVICES)
        put(sheet, ttm_terminal_ellipsis(sheet->terminal));
}

#define LABEL_COLUMNS 28

static bool knows_capacity(const struct ttm_departed *departed)
{
    for (uint32_t i = 0; i < departed->device_count; i++) {
        for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
            if (departed->devices[i].capacity_bytes[r] > 0)
                return true;
        }
    }
    return false;
}

static void put_block_head(const struct sheet *sheet, const struct block *block, bool has_titles)
{
    const struct ttm_departed_device *device = block->device;
    struct ttm_text label;
    struct sheet part = *sheet;

    ttm_text_init(&label);
    part.out = &label;
    put(&part, block->count == 1 ? "device " : "devices ");
    put_ids(&part, block->ids, block->count, block->last);
    put(&part, block->count == 1 ? " " : " each");
    if (device->board[0])
        put(&part, " ");
    ttm_text_append_safe(&label, device->board);
    if (device->arch != TTM_ARCH_UNKNOWN && (block->count == 1 || !device->board[0]))
        ttm_text_format(&label, " %s", ttm_arch_name(device->arch));
    put(sheet, "  ");
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_BOLD);
    const size_t width = ttm_terminal_width(ttm_text_string(&label));
    ttm_text_append_column(sheet->out, ttm_text_string(&label),
                           has_titles || width > LABEL_COLUMNS ? LABEL_COLUMNS : width,
                           sheet->terminal->has_utf8);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
    if (has_titles)
        put_in(sheet, TTM_DIM,
               knows_capacity(sheet->departed) ? "   remains       peak   capacity"
                                               : "   remains       peak");
    put(sheet, "\n");
    part_done(sheet, &label);
}

static void put_region(const struct sheet *sheet, const struct ttm_departed_device *device,
                       unsigned region)
{
    const struct ttm_totals totals = totals_of(device, region);
    const size_t used = 2 + LABEL_COLUMNS + 32;
    const size_t width = sheet->terminal->columns;
    const size_t bar = within(width > used + 11 ? width - used - 11 : 0, 0, BAR_MAX);
    const struct ttm_region_line row = {
        .label = ttm_region_name(region),
        .now_bytes = remaining_bytes(&totals),
        .peak_bytes = totals.peak_footprint_bytes,
        .capacity_bytes = device->capacity_bytes[region],
        .label_columns = LABEL_COLUMNS - 2,
        .bar_columns = bar >= BAR_MIN ? bar : 0,
    };

    ttm_region_line_text(sheet->terminal, &row, sheet->out);
    put(sheet, "\n");
}

static int by_peak(const void *a, const void *b)
{
    const struct block *x = a, *y = b;

    if (x->peak_bytes != y->peak_bytes)
        return x->peak_bytes < y->peak_bytes ? 1 : -1;
    return x->device->id < y->device->id ? -1 : 1;
}

/* Where not all fit, those with the highest peaks. The first is shown in any case. */
static void put_blocks(const struct sheet *sheet, struct block *blocks, size_t count,
                       size_t row_max)
{
    size_t rows = 0;
    uint32_t left_out = 0;

    for (size_t i = 0; i < count; i++)
        rows += blocks[i].rows;
    if (rows > row_max)
        qsort(blocks, count, sizeof(blocks[0]), by_peak);
    rows = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && rows + blocks[i].rows > row_max) {
            left_out += blocks[i].count;
            rows = row_max; /* in order: none that comes after one that was left out */
            continue;
        }
        put_block_head(sheet, &blocks[i], i == 0);
        for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
            if (is_used(&blocks[i].device->totals.region[r]))
                put_region(sheet, blocks[i].device, r);
        }
        rows += blocks[i].rows;
    }
    if (left_out > 0)
        ttm_text_format(sheet->out, "  %s %u more %s with lower peaks\n",
                        ttm_terminal_ellipsis(sheet->terminal), left_out,
                        plural(left_out, "device", "devices"));
}

static void put_devices(const struct sheet *sheet, size_t row_max)
{
    const struct ttm_departed *d = sheet->departed;
    struct block *blocks = d->device_count ? calloc(d->device_count, sizeof(blocks[0])) : NULL;

    if (!blocks) {
        sheet->out->failed |= d->device_count > 0;
        return;
    }
    put(sheet, "\n");
    put_blocks(sheet, blocks, make_blocks(d, blocks), row_max);
    free(blocks);
}

/* ---- what remains ---- */

/*
 * Remains that read the same: those of one origin, whatever their size; and where the
 * origin is not known those of one size, of which a byte more or less is no other.
 */
struct kind {
    struct ttm_remains like;
    uint64_t count;
    uint64_t bytes; /* footprint of all of them, on one device */
    char each[TTM_NUMBER_SIZE];
};

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_look(const void *a, const void *b)
{
    const struct ttm_remains *x = &((const struct kind *)a)->like;
    const struct ttm_remains *y = &((const struct kind *)b)->like;

    if (x->origin != y->origin)
        return compare(x->origin, y->origin);
    if (x->device_set != y->device_set)
        return compare(x->device_set, y->device_set);
    if (x->region != y->region)
        return compare(x->region, y->region);
    if (x->kind != y->kind)
        return compare(x->kind, y->kind);
    return compare(x->bytes, y->bytes);
}

static bool reads_the_same(const struct kind *a, const struct kind *b)
{
    const struct ttm_remains *x = &a->like, *y = &b->like;

    return x->origin == y->origin && x->device_set == y->device_set && x->region == y->region &&
           x->kind == y->kind && (x->origin != 0 || strcmp(a->each, b->each) == 0);
}

static int by_bytes(const void *a, const void *b)
{
    const struct kind *x = a, *y = b;
    const uint64_t x_bytes = x->bytes * x->like.device_count;
    const uint64_t y_bytes = y->bytes * y->like.device_count;

    return x_bytes != y_bytes ? compare(y_bytes, x_bytes) : by_look(a, b);
}

static void join(struct kind *kind, const struct kind *other)
{
    kind->count += other->count;
    kind->bytes += other->bytes;
    if (strcmp(kind->each, other->each) != 0)
        (void)snprintf(kind->each, sizeof(kind->each), "various");
}

/* 'kinds' has room for all remains. Returns how many kinds there are, largest first. */
static uint32_t make_kinds(const struct ttm_departed *departed, struct kind *kinds)
{
    const struct ttm_remains_set *remains = &departed->remains;
    uint32_t count = 0;

    for (uint32_t i = 0; i < remains->count; i++) {
        const struct ttm_remains *r = &remains->list[i];
        kinds[i] =
            (struct kind){.like = *r, .count = r->count, .bytes = r->count * r->footprint_bytes};
        (void)ttm_format_bytes(r->bytes, kinds[i].each);
    }
    qsort(kinds, remains->count, sizeof(kinds[0]), by_look);
    for (uint32_t i = 0; i < remains->count; i++) {
        if (count > 0 && reads_the_same(&kinds[count - 1], &kinds[i]))
            join(&kinds[count - 1], &kinds[i]);
        else
            kinds[count++] = kinds[i];
    }
    qsort(kinds, count, sizeof(kinds[0]), by_bytes);
    return count;
}

/* How wide the columns are: narrow when there are origins, which need the room. */
struct widths {
    int count;
    int bytes;
    int region;
    size_t devices;
};

static const struct widths wide = {.count = 13, .bytes = 10, .region = 13};

/* The devices of a kind, "0-7 each". */
static void put_devices_of(const struct sheet *sheet, const struct ttm_remains *like)
{
    put_ids(sheet, like->devices, like->device_count, like->last_device);
    put(sheet, like->device_count > 1 ? " each" : "");
}

static struct widths widths_of(const struct sheet *sheet, const struct kind *kinds, uint32_t count)
{
    struct widths widths = {
        .count = 9, .bytes = 9, .region = strlen("region"), .devices = strlen("device")};
    struct sheet part = *sheet;
    struct ttm_text devices;

    if (sheet->departed->origins.count == 0)
        return wide;
    ttm_text_init(&devices);
    part.out = &devices;
    for (uint32_t i = 0; i < count; i++) {
        const int region = (int)strlen(ttm_region_name(kinds[i].like.region));
        widths.region = region > widths.region ? region : widths.region;
        ttm_text_clear(&devices);
        put_devices_of(&part, &kinds[i].like);
        const size_t columns = ttm_terminal_width(ttm_text_string(&devices));
        widths.devices = columns > widths.devices ? columns : widths.devices;
    }
    part_done(sheet, &devices);
    return widths;
}

static void put_kind(const struct sheet *sheet, const struct widths *widths,
                     const struct kind *kind)
{
    const struct ttm_remains *like = &kind->like;
    const struct ttm_origin_brief *words =
        ttm_origin_book_get(&sheet->departed->origins, like->origin);
    char count[TTM_NUMBER_SIZE], sum[TTM_NUMBER_SIZE];
    struct sheet part = *sheet;
    struct ttm_text devices;

    ttm_text_format(sheet->out, "%*s %*s %*s  %-*s  ", widths->count,
                    ttm_format_count(kind->count, count), widths->bytes, kind->each, widths->bytes,
                    ttm_format_bytes(kind->bytes, sum), widths->region,
                    ttm_region_name(like->region));
    ttm_text_init(&devices);
    part.out = &devices;
    put_devices_of(&part, like);
    const size_t width = ttm_terminal_width(ttm_text_string(&devices));
    ttm_text_append_column(sheet->out, ttm_text_string(&devices),
                           words && width < widths->devices ? widths->devices : width,
                           sheet->terminal->has_utf8);
    part_done(sheet, &devices);
    if (words) {
        put(sheet, "  ");
        ttm_origin_brief_text(sheet->out, words);
    }
    if (like->region == TTM_REGION_KERNEL)
        ttm_text_format(sheet->out, "  %s", ttm_kernel_kind_name(like->kind));
    put(sheet, "\n");
}

/* As many as there are rows for; the rest in one row. */
static void put_kinds(const struct sheet *sheet, const struct widths *widths,
                      const struct kind *kinds, uint32_t count, uint32_t row_max)
{
    const struct ttm_remains_set *remains = &sheet->departed->remains;
    uint64_t left = remains->others, bytes = remains->others_footprint_bytes;
    const uint32_t shown = count + (left > 0) > row_max ? row_max - 1 : count;
    char number[TTM_NUMBER_SIZE], sum[TTM_NUMBER_SIZE];

    for (uint32_t i = 0; i < shown; i++)
        put_kind(sheet, widths, &kinds[i]);
    for (uint32_t i = shown; i < count; i++) {
        left += kinds[i].count;
        bytes += kinds[i].bytes * kinds[i].like.device_count;
    }
    if (left > 0)
        ttm_text_format(sheet->out, "%*s %*s %*s  of other kinds, on all devices together\n",
                        widths->count, ttm_format_count(left, number), widths->bytes, "",
                        widths->bytes, ttm_format_bytes(bytes, sum));
}

static void put_titles(const struct sheet *sheet, const struct widths *widths)
{
    struct ttm_text titles;

    ttm_text_init(&titles);
    ttm_text_format(&titles, "%*s %*s %*s  %-*s  ", widths->count, "count", widths->bytes, "each",
                    widths->bytes, "takes", widths->region, "region");
    if (widths->devices > 0)
        ttm_text_format(&titles, "%-*s  from", (int)widths->devices, "device");
    else
        ttm_text_append(&titles, "device");
    put_in(sheet, TTM_DIM, ttm_text_string(&titles));
    put(sheet, "\n");
    part_done(sheet, &titles);
}

static void put_list_of_remains(const struct sheet *sheet, uint32_t row_max)
{
    struct kind *kinds = calloc(sheet->departed->remains.count + 1, sizeof(kinds[0]));

    if (!kinds) {
        sheet->out->failed = true;
        return;
    }
    const uint32_t count = make_kinds(sheet->departed, kinds);
    const struct widths widths = widths_of(sheet, kinds, count);
    put_titles(sheet, &widths);
    put_kinds(sheet, &widths, kinds, count, row_max);
    free(kinds);
}

/* Of what remained with a server elsewhere. */
static void put_remained(const struct sheet *sheet)
{
    const struct ttm_departed *d = sheet->departed;
    char count[TTM_NUMBER_SIZE], sum[TTM_NUMBER_SIZE];

    if (sheet->summary->is_server_gone) {
        put(sheet, "  the server has gone: what remained at the end is not known\n");
    } else if (d->sums.remaining == 0) {
        put(sheet, "  ");
        put_in(sheet, TTM_GREEN, "nothing remained\n");
    } else {
        ttm_text_format(sheet->out, "  %s %s, %s%s\n", ttm_format_count(d->sums.remaining, count),
                        plural(d->sums.remaining, "allocation remained", "allocations remained"),
                        ttm_format_bytes(d->sums.remaining_footprint_bytes, sum),
                        d->device_count > 0 ? "; peaks are those last seen before the end" : "");
    }
}

/* They stay with their programs, which the program cache keeps on purpose. */
static void put_program_parts(const struct sheet *sheet)
{
    const struct ttm_departed_sums *sums = &sheet->departed->sums;
    char count[TTM_NUMBER_SIZE], sum[TTM_NUMBER_SIZE];

    if (sums->program_parts > 0)
        ttm_text_format(sheet->out, "  besides %s %s of cached programs, %s\n",
                        ttm_format_count(sums->program_parts, count),
                        plural(sums->program_parts, "circular buffer or kernel",
                               "circular buffers and kernels"),
                        ttm_format_bytes(sums->program_footprint_bytes, sum));
}

static void put_remains(const struct sheet *sheet, uint32_t row_max, size_t analysis_rows)
{
    const struct ttm_departed *d = sheet->departed;
    char count[TTM_NUMBER_SIZE], sum[TTM_NUMBER_SIZE];
    struct ttm_text head;

    put(sheet, "\n");
    if (sheet->summary->server) {
        put_remained(sheet);
        return;
    }
    if (d->sums.remaining == d->sums.program_parts) {
        put(sheet, "  ");
        put_in(sheet, TTM_GREEN, "nothing remains");
        put(sheet, d->sums.births > 0 && d->sums.lost_events == 0
                       ? ": all that was allocated was freed\n"
                       : "\n");
        put_program_parts(sheet);
        return;
    }
    ttm_text_init(&head);
    const uint64_t remaining = d->sums.remaining - d->sums.program_parts;
    ttm_text_format(
        &head, "%s%s %s, %s", d->inexact_count > 0 ? "as far as was heard, " : "",
        ttm_format_count(remaining, count),
        plural(remaining, "allocation remains", "allocations remain"),
        ttm_format_bytes(d->sums.remaining_footprint_bytes - d->sums.program_footprint_bytes, sum));
    put(sheet, "  ");
    put_in(sheet, TTM_YELLOW, ttm_text_string(&head));
    if (d->sums.closed > 0)
        ttm_text_format(sheet->out, "%s%s until the device was closed",
                        ttm_terminal_dot(sheet->terminal),
                        d->sums.closed == remaining ? plural(d->sums.closed, "held", "all held")
                                                    : ttm_format_count(d->sums.closed, count));
    put(sheet, "\n");
    if (sheet->summary->report && ttm_report_leaked_bytes(sheet->summary->report) > 0)
        (void)ttm_report_remains_text(sheet->summary->report, sheet->terminal, analysis_rows,
                                      sheet->out);
    else
        put_list_of_remains(sheet, row_max);
    put_program_parts(sheet);
    part_done(sheet, &head);
}

/* ---- processes ---- */

static uint32_t process_total(const struct ttm_departed *departed)
{
    return departed->process_count + departed->processes_left_out;
}

static size_t process_command_columns(const struct sheet *sheet)
{
    const size_t width = sheet->terminal->columns;

    return within(width > 54 ? width - 54 : 0, PROCESS_COMMAND_MIN, PROCESS_COMMAND_MAX);
}

static void put_process(const struct sheet *sheet, const struct ttm_departed_process *process)
{
    char births[TTM_NUMBER_SIZE], ends[TTM_NUMBER_SIZE], left[TTM_NUMBER_SIZE];
    char sum[TTM_NUMBER_SIZE];

    ttm_text_format(sheet->out, "%9d  ", process->pid);
    put_command(sheet, process->command, process_command_columns(sheet), true);
    if (!sheet->summary->server) /* else not known */
        ttm_text_format(sheet->out, " %11s %9s", ttm_format_count(process->sums.births, births),
                        ttm_format_count(process->sums.ends, ends));
    ttm_text_format(sheet->out, " %9s %10s\n", ttm_format_count(process->sums.remaining, left),
                    process->sums.remaining
                        ? ttm_format_bytes(process->sums.remaining_footprint_bytes, sum)
                        : "0");
}

/* In the list of processes. */
struct place {
    const struct ttm_departed_process *process;
};

/* Those with the most that remains first, then those that allocated most. */
static int by_remaining(const void *a, const void *b)
{
    const struct ttm_departed_process *x = ((const struct place *)a)->process;
    const struct ttm_departed_process *y = ((const struct place *)b)->process;

    if (x->sums.remaining_footprint_bytes != y->sums.remaining_footprint_bytes)
        return x->sums.remaining_footprint_bytes < y->sums.remaining_footprint_bytes ? 1 : -1;
    if (x->sums.births != y->sums.births)
        return x->sums.births < y->sums.births ? 1 : -1;
    return x < y ? -1 : x > y; /* in the order of their ends */
}

static void put_process_rows(const struct sheet *sheet, uint32_t row_max)
{
    const struct ttm_departed *d = sheet->departed;
    struct place order[TTM_DEPARTED_PROCESSES_MAX] = {0};
    const uint32_t total = process_total(d);
    const uint32_t shown = total > row_max ? row_max - 1 : d->process_count;

    for (uint32_t i = 0; i < d->process_count; i++)
        order[i].process = &d->processes[i];
    qsort(order, d->process_count, sizeof(order[0]), by_remaining);
    for (uint32_t i = 0; i < shown; i++)
        put_process(sheet, order[i].process);
    if (shown < total)
        ttm_text_format(sheet->out, "           %s %u more\n",
                        ttm_terminal_ellipsis(sheet->terminal), total - shown);
}

static void put_processes(const struct sheet *sheet, uint32_t row_max)
{
    char title[64];

    if (process_total(sheet->departed) < 2)
        return;
    (void)snprintf(title, sizeof(title), "%u processes", process_total(sheet->departed));
    put(sheet, "\n  ");
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_DIM);
    ttm_text_append_column(sheet->out, title, process_command_columns(sheet) + 9,
                           sheet->terminal->has_utf8);
    put(sheet, sheet->summary->server ? "    remain      takes"
                                      : " allocations     frees    remain      takes");
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
    put(sheet, "\n");
    put_process_rows(sheet, row_max);
}

/* Those that outlive the command. */
static void put_running(const struct sheet *sheet)
{
    const struct ttm_departed *d = sheet->departed;
    const char *separator = " ";
    uint32_t named = 0;

    if (d->running_count == 0)
        return;
    put(sheet, "\n  ");
    put_in(sheet, TTM_YELLOW, "still running");
    put(sheet,
        sheet->summary->server ? ", and tracked by the server:" : ", and tracked no longer:");
    for (uint32_t i = 0; i < d->process_count && named < RUNNING_NAMED; i++) {
        if (!d->processes[i].is_running)
            continue;
        ttm_text_format(sheet->out, "%s%d ", separator, d->processes[i].pid);
        put_command(sheet, d->processes[i].command, PROCESS_COMMAND_MIN, false);
        separator = ", ";
        named++;
    }
    if (named < d->running_count)
        ttm_text_format(sheet->out, ", %u more", d->running_count - named);
    put(sheet, "\n");
}

/* ---- all of it ---- */

/* What to type next. */
static void put_next(const struct sheet *sheet)
{
    const struct ttm_run_summary *summary = sheet->summary;
    char bytes[TTM_NUMBER_SIZE];

    if (summary->recording) {
        put(sheet, "\n  recorded in ");
        ttm_text_append_safe(sheet->out, summary->recording);
        ttm_text_format(sheet->out, " (%s)%s", ttm_format_bytes(summary->recording_bytes, bytes),
                        ttm_terminal_dot(sheet->terminal));
        ttm_terminal_colour(sheet->terminal, sheet->out, TTM_BOLD);
        put(sheet, "tt-mem report");
        if (strchr(summary->recording, '/')) { /* else it finds the newest in this folder */
            put(sheet, " ");
            ttm_text_append_safe(sheet->out, summary->recording);
        }
        ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
        put(sheet, "\n");
    } else if (sheet->departed->sums.remaining > sheet->departed->sums.program_parts) {
        put(sheet, "\n  while it runs: ");
        put_in(sheet, TTM_BOLD, "tt-mem dump");
        put(sheet, " lists each, ");
        put_in(sheet, TTM_BOLD, "tt-mem tail");
        put(sheet, " shows them come and go\n");
    }
}

static void put_verdict(const struct sheet *sheet)
{
    if (!sheet->summary->leak_verdict)
        return;
    put(sheet, "  ");
    put_in(sheet, TTM_BOLD, sheet->summary->leak_verdict);
    put(sheet, "\n");
}

void ttm_run_summary_text(const struct ttm_run_summary *summary,
                          const struct ttm_terminal *terminal, struct ttm_text *out)
{
    const struct ttm_departed *d = summary->departed;
    const struct sheet sheet = {
        .summary = summary, .departed = d, .terminal = terminal, .out = out};
    const bool is_high = terminal->rows >= ROWS_HIGH;
    const uint32_t remains_max = is_high ? 12 : 5, processes_max = is_high ? 8 : 3;

    if (terminal->is_terminal && summary->end.signal == SIGINT)
        put(&sheet, "\n"); /* behind the ^C that the terminal shows */
    put_head(&sheet);
    if (!ttm_departed_has_news(d)) {
        put_verdict(&sheet);
        return;
    }
    put_oddities(&sheet);
    put_trouble(&sheet);
    /* Three for the head, two around the devices, two for what comes last, one for the prompt. */
    const bool has_suspects = summary->report && ttm_report_leaked_bytes(summary->report) > 0;
    const size_t analysis_rows = is_high || !terminal->is_terminal ? 24 : 8;
    size_t others =
        8 + 3 + (has_suspects ? analysis_rows : within(d->remains.count, 0, remains_max));
    others += d->sums.program_parts > 0 ? 1 : 0;
    others += ttm_departed_trouble(d) ? 1 : 0;
    if (process_total(d) > 1)
        others += 2 + within(process_total(d), 0, processes_max);
    others += d->running_count > 0 ? 2 : 0;
    put_devices(&sheet, terminal->rows > others ? terminal->rows - others : 0);
    put_remains(&sheet, remains_max, analysis_rows);
    put_processes(&sheet, processes_max);
    put_running(&sheet);
    put_next(&sheet);
    put(&sheet, summary->leak_verdict ? "\n" : "");
    put_verdict(&sheet);
}
