/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/native_names.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "cli/top_feed.h"
#include "dashboard/draw.h"
#include "dashboard/screen.h"
#include "dashboard/settings.h"
#include "dashboard/view.h"

#define SENSORS_MS 1000       /* nobody needs a temperature more often */
#define FIRST_WAIT_MS 200     /* so that the first picture has sensors, if chips are not slow */
#define SNAPSHOT_WAIT_MS 2000 /* for servers and chips that do not answer */

enum { OPTION_VIEW = 256, OPTION_SNAPSHOT };

static const struct ttm_option options[] = {
    TTM_OPTION_DEVICE,
    {.id = 'r', .name = "refresh", .arg = "MS", .help = "milliseconds between two looks (1000)"},
    {.id = OPTION_VIEW,
     .name = "view",
     .arg = "N",
     .help = "begin with 1 devices, 2 charts, 3 origins",
     .choices = "1 2 3"},
    {.id = OPTION_SNAPSHOT, .name = "snapshot", .help = "draw once, as text, and end"},
    TTM_OPTION_SOCKET,
    TTM_OPTION_HELP_ROW,
    {0},
};

struct top {
    struct ttm_device_filter devices;
    uint32_t refresh_ms;
    bool is_snapshot;
    bool has_page; /* it was asked for, and is not what was looked at last */
    const char *socket_path;
    struct ttm_terminal terminal;
    struct ttm_view_settings saved;
    struct ttm_view view;
    struct ttm_grid grid;
    struct ttm_top_feed feed;
    uint64_t next_ns;     /* when to look again */
    uint64_t take_cpu_ns; /* what taking an answer took so far */
    bool is_looking;      /* servers were asked, and the picture waits for them */
    bool has_keys; /* stdin is a terminal; /dev/null would be ready to be read all the time */
};

/* ---- data ---- */

static const char *name_frame(void *context, int32_t pid, const char *frame, size_t length)
{
    ttm_native_names_choose(context, pid);
    return ttm_native_names_of(context, frame, length);
}

static bool name_place(void *context, int32_t pid, const char *frame, size_t length,
                       struct ttm_text *out)
{
    ttm_native_names_choose(context, pid);
    return ttm_native_names_put(context, frame, length, out);
}

static struct ttm_origins_source source_of(struct top *top)
{
    struct ttm_origins_source source = ttm_top_feed_origins(&top->feed);

    source.place_name = name_place;
    source.place_context = top->view.frame_context;
    return source;
}

