/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/flame.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* More frames than a stack can have: those of Python or native ones, and the operation. */
#define FRAMES_MAX (TTM_NATIVE_FRAMES_MAX + TTM_PYTHON_FRAMES_MAX + 2)

static uint64_t weight_of(const struct ttm_report_origin *origin,
                          const struct ttm_flame_options *options)
{
    if (options->of == TTM_FLAME_ALLOCATED)
        return options->is_count ? origin->allocs : origin->born_bytes;
    const struct ttm_held *held =
        options->of == TTM_FLAME_PEAK ? &origin->peak : &origin->remaining;
    return options->is_count ? held->count : held->footprint_bytes;
}

/* One frame of a stack, as tools show it. */
struct frame {
    char *name; /* "cache_kv (decode.py:28)" */
    const char *file;
    uint32_t line;
};

/* The name without what the formats cannot bear. */
static char *clean_name(const char *name)
{
    char *copy = strdup(name);

    for (char *c = copy; c && *c; c++) {
        if (*c == ';')
            *c = ':';
        else if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    }
    return copy;
}

static char *python_name(const struct ttm_frame_words *frame)
{
    char *name = NULL;

    if (asprintf(&name, "%s (%s:%u)", frame->function, ttm_base_name(frame->file), frame->line) < 0)
        return NULL;
    char *clean = clean_name(name);
    free(name);
    return clean;
}

static void frames_done(struct frame *frames, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        free(frames[i].name);
}

/*
 * Outermost first: the user's lines, or the native frames where there are none, then the
 * operation. Returns how many, or -ENOMEM.
 */
static int frames_of(const struct ttm_origin_words *words, struct frame frames[FRAMES_MAX])
{
    uint32_t count = 0;

    for (uint32_t i = words->python_count; i-- > 0;)
        frames[count++] = (struct frame){python_name(&words->python[i]), words->python[i].file,
                                         words->python[i].line};
    for (uint32_t i = words->python_count > 0 ? 0 : words->native_count; i-- > 0;)
        frames[count++] = (struct frame){.name = clean_name(words->native[i])};
    if (words->operation[0] != '\0')
        frames[count++] = (struct frame){.name = clean_name(words->operation)};
    if (count == 0)
        frames[count++] = (struct frame){.name = strdup("(origin not known)")};
    for (uint32_t i = 0; i < count; i++) {
        if (!frames[i].name) {
            frames_done(frames, count);
            return -ENOMEM;
        }
    }
    return (int)count;
}

int ttm_flame_folded(const struct ttm_report *report, const struct ttm_flame_options *options,
                     struct ttm_text *out)
{
    struct frame frames[FRAMES_MAX];

    for (uint32_t p = 0; p < report->process_count; p++) {
        const struct ttm_report_process *process = &report->processes[p];
        for (uint32_t i = 0; i < process->origin_count; i++) {
            const struct ttm_report_origin *origin = &process->origins[i];
            const uint64_t weight = weight_of(origin, options);
            const int count = weight > 0 ? frames_of(&origin->words, frames) : 0;
            if (count < 0)
                return count;
            if (count == 0)
                continue;
            ttm_text_format(out, "pid %d;%s", process->pid, ttm_region_name(origin->region));
            for (int k = 0; k < count; k++)
                ttm_text_format(out, ";%s", frames[k].name);
            ttm_text_format(out, " %llu\n", (unsigned long long)weight);
            frames_done(frames, (uint32_t)count);
        }
    }
    return ttm_text_failed(out) ? -ENOMEM : 0;
}

/* ---- speedscope ---- */

/* The frames of all stacks, each once, and the stacks as numbers of them. */
struct shared {
    struct frame *frames;
    uint32_t count;
    uint32_t room;
    uint32_t *index; /* open addressing, frame + 1 */
    uint32_t index_size;
};

