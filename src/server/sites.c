/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer to GET_SITES: what every site holds, as a sum. It costs what the sites
 * cost, however many lives they have, and is put together at once; so it has limits,
 * and what is beyond them is told as a sum too.
 *
 * Of too many sites the largest are sent. They are found without sorting: sites are
 * counted by classes of size, each an eighth of a power of two wide, and classes are
 * taken from the largest on until the limit is reached.
 */
#include <errno.h>

#include "base/u64_set.h"
#include "server/state.h"
#include "wire/frame.h"
#include "wire/site_sum.h"

#define SITES_MAX 16384
#define SITES_BYTES_MAX (4u << 20)
#define CLASSES 512

struct picking {
    struct ttm_session *session;
    uint32_t frames;
    size_t end; /* where 'out' has grown to the limit */
    uint32_t counts[CLASSES];
    unsigned least;          /* class that is taken in part */
    uint32_t room;           /* for sites of it */
    struct ttm_u64_set sent; /* origins of the process at hand */
    struct ttm_left_out left_out;
};

static unsigned class_of(const struct ttm_site_counts *counts)
{
    const uint64_t bytes = counts->footprint_bytes;

    if (bytes < 8)
        return (unsigned)bytes;
    const unsigned top = 63 - (unsigned)__builtin_clzll(bytes);
    return top << 3 | (unsigned)(bytes >> (top - 3) & 7);
}

static void count_classes(struct picking *picking, const struct ttm_process *proc)
{
    for (uint32_t i = 0; i < proc->sites.count; i++) {
        if (proc->sites.counts[i].live > 0)
            picking->counts[class_of(&proc->sites.counts[i])]++;
    }
}

static void choose_least(struct picking *picking)
{
    uint32_t room = SITES_MAX;
    unsigned at = CLASSES;

    while (at > 0 && picking->counts[at - 1] <= room)
        room -= picking->counts[--at];
    picking->least = at > 0 ? at - 1 : 0;
    picking->room = at > 0 ? room : picking->counts[0];
}

static bool pick(struct picking *picking, const struct ttm_site_counts *counts)
{
    const unsigned class = class_of(counts);

    if (ttm_queue_length(&picking->session->out) >= picking->end || class < picking->least ||
        (class == picking->least && picking->room == 0))
        return false;
    picking->room -= class == picking->least;
    return true;
}

/* An origin comes once, before the first site that has it. Returns 0 or -ENOMEM. */
static int put_origin(struct picking *picking, uint32_t index, const struct ttm_process *proc,
                      uint32_t number)
{
    const struct ttm_origin *origin =
        number != 0 ? ttm_origin_table_find(&proc->origins, number) : NULL;

    if (!origin || ttm_u64_set_has(&picking->sent, number))
        return 0;
    ttm_native_put_origin(picking->session, index, origin, picking->frames);
    return ttm_u64_set_add(&picking->sent, number);
}

static uint64_t age_of(uint64_t now_ns, uint64_t birth_ns)
{
    return now_ns > birth_ns ? now_ns - birth_ns : 0;
}

static void put_sum(struct ttm_session *session, uint32_t index, uint32_t number,
                    const struct ttm_site_counts *counts)
{
    const uint64_t now_ns = session->server->now_ns;
    const struct ttm_site_sum sum = {
        .process_index = index,
        .site = number,
        .live = counts->live,
        .bytes = counts->bytes,
        .footprint_bytes = counts->footprint_bytes,
        .first_age_ns = age_of(now_ns, counts->first_ns),
        .last_age_ns = age_of(now_ns, counts->last_ns),
    };
    uint8_t buf[TTM_SITE_SUM_SIZE];

    (void)ttm_frame_append(&session->out, TTM_FRAME_SITE_SUM, buf,
                           (uint32_t)ttm_site_sum_encode(&sum, buf));
}

static int put_sites(struct picking *picking, uint32_t index, const struct ttm_process *proc)
{
    uint32_t sent = 0;
    int r = 0;

    ttm_u64_set_clear(&picking->sent);
    for (uint32_t i = 0; r == 0 && i < proc->sites.count; i++) {
        const struct ttm_site_counts *counts = &proc->sites.counts[i];
        if (counts->live == 0)
            continue;
        if (!pick(picking, counts)) {
            picking->left_out.sites++;
            picking->left_out.lives += counts->live;
            picking->left_out.footprint_bytes += counts->footprint_bytes;
            continue;
        }
        r = put_origin(picking, index, proc, proc->sites.sites[i].origin);
        ttm_native_put_site(picking->session, index, &proc->sites.sites[i], counts, sent);
        put_sum(picking->session, index, sent++, counts);
    }
    return r;
}

void ttm_left_out_put(struct ttm_session *session, const struct ttm_left_out *left_out)
{
    uint8_t buf[TTM_LEFT_OUT_SIZE];

    if (left_out->sites > 0 || left_out->lives > 0)
        (void)ttm_frame_append(&session->out, TTM_FRAME_LEFT_OUT, buf,
                               (uint32_t)ttm_left_out_encode(left_out, buf));
}

int ttm_sites_put(struct ttm_session *session, uint32_t frames)
{
    struct picking picking = {
        .session = session,
        .frames = frames,
        .end = ttm_queue_length(&session->out) + SITES_BYTES_MAX,
    };
    uint32_t index = 0;
    int r = 0;

    TTM_LIST_FOR_EACH(pos, &session->server->reg->processes) {
        const struct ttm_process *proc = TTM_CONTAINER_OF(pos, struct ttm_process, link);
        if (ttm_session_may_see(session, proc->info.uid))
            count_classes(&picking, proc);
    }
    choose_least(&picking);
    ttm_u64_set_init(&picking.sent, session->server->reg->seed);
    TTM_LIST_FOR_EACH(pos, &session->server->reg->processes) {
        const struct ttm_process *proc = TTM_CONTAINER_OF(pos, struct ttm_process, link);
        if (r == 0 && ttm_session_may_see(session, proc->info.uid))
            r = put_sites(&picking, index, proc);
        index++;
    }
    ttm_u64_set_done(&picking.sent);
    ttm_left_out_put(session, &picking.left_out);
    return r;
}
