/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/frame.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/queue.h"

long ttm_frame_parse(const uint8_t *buf, size_t len, uint32_t max, struct ttm_frame *ret)
{
    if (len < TTM_FRAME_HEADER_SIZE)
        return 0;

    struct ttm_frame frame = {
        .type = get_le16(buf),
        .length = get_le32(buf + 4),
        .payload = buf + TTM_FRAME_HEADER_SIZE,
    };
    if (frame.length > max)
        return -EMSGSIZE;
    if (len - TTM_FRAME_HEADER_SIZE < frame.length)
        return 0;
    *ret = frame;
    return (long)(TTM_FRAME_HEADER_SIZE + frame.length);
}

size_t ttm_frame_missing(const uint8_t *buf, size_t len)
{
    if (len < TTM_FRAME_HEADER_SIZE)
        return TTM_FRAME_HEADER_SIZE - len;
    const size_t size = TTM_FRAME_HEADER_SIZE + (size_t)get_le32(buf + 4);
    return len < size ? size - len : 0;
}

void ttm_frame_header_encode(uint16_t type, uint32_t length, uint8_t buf[TTM_FRAME_HEADER_SIZE])
{
    put_le16(buf, type);
    put_le16(buf + 2, 0);
    put_le32(buf + 4, length);
}

uint8_t *ttm_frame_begin(struct ttm_queue *out, uint16_t type, uint32_t length)
{
    uint8_t *p = ttm_queue_reserve(out, TTM_FRAME_HEADER_SIZE + (size_t)length);

    if (!p)
        return NULL;
    ttm_frame_header_encode(type, length, p);
    ttm_queue_commit(out, TTM_FRAME_HEADER_SIZE + (size_t)length);
    return p + TTM_FRAME_HEADER_SIZE;
}

int ttm_frame_append(struct ttm_queue *out, uint16_t type, const void *payload, uint32_t length)
{
    uint8_t *p = ttm_frame_begin(out, type, length);

    if (!p)
        return -ENOMEM;
    if (length > 0)
        memcpy(p, payload, length);
    return 0;
}
