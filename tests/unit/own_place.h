/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_place - a place in the test itself, as a server tells of native ones.
 */
#ifndef TTM_TESTS_UNIT_OWN_PLACE_H
#define TTM_TESTS_UNIT_OWN_PLACE_H

#include "testing.h"

#include <dlfcn.h>
#include <unistd.h>

/* "/…/test_x+0x1234", behind the first byte of the function. */
static inline void own_place(void (*function)(void **state), char *ret, size_t size)
{
    char path[3072] = "";
    void *address;
    Dl_info info;

    memcpy(&address, &function, sizeof(address));
    assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
    assert_true(dladdr(address, &info) != 0);
    (void)snprintf(ret, size, "%s+0x%zx\n", path,
                   (size_t)((const char *)address - (const char *)info.dli_fbase) + 1);
}

#endif /* TTM_TESTS_UNIT_OWN_PLACE_H */
