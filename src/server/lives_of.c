/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer to GET_LIVES_OF: the lives in one region of a device, and those of one
 * origin wherever they lie. They are picked from a snapshot in steps, as all lives
 * are; a site is looked at once, so that a life costs one look into a table.
 *
 * There are at most so many lives in an answer, and half of that is kept for those of the
 * origin: whatever else lies on the device cannot crowd them out.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/u64_set.h"
#include "server/state.h"
#include "wire/frame.h"
#include "wire/life_row.h"
#include "wire/site_sum.h"

#define LIVES_MAX 65536
#define LIVES_PER_FRAME 512
#define LIVES_PER_STEP 65536 /* looked at in a turn of the loop: about 0.2 ms */

#define NOT_SENT UINT32_MAX

enum whose { OTHERS, OWN, WHOSE_COUNT };

struct site_place {
    uint32_t number; /* in the answer, or NOT_SENT */
    uint32_t whose;
};

struct ttm_chosen_lives {
    struct ttm_lives_request request;
    uint32_t room[WHOSE_COUNT];
    uint64_t unsent; /* lives that were chosen and are not in the answer, so far */
    /* of the process at hand */
    struct site_place *places;
    uint32_t site_count;
    struct ttm_u64_set origins; /* that are sent */
};

static bool is_own(const struct ttm_lives_request *request, const struct ttm_process *proc,
                   const struct ttm_site *site)
{
    return proc->info.pid == request->pid && site->origin == request->origin &&
           site->region == request->origin_region;
}

static bool is_chosen(const struct ttm_lives_request *request, const struct ttm_device_sets *sets,
                      const struct ttm_process *proc, const struct ttm_site *site)
{
    if (is_own(request, proc, site))
        return true;
    if (site->region != request->region)
        return false;
    const struct ttm_device_set set = ttm_device_sets_get(sets, site->device_set);
    return ttm_device_set_has(&set, request->device);
}

/* Adds up how many lives of that process are chosen. */
static void count_chosen(const struct ttm_chosen_lives *chosen, const struct ttm_snapshot *snap,
                         const struct ttm_snapshot_process *p, uint64_t ret[WHOSE_COUNT])
{
    for (uint32_t i = 0; i < p->site_count; i++) {
        const struct ttm_site *site = &p->process->sites.sites[i];
        if (p->site_counts[i].live > 0 &&
            is_chosen(&chosen->request, &snap->reg->sets, p->process, site))
            ret[is_own(&chosen->request, p->process, site) ? OWN : OTHERS] +=
                p->site_counts[i].live;
    }
}

/* Each has half of the room, and what the other does not need. */
static void share_room(struct ttm_chosen_lives *chosen, const uint64_t lives[WHOSE_COUNT])
{
    const uint32_t wanted = chosen->request.most;
    const uint32_t most = wanted > 0 && wanted < LIVES_MAX ? wanted : LIVES_MAX;
    const uint32_t half = most / 2;

    chosen->room[OWN] = lives[OTHERS] < most - half ? most - (uint32_t)lives[OTHERS] : half;
    if (lives[OWN] < chosen->room[OWN])
        chosen->room[OWN] = (uint32_t)lives[OWN];
    chosen->room[OTHERS] = most - chosen->room[OWN];
    chosen->unsent = lives[OWN] + lives[OTHERS];
}

struct ttm_chosen_lives *ttm_chosen_lives_new(const struct ttm_lives_request *request,
                                              struct ttm_snapshot *snap)
{
    struct ttm_chosen_lives *chosen = calloc(1, sizeof(*chosen));
    uint64_t lives[WHOSE_COUNT] = {0};

    if (!chosen)
        return NULL;
    chosen->request = *request;
    ttm_u64_set_init(&chosen->origins, snap->reg->seed);
    for (uint32_t i = 0; i < snap->process_count; i++) {
        struct ttm_snapshot_process *p = &snap->processes[i];
        const uint64_t before = lives[OWN] + lives[OTHERS];
        if (p->lives.chunks)
            count_chosen(chosen, snap, p, lives);
        if (lives[OWN] + lives[OTHERS] == before) /* what is not shown is not kept */
            ttm_registry_bury(snap->reg, &p->lives);
    }
    share_room(chosen, lives);
    return chosen;
}

void ttm_chosen_lives_free(struct ttm_chosen_lives *chosen)
{
    if (!chosen)
        return;
    free(chosen->places);
    ttm_u64_set_done(&chosen->origins);
    free(chosen);
}

static int begin_process(struct ttm_chosen_lives *chosen, const struct ttm_snapshot_process *p)
{
    chosen->places = malloc(((size_t)p->site_count + 1) * sizeof(chosen->places[0]));
    chosen->site_count = 0;
    ttm_u64_set_clear(&chosen->origins);
    return chosen->places ? 0 : -ENOMEM;
}

