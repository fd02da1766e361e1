/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refreshes - the dashboard refreshed again and again, by a clock that is made up: does it grow?
 *
 *   refreshes [ROUNDS]        5,000; with TTM_LONG=1 in the environment 200,000
 *
 * The server, the feed, the view and the drawing are the real ones; the machine is a folder of
 * files. Meanwhile memory is allocated and freed, processes and a card come and go, pages,
 * sizes and filters change. Fails when the heap is larger in the end than it was after a tenth
 * of the rounds.
 */
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/older_headers.h"
#include "cli/top_feed.h"
#include "client/original_client.h"
#include "dashboard/draw.h"
#include "dashboard/view.h"
#include "server/server.h"

#define CHIPS 4
#define PROCESSES 12
#define LIVES 512
#define STEP_NS (500 * TTM_NS_PER_MS)
#define SLACK_BYTES (256 * 1024) /* arrays that grow by doubling may still do so once */

static char root[] = "/tmp/ttm-refreshes.XXXXXX";

static void must(bool is_so, const char *what)
{
    if (is_so)
        return;
    (void)fprintf(stderr, "refreshes: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- the machine ---- */

/* Writes a file below the root, and makes the folders on the way. */
__attribute__((format(printf, 2, 3))) static void put(const char *text, const char *format, ...)
{
    char path[PATH_MAX], below[PATH_MAX / 2];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(below, sizeof(below), format, arguments);
    va_end(arguments);
    (void)snprintf(path, sizeof(path), "%s%s", root, below);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        (void)mkdir(path, 0700);
        *at = '/';
    }
    FILE *file = fopen(path, "we");
    must(file && fputs(text, file) >= 0 && fclose(file) == 0, "cannot write the machine");
}

static void make_chip(unsigned number)
{
    char path[PATH_MAX], target[64];

    put("500\n", "/sys/class/tenstorrent/tenstorrent!%u/tt_aiclk", number);
    put("n300\n", "/sys/class/tenstorrent/tenstorrent!%u/tt_card_type", number);
    put("0x401e\n", "/sys/devices/0000:0%u:00.0/device", number + 1);
    put("54000\n", "/sys/devices/0000:0%u:00.0/hwmon/hwmon0/temp1_input", number + 1);
    (void)snprintf(path, sizeof(path), "%s/sys/class/tenstorrent/tenstorrent!%u/device", root,
                   number);
    (void)snprintf(target, sizeof(target), "../../../devices/0000:0%u:00.0", number + 1);
    must(symlink(target, path) == 0, "cannot make a chip");
    put("", "/proc/driver/tenstorrent/%u/pids", number);
}

static void make_process(int pid)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "%d (python) S 1 1 1 0 -1 0 0 0 0 0 8 3 0 0 20 0 9 0 %d 9\n",
                   pid, 800 + pid);
    put(text, "/proc/%d/stat", pid);
    put("python3\0serve.py", "/proc/%d/cmdline", pid);
    put("Name:\tpython3\nUid:\t0\t0\t0\t0\n", "/proc/%d/status", pid);
    put("", "/proc/%d/maps", pid);
}

