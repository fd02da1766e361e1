/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/debug_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/u64_map.h"
#include "base/u64_set.h"
#include "logs/debug_block.h"
#include "wire/life_row.h"

/* Events of rings that are read late come as much later; and not more are held back. */
#define HOLD_NS (250 * TTM_NS_PER_MS)
#define HELD_MAX 65536u
#define PYTHON_SHOWN 3 /* of the lines of a stack */
#define MINUTE_NS (60 * TTM_NS_PER_S)

/* A process, and the stacks that it has had. */
struct speaker {
    uint32_t process;
    int32_t pid;
    struct ttm_notebook notes;
    struct ttm_u64_map stacks; /* origin → index + 1 of its text */
};

struct stack_text {
    const char *bytes;
    uint16_t length;
};

struct held {
    uint64_t time_ns;
    uint64_t order; /* among those of one time */
    struct ttm_recorded_life life;
    uint32_t speaker;
    enum ttm_debug_title title;
};

struct ttm_debug_log {
    struct ttm_frame_namer namer;
    uint64_t seed;
    struct speaker **speakers;
    uint32_t speaker_count;
    uint32_t last_speaker;
    struct stack_text *stacks;
    uint32_t stack_count;
    struct ttm_arena texts;
    struct ttm_u64_set live; /* that have had their block */
    struct held *heap;       /* the earliest first */
    uint32_t held_count;
    uint32_t held_room;
    uint64_t order;
    uint64_t last_ns;
    int64_t wall_offset_ns;
    uint64_t minute; /* for which the next is known */
    int64_t utc_offset_s;
};

struct ttm_debug_log *ttm_debug_log_new(const struct ttm_frame_namer *namer, uint64_t seed)
{
    struct ttm_debug_log *log = calloc(1, sizeof(*log));

    if (!log)
        return NULL;
    log->namer = *namer;
    log->seed = seed;
    ttm_arena_init(&log->texts);
    ttm_u64_set_init(&log->live, seed);
    return log;
}

void ttm_debug_log_free(struct ttm_debug_log *log)
{
    if (!log)
        return;
    for (uint32_t i = 0; i < log->speaker_count; i++) {
        ttm_notebook_done(&log->speakers[i]->notes);
        ttm_u64_map_done(&log->speakers[i]->stacks);
        free(log->speakers[i]);
    }
    free(log->speakers);
    free(log->stacks);
    free(log->heap);
    ttm_arena_done(&log->texts);
    ttm_u64_set_done(&log->live);
    free(log);
}

/* The index of a process; UINT32_MAX when memory is short. */
static uint32_t speaker_of(struct ttm_debug_log *log, uint32_t process)
{
    if (log->speaker_count > 0 && log->speakers[log->last_speaker]->process == process)
        return log->last_speaker;
    for (uint32_t i = 0; i < log->speaker_count; i++) {
        if (log->speakers[i]->process == process)
            return log->last_speaker = i;
    }
    struct speaker **grown = realloc(log->speakers, (log->speaker_count + 1) * sizeof(void *));
    if (!grown)
        return UINT32_MAX;
    log->speakers = grown;
    struct speaker *speaker = calloc(1, sizeof(*speaker));
    if (!speaker)
        return UINT32_MAX;
    speaker->process = process;
    ttm_notebook_init(&speaker->notes, log->seed);
    ttm_u64_map_init(&speaker->stacks, log->seed);
    grown[log->speaker_count] = speaker;
    return log->last_speaker = log->speaker_count++;
}

/* ---- stacks ---- */

/* As many lines as the original has, innermost first: native ones, and the user's own. */
static void put_stack(const struct ttm_origin_words *words, struct ttm_text *out)
{
    const uint32_t python = words->python_count < PYTHON_SHOWN ? words->python_count : PYTHON_SHOWN;

    for (uint32_t i = 0; i < words->native_count && i + python < TTM_DEBUG_FRAMES; i++) {
        const char *module = words->native_modules[i], *name = words->native[i];
        const size_t length = strlen(module);
        /* A frame without a name is "module+0x12": the module is there already. */
        if (length > 0 && strncmp(name, module, length) == 0 && name[length] == '+')
            name += length;
        ttm_debug_frame_append(out, module, 0, name);
    }
    for (uint32_t i = 0; i < python; i++)
        ttm_debug_frame_append(out, words->python[i].file, words->python[i].line,
                               words->python[i].function);
}

