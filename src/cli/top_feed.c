/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top_feed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/terminal.h"
#include "cli/vitals.h"

#define LOCATE_NS (5 * TTM_NS_PER_S)        /* how often to look for further servers */
#define LOCATE_ANY_NS (500 * TTM_NS_PER_MS) /* and for one when there is none */
#define LATE_NS (2 * TTM_NS_PER_S)          /* from then on a server does not answer */
#define GIVE_UP_NS (60 * TTM_NS_PER_S)      /* and its connection is worth nothing any more */
#define SETTLE_NS (300 * TTM_NS_PER_MS)     /* a picture does not wait longer for an answer */
#define LIVES_NS (2 * TTM_NS_PER_S)         /* lives are asked for at most so often */
#define LIVES_COST 250                      /* and take 0.4 % of a processor at most */

int ttm_top_feed_open(struct ttm_top_feed *feed, const char *root, const char *socket_path,
                      const struct ttm_device_filter *devices, unsigned interval_ms)
{
    const char *chosen = getenv("TTMEM_SOCKET");

    *feed = (struct ttm_top_feed){.root = root, .socket_path = socket_path, .devices = *devices};
    if (!socket_path && chosen && chosen[0])
        feed->socket_path = chosen;
    for (unsigned i = 0; i < TTM_DEVICE_COUNT; i++)
        feed->numbers[i] = (uint16_t)i;
    return ttm_telemetry_new(root, interval_ms, &feed->telemetry);
}

static void close_link(struct ttm_top_feed *feed, size_t at)
{
    struct ttm_feed_link *link = &feed->links[at];

    ttm_connection_close(&link->conn);
    ttm_answer_done(&link->coming);
    ttm_answer_done(&link->totals);
    ttm_answer_done(&link->lives);
    feed->link_count--;
    memmove(link, link + 1, (feed->link_count - at) * sizeof(*link));
}

/* The machine borrows the answers of links, so they are not its own to free. */
static void forget_machine(struct ttm_top_feed *feed)
{
    feed->machine.answer_count = 0;
    ttm_machine_done(&feed->machine);
    ttm_process_list_done(&feed->list);
}

void ttm_top_feed_close(struct ttm_top_feed *feed)
{
    forget_machine(feed);
    while (feed->link_count > 0)
        close_link(feed, feed->link_count - 1);
    ttm_telemetry_free(feed->telemetry);
    ttm_process_cache_done(&feed->cache);
    free(feed->fact_devices);
    free(feed->fact_processes);
    *feed = (struct ttm_top_feed){0};
}

/* ---- servers ---- */

static void connect_to(struct ttm_top_feed *feed, const char *path, uint64_t now_ns)
{
    for (size_t i = 0; i < feed->link_count; i++) {
        if (strcmp(feed->links[i].conn.path, path) == 0)
            return;
    }
    if (feed->link_count == TTM_FEED_SERVERS_MAX)
        return;
    struct ttm_feed_link *link = &feed->links[feed->link_count];
    *link = (struct ttm_feed_link){.state = TTM_LINK_GREETING, .asked_ns = now_ns};
    if (ttm_connection_begin(&link->conn, path) < 0)
        ttm_connection_close(&link->conn);
    else
        feed->link_count++;
}

static void locate(struct ttm_top_feed *feed, uint64_t now_ns)
{
    struct ttm_places places;

    if (feed->located_ns != 0 &&
        now_ns - feed->located_ns < (feed->link_count > 0 ? LOCATE_NS : LOCATE_ANY_NS))
        return;
    feed->located_ns = now_ns;
    if (feed->socket_path) {
        connect_to(feed, feed->socket_path, now_ns);
        return;
    }
    if (ttm_locate_servers(&places) < 0)
        return; /* memory is short: the next time */
    for (size_t i = 0; i < places.count; i++)
        connect_to(feed, places.paths[i], now_ns);
    ttm_places_done(&places);
}

/* Returns 0 or a negative errno. */
static int ask(struct ttm_feed_link *link, enum ttm_feed_link_state state, uint64_t now_ns)
{
    uint8_t number[TTM_NUMBER_REQUEST_SIZE];
    int r;

    ttm_number_request_encode(0, number);
    if (state == TTM_LINK_ASKED_LIVES)
        r = ttm_connection_send(&link->conn, TTM_FRAME_GET_LIVES, number, sizeof(number));
    else
        r = ttm_connection_send(&link->conn, TTM_FRAME_GET_TOTALS, NULL, 0);
    if (r < 0)
        return r;
    link->state = state;
    link->asked_ns = now_ns;
    return 0;
}

