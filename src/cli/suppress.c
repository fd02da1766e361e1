/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/suppress.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "cli/command.h"

int ttm_suppress_read(const char *path, struct ttm_suppressions *ret)
{
    unsigned line = 0;

    *ret = (struct ttm_suppressions){0};
    if (!path)
        return TTM_EXIT_OK;
    const int r = ttm_suppressions_read(path, ret, &line);
    if (r == 0)
        return TTM_EXIT_OK;
    if (r == -EBADMSG) {
        ttm_log("'%s', line %u: not of the form 'leak:PATTERN'", path, line);
        return TTM_EXIT_USAGE;
    }
    ttm_log("cannot read '%s': %s", path, strerror(-r));
    return TTM_EXIT_FAILED;
}

int ttm_suppress_suspects(const char *path, struct ttm_report *report)
{
    struct ttm_suppressions suppressions;
    const int status = ttm_suppress_read(path, &suppressions);

    if (status == TTM_EXIT_OK)
        (void)ttm_suppressions_apply(&suppressions, report);
    ttm_suppressions_done(&suppressions);
    return status;
}
