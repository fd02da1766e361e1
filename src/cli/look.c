/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/look.h"

#include <unistd.h>

#include "cli/ask.h"
#include "cli/options.h"

static int print(const struct ttm_machine *machine, bool is_json, ttm_look_fn put)
{
    const struct ttm_terminal terminal = ttm_terminal_of(STDOUT_FILENO);
    struct ttm_text whole, out;
    int r;

    ttm_text_init(&whole);
    ttm_text_init(&out);
    if (is_json) {
        r = put(machine, NULL, &out);
    } else {
        r = put(machine, &terminal, &whole);
        ttm_terminal_fit(&terminal, &whole, &out);
        out.failed |= whole.failed;
    }
    if (r == 0)
        r = ttm_terminal_print(&out);
    ttm_text_done(&whole);
    ttm_text_done(&out);
    return r < 0 ? ttm_ask_unwritten(r) : TTM_EXIT_OK;
}

int ttm_look_run(const struct ttm_command *command, int argc, char **argv, ttm_look_fn put)
{
    struct ttm_options parsed;
    struct ttm_machine machine;
    const char *socket_path = NULL;
    bool is_json = false;
    int id;

    ttm_options_init(&parsed, command, argc, argv);
    while ((id = ttm_options_next(&parsed)) > 0) {
        if (id == 'j')
            is_json = true;
        else if (id == 's')
            socket_path = parsed.value;
    }
    if (id != TTM_OPTION_END)
        return id == TTM_OPTION_HELP ? TTM_EXIT_OK : TTM_EXIT_USAGE;
    int status = ttm_machine_read(ttm_machine_root(), socket_path, &machine);
    if (status == TTM_EXIT_OK)
        status = print(&machine, is_json, put);
    ttm_machine_done(&machine);
    return status;
}
