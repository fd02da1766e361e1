/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_list - the processes that hold a device or memory on one, and how we know.
 */
#ifndef TTM_CLI_PROCESS_LIST_H
#define TTM_CLI_PROCESS_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "cli/machine.h"
#include "cli/process_cache.h"
#include "telemetry/process.h"

enum ttm_reporting {
    TTM_REPORTING_TRACKED,  /* a server knows it */
    TTM_REPORTING_DISABLED, /* libttmem is in it, and is off, or no server knows it */
    TTM_REPORTING_RUNTIME,  /* the runtime counts it, nobody else */
    TTM_REPORTING_NO,       /* it holds a device, and nobody knows what for */
};

/* "tracked", "disabled", "runtime", "no". */
const char *ttm_reporting_name(enum ttm_reporting reporting);

struct ttm_listed_process {
    struct ttm_process process; /* of what server and /proc tell */
    enum ttm_reporting reporting;
    int source;                                 /* enum ttm_source of its memory, or -1 */
    struct ttm_usage regions[TTM_REGION_COUNT]; /* on all devices together */
    unsigned *devices;                          /* ids, sorted */
    size_t device_count;
};

/* Those with the most memory first. */
struct ttm_process_list {
    struct ttm_listed_process *processes;
    size_t count;
    size_t foreign_count; /* at least so many holders are outside our pid namespace */
    size_t hidden_count;  /* processes that could not be looked into, where that was needed */
};

/*
 * Reads /proc below 'root'; who does so again and again gives a cache, else NULL. Without one, and
 * where a server answers, those that could report and hold nothing are listed, too. Returns 0 or
 * -ENOMEM; release it in any case.
 */
int ttm_process_list_read(const char *root, const struct ttm_machine *machine,
                          struct ttm_process_cache *cache, struct ttm_process_list *ret);
void ttm_process_list_done(struct ttm_process_list *list);

/* All regions of it together. */
uint64_t ttm_listed_process_bytes(const struct ttm_listed_process *process);

/* The devices that it holds: "0,2,4-7". */
void ttm_listed_process_devices(const struct ttm_listed_process *process, struct ttm_text *out);

#define TTM_USER_SIZE 256

/* The user's name, or their number where it has none; "" when not even that is known. */
const char *ttm_process_user(const struct ttm_process *process, char ret[TTM_USER_SIZE]);

#endif /* TTM_CLI_PROCESS_LIST_H */
