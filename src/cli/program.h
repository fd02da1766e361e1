/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program - what can be told of a program before it runs: whether a library can be
 * loaded into it. Reads the file's head, and nothing else.
 */
#ifndef TTM_CLI_PROGRAM_H
#define TTM_CLI_PROGRAM_H

#include <limits.h>

enum ttm_program {
    TTM_PROGRAM_ORDINARY,   /* or not known: a script, a file that cannot be read */
    TTM_PROGRAM_STATIC,     /* it has no loader, so nothing is loaded into it */
    TTM_PROGRAM_PRIVILEGED, /* it runs as another user: its loader takes nothing from us */
    TTM_PROGRAM_FOREIGN,    /* of another word size, machine or C library: nothing of ours fits */
};

/* Where 'name' is, looked for in 'path' (may be NULL) as execvp() does. Returns 0 or -ENOENT. */
int ttm_program_find(const char *name, const char *path, char ret[PATH_MAX]);

enum ttm_program ttm_program_look(const char *file);

#endif /* TTM_CLI_PROGRAM_H */
