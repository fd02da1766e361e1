/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look - a command that looks at the machine once and prints what it sees: devices, ps.
 */
#ifndef TTM_CLI_LOOK_H
#define TTM_CLI_LOOK_H

#include <stdbool.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/machine.h"
#include "cli/terminal.h"

/* Puts all of it: text for that terminal, or where that is NULL JSON. Returns 0 or a negative errno. */
typedef int (*ttm_look_fn)(const struct ttm_machine *machine, const struct ttm_terminal *terminal,
                           struct ttm_text *out);

/* Takes --json and --socket. Returns what to exit with. */
int ttm_look_run(const struct ttm_command *command, int argc, char **argv, ttm_look_fn put);

#endif /* TTM_CLI_LOOK_H */
