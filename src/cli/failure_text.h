/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failure_text - an allocation that could not be made, and who holds the memory, as
 * lines for people. Made of plain data.
 */
#ifndef TTM_CLI_FAILURE_TEXT_H
#define TTM_CLI_FAILURE_TEXT_H

#include "base/text.h"
#include "model/departed.h"

struct ttm_failure_row;
struct ttm_origin;

/*
 * 'holders' has all that is live now, in any region and on any device; 'origin' (may
 * be NULL) is where the allocation was to be made. A few lines, each with its newline.
 */
void ttm_failure_text(const struct ttm_failure_row *failure, const struct ttm_origin *origin,
                      const struct ttm_departed *holders, const struct ttm_device_sets *sets,
                      struct ttm_text *out);

/* Where something was allocated, in one line, with a space behind it; nothing for NULL. */
void ttm_origin_words(struct ttm_text *out, const struct ttm_origin *origin);

#endif /* TTM_CLI_FAILURE_TEXT_H */
