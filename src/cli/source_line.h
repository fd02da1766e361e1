/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_line - a line of somebody's source, if the file is still what was run.
 */
#ifndef TTM_CLI_SOURCE_LINE_H
#define TTM_CLI_SOURCE_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

/*
 * Appends the line without its indentation, harmless to a terminal. Nothing is
 * appended, and false returned, when there is no such file, line or text in it, or the
 * file was changed after 'until_wall_ns'.
 */
bool ttm_source_line(const char *file, uint32_t line, uint64_t until_wall_ns, struct ttm_text *out);

#endif /* TTM_CLI_SOURCE_LINE_H */
