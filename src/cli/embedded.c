/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/embedded.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/quiet_thread.h"
#include "base/seed.h"
#include "server/server.h"
#include "telemetry/cards.h"

#define CARDS_MAX 256

static void remember(void *context, const struct ttm_registry *reg,
                     const struct ttm_process *process, bool is_running)
{
    struct ttm_embedded *embedded = context;

    ttm_failure_report_end(&embedded->reporter, reg, process);
    ttm_departed_add(&embedded->departed, reg, process, is_running);
}

/* The folder of the machine's server is for all to enter, whoever makes it. */
static void make_public_folder(const char *socket_path)
{
    static const char folder[] = "/run/tt-mem";

    if (strncmp(socket_path, folder, sizeof(folder) - 1) == 0 && mkdir(folder, 0755) == 0)
        (void)chmod(folder, 0755); /* the umask may have taken the rest */
}

/* Sockets of runs that were killed. */
static void tidy_up_beside(const char *socket_path)
{
    char pattern[TTM_SOCKET_PATH_SIZE + 32];
    const char *slash = strrchr(socket_path, '/');

    if (!slash)
        return;
    (void)snprintf(pattern, sizeof(pattern), "%.*s/tt-mem.run.*.sock", (int)(slash - socket_path),
                   socket_path);
    ttm_listener_remove_left_behind(pattern);
}

static int open_choice(struct ttm_embedded *embedded, unsigned choice,
                       char why[TTM_LISTENER_WHY_SIZE])
{
    const struct ttm_server_options options = {
        .socket_path = embedded->socket_path,
        .process_ended = remember,
        .process_context = embedded,
        .allocation_failed = ttm_failure_report,
        .failure_context = &embedded->reporter,
    };
    const int r = ttm_locate_run(choice, (int)getpid(), embedded->socket_path);

    if (r < 0) {
        (void)snprintf(why, TTM_LISTENER_WHY_SIZE,
                       "cannot listen: the socket's path is longer than 107 bytes");
        return r;
    }
    make_public_folder(embedded->socket_path);
    return ttm_server_new(&options, &embedded->server, why);
}

/* What the driver says of this machine's cards. */
static void set_boards(struct ttm_server *server)
{
    const char *root = getenv("TTMEM_ROOT");
    struct ttm_card cards[CARDS_MAX];
    const size_t count = ttm_cards_read(root ? root : "", cards, CARDS_MAX);

    for (size_t i = 0; i < count; i++)
        (void)ttm_server_set_board(server, (uint32_t)i, cards[i].board);
}

int ttm_embedded_open(struct ttm_embedded *embedded, char why[TTM_LISTENER_WHY_SIZE])
{
    char why_second[TTM_LISTENER_WHY_SIZE];

    *embedded = (struct ttm_embedded){0};
    ttm_departed_init(&embedded->departed, ttm_seed_random());
    const struct ttm_terminal terminal = ttm_terminal_of(STDERR_FILENO);
    ttm_failure_reporter_init(&embedded->reporter, &terminal);
    const int r = open_choice(embedded, 0, why);
    /* The first place is where it should be, so what is wrong there is what is said. */
    if (r < 0 && open_choice(embedded, 1, why_second) < 0)
        return r;
    tidy_up_beside(embedded->socket_path);
    set_boards(embedded->server);
    return 0;
}

static void *run_server(void *arg)
{
    (void)ttm_server_run(arg);
    return NULL;
}

int ttm_embedded_start(struct ttm_embedded *embedded)
{
    const int r = ttm_quiet_thread_start(&embedded->thread, NULL, run_server, embedded->server);

    embedded->is_running = r == 0;
    return r;
}

static void stop(struct ttm_embedded *embedded)
{
    if (!embedded->is_running)
        return;
    ttm_server_stop(embedded->server);
    (void)pthread_join(embedded->thread, NULL);
    embedded->is_running = false;
}

void ttm_embedded_finish(struct ttm_embedded *embedded)
{
    if (!embedded->server)
        return;
    stop(embedded);
    ttm_server_settle(embedded->server);
    ttm_server_each_process(embedded->server, remember, embedded);
}

void ttm_embedded_done(struct ttm_embedded *embedded)
{
    stop(embedded);
    ttm_server_free(embedded->server);
    ttm_departed_done(&embedded->departed);
    embedded->server = NULL;
}
