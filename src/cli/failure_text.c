/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/failure_text.h"

#include <stdio.h>
#include <string.h>

#include "cli/origin_text.h"

#define MAP_OTHER_COLUMNS 60 /* of its line: what stands around the cells */
#define PART_COLUMNS 100     /* from here on there is room to explain a cell that is held in part */
#define MAP_CELLS_MIN 16
#define LONG_COLUMNS 110 /* from here on callers are told with their lines */

struct sheet {
    const struct ttm_failure_view *view;
    const struct ttm_failure_row *failure;
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

static const char *held_region(const struct sheet *sheet)
{
    return ttm_region_name(ttm_failure_held_region(sheet->failure));
}

/* 'decode.py:28 ← forward (ttnn.zeros) "weights" in model_init'. */
static void put_place(const struct sheet *sheet, const struct ttm_failure_place *place)
{
    const bool is_long = sheet->terminal->columns >= LONG_COLUMNS;
    struct ttm_origin_brief words = place->words;

    if (place->caller.frame) {
        ttm_text_append_safe(sheet->out, place->frame->file);
        ttm_text_format(sheet->out, ":%u%s", place->frame->line, is_long ? " " : "");
        ttm_text_append_safe(sheet->out, is_long ? place->frame->function : "");
        ttm_caller_text(sheet->out, sheet->terminal, is_long, &place->caller);
        words.place = "";
        put(sheet, ttm_origin_brief_are_empty(&words) ? "" : " ");
    }
    ttm_origin_brief_text(sheet->out, &words, sheet->view->names);
}

/* ---- what failed ---- */

static void put_wanted(const struct sheet *sheet, struct ttm_text *out)
{
    const struct ttm_failure_row *failure = sheet->failure;
    const uint32_t banks = sheet->view->bank_count;
    char all[TTM_NUMBER_SIZE], each[TTM_NUMBER_SIZE];

    ttm_text_format(out, "%s wanted", ttm_format_bytes(failure->wanted_bytes, all));
    if (failure->bank_wanted_bytes == 0)
        return;
    (void)ttm_format_bytes(failure->bank_wanted_bytes, each);
    if (banks > 1)
        ttm_text_format(out, ", %s in each of %u banks", each, banks);
    else
        ttm_text_format(out, ", %s a bank", each);
}

/* "tt-mem: out of memory in L1 of device 0 at decode.py:61 main (ttnn.matmul)" */
static void put_what(const struct sheet *sheet)
{
    const struct ttm_failure_row *failure = sheet->failure;

    put(sheet, "tt-mem: ");
    if (failure->kind == TTM_FAILURE_CB_CLASH) {
        put_in(sheet, TTM_RED, "circular buffers clash with L1 buffers");
        ttm_text_format(sheet->out, " on device %u", failure->device_id);
    } else {
        put_in(sheet, TTM_RED, "out of memory");
        ttm_text_format(sheet->out, " in %s of device %u", ttm_region_name(failure->region),
                        failure->device_id);
    }
    if (sheet->view->pid != 0)
        ttm_text_format(sheet->out, " in process %d", sheet->view->pid);
    if (ttm_origin_brief_are_empty(&sheet->view->where.words))
        return;
    put(sheet, sheet->view->where.words.place[0] != '\0' ? " at " : " ");
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_BOLD);
    put_place(sheet, &sheet->view->where);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
}

/* One line where it fits, else two. */
static void put_head(const struct sheet *sheet)
{
    const size_t start = sheet->out->length;
    struct ttm_text wanted;

    put_what(sheet);
    if (sheet->failure->kind == TTM_FAILURE_CB_CLASH) {
        put(sheet, "\n");
        return;
    }
    ttm_text_init(&wanted);
    put_wanted(sheet, &wanted);
    const size_t width = ttm_terminal_width(ttm_text_string(sheet->out) + start) +
                         ttm_terminal_width(ttm_text_string(&wanted));
    put(sheet, width + strlen(": ") <= sheet->terminal->columns ? ": " : "\n  ");
    put(sheet, ttm_text_string(&wanted));
    put(sheet, "\n");
    sheet->out->failed |= ttm_text_failed(&wanted);
    ttm_text_done(&wanted);
}

/* ---- how much is free ---- */

