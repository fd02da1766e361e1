/* SPDX-License-Identifier: Apache-2.0 */
/*
 * original_client - reports allocations over the original protocol.
 *
 * Blocking and plain, as the original's client was: for the demo and for
 * measuring against. One thread.
 */
#ifndef TTM_CLIENT_ORIGINAL_CLIENT_H
#define TTM_CLIENT_ORIGINAL_CLIENT_H

#include <stdint.h>

#include "wire/original.h"
#include "wire/region.h"

struct ttm_original_client {
    int fd; /* -1: not connected */
    enum ttm_original_layout layout;
};

/* Returns 0 or a negative errno. */
int ttm_original_client_open(struct ttm_original_client *client, const char *path,
                             enum ttm_original_layout layout);
void ttm_original_client_close(struct ttm_original_client *client);

/* Sends one message; pid and time are filled in. Returns 0 or a negative errno. */
int ttm_original_client_send(struct ttm_original_client *client,
                             const struct ttm_original_message *message);

/* The common cases. */
int ttm_original_client_alloc(struct ttm_original_client *client, int32_t device,
                              uint8_t buffer_type, uint64_t id, uint64_t bytes);
int ttm_original_client_free(struct ttm_original_client *client, int32_t device, uint64_t id);

#endif /* TTM_CLIENT_ORIGINAL_CLIENT_H */
