/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "cli/region_line.h"
#include "cli/run_sheet.h"
#include "wire/region.h"

#define BAR_MIN 4
#define BAR_MAX 40

void ttm_run_ids(const struct sheet *sheet, const uint16_t ids[TTM_REMAINS_DEVICES], uint32_t count,
                 uint16_t last)
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

    if (region != TTM_REGION_CB)
        return totals;
    totals.closed_footprint_bytes = 0;
    if (device->totals.cb.peak_resident_bytes > 0) {
        totals.footprint_bytes = device->totals.cb.resident_bytes;
        totals.peak_footprint_bytes = device->totals.cb.peak_resident_bytes;
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
    ttm_run_ids(&part, block->ids, block->count, block->last);
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

/* Whether more remains than there ever was at once. */
static bool adds_up(const struct ttm_departed *departed)
{
    for (uint32_t i = 0; i < departed->device_count; i++) {
        for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
            const struct ttm_totals totals = totals_of(&departed->devices[i], r);
            if (remaining_bytes(&totals) > totals.peak_footprint_bytes)
                return true;
        }
    }
    return false;
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

void ttm_run_devices(const struct sheet *sheet, size_t row_max)
{
    const struct ttm_departed *d = sheet->departed;
    struct block *blocks = d->device_count ? calloc(d->device_count, sizeof(blocks[0])) : NULL;

    if (!blocks) {
        sheet->out->failed |= d->device_count > 0;
        return;
    }
    put(sheet, "\n");
    const bool has_note = adds_up(d);
    put_blocks(sheet, blocks, make_blocks(d, blocks), row_max - (has_note && row_max > 0));
    if (has_note)
        put(sheet, TTM_REGION_SUM_NOTE "\n");
    free(blocks);
}
