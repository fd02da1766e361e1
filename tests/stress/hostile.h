/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile - what the attacks of the hostile neighbour share: processes, connections, a FUSE file
 * system that does not answer, and segments that are written without libttmem.
 *
 * An attack runs in a process of its own until it is killed. It never waits for an answer, and a
 * server that closes its connections makes it open new ones. Each function exits the process with a
 * message where it cannot do its work at all.
 */
#ifndef TTM_TESTS_HOSTILE_H
#define TTM_TESTS_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ring/producer.h"

/* An attack; 'processes' of them run at once, each with a number of its own from 0 on. */
struct hostile_attack {
    const char *name;
    unsigned processes;
    bool needs_fuse;
    void (*run)(unsigned number);
};

extern const struct hostile_attack hostile_socket_attacks[];  /* ended by one without a name */
extern const struct hostile_attack hostile_fd_attacks[];      /* likewise */
extern const struct hostile_attack hostile_segment_attacks[]; /* likewise */

/* ---- processes: hostile.c ---- */

__attribute__((noreturn)) void hostile_die(const char *what);

/* fork(), with a child that ends with its parent. */
pid_t hostile_fork(void);

/* Root becomes that user for good; anybody else stays. */
void hostile_become(uid_t uid);

/* Counts one more round of the attack, so that the test knows that it took place. */
void hostile_count(void);

void hostile_sleep_ms(unsigned ms);

/* Raises the limit of open files as far as it goes; returns it. */
unsigned hostile_raise_fd_limit(void);

/* ---- connections: hostile.c ---- */

enum hostile_socket { HOSTILE_NATIVE, HOSTILE_LEGACY };

/* A blocking connection; tries until it succeeds. */
int hostile_connect(enum hostile_socket which);

/* A native connection on which the hello was sent; its answer is left unread. */
int hostile_greet(void);

/* Sends bytes and fds. Returns false if the connection is closed or, for a nonblocking one, full. */
bool hostile_send(int fd, const void *bytes, size_t length, const int *fds, size_t fd_count);

/* Sends a frame of the native protocol, as hostile_send(). */
bool hostile_say(int fd, uint16_t type, const void *payload, uint32_t length);

/* Sends ATTACH with these two fds, as hostile_send(). */
bool hostile_attach(int fd, int segment_fd, int wake_fd);

/* Reports an allocation (or a free of it) of the original protocol, as hostile_send(). */
bool hostile_report_original(int fd, bool is_free, int32_t device, uint64_t id, uint64_t bytes);

/* ---- a file system that does not answer: hostile_fuse.c ---- */

/*
 * Mounts it for this process and its children; needs root. Its files are open to all, have any name
 * and behave by its beginning:
 *
 *   "lock…"   a read never returns; opened for writing, its mmap() waits for that read
 *   "page…"   a read never returns
 *   "flush…"  close() never returns
 *   "stat…"   fstat() never returns
 *
 * Starts the process that serves it, as user 'uid'. Ending that process ends all waits. Returns its
 * pid, or a negative errno with the reason in 'why'.
 */
pid_t hostile_fuse_mount(const char *folder, uid_t uid, const char **why);

/* Opens the file of that name, by open() flags. */
int hostile_fuse_open(const char *name, int flags);

/* ---- segments: hostile_segments.c ---- */

struct hostile_segment {
    struct ttm_producer producer;
    struct ttm_ring *ring;
    int fd; /* of the connection, -1: none */
    uint64_t serial;
    bool ignores_tell; /* never answers the request for a resync */
};

/* A segment with one ring, not attached. */
void hostile_segment_new(struct hostile_segment *segment);
void hostile_segment_done(struct hostile_segment *segment);

/* Connects anew and attaches it. */
void hostile_segment_attach(struct hostile_segment *segment);

/* Writes a record with the next serial; waits while the ring is full, and attaches it anew if need be. */
uint64_t hostile_segment_push(struct hostile_segment *segment, struct ttm_record record);

/* Answers a request for a resync with "nothing is live", and notices the end of the connection. */
void hostile_segment_answer(struct hostile_segment *segment);

#endif /* TTM_TESTS_HOSTILE_H */