static bool are_lives_due(const struct ttm_top_feed *feed, uint64_t now_ns)
{
    const uint64_t pause_ns = feed->lives_cpu_ns * LIVES_COST;

    return feed->lives_asked_ns == 0 ||
           now_ns - feed->lives_asked_ns >= (pause_ns > LIVES_NS ? pause_ns : LIVES_NS);
}

void ttm_top_feed_ask(struct ttm_top_feed *feed, uint64_t now_ns, bool wants_lives)
{
    const bool is_due = wants_lives && are_lives_due(feed, now_ns);

    locate(feed, now_ns);
    for (size_t i = feed->link_count; i-- > 0;) {
        struct ttm_feed_link *link = &feed->links[i];
        int r = 0;
        if (link->state == TTM_LINK_READY && is_due) {
            r = ask(link, TTM_LINK_ASKED_LIVES, now_ns); /* they come with totals */
            feed->lives_asked_ns = now_ns;
        } else if (link->state == TTM_LINK_READY)
            r = ask(link, TTM_LINK_ASKED_TOTALS, now_ns);
        else if (now_ns - link->asked_ns > GIVE_UP_NS)
            r = -ETIMEDOUT;
        link->is_over |= r < 0;
    }
}

size_t ttm_top_feed_poll(const struct ttm_top_feed *feed, struct pollfd *ret)
{
    for (size_t i = 0; i < feed->link_count; i++)
        ret[i] = (struct pollfd){.fd = feed->links[i].conn.fd, .events = POLLIN};
    return feed->link_count;
}

/* An answer is complete. Returns whether it has lives. */
static bool keep_answer(struct ttm_top_feed *feed, struct ttm_feed_link *link)
{
    const bool has_lives = link->state == TTM_LINK_ASKED_LIVES;
    struct ttm_answer *kept = has_lives ? &link->lives : &link->totals;

    forget_machine(feed); /* it may look at what is replaced */
    ttm_answer_done(kept);
    *kept = link->coming;
    link->coming = (struct ttm_answer){0};
    link->state = TTM_LINK_READY;
    link->has_totals |= !has_lives;
    link->has_lives |= has_lives;
    return has_lives;
}

/* Returns 1 when lives have come, 0, or a negative errno when the talk is over. */
static int take(struct ttm_top_feed *feed, struct ttm_feed_link *link, uint64_t now_ns)
{
    int r;

    switch (link->state) {
    case TTM_LINK_GREETING:
        r = ttm_connection_greeted(&link->conn);
        if (r <= 0)
            return r;
        feed->refusal[0] = '\0';
        feed->has_lost = false;
        return ask(link, TTM_LINK_ASKED_TOTALS, now_ns);
    case TTM_LINK_ASKED_TOTALS:
    case TTM_LINK_ASKED_LIVES:
        r = ttm_answer_take(&link->conn, &link->coming);
        return r <= 0 ? r : keep_answer(feed, link);
    case TTM_LINK_READY:
        /* Nothing was asked; what comes is the end. */
        r = ttm_answer_take(&link->conn, &link->coming);
        return r < 0 ? r : 0;
    }
    return 0;
}

static const char *refusal_of(const struct ttm_connection *conn, int r)
{
    if (r == -EREMOTEIO)
        return conn->why;
    if (r == -EPROTONOSUPPORT)
        return "it is of another version";
    return r == -EPROTO || r == -EMSGSIZE || r == -EBADMSG ? "it is no tt-mem server" : "";
}

bool ttm_top_feed_take(struct ttm_top_feed *feed, uint64_t now_ns)
{
    bool has_lives = false;

    for (size_t i = feed->link_count; i-- > 0;) {
        struct ttm_feed_link *link = &feed->links[i];
        const int r = link->is_over ? -EPIPE : take(feed, link, now_ns);
        has_lives |= r == 1;
        if (r >= 0)
            continue;
        (void)snprintf(feed->refusal, sizeof(feed->refusal), "%.127s", refusal_of(&link->conn, r));
        feed->has_lost |= link->state != TTM_LINK_GREETING;
        /* Its lives are no more, either; the view is told of an answer without them. */
        has_lives |= link->has_lives;
        forget_machine(feed);
        close_link(feed, i);
        feed->located_ns = now_ns; /* not at once: it may be about to come back */
    }
    return has_lives;
}

bool ttm_top_feed_is_settled(const struct ttm_top_feed *feed, uint64_t now_ns)
{
    for (size_t i = 0; i < feed->link_count; i++) {
        const struct ttm_feed_link *link = &feed->links[i];
        if (link->state != TTM_LINK_READY && link->state != TTM_LINK_ASKED_LIVES &&
            now_ns - link->asked_ns < SETTLE_NS)
            return false;
    }
    return true;
}

