/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/symbols.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/seed.h"
#include "base/u64_map.h"
#include "symbols/demangle.h"
#include "symbols/module.h"

#define DEBUG_FOLDER "/usr/lib/debug"

/* An answer that is kept. Answers are made one by one, so that pointers to them stay good. */
struct answer {
    struct ttm_symbol symbol; /* first: it is what we hand out */
    struct ttm_symbol_frame frames[];
};

struct known_module {
    char *path;
    char *build_id;
    struct ttm_module *module; /* NULL unless FOUND */
    enum ttm_symbols_state state;
    struct ttm_u64_map by_offset; /* → place in 'answers' */
    struct answer **answers;
    uint32_t answer_count;
    uint32_t answer_room;
};

struct ttm_symbols {
    char *debug_folder;
    struct known_module *modules;
    uint32_t count;
    uint32_t room;
};

struct ttm_symbols *ttm_symbols_new(const char *debug_folder)
{
    struct ttm_symbols *symbols = calloc(1, sizeof(*symbols));

    if (!symbols)
        return NULL;
    symbols->debug_folder = strdup(debug_folder ? debug_folder : DEBUG_FOLDER);
    if (!symbols->debug_folder) {
        free(symbols);
        return NULL;
    }
    return symbols;
}

static void free_answer(struct answer *answer)
{
    if (!answer)
        return;
    for (uint32_t i = 0; i < answer->symbol.count; i++) {
        free((char *)answer->frames[i].name);
        free((char *)answer->frames[i].full);
        free((char *)answer->frames[i].file);
    }
    free(answer);
}

void ttm_symbols_free(struct ttm_symbols *symbols)
{
    if (!symbols)
        return;
    for (uint32_t i = 0; i < symbols->count; i++) {
        struct known_module *known = &symbols->modules[i];
        for (uint32_t k = 0; k < known->answer_count; k++)
            free_answer(known->answers[k]);
        free(known->answers);
        ttm_u64_map_done(&known->by_offset);
        ttm_module_free(known->module);
        free(known->path);
        free(known->build_id);
    }
    free(symbols->modules);
    free(symbols->debug_folder);
    free(symbols);
}

int ttm_symbols_module(struct ttm_symbols *symbols, const char *path, const char *build_id,
                       uint32_t *ret)
{
    if (!build_id)
        build_id = "";
    /* A program has some hundred of them, and this is asked once for each. */
    for (uint32_t i = 0; i < symbols->count; i++) {
        if (strcmp(symbols->modules[i].path, path) == 0 &&
            strcmp(symbols->modules[i].build_id, build_id) == 0) {
            *ret = i;
            return 0;
        }
    }
    if (symbols->count == symbols->room) {
        const uint32_t room = symbols->room ? symbols->room * 2 : 16;
        struct known_module *modules = realloc(symbols->modules, room * sizeof(modules[0]));
        if (!modules)
            return -ENOMEM;
        symbols->modules = modules;
        symbols->room = room;
    }
    struct known_module known = {.path = strdup(path), .build_id = strdup(build_id)};
    if (!known.path || !known.build_id) {
        free(known.path);
        free(known.build_id);
        return -ENOMEM;
    }
    ttm_u64_map_init(&known.by_offset, ttm_seed_random());
    symbols->modules[symbols->count] = known;
    *ret = symbols->count++;
    return 0;
}

enum ttm_symbols_state ttm_symbols_module_state(const struct ttm_symbols *symbols, uint32_t module)
{
    return module < symbols->count ? symbols->modules[module].state : TTM_SYMBOLS_GONE;
}

static int open_module(struct ttm_symbols *symbols, struct known_module *known)
{
    const int r =
        ttm_module_open(known->path, known->build_id, symbols->debug_folder, &known->module);

    switch (r) {
    case 0:
        known->state = TTM_SYMBOLS_FOUND;
        return 0;
    case -ESTALE:
        known->state = TTM_SYMBOLS_CHANGED;
        return 0;
    case -ENOMEM:
        return r;
    default:
        known->state = TTM_SYMBOLS_GONE;
        return 0;
    }
}

