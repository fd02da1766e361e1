/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a record is written. open_record() puts the operation, the process if it
 * is another than before, and the time; the caller puts the rest into the columns.
 * It returns false while the encoder is mute: a block was not taken, so the reader
 * would miss what it defined, and nothing may be written until a section begins.
 * The encoder's own tables go on in the meantime.
 *
 * A section begins only at the start of a call, never between two records of one
 * call; so within a call the numbers that were given out stay valid.
 *
 * Lives are known by serial outside and by ordinal in the file: the n-th birth of
 * its process. An end names its life by how many births ago that was, which
 * repeats in a loop, where a serial does not.
 */
#include "recording/encoder.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "recording/block.h"
#include "recording/code.h"
#include "recording/kept.h"

#define TELL_PER_EVENT 16 /* lives told again beside one event */
#define TELL_PER_FLUSH 4096
#define MUTE_EVENTS 4096 /* before a section is tried again after a block was not taken */
#define MISC_MAX 512     /* bytes of one record in the column of the rest */

/* A section costs about this much less than the events it follows. */
#define SECTION_LIVES_FACTOR 16
#define SECTION_NOTE_BYTES 4

struct ttm_encoder {
    struct ttm_encoder_options options;
    struct ttm_block *block;
    uint64_t sequence;
    uint64_t events; /* in this file, lost ones too */
    uint64_t lost_events;
    uint64_t section_start; /* 'events' when the section began */
    uint64_t mute_until;    /* 'events' from which a section may be tried */
    uint64_t last_ns;
    uint64_t dirty_ns; /* time of the first event in the block */
    uint32_t section;
    bool is_mute;
    bool is_dirty;
    bool is_section_wanted;
    bool is_telling;
    uint32_t tell_process; /* where telling has come to */
    uint32_t tell_life;
    uint32_t current; /* number of the process of the last record in the file */
    bool has_current;
    struct ttm_kept_process **processes;
    uint32_t process_count;
    uint32_t process_room;
    struct ttm_kept_process *recent; /* found last */
    struct ttm_u64_map by_number;
    uint64_t live;
    uint64_t note_bytes;
};

/* ---- columns ---- */

static inline void put_byte(struct ttm_encoder *enc, enum ttm_column_name name, uint8_t byte)
{
    struct ttm_column *column = &enc->block->columns[name];

    column->data[column->length++] = byte;
}

static inline void put(struct ttm_encoder *enc, enum ttm_column_name name, uint64_t value)
{
    struct ttm_column *column = &enc->block->columns[name];

    column->length += ttm_varint_put(column->data + column->length, value);
}

static inline void put_misc(struct ttm_encoder *enc, uint64_t value)
{
    put(enc, TTM_COLUMN_MISC, value);
}

/* ---- blocks ---- */

static void begin_block(struct ttm_encoder *enc)
{
    ttm_block_clear(enc->block);
    enc->block->head = (struct ttm_block_head){
        .major = TTM_RECORDING_MAJOR,
        .minor = TTM_RECORDING_MINOR,
        .kind = TTM_BLOCK_RECORDS,
        .file_id = enc->options.file_id,
        .sequence = enc->sequence,
        .events_before = enc->events,
        .first_ns = enc->last_ns,
        .last_ns = enc->last_ns,
        .wall_offset_ns = enc->options.wall_offset_ns,
    };
    enc->is_dirty = false;
}

/* Once in many thousand records: out of the way of the others. */
#define SELDOM __attribute__((noinline, cold))

/* What the block defines is missing from now on: nothing is written before the next section. */
static SELDOM void lose_block(struct ttm_encoder *enc)
{
    enc->lost_events += enc->block->head.events;
    enc->sequence++; /* its number is missing */
    enc->is_mute = true;
    enc->is_telling = false;
    enc->mute_until = enc->events + MUTE_EVENTS;
    begin_block(enc);
}

static SELDOM void pass_block(struct ttm_encoder *enc)
{
    if (enc->block->columns[TTM_COLUMN_OPS].length == 0)
        return;
    struct ttm_block *next = enc->options.pass(enc->options.pass_arg, enc->block);
    if (!next) {
        lose_block(enc);
        return;
    }
    enc->sequence++;
    enc->block = next;
    begin_block(enc);
}

static int put_bytes(struct ttm_encoder *enc, const void *bytes, size_t length)
{
    if (ttm_block_reserve(enc->block, TTM_COLUMN_BYTES, length) < 0) {
        lose_block(enc); /* it ends in half a record */
        return -ENOMEM;
    }
    struct ttm_column *column = &enc->block->columns[TTM_COLUMN_BYTES];
    put_misc(enc, length);
    if (length > 0)
        memcpy(column->data + column->length, bytes, length);
    column->length += length;
    return 0;
}