static uint64_t hash_frame(const struct frame *frame)
{
    uint64_t hash = 14695981039346656037ull; /* FNV-1a: names are short */

    for (const char *c = frame->name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211ull;
    for (const char *c = frame->file ? frame->file : ""; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211ull;
    return hash;
}

static bool is_same(const struct frame *a, const struct frame *b)
{
    return a->line == b->line && strcmp(a->name, b->name) == 0 &&
           strcmp(a->file ? a->file : "", b->file ? b->file : "") == 0;
}

static int grow(struct shared *shared)
{
    const uint32_t room = shared->room ? shared->room * 2 : 256;
    struct frame *frames = realloc(shared->frames, room * sizeof(frames[0]));

    if (!frames)
        return -ENOMEM;
    shared->frames = frames;
    uint32_t *index = calloc((size_t)room * 2, sizeof(index[0]));
    if (!index)
        return -ENOMEM;
    free(shared->index);
    shared->index = index;
    shared->index_size = room * 2;
    shared->room = room;
    for (uint32_t i = 0; i < shared->count; i++) {
        uint64_t at = hash_frame(&shared->frames[i]) & (shared->index_size - 1);
        while (index[at])
            at = (at + 1) & (shared->index_size - 1);
        index[at] = i + 1;
    }
    return 0;
}

/* Takes the frame's name over. Returns its number or -ENOMEM. */
static long intern(struct shared *shared, struct frame *frame)
{
    if (shared->count == shared->room && grow(shared) < 0) {
        free(frame->name);
        return -ENOMEM;
    }
    uint64_t at = hash_frame(frame) & (shared->index_size - 1);
    for (; shared->index[at]; at = (at + 1) & (shared->index_size - 1)) {
        if (is_same(&shared->frames[shared->index[at] - 1], frame)) {
            free(frame->name);
            return shared->index[at] - 1;
        }
    }
    shared->frames[shared->count] = *frame;
    shared->index[at] = ++shared->count;
    return shared->count - 1;
}

static int put_stack(struct ttm_json *json, struct shared *shared,
                     const struct ttm_origin_words *words)
{
    struct frame frames[FRAMES_MAX];
    const int count = frames_of(words, frames);
    int r = count < 0 ? count : 0;

    ttm_json_array_begin(json);
    for (int i = 0; i < count; i++) {
        const long number = intern(shared, &frames[i]);
        if (number < 0)
            r = (int)number;
        else
            ttm_json_u64(json, (uint64_t)number);
    }
    ttm_json_array_end(json);
    return r;
}

static bool is_in(const struct ttm_report_origin *origin, unsigned region,
                  const struct ttm_flame_options *options)
{
    return origin->region == region && weight_of(origin, options) > 0;
}

static int put_profile(struct ttm_json *json, struct shared *shared,
                       const struct ttm_report_process *process, unsigned region,
                       const struct ttm_flame_options *options)
{
    uint64_t sum = 0;
    char name[64];
    int r = 0;

    for (uint32_t i = 0; i < process->origin_count; i++)
        sum += is_in(&process->origins[i], region, options)
                   ? weight_of(&process->origins[i], options)
                   : 0;
    if (sum == 0)
        return 0;
    (void)snprintf(name, sizeof(name), "%s of pid %d", ttm_region_name(region), process->pid);
    ttm_json_object_begin(json);
    ttm_json_put_string(json, "type", "sampled");
    ttm_json_put_string(json, "name", name);
    ttm_json_put_string(json, "unit", options->is_count ? "none" : "bytes");
    ttm_json_put_u64(json, "startValue", 0);
    ttm_json_put_u64(json, "endValue", sum);
    ttm_json_key(json, "samples");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; r == 0 && i < process->origin_count; i++) {
        if (is_in(&process->origins[i], region, options))
            r = put_stack(json, shared, &process->origins[i].words);
    }
    ttm_json_array_end(json);
    ttm_json_key(json, "weights");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < process->origin_count; i++) {
        if (is_in(&process->origins[i], region, options))
            ttm_json_u64(json, weight_of(&process->origins[i], options));
    }
    ttm_json_array_end(json);
    ttm_json_object_end(json);
    return r;
}

static void put_shared(struct ttm_json *json, const struct shared *shared)
{
    ttm_json_key(json, "shared");
    ttm_json_object_begin(json);
    ttm_json_key(json, "frames");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < shared->count; i++) {
        ttm_json_object_begin(json);
        ttm_json_put_string(json, "name", shared->frames[i].name);
        if (shared->frames[i].file) {
            ttm_json_put_string(json, "file", shared->frames[i].file);
            ttm_json_put_u64(json, "line", shared->frames[i].line);
        }
        ttm_json_object_end(json);
    }
    ttm_json_array_end(json);
    ttm_json_object_end(json);
}

int ttm_flame_speedscope(const struct ttm_report *report, const struct ttm_flame_options *options,
                         struct ttm_text *out)
{
    struct shared shared = {0};
    struct ttm_json json;
    int r = 0;

    ttm_json_init(&json, out);
    ttm_json_object_begin(&json);
    ttm_json_put_string(&json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    ttm_json_put_string(&json, "exporter", "tt-mem " TTM_VERSION);
    ttm_json_put_u64(&json, "activeProfileIndex", 0);
    ttm_json_key(&json, "profiles");
    ttm_json_array_begin(&json);
    for (uint32_t p = 0; p < report->process_count; p++) {
        for (unsigned region = 0; r == 0 && region < TTM_REGION_COUNT; region++)
            r = put_profile(&json, &shared, &report->processes[p], region, options);
    }
    ttm_json_array_end(&json);
    put_shared(&json, &shared);
    ttm_json_object_end(&json);
    ttm_text_append(out, "\n");
    frames_done(shared.frames, shared.count);
    free(shared.frames);
    free(shared.index);
    return r < 0 || ttm_text_failed(out) ? -ENOMEM : 0;
}
