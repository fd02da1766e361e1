/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main_getenv - ends a program in which another thread than the main one reads the environment.
 *
 * Preloaded. The environment of a program may be changed by the program at any time, and then
 * getenv() of another thread reads memory that was freed.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

__attribute__((visibility("default"))) char *getenv(const char *name)
{
    const size_t length = strlen(name);

    if (syscall(SYS_gettid) != getpid())
        abort();
    for (char **at = environ; at && *at; at++) {
        if (strncmp(*at, name, length) == 0 && (*at)[length] == '=')
            return *at + length + 1;
    }
    return NULL;
}