static int add_stack(struct ttm_debug_log *log, const struct ttm_text *text)
{
    if ((log->stack_count & (log->stack_count - 1)) == 0) {
        struct stack_text *grown =
            realloc(log->stacks, (log->stack_count ? log->stack_count * 2 : 1) * sizeof(grown[0]));
        if (!grown)
            return -ENOMEM;
        log->stacks = grown;
    }
    const size_t length = text->length < UINT16_MAX ? text->length : 0;
    log->stacks[log->stack_count++] = (struct stack_text){
        ttm_arena_text(&log->texts, ttm_text_string(text), length), (uint16_t)length};
    return log->texts.failed ? -ENOMEM : 0;
}

/* The lines of an origin's stack, made once: to name frames may take long. */
static struct ttm_note_text stack_of(struct ttm_debug_log *log, struct speaker *speaker,
                                     uint32_t origin)
{
    const struct ttm_note_text none = {"", 0};
    struct ttm_origin_words words;
    struct ttm_arena arena;
    struct ttm_text text;
    uint32_t place;

    if (origin == 0)
        return none;
    if (!ttm_u64_map_find(&speaker->stacks, origin, &place)) {
        ttm_arena_init(&arena);
        ttm_text_init(&text);
        ttm_origin_words_read(&speaker->notes, origin, &log->namer, &arena, &words);
        put_stack(&words, &text);
        place = log->stack_count;
        const int r = add_stack(log, &text);
        ttm_text_done(&text);
        ttm_arena_done(&arena);
        if (r < 0 || ttm_u64_map_add(&speaker->stacks, origin, place) < 0)
            return none;
    }
    return (struct ttm_note_text){log->stacks[place].bytes, log->stacks[place].length};
}

/* ---- blocks ---- */

static uint32_t second_of(struct ttm_debug_log *log, uint64_t time_ns)
{
    const uint64_t wall_ns = time_ns + (uint64_t)log->wall_offset_ns;
    const time_t wall_s = (time_t)(wall_ns / TTM_NS_PER_S);
    struct tm local;

    if (log->minute != wall_ns / MINUTE_NS + 1) {
        log->minute = wall_ns / MINUTE_NS + 1;
        log->utc_offset_s = localtime_r(&wall_s, &local) ? local.tm_gmtoff : 0;
    }
    return (uint32_t)(((wall_s + log->utc_offset_s) % 86400 + 86400) % 86400);
}

/*
 * Nobody knows the address of the object. What stands there instead tells buffers apart as
 * it would, those of other processes and runs too. The original protocol has addresses for
 * ids, which DRAM and L1 share: then it is the number of the life.
 */
static uint64_t pointer_of(const struct speaker *speaker, const struct ttm_recorded_life *life)
{
    const uint64_t id = life->id == life->address ? life->serial : life->id;

    return id >> 32 ? id : (uint64_t)(uint32_t)speaker->pid << 32 | id;
}

static void put_held(struct ttm_debug_log *log, const struct held *held, struct ttm_text *out)
{
    struct speaker *speaker = log->speakers[held->speaker];
    const struct ttm_recorded_life *life = &held->life;
    uint16_t devices[TTM_DEVICE_COUNT];
    struct ttm_debug_block block = {
        .title = held->title,
        .second = second_of(log, held->time_ns),
        .region = life->region,
        .is_view = (life->flags & TTM_SITE_ALIAS) != 0,
        .address = life->address,
        .bytes = life->bytes,
        .pointer = pointer_of(speaker, life),
        .stack = {"", 0}, /* frees carry none */
    };

    if (held->title == TTM_DEBUG_ALLOCATED)
        block.stack = stack_of(log, speaker, life->origin);
    const uint32_t count = ttm_notebook_devices(&speaker->notes, life->devices, devices);
    for (uint32_t i = 0; i < count; i++) {
        block.device = devices[i];
        ttm_debug_block_append(out, &block);
    }
}

/* ---- what is held back: a heap ---- */

