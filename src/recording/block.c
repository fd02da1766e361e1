/* SPDX-License-Identifier: Apache-2.0 */
#include "recording/block.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

#include "base/bytes.h"
#include "base/pages.h"
#include "recording/varint.h"

#define FILE_MAGIC "TTMEM\r\n\x1a"
#define END_MAGIC "TTMEMEND"

/* Level 3 takes 10 to 50 % longer and makes nothing smaller: what is left is the noise of times. */
#define LEVEL 1
/*
 * That noise took two thirds of the time of compression, for a sixth of the file. At this level it
 * is mostly stored as it is, and what does repeat is found all the same.
 */
#define NOISE_LEVEL (-10)

/* The largest entry that one record makes in each column; TTM_COLUMN_GROWING on: checked. */
static const uint8_t entry_max[TTM_COLUMN_GROWING] = {
    [TTM_COLUMN_OPS] = 1,       [TTM_COLUMN_TIME_LOW] = 1, [TTM_COLUMN_TIME_MID] = 1,
    [TTM_COLUMN_TIME_HIGH] = 7, [TTM_COLUMN_SITE] = 5,     [TTM_COLUMN_ID] = 10,
    [TTM_COLUMN_ADDRESS] = 11,  [TTM_COLUMN_SERIAL] = 11,  [TTM_COLUMN_DISTANCE] = 10,
};

#define ENTRIES_MAX (1 + 1 + 1 + 7 + 5 + 10 + 11 + 11 + 10)
#define PAGES_SIZE ((size_t)ENTRIES_MAX * TTM_BLOCK_RECORDS_MAX)

_Static_assert(PAGES_SIZE % 4096 == 0, "whole pages");
_Static_assert(TTM_BLOCK_RECORDS_MAX * 11 <= TTM_COLUMN_MAX, "a full column can be read");

int ttm_block_init(struct ttm_block *block)
{
    *block = (struct ttm_block){0};
    block->pages = ttm_pages_alloc(PAGES_SIZE);
    if (!block->pages)
        return -ENOMEM;
    uint8_t *at = block->pages;
    for (size_t i = 0; i < TTM_COLUMN_GROWING; i++) {
        block->columns[i].data = at;
        block->columns[i].room = (size_t)entry_max[i] * TTM_BLOCK_RECORDS_MAX;
        at += block->columns[i].room;
    }
    for (size_t i = TTM_COLUMN_GROWING; i < TTM_COLUMN_COUNT; i++) {
        if (ttm_block_reserve(block, (enum ttm_column_name)i, 1) < 0) {
            ttm_block_done(block);
            return -ENOMEM;
        }
    }
    return 0;
}

void ttm_block_done(struct ttm_block *block)
{
    ttm_pages_free(block->pages, PAGES_SIZE);
    for (size_t i = TTM_COLUMN_GROWING; i < TTM_COLUMN_COUNT; i++)
        free(block->columns[i].data);
    *block = (struct ttm_block){0};
}

void ttm_block_clear(struct ttm_block *block)
{
    block->head = (struct ttm_block_head){0};
    for (size_t i = 0; i < TTM_COLUMN_COUNT; i++)
        block->columns[i].length = 0;
}

int ttm_block_reserve(struct ttm_block *block, enum ttm_column_name name, size_t length)
{
    struct ttm_column *column = &block->columns[name];

    if (column->room - column->length >= length)
        return 0;
    if (name < TTM_COLUMN_GROWING || length > TTM_COLUMN_MAX)
        return -ENOMEM;
    size_t room = column->room ? column->room : 4096;
    while (room - column->length < length)
        room *= 2;
    uint8_t *data = realloc(column->data, room);
    if (!data)
        return -ENOMEM;
    column->data = data;
    column->room = room;
    return 0;
}

struct ttm_packer {
    ZSTD_CCtx *compressor;   /* made when first needed */
    ZSTD_DCtx *decompressor; /* likewise */
    uint8_t *out;
    size_t room;
};

struct ttm_packer *ttm_packer_new(void)
{
    return calloc(1, sizeof(struct ttm_packer));
}

void ttm_packer_free(struct ttm_packer *packer)
{
    if (!packer)
        return;
    (void)ZSTD_freeCCtx(packer->compressor);
    (void)ZSTD_freeDCtx(packer->decompressor);
    free(packer->out);
    free(packer);
}

