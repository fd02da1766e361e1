/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/native_names.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/frame_names.h"
#include "symbols/symbols.h"

#define FRAME_MAX 1200 /* a path of a module and an offset */

struct ttm_native_names {
    struct ttm_symbols *symbols;
    char frame[FRAME_MAX];
};

struct ttm_native_names *ttm_native_names_new(void)
{
    struct ttm_native_names *names = calloc(1, sizeof(*names));

    if (!names)
        return NULL;
    names->symbols = ttm_symbols_new(NULL);
    if (!names->symbols) {
        free(names);
        return NULL;
    }
    return names;
}

void ttm_native_names_free(struct ttm_native_names *names)
{
    if (!names)
        return;
    ttm_symbols_free(names->symbols);
    free(names);
}

/* As it came, without the folders of the module. */
static const char *as_it_is(const char *frame)
{
    const char *slash = strrchr(frame, '/');

    return slash ? slash + 1 : frame;
}

/* Copies the frame for as_it_is(), and finds what is there; NULL: not known. */
static const struct ttm_symbol *find(struct ttm_native_names *names, const char *frame,
                                     size_t length)
{
    const struct ttm_symbol *symbol;
    uint32_t module;
    char *end;

    if (length >= FRAME_MAX)
        length = FRAME_MAX - 1;
    memcpy(names->frame, frame, length);
    names->frame[length] = '\0';
    char *plus = strrchr(names->frame, '+');
    if (!plus || plus == names->frame || names->frame[0] != '/')
        return NULL;
    const uint64_t offset = strtoull(plus + 1, &end, 16);
    if (*end != '\0' || offset == 0)
        return NULL;
    *plus = '\0';
    const int r = ttm_symbols_module(names->symbols, names->frame, NULL, &module);
    *plus = '+';
    /* A return address lies behind the call. */
    if (r < 0 || ttm_symbols_resolve(names->symbols, module, offset - 1, &symbol) < 0 ||
        !symbol->frames[0].is_resolved)
        return NULL;
    return symbol;
}

const char *ttm_native_names_of(struct ttm_native_names *names, const char *frame, size_t length)
{
    if (!names)
        return "?";
    const struct ttm_symbol *symbol = find(names, frame, length);
    return symbol ? symbol->frames[symbol->count - 1].name : as_it_is(names->frame);
}

bool ttm_native_names_put(struct ttm_native_names *names, const char *frame, size_t length,
                          struct ttm_text *out)
{
    const struct ttm_symbol *symbol = names ? find(names, frame, length) : NULL;
    struct ttm_text name;

    if (!symbol)
        return false;
    ttm_text_init(&name);
    ttm_frame_name_put(symbol, &name);
    ttm_text_append_safe(out, ttm_text_string(&name));
    out->failed |= name.failed;
    ttm_text_done(&name);
    return true;
}
