/* SPDX-License-Identifier: Apache-2.0 */
#include "base/queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 512
#define KEEP_ROOM 16384 /* an empty queue larger than this gives its memory back */

void ttm_queue_init(struct ttm_queue *queue)
{
    *queue = (struct ttm_queue){0};
}

void ttm_queue_done(struct ttm_queue *queue)
{
    free(queue->data);
    ttm_queue_init(queue);
}

uint8_t *ttm_queue_reserve(struct ttm_queue *queue, size_t length)
{
    if (queue->room - queue->tail >= length && queue->data)
        return queue->data + queue->tail;

    const size_t used = ttm_queue_length(queue);
    if (queue->data && queue->room - used >= length && queue->head >= queue->room / 2) {
        if (used > 0)
            memmove(queue->data, queue->data + queue->head, used);
    } else {
        size_t room = queue->room ? queue->room : FIRST_ROOM;
        while (room - used < length)
            room *= 2;
        uint8_t *data = malloc(room);
        if (!data)
            return NULL;
        if (used > 0 && queue->data)
            memcpy(data, queue->data + queue->head, used);
        free(queue->data);
        queue->data = data;
        queue->room = room;
    }
    queue->head = 0;
    queue->tail = used;
    return queue->data + used;
}

void ttm_queue_commit(struct ttm_queue *queue, size_t length)
{
    assert(length <= queue->room - queue->tail);
    queue->tail += length;
}

int ttm_queue_append(struct ttm_queue *queue, const void *bytes, size_t length)
{
    uint8_t *room = ttm_queue_reserve(queue, length);

    if (!room)
        return -ENOMEM;
    memcpy(room, bytes, length);
    ttm_queue_commit(queue, length);
    return 0;
}

void ttm_queue_consume(struct ttm_queue *queue, size_t length)
{
    assert(length <= ttm_queue_length(queue));
    queue->head += length;
    if (queue->head < queue->tail)
        return;
    queue->head = 0;
    queue->tail = 0;
    if (queue->room > KEEP_ROOM)
        ttm_queue_done(queue);
}
