/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demo: an embedded server on private sockets, decoders as processes of
 * their own, and what monitor and dump show of them. Nothing that is printed
 * about them is known beforehand; it is what the server answers.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <fcntl.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/quiet_thread.h"
#include "cli/command.h"
#include "cli/dump_text.h"
#include "cli/monitor_render.h"
#include "cli/native_names.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "demo/decoder.h"
#include "query/answer.h"
#include "server/server.h"

enum { OPTION_FAST = 256 };

/* Set for the processes that act: device, leaky, fast. */
#define ACT_VARIABLE "TTMEM_DEMO_ACT"

static const struct ttm_option options[] = {
    {.id = OPTION_FAST, .name = "fast", .help = "without pauses"},
    TTM_OPTION_HELP_ROW,
    {0},
};

#define DECODERS 2
#define TOKENS 40
#define TOKEN_MS 75
#define FRAME_MS 250
#define FRAME_ROWS 22 /* what drawing over takes; a smaller window sees the last frame only */

struct actor {
    pid_t pid;
    int to;   /* its stdin */
    int from; /* its stdout: a byte after each stage */
};

struct demo {
    char folder[64];
    char socket_path[96];
    struct ttm_server *server;
    pthread_t thread;
    struct actor actors[DECODERS];
    struct ttm_connection conn;
    struct ttm_terminal terminal;
    bool is_fast;
};

static void *run_server(void *arg)
{
    (void)ttm_server_run(arg);
    return NULL;
}

static int start_server(struct demo *demo)
{
    char why[TTM_LISTENER_WHY_SIZE];

    (void)snprintf(demo->folder, sizeof(demo->folder), "/tmp/tt-mem-demo-XXXXXX");
    if (!mkdtemp(demo->folder)) {
        ttm_log("cannot make a folder for the demo: %s", strerror(errno));
        return -errno;
    }
    (void)snprintf(demo->socket_path, sizeof(demo->socket_path), "%s/tt-mem.sock", demo->folder);
    const struct ttm_server_options server_options = {
        .socket_path = demo->socket_path,
    };
    int r = ttm_server_new(&server_options, &demo->server, why);
    if (r < 0) {
        ttm_log("%s", why);
        return r;
    }
    r = ttm_quiet_thread_start(&demo->thread, NULL, run_server, demo->server);
    if (r < 0) {
        ttm_log("cannot start the server: %s", strerror(-r));
        ttm_server_free(demo->server);
        demo->server = NULL;
    }
    return r;
}

static void stop_server(struct demo *demo)
{
    if (demo->server) {
        ttm_server_stop(demo->server);
        (void)pthread_join(demo->thread, NULL);
        ttm_server_free(demo->server);
    }
    (void)rmdir(demo->folder);
}