static void put_verdict(const struct sheet *sheet, const char *verdict)
{
    put(sheet, sheet->terminal->has_utf8 ? " → " : " -> ");
    put_in(sheet, TTM_YELLOW, verdict);
}

static void put_free(const struct sheet *sheet)
{
    const struct ttm_failure_row *failure = sheet->failure;
    const enum ttm_shortage shortage = ttm_failure_shortage(failure);
    char all[TTM_NUMBER_SIZE], largest[TTM_NUMBER_SIZE];

    if (failure->bank_wanted_bytes == 0)
        return;
    ttm_text_format(sheet->out, "  free %s a bank, largest block %s",
                    ttm_format_bytes(failure->bank_free_bytes, all),
                    ttm_format_bytes(failure->bank_largest_bytes, largest));
    if (shortage == TTM_SHORTAGE_FRAGMENTED)
        put_verdict(sheet, "fragmented, not exhausted");
    else if (shortage == TTM_SHORTAGE_EXHAUSTED)
        put_verdict(sheet, "exhausted");
    put(sheet, "\n");
}

/* ---- a clash: both sides ---- */

void ttm_failure_clash_text(struct ttm_text *out, uint64_t end, uint64_t wanted_bytes)
{
    char bytes[TTM_NUMBER_SIZE];

    ttm_text_format(out, "circular buffers would end at 0x%llx", (unsigned long long)end);
    if (wanted_bytes > 0)
        ttm_text_format(out, " and take %s on all cores together",
                        ttm_format_bytes(wanted_bytes, bytes));
}

static void put_clash(const struct sheet *sheet)
{
    const struct ttm_bank_map *map = &sheet->view->map;
    const uint64_t end = sheet->failure->bank_wanted_bytes;
    char bytes[TTM_NUMBER_SIZE];

    if (end > 0) {
        put(sheet, "  ");
        ttm_failure_clash_text(sheet->out, end, sheet->failure->wanted_bytes);
        put(sheet, "\n");
    }
    for (uint32_t i = 0; i < map->lowest_count; i++) {
        const struct ttm_bank_low *low = &map->lowest[i];
        ttm_text_format(sheet->out, "  %-18s 0x%-8llx %10s  ", i == 0 ? "lowest L1 buffers" : "",
                        (unsigned long long)low->address,
                        ttm_format_bytes(low->footprint_bytes, bytes));
        put_place(sheet, &sheet->view->lowest_places[i]);
        put(sheet, "\n");
    }
}

/* ---- who holds it ---- */

static void put_amount(const struct sheet *sheet, bool is_first, uint64_t bytes)
{
    char label[32], number[TTM_NUMBER_SIZE];

    (void)snprintf(label, sizeof(label), "who holds %s", is_first ? held_region(sheet) : "");
    ttm_text_format(sheet->out, "  %-18s %10s  ", is_first ? label : "",
                    ttm_format_bytes(bytes, number));
}

static void put_buffers(const struct sheet *sheet, uint64_t count)
{
    char number[TTM_NUMBER_SIZE];

    ttm_text_format(sheet->out, "%6s %-8s ", ttm_format_count(count, number),
                    count == 1 ? "buffer" : "buffers");
}

static void put_holders(const struct sheet *sheet)
{
    const struct ttm_holders *holders = &sheet->view->holders;
    struct ttm_owner rest = holders->all;
    char number[TTM_NUMBER_SIZE];

    for (uint32_t i = 0; i < holders->count; i++) {
        const struct ttm_owner *owner = &holders->largest[i];
        put_amount(sheet, i == 0, owner->footprint_bytes);
        put_buffers(sheet, owner->count);
        if (ttm_origin_brief_are_empty(&sheet->view->holder_places[i].words))
            put_in(sheet, TTM_DIM, "from where is not known");
        put_place(sheet, &sheet->view->holder_places[i]);
        put(sheet, "\n");
        rest.count -= owner->count;
        rest.footprint_bytes -= owner->footprint_bytes;
    }
    if (holders->origins > holders->count) {
        put_amount(sheet, false, rest.footprint_bytes);
        put_buffers(sheet, rest.count);
        ttm_text_format(sheet->out, "from %s other places\n",
                        ttm_format_count(holders->origins - holders->count, number));
    }
    if (holders->count == 0 && !sheet->view->is_late)
        ttm_text_format(sheet->out, "  nothing that is tracked holds %s of device %u\n",
                        held_region(sheet), sheet->failure->device_id);
}

