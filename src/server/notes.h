/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notes - what the notes of a tracked process mean to the model.
 *
 * A note is looked at when something refers to it for the first time; what it says
 * is copied, checked and bounded.
 */
#ifndef TTM_SERVER_NOTES_H
#define TTM_SERVER_NOTES_H

#include <stdint.h>

#include "base/u64_map.h"
#include "base/u64_set.h"
#include "ring/reader.h"
#include "server/state.h"

/* Notes that stand for sets of devices, as the registry numbers them. */
#define TTM_NOTES_ORIGINS 256 /* a power of two */

struct ttm_notes {
    const struct ttm_ring_reader *reader;
    struct ttm_client *client;
    struct ttm_registry *reg;
    struct ttm_process *process;
    struct ttm_u64_map sets; /* from the number of a note to that of the registry */

    uint64_t left_out;          /* origins that there was no room for, or that made no sense */
    struct ttm_u64_set refused; /* by kind and number: what makes no sense is not looked at again */
    uint32_t known_origins[TTM_NOTES_ORIGINS]; /* some that the process is known to have; or 0 */
};

void ttm_notes_init(struct ttm_notes *notes, const struct ttm_ring_reader *reader,
                    struct ttm_client *client);
void ttm_notes_done(struct ttm_notes *notes);

/*
 * How much work a record may make that refers to these, in units of what an allocation on one device
 * costs. What is not known yet is taken for the worst.
 */
uint32_t ttm_notes_cost(const struct ttm_notes *notes, uint32_t devices, uint32_t origin);

/* The device set of a record. Returns 0 or a negative errno. */
int ttm_notes_device_set(struct ttm_notes *notes, uint32_t devices, uint32_t *ret);

/* The cores of a circular buffer: an index in the process's map, or a negative errno. */
int ttm_notes_cores(struct ttm_notes *notes, uint32_t number);

/* Makes an origin known to the process. Returns its number, 0 when it is none. */
uint32_t ttm_notes_origin(struct ttm_notes *notes, uint32_t number);

/* Copies a text; "" when there is none. */
void ttm_notes_text(const struct ttm_notes *notes, uint32_t number, char ret[TTM_STRING_MAX + 1]);

/* What is known of a device is known to the registry. */
void ttm_notes_device(struct ttm_notes *notes, uint32_t number);

/* What keeps the allocations of an origin: it is recorded, which is all. */
void ttm_notes_keepers(const struct ttm_notes *notes, uint32_t number);

#endif /* TTM_SERVER_NOTES_H */
