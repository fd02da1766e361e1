/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of several processes one is shown whole. The suspects of the others have a line each below it;
 * those of one line of code, as eight ranks of a job have them, share theirs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report_rows.h"
#include "cli/report_sheet.h"
#include "wire/region.h"

/* A line of code that is suspect in processes that are not shown. */
struct suspect {
    struct ttm_text place;
    uint8_t region;
    int32_t pid;        /* of the first process */
    uint32_t processes; /* that have it */
    struct ttm_held held;
};

struct suspects {
    struct suspect *list;
    size_t count;
    size_t room;
};

static struct suspect *find(const struct suspects *suspects, const char *place, uint8_t region)
{
    for (size_t i = 0; i < suspects->count; i++) {
        struct suspect *suspect = &suspects->list[i];
        if (suspect->region == region && strcmp(ttm_text_string(&suspect->place), place) == 0)
            return suspect;
    }
    return NULL;
}

static struct suspect *add(struct suspects *suspects)
{
    if (suspects->count == suspects->room) {
        const size_t room = suspects->room ? suspects->room * 2 : 16;
        struct suspect *list = realloc(suspects->list, room * sizeof(list[0]));
        if (!list)
            return NULL;
        suspects->list = list;
        suspects->room = room;
    }
    struct suspect *suspect = &suspects->list[suspects->count++];
    *suspect = (struct suspect){0};
    ttm_text_init(&suspect->place);
    return suspect;
}

static int add_row(const struct sheet *sheet, const struct ttm_report_row *row,
                   struct suspects *suspects)
{
    const struct ttm_report_origin *origin = row->origin;
    struct ttm_text place;

    ttm_text_init(&place);
    ttm_report_place_and_caller(sheet, &origin->words, &place);
    struct suspect *suspect = find(suspects, ttm_text_string(&place), origin->region);
    if (!suspect && (suspect = add(suspects))) {
        suspect->place = place;
        suspect->region = origin->region;
    } else {
        ttm_text_done(&place);
    }
    if (!suspect)
        return -ENOMEM;
    /* Rows of one process follow each other. */
    suspect->processes += suspect->pid != sheet->process->pid;
    suspect->pid = sheet->process->pid;
    ttm_held_add(&suspect->held, &row->held);
    return 0;
}

static int collect(const struct sheet *sheet, struct suspects *suspects)
{
    struct sheet other = *sheet;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < sheet->report->process_count; i++) {
        struct ttm_report_row *rows = NULL;
        uint32_t count = 0;
        other.process = &sheet->report->processes[i];
        if (other.process == sheet->process ||
            !ttm_report_has_process(sheet->choice, other.process))
            continue;
        r = ttm_report_rows_of(sheet->choice, other.process, &rows, &count);
        for (uint32_t k = 0; r == 0 && k < count && rows[k].origin->verdict.is_suspect; k++)
            r = add_row(&other, &rows[k], suspects);
        free(rows);
    }
    return r;
}

/* " + in 3 other processes: p.py:9 step, DRAM, 60 buffers, 1.9 MiB" */
static void put_line(struct ttm_text *out, const struct suspect *suspect)
{
    char count[TTM_NUMBER_SIZE], bytes[TTM_NUMBER_SIZE];

    if (suspect->processes > 1)
        ttm_text_format(out, " + in %u other processes: ", suspect->processes);
    else
        ttm_text_format(out, " + in process %d: ", suspect->pid);
    ttm_text_append(out, ttm_text_string(&suspect->place));
    ttm_text_format(out, ", %s, %s %s, %s\n", ttm_region_name(suspect->region),
                    ttm_format_count(suspect->held.count, count),
                    plural(suspect->held.count, "buffer", "buffers"),
                    ttm_format_bytes(suspect->held.footprint_bytes, bytes));
}

int ttm_report_suspects_elsewhere(const struct sheet *sheet, struct ttm_text *out,
                                  size_t *ret_lines)
{
    struct suspects suspects = {0};
    const int r = collect(sheet, &suspects);

    for (size_t i = 0; i < suspects.count; i++) {
        put_line(out, &suspects.list[i]);
        out->failed |= suspects.list[i].place.failed;
        ttm_text_done(&suspects.list[i].place);
    }
    *ret_lines = suspects.count;
    free(suspects.list);
    return r;
}
