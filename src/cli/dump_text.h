/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_text - everything that is allocated, for people: what 'tt-mem dump'
 * prints, and 'tt-mem serve' when a client of the original protocol asks.
 */
#ifndef TTM_CLI_DUMP_TEXT_H
#define TTM_CLI_DUMP_TEXT_H

#include <stdbool.h>

#include "base/text.h"
#include "cli/terminal.h"
#include "query/answer.h"
#include "wire/request.h"

struct ttm_native_names;

struct ttm_dump_choice {
    struct ttm_device_filter devices;
    int32_t pid;                    /* 0: all */
    bool is_unfolded;               /* --all */
    bool is_kernels;                /* kernels alone (DUMP_KERNELS) */
    struct ttm_native_names *names; /* may be NULL: native places by module and offset */
};

/* Whether that process is chosen. */
bool ttm_dump_has_process(const struct ttm_dump_choice *choice,
                          const struct ttm_answer_process *process);

/* Returns 0 or -ENOMEM. */
int ttm_dump_text(const struct ttm_answer *answer, const struct ttm_dump_choice *choice,
                  const struct ttm_terminal *terminal, struct ttm_text *out);

#endif /* TTM_CLI_DUMP_TEXT_H */
