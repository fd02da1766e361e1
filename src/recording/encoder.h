/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encoder - turns what happens into blocks.
 *
 * It keeps what a reader has to know to go on: processes, their devices, notes and
 * live allocations. From time to time, and whenever blocks were lost on the way to
 * the disk, it begins a section: a block that needs none before it, in which all of
 * that is told again. Telling goes on in small steps beside the events, so that no
 * call takes long however much is live.
 *
 * One thread; no file, no clock, no logging. Blocks leave through a callback.
 */
#ifndef TTM_RECORDING_ENCODER_H
#define TTM_RECORDING_ENCODER_H

#include <stdbool.h>
#include <stdint.h>

#include "recording/recorded.h"

struct ttm_block;
struct ttm_encoder;

/*
 * Takes a full block and returns an empty one to go on with, which may be the same.
 * NULL: there is no room, the block stays the encoder's and its content is lost.
 */
typedef struct ttm_block *(*ttm_encoder_pass_fn)(void *arg, struct ttm_block *full);

struct ttm_encoder_options {
    uint64_t file_id; /* any number: blocks of one file carry the same */
    int64_t wall_offset_ns;
    uint64_t start_ns;       /* now */
    uint64_t seed;           /* any number that tracked programs do not know */
    uint32_t section_events; /* between two sections at least; 0: TTM_SECTION_EVENTS */
    ttm_encoder_pass_fn pass;
    void *pass_arg;
    struct ttm_block *block; /* the first one; the encoder's from now on */
};

#define TTM_SECTION_EVENTS (1u << 20)

/* Returns NULL only when memory is short; then the block stays the caller's. */
struct ttm_encoder *ttm_encoder_new(const struct ttm_encoder_options *options);

/* NULL is fine. What was not flushed is lost. Gives back the block that it had. */
struct ttm_block *ttm_encoder_free(struct ttm_encoder *enc);

/* Passes on what there is, be it little. */
void ttm_encoder_flush(struct ttm_encoder *enc);

/* The same at the end of a file: whatever was lost, what is live at the end is in it. */
void ttm_encoder_finish(struct ttm_encoder *enc);

/*
 * Finishes; what follows belongs to another file and begins with a section. The wall clock may have
 * been set since the last one began: the starts of processes are moved with it.
 */
void ttm_encoder_next_file(struct ttm_encoder *enc, uint64_t file_id, int64_t wall_offset_ns);

/* Of the present file: wall clock = time + this. */
int64_t ttm_encoder_wall_offset_ns(const struct ttm_encoder *enc);

/* Whether anything waits to be flushed, a section too, and since when. */
bool ttm_encoder_is_dirty(const struct ttm_encoder *enc, uint64_t *ret_since_ns);

/* Events that were lost because a block was not taken. */
uint64_t ttm_encoder_lost_events(const struct ttm_encoder *enc);

/*
 * Each copies what it keeps. All return 0; -ENOENT for a process that is not
 * there; -EEXIST for a process that is; -EINVAL for a region or the like that is
 * none; -E2BIG for a text or note too long; -ENOMEM: it is not recorded, nor perhaps
 * what came before it, which is counted; the recording goes on.
 */
int ttm_encoder_process(struct ttm_encoder *enc, uint64_t time_ns, uint32_t process,
                        const struct ttm_recorded_process *seen);

/* Ends all its lives too, as of an ended process. */
int ttm_encoder_process_end(struct ttm_encoder *enc, uint64_t time_ns, uint32_t process,
                            const struct ttm_recorded_process_end *end);

int ttm_encoder_device(struct ttm_encoder *enc, uint64_t time_ns, uint32_t process,
                       const struct ttm_recorded_device *device);

/* To be said before a record refers to it. */
int ttm_encoder_note(struct ttm_encoder *enc, uint32_t process,
                     const struct ttm_recorded_note *note);

/*
 * life->process and life->birth_ns say whose and when; 'slot' is ignored. With
 * is_told, a serial that is known already changes nothing (returns 1); else -EEXIST.
 */
int ttm_encoder_birth(struct ttm_encoder *enc, const struct ttm_recorded_life *life);

/* -ENOENT also for a serial that is not live. */
int ttm_encoder_end(struct ttm_encoder *enc, uint64_t time_ns, uint32_t process, uint64_t serial,
                    enum ttm_recorded_how how);

/*
 * Of a life whose end is known when it is born, in place of the two above: its serial
 * is not looked for, then or at its end. There are to be no more than
 * 'n' events from the answer that this is possible until the end of the last such life.
 */
struct ttm_encoder_brief {
    uint64_t ordinal;
    uint32_t site;
};

bool ttm_encoder_takes_brief(const struct ttm_encoder *enc, uint32_t n);

/* Returns 0, or an error, and then there is to be no end. */
int ttm_encoder_brief_birth(struct ttm_encoder *enc, const struct ttm_recorded_life *life,
                            struct ttm_encoder_brief *ret);

/* It is freed. */
int ttm_encoder_brief_end(struct ttm_encoder *enc, uint64_t time_ns, uint32_t process,
                          const struct ttm_encoder_brief *brief);

int ttm_encoder_rename(struct ttm_encoder *enc, uint64_t time_ns, uint32_t process, uint64_t serial,
                       uint32_t origin);

int ttm_encoder_dispatch(struct ttm_encoder *enc, uint64_t time_ns, uint32_t process,
                         const struct ttm_recorded_dispatch *dispatch);
int ttm_encoder_mark(struct ttm_encoder *enc, uint64_t time_ns, uint32_t process,
                     const struct ttm_recorded_mark *mark);
int ttm_encoder_failure(struct ttm_encoder *enc, uint64_t time_ns, uint32_t process,
                        const struct ttm_recorded_failure *failure);

/* So many events of the process were lost before they reached us; 0: that is made good. */
int ttm_encoder_loss(struct ttm_encoder *enc, uint64_t time_ns, uint32_t process, uint64_t events);
int ttm_encoder_counters(struct ttm_encoder *enc, uint64_t time_ns, uint32_t process,
                         const struct ttm_recorded_counters *counters);

#endif /* TTM_RECORDING_ENCODER_H */