static int start_actor(struct demo *demo, unsigned number)
{
    extern char **environ;
    struct actor *actor = &demo->actors[number];
    posix_spawn_file_actions_t actions;
    char act[48];
    char *argv[] = {number == 0 ? "decoder-forgetful" : "decoder", "demo", NULL};
    int in[2] = {-1, -1}, out[2] = {-1, -1};

    /* Through the environment, so that the command line is what a decoder's could be. */
    (void)snprintf(act, sizeof(act), "%u %d %d", number, number == 0, demo->is_fast);
    (void)setenv(ACT_VARIABLE, act, 1);
    (void)setenv("TTMEM_SOCKET", demo->socket_path, 1);
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        return -errno;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    const int r = posix_spawn(&actor->pid, "/proc/self/exe", &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(in[0]);
    (void)close(out[1]);
    actor->to = in[1];
    actor->from = out[0];
    return -r;
}

static volatile sig_atomic_t stop_signal; /* 0: none came */

static void take_signal(int number)
{
    stop_signal = number;
}

/* Waits until every decoder has ended its stage, or for 'timeout_ms'. Returns 1 when they have. */
static int await_stage(struct demo *demo, bool *is_done, unsigned timeout_ms)
{
    const uint64_t until_ns = ttm_clock_monotonic_ns() + timeout_ms * TTM_NS_PER_MS;
    int left = 0;

    for (unsigned i = 0; i < DECODERS; i++) {
        char byte;
        while (!is_done[i]) {
            const ssize_t n = read(demo->actors[i].from, &byte, 1);
            if (stop_signal)
                return -EINTR;
            if (n == 1) {
                is_done[i] = true;
            } else if (n == 0) {
                return -ECHILD; /* it died */
            } else if (ttm_clock_monotonic_ns() >= until_ns) {
                break;
            } else {
                const struct timespec pause = {.tv_nsec = 2000000};
                (void)nanosleep(&pause, NULL);
            }
        }
        left += !is_done[i];
    }
    return left == 0;
}

static void give_word(struct demo *demo)
{
    for (unsigned i = 0; i < DECODERS; i++)
        (void)!write(demo->actors[i].to, "\n", 1);
}

static int ask_lives(struct demo *demo, struct ttm_answer *answer)
{
    uint8_t request[TTM_NUMBER_REQUEST_SIZE];

    ttm_answer_init(answer);
    ttm_number_request_encode(0, request);
    const int r = ttm_connection_send(&demo->conn, TTM_FRAME_GET_LIVES, request, sizeof(request));
    return r < 0 ? r : ttm_answer_receive(&demo->conn, 10000, answer);
}

static void put_title(const struct demo *demo, struct ttm_text *out, const char *title)
{
    ttm_text_append(out, "\n");
    ttm_terminal_colour(&demo->terminal, out, TTM_BOLD);
    ttm_text_append(out, title);
    ttm_terminal_colour(&demo->terminal, out, TTM_PLAIN);
    ttm_text_append(out, "\n");
}

static int show_monitor(struct demo *demo, size_t lines_to_go_up, size_t *ret_lines)
{
    const struct ttm_device_filter all = {.is_all = true};
    struct ttm_answer answer;
    const struct ttm_monitor_look look = {.answer = &answer, .devices = &all};
    struct ttm_text whole, frame;

    ttm_answer_init(&answer);
    ttm_text_init(&whole);
    ttm_text_init(&frame);
    int r = ttm_answer_ask(&demo->conn, TTM_FRAME_GET_TOTALS, &answer);
    if (r == 0) {
        if (lines_to_go_up > 0) /* draw over the last frame */
            ttm_text_format(&frame, "\033[%zuA\033[J", lines_to_go_up);
        ttm_monitor_text(&look, &demo->terminal, &whole);
        ttm_terminal_fit(&demo->terminal, &whole, &frame);
        *ret_lines = 0;
        for (size_t i = 0; i < whole.length; i++)
            *ret_lines += whole.data[i] == '\n';
        r = ttm_terminal_print(&frame);
    }
    ttm_text_done(&whole);
    ttm_text_done(&frame);
    ttm_answer_done(&answer);
    return r;
}

/* The first stage: on a terminal the monitor moves, elsewhere it is shown once. */
static int watch_decoding(struct demo *demo, struct ttm_answer *ret_early)
{
    bool is_done[DECODERS] = {false};
    size_t lines = 0;
    bool has_looked = false;
    int r = 0;

    for (int frame = 0; r == 0; frame++) {
        r = await_stage(demo, is_done, demo->is_fast ? 20 : FRAME_MS);
        if (r < 0)
            return r;
        const bool is_last = r == 1;
        if (!has_looked && (is_last || frame == 3)) {
            const int asked = ask_lives(demo, ret_early);
            if (asked < 0)
                return asked;
            has_looked = true;
        }
        const bool has_room = demo->terminal.is_terminal && demo->terminal.rows > FRAME_ROWS;
        if (has_room || is_last) {
            const int shown = show_monitor(demo, has_room ? lines : 0, &lines);
            if (shown < 0)
                return shown;
        }
    }
    return 0;
}

/* A size that grew in number between two looks. */
struct growth {
    const struct ttm_answer_process *process;
    const struct ttm_answer_site *site;
    uint64_t bytes;
    uint64_t before;
    uint64_t after;
};

static uint64_t count_size(const struct ttm_answer *answer, const struct growth *wanted)
{
    uint64_t count = 0;

    for (size_t p = 0; p < answer->process_count; p++) {
        const struct ttm_answer_process *process = &answer->processes[p];
        for (size_t i = 0; i < process->live_count; i++) {
            const struct ttm_answer_site *site = &process->sites[process->lives[i].site];
            count += process->row.pid == wanted->process->row.pid &&
                     process->lives[i].bytes == wanted->bytes &&
                     site->region == wanted->site->region &&
                     site->devices[0] == wanted->site->devices[0];
        }
    }
    return count;
}

/* The size of which most were added, or none (after == before). */
static struct growth find_growth(const struct ttm_answer *early, const struct ttm_answer *late)
{
    struct growth most = {0};

    for (size_t p = 0; p < late->process_count; p++) {
        const struct ttm_answer_process *process = &late->processes[p];
        for (size_t i = 0; i < process->live_count; i++) {
            struct growth found = {
                .process = process,
                .site = &process->sites[process->lives[i].site],
                .bytes = process->lives[i].bytes,
            };
            if (most.process == process && most.bytes == found.bytes && most.site == found.site)
                continue;
            found.before = count_size(early, &found);
            found.after = count_size(late, &found);
            if (found.after > found.before && found.after - found.before > most.after - most.before)
                most = found;
        }
    }
    return most;
}

static void put_growth(struct ttm_text *out, const struct ttm_answer *early,
                       const struct ttm_answer *late)
{
    const struct growth most = find_growth(early, late);
    char size[TTM_NUMBER_SIZE], sum[TTM_NUMBER_SIZE], apart[TTM_NUMBER_SIZE];

    if (!most.process) {
        ttm_text_append(out, "nothing grew between two looks\n");
        return;
    }
    ttm_text_format(out,
                    "pid %d, device %u, %s: buffers of %s grew from %" PRIu64 " to %" PRIu64
                    " in %s,\n%s that were never given back. That is the planted leak: a scratch "
                    "buffer\nwith every token, which nobody frees.\n",
                    most.process->row.pid, most.site->devices[0],
                    ttm_region_name(most.site->region), ttm_format_bytes(most.bytes, size),
                    most.before, most.after,
                    ttm_format_duration(late->moment.time_ns - early->moment.time_ns, apart),
                    ttm_format_bytes(most.bytes * most.after, sum));
}

static int show_remaining(struct demo *demo, const struct ttm_answer *early)
{
    struct ttm_dump_choice choice = {.devices.is_all = true};
    bool is_done[DECODERS] = {false};
    struct ttm_answer late;
    struct ttm_text out;

    give_word(demo);
    int r = await_stage(demo, is_done, 10000);
    if (r <= 0)
        return r < 0 ? r : -ETIMEDOUT;
    ttm_text_init(&out);
    r = ask_lives(demo, &late);
    if (r == 0) {
        put_title(demo, &out, "They gave back what they meant to. What remains (tt-mem dump):");
        choice.names = ttm_native_names_new();
        r = ttm_dump_text(&late, &choice, &demo->terminal, &out);
        ttm_native_names_free(choice.names);
        put_title(demo, &out, "What grew:");
        put_growth(&out, early, &late);
    }
    if (r == 0)
        r = ttm_terminal_print(&out);
    ttm_text_done(&out);
    ttm_answer_done(&late);
    return r;
}

static int show_end(struct demo *demo)
{
    struct ttm_answer answer;
    struct ttm_text out;
    uint64_t lives = 0;

    for (unsigned i = 0; i < DECODERS; i++) {
        (void)close(demo->actors[i].to);
        demo->actors[i].to = -1;
        (void)waitpid(demo->actors[i].pid, NULL, 0);
        demo->actors[i].pid = 0;
    }
    /* The server hears of a process's end from the kernel; a moment may pass until it is asked. */
    for (int i = 0; i < 50; i++) {
        const struct timespec pause = {.tv_nsec = 10000000};
        ttm_answer_init(&answer);
        const int r = ttm_answer_ask(&demo->conn, TTM_FRAME_GET_TOTALS, &answer);
        lives = answer.process_count;
        ttm_answer_done(&answer);
        if (r < 0)
            return r;
        if (lives == 0)
            break;
        (void)nanosleep(&pause, NULL);
    }
    ttm_text_init(&out);
    put_title(demo, &out, "The decoders have ended:");
    ttm_text_append(&out, lives == 0 ? "their memory is gone with them; nothing remains.\n"
                                     : "the server still counts their memory.\n");
    const int r = ttm_terminal_print(&out);
    ttm_text_done(&out);
    return r < 0 ? r : lives == 0 ? 0 : -EBUSY;
}

static int play(struct demo *demo)
{
    struct ttm_answer early;
    int r;

    printf("Two decoders on two simulated n300 chips report to a server of their own.\n\n");
    (void)fflush(stdout);
    for (unsigned i = 0; i < DECODERS; i++) {
        r = start_actor(demo, i);
        if (r < 0)
            return r;
        (void)fcntl(demo->actors[i].from, F_SETFL, O_NONBLOCK);
    }
    r = ttm_connection_open(&demo->conn, demo->socket_path);
    ttm_answer_init(&early);
    if (r == 0)
        r = watch_decoding(demo, &early);
    if (r == 0)
        r = show_remaining(demo, &early);
    ttm_answer_done(&early);
    if (r == 0)
        r = show_end(demo);
    ttm_connection_close(&demo->conn);
    return r;
}

static void end_actors(struct demo *demo)
{
    for (unsigned i = 0; i < DECODERS; i++) {
        struct actor *actor = &demo->actors[i];
        if (actor->pid > 0) {
            (void)kill(actor->pid, SIGTERM);
            (void)waitpid(actor->pid, NULL, 0);
        }
        if (actor->to >= 0)
            (void)close(actor->to);
        if (actor->from >= 0)
            (void)close(actor->from);
    }
}

static int show_demo(bool is_fast)
{
    const struct sigaction action = {.sa_handler = take_signal};
    struct demo demo = {.is_fast = is_fast, .conn.fd = -1};
    int r;

    for (unsigned i = 0; i < DECODERS; i++)
        demo.actors[i] = (struct actor){.to = -1, .from = -1};
    demo.terminal = ttm_terminal_of(STDOUT_FILENO);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    r = start_server(&demo);
    if (r == 0) {
        r = play(&demo);
        if (r < 0 && r != -EPIPE && !stop_signal) /* whoever reads this may have seen enough */
            ttm_log("the demo did not come to its end: %s", strerror(-r));
        end_actors(&demo);
    }
    stop_server(&demo);
    if (stop_signal) { /* all is tidied up: end as anybody would */
        (void)signal(stop_signal, SIG_DFL);
        (void)raise(stop_signal);
    }
    return r < 0 ? TTM_EXIT_FAILED : TTM_EXIT_OK;
}

/* What a decoder is told by the demo that started it. */
static int act(const char *told)
{
    struct ttm_decoder_options decoder = {.tokens = TOKENS, .token_ms = TOKEN_MS};
    char *at;

    decoder.device = (uint16_t)strtol(told, &at, 10);
    decoder.is_leaky = strtol(at, &at, 10) != 0;
    if (strtol(at, &at, 10) != 0)
        decoder.token_ms = 5;
    ttm_decoder_run(&decoder);
    return TTM_EXIT_OK;
}

static int run(int argc, char **argv)
{
    const char *told = getenv(ACT_VARIABLE);
    struct ttm_options parsed;
    bool is_fast = false;
    int id;

    ttm_options_init(&parsed, &ttm_command_demo, argc, argv);
    while ((id = ttm_options_next(&parsed)) > 0) {
        if (id == OPTION_FAST)
            is_fast = true;
    }
    if (id != TTM_OPTION_END)
        return id == TTM_OPTION_HELP ? TTM_EXIT_OK : TTM_EXIT_USAGE;
    return told ? act(told) : show_demo(is_fast);
}

const struct ttm_command ttm_command_demo = {
    .name = "demo",
    .synopsis = "[--fast]",
    .summary = "A simulated workload with a planted leak: no hardware needed.",
    .details = "Two processes act out a decoder on two simulated devices: weights, KV cache,\n"
               "activations, circular buffers, kernels, and one buffer that is forgotten with\n"
               "every token. Shows the monitor while they run and the dump of what remains.",
    .options = options,
    .run = run,
};
