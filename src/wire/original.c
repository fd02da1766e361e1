/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which layout? The stream is messages of one size S, 72, 112 or 144, and the
 * first 40 bytes of each are the same in all three:
 *
 *   0 type u8 | 4 device i32 | 8 size u64 | 16 buffer type u8 | 20 pid i32 |
 *   24 buffer id u64 | 32 timestamp u64 | 40 … counters, zero in a client's messages
 *
 * So byte S of a stream of S-byte messages is a type (1 to 12), and in a stream
 * of longer messages it is the low byte of a counter that clients leave zero.
 * A size is refuted when byte S is no type; it is proven when a whole plausible
 * header stands at S. The smallest proven size wins. A single message proves
 * nothing (72 bytes may be the start of 112), so then silence decides; a
 * decision by silence is tentative, and when the next bytes cannot be a header
 * they are the tail of the message already taken: the layout widens, the tail
 * is passed over, and no byte is ever read as two messages.
 */
#include "wire/original.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/region.h"

/* As much of a header as is_header() looks at. */
#define HEADER_SIZE 20
/* With this many bytes every layout has shown its second header. */
#define ENOUGH (TTM_ORIGINAL_V144 + HEADER_SIZE)

static const uint16_t layouts[] = {TTM_ORIGINAL_V72, TTM_ORIGINAL_V112, TTM_ORIGINAL_V144};
#define LAYOUT_COUNT (sizeof(layouts) / sizeof(layouts[0]))

static bool is_type(uint8_t byte)
{
    return byte >= TTM_ORIGINAL_ALLOC && byte <= TTM_ORIGINAL_DUMP_KERNELS;
}

static bool is_header(const uint8_t *p)
{
    const int32_t device = (int32_t)get_le32(p + 4);

    return is_type(p[0]) && p[1] == 0 && p[2] == 0 && p[3] == 0 && p[17] == 0 && p[18] == 0 &&
           p[19] == 0 && p[16] < TTM_REGION_COUNT && device >= -1 && device < TTM_DEVICE_COUNT;
}

/* Where the fields behind the four common counters stand; 0 = not in this layout. */
struct offsets {
    uint8_t cb;   /* cb_allocated, kernel_allocated */
    uint8_t info; /* total_dram_size … num_devices */
};

static struct offsets offsets_of(enum ttm_original_layout layout)
{
    switch (layout) {
    case TTM_ORIGINAL_V112:
        return (struct offsets){.info = 72};
    case TTM_ORIGINAL_V144:
        return (struct offsets){.cb = 72, .info = 88};
    case TTM_ORIGINAL_V72:
        break;
    }
    return (struct offsets){0};
}

void ttm_original_encode(const struct ttm_original_message *msg, enum ttm_original_layout layout,
                         uint8_t *buf)
{
    const struct offsets at = offsets_of(layout);

    memset(buf, 0, layout);
    buf[0] = msg->type;
    put_le32(buf + 4, (uint32_t)msg->device_id);
    put_le64(buf + 8, msg->size);
    buf[16] = msg->buffer_type;
    put_le32(buf + 20, (uint32_t)msg->process_id);
    put_le64(buf + 24, msg->buffer_id);
    put_le64(buf + 32, msg->timestamp);
    put_le64(buf + 40, msg->dram_allocated);
    put_le64(buf + 48, msg->l1_allocated);
    put_le64(buf + 56, msg->l1_small_allocated);
    put_le64(buf + 64, msg->trace_allocated);
    if (at.cb) {
        put_le64(buf + at.cb, msg->cb_allocated);
        put_le64(buf + at.cb + 8, msg->kernel_allocated);
    }
    if (at.info) {
        uint8_t *info = buf + at.info;
        put_le64(info, msg->total_dram_size);
        put_le64(info + 8, msg->total_l1_size);
        put_le32(info + 16, msg->arch_type);
        put_le32(info + 20, msg->num_dram_channels);
        put_le32(info + 24, msg->dram_size_per_channel);
        put_le32(info + 28, msg->l1_size_per_core);
        put_le32(info + 32, msg->is_available);
        put_le32(info + 36, msg->num_devices);
    }
}

int ttm_original_decode(const uint8_t *buf, enum ttm_original_layout layout,
                        struct ttm_original_message *ret)
{
    const struct offsets at = offsets_of(layout);