/* ---- facts ---- */

static enum ttm_server_state server_state(const struct ttm_top_feed *feed, uint64_t now_ns,
                                          size_t *ret_answering)
{
    *ret_answering = 0;
    for (size_t i = 0; i < feed->link_count; i++) {
        const struct ttm_feed_link *link = &feed->links[i];
        const bool is_late = link->state != TTM_LINK_READY && now_ns - link->asked_ns > LATE_NS;
        *ret_answering += !is_late && (link->has_totals || link->has_lives);
    }
    if (*ret_answering > 0 && *ret_answering == feed->link_count)
        return TTM_SERVER_OK;
    if (feed->link_count > 0)
        return TTM_SERVER_SILENT;
    if (feed->refusal[0])
        return TTM_SERVER_REFUSED;
    return feed->has_lost ? TTM_SERVER_GONE : TTM_SERVER_NONE;
}

static struct ttm_facts_usage usage_of(const struct ttm_usage *usage)
{
    return (struct ttm_facts_usage){
        .is_known = usage->is_known,
        .used_bytes = usage->used_bytes,
        .requested_bytes = usage->bytes,
    };
}

static void fill_device(const struct ttm_machine_device *device, struct ttm_facts_device *ret)
{
    const char *side = strcmp(device->board, "n300") != 0 || !device->chip ? ""
                       : device->is_remote                                 ? " R"
                                                                           : " L";

    *ret = (struct ttm_facts_device){
        .id = device->id,
        .place = ttm_vitals_trouble(device),
        .temperature_mc = ttm_vitals_sensor(device, TTM_SENSOR_TEMPERATURE_MC),
        .temperature_limit_mc = ttm_vitals_limit(device, TTM_LIMIT_TEMPERATURE_MC),
        .power_uw = ttm_vitals_sensor(device, TTM_SENSOR_POWER_UW),
        .power_limit_uw = ttm_vitals_limit(device, TTM_LIMIT_POWER_UW),
        .aiclk_mhz = ttm_vitals_sensor(device, TTM_SENSOR_AICLK_MHZ),
        .age_ns = ttm_vitals_chip(device) && device->chip->is_stalled ? device->chip->age_ns : 0,
        .l1_reserved_bytes = device->l1_reserved_bytes,
        .cb_registered_bytes = device->regions[TTM_REGION_CB].registered_bytes,
    };
    (void)snprintf(ret->name, sizeof(ret->name), "%.28s%s",
                   device->board[0]                       ? device->board
                   : strcmp(device->arch, "unknown") == 0 ? ""
                                                          : device->arch,
                   side);
    memcpy(ret->capacity_bytes, device->capacity_bytes, sizeof(ret->capacity_bytes));
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
        ret->regions[r] = usage_of(&device->regions[r]);
}

/* Names are looked up once: that may ask a server elsewhere. */
static const char *user_name(struct ttm_top_feed *feed, const struct ttm_process *process)
{
    char name[TTM_USER_SIZE];

    if (!process->has_uid)
        return "?";
    for (size_t i = 0; i < feed->user_count; i++) {
        if (feed->users[i].uid == process->uid)
            return feed->users[i].name;
    }
    const size_t room = sizeof(feed->users) / sizeof(feed->users[0]);
    const size_t at = feed->user_count < room ? feed->user_count++ : process->uid % room;
    feed->users[at].uid = process->uid;
    (void)snprintf(feed->users[at].name, sizeof(feed->users[at].name), "%.31s",
                   ttm_process_user(process, name));
    return feed->users[at].name;
}

static void fill_process(struct ttm_top_feed *feed, const struct ttm_listed_process *listed,
                         struct ttm_facts_process *ret)
{
    struct ttm_text text;

    *ret = (struct ttm_facts_process){
        .pid = listed->process.pid,
        .reports = ttm_reporting_name(listed->reporting),
    };
    (void)snprintf(ret->user, sizeof(ret->user), "%s", user_name(feed, &listed->process));
    ttm_text_init(&text);
    ttm_listed_process_devices(listed, &text);
    (void)snprintf(ret->devices, sizeof(ret->devices), "%.31s", ttm_text_string(&text));
    ttm_text_clear(&text);
    ttm_terminal_command(&text, listed->process.command);
    (void)snprintf(ret->command, sizeof(ret->command), "%.255s", ttm_text_string(&text));
    ttm_text_done(&text);
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
        ret->regions[r] = usage_of(&listed->regions[r]);
}

