/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue - bytes waiting to be sent: append at the end, consume from the front.
 *
 * Grows by doubling up to the limit its owner gives and hands its memory back
 * when it runs empty, so an idle connection costs nothing.
 */
#ifndef TTM_BASE_QUEUE_H
#define TTM_BASE_QUEUE_H

#include <stddef.h>
#include <stdint.h>

struct ttm_queue {
    uint8_t *data;
    size_t head; /* first byte not yet consumed */
    size_t tail; /* end of the bytes */
    size_t room;
};

void ttm_queue_init(struct ttm_queue *queue);
void ttm_queue_done(struct ttm_queue *queue);

static inline size_t ttm_queue_length(const struct ttm_queue *queue)
{
    return queue->tail - queue->head;
}

static inline const uint8_t *ttm_queue_front(const struct ttm_queue *queue)
{
    return queue->data + queue->head;
}

/*
 * Room for 'length' bytes at the end, to be filled and then taken over with
 * ttm_queue_commit(). Returns NULL when memory is short; the queue is unchanged.
 */
uint8_t *ttm_queue_reserve(struct ttm_queue *queue, size_t length);
void ttm_queue_commit(struct ttm_queue *queue, size_t length);

/* Returns 0 or -ENOMEM; on an error nothing was appended. */
int ttm_queue_append(struct ttm_queue *queue, const void *bytes, size_t length);

/* 'length' is at most ttm_queue_length(). */
void ttm_queue_consume(struct ttm_queue *queue, size_t length);

#endif /* TTM_BASE_QUEUE_H */
