/* SPDX-License-Identifier: Apache-2.0 */
#include "query/answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_TIMEOUT_MS 30000

void ttm_answer_init(struct ttm_answer *answer)
{
    *answer = (struct ttm_answer){0};
}

void ttm_answer_done(struct ttm_answer *answer)
{
    for (size_t i = 0; i < answer->process_count; i++) {
        struct ttm_answer_process *p = &answer->processes[i];
        for (size_t s = 0; s < p->site_count; s++)
            free(p->sites[s].devices);
        for (size_t o = 0; o < p->origin_count; o++)
            ttm_answer_origin_done(&p->origins[o]);
        free(p->origins);
        free(p->marks);
        free(p->failures);
        free(p->sites);
        free(p->devices);
        free(p->lives);
    }
    free(answer->processes);
    free(answer->devices);
    ttm_answer_init(answer);
}

/* Room for one more element; '*count' is raised by the caller. Returns the array or NULL. */
static void *grow(void *array, size_t count, size_t element_size)
{
    if (count & (count - 1)) /* the array has a power of two of places, or none */
        return array;
    return realloc(array, (count ? count * 2 : 1) * element_size);
}

static int take_device(struct ttm_answer *answer, const struct ttm_frame *frame)
{
    void *grown = grow(answer->devices, answer->device_count, sizeof(answer->devices[0]));

    if (!grown)
        return -ENOMEM;
    answer->devices = grown;
    const int r = ttm_device_row_decode(frame->payload, frame->length,
                                        &answer->devices[answer->device_count]);
    if (r == 0)
        answer->device_count++;
    return r;
}

static int take_process(struct ttm_answer *answer, const struct ttm_frame *frame)
{
    void *grown = grow(answer->processes, answer->process_count, sizeof(answer->processes[0]));
    struct ttm_answer_process process = {0};

    if (!grown)
        return -ENOMEM;
    answer->processes = grown;
    const int r = ttm_process_row_decode(frame->payload, frame->length, &process.row);
    if (r < 0)
        return r;
    if (process.row.index != answer->process_count)
        return -EPROTO;
    answer->processes[answer->process_count++] = process;
    return 0;
}

static struct ttm_answer_process *process_at(struct ttm_answer *answer, uint32_t index)
{
    return index < answer->process_count ? &answer->processes[index] : NULL;
}

static int take_process_device(struct ttm_answer *answer, const struct ttm_frame *frame)
{
    struct ttm_process_device_row row;

    int r = ttm_process_device_row_decode(frame->payload, frame->length, &row);
    if (r < 0)
        return r;
    struct ttm_answer_process *p = process_at(answer, row.process_index);
    if (!p)
        return -EPROTO;
    void *grown = grow(p->devices, p->device_count, sizeof(p->devices[0]));
    if (!grown)
        return -ENOMEM;
    p->devices = grown;
    p->devices[p->device_count++] = row;
    return 0;
}

/* The texts lie in one piece of memory, the context first. */
int ttm_answer_origin_copy(const struct ttm_origin_row *row, struct ttm_answer_origin *ret)
{
    const char *const from[] = {row->context,   row->name,   row->thread,
                                row->operation, row->python, row->native};
    char **const to[] = {&ret->context,   &ret->name,   &ret->thread,
                         &ret->operation, &ret->python, &ret->native};
    size_t bytes = 0;

    for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++)
        bytes += strlen(from[i]) + 1;
    char *at = malloc(bytes);
    if (!at)
        return -ENOMEM;
    for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
        const size_t n = strlen(from[i]) + 1;
        memcpy(at, from[i], n);
        *to[i] = at;
        at += n;
    }
    ret->number = row->number;
    return 0;
}

void ttm_answer_origin_done(struct ttm_answer_origin *origin)
{
    free(origin->context); /* the first of one piece */
}

static int take_origin(struct ttm_answer *answer, const struct ttm_frame *frame)
{
    struct ttm_origin_texts *texts = malloc(sizeof(*texts));
    struct ttm_origin_row row;

    if (!texts)
        return -ENOMEM;
    int r = ttm_origin_row_decode(frame->payload, frame->length, texts, &row);
    struct ttm_answer_process *p = r == 0 ? process_at(answer, row.process_index) : NULL;
    if (r == 0 && !p)
        r = -EPROTO;
    void *grown = r == 0 ? grow(p->origins, p->origin_count, sizeof(p->origins[0])) : NULL;
    if (r == 0 && !grown)
        r = -ENOMEM;
    if (r == 0) {
        p->origins = grown;
        r = ttm_answer_origin_copy(&row, &p->origins[p->origin_count]);
    }
    if (r == 0)
        p->origin_count++;
    free(texts);
    return r;
}