static bool is_process_wanted(const struct ttm_top_feed *feed,
                              const struct ttm_listed_process *listed)
{
    for (size_t i = 0; !feed->devices.is_all && i < listed->device_count; i++) {
        if (listed->devices[i] < TTM_DEVICE_COUNT &&
            ttm_device_filter_has(&feed->devices, listed->devices[i]))
            return true;
    }
    return feed->devices.is_all;
}

/* Reads what can be read at once, and joins it with what servers have said. */
static int read_machine(struct ttm_top_feed *feed, uint64_t now_ns)
{
    struct ttm_machine *machine = &feed->machine;

    forget_machine(feed);
    int r = ttm_telemetry_look(feed->telemetry, &machine->telemetry);
    if (r == 0)
        r = ttm_upstream_read(feed->root, &machine->upstream);
    for (size_t i = 0; r == 0 && i < feed->link_count; i++) {
        const struct ttm_feed_link *link = &feed->links[i];
        const bool are_lives_newer =
            link->has_lives &&
            (!link->has_totals || link->lives.moment.time_ns > link->totals.moment.time_ns);
        if (link->has_totals || link->has_lives)
            machine->answers[machine->answer_count++] =
                are_lives_newer ? link->lives : link->totals;
    }
    if (r == 0)
        r = ttm_machine_join(machine);
    ttm_process_cache_turn(&feed->cache, now_ns);
    if (r == 0)
        r = ttm_process_list_read(feed->root, machine, &feed->cache, &feed->list);
    return r;
}

static int fill_devices(struct ttm_top_feed *feed)
{
    const struct ttm_machine *machine = &feed->machine;
    void *grown =
        realloc(feed->fact_devices, (machine->device_count + 1) * sizeof(feed->fact_devices[0]));

    if (!grown)
        return -ENOMEM;
    feed->fact_devices = grown;
    for (size_t i = 0; i < machine->device_count; i++) {
        const struct ttm_machine_device *device = &machine->devices[i];
        if (device->metal_id >= 0 && device->metal_id < TTM_DEVICE_COUNT)
            feed->numbers[device->metal_id] = (uint16_t)device->id;
        if (device->id < TTM_DEVICE_COUNT && ttm_device_filter_has(&feed->devices, device->id))
            fill_device(device, &feed->fact_devices[feed->facts.device_count++]);
    }
    feed->facts.devices = feed->fact_devices;
    return 0;
}

static int fill_processes(struct ttm_top_feed *feed)
{
    void *grown =
        realloc(feed->fact_processes, (feed->list.count + 1) * sizeof(feed->fact_processes[0]));

    if (!grown)
        return -ENOMEM;
    feed->fact_processes = grown;
    for (size_t i = 0; i < feed->list.count; i++) {
        if (is_process_wanted(feed, &feed->list.processes[i]))
            fill_process(feed, &feed->list.processes[i],
                         &feed->fact_processes[feed->facts.process_count++]);
    }
    feed->facts.processes = feed->fact_processes;
    return 0;
}

int ttm_top_feed_look(struct ttm_top_feed *feed, uint64_t now_ns, const struct ttm_facts **ret)
{
    struct ttm_facts *facts = &feed->facts;

    *facts = (struct ttm_facts){.time_ns = now_ns, .wall_time_ns = ttm_clock_wall_ns()};
    facts->server = server_state(feed, now_ns, &facts->server_count);
    memcpy(facts->server_text, feed->refusal, sizeof(facts->server_text));
    int r = read_machine(feed, now_ns);
    if (r == 0)
        r = fill_devices(feed);
    if (r == 0)
        r = fill_processes(feed);
    for (size_t a = 0; a < feed->machine.answer_count; a++) {
        for (size_t p = 0; p < feed->machine.answers[a].process_count; p++)
            facts->lost_events += feed->machine.answers[a].processes[p].row.lost_events;
    }
    facts->foreign_count = feed->list.foreign_count;
    *ret = facts;
    return r;
}

struct ttm_origins_source ttm_top_feed_lives(struct ttm_top_feed *feed)
{
    struct ttm_origins_source source = {
        .answers = feed->sources,
        .devices = feed->devices,
        .numbers = feed->numbers,
    };

    for (size_t i = 0; i < feed->link_count; i++) {
        if (feed->links[i].has_lives)
            feed->sources[source.answer_count++] = feed->links[i].lives;
    }
    return source;
}

void ttm_top_feed_cost(struct ttm_top_feed *feed, uint64_t cpu_ns)
{
    feed->lives_cpu_ns = cpu_ns;
}