static bool is_before(const struct held *a, const struct held *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

static void swap(struct held *a, struct held *b)
{
    const struct held c = *a;

    *a = *b;
    *b = c;
}

static int hold(struct ttm_debug_log *log, const struct held *held)
{
    if (log->held_count == log->held_room) {
        const uint32_t room = log->held_room ? log->held_room * 2 : 256;
        struct held *grown = realloc(log->heap, room * sizeof(grown[0]));
        if (!grown)
            return -ENOMEM;
        log->heap = grown;
        log->held_room = room;
    }
    uint32_t at = log->held_count++;
    log->heap[at] = *held;
    for (; at > 0 && is_before(&log->heap[at], &log->heap[(at - 1) / 2]); at = (at - 1) / 2)
        swap(&log->heap[at], &log->heap[(at - 1) / 2]);
    return 0;
}

static void release(struct ttm_debug_log *log, struct ttm_text *out)
{
    put_held(log, &log->heap[0], out);
    log->heap[0] = log->heap[--log->held_count];
    for (uint32_t at = 0, child; (child = 2 * at + 1) < log->held_count; at = child) {
        if (child + 1 < log->held_count && is_before(&log->heap[child + 1], &log->heap[child]))
            child++;
        if (!is_before(&log->heap[child], &log->heap[at]))
            break;
        swap(&log->heap[child], &log->heap[at]);
    }
}

void ttm_debug_log_flush(struct ttm_debug_log *log, struct ttm_text *out)
{
    while (log->held_count > 0)
        release(log, out);
}

/* ---- records ---- */

/* The title of an end; false for one that the original would have been silent about. */
static bool title_of(uint8_t how, enum ttm_debug_title *ret)
{
    switch ((enum ttm_recorded_how)how) {
    case TTM_ENDED_FREED:
    case TTM_ENDED_PROGRAM_ENDED:
    case TTM_ENDED_UNHEARD:
        *ret = TTM_DEBUG_DEALLOCATED;
        return true;
    case TTM_ENDED_DEVICE_CLOSED:
    case TTM_ENDED_ALLOCATOR_CLOSED:
        *ret = TTM_DEBUG_DESTRUCTOR; /* the device is gone, so no free follows */
        return true;
    case TTM_ENDED_REPLACED:
    case TTM_ENDED_PROCESS_ENDED:
    case TTM_ENDED_COUNT:
        break;
    }
    return false;
}

static int take_life(struct ttm_debug_log *log, const struct ttm_recorded *record, uint32_t speaker)
{
    const struct ttm_recorded_life *life = record->life;
    const uint64_t key = ttm_hash_u64(life->serial ^ ttm_hash_u64(record->process ^ log->seed)) | 1;
    struct held held = {.life = *life, .speaker = speaker, .order = log->order++};

    if (life->region >= TTM_REGION_CB)
        return 0;
    if (record->type == TTM_RECORDED_BIRTH) {
        if (life->is_told && ttm_u64_set_has(&log->live, key))
            return 0;
        const int r = ttm_u64_set_add(&log->live, key);
        if (r < 0)
            return r;
        held.title = TTM_DEBUG_ALLOCATED;
        held.time_ns = life->birth_ns;
        return hold(log, &held);
    }
    (void)ttm_u64_set_remove(&log->live, key);
    /* The server's clock may be behind the program's, by a turn of its loop. */
    held.time_ns = record->time_ns > life->birth_ns ? record->time_ns : life->birth_ns;
    return title_of(record->how, &held.title) ? hold(log, &held) : 0;
}

int ttm_debug_log_take(struct ttm_debug_log *log, const struct ttm_recorded *record,
                       int64_t wall_offset_ns, struct ttm_text *out)
{
    int r = 0;

    if (record->type == TTM_RECORDED_GAP)
        return 0;
    const uint32_t speaker = speaker_of(log, record->process);
    if (speaker == UINT32_MAX)
        return -ENOMEM;
    log->wall_offset_ns = wall_offset_ns;
    if (record->type == TTM_RECORDED_PROCESS)
        log->speakers[speaker]->pid = record->seen.pid;
    if (record->type == TTM_RECORDED_NOTE) {
        const struct ttm_noted note = {record->note.number, record->note.kind, record->note.bytes,
                                       record->note.length};
        r = ttm_notebook_add(&log->speakers[speaker]->notes, &note);
    }
    if (record->type == TTM_RECORDED_BIRTH || record->type == TTM_RECORDED_END)
        r = take_life(log, record, speaker);
    if (record->time_ns > log->last_ns)
        log->last_ns = record->time_ns;
    while (log->held_count > 0 &&
           (log->held_count > HELD_MAX || log->heap[0].time_ns + HOLD_NS < log->last_ns))
        release(log, out);
    return r;
}
