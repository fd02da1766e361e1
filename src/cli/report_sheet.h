/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_sheet - what the parts of a report's screen share. Private to report_*.c.
 */
#ifndef TTM_CLI_REPORT_SHEET_H
#define TTM_CLI_REPORT_SHEET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "cli/report_choice.h"
#include "cli/source_line.h"
#include "cli/terminal.h"

#define WIDE_COLUMNS 110 /* from here on, more columns */

struct sheet {
    const struct ttm_report *report;
    const struct ttm_report_choice *choice;
    const struct ttm_report_process *process;
    const struct ttm_terminal *terminal;
    struct ttm_text *out;
    struct ttm_source_lines *sources;
    const char *path; /* of the recording; NULL: it is not kept */
    size_t rows;      /* that are left */
    size_t below;     /* of these, kept for what comes after the table */
    bool is_brief;    /* there are few: what is told of suspects is all that matters */
};

static inline void put(const struct sheet *sheet, const char *text)
{
    ttm_text_append(sheet->out, text);
}

static inline void put_in(const struct sheet *sheet, enum ttm_colour colour, const char *text)
{
    ttm_terminal_colour(sheet->terminal, sheet->out, colour);
    put(sheet, text);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
}

static inline void put_columns(const struct sheet *sheet, const char *text, size_t columns)
{
    ttm_text_append_column(sheet->out, text, columns, sheet->terminal->has_utf8);
}

static inline const char *plural(uint64_t count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}

static inline void end_line(struct sheet *sheet)
{
    put(sheet, "\n");
    sheet->rows -= sheet->rows > 0;
}

static inline const char *dot(const struct sheet *sheet)
{
    return ttm_terminal_dot(sheet->terminal);
}

static inline bool is_wide(const struct sheet *sheet)
{
    return sheet->terminal->columns >= WIDE_COLUMNS;
}

/* Devices of the process, those alike once. */
void ttm_report_devices(struct sheet *sheet);

/* What remains or was live, by origin; what grew or came and went besides. Returns 0 or -ENOMEM. */
int ttm_report_origins(struct sheet *sheet);

/*
 * Appends a line for each suspect of the processes that are not shown, and says how many. Returns
 * 0 or -ENOMEM.
 */
int ttm_report_suspects_elsewhere(const struct sheet *sheet, struct ttm_text *out,
                                  size_t *ret_lines);

/* The same, by call stack or where frees are missing. Returns 0 or -ENOMEM. */
int ttm_report_view(struct sheet *sheet);

/* "nothing in L1 remains: all that was allocated there was freed", of what was chosen. */
void ttm_report_nothing(struct sheet *sheet);

/* A line with how many suspects are not among what was chosen, if there are any. */
void ttm_report_hidden(struct sheet *sheet);

/* Words, wrapped to the terminal, each line behind so many spaces. */
void ttm_report_wrapped(struct sheet *sheet, const char *text, size_t indent);

/* A line with a frame and its line of source. */
void ttm_report_frame(struct sheet *sheet, const struct ttm_frame_words *frame);

/* "decode.py:28 cache_kv", or what is known instead. */
void ttm_report_place(const struct sheet *sheet, const struct ttm_origin_words *words,
                      struct ttm_text *out);

/* The same with the caller, "decode.py:28 ← forward", where others come through the same line. */
void ttm_report_place_and_caller(const struct sheet *sheet, const struct ttm_origin_words *words,
                                 struct ttm_text *out);

#endif /* TTM_CLI_REPORT_SHEET_H */
