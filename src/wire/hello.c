/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/hello.h"

#include <errno.h>

#include "base/bytes.h"
#include "wire/frame.h"

struct ttm_hello ttm_hello_own(int32_t pid)
{
    return (struct ttm_hello){
        .major = TTM_HELLO_MAJOR,
        .minor = TTM_HELLO_MINOR,
        .optional = TTM_HELLO_OPTIONAL,
        .required = TTM_HELLO_REQUIRED,
        .pid = pid,
        .software = TTM_VERSION,
    };
}

void ttm_hello_encode(const struct ttm_hello *hello, uint8_t buf[TTM_HELLO_SIZE])
{
    put_le32(buf, TTM_HELLO_MAGIC);
    put_le16(buf + 4, hello->major);
    put_le16(buf + 6, hello->minor);
    put_le64(buf + 8, hello->optional);
    put_le64(buf + 16, hello->required);
    put_le32(buf + 24, (uint32_t)hello->pid);
    put_le32(buf + 28, 0);
    memset(buf + 32, 0, TTM_HELLO_SOFTWARE_SIZE);
    memcpy(buf + 32, hello->software, strnlen(hello->software, TTM_HELLO_SOFTWARE_SIZE - 1));
}

int ttm_hello_decode(const uint8_t *buf, size_t len, struct ttm_hello *ret)
{
    if (len < TTM_HELLO_SIZE || get_le32(buf) != TTM_HELLO_MAGIC)
        return -EBADMSG;
    *ret = (struct ttm_hello){
        .major = get_le16(buf + 4),
        .minor = get_le16(buf + 6),
        .optional = get_le64(buf + 8),
        .required = get_le64(buf + 16),
        .pid = (int32_t)get_le32(buf + 24),
    };
    memcpy(ret->software, buf + 32, TTM_HELLO_SOFTWARE_SIZE - 1);
    return 0;
}

bool ttm_hello_begins(const uint8_t buf[TTM_HELLO_PROBE_SIZE])
{
    return get_le16(buf) == TTM_FRAME_HELLO && get_le32(buf + 4) >= TTM_HELLO_SIZE &&
           get_le32(buf + TTM_FRAME_HEADER_SIZE) == TTM_HELLO_MAGIC;
}

int ttm_hello_check(const struct ttm_hello *peer)
{
    if (peer->major != TTM_HELLO_MAJOR)
        return -EPROTONOSUPPORT;
    if (peer->required & ~(TTM_HELLO_OPTIONAL | TTM_HELLO_REQUIRED))
        return -EPROTONOSUPPORT;
    return 0;
}