static inline bool is_full(const struct ttm_block *block)
{
    return block->columns[TTM_COLUMN_OPS].length >= TTM_BLOCK_RECORDS_MAX ||
           block->columns[TTM_COLUMN_MISC].length + block->columns[TTM_COLUMN_BYTES].length >=
               TTM_BLOCK_BYTES_FULL;
}

static SELDOM void put_other_process(struct ttm_encoder *enc, uint32_t number, unsigned op)
{
    put_byte(enc, TTM_COLUMN_OPS, (uint8_t)(op | OP_OTHER_PROCESS));
    put_misc(enc, number);
    enc->current = number;
    enc->has_current = true;
}

/* The operation and its process. Returns 1; 0 when nothing may be written; -ENOMEM. */
static inline int open_record(struct ttm_encoder *enc, const struct ttm_kept_process *proc,
                              unsigned op)
{
    if (is_full(enc->block))
        pass_block(enc);
    if (enc->is_mute)
        return 0;
    const struct ttm_column *misc = &enc->block->columns[TTM_COLUMN_MISC];
    if (misc->room - misc->length < MISC_MAX &&
        ttm_block_reserve(enc->block, TTM_COLUMN_MISC, MISC_MAX) < 0) {
        lose_block(enc); /* something may refer to what cannot be written */
        return -ENOMEM;
    }
    if (enc->has_current && enc->current == proc->number)
        put_byte(enc, TTM_COLUMN_OPS, (uint8_t)op);
    else
        put_other_process(enc, proc->number, op);
    return 1;
}

static inline void put_time(struct ttm_encoder *enc, uint64_t time_ns)
{
    const uint64_t folded = ttm_fold(time_ns - enc->last_ns);
    struct ttm_block_head *head = &enc->block->head;

    put_byte(enc, TTM_COLUMN_TIME_LOW, (uint8_t)folded);
    put_byte(enc, TTM_COLUMN_TIME_MID, (uint8_t)(folded >> 8));
    put(enc, TTM_COLUMN_TIME_HIGH, folded >> 16);
    enc->last_ns = time_ns;
    if (time_ns > head->last_ns)
        head->last_ns = time_ns;
}

/* The same of something that happens: it has a time and counts. */
static inline int open_event(struct ttm_encoder *enc, const struct ttm_kept_process *proc,
                             unsigned op, uint64_t time_ns)
{
    const int r = open_record(enc, proc, op);

    enc->events++;
    if (r <= 0) {
        enc->lost_events++;
        enc->last_ns = time_ns;
        return r;
    }
    put_time(enc, time_ns);
    enc->block->head.events++;
    if (!enc->is_dirty) {
        enc->is_dirty = true;
        enc->dirty_ns = time_ns;
    }
    return 1;
}

/* ---- sites and lives ---- */

static SELDOM int put_site(struct ttm_encoder *enc, struct ttm_kept_process *proc, uint32_t place)
{
    int r;

    if (proc->sites.numbered == TTM_SITE_NUMBERS_MAX) {
        r = open_record(enc, proc, OP_SITES_RESET);
        if (r <= 0)
            return r;
        ttm_site_book_renumber(&proc->sites);
    }
    r = open_record(enc, proc, OP_SITE);
    if (r <= 0)
        return r;
    if (ttm_block_reserve(enc->block, TTM_COLUMN_BANKS, TTM_VARINT_MAX) < 0) {
        lose_block(enc); /* it ends in half a record */
        return -ENOMEM;
    }
    struct ttm_booked_site *site = &proc->sites.sites[place];
    const struct ttm_site_facts *facts = &site->facts;
    put_misc(enc, facts->allocator);
    put_misc(enc, facts->devices);
    put_misc(enc, facts->origin);
    put_misc(enc, facts->cores);
    put_misc(enc, facts->region);
    put_misc(enc, facts->kind);
    put_misc(enc, facts->flags);
    put_misc(enc, facts->bytes);
    put_misc(enc, ttm_fold(facts->footprint_bytes - facts->bytes));
    put(enc, TTM_COLUMN_BANKS, facts->banks);
    site->number = proc->sites.numbered++;
    site->last_address = 0;
    return 1;
}

/* Sees to it that the file has a number for the site. Returns as open_record(). */
static inline int number_site(struct ttm_encoder *enc, struct ttm_kept_process *proc,
                              uint32_t place)
{
    return proc->sites.sites[place].number != TTM_SITE_UNNUMBERED ? 1 : put_site(enc, proc, place);
}