static uint64_t cpu_ns(void)
{
    return ttm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Takes what has come from servers. Returns what has changed, of enum ttm_fed. */
static unsigned take(struct top *top)
{
    const uint64_t begin_ns = cpu_ns();
    const unsigned fed = ttm_top_feed_take(&top->feed, ttm_clock_monotonic_ns());

    /* What the view had of the old answer is gone, so it takes the new one also when paused. */
    const struct ttm_origins_source source = source_of(top);
    if (fed & TTM_FED_SITES)
        (void)ttm_view_take_lives(&top->view, &source, ttm_clock_monotonic_ns());
    else if (fed & TTM_FED_CLOSER)
        (void)ttm_view_take_closer(&top->view, &source);
    top->take_cpu_ns += cpu_ns() - begin_ns; /* answers come in many pieces */
    if (fed) {
        ttm_top_feed_cost(&top->feed, fed & TTM_FED_SITES ? TTM_FED_SITES : TTM_FED_CLOSER,
                          top->take_cpu_ns);
        top->take_cpu_ns = 0;
    }
    return fed;
}

/* Asks for the lives that the selected origin is looked at closer by. Returns whether it is wanted. */
static bool ask_closer(struct top *top)
{
    struct ttm_closer_look look;

    if (!ttm_view_wants_closer(&top->view, &look))
        return false;
    ttm_top_feed_ask_closer(&top->feed, ttm_clock_monotonic_ns(), &look);
    return true;
}

static int look(struct top *top)
{
    const struct ttm_facts *facts;
    const int r = ttm_top_feed_look(&top->feed, ttm_clock_monotonic_ns(), &facts);

    (void)ttm_view_take(&top->view, facts);
    return r;
}

static void wait_for_servers(struct top *top, int timeout_ms)
{
    struct pollfd fds[TTM_FEED_SERVERS_MAX];
    const size_t count = ttm_top_feed_poll(&top->feed, fds);

    ttm_interrupt_poll(fds, count, timeout_ms);
}

/* ---- one frame ---- */

static void draw(struct top *top)
{
    ttm_grid_clear(&top->grid);
    ttm_draw(&top->view, &top->grid);
}

static bool is_complete(const struct top *top, bool has_origins)
{
    const uint64_t now_ns = ttm_clock_monotonic_ns();

    return ttm_top_feed_is_settled(&top->feed, now_ns) &&
           (has_origins || top->feed.link_count == 0 ||
            top->view.settings.page != TTM_PAGE_ORIGINS);
}

/* Whether a chip is being read for the first time, and not for so long that it is said to hang. */
static bool is_any_read(const struct top *top)
{
    const struct ttm_facts *facts = top->view.facts;

    for (size_t i = 0; facts && i < facts->device_count; i++) {
        if (strcmp(facts->devices[i].place, "reading") == 0)
            return true;
    }
    return false;
}

/* Asks until all have said what they know, within a limit. */
static void gather(struct top *top)
{
    const uint64_t end_ns = ttm_clock_monotonic_ns() + SNAPSHOT_WAIT_MS * TTM_NS_PER_MS;
    bool has_sites = false, has_origins = false;

    (void)ttm_telemetry_wait(top->feed.telemetry, SNAPSHOT_WAIT_MS / 2);
    /* Also for the driver's numbers of devices: servers tell of origins by those of TT-Metal. */
    while (look(top) == 0 && is_any_read(top) && ttm_clock_monotonic_ns() < end_ns &&
           !ttm_interrupt_came())
        ttm_interrupt_poll(NULL, 0, 20);
    ttm_top_feed_ask(&top->feed, ttm_clock_monotonic_ns(), false);
    while (!ttm_interrupt_came() && ttm_clock_monotonic_ns() < end_ns &&
           !is_complete(top, has_origins)) {
        wait_for_servers(top, 50);
        has_sites |= (take(top) & TTM_FED_SITES) != 0;
        if (!has_sites && ttm_view_wants_lives(&top->view))
            ttm_top_feed_ask(&top->feed, ttm_clock_monotonic_ns(), true);
        else if (has_sites && !has_origins)
            has_origins = !ask_closer(top) || ttm_view_is_told(&top->view);
    }
}

static int print_frame(struct top *top)
{
    struct ttm_text text;

    /* What comes next on a terminal, a frame or the prompt, is not to push the first row out. */
    const bool has_next = top->terminal.is_terminal && top->terminal.rows > TTM_DRAW_ROWS_MIN;
    if (ttm_grid_resize(&top->grid, top->terminal.columns, top->terminal.rows - has_next) < 0)
        return -ENOMEM;
    draw(top);
    ttm_text_init(&text);
    ttm_grid_print(&top->grid, top->terminal.has_colour, &text);
    const int r = ttm_terminal_print(&text);
    ttm_text_done(&text);
    return r;
}

static int snapshot(struct top *top)
{
    gather(top);
    const int r = look(top);

    if (r < 0) {
        ttm_log("cannot look at the devices: %s", strerror(-r));
        return TTM_EXIT_FAILED;
    }
    const int written = print_frame(top);
    return written < 0 ? ttm_ask_unwritten(written) : TTM_EXIT_OK;
}

/* A terminal that cannot be drawn on gets one frame below the other. */
static int follow_plain(struct top *top)
{
    int status = TTM_EXIT_OK;

    top->terminal.has_colour = false; /* nor is it known how */
    while (!ttm_interrupt_came() && status == TTM_EXIT_OK) {
        const struct ttm_terminal now = ttm_terminal_of(STDOUT_FILENO); /* another size, perhaps */
        top->terminal.columns = now.columns;
        top->terminal.rows = now.rows;
        status = snapshot(top);
        if (status == TTM_EXIT_OK)
            ttm_interrupt_poll(NULL, 0, top->refresh_ms);
    }
    return status;
}

/* ---- the screen ---- */

static void show(struct top *top)
{
    if (ttm_screen_fit(&top->grid) < 0)
        return; /* without memory the old picture stays */
    draw(top);
    ttm_screen_show(&top->grid);
}

/* Returns whether anything was typed. */
static bool take_keys(struct top *top)
{
    const struct ttm_origins_source source = source_of(top);
    const enum ttm_view_page before = top->view.settings.page;
    bool has_changed = false;
    uint32_t key;

    while (top->has_keys && !top->view.has_ended && (key = ttm_screen_key()) != 0)
        has_changed |= key == TTM_SCREEN_RESIZED || ttm_view_key(&top->view, &source, key);
    if (before != top->view.settings.page && top->view.settings.page == TTM_PAGE_ORIGINS)
        top->next_ns = 0; /* its lives are asked for at once */
    return has_changed;
}

/* Waits for a key, an answer or the time of the next look. Returns false when the terminal is gone. */
static bool wait_for_anything(struct top *top)
{
    struct pollfd fds[TTM_FEED_SERVERS_MAX + 1];
    const size_t count = ttm_top_feed_poll(&top->feed, fds);
    const uint64_t now_ns = ttm_clock_monotonic_ns();
    uint64_t left_ms = top->next_ns > now_ns ? (top->next_ns - now_ns) / TTM_NS_PER_MS + 1 : 0;

    if (top->is_looking && left_ms > 100)
        left_ms = 100; /* servers may be late, and the picture does not wait for them for long */
    fds[count] = (struct pollfd){.fd = top->has_keys ? STDIN_FILENO : -1, .events = POLLIN};
    ttm_interrupt_poll(fds, count + 1, (int64_t)left_ms);
    return (fds[count].revents & (POLLHUP | POLLERR | POLLNVAL)) == 0;
}

static void follow(struct top *top)
{
    const uint64_t refresh_ns = (uint64_t)top->refresh_ms * TTM_NS_PER_MS;
    bool has_changed = true;

    while (!ttm_interrupt_came() && !top->view.has_ended) {
        const uint64_t now_ns = ttm_clock_monotonic_ns();
        if (now_ns >= top->next_ns) {
            top->next_ns += refresh_ns; /* not from now on: that would drift */
            if (top->next_ns <= now_ns)
                top->next_ns = now_ns + refresh_ns;
            ttm_top_feed_ask(&top->feed, now_ns, ttm_view_wants_lives(&top->view));
            top->is_looking = !top->view.is_paused || !top->view.facts;
        }
        if (top->is_looking && ttm_top_feed_is_settled(&top->feed, now_ns)) {
            top->is_looking = false;
            (void)look(top); /* without memory what is known is shown */
            has_changed = true;
        }
        if (has_changed)
            show(top);
        if (!wait_for_anything(top))
            break;
        has_changed = take(top) != 0;
        has_changed |= take_keys(top);
        (void)ask_closer(top);
    }
}

static int watch(struct top *top)
{
    ttm_interrupt_catch();
    top->has_keys = isatty(STDIN_FILENO) == 1;
    (void)ttm_telemetry_wait(top->feed.telemetry, FIRST_WAIT_MS);
    if (ttm_screen_open(top->terminal.has_colour) < 0)
        return follow_plain(top);
    follow(top);
    ttm_screen_close();
    if (!ttm_view_settings_are_equal(&top->saved, &top->view.settings))
        (void)ttm_settings_save(&top->view.settings); /* a home that cannot be written is no news */
    return TTM_EXIT_OK;
}

/* ---- the command ---- */

static int parse(struct top *top, int argc, char **argv)
{
    struct ttm_options parsed;
    uint64_t number = 0;
    int id, r = 0;

    ttm_options_init(&parsed, &ttm_command_top, argc, argv);
    while (r == 0 && (id = ttm_options_next(&parsed)) > 0) {
        switch (id) {
        case 'd':
            r = ttm_options_devices(&parsed, &top->devices);
            break;
        case 'r':
            r = ttm_options_number(&parsed, "a number of milliseconds", 100, 3600000, &number);
            top->refresh_ms = (uint32_t)number;
            break;
        case 's':
            top->socket_path = parsed.value;
            break;
        case OPTION_VIEW:
            r = ttm_options_number(&parsed, "a view", 1, TTM_PAGE_COUNT, &number);
            if (r == 0)
                top->saved.page = (enum ttm_view_page)(number - 1);
            top->has_page = true;
            break;
        case OPTION_SNAPSHOT:
            top->is_snapshot = true;
            break;
        }
    }
    return r < 0 ? r : id;
}

static int run(int argc, char **argv)
{
    static struct top top; /* large, and there is one */

    top = (struct top){.devices.is_all = true, .refresh_ms = 1000};
    ttm_settings_load(&top.saved);
    const int id = parse(&top, argc, argv);
    if (id != TTM_OPTION_END)
        return id == TTM_OPTION_HELP ? TTM_EXIT_OK : TTM_EXIT_USAGE;
    top.terminal = ttm_terminal_of(STDOUT_FILENO);
    const char *term = getenv("TERM");
    top.grid.has_utf8 = top.terminal.has_utf8;
    /* The console of Linux has blocks and no braille. */
    top.grid.has_braille = top.terminal.has_utf8 && !(term && strcmp(term, "linux") == 0);
    /* A script gets the same whatever somebody looked at last. */
    if ((top.is_snapshot || !top.terminal.is_terminal) && !top.has_page)
        top.saved.page = TTM_PAGE_DEVICES;
    ttm_view_init(&top.view, &top.saved);
    top.view.frame_name = name_frame;
    top.view.frame_context = ttm_native_names_new(); /* NULL, without memory, names nothing */
    top.view.history.bridge_s = 2 * top.refresh_ms / 1000 + 2;
    const int r = ttm_top_feed_open(&top.feed, ttm_machine_root(), top.socket_path, &top.devices,
                                    top.is_snapshot               ? 0
                                    : top.refresh_ms > SENSORS_MS ? top.refresh_ms
                                                                  : SENSORS_MS);
    int status = TTM_EXIT_FAILED;
    if (r < 0)
        ttm_log("cannot look at the devices: %s", strerror(-r));
    else if (top.is_snapshot || !top.terminal.is_terminal)
        status = snapshot(&top);
    else
        status = watch(&top);
    ttm_native_names_free(top.view.frame_context);
    ttm_view_done(&top.view);
    ttm_top_feed_close(&top.feed);
    ttm_grid_done(&top.grid);
    return status;
}

const struct ttm_command ttm_command_top = {
    .name = "top",
    .synopsis = "[-d LIST] [-r MS] [--view 1|2|3] [--snapshot]",
    .summary = "The dashboard: devices, charts, and what is allocated from where.",
    .details = "1 devices and processes, 2 charts, 3 origins; ? shows all keys, q ends it.\n"
               "Works without a server or a device, and without a terminal draws once.",
    .options = options,
    .run = run,
};
