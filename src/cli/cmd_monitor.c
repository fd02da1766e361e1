/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/monitor_render.h"
#include "cli/native_names.h"
#include "cli/options.h"
#include "cli/runtime.h"
#include "cli/terminal.h"

enum { OPTION_ONCE = 256, OPTION_CSV, OPTION_LOG };

static const struct ttm_option options[] = {
    {.id = 'a', .name = "all", .help = "all devices (the default)"},
    TTM_OPTION_DEVICE,
    {.id = 'r', .name = "refresh", .arg = "MS", .help = "milliseconds between two looks (1000)"},
    {.id = OPTION_ONCE, .name = "once", .help = "look once and end"},
    TTM_OPTION_JSON,
    {.id = OPTION_CSV, .name = "csv", .help = "write CSV rows"},
    {.id = OPTION_LOG, .name = "log", .arg = "FILE", .help = "also append CSV rows to FILE"},
    TTM_OPTION_SOCKET,
    TTM_OPTION_HELP_ROW,
    {0},
};

enum form { FORM_TEXT, FORM_JSON, FORM_CSV };

struct monitor {
    struct ttm_device_filter devices;
    uint32_t refresh_ms;
    enum form form;
    bool is_once;
    bool has_begun; /* something was shown */
    const char *socket_path;
    const char *log_path;
    int log_fd; /* -1: none */
    struct ttm_terminal terminal;
    struct ttm_runtime runtime;
    struct ttm_connection sites; /* a talk of its own: the other one has what was subscribed to */
    struct ttm_origins origins;
    bool has_origins;                /* of this moment */
    struct ttm_native_names *names;  /* NULL: memory is short, and native places have none */
    struct ttm_telemetry *telemetry; /* NULL: memory is short, and sensors are not known */
};

/* Whether the file begins as ours do; rows below other titles would be of no use. */
static bool has_our_columns(int fd)
{
    char begin[sizeof(TTM_MONITOR_CSV_HEADER)];
    const ssize_t n = pread(fd, begin, sizeof(begin) - 1, 0);

    return n == sizeof(begin) - 1 && memcmp(begin, TTM_MONITOR_CSV_HEADER, (size_t)n) == 0;
}