/* By value: a life that was just written down as words is not waited for. */
static inline void put_life(struct ttm_encoder *enc, struct ttm_kept_process *proc, uint32_t place,
                            uint64_t id, uint64_t address, uint64_t serial)
{
    struct ttm_booked_site *site = &proc->sites.sites[place];
    uint64_t *last_id = &proc->guesses.last_id[guess_id_of(site->facts.region)];
    struct ttm_column *column;

    put(enc, TTM_COLUMN_SITE, site->number);
    put(enc, TTM_COLUMN_ID, ttm_fold(id - (*last_id + 1)));
    *last_id = id;
    column = &enc->block->columns[TTM_COLUMN_ADDRESS];
    column->length +=
        guess_put_address(&site->last_address, address, column->data + column->length);
    column = &enc->block->columns[TTM_COLUMN_SERIAL];
    column->length += guess_put_serial(&proc->guesses, serial, column->data + column->length);
}

/* A life whose birth the file has not, or not in this section. Returns 0 or -ENOMEM. */
static int tell_life(struct ttm_encoder *enc, struct ttm_kept_process *proc,
                     struct ttm_kept_life *life, uint64_t births_ago)
{
    int r = number_site(enc, proc, life->site);

    if (r > 0)
        r = open_record(enc, proc, OP_TOLD);
    if (r <= 0)
        return r;
    put_life(enc, proc, life->site, life->id, life->address, life->serial);
    put_misc(enc, births_ago);
    put_misc(enc, ttm_fold(life->birth_ns - proc->guesses.last_told_ns));
    proc->guesses.last_told_ns = life->birth_ns;
    life->section = enc->section;
    return 0;
}

/* ---- sections ---- */

static int put_process(struct ttm_encoder *enc, const struct ttm_kept_process *proc)
{
    const struct ttm_recorded_process *seen = &proc->seen;

    put_misc(enc, ttm_fold(enc->last_ns - proc->seen_ns));
    put_misc(enc, ttm_fold((uint64_t)(int64_t)seen->pid));
    put_misc(enc, seen->uid);
    put_misc(enc, seen->source);
    put_misc(enc, seen->start_wall_ns);
    put_misc(enc, proc->next_ordinal);
    return put_bytes(enc, seen->command, seen->command_length);
}

static int put_device(struct ttm_encoder *enc, const struct ttm_recorded_device *device)
{
    put_misc(enc, device->id);
    put_misc(enc, device->arch);
    put_misc(enc, device->core_count);
    put_misc(enc, device->asic_id);
    put_misc(enc, TTM_REGION_COUNT);
    for (size_t i = 0; i < TTM_REGION_COUNT; i++) {
        put_misc(enc, device->bank_bytes[i]);
        put_misc(enc, device->bank_count[i]);
    }
    return put_bytes(enc, device->board, device->board_length);
}

static int put_counters(struct ttm_encoder *enc, const struct ttm_recorded_counters *counters)
{
    const unsigned flags = (counters->has_gap ? COUNTERS_GAP : 0) |
                           (counters->is_off ? COUNTERS_OFF : 0) |
                           (counters->is_inexact ? COUNTERS_INEXACT : 0);

    if (ttm_block_reserve(enc->block, TTM_COLUMN_DOUBTS, (size_t)4 * TTM_VARINT_MAX) < 0) {
        lose_block(enc); /* it ends in half a record */
        return -ENOMEM;
    }
    put_misc(enc, counters->unknown_frees);
    put_misc(enc, counters->ambiguous_frees);
    put_misc(enc, counters->replaced);
    put_misc(enc, counters->refused);
    put_misc(enc, counters->lost_events);
    put(enc, TTM_COLUMN_DOUBTS, flags);
    put(enc, TTM_COLUMN_DOUBTS, counters->untracked);
    put(enc, TTM_COLUMN_DOUBTS, counters->notes_left_out);
    put(enc, TTM_COLUMN_DOUBTS, counters->trouble);
    return 0;
}

static int tell_note(struct ttm_encoder *enc, struct ttm_kept_process *proc,
                     const struct ttm_recorded_note *note)
{
    const int r = open_record(enc, proc, OP_NOTE);

    if (r <= 0)
        return r;
    put_misc(enc, ttm_fold((uint64_t)note->number - proc->guesses.last_note));
    proc->guesses.last_note = note->number;
    put_misc(enc, note->kind);
    return put_bytes(enc, note->bytes, note->length);
}

