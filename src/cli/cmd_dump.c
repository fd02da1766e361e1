/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <unistd.h>

#include "cli/ask.h"
#include "cli/command.h"
#include "cli/dump_json.h"
#include "cli/dump_text.h"
#include "cli/native_names.h"
#include "cli/options.h"
#include "cli/runtime.h"
#include "cli/terminal.h"

enum { OPTION_ALL = 256, OPTION_PID };

static const struct ttm_option options[] = {
    {.id = OPTION_ALL, .name = "all", .help = "show long lists whole"},
    TTM_OPTION_DEVICE,
    {.id = OPTION_PID, .name = "pid", .arg = "PID", .help = "only this process"},
    TTM_OPTION_JSON,
    TTM_OPTION_SOCKET,
    TTM_OPTION_HELP_ROW,
    {0},
};

static int ask_lives(struct ttm_connection *conn, struct ttm_answer *answer)
{
    uint8_t request[TTM_NUMBER_REQUEST_SIZE];

    ttm_number_request_encode(0, request);
    const int r = ttm_connection_send(conn, TTM_FRAME_GET_LIVES, request, sizeof(request));
    return r < 0 ? r : ttm_answer_receive(conn, 30000, answer);
}

static int print(const struct ttm_answer *answer, struct ttm_dump_choice *choice, bool is_json)
{
    const struct ttm_terminal terminal = ttm_terminal_of(STDOUT_FILENO);
    struct ttm_text whole, out;

    ttm_text_init(&whole);
    ttm_text_init(&out);
    choice->names = ttm_native_names_new(); /* NULL names nothing */
    int r = is_json ? ttm_dump_json(answer, choice, &out)
                    : ttm_dump_text(answer, choice, &terminal, &whole);
    ttm_native_names_free(choice->names);
    if (r == 0 && !is_json)
        ttm_terminal_fit(&terminal, &whole, &out);
    if (r == 0)
        r = ttm_terminal_print(&out);
    ttm_text_done(&whole);
    ttm_text_done(&out);
    return r < 0 ? ttm_ask_unwritten(r) : TTM_EXIT_OK;
}

/* What the server has; without one, what the runtime counts, if it does. */
static int get_answer(const char *socket_path, struct ttm_runtime *runtime,
                      struct ttm_answer *answer)
{
    struct ttm_connection conn;
    int status = ttm_ask_find(socket_path, &conn);

    if (status == TTM_EXIT_OK) {
        const int r = ask_lives(&conn, answer);
        if (r < 0)
            status = ttm_ask_failed(&conn, r);
        else
            (void)ttm_runtime_add(runtime, answer); /* what cannot be known of it is left out */
    } else if (status == TTM_ASK_NONE) {
        if (!socket_path)
            (void)ttm_runtime_alone(runtime, answer);
        status = answer->process_count > 0 ? TTM_EXIT_OK : ttm_ask_none(socket_path);
    }
    ttm_connection_close(&conn);
    return status;
}

static int run(int argc, char **argv)
{
    struct ttm_dump_choice choice = {.devices.is_all = true};
    struct ttm_options parsed;
    struct ttm_runtime runtime = {0};
    struct ttm_answer answer;
    const char *socket_path = NULL;
    bool is_json = false;
    uint64_t number = 0;
    int id, r = 0;

    ttm_options_init(&parsed, &ttm_command_dump, argc, argv);
    while (r == 0 && (id = ttm_options_next(&parsed)) > 0) {
        if (id == OPTION_ALL)
            choice.is_unfolded = true;
        else if (id == 'd')
            r = ttm_options_devices(&parsed, &choice.devices);
        else if (id == OPTION_PID)
            r = ttm_options_number(&parsed, "a process id", 1, INT32_MAX, &number);
        else if (id == 'j')
            is_json = true;
        else if (id == 's')
            socket_path = parsed.value;
    }
    if (r < 0 || id != TTM_OPTION_END)
        return r == 0 && id == TTM_OPTION_HELP ? TTM_EXIT_OK : TTM_EXIT_USAGE;
    choice.pid = (int32_t)number;

    ttm_answer_init(&answer);
    int status = get_answer(socket_path, &runtime, &answer);
    if (status == TTM_EXIT_OK)
        status = print(&answer, &choice, is_json);
    ttm_answer_done(&answer);
    ttm_runtime_done(&runtime);
    return status;
}

const struct ttm_command ttm_command_dump = {
    .name = "dump",
    .synopsis = "[--all] [-d LIST] [--pid PID] [--json]",
    .summary = "Everything that is allocated now: sizes, ages and who holds it.",
    .details = "Largest first. Processes of other users show their totals only, and so do those\n"
               "that do not report: by TT-Metal's own count ('runtime'), also without a server.",
    .options = options,
    .run = run,
};
