/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of recordings. An input that begins with 0 is, behind that byte, a
 * file. No fuzzer guesses checksums, so any other is blocks as they are once
 * unpacked, for the decoder alone; each:
 *
 *   0 flags: 1 a section, 2 one block is missing before it, 4 it cannot be read |
 *   1 … length of each column, u8, of the last two u16 | the columns
 *
 * Whatever comes in, what goes out has to fit together.
 */
#include "fuzzing.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/u64_map.h"
#include "recording/block.h"
#include "recording/decoder.h"
#include "recording/recording.h"

/* What is live, by process and slot. */
struct mirror {
    struct ttm_u64_map live; /* → a number made of the serial */
    uint64_t births, ends;
};

static uint64_t key_of(const struct ttm_recorded_life *life)
{
    return (uint64_t)life->process << 32 | life->slot;
}

static uint32_t check_of(const struct ttm_recorded_life *life)
{
    return (uint32_t)(life->serial * 31 + life->bytes);
}

static void touch(const void *bytes, size_t length)
{
    volatile uint8_t sum = 0;

    for (size_t i = 0; i < length; i++)
        sum = (uint8_t)(sum + ((const uint8_t *)bytes)[i]);
}

static void see_life(struct mirror *mirror, const struct ttm_recorded *record)
{
    const struct ttm_recorded_life *life = record->life;
    uint32_t check = 0;

    MUST(life);
    MUST(life->region < TTM_REGION_COUNT && life->kind < TTM_KERNEL_KIND_COUNT);
    MUST(life->bytes <= TTM_RECORDED_BYTES_MAX && life->footprint_bytes <= TTM_RECORDED_BYTES_MAX);
    MUST(life->process == record->process);
    switch (record->type) {
    case TTM_RECORDED_BIRTH:
        MUST(ttm_u64_map_add(&mirror->live, key_of(life), check_of(life)) == 0);
        mirror->births++;
        break;
    case TTM_RECORDED_END:
        MUST(record->how < TTM_ENDED_COUNT);
        MUST(ttm_u64_map_take(&mirror->live, key_of(life), &check) && check == check_of(life));
        mirror->ends++;
        break;
    default:
        MUST(ttm_u64_map_find(&mirror->live, key_of(life), &check) && check == check_of(life));
    }
}

static void see(struct mirror *mirror, const struct ttm_recorded *record)
{
    switch (record->type) {
    case TTM_RECORDED_BIRTH:
    case TTM_RECORDED_END:
    case TTM_RECORDED_RENAME:
        see_life(mirror, record);
        break;
    case TTM_RECORDED_PROCESS:
        MUST(record->seen.source < TTM_SOURCE_COUNT);
        touch(record->seen.command, record->seen.command_length);
        break;
    case TTM_RECORDED_PROCESS_END:
        MUST(record->end.how < TTM_PROCESS_HOW_COUNT);
        break;
    case TTM_RECORDED_DEVICE:
        MUST(record->device.id < TTM_DEVICE_COUNT);
        touch(record->device.board, record->device.board_length);
        break;
    case TTM_RECORDED_NOTE:
        touch(record->note.bytes, record->note.length);
        break;
    case TTM_RECORDED_MARK:
        touch(record->mark.name, record->mark.name_length);
        break;
    default:
        MUST(record->type <= TTM_RECORDED_GAP);
    }
}

static void read_all(struct ttm_recording *rec, struct mirror *mirror)
{
    const struct ttm_recorded *record;
    unsigned errors = 0;
    int r;

    while ((r = ttm_recording_next(rec, &record)) != 0 && errors < 10000) {
        errors += r < 0;
        if (r > 0)
            see(mirror, record);
    }
}

static void try_file(const uint8_t *data, size_t size)
{
    struct mirror mirror = {0};
    struct ttm_recording *rec = NULL;
    struct ttm_recording_info info;
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);

    MUST(fd >= 0);
    MUST(write(fd, data, size) == (ssize_t)size);
    if (ttm_recording_open_fd(fd, &rec) < 0) {
        (void)close(fd);
        return;
    }
    read_all(rec, &mirror);
    ttm_recording_info(rec, &info);
    MUST(info.offset <= size || info.offset <= TTM_FILE_HEAD_SIZE);
    ttm_u64_map_done(&mirror.live);
    MUST(ttm_recording_seek(rec, info.last_ns / 2) == 0);
    read_all(rec, &mirror);
    ttm_u64_map_done(&mirror.live);
    ttm_recording_close(rec);
}

struct input {
    const uint8_t *at;
    size_t left;
};

static uint8_t take(struct input *input)
{
    if (input->left == 0)
        return 0;
    input->left--;
    return *input->at++;
}

#define HAS_BANKS 0x8000u /* in the length of the column before it */

/* Columns of exactly the bytes that they have; that of banks only where it is said to be there. */
static void take_columns(struct input *input, struct ttm_block *block)
{
    size_t lengths[TTM_COLUMN_COUNT] = {0};

    for (size_t i = 0; i < TTM_COLUMN_LEAST; i++) {
        lengths[i] = take(input);
        if (i >= TTM_COLUMN_GROWING)
            lengths[i] |= (size_t)take(input) << 8;
    }
    if (lengths[TTM_COLUMN_BYTES] & HAS_BANKS)
        lengths[TTM_COLUMN_BANKS] = take(input);
    lengths[TTM_COLUMN_BYTES] &= ~(size_t)HAS_BANKS;
    for (size_t i = 0; i < TTM_COLUMN_COUNT; i++) {
        const size_t length = lengths[i] < input->left ? lengths[i] : input->left;
        block->columns[i].data = exact_copy(input->at, length);
        block->columns[i].length = length;
        input->at += length;
        input->left -= length;
    }
}

static void try_blocks(struct input *input)
{
    struct ttm_decoder *dec = ttm_decoder_new(1);
    const struct ttm_recorded *record;
    struct mirror mirror = {0};
    uint64_t sequence = 0;

    MUST(dec);
    for (int n = 0; n < 64 && input->left > 0; n++) {
        struct ttm_block block = {0};
        const uint8_t flags = take(input);
        take_columns(input, &block);
        sequence += (flags & 2) != 0;
        block.head = (struct ttm_block_head){.kind = TTM_BLOCK_RECORDS,
                                             .flags = flags & 1,
                                             .sequence = sequence++,
                                             .first_ns = 1000};
        /* Any number of events is right in the first byte's upper bits, so that ends are reached. */
        block.head.events = flags >> 3;
        if (flags & 4)
            ttm_decoder_lose(dec);
        if (ttm_decoder_begin(dec, &block) == 0) {
            int r;
            while ((r = ttm_decoder_next(dec, &record)) > 0)
                see(&mirror, record);
            MUST(r == 0 || r == -EBADMSG);
        }
        MUST(ttm_decoder_live(dec) == mirror.live.count);
        for (size_t i = 0; i < TTM_COLUMN_COUNT; i++)
            free(block.columns[i].data);
    }
    MUST(mirror.births - mirror.ends == mirror.live.count);
    ttm_decoder_free(dec);
    ttm_u64_map_done(&mirror.live);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {.at = data, .left = size};

    if (size == 0)
        return 0;
    if (data[0] == 0)
        try_file(data + 1, size - 1);
    else
        try_blocks(&input);
    return 0;
}
