/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server kept a count of references for each address of a device: a second "Allocated"
 * raises it, a "Freed" lowers it, and only FINAL means that it was zero. What raises it
 * is a view of the same buffer, a circular buffer that came as L1, a buffer whose free got
 * lost, or one of another region, as DRAM and L1 share numbers. In all cases but the last,
 * one life at most is in that place: the newest.
 *
 * A place is an id in one region of a device, as one process has it. It knows how many
 * references the server has counted there. While there are several, a free may be of any of
 * them: of a view, when all have one size, and then the buffer lives on; of the newest,
 * when sizes differ, as no other can be there. A place that ever had several has an
 * origin of its own, by which the report explains it, and is kept; others go when they are
 * empty.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "logs/importing.h"
#include "logs/scan.h"
#include "logs/server_line.h"
#include "wire/note.h"
#include "wire/region.h"

#define LINE_NS 1000u /* the log has no times: its lines are this far apart */

struct place {
    uint64_t serial; /* of the life that is in it, 0: none */
    uint64_t bytes;
    uint32_t origin;
    uint32_t references;
    uint32_t next; /* of the same id; of a free place: the next one */
    uint8_t region;
    bool is_mixed; /* its references are of several sizes */
};

struct ttm_server_import {
    struct ttm_import *imp;
    struct ttm_u64_map heads; /* process, device and id → first place */
    struct place *places;
    uint32_t place_count;
    uint32_t place_room;
    uint32_t free_place;
};

/* ---- places ---- */

static int new_place(struct ttm_server_import *s, uint32_t *ret)
{
    if (s->free_place != TTM_NO_PLACE) {
        *ret = s->free_place;
        s->free_place = s->places[*ret].next;
        return 0;
    }
    if (s->place_count == s->place_room) {
        const uint32_t room = s->place_room ? s->place_room * 2 : 256;
        struct place *grown = realloc(s->places, (size_t)room * sizeof(grown[0]));
        if (!grown)
            return -ENOMEM;
        s->places = grown;
        s->place_room = room;
    }
    *ret = s->place_count++;
    return 0;
}

static int add_place(struct ttm_server_import *s, uint64_t key, uint8_t region, uint32_t *ret)
{
    uint32_t head = TTM_NO_PLACE;
    int r = new_place(s, ret);

    if (r < 0)
        return r;
    (void)ttm_u64_map_take(&s->heads, key, &head);
    s->places[*ret] = (struct place){.region = region, .next = head};
    return ttm_u64_map_add(&s->heads, key, *ret);
}

/* Returns 0 or -ENOMEM. */
static int drop_place(struct ttm_server_import *s, uint64_t key, uint32_t place)
{
    uint32_t head = TTM_NO_PLACE;
    const uint32_t next = s->places[place].next;

    (void)ttm_u64_map_find(&s->heads, key, &head);
    s->places[place].next = s->free_place;
    s->free_place = place;
    if (head != place) {
        while (s->places[head].next != place)
            head = s->places[head].next;
        s->places[head].next = next;
        return 0;
    }
    (void)ttm_u64_map_take(&s->heads, key, &head);
    return next == TTM_NO_PLACE ? 0 : ttm_u64_map_add(&s->heads, key, next);
}

static uint32_t first_place(const struct ttm_server_import *s, uint64_t key)
{
    uint32_t head;

    return ttm_u64_map_find(&s->heads, key, &head) ? head : TTM_NO_PLACE;
}

/* ---- origins ---- */

/* An address that is more than it seems gets a name, and with it what is in it. */
static int name_place(struct ttm_server_import *s, uint32_t process, struct place *place,
                      uint64_t id)
{
    struct ttm_import *imp = s->imp;
    struct ttm_named_stack_note stack = {.count = 1};
    uint8_t bytes[TTM_ORIGIN_NOTE_SIZE];
    struct ttm_origin_note origin = {0};
    char name[32];

    const int n = snprintf(name, sizeof(name), "address 0x%" PRIx64, id);
    stack.frames[0].name = (struct ttm_note_text){name, (uint16_t)n};
    const size_t length = ttm_named_stack_note_encode(&stack, imp->note);
    int r =
        ttm_importing_note(imp, process, TTM_NOTE_NAMED_STACK, imp->note, length, &origin.native);
    if (r < 0)
        return r;
    ttm_origin_note_encode(&origin, bytes);
    r = ttm_importing_note(imp, process, TTM_NOTED_ORIGIN, bytes, sizeof(bytes), &place->origin);
    if (r < 0)
        return r;
    return ttm_encoder_rename(imp->options.encoder, imp->now_ns, process, place->serial,
                              place->origin);
}

