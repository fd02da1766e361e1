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

/* Looks for an interpreter; once tracking begins. */
void ttm_ending_look(void);

/* Whether the interpreter, if there is one, has begun to shut down. */
bool ttm_ending_has_begun(void);

#endif /* TTM_HOOK_ENDING_H */
