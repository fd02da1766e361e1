/* SPDX-License-Identifier: Apache-2.0 */
/*
 * original - the protocol of the experiment that tt-mem replaces.
 *
 * Fixed-size packed messages with no magic, version or length, in three sizes
 * that differ only behind byte 72: the reader below finds out which one a
 * connection speaks from what arrives. Pure: no I/O and no clock.
 */
#ifndef TTM_WIRE_ORIGINAL_H
#define TTM_WIRE_ORIGINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ttm_original_type {
    TTM_ORIGINAL_ALLOC = 1,
    TTM_ORIGINAL_FREE = 2,
    TTM_ORIGINAL_QUERY = 3,
    TTM_ORIGINAL_RESPONSE = 4,
    TTM_ORIGINAL_DUMP_REMAINING = 5,
    TTM_ORIGINAL_DEVICE_INFO_QUERY = 6,
    TTM_ORIGINAL_DEVICE_INFO_RESPONSE = 7,
    TTM_ORIGINAL_CB_ALLOC = 8,
    TTM_ORIGINAL_CB_FREE = 9,
    TTM_ORIGINAL_KERNEL_LOAD = 10,
    TTM_ORIGINAL_KERNEL_UNLOAD = 11,
    TTM_ORIGINAL_DUMP_KERNELS = 12,
};

/* A layout is named by its size. 0 stands for "not known yet". */
enum ttm_original_layout {
    TTM_ORIGINAL_V72 = 72,
    TTM_ORIGINAL_V112 = 112,
    TTM_ORIGINAL_V144 = 144,
};

#define TTM_ORIGINAL_SIZE_MAX 144

struct ttm_original_message {
    uint8_t type;
    uint8_t buffer_type; /* ALLOC: region 0 to 4; KERNEL_*: kind 0 to 2 */
    int32_t device_id;
    int32_t process_id; /* what the sender claims; never trusted */
    uint64_t size;
    uint64_t buffer_id;
    uint64_t timestamp;
    uint64_t dram_allocated;
    uint64_t l1_allocated;
    uint64_t l1_small_allocated;
    uint64_t trace_allocated;
    uint64_t cb_allocated;     /* V144 */
    uint64_t kernel_allocated; /* V144 */
    uint64_t total_dram_size;  /* V112 and V144, as all below */
    uint64_t total_l1_size;
    uint32_t arch_type;
    uint32_t num_dram_channels;
    uint32_t dram_size_per_channel;
    uint32_t l1_size_per_core;
    uint32_t is_available;
    uint32_t num_devices;
};

/* Fields that the layout does not have are left out. 'buf' has 'layout' bytes. */
void ttm_original_encode(const struct ttm_original_message *msg, enum ttm_original_layout layout,
                         uint8_t *buf);

/*
 * Fields that the layout does not have are 0 in the result. 'buf' has 'layout'
 * bytes. Returns 0, or -EBADMSG when the type is none of the twelve; other
 * fields are the caller's to check.
 */
int ttm_original_decode(const uint8_t *buf, enum ttm_original_layout layout,
                        struct ttm_original_message *ret);

/* Undecided, two messages of the largest layout must fit; decided, a part of one. */
#define TTM_ORIGINAL_STASH_SIZE 320

/*
 * Cuts the byte stream of one connection into messages. Belongs to one thread.
 * For each piece that arrives: push(), next() until it returns 0, keep().
 */
struct ttm_original_reader {
    uint16_t layout;   /* 0 until known */
    bool is_tentative; /* decided by silence alone, and no second message has confirmed it */
    bool has_taken;    /* a message was taken */
    uint16_t skip;     /* bytes of a widened message's tail still to pass over */
    uint16_t stash_at; /* first byte of the stash not yet consumed */
    uint16_t stash_end;
    const uint8_t *input; /* borrowed between push() and keep() */
    size_t input_length;
    uint8_t stash[TTM_ORIGINAL_STASH_SIZE];
};

void ttm_original_reader_init(struct ttm_original_reader *reader);

/* Hand over the bytes that arrived. They stay the caller's and must last until keep(). */
void ttm_original_reader_push(struct ttm_original_reader *reader, const uint8_t *bytes,
                              size_t length);

/* Returns 1 with a message, 0 when more bytes are needed, -EBADMSG when this is not the protocol. */
int ttm_original_reader_next(struct ttm_original_reader *reader, struct ttm_original_message *ret);

/* Copies what next() left over, so that the bytes of push() may go. */
void ttm_original_reader_keep(struct ttm_original_reader *reader);

/*
 * The first 'n' bytes of the stream, before any was taken as a message; NULL once
 * one was, or while fewer have arrived. Borrowed until the next call.
 */
const uint8_t *ttm_original_reader_peek(struct ttm_original_reader *reader, size_t n);

/*
 * Gives up: what is left in the stash and in the input of push(), for somebody
 * else to read. Borrowed until the next call.
 */
struct ttm_original_rest {
    const uint8_t *stash;
    size_t stash_length;
    const uint8_t *input;
    size_t input_length;
};

struct ttm_original_rest ttm_original_reader_give_up(struct ttm_original_reader *reader);

/*
 * Nothing has arrived for a while (or never will again): settle a doubt by what
 * is there. Then call next() again. Harmless when there is no doubt.
 */
void ttm_original_reader_silence(struct ttm_original_reader *reader);

/* True while bytes wait for a decision that silence can bring. */
bool ttm_original_reader_is_waiting(const struct ttm_original_reader *reader);

/* Bytes of a message that has begun and is not whole; a client killed in mid-message leaves some. */
size_t ttm_original_reader_leftover(const struct ttm_original_reader *reader);

#endif /* TTM_WIRE_ORIGINAL_H */
