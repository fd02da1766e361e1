/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hello - the first frame of either side: who speaks which version.
 *
 *   0 u32 magic | 4 u16 major | 6 u16 minor | 8 u64 optional features |
 *   16 u64 required features | 24 i32 pid | 28 u32 reserved |
 *   32 software version, 32 bytes of text, NUL-padded
 *
 * Unknown optional features are ignored, unknown required ones end the talk.
 */
#ifndef TTM_WIRE_HELLO_H
#define TTM_WIRE_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TTM_HELLO_MAGIC 0x4d4d5454u /* "TTMM" */
#define TTM_HELLO_MAJOR 1
#define TTM_HELLO_MINOR 0
#define TTM_HELLO_SIZE 64
#define TTM_HELLO_SOFTWARE_SIZE 32

enum ttm_features {
    TTM_FEATURE_SITES = 1 << 0, /* GET_SITES and GET_LIVES_OF are answered */
};

/* The features this build knows; none is required yet. */
#define TTM_HELLO_OPTIONAL ((uint64_t)TTM_FEATURE_SITES)
#define TTM_HELLO_REQUIRED 0ull

struct ttm_hello {
    uint16_t major;
    uint16_t minor;
    uint64_t optional;
    uint64_t required;
    int32_t pid; /* as it sees itself; no right comes of it */
    char software[TTM_HELLO_SOFTWARE_SIZE];
};

/* What this build says of itself. */
struct ttm_hello ttm_hello_own(int32_t pid);

void ttm_hello_encode(const struct ttm_hello *hello, uint8_t buf[TTM_HELLO_SIZE]);

/* Returns 0 or -EBADMSG (too short, or not our magic). */
int ttm_hello_decode(const uint8_t *buf, size_t len, struct ttm_hello *ret);

/* How much of a stream it takes to tell a native one. */
#define TTM_HELLO_PROBE_SIZE 12

/* Whether a stream that begins like this is one of the native protocol: the frame of a hello. */
bool ttm_hello_begins(const uint8_t buf[TTM_HELLO_PROBE_SIZE]);

/* Returns 0, or -EPROTONOSUPPORT when this build cannot talk to that peer. */
int ttm_hello_check(const struct ttm_hello *peer);

#endif /* TTM_WIRE_HELLO_H */
