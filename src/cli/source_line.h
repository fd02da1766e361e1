/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_line - the source lines that a report shows.
 *
 * A program names the files of its frames itself, and a recording is only its writer's word:
 * both could name any file that the reader of the report may open, such as a root-only one.
 * So a line is read only if the recording, the process in it and the file all belong to the
 * caller (or if the user asked for other files with --source). The owner is checked on the
 * file that is then read, never on its path.
 */
#ifndef TTM_CLI_SOURCE_LINE_H
#define TTM_CLI_SOURCE_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/report.h"
#include "base/text.h"

/* The source lines of one report. */
struct ttm_source_lines {
    const struct ttm_report *report;
    bool reads_any_file; /* --source */
    uint64_t left_out;   /* lines that are there, but of a file that is not the caller's */
    uint64_t read_bytes; /* of all files so far, which is bounded */
};

/* Both hints for the user: what 'left_out' is about, and what to do. */
#define TTM_SOURCE_LEFT_OUT "source lines of files that are not yours are left out"

/* True if the caller has run this process, as far as the recording can be believed. */
bool ttm_source_is_own(const struct ttm_source_lines *sources,
                       const struct ttm_report_process *process);

/*
 * Appends the line without its indentation, harmless to a terminal. 'is_own' is the above of the
 * process that names the file. Appends nothing and returns false if there is no such file, line
 * or text in it, if the file was changed after the recording, or if it is left out.
 */
bool ttm_source_line(struct ttm_source_lines *sources, bool is_own, const char *file, uint32_t line,
                     struct ttm_text *out);

#endif /* TTM_CLI_SOURCE_LINE_H */