static void make_machine(void)
{
    must(mkdtemp(root) != NULL, "cannot make a folder");
    put("2.10.0\n", "/sys/module/tenstorrent/version");
    for (unsigned i = 0; i < CHIPS; i++)
        make_chip(i);
    for (int i = 0; i < PROCESSES; i++)
        make_process(4000 + i);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

/* Who holds a card changes with each round, and now and then a card goes and comes back. */
static void change_machine(uint64_t round)
{
    char text[32], from[PATH_MAX], to[PATH_MAX];

    (void)snprintf(text, sizeof(text), "%d\n%d\n", 4000 + (int)(round % PROCESSES),
                   4000 + (int)(round / 3 % PROCESSES));
    put(text, "/proc/driver/tenstorrent/%u/pids", (unsigned)(round % CHIPS));
    if (round % 50 != 0)
        return;
    (void)snprintf(from, sizeof(from), "%s/sys/class/tenstorrent/tenstorrent!0", root);
    (void)snprintf(to, sizeof(to), "%s/sys/class/gone", root);
    must(round / 50 % 2 ? rename(from, to) == 0 : round == 0 || rename(to, from) == 0,
         "cannot move a card");
}

/* ---- the server, and who reports to it ---- */

struct world {
    struct ttm_server *server;
    pthread_t thread;
    char socket_path[PATH_MAX], legacy_path[PATH_MAX];
    struct ttm_original_client client;
};

static void *serve(void *argument)
{
    struct world *world = argument;

    must(ttm_server_run(world->server) == 0, "the server failed");
    return NULL;
}

static void open_world(struct world *world)
{
    char why[TTM_LISTENER_WHY_SIZE] = "";
    const struct ttm_server_options options = {.socket_path = world->socket_path,
                                               .legacy_path = world->legacy_path};

    (void)snprintf(world->socket_path, sizeof(world->socket_path), "%s/s", root);
    (void)snprintf(world->legacy_path, sizeof(world->legacy_path), "%s/o", root);
    must(ttm_server_new(&options, &world->server, why) == 0, why);
    must(pthread_create(&world->thread, NULL, serve, world) == 0, "no thread");
    must(ttm_original_client_open(&world->client, world->legacy_path, TTM_ORIGINAL_V112) == 0,
         "cannot connect");
}

static void close_world(struct world *world)
{
    ttm_original_client_close(&world->client);
    ttm_server_stop(world->server);
    (void)pthread_join(world->thread, NULL);
    ttm_server_free(world->server);
    (void)nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void change_memory(struct world *world, uint64_t round)
{
    const int32_t device = (int32_t)(round % 8);

    if (round >= LIVES)
        must(ttm_original_client_free(&world->client, (int32_t)((round - LIVES) % 8),
                                      round - LIVES + 1) == 0,
             "cannot free");
    must(ttm_original_client_alloc(&world->client, device, round % 2 ? 1 : 0, round + 1,
                                   4096 + round % 100 * 64) == 0,
         "cannot allocate");
}

/* ---- the dashboard ---- */

struct dashboard {
    struct ttm_top_feed feed;
    struct ttm_view view;
    struct ttm_grid grid;
    uint64_t now_ns;
    uint64_t lives_taken;
};

/* Until every server has answered; the made-up clock stands meanwhile. */
static void take_answers(struct dashboard *d)
{
    struct pollfd fds[TTM_FEED_SERVERS_MAX];
    bool is_settled;

    do {
        const size_t count = ttm_top_feed_poll(&d->feed, fds);
        (void)poll(fds, count, 1000);
        const unsigned fed = ttm_top_feed_take(&d->feed, d->now_ns);
        const struct ttm_origins_source source = ttm_top_feed_origins(&d->feed);
        if (fed & TTM_FED_SITES)
            must(ttm_view_take_lives(&d->view, &source, d->now_ns) == 0, "no memory");
        else if (fed & TTM_FED_CLOSER)
            must(ttm_view_take_closer(&d->view, &source) == 0, "no memory");
        d->lives_taken += (fed & TTM_FED_CLOSER) != 0;
        struct ttm_closer_look look;
        if (ttm_view_wants_closer(&d->view, &look))
            ttm_top_feed_ask_closer(&d->feed, d->now_ns, &look);
        is_settled = ttm_top_feed_is_settled(&d->feed, d->now_ns);
        for (size_t i = 0; i < d->feed.link_count; i++)
            is_settled &= d->feed.links[i].state == TTM_LINK_READY;
    } while (!is_settled);
}

static void type(struct dashboard *d, uint64_t round)
{
    static const uint32_t keys[] = {'2', '+', '3', TTM_KEY_DOWN,  TTM_KEY_ENTER, TTM_KEY_ESCAPE,
                                    's', '1', 's', TTM_KEY_DOWN,  '/',           'p',
                                    'y', '?', 'x', TTM_KEY_ENTER, TTM_KEY_ESCAPE};
    const struct ttm_origins_source source = ttm_top_feed_origins(&d->feed);

    (void)ttm_view_key(&d->view, &source, keys[round % (sizeof(keys) / sizeof(keys[0]))]);
}

static void refresh(struct dashboard *d, uint64_t round)
{
    static const size_t sizes[][2] = {{80, 24}, {40, 12}, {200, 50}, {120, 40}};
    const size_t *size = sizes[round / 100 % 4];
    const struct ttm_facts *facts;

    d->now_ns += STEP_NS;
    ttm_top_feed_ask(&d->feed, d->now_ns, ttm_view_wants_lives(&d->view));
    take_answers(d);
    must(ttm_top_feed_look(&d->feed, d->now_ns, &facts) == 0 &&
             ttm_view_take(&d->view, facts) == 0 &&
             ttm_grid_resize(&d->grid, size[0], size[1]) == 0,
         "no memory");
    if (round % 7 == 0)
        type(d, round / 7);
    ttm_draw(&d->view, &d->grid);
}

/* What is allocated; 0 where a sanitizer has its own heap. */
static uint64_t heap_bytes(void)
{
    const struct mallinfo2 info = mallinfo2();

    return (uint64_t)info.uordblks + (uint64_t)info.hblkhd;
}

static uint64_t resident_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    if (file && fscanf(file, "%*u %lu", &pages) != 1)
        pages = 0;
    if (file)
        (void)fclose(file);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t choose_rounds(int argc, char **argv)
{
    const char *is_long = getenv("TTM_LONG");

    if (argc > 1)
        return strtoull(argv[1], NULL, 10);
    return is_long && is_long[0] && strcmp(is_long, "0") != 0 ? 200000 : 5000;
}

int main(int argc, char **argv)
{
    static struct world world;
    static struct dashboard d;
    const struct ttm_device_filter all = {.is_all = true};
    const uint64_t rounds = choose_rounds(argc, argv);
    uint64_t early_heap = 0, early_resident = 0, spent_ns = 0;

    make_machine();
    open_world(&world);
    must(ttm_top_feed_open(&d.feed, root, world.socket_path, &all, 1000) == 0, "no memory");
    ttm_view_init(&d.view, &ttm_view_defaults);
    d.now_ns = ttm_clock_monotonic_ns();
    for (uint64_t round = 0; round < rounds; round++) {
        change_machine(round);
        change_memory(&world, round);
        const uint64_t begin_ns = ttm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
        refresh(&d, round);
        spent_ns += ttm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
        if (round == rounds / 10) {
            early_heap = heap_bytes();
            early_resident = resident_bytes();
        }
    }
    const uint64_t heap = heap_bytes();
    printf("%" PRIu64 " refreshes, %" PRIu64 " with lives, %" PRIu64 " us each; heap %" PRIu64
           " KiB after a tenth, %" PRIu64 " KiB in the end; resident %" PRIu64 ", %" PRIu64
           " KiB\n",
           rounds, d.lives_taken, spent_ns / 1000 / (rounds ? rounds : 1), early_heap / 1024,
           heap / 1024, early_resident / 1024, resident_bytes() / 1024);
    const bool has_grown = heap > early_heap + SLACK_BYTES;
    const bool has_seen = d.view.facts && d.view.facts->device_count >= CHIPS && d.lives_taken > 0;
    ttm_view_done(&d.view);
    ttm_top_feed_close(&d.feed);
    ttm_grid_done(&d.grid);
    close_world(&world);
    must(has_seen, "the dashboard has seen nothing");
    must(!has_grown, "the heap has grown");
    return 0;
}
