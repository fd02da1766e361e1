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
#define SITES_NS (2 * TTM_NS_PER_S)         /* sites and lives are asked for at most so often */
#define SITES_COST 250                      /* and take 0.4 % of a processor at most, each */
#define APART_NS (250 * TTM_NS_PER_MS)      /* but not both at once */
#define LOOK_NS (200 * TTM_NS_PER_MS)       /* other lives are, while keys are held down */
#define CLOSER_LIVES 32768                  /* of so many a map is drawn in 2 or 3 ms */
#define TABLE_FRAMES 5                      /* of a stack: what the table of origins shows */
#define CLOSER_FRAMES 1                     /* of other origins than the one looked at */

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
    ttm_answer_done(&link->sites);
    ttm_answer_done(&link->closer);
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

/* Whether a server has sums of sites; an older one has only all lives. */
static bool has_sums(const struct ttm_feed_link *link)
{
    return (link->conn.server.optional & TTM_FEATURE_SITES) != 0;
}

/* Returns 0 or a negative errno. */
static int ask(struct ttm_feed_link *link, enum ttm_feed_link_state state, uint64_t now_ns)
{
    uint8_t number[TTM_NUMBER_REQUEST_SIZE];
    int r;

    if (state == TTM_LINK_ASKED_SITES) {
        ttm_number_request_encode(has_sums(link) ? TABLE_FRAMES : 0, number);
        r = ttm_connection_send(&link->conn,
                                has_sums(link) ? TTM_FRAME_GET_SITES : TTM_FRAME_GET_LIVES, number,
                                sizeof(number));
    } else
        r = ttm_connection_send(&link->conn, TTM_FRAME_GET_TOTALS, NULL, 0);
    if (r < 0)
        return r;
    link->state = state;
    link->asked_ns = now_ns;
    return 0;
}

/* TT-Metal's id of a device. */
static uint16_t metal_id_of(const struct ttm_top_feed *feed, uint16_t device)
{
    for (uint16_t id = 0; id < TTM_DEVICE_COUNT; id++) {
        if (feed->numbers[id] == device)
            return id;
    }
    return device;
}

static int ask_closer(const struct ttm_top_feed *feed, struct ttm_feed_link *link, uint64_t now_ns,
                      const struct ttm_closer_look *look)
{
    const struct ttm_lives_request request = {
        .most = CLOSER_LIVES,
        .frames = CLOSER_FRAMES,
        .device = metal_id_of(feed, look->device),
        .region = look->region,
        .origin_region = look->origin_region,
        .pid = look->pid,
        .origin = look->origin,
    };
    uint8_t buf[TTM_LIVES_REQUEST_SIZE];

    ttm_lives_request_encode(&request, buf);
    const int r = ttm_connection_send(&link->conn, TTM_FRAME_GET_LIVES_OF, buf, sizeof(buf));
    if (r < 0)
        return r;
    link->state = TTM_LINK_ASKED_CLOSER;
    link->asked_ns = link->closer_asked_ns = now_ns;
    link->asked_look = *look;
    link->closer_print = ttm_closer_look_print(look, &link->sites, feed->numbers);
    link->is_closer_old = link->closer_print == 0;
    return 0;
}

/* How long to wait before what took so much is asked for again. */
static uint64_t pause_after(uint64_t cpu_ns)
{
    return cpu_ns * SITES_COST > SITES_NS ? cpu_ns * SITES_COST : SITES_NS;
}

/* Lives come between sites, unless the dashboard looks so seldom that there is nothing between. */
static bool is_closer_due(const struct ttm_top_feed *feed, const struct ttm_feed_link *link,
                          uint64_t now_ns, const struct ttm_closer_look *look)
{
    const uint64_t age_ns = now_ns - link->closer_asked_ns;
    const uint64_t pause_ns = pause_after(feed->closer_cpu_ns);

    if (link->closer_asked_ns == 0)
        return true;
    if (!link->has_closer || !ttm_closer_look_is_same(look, &link->look))
        return age_ns >= LOOK_NS;
    return link->is_closer_old && age_ns >= pause_ns &&
           (now_ns - feed->sites_asked_ns >= APART_NS || age_ns >= 2 * pause_ns);
}

