/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/origin_text.h"
#include "cli/report_text.h"
#include "cli/report_words.h"
#include "cli/run_sheet.h"
#include "wire/region.h"

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
    ttm_run_ids(sheet, like->devices, like->device_count, like->last_device);
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
                     const struct kind *kind, struct ttm_native_names *names)
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
        ttm_origin_brief_text(sheet->out, words, names);
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
    struct ttm_native_names *names = ttm_native_names_new(); /* NULL names nothing */

    for (uint32_t i = 0; i < shown; i++)
        put_kind(sheet, widths, &kinds[i], names);
    ttm_native_names_free(names);
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
        put_in(sheet, TTM_GREEN, "nothing remained");
        put(sheet, ttm_departed_is_inexact(d) ? ", as far as was heard\n" : "\n");
    } else {
        ttm_text_format(sheet->out, "  %s%s %s, %s requested%s\n",
                        ttm_departed_is_inexact(d) ? "as far as was heard, " : "",
                        ttm_format_count(d->sums.remaining, count),
                        plural(d->sums.remaining, "allocation remained", "allocations remained"),
                        ttm_format_bytes(d->sums.remaining_footprint_bytes, sum),
                        d->device_count > 0 ? "; the table is what was last seen before the end"
                                            : "");
    }
}

/* They stay with their programs, which the program cache keeps on purpose. */
static void put_program_parts(const struct sheet *sheet)
{
    const struct ttm_departed_sums *sums = &sheet->departed->sums;
    char sum[TTM_NUMBER_SIZE];

    if (sums->program_parts == 0 || sheet->is_brief)
        return;
    put(sheet, "  besides ");
    ttm_report_put_parts(sheet->out, sums->program_parts - sums->program_buffers,
                         sums->program_buffers);
    ttm_text_format(sheet->out, ", %s\n", ttm_format_bytes(sums->program_footprint_bytes, sum));
}

/* What "nothing remains" means. */
static const char *nothing_remains_as(const struct ttm_departed *d)
{
    if (ttm_departed_is_inexact(d))
        return ", as far as was heard";
    if (d->sums.births == 0 || d->sums.lost_events > 0 || ttm_departed_has_missed(d))
        return "";
    return d->sums.replaced > 0 ? ": all that was allocated was freed or replaced"
                                : ": all that was allocated was freed";
}

void ttm_run_remains(const struct sheet *sheet, uint32_t row_max, size_t analysis_rows)
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
        put(sheet, nothing_remains_as(d));
        put(sheet, "\n");
        put_program_parts(sheet);
        return;
    }
    ttm_text_init(&head);
    const uint64_t remaining = d->sums.remaining - d->sums.program_parts;
    ttm_text_format(
        &head, "%s%s %s, %s", ttm_departed_is_inexact(d) ? "as far as was heard, " : "",
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
    if (sheet->summary->report && ttm_report_has_findings(sheet->summary->report))
        (void)ttm_report_remains_text(sheet->summary->report, sheet->summary->recording,
                                      sheet->terminal, analysis_rows, sheet->out);
    else
        put_list_of_remains(sheet, row_max);
    put_program_parts(sheet);
    part_done(sheet, &head);
}