static int take_mark(struct ttm_answer *answer, const struct ttm_frame *frame)
{
    struct ttm_mark_row row;

    int r = ttm_mark_row_decode(frame->payload, frame->length, &row);
    if (r < 0)
        return r;
    struct ttm_answer_process *p = process_at(answer, row.process_index);
    if (!p)
        return -EPROTO;
    void *grown = grow(p->marks, p->mark_count, sizeof(p->marks[0]));
    if (!grown)
        return -ENOMEM;
    p->marks = grown;
    p->marks[p->mark_count++] = row;
    return 0;
}

static int take_failure(struct ttm_answer *answer, const struct ttm_frame *frame)
{
    struct ttm_failure_row row;

    int r = ttm_failure_row_decode(frame->payload, frame->length, &row);
    if (r < 0)
        return r;
    struct ttm_answer_process *p = process_at(answer, row.process_index);
    if (!p)
        return -EPROTO;
    void *grown = grow(p->failures, p->failure_count, sizeof(p->failures[0]));
    if (!grown)
        return -ENOMEM;
    p->failures = grown;
    p->failures[p->failure_count++] = row;
    return 0;
}

static int compare_origins(const void *a, const void *b)
{
    const struct ttm_answer_origin *x = a;
    const struct ttm_answer_origin *y = b;

    return x->number < y->number ? -1 : x->number > y->number;
}

static uint32_t index_of_origin(const struct ttm_answer_process *p, uint32_t number)
{
    const struct ttm_answer_origin key = {.number = number};
    const struct ttm_answer_origin *found =
        number != 0 && p->origin_count > 0
            ? bsearch(&key, p->origins, p->origin_count, sizeof(key), compare_origins)
            : NULL;

    return found ? (uint32_t)(found - p->origins) + 1 : 0;
}

static void link_failure(const struct ttm_answer_process *p, struct ttm_failure_row *failure)
{
    failure->origin = index_of_origin(p, failure->origin);
    for (uint32_t i = 0; i < failure->owner_count; i++)
        failure->owners[i].origin = index_of_origin(p, failure->owners[i].origin);
}

/* Sites and failures name origins by number; from here on by index. */
static void link_origins(struct ttm_answer *answer)
{
    for (size_t i = 0; i < answer->process_count; i++) {
        struct ttm_answer_process *p = &answer->processes[i];
        if (p->origin_count > 0)
            qsort(p->origins, p->origin_count, sizeof(p->origins[0]), compare_origins);
        for (size_t s = 0; s < p->site_count; s++)
            p->sites[s].origin = index_of_origin(p, p->sites[s].origin);
        for (size_t f = 0; f < p->failure_count; f++)
            link_failure(p, &p->failures[f]);
    }
}

static int take_site(struct ttm_answer *answer, const struct ttm_frame *frame)
{
    struct ttm_site_row row;

    int r = ttm_site_row_decode(frame->payload, frame->length, &row);
    if (r < 0)
        return r;
    struct ttm_answer_process *p = process_at(answer, row.process_index);
    if (!p || row.site != p->site_count || row.device_count == 0)
        return -EPROTO;
    void *grown = grow(p->sites, p->site_count, sizeof(p->sites[0]));
    if (!grown)
        return -ENOMEM;
    p->sites = grown;
    struct ttm_answer_site site = {
        .births = row.births,
        .ends = row.ends,
        .origin = row.origin,
        .region = row.region,
        .kind = row.kind,
        .flags = row.flags,
        .banks = row.banks,
        .device_count = row.device_count,
        .devices = malloc(row.device_count * sizeof(site.devices[0])),
    };
    if (!site.devices)
        return -ENOMEM;
    memcpy(site.devices, row.devices, row.device_count * sizeof(site.devices[0]));
    p->sites[p->site_count++] = site;
    return 0;
}

static int take_site_sum(struct ttm_answer *answer, const struct ttm_frame *frame)
{
    struct ttm_site_sum sum;

    const int r = ttm_site_sum_decode(frame->payload, frame->length, &sum);
    if (r < 0)
        return r;
    struct ttm_answer_process *p = process_at(answer, sum.process_index);
    if (!p || sum.site >= p->site_count)
        return -EPROTO;
    p->sites[sum.site].has_sum = true;
    p->sites[sum.site].sum = sum;
    return 0;
}