static int tell_notes(struct ttm_encoder *enc, struct ttm_kept_process *proc)
{
    size_t at = 0;

    while (at < proc->notes_length && !enc->is_mute) {
        struct ttm_kept_note head;
        memcpy(&head, proc->notes + at, sizeof(head));
        at += sizeof(head);
        const struct ttm_recorded_note note = {.number = head.number,
                                               .kind = head.kind,
                                               .bytes = proc->notes + at,
                                               .length = head.length};
        const int r = tell_note(enc, proc, &note);
        if (r < 0)
            return r;
        at += head.length;
    }
    return 0;
}

/* Something said before, told again: it is no event, its time is that of the event before. */
static int open_again(struct ttm_encoder *enc, const struct ttm_kept_process *proc, unsigned op)
{
    const int r = open_record(enc, proc, op);

    if (r > 0)
        put_time(enc, enc->last_ns);
    return r;
}

/* All of a process but its lives. Returns 0 or -ENOMEM. */
static int tell_facts(struct ttm_encoder *enc, struct ttm_kept_process *proc)
{
    int r;

    proc->guesses = (struct ttm_guesses){0};
    ttm_site_book_renumber(&proc->sites);
    r = open_again(enc, proc, OP_PROCESS);
    if (r > 0)
        r = put_process(enc, proc);
    for (uint32_t i = 0; r >= 0 && i < proc->device_count; i++) {
        r = open_again(enc, proc, OP_DEVICE);
        if (r > 0)
            r = put_device(enc, &proc->devices[i]);
    }
    if (r >= 0 && proc->has_counters) {
        r = open_again(enc, proc, OP_COUNTERS);
        if (r > 0)
            r = put_counters(enc, &proc->counters);
    }
    return r < 0 ? r : tell_notes(enc, proc);
}

/* An operation of no process. */
static void put_bare(struct ttm_encoder *enc, unsigned op)
{
    if (is_full(enc->block))
        pass_block(enc);
    if (!enc->is_mute)
        put_byte(enc, TTM_COLUMN_OPS, (uint8_t)op);
}

static int begin_section(struct ttm_encoder *enc)
{
    pass_block(enc);
    /* A block that was just refused: later. */
    if (enc->is_mute && enc->events < enc->mute_until)
        return 0;
    enc->is_mute = false;
    enc->is_section_wanted = false;
    enc->section++;
    enc->section_start = enc->events;
    enc->has_current = false;
    begin_block(enc);
    enc->block->head.flags |= TTM_BLOCK_SECTION;
    enc->is_telling = true;
    enc->tell_process = 0;
    enc->tell_life = 0;
    for (uint32_t i = 0; i < enc->process_count && !enc->is_mute; i++) {
        const int r = tell_facts(enc, enc->processes[i]);
        if (r < 0)
            return r;
    }
    put_bare(enc, OP_TOLD_FACTS);
    return 0;
}

/* At most 'budget' more of the lives that the section lacks. Returns 0 or -ENOMEM. */
static int tell_some(struct ttm_encoder *enc, uint32_t budget)
{
    while (enc->tell_process < enc->process_count) {
        struct ttm_kept_process *proc = enc->processes[enc->tell_process];
        for (; enc->tell_life < proc->life_count; enc->tell_life++) {
            struct ttm_kept_life *life = &proc->lives[enc->tell_life];
            if (life->site == TTM_KEPT_NONE || life->section == enc->section)
                continue;
            if (budget-- == 0)
                return 0;
            const int r = tell_life(enc, proc, life, proc->next_ordinal - life->ordinal);
            if (r < 0 || enc->is_mute)
                return r;
        }
        enc->tell_process++;
        enc->tell_life = 0;
    }
    put_bare(enc, OP_TOLD_ALL);
    enc->is_telling = false;
    return 0;
}

/* Whether so many events after its beginning a section is old, with so many lives. */
static inline bool is_section_old(const struct ttm_encoder *enc, uint64_t events, uint64_t live)
{
    return events >= enc->options.section_events && events >= live * SECTION_LIVES_FACTOR &&
           events >= enc->note_bytes / SECTION_NOTE_BYTES;
}

static inline bool is_section_due(const struct ttm_encoder *enc)
{
    return is_section_old(enc, enc->events - enc->section_start, enc->live);
}

/* What has to be done before an event is written. Returns 0 or -ENOMEM. */
static inline int prepare(struct ttm_encoder *enc)
{
    if (enc->is_section_wanted || (enc->is_mute && enc->events >= enc->mute_until) ||
        is_section_due(enc)) {
        const int r = begin_section(enc);
        if (r < 0)
            return r;
    }
    return enc->is_telling ? tell_some(enc, TELL_PER_EVENT) : 0;
}

