/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import - turns the text logs of the original system into a recording.
 *
 * Lines say what happened, not which life they belong to: addresses, ids and pointers are
 * used again. So events are matched in the order of the log, and a birth where something
 * is live ends that as replaced: two cannot be in one place. What the log cannot tell is
 * counted, never guessed.
 *
 * One thread; no file, no clock, no logging. The text may be hostile: time and memory
 * follow its length.
 */
#ifndef TTM_LOGS_IMPORT_H
#define TTM_LOGS_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ttm_encoder;
struct ttm_import;

enum ttm_log_format {
    TTM_LOG_FORMAT_NONE,
    TTM_LOG_FORMAT_SERVER, /* the server's standard output, logs/server_line.h */
    TTM_LOG_FORMAT_DEBUG,  /* TT_BUFFER_DEBUG_LOG, logs/debug_block.h */
};

/* By the first line that can only be of one of them. */
enum ttm_log_format ttm_log_recognise(const char *text, size_t length);

struct ttm_import_options {
    enum ttm_log_format format;
    const char *name;         /* of the log, for people */
    uint64_t written_wall_ns; /* when the log was last written to: it has no dates */
    int64_t utc_offset_s;     /* of local time, in which it was written */
    uint64_t seed;            /* any number that the log's writer does not know */
    struct ttm_encoder *encoder;
};

#define TTM_IMPORT_LINES 8

struct ttm_import_result {
    uint64_t events;
    uint64_t births;
    uint64_t frees;
    uint64_t unknown_frees; /* of what the log has no birth of */
    uint64_t replaced;      /* born again with no free between */
    uint64_t references;    /* frees that gave back one reference of several */
    uint64_t others;        /* buffers of a type that the log calls OTHER */
    uint64_t processes;
    uint64_t lost;                           /* lines that the log says are not in it */
    uint64_t broken;                         /* lines, or blocks of lines */
    uint64_t broken_lines[TTM_IMPORT_LINES]; /* the first of them, from 1 */
};

/* Returns NULL only when memory is short. What 'options' points to is borrowed. */
struct ttm_import *ttm_import_new(const struct ttm_import_options *options);

/* NULL is fine. */
void ttm_import_free(struct ttm_import *import);

/* A window of the log that is given to ttm_import_feed() should have room for so much. */
#define TTM_IMPORT_WINDOW (4u << 20)

/*
 * Tells the encoder what the text says, as far as it is whole: '*ret_taken' bytes of it. The
 * rest is to come again with more behind it, or as the last. Returns 0; -ENOMEM, and then
 * what the encoder was told is not whole.
 */
int ttm_import_feed(struct ttm_import *import, const char *text, size_t length, bool is_last,
                    size_t *ret_taken);

/* Ends what has not ended, and tells what was found. Returns 0 or -ENOMEM. */
int ttm_import_finish(struct ttm_import *import, struct ttm_import_result *ret);

#endif /* TTM_LOGS_IMPORT_H */