static int reserve_lives(struct ttm_answer_process *p, size_t more)
{
    if (p->live_room - p->live_count >= more)
        return 0;
    size_t room = p->live_room ? p->live_room * 2 : 256;
    while (room - p->live_count < more)
        room *= 2;
    void *grown = realloc(p->lives, room * sizeof(p->lives[0]));
    if (!grown)
        return -ENOMEM;
    p->lives = grown;
    p->live_room = room;
    return 0;
}

static int take_lives(struct ttm_answer *answer, const struct ttm_frame *frame)
{
    uint32_t index;
    const long count = ttm_lives_head_decode(frame->payload, frame->length, &index);

    if (count < 0)
        return (int)count;
    struct ttm_answer_process *p = process_at(answer, index);
    if (!p)
        return -EPROTO;
    if (reserve_lives(p, (size_t)count) < 0)
        return -ENOMEM;
    for (long i = 0; i < count; i++) {
        struct ttm_life_row *row = &p->lives[p->live_count];
        ttm_life_row_decode(frame->payload + TTM_LIVES_HEAD_SIZE + i * TTM_LIFE_ROW_SIZE, row);
        if (row->site >= p->site_count)
            return -EPROTO;
        p->live_count++;
    }
    return 0;
}

static int take_frame(struct ttm_answer *answer, const struct ttm_frame *frame)
{
    switch (frame->type) {
    case TTM_FRAME_TOTALS:
        return ttm_moment_decode(frame->payload, frame->length, &answer->moment);
    case TTM_FRAME_STATUS:
        return ttm_status_decode(frame->payload, frame->length, &answer->status);
    case TTM_FRAME_CHECKED:
        return ttm_checked_decode(frame->payload, frame->length, &answer->checked);
    case TTM_FRAME_DEVICE:
        return take_device(answer, frame);
    case TTM_FRAME_PROCESS:
        return take_process(answer, frame);
    case TTM_FRAME_PROCESS_DEVICE:
        return take_process_device(answer, frame);
    case TTM_FRAME_SITE:
        return take_site(answer, frame);
    case TTM_FRAME_LIVES:
        return take_lives(answer, frame);
    case TTM_FRAME_SITE_SUM:
        return take_site_sum(answer, frame);
    case TTM_FRAME_LEFT_OUT:
        return ttm_left_out_decode(frame->payload, frame->length, &answer->left_out);
    case TTM_FRAME_ORIGIN:
        return take_origin(answer, frame);
    case TTM_FRAME_MARK:
        return take_mark(answer, frame);
    case TTM_FRAME_FAILURE:
        return take_failure(answer, frame);
    default:
        return 0; /* of a newer server */
    }
}

/* Frames up to the end, each within that time. Returns 1, 0 when the time is up, or -errno. */
static int take_frames(struct ttm_connection *conn, int timeout_ms, struct ttm_answer *answer)
{
    while (true) {
        struct ttm_frame frame;
        int r = ttm_connection_receive(conn, timeout_ms, &frame);
        if (r <= 0)
            return r;
        if (frame.type == TTM_FRAME_END) {
            link_origins(answer);
            return 1;
        }
        r = take_frame(answer, &frame);
        if (r < 0)
            return r;
    }
}

int ttm_answer_receive(struct ttm_connection *conn, int timeout_ms, struct ttm_answer *answer)
{
    const int r = take_frames(conn, timeout_ms, answer);

    return r < 0 ? r : r == 0 ? -ETIMEDOUT : 0;
}

int ttm_answer_take(struct ttm_connection *conn, struct ttm_answer *answer)
{
    return take_frames(conn, 0, answer);
}

int ttm_answer_ask(struct ttm_connection *conn, uint16_t request, struct ttm_answer *answer)
{
    const int r = ttm_connection_send(conn, request, NULL, 0);

    return r < 0 ? r : ttm_answer_receive(conn, ANSWER_TIMEOUT_MS, answer);
}

const struct ttm_answer_origin *ttm_answer_origin(const struct ttm_answer_process *process,
                                                  uint32_t origin)
{
    return origin != 0 ? &process->origins[origin - 1] : NULL;
}

const struct ttm_device_row *ttm_answer_device(const struct ttm_answer *answer, unsigned id)
{
    for (size_t i = 0; i < answer->device_count; i++) {
        if (answer->devices[i].id == id)
            return &answer->devices[i];
    }
    return NULL;
}
