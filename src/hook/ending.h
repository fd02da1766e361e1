/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ending - whether the program is on its way out.
 *
 * An interpreter that shuts down lets go of what modules still hold. That is no free
 * by its owner: nobody would have freed it while the program ran.
 */
#ifndef TTM_HOOK_ENDING_H
#define TTM_HOOK_ENDING_H

#include <stdbool.h>
#include <stdint.h>

/* Looks for an interpreter; once tracking begins. */
void ttm_ending_look(void);

/* Whether the interpreter, if there is one, has begun to shut down. */
bool ttm_ending_has_begun(void);

/*
 * A word that is 0 until then, for who looks all the time, after ttm_ending_look(). Where the
 * interpreter's own is not known it is another that never is 0: then the function above tells.
 */
const volatile uint64_t *ttm_ending_word(void);

/*
 * The word that a function with this code compares with 0, returning whether it is another; NULL for
 * any other code. All that an interpreter does to answer is to read that word, and to call it
 * costs several times as much where the caches have forgotten it.
 */
const volatile uint64_t *ttm_ending_read_code(const void *function);

#endif /* TTM_HOOK_ENDING_H */
