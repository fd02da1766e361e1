/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks by connections alone: as many as there can be, as fast as they can, and questions whose
 * answers are never read or read a byte at a time.
 */
#include "hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/original.h"
#include "wire/request.h"

#define ASKERS 48 /* connections of one process */
#define SLOW_READ_MS 20
#define HELD_MAX 900 /* connections that one process holds; the usual limit of files is 1024 */

/* Half a frame, half a hello, nothing, an allocation without its end: then the connection closes. */
static void connect_and_leave(unsigned number)
{
    for (uint64_t round = number;; round++) {
        const enum hostile_socket which = round % 3 == 0 ? HOSTILE_LEGACY : HOSTILE_NATIVE;
        uint8_t bytes[TTM_FRAME_HEADER_SIZE + TTM_HELLO_SIZE] = {0};
        const int fd = hostile_connect(which);
        ttm_frame_header_encode(TTM_FRAME_HELLO, TTM_HELLO_SIZE, bytes);
        if (round % 4 != 0)
            (void)hostile_send(fd, bytes, 1 + round % sizeof(bytes), NULL, 0);
        (void)close(fd);
        hostile_count();
    }
}

/* Many connections that never say a word, or stop in the middle of one, until the server is full. */
static void hold_connections(unsigned number)
{
    int fds[HELD_MAX];
    const unsigned limit = hostile_raise_fd_limit();
    const unsigned most = limit - 64 < HELD_MAX ? limit - 64 : HELD_MAX;
    const uint8_t half[4] = {TTM_FRAME_HELLO};

    for (unsigned i = 0; i < most; i++)
        fds[i] = -1;
    for (;; hostile_sleep_ms(5)) {
        for (unsigned i = 0; i < most; i++) {
            char byte;
            const bool is_open = fds[i] >= 0 && recv(fds[i], &byte, 1, MSG_DONTWAIT) < 0 &&
                                 (errno == EAGAIN || errno == EWOULDBLOCK);
            if (is_open)
                continue;
            if (fds[i] >= 0)
                (void)close(fds[i]);
            fds[i] = hostile_connect((number + i) % 2 ? HOSTILE_LEGACY : HOSTILE_NATIVE);
            if (i % 3 == 0)
                (void)hostile_send(fds[i], half, sizeof(half), NULL, 0);
            hostile_count();
        }
    }
}

/* One question; of each kind in turn. Returns false if the connection is closed or takes no more. */
static bool ask(int fd, uint64_t round)
{
    uint8_t number[TTM_NUMBER_REQUEST_SIZE], events[TTM_EVENTS_REQUEST_SIZE];
    const struct ttm_events_request all = {.devices.is_all = true, .has_last_words = true};

    switch (round % 7) {
    case 0:
        return hostile_say(fd, TTM_FRAME_GET_TOTALS, NULL, 0);
    case 1:
        return hostile_say(fd, TTM_FRAME_GET_STATUS, NULL, 0);
    case 2:
        ttm_number_request_encode(0, number);
        return hostile_say(fd, TTM_FRAME_GET_SITES, number, sizeof(number));
    case 3:
        ttm_number_request_encode(0, number);
        return hostile_say(fd, TTM_FRAME_GET_LIVES, number, sizeof(number));
    case 4:
        return hostile_say(fd, TTM_FRAME_CHECK, NULL, 0);
    case 5:
        ttm_number_request_encode(1, number);
        return hostile_say(fd, TTM_FRAME_SUBSCRIBE_TOTALS, number, sizeof(number));
    default:
        ttm_events_request_encode(&all, events);
        return hostile_say(fd, TTM_FRAME_SUBSCRIBE_EVENTS, events, sizeof(events));
    }
}

static int connect_to_ask(void)
{
    const int fd = hostile_greet();

    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

/* Number 0 never reads; 1 reads a little at a time; from 2 on all is read as fast as it comes. */
static void ask_for_ever(unsigned number)
{
    static char bytes[1 << 16];
    int fds[ASKERS];

    for (unsigned i = 0; i < ASKERS; i++)
        fds[i] = connect_to_ask();
    for (uint64_t round = 0;; round++) {
        const unsigned i = (unsigned)(round % ASKERS);
        /* Each connection stays with one kind of question, as some end it. */
        const bool is_asked = ask(fds[i], i);
        const size_t wanted = number == 0 ? 0 : number == 1 ? 64 : sizeof(bytes);
        const ssize_t n = wanted > 0 ? recv(fds[i], bytes, wanted, MSG_DONTWAIT) : -1;
        if (is_asked)
            hostile_count();
        if (n == 0 || (!is_asked && errno != EAGAIN)) {
            (void)close(fds[i]);
            fds[i] = connect_to_ask();
        }
        if (i == ASKERS - 1)
            hostile_sleep_ms(number == 1 ? SLOW_READ_MS : 1);
    }
}

/* The same of the original protocol: questions in all its ways, answers that nobody reads. */
static void ask_as_original(unsigned number)
{
    static const uint8_t kinds[] = {TTM_ORIGINAL_QUERY, TTM_ORIGINAL_DEVICE_INFO_QUERY,
                                    TTM_ORIGINAL_DUMP_REMAINING, TTM_ORIGINAL_DUMP_KERNELS};
    int fds[ASKERS];

    for (unsigned i = 0; i < ASKERS; i++)
        fds[i] = -1;
    for (uint64_t round = number;; round++) {
        const unsigned i = (unsigned)(round % ASKERS);
        const struct ttm_original_message message = {.type = kinds[round % sizeof(kinds)],
                                                     .device_id = (int32_t)(round % 1024)};
        uint8_t buf[TTM_ORIGINAL_SIZE_MAX];
        if (fds[i] < 0) {
            fds[i] = hostile_connect(HOSTILE_LEGACY);
            (void)fcntl(fds[i], F_SETFL, O_NONBLOCK);
        }
        ttm_original_encode(&message, TTM_ORIGINAL_V144, buf);
        if (hostile_send(fds[i], buf, TTM_ORIGINAL_V144, NULL, 0)) {
            hostile_count();
        } else if (errno != EAGAIN) {
            (void)close(fds[i]);
            fds[i] = -1;
        }
        if (i == 0)
            hostile_sleep_ms(1);
    }
}

const struct hostile_attack hostile_socket_attacks[] = {
    {.name = "connects", .processes = 2, .run = connect_and_leave},
    {.name = "silent_connections", .processes = 4, .run = hold_connections},
    {.name = "questions", .processes = 3, .run = ask_for_ever},
    {.name = "original_questions", .processes = 1, .run = ask_as_original},
    {0},
};
