/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 'enable' and 'disable': tracking on and off in a process that runs. The switch is
 * a page of that process, so no server is needed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/options.h"
#include "ring/control.h"

#define WAIT_STEPS 100 /* of 10 ms */

static const struct ttm_option options[] = {
    TTM_OPTION_HELP_ROW,
    {0},
};

static const char *root(void)
{
    const char *prefix = getenv("TTMEM_ROOT");

    return prefix ? prefix : "";
}

static int complain(long pid, int r)
{
    if (r == -ESRCH)
        ttm_log("there is no process %ld", pid);
    else if (r == -EACCES || r == -EPERM)
        ttm_log("cannot switch process %ld: it belongs to another user", pid);
    else if (r == -ENOENT)
        ttm_log("process %ld has not loaded libttmem: start it with 'tt-mem run', or with the "
                "environment of 'tt-mem env'",
                pid);
    else
        ttm_log("cannot switch process %ld: %s", pid, strerror(-r));
    return TTM_EXIT_FAILED;
}

/* A process with a helper thread answers at once; one without, with its next allocation. */
static bool wait_for(const struct ttm_control_view *view, enum ttm_control_state state)
{
    const struct timespec step = {.tv_nsec = 10000000};

    for (int i = 0; i < WAIT_STEPS && ttm_control_state(view) != state; i++)
        (void)nanosleep(&step, NULL);
    return ttm_control_state(view) == state;
}

static int switch_process(long pid, bool is_on)
{
    struct ttm_control_view view;

    const int r = ttm_control_open(root(), (pid_t)pid, TTM_CONTROL_SWITCH, &view);
    if (r < 0)
        return complain(pid, r);
    ttm_control_switch(&view, root(), is_on);
    const bool is_done = wait_for(&view, is_on ? TTM_CONTROL_ON : TTM_CONTROL_OFF);
    if (is_done)
        printf("process %ld: tracking is %s\n", pid, is_on ? "on" : "off");
    else if (is_on)
        printf("process %ld: tracking goes on with its next allocation\n", pid);
    else
        ttm_log("process %ld does not answer: tracking goes off when it does", pid);
    ttm_control_close(&view);
    return is_on || is_done ? TTM_EXIT_OK : TTM_EXIT_FAILED;
}

static int run_with(const struct ttm_command *command, int argc, char **argv, bool is_on)
{
    struct ttm_options parsed;
    int id;

    ttm_options_init(&parsed, command, argc, argv);
    while ((id = ttm_options_next(&parsed)) > 0)
        ;
    if (id != TTM_OPTION_END)
        return id == TTM_OPTION_HELP ? TTM_EXIT_OK : TTM_EXIT_USAGE;
    char **pids = ttm_options_rest(&parsed);
    if (!pids[0]) {
        (void)ttm_options_complain(&parsed, "which process?");
        return TTM_EXIT_USAGE;
    }
    int status = TTM_EXIT_OK;
    for (size_t i = 0; pids[i] && status != TTM_EXIT_USAGE; i++) {
        char *end;
        const long pid = strtol(pids[i], &end, 10);
        if (pid <= 0 || *end != '\0' || pid > INT32_MAX) {
            (void)ttm_options_complain(&parsed, "'%s' is not a process id", pids[i]);
            status = TTM_EXIT_USAGE;
        } else if (switch_process(pid, is_on) != TTM_EXIT_OK) {
            status = TTM_EXIT_FAILED;
        }
    }
    return status;
}

static int run_enable(int argc, char **argv)
{
    return run_with(&ttm_command_enable, argc, argv, true);
}

static int run_disable(int argc, char **argv)
{
    return run_with(&ttm_command_disable, argc, argv, false);
}

const struct ttm_command ttm_command_enable = {
    .name = "enable",
    .synopsis = "PID…",
    .summary = "Switch tracking on in a process that runs with libttmem.",
    .options = options,
    .run = run_enable,
    .takes_operands = true,
};

const struct ttm_command ttm_command_disable = {
    .name = "disable",
    .synopsis = "PID…",
    .summary = "Switch tracking off in a process, until it is switched on again.",
    .options = options,
    .run = run_disable,
    .takes_operands = true,
};
