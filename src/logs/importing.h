/* SPDX-License-Identifier: Apache-2.0 */
/*
 * importing - what the importers of both formats share: processes, notes, the clock, and
 * what was counted. Private to src/logs.
 */
#ifndef TTM_LOGS_IMPORTING_H
#define TTM_LOGS_IMPORTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/u64_map.h"
#include "logs/import.h"
#include "recording/encoder.h"
#include "wire/origin.h"

#define TTM_NO_PLACE UINT32_MAX

struct ttm_importing_process {
    uint32_t number;
    int32_t pid; /* 0: the log does not say */
    bool has_ended;
    uint32_t last_note;
    uint64_t last_serial;
    struct ttm_recorded_counters counters;
};

struct ttm_server_import;
struct ttm_debug_import;

struct ttm_import {
    struct ttm_import_options options;
    struct ttm_import_result result;
    struct ttm_server_import *server; /* one of the two */
    struct ttm_debug_import *debug;
    uint64_t line; /* number of the next one */
    uint64_t now_ns;
    struct ttm_importing_process *processes; /* by number, from 1 */
    uint32_t process_count;
    uint32_t process_room;
    struct ttm_u64_map by_pid; /* those that have not ended */
    struct ttm_u64_map notes;  /* hash of what they say → number */
    uint8_t note[TTM_NAMED_STACK_NOTE_SIZE_MAX];
};

/* The process of that number is borrowed until the next one is made. */
static inline struct ttm_importing_process *ttm_importing_process(struct ttm_import *imp,
                                                                  uint32_t number)
{
    return &imp->processes[number - 1];
}

/* The number of the process that has this pid now, made known if need be. Returns 0 or -ENOMEM. */
int ttm_importing_find(struct ttm_import *imp, int32_t pid, uint32_t *ret);

/* It has ended, with all that it had. Returns 0 or -ENOMEM. */
int ttm_importing_end(struct ttm_import *imp, uint32_t number);

/* The number of a note that says this, said if need be. Returns 0 or -ENOMEM. */
int ttm_importing_note(struct ttm_import *imp, uint32_t process, uint32_t kind,
                       const uint8_t *bytes, size_t length, uint32_t *ret);

/* A birth now; fills in serial, process and time of 'life'. Returns 0 or -ENOMEM. */
int ttm_importing_birth(struct ttm_import *imp, uint32_t process, struct ttm_recorded_life *life);

/* Counts by how it ended. Returns 0 or -ENOMEM. */
int ttm_importing_end_life(struct ttm_import *imp, uint32_t process, uint64_t serial,
                           enum ttm_recorded_how how);

void ttm_importing_broken(struct ttm_import *imp, uint64_t line);

/* Mixes one more number into a key; begin with the seed. */
static inline uint64_t ttm_importing_mix(uint64_t key, uint64_t number)
{
    return ttm_hash_u64(key ^ number) + number;
}

uint64_t ttm_importing_hash(uint64_t key, const void *bytes, size_t length);

/* server_import.c: whole lines. Returns 0 or -ENOMEM. */
struct ttm_server_import *ttm_server_import_new(struct ttm_import *imp);
void ttm_server_import_free(struct ttm_server_import *s);
int ttm_server_import_take(struct ttm_server_import *s, const char *text, size_t length);

/* debug_import.c: whole blocks. */
struct ttm_debug_import *ttm_debug_import_new(struct ttm_import *imp);
void ttm_debug_import_free(struct ttm_debug_import *d);
int ttm_debug_import_take(struct ttm_debug_import *d, const char *text, size_t length);
int ttm_debug_import_finish(struct ttm_debug_import *d);

#endif /* TTM_LOGS_IMPORTING_H */