static void put_programs(const struct sheet *sheet)
{
    const struct ttm_failure_view *view = sheet->view;
    char number[TTM_NUMBER_SIZE];

    if (view->cb_bytes == 0)
        return;
    const size_t line = sheet->out->length;
    put_amount(sheet, false, view->cb_bytes);
    put(sheet, "circular buffers");
    if (view->program_count > 0)
        ttm_text_format(sheet->out, " of %s %s", ttm_format_count(view->program_count, number),
                        view->program_count == 1 ? "program" : "programs");
    for (uint32_t i = 0; i < view->operation_count; i++) {
        const size_t taken = ttm_terminal_width(ttm_text_string(sheet->out) + line);
        put(sheet, i == 0 ? " (" : ", ");
        /* With a comma or parenthesis before it, and another one and dots behind. */
        if (sheet->terminal->is_terminal &&
            taken + 2 + strlen(view->operations[i]) + 4 > sheet->terminal->columns) {
            put(sheet, ttm_terminal_ellipsis(sheet->terminal));
            break;
        }
        ttm_text_append_safe(sheet->out, view->operations[i]);
    }
    put(sheet, view->operation_count > 0 ? ")\n" : "\n");
}

/* ---- where it lies ---- */

uint32_t ttm_failure_map_cells(const struct ttm_terminal *terminal)
{
    const size_t other = MAP_OTHER_COLUMNS + (terminal->columns >= PART_COLUMNS ? 10 : 0);
    const size_t room = terminal->columns > other ? terminal->columns - other : 0;

    return room < MAP_CELLS_MIN        ? MAP_CELLS_MIN
           : room > TTM_BANK_CELLS_MAX ? TTM_BANK_CELLS_MAX
                                       : (uint32_t)room;
}

static void put_map(const struct sheet *sheet)
{
    static const char *const drawn[] = {
        [TTM_CELL_FREE] = "░", [TTM_CELL_PART] = "▒", [TTM_CELL_HELD] = "█"};
    static const char *const ascii[] = {
        [TTM_CELL_FREE] = ".", [TTM_CELL_PART] = "+", [TTM_CELL_HELD] = "#"};
    const struct ttm_bank_map *map = &sheet->view->map;
    const bool has_utf8 = sheet->terminal->has_utf8;
    const char *const *glyphs = has_utf8 ? drawn : ascii;
    char bytes[TTM_NUMBER_SIZE];

    /* What reaches further than a bank is long is no bank. */
    if (map->cell_count == 0 || map->end - map->start > sheet->view->bank_bytes)
        return;
    put(sheet, has_utf8 ? "  bank ▕" : "  bank |");
    for (uint32_t i = 0; i < map->cell_count; i++)
        put(sheet, glyphs[map->cells[i]]);
    ttm_text_format(sheet->out, "%s 0x%llx %s 0x%llx of %s", has_utf8 ? "▏" : "|",
                    (unsigned long long)map->start, ttm_terminal_ellipsis(sheet->terminal),
                    (unsigned long long)map->end, ttm_format_bytes(sheet->view->bank_bytes, bytes));
    ttm_text_format(sheet->out, "  %s held%s %s free\n", glyphs[TTM_CELL_HELD],
                    sheet->terminal->columns >= PART_COLUMNS &&
                            memchr(map->cells, TTM_CELL_PART, map->cell_count)
                        ? (has_utf8 ? " ▒ in part" : " + in part")
                        : "",
                    glyphs[TTM_CELL_FREE]);
}

void ttm_failure_text(const struct ttm_failure_view *view, const struct ttm_terminal *terminal,
                      struct ttm_text *out)
{
    const struct sheet sheet = {
        .view = view, .failure = view->failure, .terminal = terminal, .out = out};

    put_head(&sheet);
    if (view->failure->kind == TTM_FAILURE_CB_CLASH)
        put_clash(&sheet);
    put_free(&sheet);
    put_holders(&sheet);
    put_programs(&sheet);
    put_map(&sheet);
}
