/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded - what a recording is made of, as plain data.
 *
 * The server hands these to the recorder, the reader hands them back. All times
 * are nanoseconds of one monotonic clock, but for the two that say "wall". Text
 * is not terminated: pointer and length.
 *
 * A process is named by a number that whoever writes gives it and that is not
 * used again in a file; so are the serials of its lives and the numbers of its
 * notes. What the bytes of a note mean is not the recording's business.
 */
#ifndef TTM_RECORDING_RECORDED_H
#define TTM_RECORDING_RECORDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/region.h"

/* Longer ones are refused (-E2BIG) when written and are no recording when read. */
#define TTM_RECORDED_TEXT_MAX 4096u
#define TTM_RECORDED_NOTE_MAX (1u << 20)
/* Likewise, as in the model: no sum over 2^24 lives can pass 64 bits. */
#define TTM_RECORDED_BYTES_MAX (1ull << 40)
#define TTM_RECORDED_LIVES_MAX (1u << 24)

/* How a life ended. The numbers are in files. */
enum ttm_recorded_how {
    TTM_ENDED_FREED = 0,
    TTM_ENDED_REPLACED = 1, /* its key was born again */
    TTM_ENDED_DEVICE_CLOSED = 2,
    TTM_ENDED_ALLOCATOR_CLOSED = 3,
    TTM_ENDED_PROGRAM_ENDED = 4,
    TTM_ENDED_PROCESS_ENDED = 5,
    TTM_ENDED_UNHEARD = 6, /* it was gone when asked after; when and how was lost */
    TTM_ENDED_COUNT
};

enum ttm_recorded_process_how {
    TTM_PROCESS_EXITED = 0,    /* code: exit status */
    TTM_PROCESS_SIGNALLED = 1, /* code: signal */
    TTM_PROCESS_VANISHED = 2,  /* nobody knows how */
    TTM_PROCESS_UNHEARD = 3, /* its end is in a part of the file that is lost; the reader's word */
    TTM_PROCESS_HOW_COUNT
};

struct ttm_recorded_process {
    int32_t pid;
    uint32_t uid;
    uint8_t source;         /* enum ttm_source */
    uint64_t start_wall_ns; /* by the wall clock of the file, see wall_offset_ns; 0: not known */
    const char *command;
    size_t command_length;
};

struct ttm_recorded_process_end {
    uint8_t how; /* enum ttm_recorded_process_how */
    int32_t code;
};

struct ttm_recorded_device {
    uint16_t id;
    uint8_t arch;
    uint32_t core_count;
    uint64_t asic_id;
    uint64_t bank_bytes[TTM_REGION_COUNT]; /* capacity = bank_bytes x bank_count; 0: not known */
    uint32_t bank_count[TTM_REGION_COUNT];
    const char *board;
    size_t board_length;
};

struct ttm_recorded_note {
    uint32_t number;
    uint32_t kind;
    const uint8_t *bytes;
    size_t length;
};

/* One allocation. Of a circular buffer or kernel: 'id' its program, 'allocator' its part. */
struct ttm_recorded_life {
    uint64_t serial;
    uint64_t birth_ns;
    uint64_t id;
    uint64_t address;
    uint64_t bytes;
    uint64_t footprint_bytes;
    uint32_t allocator;
    uint32_t devices; /* below 1024 that one device, else the number of a note */
    uint32_t origin;  /* number of a note, 0: none */
    uint32_t cores;   /* number of a note, 0: none */
    uint16_t banks;   /* of each device; 0: not known */
    uint8_t region;
    uint8_t kind;
    uint8_t flags;
    bool is_told; /* born earlier and told of later: its birth was not heard */
    uint32_t process;
    uint32_t slot; /* when read: a small number that no other live one of its process has */
};

struct ttm_recorded_dispatch {
    uint64_t program;
    uint32_t devices;
};

struct ttm_recorded_mark {
    const char *name;
    size_t name_length;
};

struct ttm_recorded_failure {
    uint64_t wanted_bytes;
    uint64_t bank_wanted_bytes;
    uint64_t bank_free_bytes;
    uint64_t bank_largest_bytes;
    uint32_t allocator;
    uint32_t devices;
    uint32_t origin;
    uint8_t region;
    uint8_t kind; /* 0 out of memory, 1 circular buffers clash */
};

/* Sums so far of a process; the last ones that were said hold. */
struct ttm_recorded_counters {
    uint64_t unknown_frees;
    uint64_t ambiguous_frees;
    uint64_t replaced;
    uint64_t refused;
    uint64_t lost_events;
    /* What follows older writers did not say, and then it is 0. */
    uint64_t untracked;      /* events that the process had no room for */
    uint64_t notes_left_out; /* names, contexts and stacks likewise */
    uint32_t trouble;        /* note that says why something in it is not tracked; 0: none */
    bool has_gap;            /* it was not listened to for a while, at its start or later */
    bool is_off;             /* tracking is switched off in it */
    bool is_inexact;         /* it ended before it had told all that it held */
};

/* Events that were lost on their way from the process to the writer. */
struct ttm_recorded_loss {
    uint64_t events; /* 0: what was lost before is made good, and what is live is exact again */
    bool is_open;    /* until then; older writers did not say it, and then it is false */
};

/* A part of the recording that is not there. Made by the reader. */
struct ttm_recorded_gap {
    uint64_t from_ns;
    uint64_t to_ns;
    uint64_t events; /* records that are missing */
    uint64_t blocks;
};

enum ttm_recorded_type {
    TTM_RECORDED_PROCESS = 1,
    TTM_RECORDED_PROCESS_END,
    TTM_RECORDED_DEVICE,
    TTM_RECORDED_NOTE,
    TTM_RECORDED_BIRTH,
    TTM_RECORDED_END,
    TTM_RECORDED_RENAME, /* 'life' has the new origin */
    TTM_RECORDED_DISPATCH,
    TTM_RECORDED_MARK,
    TTM_RECORDED_FAILURE,
    TTM_RECORDED_LOSS,
    TTM_RECORDED_COUNTERS,
    TTM_RECORDED_GAP,
};

/* What the reader hands out. Pointers are borrowed until it is asked for the next. */
struct ttm_recorded {
    uint8_t type; /* enum ttm_recorded_type */
    uint8_t how;  /* of an end: enum ttm_recorded_how */
    uint32_t process;
    uint64_t time_ns;
    const struct ttm_recorded_life *life; /* BIRTH, END, RENAME */
    union {
        struct ttm_recorded_process seen;
        struct ttm_recorded_process_end end;
        struct ttm_recorded_device device;
        struct ttm_recorded_note note;
        struct ttm_recorded_dispatch dispatch;
        struct ttm_recorded_mark mark;
        struct ttm_recorded_failure failure;
        struct ttm_recorded_counters counters;
        struct ttm_recorded_gap gap;
        struct ttm_recorded_loss loss;
    };
};

#endif /* TTM_RECORDING_RECORDED_H */