static struct answer *new_answer(size_t count)
{
    struct answer *answer = calloc(1, sizeof(*answer) + count * sizeof(answer->frames[0]));

    if (!answer)
        return NULL;
    answer->symbol.count = (uint32_t)count;
    answer->symbol.frames = answer->frames;
    return answer;
}

/* A path from the root, where the compiler left word from where it counted; NULL: out of memory. */
static char *whole_path(const struct ttm_module_frame *found)
{
    char *path = NULL;

    if (found->file[0] == '/' || !found->folder || found->folder[0] != '/')
        return strdup(found->file);
    return asprintf(&path, "%s/%s", found->folder, found->file) < 0 ? NULL : path;
}

static int fill_frame(const struct ttm_module_frame *found, struct ttm_symbol_frame *ret)
{
    char *full = ttm_demangle(found->mangled ? found->mangled : "?");

    if (!full)
        return -ENOMEM;
    ret->full = full;
    ret->name = ttm_demangle_shorten(full);
    ret->line = found->line;
    ret->is_resolved = found->mangled;
    if (!ret->name)
        return -ENOMEM;
    if (found->file) {
        ret->file = whole_path(found);
        if (!ret->file)
            return -ENOMEM;
    }
    return 0;
}

/* "libfoo.so+0x1234". */
static int fill_unknown(const struct known_module *known, uint64_t offset,
                        struct ttm_symbol_frame *ret)
{
    const char *slash = strrchr(known->path, '/');
    const char *name = slash && slash[1] ? slash + 1 : known->path;
    char *text = NULL, *copy;

    if (asprintf(&text, "%s+0x%llx", name[0] ? name : "?", (unsigned long long)offset) < 0)
        return -ENOMEM;
    copy = strdup(text);
    ret->name = text;
    ret->full = copy;
    return copy ? 0 : -ENOMEM;
}

static int make_answer(const struct known_module *known, uint64_t offset, struct answer **ret)
{
    struct ttm_module_frame found[TTM_MODULE_FRAMES_MAX];
    const size_t count = known->module ? ttm_module_find(known->module, offset, found) : 0;
    struct answer *answer = new_answer(count > 0 ? count : 1);
    int r = answer ? 0 : -ENOMEM;

    if (r == 0 && count == 0)
        r = fill_unknown(known, offset, &answer->frames[0]);
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = fill_frame(&found[i], &answer->frames[i]);
        answer->frames[i].is_inlined = i + 1 < count;
    }
    if (r < 0) {
        free_answer(answer);
        return r;
    }
    *ret = answer;
    return 0;
}

static int keep_answer(struct known_module *known, uint64_t offset, struct answer *answer)
{
    if (known->answer_count == known->answer_room) {
        const uint32_t room = known->answer_room ? known->answer_room * 2 : 64;
        /* NOLINTNEXTLINE(bugprone-sizeof-expression): it holds pointers */
        struct answer **answers = realloc(known->answers, room * sizeof(answers[0]));
        if (!answers)
            return -ENOMEM;
        known->answers = answers;
        known->answer_room = room;
    }
    const int r = ttm_u64_map_add(&known->by_offset, offset, known->answer_count);
    if (r < 0)
        return r;
    known->answers[known->answer_count++] = answer;
    return 0;
}

int ttm_symbols_resolve(struct ttm_symbols *symbols, uint32_t module, uint64_t offset,
                        const struct ttm_symbol **ret)
{
    struct answer *answer;
    uint32_t place;
    int r = 0;

    if (module >= symbols->count)
        return -EINVAL;
    struct known_module *known = &symbols->modules[module];
    if (ttm_u64_map_find(&known->by_offset, offset, &place)) {
        *ret = &known->answers[place]->symbol;
        return 0;
    }
    if (known->state == TTM_SYMBOLS_UNOPENED)
        r = open_module(symbols, known);
    if (r == 0)
        r = make_answer(known, offset, &answer);
    if (r < 0)
        return r;
    r = keep_answer(known, offset, answer);
    if (r < 0) {
        free_answer(answer);
        return r;
    }
    *ret = &answer->symbol;
    return 0;
}