/* ---- processes ---- */

static SELDOM struct ttm_kept_process *find_process(struct ttm_encoder *enc, uint32_t number)
{
    uint32_t place;

    if (!ttm_u64_map_find(&enc->by_number, number, &place))
        return NULL;
    enc->recent = enc->processes[place];
    return enc->recent;
}

static inline struct ttm_kept_process *process_of(struct ttm_encoder *enc, uint32_t number)
{
    return enc->recent && enc->recent->number == number ? enc->recent : find_process(enc, number);
}

static int add_process(struct ttm_encoder *enc, struct ttm_kept_process *proc)
{
    if (enc->process_count == enc->process_room) {
        const uint32_t room = enc->process_room ? enc->process_room * 2 : 16;
        /* NOLINTNEXTLINE(bugprone-sizeof-expression): it holds pointers */
        struct ttm_kept_process **processes = realloc(enc->processes, room * sizeof(processes[0]));
        if (!processes)
            return -ENOMEM;
        enc->processes = processes;
        enc->process_room = room;
    }
    if (ttm_u64_map_add(&enc->by_number, proc->number, enc->process_count) < 0)
        return -ENOMEM;
    enc->processes[enc->process_count++] = proc;
    return 0;
}

int ttm_encoder_process(struct ttm_encoder *enc, uint64_t time_ns, uint32_t process,
                        const struct ttm_recorded_process *seen)
{
    struct ttm_kept_process *proc;
    int r;

    if (seen->command_length > TTM_RECORDED_TEXT_MAX)
        return -E2BIG;
    if (seen->source >= TTM_SOURCE_COUNT)
        return -EINVAL;
    if (process_of(enc, process))
        return -EEXIST;
    r = prepare(enc);
    if (r < 0)
        return r;
    proc = ttm_kept_process_new(process, time_ns, seen, enc->options.seed);
    r = proc ? add_process(enc, proc) : -ENOMEM;
    if (r < 0) {
        ttm_kept_process_free(proc);
        return r;
    }
    r = open_event(enc, proc, OP_PROCESS, time_ns);
    return r > 0 ? put_process(enc, proc) : r;
}

/* The last process takes the place of one that goes; telling goes on where it was. */
static void remove_process(struct ttm_encoder *enc, struct ttm_kept_process *proc)
{
    uint32_t place = 0, moved;

    (void)ttm_u64_map_take(&enc->by_number, proc->number, &place);
    struct ttm_kept_process *last = enc->processes[--enc->process_count];
    if (last != proc) {
        (void)ttm_u64_map_take(&enc->by_number, last->number, &moved);
        enc->processes[place] = last;
        (void)ttm_u64_map_add(&enc->by_number, last->number, place); /* its place was just freed */
    }
    /* One that was to be told may now stand before the cursor: begin again, told ones are skipped. */
    enc->tell_process = 0;
    enc->tell_life = 0;
    enc->recent = NULL;
    enc->live -= proc->by_serial.count;
    enc->note_bytes -= proc->notes_length;
    ttm_kept_process_free(proc);
}

int ttm_encoder_process_end(struct ttm_encoder *enc, uint64_t time_ns, uint32_t process,
                            const struct ttm_recorded_process_end *end)
{
    struct ttm_kept_process *proc = process_of(enc, process);

    if (!proc)
        return -ENOENT;
    if (end->how >= TTM_PROCESS_HOW_COUNT)
        return -EINVAL;
    int r = prepare(enc);
    /* What the section has not told yet ends with it unheard by whoever begins there. */
    for (uint32_t i = 0; r == 0 && enc->is_telling && i < proc->life_count; i++) {
        struct ttm_kept_life *life = &proc->lives[i];
        if (life->site != TTM_KEPT_NONE && life->section != enc->section)
            r = tell_life(enc, proc, life, proc->next_ordinal - life->ordinal);
    }
    if (r == 0)
        r = open_event(enc, proc, OP_PROCESS_END, time_ns);
    if (r > 0) {
        put_misc(enc, end->how);
        put_misc(enc, ttm_fold((uint64_t)(int64_t)end->code));
    }
    remove_process(enc, proc);
    return r < 0 ? r : 0;
}

int ttm_encoder_device(struct ttm_encoder *enc, uint64_t time_ns, uint32_t process,
                       const struct ttm_recorded_device *device)
{
    struct ttm_kept_process *proc = process_of(enc, process);

    if (!proc)
        return -ENOENT;
    if (device->id >= TTM_DEVICE_COUNT)
        return -EINVAL;
    if (device->board_length > TTM_RECORDED_TEXT_MAX)
        return -E2BIG;
    int r = prepare(enc);
    if (r == 0)
        r = ttm_kept_device(proc, device);
    if (r == 0)
        r = open_event(enc, proc, OP_DEVICE, time_ns);
    return r > 0 ? put_device(enc, device) : r;
}

