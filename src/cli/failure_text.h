/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failure_text - what 'tt-mem run' says at once when an allocation fails.
 *
 * Made of plain data: what failed, how much is free and in what pieces, and who
 * holds the rest.
 */
#ifndef TTM_CLI_FAILURE_TEXT_H
#define TTM_CLI_FAILURE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "cli/caller.h"
#include "cli/native_names.h"
#include "cli/terminal.h"
#include "model/bank_map.h"
#include "model/holders.h"
#include "model/origin_brief.h"

#define TTM_FAILURE_OPERATIONS_MAX 3

/* From where. Words are borrowed; those of an origin that is not known are all "". */
struct ttm_failure_place {
    struct ttm_origin_brief words;
    struct ttm_caller caller;
    const struct ttm_frame_words *frame; /* the innermost, where there is a caller */
};

struct ttm_failure_view {
    const struct ttm_failure_row *failure;
    struct ttm_native_names *names; /* may be NULL */
    int32_t pid;                    /* 0: there is one process only, and no need to name it */
    bool is_late; /* told of later: of those that held it only some are known, or none */
    struct ttm_failure_place where;
    uint32_t bank_count; /* 0: not known */
    uint64_t bank_bytes; /* likewise */
    struct ttm_holders holders;
    struct ttm_failure_place holder_places[TTM_OWNERS_MAX]; /* of holders.largest */
    struct ttm_bank_map map;
    struct ttm_failure_place lowest_places[TTM_BANK_LOWEST_MAX]; /* of map.lowest */
    /* Circular buffers, which take L1 beside its buffers. */
    uint32_t program_count;
    uint64_t cb_bytes;
    const char *operations[TTM_FAILURE_OPERATIONS_MAX]; /* that made them, largest first */
    uint32_t operation_count;
};

void ttm_failure_text(const struct ttm_failure_view *view, const struct ttm_terminal *terminal,
                      struct ttm_text *out);

/*
 * What a clash came of, in words; its 'bank_wanted_bytes' is the address at which the
 * circular buffers would end, so nothing can be said of pieces.
 */
void ttm_failure_clash_text(struct ttm_text *out, uint64_t end, uint64_t wanted_bytes);

/* How many cells a map has on that terminal. */
uint32_t ttm_failure_map_cells(const struct ttm_terminal *terminal);

#endif /* TTM_CLI_FAILURE_TEXT_H */
