/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime - adds to a server's answer what TT-Metal alone counts.
 */
#ifndef TTM_CLI_RUNTIME_H
#define TTM_CLI_RUNTIME_H

#include "cli/machine.h"

/*
 * Appends a process with the source TTM_SOURCE_RUNTIME for each that lives, that the
 * runtime counts and that no server of 'machine' tracks, and a device for each that
 * the answer lacks. A process's totals have bytes alone: neither count nor footprint
 * is known, and 'has_lives' is false. The totals of devices stay what the server
 * tracks. 'machine' is joined; its answers need not be this one.
 *
 * Returns 0 or -ENOMEM; then some are missing.
 */
int ttm_runtime_merge(const struct ttm_machine *machine, struct ttm_answer *answer);

#endif /* TTM_CLI_RUNTIME_H */