static int put_site(struct ttm_session *session, const struct ttm_snapshot_process *p,
                    uint32_t number)
{
    const struct ttm_lives_answer *answer = &session->lives;
    struct ttm_chosen_lives *chosen = answer->chosen;
    const struct ttm_process *proc = p->process;
    const struct ttm_site *site = &proc->sites.sites[number];
    struct site_place *place = &chosen->places[number];
    int r = 0;

    place->number = NOT_SENT;
    if (p->site_counts[number].live == 0 ||
        !is_chosen(&chosen->request, &answer->snap->reg->sets, proc, site))
        return 0;
    place->whose = is_own(&chosen->request, proc, site) ? OWN : OTHERS;
    place->number = chosen->site_count++;
    const struct ttm_origin *origin =
        site->origin != 0 ? ttm_origin_table_find(&proc->origins, site->origin) : NULL;
    if (origin && !ttm_u64_set_has(&chosen->origins, site->origin)) {
        ttm_native_put_origin(session, answer->process, origin,
                              place->whose == OWN ? 0 : chosen->request.frames);
        r = ttm_u64_set_add(&chosen->origins, site->origin);
    }
    ttm_native_put_site(session, answer->process, site, &p->site_counts[number], place->number);
    return r;
}

/* One frame of lives, from what '*budget' lets it look at. Returns whether there may be more. */
static bool put_lives(struct ttm_session *session, struct ttm_snapshot_process *p, uint32_t *budget)
{
    struct ttm_lives_answer *answer = &session->lives;
    struct ttm_chosen_lives *chosen = answer->chosen;
    uint8_t buf[TTM_LIVES_HEAD_SIZE + LIVES_PER_FRAME * TTM_LIFE_ROW_SIZE];
    const struct ttm_life *life = NULL;
    uint32_t count = 0;

    while (*budget > 0 && count < LIVES_PER_FRAME &&
           (life = ttm_life_view_next(&p->lives, &answer->at)) != NULL) {
        --*budget;
        if (life->site >= p->site_count) /* memory was short: the view sees what came later */
            continue;
        const struct site_place *place = &chosen->places[life->site];
        if (place->number == NOT_SENT || chosen->room[place->whose] == 0)
            continue;
        chosen->room[place->whose]--;
        chosen->unsent -= chosen->unsent > 0;
        ttm_native_life_row(life, place->number, answer->snap->time_ns,
                            buf + TTM_LIVES_HEAD_SIZE + (size_t)count++ * TTM_LIFE_ROW_SIZE);
    }
    if (count > 0) {
        ttm_lives_head_encode(answer->process, count, buf);
        (void)ttm_frame_append(&session->out, TTM_FRAME_LIVES, buf,
                               TTM_LIVES_HEAD_SIZE + count * TTM_LIFE_ROW_SIZE);
    }
    return *budget == 0 || life != NULL;
}

/* Whether lives of that process can still be sent. */
static bool has_room(const struct ttm_chosen_lives *chosen, const struct ttm_process *proc)
{
    return chosen->room[OTHERS] > 0 ||
           (chosen->room[OWN] > 0 && proc->info.pid == chosen->request.pid);
}

/* Returns 1 when all of the process is in 'out', 0 when not yet, or -ENOMEM. */
static int put_process(struct ttm_session *session, struct ttm_snapshot_process *p,
                       uint32_t *budget)
{
    struct ttm_lives_answer *answer = &session->lives;

    if (!p->lives.chunks)
        return 1;
    if (!answer->chosen->places && begin_process(answer->chosen, p) < 0)
        return -ENOMEM;
    while (answer->sites_sent < p->site_count) {
        if (ttm_queue_length(&session->out) > TTM_OUT_LOW)
            return 0;
        const int r = put_site(session, p, answer->sites_sent++);
        if (r < 0)
            return r;
    }
    while (has_room(answer->chosen, p->process)) {
        if (*budget == 0 || ttm_queue_length(&session->out) > TTM_OUT_LOW)
            return 0;
        if (!put_lives(session, p, budget))
            break;
    }
    return 1;
}

int ttm_chosen_lives_continue(struct ttm_session *session)
{
    struct ttm_lives_answer *answer = &session->lives;
    uint32_t budget = LIVES_PER_STEP;

    while (answer->process < answer->snap->process_count) {
        struct ttm_snapshot_process *p = &answer->snap->processes[answer->process];
        const int r = put_process(session, p, &budget);
        if (r <= 0)
            return r;
        ttm_registry_bury(answer->snap->reg, &p->lives);
        free(answer->chosen->places);
        answer->chosen->places = NULL;
        answer->process++;
        answer->sites_sent = 0;
        answer->at = 0;
    }
    ttm_left_out_put(session, &(struct ttm_left_out){.lives = answer->chosen->unsent});
    return 1;
}