static void encode_head(const struct ttm_block_head *head, uint8_t *buf)
{
    memcpy(buf, TTM_BLOCK_MAGIC, 8); /* NOLINT(bugprone-not-null-terminated-result): no string */
    put_le16(buf + 8, head->major);
    put_le16(buf + 10, head->minor);
    put_le16(buf + 12, head->kind);
    put_le16(buf + 14, head->flags);
    put_le64(buf + 16, head->file_id);
    put_le64(buf + 24, head->sequence);
    put_le64(buf + 32, head->events_before);
    put_le64(buf + 40, head->first_ns);
    put_le64(buf + 48, head->last_ns);
    put_le64(buf + 56, (uint64_t)head->wall_offset_ns);
    put_le32(buf + 64, head->events);
    put_le32(buf + 68, head->body_bytes);
    put_le64(buf + 72, 0);
    put_le64(buf + 80, head->body_checksum);
    put_le64(buf + 88, XXH64(buf, 88, 0));
}

int ttm_block_head_decode(const uint8_t *buf, struct ttm_block_head *ret)
{
    if (memcmp(buf, TTM_BLOCK_MAGIC, 8) != 0 || get_le64(buf + 88) != XXH64(buf, 88, 0))
        return -EBADMSG;

    const struct ttm_block_head head = {
        .major = get_le16(buf + 8),
        .minor = get_le16(buf + 10),
        .kind = get_le16(buf + 12),
        .flags = get_le16(buf + 14),
        .file_id = get_le64(buf + 16),
        .sequence = get_le64(buf + 24),
        .events_before = get_le64(buf + 32),
        .first_ns = get_le64(buf + 40),
        .last_ns = get_le64(buf + 48),
        .wall_offset_ns = (int64_t)get_le64(buf + 56),
        .events = get_le32(buf + 64),
        .body_bytes = get_le32(buf + 68),
        .body_checksum = get_le64(buf + 80),
    };
    if (head.body_bytes > TTM_BLOCK_BODY_MAX || head.events > TTM_BLOCK_RECORDS_MAX)
        return -EBADMSG;
    *ret = head;
    return head.major == TTM_RECORDING_MAJOR ? 0 : -ENOTSUP;
}

static int make_room(struct ttm_packer *packer, size_t room)
{
    if (packer->room >= room)
        return 0;
    uint8_t *out = malloc(room);
    if (!out)
        return -ENOMEM;
    free(packer->out);
    packer->out = out;
    packer->room = room;
    return 0;
}

static int start_compressor(struct ttm_packer *packer)
{
    if (packer->compressor)
        return 0;
    packer->compressor = ZSTD_createCCtx();
    if (!packer->compressor)
        return -ENOMEM;
    /* The directory of the body has the sizes already. */
    (void)ZSTD_CCtx_setParameter(packer->compressor, ZSTD_c_contentSizeFlag, 0);
    return 0;
}

static void set_level(struct ttm_packer *packer, size_t name)
{
    const bool is_noise = name == TTM_COLUMN_TIME_LOW || name == TTM_COLUMN_TIME_MID;

    (void)ZSTD_CCtx_setParameter(packer->compressor, ZSTD_c_compressionLevel,
                                 is_noise ? NOISE_LEVEL : LEVEL);
}

/*
 * A body: u8 number of columns | for each the varints of its length and of its
 * compressed length | the compressed columns.
 */
int ttm_block_pack(struct ttm_packer *packer, struct ttm_block *block, const uint8_t **ret,
                   size_t *ret_length)
{
    const size_t directory_max = 1 + TTM_COLUMN_COUNT * 2 * TTM_VARINT_MAX;
    size_t room = TTM_BLOCK_HEAD_SIZE + directory_max, packed[TTM_COLUMN_COUNT];
    int r;

    for (size_t i = 0; i < TTM_COLUMN_COUNT; i++)
        room += ZSTD_compressBound(block->columns[i].length);
    r = make_room(packer, room);
    if (r == 0)
        r = start_compressor(packer);
    if (r < 0)
        return r;

    /* Compressed behind the largest directory there can be, then moved up to the one there is. */
    uint8_t *const data = packer->out + TTM_BLOCK_HEAD_SIZE + directory_max;
    uint8_t *at = data;
    for (size_t i = 0; i < TTM_COLUMN_COUNT; i++) {
        const struct ttm_column *column = &block->columns[i];
        packed[i] = 0;
        if (column->length == 0)
            continue;
        set_level(packer, i);
        packed[i] = ZSTD_compress2(packer->compressor, at, room - (size_t)(at - packer->out),
                                   column->data, column->length);
        if (ZSTD_isError(packed[i]))
            return -ENOMEM; /* the one reason that is left: the room is sufficient */
        at += packed[i];
    }

    uint8_t *const body = packer->out + TTM_BLOCK_HEAD_SIZE;
    uint8_t *put = body;
    *put++ = TTM_COLUMN_COUNT;
    for (size_t i = 0; i < TTM_COLUMN_COUNT; i++) {
        put += ttm_varint_put(put, block->columns[i].length);
        put += ttm_varint_put(put, packed[i]);
    }
    memmove(put, data, (size_t)(at - data));
    put += at - data;

    block->head.body_bytes = (uint32_t)(put - body);
    block->head.body_checksum = XXH64(body, (size_t)(put - body), 0);
    encode_head(&block->head, packer->out);
    *ret = packer->out;
    *ret_length = (size_t)(put - packer->out);
    return 0;
}

