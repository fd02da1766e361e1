/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime - adds to a server's answer what TT-Metal alone counts.
 *
 * Commands do this, and not the server: the runtime's files can be read by their
 * owner and root alone, which a server may not be; whose chip a file is about is told
 * by /sys; and it has to work where there is no server at all.
 */
#ifndef TTM_CLI_RUNTIME_H
#define TTM_CLI_RUNTIME_H

#include "cli/machine.h"

/* How such numbers are explained wherever they are shown. */
#define TTM_RUNTIME_HINT                                                                           \
    "runtime: by TT-Metal's own count, of one thread; tt-mem run counts all of it\n"

/* What stays between two looks; zero to begin with. */
struct ttm_runtime {
    struct ttm_machine machine;
};

void ttm_runtime_done(struct ttm_runtime *runtime);

/*
 * Looks at the runtime's counts and adds them to 'answer' by ttm_runtime_merge(). Other
 * servers are asked only when there is a process that this answer does not know.
 *
 * Returns 0 or a negative errno; then some are missing.
 */
int ttm_runtime_add(struct ttm_runtime *runtime, struct ttm_answer *answer);

/*
 * The same where no server has answered: makes the answer of the moment. Returns as
 * ttm_runtime_add(); release the answer in any case.
 */
int ttm_runtime_alone(struct ttm_runtime *runtime, struct ttm_answer *ret);

/* Whether an answer was made by ttm_runtime_alone(): it has the uptime of no server. */
bool ttm_runtime_is_alone(const struct ttm_answer *answer);

/*
 * Makes a process with the source TTM_SOURCE_RUNTIME for each that lives, that the
 * runtime counts and that neither this answer nor a server of 'machine' tracks, and
 * adds a device for each that the answer lacks. The row of a process in which tracking
 * is off is taken over. A process's totals have bytes alone: neither count nor
 * footprint is known, and 'has_lives' is false. The totals of devices stay what the
 * server tracks. 'machine' is joined; its answers need not be this one.
 *
 * Returns 0 or -ENOMEM; then some are missing.
 */
int ttm_runtime_merge(const struct ttm_machine *machine, struct ttm_answer *answer);

/* Adds a device that the answer lacks, with nothing allocated on it. Returns 0 or -ENOMEM. */
int ttm_runtime_add_device(struct ttm_answer *answer, const struct ttm_machine_device *device);

/* Whether that region is one of those that the runtime counts. */
bool ttm_runtime_counts(unsigned region);

/* What the runtime alone counts on that device, of all such processes in the answer. */
uint64_t ttm_runtime_bytes(const struct ttm_answer *answer, unsigned device_id, unsigned region);

/* As ttm_device_used(), for a process of any source. */
uint64_t ttm_runtime_used(const struct ttm_answer_process *process,
                          const struct ttm_device_totals *totals, unsigned region);

/* Whether the answer has any such process. */
bool ttm_runtime_has_any(const struct ttm_answer *answer);

static inline bool ttm_runtime_is_source(const struct ttm_answer_process *process)
{
    return process->row.source == TTM_SOURCE_RUNTIME;
}

#endif /* TTM_CLI_RUNTIME_H */
