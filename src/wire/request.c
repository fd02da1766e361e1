/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/request.h"

#include <errno.h>

#include "base/bytes.h"

#define EVENTS_ALL_DEVICES 1u
#define EVENTS_LAST_WORDS 2u

void ttm_number_request_encode(uint32_t number, uint8_t buf[TTM_NUMBER_REQUEST_SIZE])
{
    put_le32(buf, number);
    put_le32(buf + 4, 0);
}

int ttm_number_request_decode(const uint8_t *buf, size_t len, uint32_t *ret)
{
    if (len < TTM_NUMBER_REQUEST_SIZE)
        return -EBADMSG;
    *ret = get_le32(buf);
    return 0;
}

void ttm_events_request_encode(const struct ttm_events_request *request,
                               uint8_t buf[TTM_EVENTS_REQUEST_SIZE])
{
    put_le32(buf, (uint32_t)request->pid);
    put_le32(buf + 4, (request->devices.is_all ? EVENTS_ALL_DEVICES : 0) |
                          (request->has_last_words ? EVENTS_LAST_WORDS : 0));
    memcpy(buf + 8, request->devices.bits, TTM_DEVICE_BITS_SIZE);
}

int ttm_events_request_decode(const uint8_t *buf, size_t len, struct ttm_events_request *ret)
{
    if (len < TTM_EVENTS_REQUEST_SIZE)
        return -EBADMSG;
    ret->pid = (int32_t)get_le32(buf);
    ret->devices.is_all = (get_le32(buf + 4) & EVENTS_ALL_DEVICES) != 0;
    ret->has_last_words = (get_le32(buf + 4) & EVENTS_LAST_WORDS) != 0;
    memcpy(ret->devices.bits, buf + 8, TTM_DEVICE_BITS_SIZE);
    return 0;
}

void ttm_lives_request_encode(const struct ttm_lives_request *request,
                              uint8_t buf[TTM_LIVES_REQUEST_SIZE])
{
    put_le32(buf, request->most);
    put_le32(buf + 4, request->frames);
    put_le16(buf + 8, request->device);
    buf[10] = request->region;
    buf[11] = request->origin_region;
    put_le32(buf + 12, (uint32_t)request->pid);
    put_le32(buf + 16, request->origin);
    put_le32(buf + 20, 0);
}

int ttm_lives_request_decode(const uint8_t *buf, size_t len, struct ttm_lives_request *ret)
{
    if (len < TTM_LIVES_REQUEST_SIZE)
        return -EBADMSG;
    *ret = (struct ttm_lives_request){
        .most = get_le32(buf),
        .frames = get_le32(buf + 4),
        .device = get_le16(buf + 8),
        .region = buf[10],
        .origin_region = buf[11],
        .pid = (int32_t)get_le32(buf + 12),
        .origin = get_le32(buf + 16),
    };
    return ret->device < TTM_DEVICE_COUNT && ret->region < TTM_REGION_COUNT &&
                   ret->origin_region < TTM_REGION_COUNT
               ? 0
               : -EBADMSG;
}