void ttm_top_feed_ask_closer(struct ttm_top_feed *feed, uint64_t now_ns,
                             const struct ttm_closer_look *look)
{
    for (size_t i = 0; i < feed->link_count; i++) {
        struct ttm_feed_link *link = &feed->links[i];
        if (link->state == TTM_LINK_READY && link->has_sites && has_sums(link) &&
            is_closer_due(feed, link, now_ns, look))
            link->is_over |= ask_closer(feed, link, now_ns, look) < 0;
    }
}

void ttm_top_feed_ask(struct ttm_top_feed *feed, uint64_t now_ns, bool wants_sites)
{
    const bool are_sites_due =
        wants_sites && (feed->sites_asked_ns == 0 ||
                        now_ns - feed->sites_asked_ns >= pause_after(feed->sites_cpu_ns));

    locate(feed, now_ns);
    for (size_t i = feed->link_count; i-- > 0;) {
        struct ttm_feed_link *link = &feed->links[i];
        int r = 0;
        if (link->state == TTM_LINK_READY && are_sites_due) {
            r = ask(link, TTM_LINK_ASKED_SITES, now_ns); /* they come with totals */
            feed->sites_asked_ns = now_ns;
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

/* An answer is complete. Returns what it has, of enum ttm_fed. */
static int keep_answer(struct ttm_top_feed *feed, struct ttm_feed_link *link)
{
    const bool has_sites = link->state == TTM_LINK_ASKED_SITES;
    const bool has_closer = link->state == TTM_LINK_ASKED_CLOSER;
    struct ttm_answer *kept = has_sites ? &link->sites : has_closer ? &link->closer : &link->totals;

    forget_machine(feed); /* it may look at what is replaced */
    ttm_answer_done(kept);
    *kept = link->coming;
    link->coming = (struct ttm_answer){0};
    link->state = TTM_LINK_READY;
    link->has_totals |= !has_sites && !has_closer;
    link->has_sites |= has_sites;
    link->has_closer |= has_closer;
    if (has_closer)
        link->look = link->asked_look;
    if (has_sites && link->has_closer)
        link->is_closer_old |= ttm_closer_look_print(&link->asked_look, &link->sites,
                                                     feed->numbers) != link->closer_print;
    feed->lives_version += has_closer || (has_sites && !has_sums(link));
    return has_sites ? TTM_FED_SITES : has_closer ? TTM_FED_CLOSER : 0;
}

/* Returns what has come, of enum ttm_fed, or a negative errno when the talk is over. */
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
    case TTM_LINK_ASKED_SITES:
    case TTM_LINK_ASKED_CLOSER:
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

unsigned ttm_top_feed_take(struct ttm_top_feed *feed, uint64_t now_ns)
{
    unsigned fed = 0;

    for (size_t i = feed->link_count; i-- > 0;) {
        struct ttm_feed_link *link = &feed->links[i];
        const int r = link->is_over ? -EPIPE : take(feed, link, now_ns);
        if (r >= 0) {
            fed |= (unsigned)r;
            continue;
        }
        (void)snprintf(feed->refusal, sizeof(feed->refusal), "%.127s", refusal_of(&link->conn, r));
        feed->has_lost |= link->state != TTM_LINK_GREETING;
        /* Its origins are no more, either; the view is told of an answer without them. */
        fed |= link->has_sites ? TTM_FED_SITES : 0;
        forget_machine(feed);
        feed->lives_version++;
        close_link(feed, i);
        feed->located_ns = now_ns; /* not at once: it may be about to come back */
    }
    return fed;
}

bool ttm_top_feed_is_settled(const struct ttm_top_feed *feed, uint64_t now_ns)
{
    for (size_t i = 0; i < feed->link_count; i++) {
        const struct ttm_feed_link *link = &feed->links[i];
        /* Lives may be many, and the picture is drawn again when they come. */
        const bool are_lives = link->state == TTM_LINK_ASKED_CLOSER ||
                               (link->state == TTM_LINK_ASKED_SITES && !has_sums(link));
        if (link->state != TTM_LINK_READY && !are_lives && now_ns - link->asked_ns < SETTLE_NS)
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
        *ret_answering += !is_late && (link->has_totals || link->has_sites);
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
        .link_in_bytes_per_s = ttm_vitals_traffic(device, TTM_INTO_CHIP),
        .link_out_bytes_per_s = ttm_vitals_traffic(device, TTM_OUT_OF_CHIP),
        .age_ns = device->chip && !device->is_remote && device->chip->is_stalled
                      ? device->chip->age_ns
                      : 0,
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

/* As much of it as fits. There are hundreds in each look, and snprintf() takes ten times as long. */
static void copy_text(char *ret, size_t size, const char *text)
{
    const size_t n = strnlen(text, size - 1);

    memcpy(ret, text, n);
    ret[n] = '\0';
}

static void fill_process(struct ttm_top_feed *feed, const struct ttm_listed_process *listed,
                         struct ttm_facts_process *ret)
{
    struct ttm_text text;

    *ret = (struct ttm_facts_process){
        .pid = listed->process.pid,
        .reports = ttm_reporting_name(listed->reporting),
    };
    copy_text(ret->user, sizeof(ret->user), user_name(feed, &listed->process));
    ttm_text_init(&text);
    ttm_listed_process_devices(listed, &text);
    copy_text(ret->devices, sizeof(ret->devices), ttm_text_string(&text));
    ttm_text_clear(&text);
    ttm_terminal_command(&text, listed->process.command);
    copy_text(ret->command, sizeof(ret->command), ttm_text_string(&text));
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
        const bool are_sites_newer =
            link->has_sites &&
            (!link->has_totals || link->sites.moment.time_ns > link->totals.moment.time_ns);
        if (link->has_totals || link->has_sites)
            machine->answers[machine->answer_count++] =
                are_sites_newer ? link->sites : link->totals;
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

    *facts = (struct ttm_facts){.time_ns = now_ns,
                                .wall_time_ns = ttm_clock_wall_ns(),
                                .is_narrowed = !feed->devices.is_all};
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
    facts->hidden_count = feed->list.hidden_count;
    *ret = facts;
    return r;
}

/* The lives of a server that has sums are of use when all such servers tell of the same. */
static void add_closer(const struct ttm_feed_link *link, struct ttm_answer *lives,
                       struct ttm_origins_source *source)
{
    if (!source->is_partial) {
        source->is_partial = true;
        source->has_look = link->has_closer;
        source->look = link->look;
    }
    source->has_look &= link->has_closer && ttm_closer_look_is_same(&link->look, &source->look);
    if (source->has_look)
        lives[source->lives_count++] = link->closer;
}

struct ttm_origins_source ttm_top_feed_origins(struct ttm_top_feed *feed)
{
    struct ttm_origins_source source = {
        .answers = feed->sources,
        .lives = feed->lives,
        .lives_version = feed->lives_version,
        .devices = feed->devices,
        .numbers = feed->numbers,
    };

    for (size_t i = 0; i < feed->link_count; i++) {
        const struct ttm_feed_link *link = &feed->links[i];
        if (!link->has_sites)
            continue;
        feed->sources[source.answer_count++] = link->sites;
        if (has_sums(link))
            add_closer(link, feed->lives, &source);
        else
            feed->lives[source.lives_count++] = link->sites;
    }
    return source;
}

void ttm_top_feed_cost(struct ttm_top_feed *feed, enum ttm_fed what, uint64_t cpu_ns)
{
    *(what == TTM_FED_SITES ? &feed->sites_cpu_ns : &feed->closer_cpu_ns) = cpu_ns;
}
