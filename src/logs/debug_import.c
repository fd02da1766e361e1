/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block names its buffer by the address of the object, which the host's heap gives to the
 * next one once it is gone. So a pointer means the newest buffer that had it. A buffer
 * that owns its memory and is born where another one lies has replaced it; the free of
 * that other one, should it still come, is known by its pointer and changes nothing.
 *
 * A destructor's block says that the object goes while its memory is allocated. Mostly the
 * free follows at once. Where it does not, the device was closed before: nobody freed it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "logs/debug_block.h"
#include "logs/importing.h"
#include "wire/life_row.h"
#include "wire/note.h"

#define DAY_S 86400
#define BLOCK_NS 1000u     /* blocks of one second are this far apart */
#define BLOCKS_MAX 999999u /* that are told apart within a second */

struct buffer {
    uint64_t serial; /* 0: it was replaced, and its free may come */
    uint64_t pointer_key;
    uint64_t address_key;
    uint64_t address;
    uint32_t next_free;
    bool is_owner;
    bool is_leaving; /* its destructor has run */
};

struct ttm_debug_import {
    struct ttm_import *imp;
    uint32_t process;
    struct ttm_u64_map by_pointer; /* device and pointer → buffer */
    struct ttm_u64_map by_address; /* device, region and address → its live owner */
    struct ttm_u64_map origins;    /* hash of a stack's lines → origin */
    struct buffer *buffers;
    uint32_t buffer_count;
    uint32_t buffer_room;
    uint32_t free_buffer;
    uint64_t midnight_ns; /* at which the present day began */
    uint32_t second;
    uint32_t blocks; /* of this second so far */
    bool has_time;
};

/* ---- the clock ---- */

/* The log has no dates: its first event lies in the 24 hours before it was last written to. */
static void start_clock(struct ttm_debug_import *d, uint32_t second)
{
    const struct ttm_import_options *options = &d->imp->options;
    const int64_t local_s =
        (int64_t)(options->written_wall_ns / TTM_NS_PER_S) + options->utc_offset_s;
    int64_t midnight_s = local_s - local_s % DAY_S;

    if (second > local_s % DAY_S)
        midnight_s -= DAY_S;
    midnight_s -= options->utc_offset_s;
    d->midnight_ns = midnight_s > 0 ? (uint64_t)midnight_s * TTM_NS_PER_S : 0;
    d->second = second;
    d->has_time = true;
}

static void set_clock(struct ttm_debug_import *d, uint32_t second)
{
    if (!d->has_time)
        start_clock(d, second == TTM_DEBUG_NO_TIME ? 0 : second);
    if (second != TTM_DEBUG_NO_TIME && second != d->second) {
        if (second < d->second && d->second - second > DAY_S / 2)
            d->midnight_ns += DAY_S * TTM_NS_PER_S; /* past midnight */
        else if (second < d->second)
            second = d->second; /* threads write as they come */
        if (second != d->second)
            d->blocks = 0;
        d->second = second;
    }
    d->imp->now_ns = d->midnight_ns + d->second * TTM_NS_PER_S + (uint64_t)d->blocks * BLOCK_NS;
    if (d->blocks < BLOCKS_MAX)
        d->blocks++;
}

/* ---- origins ---- */

/* The stacks of a block, as notes say them. */
struct stacks {
    struct ttm_python_stack_note python;
    struct ttm_named_stack_note native;
};

static int add_python(struct ttm_debug_import *d, const struct ttm_debug_frame *frame,
                      struct ttm_python_stack_note *stack)
{
    const struct ttm_code_note code = {.file = frame->module, .name = frame->name};
    uint32_t number;

    if (stack->count == TTM_PYTHON_FRAMES_MAX) {
        stack->is_cut = true;
        return 0;
    }
    const size_t length = ttm_code_note_encode(&code, d->imp->note);
    const int r =
        ttm_importing_note(d->imp, d->process, TTM_NOTE_CODE, d->imp->note, length, &number);
    if (r == 0)
        stack->frames[stack->count++] = (struct ttm_python_frame){number, frame->line};
    return r;
}

static int read_stacks(struct ttm_debug_import *d, struct ttm_note_text text, struct stacks *ret)
{
    struct ttm_debug_frame frame;
    int r = 0;

    ret->python.count = ret->native.count = 0;
    ret->python.is_cut = ret->native.is_cut = false;
    while (r == 0 && ttm_debug_frame_next(&text, &frame)) {
        if (frame.line > 0)
            r = add_python(d, &frame, &ret->python);
        else if (ret->native.count == TTM_NATIVE_FRAMES_MAX)
            ret->native.is_cut = true;
        else if (frame.name.length > 0 || frame.module.length > 0)
            ret->native.frames[ret->native.count++] =
                (struct ttm_named_frame){frame.module, frame.name};
    }
    return r;
}

