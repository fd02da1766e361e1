/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/region_line.h"
#include "cli/report_sheet.h"
#include "cli/report_words.h"
#include "wire/region.h"

/* Whether the table has a row for that region of the device. */
static bool is_shown(const struct sheet *sheet, const struct ttm_report_device *device, unsigned r)
{
    const int region = sheet->choice->region;

    return device->region[r].allocs > 0 && (region < 0 || region == (int)r);
}

static bool is_chosen(const struct sheet *sheet, const struct ttm_report_device *device)
{
    bool has_rows = sheet->choice->region < 0;

    for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
        has_rows |= is_shown(sheet, device, r);
    return has_rows && ttm_device_filter_has(&sheet->choice->devices, device->id);
}

/* What the row has in its columns. */
static struct ttm_report_amounts amounts_of(const struct sheet *sheet,
                                            const struct ttm_report_device *device, unsigned r)
{
    struct ttm_report_amounts amounts = ttm_report_amounts(device, r);

    if (sheet->choice->at != TTM_AT_MARK)
        return amounts;
    if (r != TTM_REGION_CB)
        amounts.now_bytes = device->region[r].at_mark.footprint_bytes;
    else if (device->cbs.peak_resident_bytes > 0) /* it is known what is resident */
        amounts.now_bytes = device->mark_resident_bytes;
    else
        amounts.now_bytes = device->mark_registered_bytes;
    return amounts;
}

/* Devices that look alike are shown once: a mesh is not 32 times as long. */
static bool looks_alike(const struct sheet *sheet, const struct ttm_report_device *a,
                        const struct ttm_report_device *b)
{
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        const struct ttm_report_amounts x = amounts_of(sheet, a, r), y = amounts_of(sheet, b, r);
        if (is_shown(sheet, a, r) != is_shown(sheet, b, r))
            return false;
        if (is_shown(sheet, a, r) && (x.now_bytes != y.now_bytes || x.peak_bytes != y.peak_bytes ||
                                      a->region[r].capacity_bytes != b->region[r].capacity_bytes))
            return false;
    }
    return a->arch == b->arch && strcmp(a->board, b->board) == 0;
}

/* Whether the device is a chosen one that looks like 'like'. */
static bool is_like(const struct sheet *sheet, uint32_t i, const struct ttm_report_device *like)
{
    const struct ttm_report_process *process = sheet->process;

    return i < process->device_count && is_chosen(sheet, &process->devices[i]) &&
           looks_alike(sheet, &process->devices[i], like);
}

/* "0", "0-7", "0,2,5": those chosen that look like 'like'. Returns how many they are. */
static uint32_t put_alike(const struct sheet *sheet, const struct ttm_report_device *like,
                          struct ttm_text *out)
{
    const struct ttm_report_process *process = sheet->process;
    uint32_t count = 0;

    for (uint32_t i = 0, next; i < process->device_count; i = next) {
        next = i + 1;
        if (!is_like(sheet, i, like))
            continue;
        while (is_like(sheet, next, like) &&
               process->devices[next].id == process->devices[next - 1].id + 1)
            next++;
        ttm_text_format(out, next - i > 1 ? "%s%u-%u" : "%s%u", count > 0 ? "," : "",
                        process->devices[i].id, process->devices[next - 1].id);
        count += next - i;
    }
    return count;
}

#define LABEL_COLUMNS 26

static void put_region(struct sheet *sheet, const struct ttm_report_device *device, unsigned r)
{
    const struct ttm_report_amounts amounts = amounts_of(sheet, device, r);
    const size_t width = sheet->terminal->columns;
    const struct ttm_region_line row = {
        .label = ttm_region_name(r),
        .now_bytes = amounts.now_bytes,
        .peak_bytes = amounts.peak_bytes,
        .capacity_bytes = device->region[r].capacity_bytes,
        .label_columns = LABEL_COLUMNS - 2,
        .bar_columns = width > 100  ? 24
                       : width > 76 ? 8
                                    : 0,
    };
    ttm_region_line_text(sheet->terminal, &row, sheet->out);
    end_line(sheet);
}

static void put_device(struct sheet *sheet, const struct ttm_report_device *device, bool is_first)
{
    struct ttm_text label, ids;

    ttm_text_init(&label);
    ttm_text_init(&ids);
    const uint32_t count = put_alike(sheet, device, &ids);
    ttm_text_format(&label, "%s %s%s ", count == 1 ? "device" : "devices", ttm_text_string(&ids),
                    count == 1 ? "" : " each");
    ttm_text_append_safe(&label, device->board);
    if (device->arch != TTM_ARCH_UNKNOWN && (count == 1 || !device->board[0]))
        ttm_text_format(&label, "%s%s", device->board[0] ? " " : "", ttm_arch_name(device->arch));
    put(sheet, "  ");
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_BOLD);
    put_columns(sheet, ttm_text_string(&label), LABEL_COLUMNS + 2);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
    if (is_first)
        put_in(sheet, TTM_DIM,
               sheet->choice->at == TTM_AT_MARK ? " at mark       peak   capacity"
                                                : " remains       peak   capacity");
    end_line(sheet);
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        if (is_shown(sheet, device, r))
            put_region(sheet, device, r);
    }
    sheet->out->failed |= label.failed || ids.failed;
    ttm_text_done(&label);
    ttm_text_done(&ids);
}

/* Whether more remains in a row than there ever was at once. */
static bool adds_up(const struct sheet *sheet, const struct ttm_report_device *device)
{
    bool is_more = false;

    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        const struct ttm_report_amounts amounts = amounts_of(sheet, device, r);
        is_more |= is_shown(sheet, device, r) && amounts.now_bytes > amounts.peak_bytes;
    }
    return is_more;
}

/* At most so many kinds of devices, unless all are asked for. */
#define DEVICES_SHOWN 3

void ttm_report_devices(struct sheet *sheet)
{
    const struct ttm_report_process *process = sheet->process;
    uint32_t shown = 0, left_out = 0;
    bool is_more = false;

    for (uint32_t i = 0; i < process->device_count; i++) {
        const struct ttm_report_device *device = &process->devices[i];
        uint32_t before = 0;
        if (!is_chosen(sheet, device))
            continue;
        while (before < i && !is_like(sheet, before, device))
            before++;
        if (before < i)
            continue;
        if (shown == DEVICES_SHOWN && !sheet->choice->is_unfolded) {
            left_out++;
            continue;
        }
        put_device(sheet, device, shown++ == 0);
        is_more |= adds_up(sheet, device);
    }
    if (left_out > 0) {
        ttm_text_format(sheet->out, "  %s %u more that differ: --all",
                        ttm_terminal_ellipsis(sheet->terminal), left_out);
        end_line(sheet);
    }
    if (is_more) {
        put(sheet, TTM_REGION_SUM_NOTE);
        end_line(sheet);
    }
}
