/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/event.h"

#include <errno.h>

#include "base/bytes.h"
#include "wire/region.h"

void ttm_event_encode(const struct ttm_event *event, uint8_t buf[TTM_EVENT_SIZE])
{
    put_le64(buf, event->time_ns);
    put_le64(buf + 8, event->id);
    put_le64(buf + 16, event->address);
    put_le64(buf + 24, event->bytes);
    put_le64(buf + 32, event->footprint_bytes);
    put_le64(buf + 40, event->total_bytes);
    put_le32(buf + 48, (uint32_t)event->pid);
    put_le16(buf + 52, event->device_id);
    buf[54] = event->op;
    buf[55] = event->region;
    buf[56] = event->kind;
    memset(buf + 57, 0, 3);
    put_le32(buf + 60, event->origin);
}

int ttm_event_decode(const uint8_t *buf, size_t len, struct ttm_event *ret)
{
    if (len < TTM_EVENT_SIZE)
        return -EBADMSG;

    struct ttm_event event = {
        .time_ns = get_le64(buf),
        .id = get_le64(buf + 8),
        .address = get_le64(buf + 16),
        .bytes = get_le64(buf + 24),
        .footprint_bytes = get_le64(buf + 32),
        .total_bytes = get_le64(buf + 40),
        .pid = (int32_t)get_le32(buf + 48),
        .device_id = get_le16(buf + 52),
        .op = buf[54],
        .region = buf[55],
        .kind = buf[56],
        .origin = get_le32(buf + 60),
    };
    if (event.op >= TTM_EVENT_OP_COUNT || event.region >= TTM_REGION_COUNT ||
        event.kind >= TTM_KERNEL_KIND_COUNT || event.device_id >= TTM_DEVICE_COUNT)
        return -EBADMSG;
    *ret = event;
    return 0;
}