static int say_origin(struct ttm_debug_import *d, struct ttm_note_text text, uint32_t *ret)
{
    struct ttm_import *imp = d->imp;
    struct ttm_origin_note origin = {0};
    uint8_t bytes[TTM_ORIGIN_NOTE_SIZE];
    struct stacks stacks;
    int r = read_stacks(d, text, &stacks);

    if (r == 0 && stacks.python.count > 0)
        r = ttm_importing_note(imp, d->process, TTM_NOTE_PYTHON_STACK, imp->note,
                               ttm_python_stack_note_encode(&stacks.python, imp->note),
                               &origin.python);
    if (r == 0 && stacks.native.count > 0)
        r = ttm_importing_note(imp, d->process, TTM_NOTE_NAMED_STACK, imp->note,
                               ttm_named_stack_note_encode(&stacks.native, imp->note),
                               &origin.native);
    *ret = 0;
    if (r < 0 || (origin.python == 0 && origin.native == 0))
        return r;
    ttm_origin_note_encode(&origin, bytes);
    return ttm_importing_note(imp, d->process, TTM_NOTED_ORIGIN, bytes, sizeof(bytes), ret);
}

/* Stacks come again and again: their text is looked at once. */
static int origin_of(struct ttm_debug_import *d, struct ttm_note_text text, uint32_t *ret)
{
    const uint64_t key = ttm_importing_hash(d->imp->options.seed, text.bytes, text.length);

    if (ttm_u64_map_find(&d->origins, key, ret))
        return 0;
    const int r = say_origin(d, text, ret);
    return r < 0 ? r : ttm_u64_map_add(&d->origins, key, *ret);
}

/* ---- buffers ---- */

static int new_buffer(struct ttm_debug_import *d, uint32_t *ret)
{
    if (d->free_buffer != TTM_NO_PLACE) {
        *ret = d->free_buffer;
        d->free_buffer = d->buffers[*ret].next_free;
        return 0;
    }
    if (d->buffer_count == d->buffer_room) {
        const uint32_t room = d->buffer_room ? d->buffer_room * 2 : 256;
        struct buffer *grown = realloc(d->buffers, (size_t)room * sizeof(grown[0]));
        if (!grown)
            return -ENOMEM;
        d->buffers = grown;
        d->buffer_room = room;
    }
    *ret = d->buffer_count++;
    return 0;
}

/* Ends what a buffer has; it is still known by its pointer. */
static int end_buffer(struct ttm_debug_import *d, uint32_t at, enum ttm_recorded_how how)
{
    struct buffer *buffer = &d->buffers[at];
    uint32_t owner;

    if (buffer->serial == 0)
        return 0;
    if (buffer->is_owner && ttm_u64_map_find(&d->by_address, buffer->address_key, &owner) &&
        owner == at)
        (void)ttm_u64_map_take(&d->by_address, buffer->address_key, &owner);
    const int r = ttm_importing_end_life(
        d->imp, d->process, buffer->serial,
        buffer->is_leaving && how != TTM_ENDED_FREED ? TTM_ENDED_DEVICE_CLOSED : how);
    buffer->serial = 0;
    return r;
}

static void forget_buffer(struct ttm_debug_import *d, uint32_t at)
{
    uint32_t taken;

    (void)ttm_u64_map_take(&d->by_pointer, d->buffers[at].pointer_key, &taken);
    d->buffers[at].next_free = d->free_buffer;
    d->free_buffer = at;
}

/* What cannot be live any more, now that this one is born. */
static int make_way(struct ttm_debug_import *d, const struct buffer *born)
{
    uint32_t at;
    int r = 0;

    if (ttm_u64_map_find(&d->by_pointer, born->pointer_key, &at)) {
        r = end_buffer(d, at, TTM_ENDED_REPLACED);
        forget_buffer(d, at);
    }
    if (r == 0 && born->is_owner && ttm_u64_map_find(&d->by_address, born->address_key, &at))
        r = end_buffer(d, at, TTM_ENDED_REPLACED);
    return r;
}

static int enter_buffer(struct ttm_debug_import *d, const struct buffer *born)
{
    uint32_t at;
    int r = new_buffer(d, &at);

    if (r < 0)
        return r;
    d->buffers[at] = *born;
    r = ttm_u64_map_add(&d->by_pointer, born->pointer_key, at);
    if (r == 0 && born->is_owner)
        r = ttm_u64_map_add(&d->by_address, born->address_key, at);
    return r;
}