    if (!is_type(buf[0]))
        return -EBADMSG;
    *ret = (struct ttm_original_message){
        .type = buf[0],
        .device_id = (int32_t)get_le32(buf + 4),
        .size = get_le64(buf + 8),
        .buffer_type = buf[16],
        .process_id = (int32_t)get_le32(buf + 20),
        .buffer_id = get_le64(buf + 24),
        .timestamp = get_le64(buf + 32),
        .dram_allocated = get_le64(buf + 40),
        .l1_allocated = get_le64(buf + 48),
        .l1_small_allocated = get_le64(buf + 56),
        .trace_allocated = get_le64(buf + 64),
    };
    if (at.cb) {
        ret->cb_allocated = get_le64(buf + at.cb);
        ret->kernel_allocated = get_le64(buf + at.cb + 8);
    }
    if (at.info) {
        const uint8_t *info = buf + at.info;
        ret->total_dram_size = get_le64(info);
        ret->total_l1_size = get_le64(info + 8);
        ret->arch_type = get_le32(info + 16);
        ret->num_dram_channels = get_le32(info + 20);
        ret->dram_size_per_channel = get_le32(info + 24);
        ret->l1_size_per_core = get_le32(info + 28);
        ret->is_available = get_le32(info + 32);
        ret->num_devices = get_le32(info + 36);
    }
    return 0;
}

void ttm_original_reader_init(struct ttm_original_reader *reader)
{
    memset(reader, 0, offsetof(struct ttm_original_reader, stash));
}

static size_t stash_length(const struct ttm_original_reader *reader)
{
    return (size_t)(reader->stash_end - reader->stash_at);
}

/* Moves input into the stash until it holds 'want' bytes. Returns whether it does. */
static bool fill_stash(struct ttm_original_reader *reader, size_t want)
{
    const size_t have = stash_length(reader);

    if (have >= want)
        return true;
    if (reader->stash_at > 0) {
        memmove(reader->stash, reader->stash + reader->stash_at, have);
        reader->stash_at = 0;
        reader->stash_end = (uint16_t)have;
    }
    size_t n = want - have;
    if (n > reader->input_length)
        n = reader->input_length;
    if (n > 0) {
        memcpy(reader->stash + have, reader->input, n);
        reader->input += n;
        reader->input_length -= n;
        reader->stash_end = (uint16_t)(have + n);
    }
    return have + n >= want;
}

/*
 * The layout that the first 'n' bytes of a stream show: its size, 0 when they
 * leave it open, -EBADMSG when they fit none.
 */
static int decide(const uint8_t *p, size_t n, bool is_silent)
{
    int smallest = 0, alive = 0;

    if (n > 0 && !is_type(p[0]))
        return -EBADMSG;
    for (size_t i = 0; i < LAYOUT_COUNT; i++) {
        const size_t size = layouts[i];
        /* Every second message of the smallest layout stands where the largest has its next. The
         * three bytes behind a type are zero, those of a filled-in counter seldom are. */
        const bool is_two = smallest != 0 && size == 2 * (size_t)smallest && n > size &&
                            get_le32(p + smallest) <= TTM_ORIGINAL_DUMP_KERNELS;
        if (n >= size + HEADER_SIZE && is_header(p + size) && !is_two)
            return layouts[i];
        if (n > size && !is_type(p[size]))
            continue;
        alive++;
        if (!smallest)
            smallest = layouts[i];
    }
    if (alive == 0)
        return -EBADMSG;
    if (n >= ENOUGH || (alive == 1 && n >= (size_t)smallest))
        return smallest;
    if (!is_silent)
        return 0;
    for (size_t i = 0; i < LAYOUT_COUNT; i++) {
        const size_t size = layouts[i];
        /* A whole message, and where there is more, the type of the next. */
        if (n == size || (n > size && is_type(p[size])))
            return layouts[i];
    }
    return 0;
}

void ttm_original_reader_push(struct ttm_original_reader *reader, const uint8_t *bytes,
                              size_t length)
{
    assert(reader->input_length == 0);
    reader->input = bytes;
    reader->input_length = length;
}