/* ---- buffers ---- */

static uint64_t key_of(const struct ttm_server_import *s, uint32_t process,
                       const struct ttm_server_line *line)
{
    const uint64_t key = ttm_importing_mix(s->imp->options.seed, line->id);

    return ttm_importing_mix(key, (uint64_t)process << 16 | line->device);
}

static struct ttm_recorded_life life_of(const struct ttm_server_line *line)
{
    return (struct ttm_recorded_life){
        .id = line->id,
        .address = line->id,
        .bytes = line->bytes,
        .allocator = line->device,
        .devices = line->device,
        .region = (uint8_t)line->region,
        .kind = line->kind,
    };
}

static int replace(struct ttm_server_import *s, uint32_t process, struct place *place, uint64_t id)
{
    int r = place->origin == 0 ? name_place(s, process, place, id) : 0;

    if (r == 0)
        r = ttm_importing_end_life(s->imp, process, place->serial, TTM_ENDED_REPLACED);
    place->serial = 0;
    return r;
}

static int take_buffer_birth(struct ttm_server_import *s, uint32_t process,
                             const struct ttm_server_line *line)
{
    const uint64_t key = key_of(s, process, line);
    uint32_t at = first_place(s, key);
    int r = 0;

    while (at != TTM_NO_PLACE && s->places[at].region != line->region)
        at = s->places[at].next;
    if (at == TTM_NO_PLACE)
        r = add_place(s, key, (uint8_t)line->region, &at);
    if (r == 0 && s->places[at].serial != 0)
        r = replace(s, process, &s->places[at], line->id);
    if (r < 0)
        return r;
    struct place *place = &s->places[at];
    struct ttm_recorded_life life = life_of(line);
    life.origin = place->origin;
    r = ttm_importing_birth(s->imp, process, &life);
    place->is_mixed = place->references > 0 && (place->is_mixed || place->bytes != line->bytes);
    place->serial = life.serial;
    place->bytes = line->bytes;
    place->references++;
    return r;
}

/*
 * The place that a free means: by its region, else by its size, else the one used last. One
 * that is empty but has references left, if no other.
 */
static uint32_t choose(const struct ttm_server_import *s, uint64_t key,
                       const struct ttm_server_line *line, uint32_t *ret_count)
{
    uint32_t newest = TTM_NO_PLACE, fitting = TTM_NO_PLACE, empty = TTM_NO_PLACE, fits = 0;

    *ret_count = 0;
    for (uint32_t at = first_place(s, key); at != TTM_NO_PLACE; at = s->places[at].next) {
        const struct place *place = &s->places[at];
        if (place->references == 0 || (line->region >= 0 && place->region != line->region))
            continue;
        if (place->serial == 0) {
            empty = at;
            continue;
        }
        (*ret_count)++;
        if (newest == TTM_NO_PLACE || place->serial > s->places[newest].serial)
            newest = at;
        if (place->bytes == line->bytes) {
            fitting = at;
            fits++;
        }
    }
    if (fits == 1)
        *ret_count = 1;
    return fits == 1 ? fitting : newest != TTM_NO_PLACE ? newest : empty;
}

static int end_place(struct ttm_server_import *s, uint32_t process, uint64_t key, uint32_t at,
                     enum ttm_recorded_how how)
{
    struct place *place = &s->places[at];
    const int r = ttm_importing_end_life(s->imp, process, place->serial, how);

    place->serial = 0;
    if (r < 0 || place->origin != 0)
        return r;
    return drop_place(s, key, at);
}

static enum ttm_recorded_how how_of(const struct ttm_server_line *line)
{
    return line->left == TTM_LEFT_REPLACED ? TTM_ENDED_REPLACED
           : line->left == TTM_LEFT_CLOSED ? TTM_ENDED_DEVICE_CLOSED
                                           : TTM_ENDED_FREED;
}

/* The server has nothing left at this id: what else we know of there has gone unheard. */
static int clear_id(struct ttm_server_import *s, uint32_t process, uint64_t key)
{
    int r = 0;

    for (uint32_t at = first_place(s, key), next; r == 0 && at != TTM_NO_PLACE; at = next) {
        next = s->places[at].next;
        s->places[at].references = 0;
        if (s->places[at].serial != 0)
            r = end_place(s, process, key, at, TTM_ENDED_UNHEARD);
    }
    return r;
}

