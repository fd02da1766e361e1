/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/frame_names.h"

#include <stdio.h>
#include <string.h>

#include "symbols/symbols.h"

/* The module's number in 'symbols', or -1. */
static long number_of(struct ttm_symbols *symbols, const struct ttm_module_note *module)
{
    char path[TTM_MODULE_PATH_MAX + 1], build_id[2 * TTM_BUILD_ID_MAX + 1] = "";
    uint32_t number;

    memcpy(path, module->path.bytes, module->path.length);
    path[module->path.length] = '\0';
    for (uint8_t i = 0; i < module->build_id_length; i++)
        (void)snprintf(build_id + (size_t)2 * i, 3, "%02x", module->build_id[i]);
    return ttm_symbols_module(symbols, path, build_id, &number) == 0 ? (long)number : -1;
}

void ttm_frame_name_put(const struct ttm_symbol *symbol, struct ttm_text *name)
{
    const struct ttm_symbol_frame *inner = &symbol->frames[0];

    /* Without lines the last is the function that is really there. */
    if (!inner->file || inner->line == 0) {
        ttm_text_append(name, symbol->frames[symbol->count - 1].name);
        return;
    }
    const char *slash = strrchr(inner->file, '/');
    ttm_text_format(name, "%s:%u %s", slash ? slash + 1 : inner->file, inner->line, inner->name);
    for (uint32_t i = 1; i < symbol->count; i++)
        ttm_text_format(name, " ← %s", symbol->frames[i].name);
}

/* NULL when it is not known which function lies there. */
static const struct ttm_symbol *find(struct ttm_symbols *symbols,
                                     const struct ttm_module_note *module, uint64_t address,
                                     bool is_exact)
{
    const struct ttm_symbol *symbol;
    const long number = number_of(symbols, module);

    if (number < 0 || address == 0 ||
        ttm_symbols_resolve(symbols, (uint32_t)number, address - !is_exact, &symbol) < 0)
        return NULL;
    return symbol->frames[symbol->count - 1].is_resolved ? symbol : NULL;
}

static bool name_frame(void *arg, const struct ttm_module_note *module, uint64_t address,
                       bool is_exact, struct ttm_text *name)
{
    const struct ttm_symbol *symbol = find(arg, module, address, is_exact);

    if (symbol)
        ttm_frame_name_put(symbol, name);
    return symbol != NULL;
}

static uint32_t list_frames(void *arg, const struct ttm_module_note *module, uint64_t address,
                            bool is_exact, struct ttm_frame_words *ret, uint32_t max)
{
    const struct ttm_symbol *symbol = find(arg, module, address, is_exact);
    uint32_t count = 0;

    if (!symbol)
        return 0;
    /* Without lines the last is the function that is really there. */
    const bool has_lines = symbol->frames[0].file && symbol->frames[0].line > 0;
    for (uint32_t i = has_lines ? 0 : symbol->count - 1; i < symbol->count && count < max; i++) {
        const struct ttm_symbol_frame *frame = &symbol->frames[i];
        const bool has_line = frame->file && frame->line > 0;
        ret[count++] = (struct ttm_frame_words){.file = has_line ? frame->file : "",
                                                .function = frame->name,
                                                .line = has_line ? frame->line : 0};
    }
    return count;
}

struct ttm_frame_namer ttm_frame_names(struct ttm_symbols *symbols)
{
    if (!symbols)
        return (struct ttm_frame_namer){0};
    return (struct ttm_frame_namer){.name = name_frame, .list = list_frames, .arg = symbols};
}
