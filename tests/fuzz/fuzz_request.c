/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client says to a server: a stream of frames, the first of them a hello.
 */
#include "fuzzing.h"

#include <errno.h>

#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/request.h"

static void try_hello(const uint8_t *buf, size_t len)
{
    struct ttm_hello hello, again;
    uint8_t once[TTM_HELLO_SIZE], twice[TTM_HELLO_SIZE];

    if (ttm_hello_decode(buf, len, &hello) < 0)
        return;
    MUST(memchr(hello.software, '\0', sizeof(hello.software)));
    (void)ttm_hello_check(&hello);
    ttm_hello_encode(&hello, once);
    MUST(ttm_hello_decode(once, sizeof(once), &again) == 0);
    MUST(ttm_hello_check(&again) == ttm_hello_check(&hello));
    ttm_hello_encode(&again, twice);
    MUST(memcmp(once, twice, sizeof(once)) == 0);
}

static void try_number(const uint8_t *buf, size_t len)
{
    uint8_t once[TTM_NUMBER_REQUEST_SIZE];
    uint32_t number;

    if (ttm_number_request_decode(buf, len, &number) < 0)
        return;
    ttm_number_request_encode(number, once);
    MUST(memcmp(once, buf, 4) == 0);
}

static void try_events(const uint8_t *buf, size_t len)
{
    struct ttm_events_request request;
    uint8_t once[TTM_EVENTS_REQUEST_SIZE];

    if (ttm_events_request_decode(buf, len, &request) < 0)
        return;
    for (unsigned device = 0; device < TTM_DEVICE_COUNT; device++)
        (void)ttm_device_filter_has(&request.devices, device);
    ttm_events_request_encode(&request, once);
    MUST(memcmp(once, buf, 4) == 0);
    MUST(memcmp(once + 8, buf + 8, TTM_DEVICE_BITS_SIZE) == 0);
}

static void try_lives(const uint8_t *buf, size_t len)
{
    struct ttm_lives_request request;
    uint8_t once[TTM_LIVES_REQUEST_SIZE];

    if (ttm_lives_request_decode(buf, len, &request) < 0)
        return;
    MUST(request.device < TTM_DEVICE_COUNT);
    MUST(request.region < TTM_REGION_COUNT && request.origin_region < TTM_REGION_COUNT);
    ttm_lives_request_encode(&request, once);
    MUST(memcmp(once, buf, 20) == 0); /* the rest is reserved */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ttm_frame frame;
    long n;

    while ((n = ttm_frame_parse(data, size, TTM_FRAME_REQUEST_MAX, &frame)) > 0) {
        uint8_t *payload = exact_copy(frame.payload, frame.length);
        try_hello(payload, frame.length);
        try_number(payload, frame.length);
        try_events(payload, frame.length);
        try_lives(payload, frame.length);
        free(payload);
        data += n;
        size -= (size_t)n;
    }
    MUST(n == 0 || n == -EMSGSIZE);
    return 0;
}
