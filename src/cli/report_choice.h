/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_choice - which part of a report is to be shown, and of which moment.
 */
#ifndef TTM_CLI_REPORT_CHOICE_H
#define TTM_CLI_REPORT_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/report.h"
#include "base/text.h"
#include "wire/request.h"

enum ttm_report_at { TTM_AT_REMAINING, TTM_AT_PEAK, TTM_AT_MARK };

enum ttm_report_by { TTM_BY_ORIGIN, TTM_BY_STACK, TTM_BY_FREES };

struct ttm_report_choice {
    enum ttm_report_at at;
    enum ttm_report_by by;
    const char *mark; /* of TTM_AT_MARK: the first moment that was asked for */
    struct ttm_device_filter devices;
    int region;                       /* -1: all */
    int32_t pid;                      /* 0: all */
    uint64_t min_bytes;               /* of footprint */
    uint64_t top;                     /* origins at most, 0: as many as fit */
    const char *suppressions;         /* path, NULL: none */
    struct ttm_report_options judged; /* what counts as a leak */
    bool is_unfolded;                 /* long lists whole */
    bool has_full_paths;
    bool reads_any_source; /* also lines of files that are not the caller's */
    bool is_json;
};

/* What the origin held at the moment that is asked for. */
struct ttm_held ttm_report_held(const struct ttm_report_choice *choice,
                                const struct ttm_report_origin *origin);

/* Whether origins are left out. */
bool ttm_report_is_narrowed(const struct ttm_report_choice *choice);

/* " of 1.0 GiB or more in DRAM on device 0": the part that a verdict is about; nothing for all. */
void ttm_report_part(const struct ttm_report_choice *choice, struct ttm_text *out);

bool ttm_report_has_process(const struct ttm_report_choice *choice,
                            const struct ttm_report_process *process);
bool ttm_report_has_origin(const struct ttm_report_choice *choice,
                           const struct ttm_report_origin *origin);

/* The addresses that were used most, in the devices and region chosen. Returns how many. */
uint32_t ttm_report_addresses(const struct ttm_report_choice *choice,
                              const struct ttm_report_process *process,
                              const struct ttm_reused *ret[TTM_REPORT_ADDRESSES]);

/*
 * The origins that are shown, largest first at that moment; suspects before all with
 * 'is_suspects_first'. To be freed; NULL when memory is short. 'top' is not applied.
 */
const struct ttm_report_origin **ttm_report_order(const struct ttm_report_choice *choice,
                                                  const struct ttm_report_process *process,
                                                  bool is_suspects_first, uint32_t *ret_count);

#endif /* TTM_CLI_REPORT_CHOICE_H */
