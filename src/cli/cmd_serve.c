/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon. Its loop never writes to stdout: what a client of the original
 * protocol wants printed there is asked for and printed by a thread of its own,
 * which may wait for its reader as long as it likes.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/debug_log_file.h"
#include "cli/dump_text.h"
#include "cli/options.h"
#include "cli/record_file.h"
#include "cli/terminal.h"
#include "model/board.h"
#include "query/answer.h"
#include "query/locate.h"
#include "server/notify.h"
#include "server/server.h"
#include "telemetry/cards.h"

#define LEGACY_SOCKET "/tmp/tt_allocation_server.sock"

enum { OPTION_LEGACY = 256, OPTION_NO_LEGACY, OPTION_BOARD, OPTION_RECORD };

static const struct ttm_option options[] = {
    {.id = 's', .name = "socket", .arg = "PATH", .help = "listen there"},
    {.id = OPTION_LEGACY,
     .name = "legacy-socket",
     .arg = "PATH",
     .help = "where the original protocol is spoken"},
    {.id = OPTION_NO_LEGACY, .name = "no-legacy", .help = "without the original protocol"},
    {.id = OPTION_BOARD,
     .name = "board",
     .arg = "[ID=]BOARD",
     .help = "what device ID is: n150, n300, p150a ..."},
    {.id = OPTION_RECORD,
     .name = "record",
     .arg = "DIR",
     .help = "record everything, in files there that rotate"},
    TTM_OPTION_HELP_ROW,
    {0},
};

#define BOARDS_MAX 64
#define CARDS_MAX 256

struct serve {
    char socket_path[TTM_SOCKET_PATH_SIZE];
    const char *legacy_path;
    bool is_legacy_chosen;
    bool is_public;
    char subuid_path[PATH_MAX];
    struct {
        uint32_t device;
        const char *board;
    } boards[BOARDS_MAX];
    size_t board_count;
    const char *record_folder; /* NULL: nothing is recorded */
    char spool[64]; /* of recordings that the debug log alone is made from, "" for none */
    struct ttm_recorder *recorder;
    struct ttm_debug_log_file *debug_log;
    int print_pipe[2];
};

/* What goes through the pipe to the printing thread. */
struct wish {
    uint32_t what; /* enum ttm_print */
    uint32_t ticket;
};

static void wish_print(void *context, enum ttm_print what, uint32_t ticket)
{
    const struct serve *serve = context;
    const struct wish wish = {.what = what, .ticket = ticket};

    /* When the pipe is full the ticket runs out by itself. */
    (void)!write(serve->print_pipe[1], &wish, sizeof(wish));
}

