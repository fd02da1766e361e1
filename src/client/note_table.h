/* SPDX-License-Identifier: Apache-2.0 */
/*
 * note_table - finds a note by what it says, so that nothing is said twice.
 *
 * Any thread may use it at any time, also in a signal handler; it takes no lock
 * and makes no system call.
 */
#ifndef TTM_CLIENT_NOTE_TABLE_H
#define TTM_CLIENT_NOTE_TABLE_H

#include <stdatomic.h>
#include <stdint.h>

#include "ring/producer.h"

#define TTM_NOTE_PLACES (1u << 20) /* 8 MiB of address space; pages are taken as they are used */

struct ttm_note_table {
    _Atomic uint64_t *places; /* hash << 32 | number; 0: empty */
    uint64_t seed;
};

/* Returns 0 or -ENOMEM. */
int ttm_note_table_init(struct ttm_note_table *table, uint64_t seed);
void ttm_note_table_done(struct ttm_note_table *table);

/* The number of the note with that content, written if it is new; 0 when there is no room. */
uint32_t ttm_note_table_intern(struct ttm_note_table *table, struct ttm_producer *producer,
                               uint32_t kind, const void *bytes, uint32_t length);

#endif /* TTM_CLIENT_NOTE_TABLE_H */