static uint64_t pointer_key(const struct ttm_debug_import *d, const struct ttm_debug_block *block)
{
    return ttm_importing_mix(ttm_importing_mix(d->imp->options.seed, block->pointer),
                             block->device);
}

static int take_birth(struct ttm_debug_import *d, const struct ttm_debug_block *block)
{
    /* What graph capture makes has no memory; it counts no more than a view does. */
    const bool is_owner = !block->is_view && !block->is_hooked;
    struct buffer born = {
        .pointer_key = pointer_key(d, block),
        .address_key = ttm_importing_mix(ttm_importing_mix(d->imp->options.seed, block->address),
                                         (uint64_t)block->region << 16 | block->device),
        .address = block->address,
        .is_owner = is_owner,
    };
    struct ttm_recorded_life life = {
        .id = block->pointer,
        .address = block->address,
        .bytes = block->bytes,
        .allocator = block->device,
        .devices = block->device,
        .region = block->region,
        .flags = is_owner ? 0 : TTM_SITE_ALIAS,
    };
    int r = make_way(d, &born);

    if (r == 0)
        r = origin_of(d, block->stack, &life.origin);
    if (r == 0)
        r = ttm_importing_birth(d->imp, d->process, &life);
    born.serial = life.serial;
    d->imp->result.others += block->is_other;
    return r < 0 ? r : enter_buffer(d, &born);
}

static int take_end(struct ttm_debug_import *d, const struct ttm_debug_block *block)
{
    const bool is_destructor = block->title == TTM_DEBUG_DESTRUCTOR;
    uint32_t at;

    if (!ttm_u64_map_find(&d->by_pointer, pointer_key(d, block), &at) ||
        d->buffers[at].address != block->address) {
        /* The free behind a destructor tells of the same. */
        ttm_importing_process(d->imp, d->process)->counters.unknown_frees += !is_destructor;
        d->imp->result.unknown_frees += !is_destructor;
        return 0;
    }
    if (is_destructor) {
        d->buffers[at].is_leaving = true;
        return 0;
    }
    if (d->buffers[at].serial == 0) {
        ttm_importing_process(d->imp, d->process)->counters.ambiguous_frees++;
        d->imp->result.references++;
    }
    const int r = end_buffer(d, at, TTM_ENDED_FREED);
    forget_buffer(d, at);
    return r;
}

/* ---- blocks ---- */

static int take_block(struct ttm_debug_import *d, const struct ttm_debug_block *block)
{
    int r = 0;

    d->imp->result.events++;
    set_clock(d, block->second);
    if (d->process == 0)
        r = ttm_importing_find(d->imp, 0, &d->process);
    if (r < 0)
        return r;
    return block->title == TTM_DEBUG_ALLOCATED ? take_birth(d, block) : take_end(d, block);
}

int ttm_debug_import_take(struct ttm_debug_import *d, const char *text, size_t length)
{
    struct ttm_debug_reader reader = {.at = text, .end = text + length, .line = d->imp->line};
    struct ttm_debug_block block;
    uint64_t line;
    int kind, r = 0;

    while (r == 0 && (kind = ttm_debug_block_next(&reader, &block, &line)) != 0) {
        if (kind > 0)
            r = take_block(d, &block);
        else
            ttm_importing_broken(d->imp, line);
    }
    d->imp->line = reader.line;
    return r;
}

/* Destructors whose free did not come. */
int ttm_debug_import_finish(struct ttm_debug_import *d)
{
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < d->buffer_count; i++) {
        if (d->buffers[i].is_leaving)
            r = end_buffer(d, i, TTM_ENDED_DEVICE_CLOSED);
    }
    return r;
}

struct ttm_debug_import *ttm_debug_import_new(struct ttm_import *imp)
{
    struct ttm_debug_import *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->imp = imp;
    d->free_buffer = TTM_NO_PLACE;
    ttm_u64_map_init(&d->by_pointer, imp->options.seed);
    ttm_u64_map_init(&d->by_address, imp->options.seed);
    ttm_u64_map_init(&d->origins, imp->options.seed);
    return d;
}

void ttm_debug_import_free(struct ttm_debug_import *d)
{
    if (!d)
        return;
    ttm_u64_map_done(&d->by_pointer);
    ttm_u64_map_done(&d->by_address);
    ttm_u64_map_done(&d->origins);
    free(d->buffers);
    free(d);
}