static int take_buffer_end(struct ttm_server_import *s, uint32_t process,
                           const struct ttm_server_line *line)
{
    const uint64_t key = key_of(s, process, line);
    struct ttm_recorded_counters *counters = &ttm_importing_process(s->imp, process)->counters;
    uint32_t count;
    const uint32_t at = choose(s, key, line, &count);

    if (at == TTM_NO_PLACE) {
        counters->unknown_frees++;
        s->imp->result.unknown_frees++;
        return 0;
    }
    struct place *place = &s->places[at];
    const bool is_one_of_several = place->references > 1 && line->left == TTM_LEFT_SOME;
    place->references = is_one_of_several ? place->references - 1 : 0;
    if (line->left == TTM_LEFT_REPLACED && place->serial != 0)
        return replace(s, process, place, line->id);
    if (place->serial == 0 || (is_one_of_several && !place->is_mixed)) {
        counters->ambiguous_frees++; /* of one that was replaced, or of a view */
        s->imp->result.references++;
        return 0;
    }
    counters->ambiguous_frees += count > 1;
    const int r = end_place(s, process, key, at, how_of(line));
    /* A line that names the region, as tt-mem tail's do, speaks of that one alone. */
    return r == 0 && line->left == TTM_LEFT_NONE && line->region < 0 ? clear_id(s, process, key)
                                                                     : r;
}

/* ---- circular buffers and kernels ---- */

/* They are many of a kind; which of those that are alike ends is of no account. */
static uint64_t program_key(const struct ttm_server_import *s, uint32_t process,
                            const struct ttm_server_line *line)
{
    const uint64_t key = ttm_importing_mix(key_of(s, process, line), (uint64_t)line->region + 1);

    return ttm_importing_mix(key, line->bytes);
}

static int take_program_birth(struct ttm_server_import *s, uint32_t process,
                              const struct ttm_server_line *line)
{
    struct ttm_recorded_life life = life_of(line);
    uint32_t at;
    int r = add_place(s, program_key(s, process, line), (uint8_t)line->region, &at);

    if (r == 0)
        r = ttm_importing_birth(s->imp, process, &life);
    if (r == 0)
        s->places[at].serial = life.serial;
    return r;
}

static int take_program_end(struct ttm_server_import *s, uint32_t process,
                            const struct ttm_server_line *line)
{
    const uint64_t key = program_key(s, process, line);
    const uint32_t at = first_place(s, key);

    if (at != TTM_NO_PLACE)
        return end_place(s, process, key, at, how_of(line));
    ttm_importing_process(s->imp, process)->counters.unknown_frees++;
    s->imp->result.unknown_frees++;
    return 0;
}

/* ---- lines ---- */

static int take_event(struct ttm_server_import *s, const struct ttm_server_line *line)
{
    const bool is_program = line->region == TTM_REGION_CB || line->region == TTM_REGION_KERNEL;
    uint32_t process;

    if (line->event == TTM_LINE_LOST) {
        s->imp->result.lost += line->lost;
        return 0;
    }
    const int r = ttm_importing_find(s->imp, line->pid, &process);
    s->imp->result.events++;
    if (r < 0)
        return r;
    switch (line->event) {
    case TTM_LINE_ALLOCATED:
        return is_program ? take_program_birth(s, process, line)
                          : take_buffer_birth(s, process, line);
    case TTM_LINE_FREED:
        return is_program ? take_program_end(s, process, line) : take_buffer_end(s, process, line);
    case TTM_LINE_UNKNOWN_FREE:
        ttm_importing_process(s->imp, process)->counters.unknown_frees++;
        s->imp->result.unknown_frees++;
        return 0;
    case TTM_LINE_PROCESS_END:
        return ttm_importing_end(s->imp, process);
    case TTM_LINE_LOST:
        break;
    }
    return 0;
}

int ttm_server_import_take(struct ttm_server_import *s, const char *text, size_t length)
{
    struct ttm_scan scan = {text, text + length}, line;
    struct ttm_server_line event;
    int r = 0;

    while (r == 0 && ttm_scan_line(&scan, &line)) {
        s->imp->now_ns += LINE_NS;
        const int kind = ttm_server_line_decode(line.at, ttm_scan_left(&line), &event);
        if (kind > 0)
            r = take_event(s, &event);
        else if (kind < 0)
            ttm_importing_broken(s->imp, s->imp->line);
        s->imp->line++;
    }
    return r;
}

struct ttm_server_import *ttm_server_import_new(struct ttm_import *imp)
{
    struct ttm_server_import *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->imp = imp;
    s->free_place = TTM_NO_PLACE;
    ttm_u64_map_init(&s->heads, imp->options.seed);
    return s;
}

void ttm_server_import_free(struct ttm_server_import *s)
{
    if (!s)
        return;
    ttm_u64_map_done(&s->heads);
    free(s->places);
    free(s);
}