int ttm_encoder_note(struct ttm_encoder *enc, uint32_t process,
                     const struct ttm_recorded_note *note)
{
    struct ttm_kept_process *proc = process_of(enc, process);

    if (!proc)
        return -ENOENT;
    if (note->length > TTM_RECORDED_NOTE_MAX)
        return -E2BIG;
    int r = prepare(enc);
    if (r == 0)
        r = ttm_kept_note(proc, note);
    if (r < 0)
        return r;
    enc->note_bytes += sizeof(struct ttm_kept_note) + note->length;
    return tell_note(enc, proc, note);
}

/* ---- lives ---- */

static inline bool is_valid(const struct ttm_recorded_life *born)
{
    return born->region < TTM_REGION_COUNT && born->kind < TTM_KERNEL_KIND_COUNT &&
           born->bytes <= TTM_RECORDED_BYTES_MAX && born->footprint_bytes <= TTM_RECORDED_BYTES_MAX;
}

/* The birth of the next ordinal, at the site of that place. Returns as open_record(). */
static inline int put_birth(struct ttm_encoder *enc, struct ttm_kept_process *proc, uint32_t site,
                            const struct ttm_recorded_life *born)
{
    int r = number_site(enc, proc, site);

    if (r >= 0)
        r = open_event(enc, proc, OP_BIRTH, born->birth_ns);
    if (r > 0)
        put_life(enc, proc, site, born->id, born->address, born->serial);
    return r;
}

int ttm_encoder_birth(struct ttm_encoder *enc, const struct ttm_recorded_life *born)
{
    struct ttm_kept_process *proc = process_of(enc, born->process);
    uint32_t place = TTM_KEPT_NONE;
    int r;

    if (!proc)
        return -ENOENT;
    if (!is_valid(born))
        return -EINVAL;
    r = prepare(enc);
    if (r == 0)
        r = ttm_kept_life_add(proc, born, enc->section, &place);
    if (r < 0)
        return r == -EEXIST && born->is_told ? 1 : r;
    enc->live++;

    struct ttm_kept_life *life = &proc->lives[place];
    r = born->is_told ? tell_life(enc, proc, life, 0) : put_birth(enc, proc, life->site, born);
    proc->next_ordinal++;
    return r < 0 ? r : 0;
}

/* The life of that serial, told of in this section. Returns 0, -ENOENT or -ENOMEM. */
static int find_life(struct ttm_encoder *enc, struct ttm_kept_process *proc, uint64_t serial,
                     struct ttm_kept_life **ret)
{
    uint32_t place;

    if (!ttm_u64_map_find(&proc->by_serial, serial, &place))
        return -ENOENT;
    *ret = &proc->lives[place];
    if (!enc->is_telling || (*ret)->section == enc->section)
        return 0;
    return tell_life(enc, proc, *ret, proc->next_ordinal - (*ret)->ordinal);
}

int ttm_encoder_end(struct ttm_encoder *enc, uint64_t time_ns, uint32_t process, uint64_t serial,
                    enum ttm_recorded_how how)
{
    struct ttm_kept_process *proc = process_of(enc, process);
    struct ttm_kept_life *life;
    uint32_t place;
    int r;

    if (!proc)
        return -ENOENT;
    if ((unsigned)how >= TTM_ENDED_COUNT)
        return -EINVAL;
    r = prepare(enc);
    if (r == 0 && enc->is_telling)
        r = find_life(enc, proc, serial, &life);
    if (r < 0)
        return r;
    if (!ttm_u64_map_take(&proc->by_serial, serial, &place))
        return -ENOENT;
    life = &proc->lives[place];
    r = open_event(enc, proc, how == TTM_ENDED_FREED ? OP_FREED : OP_END, time_ns);
    if (r > 0) {
        put(enc, TTM_COLUMN_DISTANCE, proc->next_ordinal - life->ordinal);
        if (how != TTM_ENDED_FREED)
            put_misc(enc, (uint64_t)how);
    }
    proc->sites.sites[life->site].refs--;
    ttm_kept_life_leave(proc, place);
    enc->live--;
    return r < 0 ? r : 0;
}

/*
 * A section would have to tell of a brief life, which is nowhere to be found; so none may begin
 * meanwhile. A block that is not taken makes us mute for longer than that.
 */