/* Without stdio: exit() would wait for a lock that is held by a print nobody reads. */
static int write_out(const struct ttm_text *text)
{
    size_t at = 0;

    while (at < text->length) {
        const ssize_t n = write(STDOUT_FILENO, text->data + at, text->length - at);
        if (n < 0 && errno != EINTR)
            return -errno;
        at += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static void print_lives(const struct serve *serve, const struct wish *wish)
{
    const struct ttm_terminal terminal = ttm_terminal_of(STDOUT_FILENO);
    /* Without names: a file that shrinks while it is read would end the server. */
    const struct ttm_dump_choice choice = {
        .devices.is_all = true,
        .is_unfolded = wish->what == TTM_PRINT_KERNELS,
        .is_kernels = wish->what == TTM_PRINT_KERNELS,
    };
    uint8_t request[TTM_NUMBER_REQUEST_SIZE];
    struct ttm_connection conn;
    struct ttm_answer answer;
    struct ttm_text out;

    ttm_answer_init(&answer);
    ttm_text_init(&out);
    ttm_number_request_encode(wish->ticket, request);
    int r = ttm_connection_open(&conn, serve->socket_path);
    if (r == 0)
        r = ttm_connection_send(&conn, TTM_FRAME_GET_LIVES, request, sizeof(request));
    if (r == 0)
        r = ttm_answer_receive(&conn, 10000, &answer);
    if (r == 0)
        r = ttm_dump_text(&answer, &choice, &terminal, &out);
    if (r == 0)
        r = write_out(&out);
    if (r < 0)
        ttm_log("cannot print what a client asked for: %s",
                r == -EREMOTEIO ? conn.why : strerror(-r));
    ttm_text_done(&out);
    ttm_answer_done(&answer);
    ttm_connection_close(&conn);
}

static void *print_wishes(void *arg)
{
    const struct serve *serve = arg;
    struct wish wish;

    while (read(serve->print_pipe[0], &wish, sizeof(wish)) == sizeof(wish))
        print_lives(serve, &wish);
    return NULL;
}

static int parse_board(struct serve *serve, const struct ttm_options *parsed)
{
    const char *equals = strchr(parsed->value, '=');
    const char *name = equals ? equals + 1 : parsed->value;
    char *end = NULL;
    const unsigned long device = equals ? strtoul(parsed->value, &end, 10) : 0;

    if (equals && (equals == parsed->value || end != equals || device >= TTM_DEVICE_COUNT))
        return ttm_options_complain(parsed, "'%s' does not begin with a device id", parsed->value);
    if (!ttm_board_find(name))
        return ttm_options_complain(parsed, "'%s' is not a board that is known", name);
    if (serve->board_count == BOARDS_MAX)
        return ttm_options_complain(parsed, "more than %d boards", BOARDS_MAX);
    serve->boards[serve->board_count].device = (uint32_t)device;
    serve->boards[serve->board_count++].board = name;
    return 0;
}

static int parse(struct serve *serve, int argc, char **argv)
{
    struct ttm_options parsed;
    bool has_no_legacy = false;
    int id, r = 0;

    ttm_options_init(&parsed, &ttm_command_serve, argc, argv);
    while (r == 0 && (id = ttm_options_next(&parsed)) > 0) {
        switch (id) {
        case 's':
            if (strlen(parsed.value) >= sizeof(serve->socket_path))
                r = ttm_options_complain(&parsed, "a socket path has at most 107 bytes");
            else
                memcpy(serve->socket_path, parsed.value, strlen(parsed.value) + 1);
            break;
        case OPTION_LEGACY:
            serve->legacy_path = parsed.value;
            serve->is_legacy_chosen = true;
            break;
        case OPTION_NO_LEGACY:
            has_no_legacy = true;
            break;
        case OPTION_RECORD:
            serve->record_folder = parsed.value;
            break;
        case OPTION_BOARD:
            r = parse_board(serve, &parsed);
            break;
        }
    }
    if (r == 0 && id == TTM_OPTION_END && has_no_legacy) {
        if (serve->is_legacy_chosen)
            return ttm_options_complain(&parsed,
                                        "--legacy-socket and --no-legacy exclude each other");
        serve->legacy_path = NULL;
    }
    return r < 0 ? r : id;
}

/* ", 5 allocations" */
static void put_count(struct ttm_text *out, uint64_t count, const char *one, const char *several)
{
    char number[TTM_NUMBER_SIZE];

    ttm_text_format(out, "%s%s %s", out->length > 0 ? ", " : "", ttm_format_count(count, number),
                    count == 1 ? one : several);
}

static void say_goodbye(struct ttm_server *server)
{
    struct ttm_status status;
    char uptime[TTM_NUMBER_SIZE];
    struct ttm_text counts;

    ttm_server_status(server, &status);
    ttm_text_init(&counts);
    put_count(&counts, status.counter[TTM_COUNTER_EVENTS], "message", "messages");
    put_count(&counts, status.counter[TTM_COUNTER_BIRTHS], "allocation", "allocations");
    put_count(&counts, status.counter[TTM_COUNTER_ENDS], "free", "frees");
    put_count(&counts, status.counter[TTM_COUNTER_LIVES], "still live", "still live");
    put_count(&counts,
              status.counter[TTM_COUNTER_PROCESSES] + status.counter[TTM_COUNTER_PROCESSES_ENDED],
              "process reported", "processes reported");
    ttm_log("stopped after %s: %s",
            ttm_format_duration(status.counter[TTM_COUNTER_UPTIME_NS], uptime),
            ttm_text_string(&counts));
    ttm_text_done(&counts);
}

/* What the driver says of this machine's cards, then what the user says, who knows better. */
static void set_boards(const struct serve *serve, struct ttm_server *server)
{
    const char *root = getenv("TTMEM_ROOT");
    struct ttm_card cards[CARDS_MAX];
    const size_t count = ttm_cards_read(root ? root : "", cards, CARDS_MAX);

    for (size_t i = 0; i < count; i++)
        (void)ttm_server_set_board(server, (uint32_t)i, cards[i].board);
    for (size_t i = 0; i < serve->board_count; i++)
        (void)ttm_server_set_board(server, serve->boards[i].device, serve->boards[i].board);
}

static int serve_until_stopped(struct serve *serve, struct ttm_server *server)
{
    pthread_t printer;
    int r;

    set_boards(serve, server);
    r = pthread_create(&printer, NULL, print_wishes, serve);
    if (r != 0) {
        ttm_log("cannot start: %s", strerror(r));
        return TTM_EXIT_FAILED;
    }
    (void)pthread_detach(printer); /* it may hang on stdout; the end of the process ends it */
    ttm_log("server %s listens on %s%s%s", TTM_VERSION, serve->socket_path,
            ttm_server_has_legacy(server) ? " and " : "",
            ttm_server_has_legacy(server) ? serve->legacy_path : "");
    ttm_notify("READY=1");
    r = ttm_server_run(server);
    ttm_notify("STOPPING=1");
    if (r < 0)
        ttm_log("the server stopped: %s", strerror(-r));
    say_goodbye(server);
    return r < 0 ? TTM_EXIT_FAILED : TTM_EXIT_OK;
}

/* ---- what is recorded ---- */

/*
 * The debug log is made from recordings. It is this process's environment that asks for it and
 * names the file: what a tracked program says in its own is never a place for us to write.
 */
static void open_debug_log(struct serve *serve)
{
    const char *path = ttm_debug_log_wish();

    serve->debug_log = path ? ttm_debug_log_file_open(path) : NULL;
    if (!serve->debug_log || serve->record_folder)
        return;
    (void)snprintf(serve->spool, sizeof(serve->spool), "/tmp/tt-mem-serve-XXXXXX");
    if (mkdtemp(serve->spool))
        return;
    ttm_log("cannot write the debug log '%s': %s; going on without it", path, strerror(errno));
    serve->spool[0] = '\0';
    ttm_debug_log_file_close(serve->debug_log);
    serve->debug_log = NULL;
}

/* Returns 0; -1 when a recording was asked for and cannot be had, which was said. */
static int open_recording(struct serve *serve)
{
    open_debug_log(serve);
    const bool is_spool = serve->spool[0] != '\0';
    const char *folder = is_spool ? serve->spool : serve->record_folder;
    if (folder)
        serve->recorder = ttm_record_folder_open(folder);
    if (serve->recorder && serve->debug_log)
        (void)ttm_debug_log_file_follow_folder(serve->debug_log, folder, is_spool);
    return serve->record_folder && !serve->recorder ? -1 : 0;
}

static void close_recording(struct serve *serve)
{
    uint64_t bytes;
    char *path;

    (void)ttm_record_file_close(serve->recorder, &path, &bytes); /* it has been said */
    ttm_debug_log_file_close(serve->debug_log);
    if (serve->spool[0] != '\0') {
        if (path)
            (void)unlink(path);
        (void)rmdir(serve->spool);
    }
    free(path);
}

static int run(int argc, char **argv)
{
    struct serve serve = {.legacy_path = LEGACY_SOCKET};
    struct ttm_server *server = NULL;
    char why[TTM_LISTENER_WHY_SIZE];

    if (ttm_locate_default(serve.socket_path, &serve.is_public) < 0) {
        ttm_log("cannot listen: the socket's path is longer than 107 bytes");
        return TTM_EXIT_FAILED;
    }
    const int id = parse(&serve, argc, argv);
    if (id != TTM_OPTION_END)
        return id == TTM_OPTION_HELP ? TTM_EXIT_OK : TTM_EXIT_USAGE;

    (void)signal(SIGPIPE, SIG_IGN); /* whoever reads our stdout may leave */
    if (pipe2(serve.print_pipe, O_CLOEXEC) < 0 ||
        fcntl(serve.print_pipe[1], F_SETFL, O_NONBLOCK) < 0) {
        ttm_log("cannot start: %s", strerror(errno));
        return TTM_EXIT_FAILED;
    }
    const char *root = getenv("TTMEM_ROOT");
    (void)snprintf(serve.subuid_path, sizeof(serve.subuid_path), "%s/etc/subuid", root ? root : "");
    const struct ttm_server_options server_options = {
        .subuid_path = serve.is_public ? serve.subuid_path : NULL,
        .socket_path = serve.socket_path,
        .legacy_path = serve.legacy_path,
        .is_legacy_optional = !serve.is_legacy_chosen,
        .is_public = serve.is_public,
        .is_followed = true,
        .takes_signals = true,
        .print = wish_print,
        .print_context = &serve,
    };
    (void)ttm_log_start(STDERR_FILENO);
    int status = TTM_EXIT_FAILED;
    if (open_recording(&serve) == 0) {
        if (ttm_server_new(&server_options, &server, why) < 0) {
            ttm_log("%s", why);
        } else {
            ttm_server_set_recorder(server, serve.recorder);
            status = serve_until_stopped(&serve, server);
            ttm_server_set_recorder(server, NULL);
        }
    }
    ttm_server_free(server);
    close_recording(&serve);
    ttm_log_stop(1000);
    return status;
}

const struct ttm_command ttm_command_serve = {
    .name = "serve",
    .synopsis = "[--socket PATH] [--legacy-socket PATH | --no-legacy]\n"
                "                    [--board [ID=]BOARD] [--record DIR]",
    .summary = "The daemon that holds the truth for every process and device.",
    .details = "Runs in the foreground until SIGINT, SIGTERM, SIGHUP; tells systemd when ready.\n"
               "Root's server is the machine's: everybody may report to it and see totals;\n"
               "single allocations are shown to their owner and to root alone. Any other\n"
               "user's server is that user's own.",
    .options = options,
    .run = run,
};
