/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of a tracked program, for a shell to take over.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "cli/tracked_env.h"

static const struct ttm_option options[] = {
    TTM_OPTION_HELP_ROW,
    {0},
};

static int print_environment(const char *hook)
{
    struct ttm_text preload, asan, out;

    ttm_text_init(&preload);
    ttm_text_init(&asan);
    ttm_text_init(&out);
    ttm_preload_append(&preload, hook, getenv("LD_PRELOAD"));
    ttm_text_append(&out, "export LD_PRELOAD=");
    ttm_shell_word_append(&out, ttm_text_string(&preload));
    ttm_text_append(&out, " ASAN_OPTIONS=");
    ttm_asan_options_append(&asan, getenv("ASAN_OPTIONS"));
    ttm_shell_word_append(&out, ttm_text_string(&asan));
    ttm_text_append(&out, " TT_ALLOC_TRACKING_ENABLED=1\n");
    const bool has_failed = ttm_text_failed(&preload) || ttm_text_failed(&asan);
    const int r = has_failed ? -ENOMEM : ttm_terminal_print(&out);
    ttm_text_done(&preload);
    ttm_text_done(&asan);
    ttm_text_done(&out);
    return r < 0 ? ttm_ask_unwritten(r) : TTM_EXIT_OK;
}

static int run(int argc, char **argv)
{
    struct ttm_options parsed;
    char hook[PATH_MAX];

    ttm_options_init(&parsed, &ttm_command_env, argc, argv);
    const int id = ttm_options_next(&parsed);
    if (id != TTM_OPTION_END)
        return id == TTM_OPTION_HELP ? TTM_EXIT_OK : TTM_EXIT_USAGE;
    if (ttm_hook_say_missing(ttm_hook_find(hook), hook) < 0)
        return TTM_EXIT_FAILED;
    return print_environment(hook);
}

const struct ttm_command ttm_command_env = {
    .name = "env",
    .synopsis = "",
    .summary = "The environment in which programs are tracked, for a shell to take.",
    .details = "eval \"$(tt-mem env)\" makes every program that this shell starts from here on\n"
               "report to the server that runs, or to the next that is started. Needs no server\n"
               "itself.",
    .options = options,
    .run = run,
};
