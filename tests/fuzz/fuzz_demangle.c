/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names cut down for people. An input is a name, as a demangler prints it or as it
 * is in a file. (The demangler and libdw are fuzzed by those who make them.)
 */
#include "fuzzing.h"

#include "symbols/demangle.h"

#define NAME_MAX_BYTES 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t length = size < NAME_MAX_BYTES ? size : NAME_MAX_BYTES;
    char *name = malloc(length + 1); /* no longer, so that a read beyond its end is seen */

    MUST(name);
    memcpy(name, data, length);
    name[length] = '\0';
    char *cut = ttm_demangle_shorten(name);
    MUST(cut);
    MUST(strlen(cut) <= strlen(name) * 4 + 4);
    MUST(name[0] == '\0' || cut[0] != '\0');
    free(cut);
    free(name);
    return 0;
}
