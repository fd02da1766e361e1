/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/attach.h"

#include <errno.h>

#include "base/bytes.h"

void ttm_attach_encode(uint64_t run, uint8_t buf[TTM_ATTACH_SIZE])
{
    put_le64(buf, run);
}

uint64_t ttm_attach_decode(const uint8_t *buf, size_t len)
{
    return len < TTM_ATTACH_SIZE ? 0 : get_le64(buf); /* an older sender has none */
}

void ttm_told_head_encode(uint32_t epoch, uint32_t count, uint8_t buf[TTM_TOLD_HEAD_SIZE])
{
    put_le32(buf, epoch);
    put_le32(buf + 4, count);
}

long ttm_told_head_decode(const uint8_t *buf, size_t len, uint32_t *ret_epoch)
{
    if (len < TTM_TOLD_HEAD_SIZE)
        return -EBADMSG;
    const uint32_t count = get_le32(buf + 4);
    if ((len - TTM_TOLD_HEAD_SIZE) / TTM_TOLD_SIZE < count)
        return -EBADMSG;
    *ret_epoch = get_le32(buf);
    return (long)count;
}

void ttm_told_announce_encode(uint32_t epoch, uint32_t lives, uint8_t buf[TTM_TOLD_ANNOUNCE_SIZE])
{
    ttm_told_head_encode(epoch, 0, buf);
    put_le32(buf + TTM_TOLD_HEAD_SIZE, lives);
}

uint32_t ttm_told_announced(const uint8_t *buf, size_t len)
{
    if (len < TTM_TOLD_ANNOUNCE_SIZE || get_le32(buf + 4) != 0)
        return 0;
    return get_le32(buf + TTM_TOLD_HEAD_SIZE);
}
