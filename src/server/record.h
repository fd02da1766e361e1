/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record - what the server tells the recorder, if there is one.
 *
 * Every function does nothing where nothing is recorded. The recording has the
 * numbers that a process gave its notes and lives; a note is said once, before
 * the first record that refers to it.
 */
#ifndef TTM_SERVER_RECORD_H
#define TTM_SERVER_RECORD_H

#include "recording/encoder.h"
#include "ring/segment.h"
#include "server/state.h"
#include "wire/attach.h"

/* A process reports for the first time. */
void ttm_record_process(struct ttm_client *client);

/* It has ended, with all that it still held. */
void ttm_record_process_end(struct ttm_client *client);

/* How far what is known of it can be trusted has changed, or is told for the last time. */
void ttm_record_counters(struct ttm_client *client);

/* Whether the note has to be said: it is new, and somebody records. */
bool ttm_record_wants_note(struct ttm_client *client, uint32_t number);
void ttm_record_note(struct ttm_client *client, uint32_t number, uint32_t kind,
                     const uint8_t *bytes, size_t length);

void ttm_record_device(struct ttm_client *client, const struct ttm_device_note *note);

/* 'told' is the life as its process says it; 'origin' is what it has by now. */
void ttm_record_birth(struct ttm_client *client, const struct ttm_told *told, uint32_t origin,
                      bool is_news);

/* The two of a brief life: ttm_encoder_takes_brief() has what that needs. */
bool ttm_record_takes_brief(const struct ttm_client *client, uint32_t n);
void ttm_record_brief_birth(struct ttm_client *client, const struct ttm_record *record,
                            struct ttm_encoder_brief *ret);
void ttm_record_brief_end(struct ttm_client *client, uint64_t time_ns,
                          const struct ttm_encoder_brief *brief);

/* The same of a process that speaks the original protocol. */
void ttm_record_original_birth(struct ttm_client *client, const struct ttm_birth *birth,
                               uint64_t serial);

/* Whether what happens is recorded. */
bool ttm_record_is_on(const struct ttm_client *client);

/* A program was sent to these devices: one by its id, or those of a note. */
void ttm_record_dispatch(struct ttm_client *client, uint64_t program, uint32_t devices);

void ttm_record_end(struct ttm_client *client, uint64_t time_ns, uint64_t serial, enum ttm_end how);
/* It was gone when asked after. */
void ttm_record_unheard(struct ttm_client *client, uint64_t serial);
void ttm_record_rename(struct ttm_client *client, uint64_t time_ns, uint64_t serial,
                       uint32_t origin);
void ttm_record_mark(struct ttm_client *client, uint64_t time_ns, const char *name);

/* 'devices' is the number of a device or note, as in a record. */
void ttm_record_failure(struct ttm_client *client, const struct ttm_failure_row *failure,
                        uint32_t devices, uint32_t allocator);
void ttm_record_loss(struct ttm_client *client, uint64_t events);
/* What was lost is made good: what is live is exact again. */
void ttm_record_made_good(struct ttm_client *client);

/* When the recorder wants to be called, UINT64_MAX for never; and that call. */
uint64_t ttm_record_due_ns(const struct ttm_server *server);
void ttm_record_tick(struct ttm_server *server);

/* The negative errno that has stopped the recording for good; 0 when nothing has. */
int ttm_record_error(const struct ttm_server *server);

#endif /* TTM_SERVER_RECORD_H */