bool ttm_encoder_takes_brief(const struct ttm_encoder *enc, uint32_t n)
{
    const uint64_t events = enc->events - enc->section_start + n;
    const uint64_t live = enc->live > n ? enc->live - n : 0;

    return !enc->is_section_wanted && !enc->is_mute && !enc->is_telling && n < MUTE_EVENTS &&
           !is_section_old(enc, events, live);
}

int ttm_encoder_brief_birth(struct ttm_encoder *enc, const struct ttm_recorded_life *born,
                            struct ttm_encoder_brief *ret)
{
    struct ttm_kept_process *proc = process_of(enc, born->process);
    uint32_t site;

    if (!proc)
        return -ENOENT;
    if (!is_valid(born))
        return -EINVAL;
    const int r = ttm_kept_site(proc, born, &site);
    if (r < 0)
        return r;
    (void)put_birth(enc, proc, site, born); /* what cannot be written is counted, its end too */
    *ret = (struct ttm_encoder_brief){.ordinal = proc->next_ordinal++, .site = site};
    return 0;
}

int ttm_encoder_brief_end(struct ttm_encoder *enc, uint64_t time_ns, uint32_t process,
                          const struct ttm_encoder_brief *brief)
{
    struct ttm_kept_process *proc = process_of(enc, process);

    if (!proc)
        return -ENOENT;
    proc->sites.sites[brief->site].refs--;
    const int r = open_event(enc, proc, OP_FREED, time_ns);
    if (r > 0)
        put(enc, TTM_COLUMN_DISTANCE, proc->next_ordinal - brief->ordinal);
    return r < 0 ? r : 0;
}

int ttm_encoder_rename(struct ttm_encoder *enc, uint64_t time_ns, uint32_t process, uint64_t serial,
                       uint32_t origin)
{
    struct ttm_kept_process *proc = process_of(enc, process);
    struct ttm_kept_life *life;
    uint32_t site;
    int r;

    if (!proc)
        return -ENOENT;
    r = prepare(enc);
    if (r == 0)
        r = find_life(enc, proc, serial, &life);
    if (r != 0)
        return r;
    struct ttm_site_facts facts = proc->sites.sites[life->site].facts;
    facts.origin = origin;
    r = ttm_site_book_get(&proc->sites, &facts, &site);
    if (r == 0)
        r = open_event(enc, proc, OP_RENAME, time_ns);
    if (r < 0)
        return r;
    proc->sites.sites[life->site].refs--;
    proc->sites.sites[site].refs++;
    life->site = site;
    if (r > 0) {
        put(enc, TTM_COLUMN_DISTANCE, proc->next_ordinal - life->ordinal);
        put_misc(enc, origin);
    }
    return 0;
}

/* ---- the rest ---- */

/* Begins an event of a process. Returns 1, 0 when it is not to be written, or an error. */
static int begin_event(struct ttm_encoder *enc, uint32_t process, unsigned op, uint64_t time_ns,
                       struct ttm_kept_process **ret)
{
    struct ttm_kept_process *proc = process_of(enc, process);

    if (!proc)
        return -ENOENT;
    const int r = prepare(enc);
    if (r < 0)
        return r;
    *ret = proc;
    return open_event(enc, proc, op, time_ns);
}

int ttm_encoder_dispatch(struct ttm_encoder *enc, uint64_t time_ns, uint32_t process,
                         const struct ttm_recorded_dispatch *dispatch)
{
    struct ttm_kept_process *proc;
    const int r = begin_event(enc, process, OP_DISPATCH, time_ns, &proc);

    if (r <= 0)
        return r;
    put_misc(enc, ttm_fold(dispatch->program - proc->guesses.last_program));
    put_misc(enc, dispatch->devices);
    proc->guesses.last_program = dispatch->program;
    return 0;
}

int ttm_encoder_mark(struct ttm_encoder *enc, uint64_t time_ns, uint32_t process,
                     const struct ttm_recorded_mark *mark)
{
    struct ttm_kept_process *proc;

    if (mark->name_length > TTM_RECORDED_TEXT_MAX)
        return -E2BIG;
    const int r = begin_event(enc, process, OP_MARK, time_ns, &proc);
    return r > 0 ? put_bytes(enc, mark->name, mark->name_length) : r;
}