/* Returns 1 once the layout is known, 0 while it is open, -EBADMSG. */
static int find_layout(struct ttm_original_reader *reader)
{
    (void)fill_stash(reader, ENOUGH);
    const int r = decide(reader->stash + reader->stash_at, stash_length(reader), false);
    if (r <= 0)
        return r;
    reader->layout = (uint16_t)r;
    return 1;
}

/* Pointer to 'n' consecutive bytes that are consumed by this, or NULL when they are not there yet. */
static const uint8_t *take(struct ttm_original_reader *reader, size_t n)
{
    const uint8_t *bytes;

    if (stash_length(reader) == 0 && reader->input_length >= n) {
        bytes = reader->input;
        reader->input += n;
        reader->input_length -= n;
        return bytes;
    }
    if (!fill_stash(reader, n))
        return NULL;
    bytes = reader->stash + reader->stash_at;
    reader->stash_at = (uint16_t)(reader->stash_at + n);
    return bytes;
}

static void pass_over(struct ttm_original_reader *reader)
{
    while (reader->skip > 0 && take(reader, 1))
        reader->skip--;
}

/* The first byte that is waiting, or -1. */
static int peek(const struct ttm_original_reader *reader)
{
    if (stash_length(reader) > 0)
        return reader->stash[reader->stash_at];
    return reader->input_length > 0 ? reader->input[0] : -1;
}

static int widen(struct ttm_original_reader *reader)
{
    const uint16_t wider =
        reader->layout == TTM_ORIGINAL_V72 ? TTM_ORIGINAL_V112 : TTM_ORIGINAL_V144;

    if (!reader->is_tentative || reader->layout == TTM_ORIGINAL_V144)
        return -EBADMSG;
    reader->skip = (uint16_t)(wider - reader->layout);
    reader->layout = wider;
    return 0;
}

int ttm_original_reader_next(struct ttm_original_reader *reader, struct ttm_original_message *ret)
{
    if (reader->layout == 0) {
        const int r = find_layout(reader);
        if (r <= 0)
            return r;
    }
    while ((reader->is_tentative && reader->has_taken) || reader->skip > 0) {
        pass_over(reader);
        const int first = peek(reader);
        if (first < 0)
            return 0;
        if (is_type((uint8_t)first)) {
            reader->is_tentative = false;
        } else {
            const int r = widen(reader);
            if (r < 0)
                return r;
        }
    }
    const uint8_t *bytes = take(reader, reader->layout);
    if (!bytes) {
        const int first = peek(reader);
        return first >= 0 && !is_type((uint8_t)first) ? -EBADMSG : 0;
    }
    reader->has_taken = true;
    const int r = ttm_original_decode(bytes, (enum ttm_original_layout)reader->layout, ret);
    return r < 0 ? r : 1;
}

void ttm_original_reader_keep(struct ttm_original_reader *reader)
{
    /* next() stops only when less than one message, or less than ENOUGH, is left. */
    (void)fill_stash(reader, stash_length(reader) + reader->input_length);
    assert(reader->input_length == 0);
    reader->input = NULL;
}

const uint8_t *ttm_original_reader_peek(struct ttm_original_reader *reader, size_t n)
{
    assert(n <= ENOUGH);
    if (reader->layout != 0 || !fill_stash(reader, n))
        return NULL;
    return reader->stash + reader->stash_at;
}

struct ttm_original_rest ttm_original_reader_give_up(struct ttm_original_reader *reader)
{
    const struct ttm_original_rest rest = {
        .stash = reader->stash + reader->stash_at,
        .stash_length = stash_length(reader),
        .input = reader->input,
        .input_length = reader->input_length,
    };

    ttm_original_reader_init(reader);
    return rest;
}

void ttm_original_reader_silence(struct ttm_original_reader *reader)
{
    if (reader->layout != 0)
        return;
    const int r = decide(reader->stash + reader->stash_at, stash_length(reader), true);
    if (r > 0) {
        reader->layout = (uint16_t)r;
        reader->is_tentative = true;
    }
}

bool ttm_original_reader_is_waiting(const struct ttm_original_reader *reader)
{
    return reader->layout == 0 && stash_length(reader) > 0;
}

size_t ttm_original_reader_leftover(const struct ttm_original_reader *reader)
{
    return stash_length(reader);
}
