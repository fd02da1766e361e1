/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime - the libtt_metal.so of this process and its functions.
 *
 * Found when one of the functions that we stand in for is called for the first
 * time, from the address it was called from; then remembered, so that a lookup
 * costs a few comparisons. What is found stays loaded for the life of the process.
 */
#ifndef TTM_HOOK_RUNTIME_H
#define TTM_HOOK_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

#include "hook/buffer_fields.h"
#include "hook/names.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ttm_metal;
struct ttm_runtime;

#define TTM_RUNTIMES_MAX 4

typedef uint64_t (*ttm_method)(void *self, void *argument);
typedef void (*ttm_handler)(const struct ttm_runtime *runtime, void *self, void *argument);

/* Its first cache line is what every operation needs of it. */
struct ttm_runtime {
    const struct ttm_metal *metal; /* how to call them; NULL: it is not tracked, only called */
    struct ttm_buffer_fields fields;
    void *originals[TTM_HOOK_COUNT]; /* NULL: this runtime has none by that name */
    void *asked[TTM_ASK_COUNT];
};

/* The one that is tracked, NULL until it is found. */
const struct ttm_runtime *ttm_runtime_tracked(void);

/* See ttm_buffer_fields_see_core_map(). */
void ttm_runtime_see_core_map(const struct ttm_runtime *runtime, const char *body, const void *map);

/* Copies what lanes.h needs of the one that is tracked to ttm_hot, which a fork empties. */
void ttm_runtime_put_at_hand(const struct ttm_runtime *runtime);

/* Tells libttmem which runtime this is and what does not work with it, if one was found. */
void ttm_runtime_say(void);

/* In the child of a fork. */
void ttm_runtime_after_fork(void);

#ifdef __cplusplus
}
#endif

#endif /* TTM_HOOK_RUNTIME_H */