/* Returns 0, or says why not and returns what to exit with. */
static int open_log(struct monitor *monitor)
{
    static const char header[] = TTM_MONITOR_CSV_HEADER;
    struct stat st;
    const int fd = open(monitor->log_path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

    if (fd < 0 || fstat(fd, &st) < 0) {
        ttm_log("cannot write '%s': %s", monitor->log_path, strerror(errno));
        if (fd >= 0)
            (void)close(fd);
        return TTM_EXIT_FAILED;
    }
    if (st.st_size > 0 && !has_our_columns(fd)) {
        ttm_log("cannot append to '%s': its columns are others", monitor->log_path);
        (void)close(fd);
        return TTM_EXIT_FAILED;
    }
    if (st.st_size == 0)
        (void)!write(fd, header, sizeof(header) - 1); /* the rows will tell what is wrong */
    monitor->log_fd = fd;
    return TTM_EXIT_OK;
}

static void write_log(struct monitor *monitor, const struct ttm_monitor_look *look)
{
    struct ttm_text rows;

    if (monitor->log_fd < 0)
        return;
    ttm_text_init(&rows);
    ttm_monitor_csv(look, &rows);
    errno = 0;
    if (write(monitor->log_fd, ttm_text_string(&rows), rows.length) != (ssize_t)rows.length) {
        ttm_log("cannot write '%s': %s, the log is off", monitor->log_path,
                strerror(errno ? errno : ENOSPC));
        (void)close(monitor->log_fd);
        monitor->log_fd = -1;
    }
    ttm_text_done(&rows);
}

static size_t count_lines(const char *text)
{
    size_t lines = 0;

    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

/* On a terminal each frame is drawn over the last; what does not fit is left out and said so. */
static void put_frame(const struct monitor *monitor, const struct ttm_text *frame,
                      struct ttm_text *out)
{
    const char *line = ttm_text_string(frame);
    size_t row = 0;

    ttm_text_append(out, monitor->has_begun ? "\033[H" : "\033[H\033[2J");
    while (*line) {
        const size_t length = strcspn(line, "\n");
        if (row + 2 >= monitor->terminal.rows && line[length] && line[length + 1]) {
            ttm_text_format(out, "%s %zu more lines: a larger window, or -d\033[K\n",
                            ttm_terminal_ellipsis(&monitor->terminal), count_lines(line));
            break;
        }
        ttm_text_append_bytes(out, line, length);
        ttm_text_append(out, "\033[K\n");
        row++;
        line += length + (line[length] == '\n');
    }
    ttm_text_append(out, "\033[J");
}

static int print(struct monitor *monitor, const struct ttm_monitor_look *look)
{
    struct ttm_text whole, frame, out;
    int r;

    ttm_text_init(&whole);
    ttm_text_init(&frame);
    ttm_text_init(&out);
    switch (monitor->form) {
    case FORM_JSON:
        ttm_monitor_json(look, &out);
        break;
    case FORM_CSV:
        if (!monitor->has_begun)
            ttm_text_append(&out, TTM_MONITOR_CSV_HEADER);
        ttm_monitor_csv(look, &out);
        break;
    case FORM_TEXT:
        monitor->terminal = ttm_terminal_of(STDOUT_FILENO); /* its size may have changed */
        ttm_monitor_text(look, &monitor->terminal, &whole);
        ttm_terminal_fit(&monitor->terminal, &whole, &frame);
        if (monitor->terminal.can_redraw && !monitor->is_once)
            put_frame(monitor, &frame, &out);
        else
            ttm_text_append(&out, ttm_text_string(&frame));
        break;
    }
    write_log(monitor, look);
    r = ttm_terminal_print(&out);
    monitor->has_begun = true;
    ttm_text_done(&whole);
    ttm_text_done(&frame);
    ttm_text_done(&out);
    return r;
}

/* With how the devices fare, and those cards that no program has told of. */
static int show(struct monitor *monitor, struct ttm_answer *answer)
{
    struct ttm_machine *machine = calloc(1, sizeof(*machine)); /* large */

    if (!machine)
        return -ENOMEM;
    if (monitor->telemetry)
        (void)ttm_telemetry_look(monitor->telemetry, &machine->telemetry);
    machine->answers[machine->answer_count++] = *answer; /* borrowed */
    int r = ttm_machine_join(machine);
    for (size_t i = 0; r == 0 && i < machine->device_count; i++) {
        const struct ttm_machine_device *device = &machine->devices[i];
        if (device->metal_id >= 0 && device->metal_id < TTM_DEVICE_COUNT)
            r = ttm_runtime_add_device(answer, device);
    }
    if (r == 0)
        r = print(monitor, &(struct ttm_monitor_look){
                               .answer = answer,
                               .machine = machine,
                               .devices = &monitor->devices,
                               .origins = monitor->has_origins ? &monitor->origins : NULL,
                           });
    machine->answer_count = 0;
    ttm_machine_done(machine);
    free(machine);
    return r;
}

#define ORIGIN_FRAMES 4
#define ORIGINS_WAIT_MS 2000

static bool name_place(void *context, int32_t pid, const char *frame, size_t length,
                       struct ttm_text *out)
{
    ttm_native_names_choose(context, pid);
    return ttm_native_names_put(context, frame, length, out);
}

/* Where it all comes from; a server that cannot tell is asked again at the next look. */
static void look_at_origins(struct monitor *monitor, const struct ttm_connection *conn)
{
    uint8_t request[TTM_NUMBER_REQUEST_SIZE];
    struct ttm_answer answer;

    monitor->has_origins = false;
    if (monitor->form == FORM_CSV)
        return;
    ttm_answer_init(&answer);
    ttm_number_request_encode(ORIGIN_FRAMES, request);
    int r = monitor->sites.fd < 0 ? ttm_connection_open(&monitor->sites, conn->path) : 0;
    if (r == 0)
        r = ttm_connection_send(&monitor->sites, TTM_FRAME_GET_SITES, request, sizeof(request));
    if (r == 0)
        r = ttm_answer_receive(&monitor->sites, ORIGINS_WAIT_MS, &answer);
    const struct ttm_origins_source source = {
        .answers = &answer,
        .answer_count = 1,
        .devices.is_all = true,
        .place_name = name_place,
        .place_context = monitor->names,
    };
    monitor->has_origins = r == 0 && ttm_origins_build(&monitor->origins, &source) == 0;
    if (r < 0) {
        ttm_connection_close(&monitor->sites);
        monitor->sites.fd = -1;
    }
    ttm_answer_done(&answer);
}

/* Beside what the server tracks; what cannot be known of it is left out. */
static int show_with_runtime(struct monitor *monitor, struct ttm_answer *answer)
{
    (void)ttm_runtime_add(&monitor->runtime, answer);
    return show(monitor, answer);
}

/* The next answer. Returns 0, -EINTR when the user has stopped it, or what went wrong. */
static int receive(const struct monitor *monitor, struct ttm_connection *conn,
                   struct ttm_answer *answer)
{
    struct pollfd fd = {.fd = conn->fd, .events = POLLIN};
    int r;

    if (monitor->is_once)
        return ttm_answer_receive(conn, 30000, answer);
    while ((r = ttm_answer_take(conn, answer)) == 0 && !ttm_interrupt_came())
        ttm_interrupt_poll(&fd, 1, -1);
    return r > 0 ? 0 : r < 0 ? r : -EINTR;
}

/* Shows what comes until the server goes, the user stops, or once. Returns -1 when the server went. */
static int follow(struct monitor *monitor, struct ttm_connection *conn)
{
    uint8_t request[TTM_NUMBER_REQUEST_SIZE];
    int r;

    ttm_number_request_encode(monitor->refresh_ms, request);
    r = monitor->is_once
            ? ttm_connection_send(conn, TTM_FRAME_GET_TOTALS, NULL, 0)
            : ttm_connection_send(conn, TTM_FRAME_SUBSCRIBE_TOTALS, request, sizeof(request));
    while (r == 0 && !ttm_interrupt_came()) {
        struct ttm_answer answer;
        ttm_answer_init(&answer);
        r = receive(monitor, conn, &answer);
        if (r == 0)
            look_at_origins(monitor, conn);
        const int shown = r == 0 ? show_with_runtime(monitor, &answer) : 0;
        ttm_answer_done(&answer);
        if (shown < 0)
            return ttm_ask_unwritten(shown);
        if (r == 0 && monitor->is_once)
            break;
    }
    if (ttm_interrupt_came() || r == -EINTR)
        return TTM_EXIT_OK;
    if (r == -EPIPE && !monitor->is_once)
        return -1;
    return r < 0 ? ttm_ask_failed(conn, r) : TTM_EXIT_OK;
}

/* The server may be restarted: look for it again where it was. */
static void await_server(struct ttm_connection *conn)
{
    char path[sizeof(conn->path)];

    memcpy(path, conn->path, sizeof(path));
    ttm_log("the server has gone; waiting for it to come back");
    do {
        ttm_connection_close(conn);
        ttm_interrupt_poll(NULL, 0, 200);
    } while (!ttm_interrupt_came() && ttm_connection_open(conn, path) < 0);
}

static int show_alone(struct monitor *monitor)
{
    struct ttm_answer answer;
    int status = TTM_EXIT_OK, shown = 0;

    (void)ttm_runtime_alone(&monitor->runtime, &answer);
    if (answer.process_count == 0 && !monitor->has_begun)
        status = ttm_ask_none(NULL);
    else
        shown = show(monitor, &answer);
    ttm_answer_done(&answer);
    return shown < 0 ? ttm_ask_unwritten(shown) : status;
}

/*
 * Without a server: shows what the runtime counts, if it does, until there is one. Returns
 * TTM_EXIT_OK with 'conn' open, or what to exit with.
 */
static int watch_alone(struct monitor *monitor, struct ttm_connection *conn)
{
    int status = TTM_ASK_NONE;

    while (status == TTM_ASK_NONE && !ttm_interrupt_came()) {
        const int shown = show_alone(monitor);
        if (shown != TTM_EXIT_OK || monitor->is_once)
            return shown;
        ttm_interrupt_poll(NULL, 0, monitor->refresh_ms);
        status = ttm_ask_find(NULL, conn);
    }
    return status == TTM_ASK_NONE ? TTM_EXIT_OK : status;
}

static int watch(struct monitor *monitor)
{
    struct ttm_connection conn;
    int status = ttm_ask_find(monitor->socket_path, &conn);

    if (status == TTM_ASK_NONE)
        status =
            monitor->socket_path ? ttm_ask_none(monitor->socket_path) : watch_alone(monitor, &conn);
    if (status == TTM_EXIT_OK && conn.fd >= 0)
        status = follow(monitor, &conn);
    while (status < 0 && !ttm_interrupt_came()) {
        await_server(&conn);
        if (!ttm_interrupt_came())
            status = follow(monitor, &conn);
    }
    ttm_connection_close(&conn);
    return status < 0 ? TTM_EXIT_OK : status;
}

/* What sensors tell does not change faster than once a second. */
static void open_telemetry(struct monitor *monitor)
{
    const unsigned interval_ms = monitor->refresh_ms > 1000 ? monitor->refresh_ms : 1000;

    if (ttm_telemetry_new(ttm_machine_root(), monitor->is_once ? 0 : interval_ms,
                          &monitor->telemetry) == 0)
        (void)ttm_telemetry_wait(monitor->telemetry, 1000); /* one that hangs is told as such */
}

static int parse(struct monitor *monitor, int argc, char **argv)
{
    struct ttm_options parsed;
    bool has_json = false, has_csv = false;
    uint64_t number = 0;
    int id, r = 0;

    ttm_options_init(&parsed, &ttm_command_monitor, argc, argv);
    while (r == 0 && (id = ttm_options_next(&parsed)) > 0) {
        switch (id) {
        case 'a':
            monitor->devices.is_all = true;
            break;
        case 'd':
            r = ttm_options_devices(&parsed, &monitor->devices);
            break;
        case 'r':
            r = ttm_options_number(&parsed, "a number of milliseconds", 10, 3600000, &number);
            monitor->refresh_ms = (uint32_t)number;
            break;
        case 'j':
            monitor->form = FORM_JSON;
            has_json = true;
            break;
        case 's':
            monitor->socket_path = parsed.value;
            break;
        case OPTION_ONCE:
            monitor->is_once = true;
            break;
        case OPTION_CSV:
            monitor->form = FORM_CSV;
            has_csv = true;
            break;
        case OPTION_LOG:
            monitor->log_path = parsed.value;
            break;
        }
    }
    if (r == 0 && id == TTM_OPTION_END && has_json && has_csv)
        return ttm_options_complain(&parsed, "--json and --csv exclude each other");
    return r < 0 ? r : id;
}

static int run(int argc, char **argv)
{
    struct monitor monitor = {
        .devices.is_all = true, .refresh_ms = 1000, .log_fd = -1, .sites.fd = -1};

    const int id = parse(&monitor, argc, argv);
    if (id != TTM_OPTION_END)
        return id == TTM_OPTION_HELP ? TTM_EXIT_OK : TTM_EXIT_USAGE;
    if (monitor.log_path && open_log(&monitor) != TTM_EXIT_OK)
        return TTM_EXIT_FAILED;
    ttm_interrupt_catch();
    open_telemetry(&monitor);
    monitor.names = ttm_native_names_new();
    const int status = watch(&monitor);
    ttm_telemetry_free(monitor.telemetry);
    if (monitor.log_fd >= 0)
        (void)close(monitor.log_fd);
    if (monitor.sites.fd >= 0)
        ttm_connection_close(&monitor.sites);
    ttm_origins_done(&monitor.origins);
    ttm_native_names_free(monitor.names);
    ttm_runtime_done(&monitor.runtime);
    return status;
}

const struct ttm_command ttm_command_monitor = {
    .name = "monitor",
    .synopsis = "[-a | -d LIST] [-r MS] [--once] [--json | --csv]\n"
                "                      [--log FILE]",
    .summary = "Device memory per device and region, refreshed.",
    .details = "Bars turn yellow at 75 % and red at 90 % of what the device has. 'Total L1' is\n"
               "what buffers, L1_SMALL, circular buffers and kernels take together. Programs\n"
               "that do not report are shown by TT-Metal's own count ('runtime'), also without\n"
               "a server.",
    .options = options,
    .run = run,
};
