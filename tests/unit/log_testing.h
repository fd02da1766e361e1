/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of what a log says. */
#ifndef TTM_TESTS_LOG_TESTING_H
#define TTM_TESTS_LOG_TESTING_H

#include "testing.h"

#include <unistd.h>

#include "base/log.h"

/* What it has written into 'file', all of it: the log is stopped. Valid until the next call. */
static inline const char *log_said(FILE *file)
{
    static char text[65536];

    ttm_log_stop(10000);
    const ssize_t n = pread(fileno(file), text, sizeof(text) - 1, 0);
    assert_true(n >= 0);
    text[n] = '\0';
    return text;
}

static inline uint32_t count_of(const char *string, const char *piece)
{
    uint32_t count = 0;

    for (; (string = strstr(string, piece)) != NULL; string++)
        count++;
    return count;
}

#endif /* TTM_TESTS_LOG_TESTING_H */
