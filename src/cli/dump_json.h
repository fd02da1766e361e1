/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_json - the document "tt-mem/dump/1".
 */
#ifndef TTM_CLI_DUMP_JSON_H
#define TTM_CLI_DUMP_JSON_H

#include "cli/dump_text.h"

/* Returns 0 or -ENOMEM. */
int ttm_dump_json(const struct ttm_answer *answer, const struct ttm_dump_choice *choice,
                  struct ttm_text *out);

#endif /* TTM_CLI_DUMP_JSON_H */