int ttm_encoder_failure(struct ttm_encoder *enc, uint64_t time_ns, uint32_t process,
                        const struct ttm_recorded_failure *failure)
{
    struct ttm_kept_process *proc;

    if (failure->region >= TTM_REGION_COUNT)
        return -EINVAL;
    const int r = begin_event(enc, process, OP_FAILURE, time_ns, &proc);
    if (r <= 0)
        return r;
    put_misc(enc, failure->kind);
    put_misc(enc, failure->region);
    put_misc(enc, failure->allocator);
    put_misc(enc, failure->devices);
    put_misc(enc, failure->origin);
    put_misc(enc, failure->wanted_bytes);
    put_misc(enc, failure->bank_wanted_bytes);
    put_misc(enc, failure->bank_free_bytes);
    put_misc(enc, failure->bank_largest_bytes);
    return 0;
}

int ttm_encoder_loss(struct ttm_encoder *enc, uint64_t time_ns, uint32_t process, uint64_t events)
{
    struct ttm_kept_process *proc;
    const int r = begin_event(enc, process, OP_LOSS, time_ns, &proc);

    if (r <= 0)
        return r;
    put_misc(enc, events);
    return 0;
}

int ttm_encoder_counters(struct ttm_encoder *enc, uint64_t time_ns, uint32_t process,
                         const struct ttm_recorded_counters *counters)
{
    struct ttm_kept_process *proc;
    const int r = begin_event(enc, process, OP_COUNTERS, time_ns, &proc);

    if (r < 0)
        return r;
    proc->counters = *counters;
    proc->has_counters = true;
    return r > 0 ? put_counters(enc, counters) : 0;
}

/* ---- the whole ---- */

struct ttm_encoder *ttm_encoder_new(const struct ttm_encoder_options *options)
{
    struct ttm_encoder *enc = calloc(1, sizeof(*enc));

    if (!enc)
        return NULL;
    enc->options = *options;
    if (enc->options.section_events == 0)
        enc->options.section_events = TTM_SECTION_EVENTS;
    enc->block = options->block;
    enc->last_ns = options->start_ns;
    enc->is_section_wanted = true;
    ttm_u64_map_init(&enc->by_number, options->seed);
    begin_block(enc);
    return enc;
}

struct ttm_block *ttm_encoder_free(struct ttm_encoder *enc)
{
    if (!enc)
        return NULL;
    struct ttm_block *block = enc->block;
    for (uint32_t i = 0; i < enc->process_count; i++)
        ttm_kept_process_free(enc->processes[i]);
    free(enc->processes);
    ttm_u64_map_done(&enc->by_number);
    free(enc);
    return block;
}

void ttm_encoder_flush(struct ttm_encoder *enc)
{
    /* There may be room again, and no event need come to find out. */
    if (enc->is_mute) {
        enc->mute_until = enc->events;
        (void)begin_section(enc);
    }
    /* Telling that waits for events to go along with would else wait for long. */
    if (enc->is_telling)
        (void)tell_some(enc, TELL_PER_FLUSH);
    pass_block(enc);
}

void ttm_encoder_finish(struct ttm_encoder *enc)
{
    int r = 0;

    /* After a loss the file would else end in what nobody can read. */
    if (enc->is_mute) {
        enc->mute_until = enc->events;
        r = begin_section(enc);
    }
    while (r == 0 && enc->is_telling)
        r = tell_some(enc, TELL_PER_FLUSH);
    pass_block(enc);
}

static void move_starts(struct ttm_encoder *enc, uint64_t by_ns)
{
    for (uint32_t i = 0; i < enc->process_count; i++) {
        struct ttm_recorded_process *seen = &enc->processes[i]->seen;
        if (seen->start_wall_ns != 0)
            seen->start_wall_ns += by_ns; /* may be negative, and wraps to the right number */
    }
}

int64_t ttm_encoder_wall_offset_ns(const struct ttm_encoder *enc)
{
    return enc->options.wall_offset_ns;
}

void ttm_encoder_next_file(struct ttm_encoder *enc, uint64_t file_id, int64_t wall_offset_ns)
{
    ttm_encoder_finish(enc);
    move_starts(enc, (uint64_t)wall_offset_ns - (uint64_t)enc->options.wall_offset_ns);
    enc->options.file_id = file_id;
    enc->options.wall_offset_ns = wall_offset_ns;
    enc->sequence = 0;
    enc->events = 0;
    enc->section_start = 0;
    enc->mute_until = 0;
    enc->is_section_wanted = true;
    begin_block(enc);
}

bool ttm_encoder_is_dirty(const struct ttm_encoder *enc, uint64_t *ret_since_ns)
{
    const bool is_waiting = enc->is_mute || enc->is_telling;

    *ret_since_ns = enc->is_dirty ? enc->dirty_ns : enc->last_ns;
    return enc->is_dirty || is_waiting;
}

uint64_t ttm_encoder_lost_events(const struct ttm_encoder *enc)
{
    return enc->lost_events;
}