static int unpack_column(struct ttm_packer *packer, struct ttm_block *block, size_t name,
                         const uint8_t *packed, size_t packed_length, size_t length)
{
    struct ttm_column *column = &block->columns[name];

    if (length > TTM_COLUMN_MAX || (name < TTM_COLUMN_GROWING && length > column->room))
        return -EBADMSG;
    if (length == 0)
        return packed_length == 0 ? 0 : -EBADMSG;
    if (ttm_block_reserve(block, (enum ttm_column_name)name, length) < 0)
        return -ENOMEM;
    const size_t n =
        ZSTD_decompressDCtx(packer->decompressor, column->data, length, packed, packed_length);
    if (ZSTD_isError(n) || n != length)
        return -EBADMSG;
    column->length = length;
    return 0;
}

static int unpack_columns(struct ttm_packer *packer, const uint8_t *body, size_t body_length,
                          struct ttm_block *block)
{
    const uint8_t *at = body, *const end = body + body_length;
    uint64_t length[UINT8_MAX], packed[UINT8_MAX];

    if (body_length < 1)
        return -EBADMSG;
    const size_t count = *at++;
    if (count < TTM_COLUMN_LEAST) /* more is fine: a newer writer added columns */
        return -EBADMSG;
    for (size_t i = 0; i < count; i++) {
        if (!ttm_varint_get(&at, end, &length[i]) || !ttm_varint_get(&at, end, &packed[i]))
            return -EBADMSG;
    }
    for (size_t i = 0; i < count; i++) {
        if (packed[i] > (size_t)(end - at))
            return -EBADMSG;
        if (i < TTM_COLUMN_COUNT) {
            const int r = unpack_column(packer, block, i, at, packed[i], length[i]);
            if (r < 0)
                return r;
        }
        at += packed[i];
    }
    return at == end ? 0 : -EBADMSG;
}

int ttm_block_unpack(struct ttm_packer *packer, const struct ttm_block_head *head,
                     const uint8_t *body, struct ttm_block *block)
{
    ttm_block_clear(block);
    if (XXH64(body, head->body_bytes, 0) != head->body_checksum)
        return -EBADMSG;
    if (!packer->decompressor)
        packer->decompressor = ZSTD_createDCtx();
    if (!packer->decompressor)
        return -ENOMEM;

    const int r = unpack_columns(packer, body, head->body_bytes, block);
    if (r < 0) {
        ttm_block_clear(block);
        return r;
    }
    block->head = *head;
    return 0;
}

void ttm_file_head_encode(uint64_t file_id, uint8_t buf[TTM_FILE_HEAD_SIZE])
{
    memcpy(buf, FILE_MAGIC, 8); /* NOLINT(bugprone-not-null-terminated-result): no string */
    put_le16(buf + 8, TTM_RECORDING_MAJOR);
    put_le16(buf + 10, TTM_RECORDING_MINOR);
    put_le32(buf + 12, 0);
    put_le64(buf + 16, file_id);
    put_le64(buf + 24, XXH64(buf, 24, 0));
}

int ttm_file_head_decode(const uint8_t *buf, uint64_t *ret_file_id)
{
    if (memcmp(buf, FILE_MAGIC, 8) != 0 || get_le64(buf + 24) != XXH64(buf, 24, 0))
        return -EBADMSG;
    *ret_file_id = get_le64(buf + 16);
    return get_le16(buf + 8) == TTM_RECORDING_MAJOR ? 0 : -ENOTSUP;
}

void ttm_file_end_encode(uint64_t file_id, uint64_t index_offset, uint8_t buf[TTM_FILE_END_SIZE])
{
    memcpy(buf, END_MAGIC, 8); /* NOLINT(bugprone-not-null-terminated-result): no string */
    put_le64(buf + 8, file_id);
    put_le64(buf + 16, index_offset);
    put_le64(buf + 24, XXH64(buf, 24, 0));
}

int ttm_file_end_decode(const uint8_t *buf, uint64_t file_id, uint64_t *ret_index_offset)
{
    if (memcmp(buf, END_MAGIC, 8) != 0 || get_le64(buf + 24) != XXH64(buf, 24, 0) ||
        get_le64(buf + 8) != file_id)
        return -EBADMSG;
    *ret_index_offset = get_le64(buf + 16);
    return 0;
}
