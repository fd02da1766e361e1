/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In a section all that is known is told again. A decoder that has read every
 * block before it checks that against what it knows and hands nothing out twice.
 * One that has missed blocks, or begins here, takes it over ('is_taking_over') and
 * hands out what is new to it; once all has been told it sweeps out what was not
 * told and therefore is no more.
 */
#include "recording/decoder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/u64_map.h"
#include "recording/block.h"
#include "recording/code.h"
#include "recording/site_book.h"

#define NONE UINT32_MAX
#define PROCESSES_MAX 65536

struct life {
    struct ttm_recorded_life life; /* first: it is what we hand out */
    uint64_t ordinal;
    uint32_t section; /* in which it was told or born */
    uint32_t next;    /* free place after this one; of a live one: LIVE */
};

#define LIVE (UINT32_MAX - 1)

struct site {
    struct ttm_site_facts facts;
    uint64_t last_address;
};

struct process {
    uint32_t number;
    uint32_t section; /* in which it was told last */
    uint32_t made;    /* section in which it came up */
    int32_t pid;
    uint64_t start_wall_ns;
    struct life *lives;
    uint32_t life_count;
    uint32_t life_room;
    uint32_t life_free;
    struct ttm_u64_map by_ordinal;
    uint64_t next_ordinal;
    struct site *sites;
    uint32_t site_count;
    uint32_t site_room;
    struct ttm_guesses guesses;
};

/* Ends that follow from one record: handed out one by one before the next record is read. */
enum walk {
    WALK_NONE,
    WALK_PROCESS, /* all lives of a process that has ended, then its end */
    WALK_SWEEP,   /* what was not told */
};

struct cursor {
    const uint8_t *at;
    const uint8_t *end;
};

struct ttm_decoder {
    uint64_t seed;
    const struct ttm_block *block;
    struct cursor columns[TTM_COLUMN_COUNT];
    uint64_t time_ns;
    uint64_t block_events;
    uint64_t sequence; /* of the next block */
    uint64_t events;   /* read or known to be missing */
    uint64_t lost_events;
    uint64_t latest_ns;
    uint32_t section;
    bool is_started; /* a first block has been seen */
    bool is_lost;    /* until the next section */
    bool is_taking_over;
    bool is_in_facts; /* the facts of a section are being told */
    bool is_telling;
    bool is_gap_due;
    struct ttm_recorded_gap gap;
    struct process **processes;
    uint32_t process_count;
    uint32_t process_room;
    struct process *current;
    struct ttm_u64_map by_number;
    uint32_t live;
    enum walk walk;
    uint32_t walk_process;
    uint32_t walk_life;
    struct ttm_recorded walk_end; /* the end of the process, for WALK_PROCESS */
    struct ttm_recorded record;
};

/* ---- reading columns ---- */

static inline bool get(struct ttm_decoder *dec, enum ttm_column_name name, uint64_t *ret)
{
    struct cursor *column = &dec->columns[name];

    return ttm_varint_get(&column->at, column->end, ret);
}

static inline bool get_byte(struct ttm_decoder *dec, enum ttm_column_name name, uint8_t *ret)
{
    struct cursor *column = &dec->columns[name];

    if (column->at == column->end)
        return false;
    *ret = *column->at++;
    return true;
}

static bool get_misc(struct ttm_decoder *dec, uint64_t *ret)
{
    return get(dec, TTM_COLUMN_MISC, ret);
}

static bool get_misc32(struct ttm_decoder *dec, uint32_t *ret)
{
    uint64_t value;

    if (!get_misc(dec, &value) || value > UINT32_MAX)
        return false;
    *ret = (uint32_t)value;
    return true;
}

/* A number below 'limit', which is at most 256. */
static bool get_misc8(struct ttm_decoder *dec, unsigned limit, uint8_t *ret)
{
    uint64_t value;

    if (!get_misc(dec, &value) || value >= limit)
        return false;
    *ret = (uint8_t)value;
    return true;
}

static bool get_signed32(struct ttm_decoder *dec, int32_t *ret)
{
    uint64_t value;

    if (!get_misc(dec, &value))
        return false;
    const int64_t number = (int64_t)ttm_unfold(value);
    if (number < INT32_MIN || number > INT32_MAX)
        return false;
    *ret = (int32_t)number;
    return true;
}

static bool get_bytes(struct ttm_decoder *dec, size_t max, const uint8_t **ret, size_t *ret_length)
{
    struct cursor *column = &dec->columns[TTM_COLUMN_BYTES];
    uint64_t length;

    if (!get_misc(dec, &length) || length > max || length > (size_t)(column->end - column->at))
        return false;
    *ret = column->at;
    *ret_length = (size_t)length;
    column->at += length;
    return true;
}

static bool get_text(struct ttm_decoder *dec, const char **ret, size_t *ret_length)
{
    const uint8_t *bytes;

    if (!get_bytes(dec, TTM_RECORDED_TEXT_MAX, &bytes, ret_length))
        return false;
    *ret = (const char *)bytes;
    return true;
}

static inline bool get_time(struct ttm_decoder *dec)
{
    uint8_t low, mid;
    uint64_t high;

    if (!get_byte(dec, TTM_COLUMN_TIME_LOW, &low) || !get_byte(dec, TTM_COLUMN_TIME_MID, &mid) ||
        !get(dec, TTM_COLUMN_TIME_HIGH, &high) || high >> 48 != 0)
        return false;
    dec->time_ns += ttm_unfold(high << 16 | (uint64_t)mid << 8 | low);
    if (dec->time_ns > dec->latest_ns)
        dec->latest_ns = dec->time_ns;
    return true;
}

/* ---- processes and lives ---- */

static void free_process(struct process *proc)
{
    free(proc->lives);
    free(proc->sites);
    ttm_u64_map_done(&proc->by_ordinal);
    free(proc);
}

static struct process *find_process(struct ttm_decoder *dec, uint32_t number)
{
    uint32_t place;

    if (dec->current && dec->current->number == number)
        return dec->current;
    return ttm_u64_map_find(&dec->by_number, number, &place) ? dec->processes[place] : NULL;
}

static int add_process(struct ttm_decoder *dec, uint32_t number, struct process **ret)
{
    struct process *proc;

    if (dec->process_count == PROCESSES_MAX)
        return -EBADMSG;
    if (dec->process_count == dec->process_room) {
        const uint32_t room = dec->process_room ? dec->process_room * 2 : 16;
        /* NOLINTNEXTLINE(bugprone-sizeof-expression): it holds pointers */
        struct process **processes = realloc(dec->processes, room * sizeof(processes[0]));
        if (!processes)
            return -ENOMEM;
        dec->processes = processes;
        dec->process_room = room;
    }
    proc = calloc(1, sizeof(*proc));
    if (!proc)
        return -ENOMEM;
    if (ttm_u64_map_add(&dec->by_number, number, dec->process_count) < 0) {
        free(proc);
        return -ENOMEM;
    }
    proc->number = number;
    proc->made = dec->section;
    proc->life_free = NONE;
    ttm_u64_map_init(&proc->by_ordinal, dec->seed);
    dec->processes[dec->process_count++] = proc;
    *ret = proc;
    return 0;
}

static void remove_process(struct ttm_decoder *dec, struct process *proc)
{
    uint32_t place = 0, moved;

    (void)ttm_u64_map_take(&dec->by_number, proc->number, &place);
    struct process *last = dec->processes[--dec->process_count];
    if (last != proc) {
        (void)ttm_u64_map_take(&dec->by_number, last->number, &moved);
        dec->processes[place] = last;
        (void)ttm_u64_map_add(&dec->by_number, last->number, place); /* a place was just freed */
    }
    if (dec->current == proc)
        dec->current = NULL;
    dec->live -= (uint32_t)proc->by_ordinal.count;
    free_process(proc);
}

static int add_life(struct ttm_decoder *dec, struct process *proc, uint64_t ordinal,
                    struct life **ret)
{
    uint32_t place = proc->life_free;

    if (dec->live == TTM_RECORDED_LIVES_MAX)
        return -EBADMSG;
    if (place == NONE && proc->life_count == proc->life_room) {
        const uint32_t room = proc->life_room ? proc->life_room * 2 : 64;
        struct life *lives = realloc(proc->lives, room * sizeof(lives[0]));
        if (!lives)
            return -ENOMEM;
        proc->lives = lives;
        proc->life_room = room;
    }
    if (place == NONE)
        place = proc->life_count;
    const int r = ttm_u64_map_add(&proc->by_ordinal, ordinal, place);
    if (r < 0)
        return r == -EEXIST ? -EBADMSG : r;
    if (place == proc->life_count)
        proc->life_count++;
    else
        proc->life_free = proc->lives[place].next;
    struct life *life = &proc->lives[place];
    life->ordinal = ordinal;
    life->section = dec->section;
    life->next = LIVE;
    life->life.process = proc->number;
    life->life.slot = place;
    dec->live++;
    *ret = life;
    return 0;
}

/* Of a life that is no longer in the map. What it holds stays readable until its place is taken. */
static void leave_place(struct ttm_decoder *dec, struct process *proc, struct life *life)
{
    life->next = proc->life_free;
    proc->life_free = life->life.slot;
    dec->live--;
}

/* The ordinal of a life so many births ago. */
static bool get_distant(struct ttm_decoder *dec, const struct process *proc, uint64_t *ret)
{
    uint64_t distance;

    if (!get(dec, TTM_COLUMN_DISTANCE, &distance) || distance == 0 || distance > proc->next_ordinal)
        return false;
    *ret = proc->next_ordinal - distance;
    return true;
}

/* ---- records ---- */

static int hand_out(struct ttm_decoder *dec, uint8_t type)
{
    dec->record.type = type;
    dec->record.process = dec->current ? dec->current->number : 0;
    dec->record.time_ns = dec->time_ns;
    dec->record.life = NULL;
    return 1;
}

static int hand_out_life(struct ttm_decoder *dec, uint8_t type, const struct life *life)
{
    const int r = hand_out(dec, type);

    dec->record.life = &life->life;
    dec->record.process = life->life.process;
    return r;
}

/* Whether a fact that a section tells is to be handed out, and not known since long. */
static bool is_news(const struct ttm_decoder *dec, const struct process *proc)
{
    return !dec->is_in_facts || dec->is_taking_over || proc->made == dec->section;
}

/* Writers of minor version 0 did not say it. */
static bool get_banks(struct ttm_decoder *dec, uint16_t *ret)
{
    uint64_t value = 0;

    if (dec->block->columns[TTM_COLUMN_BANKS].length > 0 &&
        (!get(dec, TTM_COLUMN_BANKS, &value) || value > UINT16_MAX))
        return false;
    *ret = (uint16_t)value;
    return true;
}

static int read_site(struct ttm_decoder *dec, struct process *proc)
{
    struct ttm_site_facts facts = {0};
    uint64_t folded;

    if (proc->site_count == TTM_SITE_NUMBERS_MAX || !get_misc32(dec, &facts.allocator) ||
        !get_misc32(dec, &facts.devices) || !get_misc32(dec, &facts.origin) ||
        !get_misc32(dec, &facts.cores) || !get_misc8(dec, TTM_REGION_COUNT, &facts.region) ||
        !get_misc8(dec, TTM_KERNEL_KIND_COUNT, &facts.kind) || !get_misc8(dec, 256, &facts.flags) ||
        !get_misc(dec, &facts.bytes) || !get_misc(dec, &folded) || !get_banks(dec, &facts.banks))
        return -EBADMSG;
    facts.footprint_bytes = facts.bytes + ttm_unfold(folded);
    if (facts.bytes > TTM_RECORDED_BYTES_MAX || facts.footprint_bytes > TTM_RECORDED_BYTES_MAX)
        return -EBADMSG;
    if (proc->site_count == proc->site_room) {
        const uint32_t room = proc->site_room ? proc->site_room * 2 : 64;
        struct site *sites = realloc(proc->sites, room * sizeof(sites[0]));
        if (!sites)
            return -ENOMEM;
        proc->sites = sites;
        proc->site_room = room;
    }
    proc->sites[proc->site_count++] = (struct site){.facts = facts};
    return 0;
}

/* The columns that a birth and a life told again share. */
static inline bool get_life(struct ttm_decoder *dec, struct process *proc,
                            struct ttm_recorded_life *ret)
{
    struct cursor *const addresses = &dec->columns[TTM_COLUMN_ADDRESS];
    struct cursor *const serials = &dec->columns[TTM_COLUMN_SERIAL];
    uint64_t number, folded, address, serial;

    if (!get(dec, TTM_COLUMN_SITE, &number) || number >= proc->site_count ||
        !get(dec, TTM_COLUMN_ID, &folded))
        return false;
    struct site *site = &proc->sites[number];
    uint64_t *last_id = &proc->guesses.last_id[guess_id_of(site->facts.region)];
    if (!guess_get_address(&site->last_address, &addresses->at, addresses->end, &address) ||
        !guess_get_serial(&proc->guesses, &serials->at, serials->end, &serial))
        return false;
    *last_id += 1 + ttm_unfold(folded);
    *ret = (struct ttm_recorded_life){
        .serial = serial,
        .id = *last_id,
        .address = address,
        .bytes = site->facts.bytes,
        .footprint_bytes = site->facts.footprint_bytes,
        .allocator = site->facts.allocator,
        .devices = site->facts.devices,
        .origin = site->facts.origin,
        .cores = site->facts.cores,
        .banks = site->facts.banks,
        .region = site->facts.region,
        .kind = site->facts.kind,
        .flags = site->facts.flags,
        .process = proc->number,
    };
    return true;
}

static void set_life(struct life *life, const struct ttm_recorded_life *facts)
{
    const uint32_t slot = life->life.slot;

    life->life = *facts;
    life->life.slot = slot;
}

static int read_birth(struct ttm_decoder *dec, struct process *proc)
{
    struct ttm_recorded_life facts;
    struct life *life;

    if (!get_life(dec, proc, &facts))
        return -EBADMSG;
    facts.birth_ns = dec->time_ns;
    const int r = add_life(dec, proc, proc->next_ordinal, &life);
    if (r < 0)
        return r;
    proc->next_ordinal++;
    set_life(life, &facts);
    return hand_out_life(dec, TTM_RECORDED_BIRTH, life);
}

static int read_told(struct ttm_decoder *dec, struct process *proc)
{
    struct ttm_recorded_life facts;
    uint64_t ago, folded;
    struct life *life;
    uint32_t place;

    if (!get_life(dec, proc, &facts) || !get_misc(dec, &ago) || !get_misc(dec, &folded) ||
        ago > proc->next_ordinal)
        return -EBADMSG;
    proc->guesses.last_told_ns += ttm_unfold(folded);
    facts.birth_ns = proc->guesses.last_told_ns;
    facts.is_told = true;

    const uint64_t ordinal = proc->next_ordinal - ago;
    const bool is_known = ttm_u64_map_find(&proc->by_ordinal, ordinal, &place);
    if (ago > 0 && is_known) {
        life = &proc->lives[place];
        if (life->life.serial != facts.serial || life->life.birth_ns != facts.birth_ns ||
            life->life.bytes != facts.bytes)
            return -EBADMSG;
        life->section = dec->section;
        if (life->life.origin == facts.origin)
            return 0;
        life->life.origin = facts.origin; /* it was renamed in what is missing */
        return hand_out_life(dec, TTM_RECORDED_RENAME, life);
    }
    /* Whoever has read everything knows all that is told again. */
    if (ago > 0 && !dec->is_taking_over && proc->made != dec->section)
        return -EBADMSG;
    const int r = add_life(dec, proc, ordinal, &life);
    if (r < 0)
        return r;
    proc->next_ordinal += ago == 0;
    set_life(life, &facts);
    return hand_out_life(dec, TTM_RECORDED_BIRTH, life);
}

static int read_end(struct ttm_decoder *dec, struct process *proc, bool is_freed)
{
    uint8_t how = TTM_ENDED_FREED;
    uint64_t ordinal;
    uint32_t place;

    if (!get_distant(dec, proc, &ordinal) ||
        (!is_freed && !get_misc8(dec, TTM_ENDED_COUNT, &how)) ||
        !ttm_u64_map_take(&proc->by_ordinal, ordinal, &place))
        return -EBADMSG;
    struct life *life = &proc->lives[place];
    leave_place(dec, proc, life);
    dec->record.how = how;
    return hand_out_life(dec, TTM_RECORDED_END, life);
}

static int read_rename(struct ttm_decoder *dec, struct process *proc)
{
    uint64_t ordinal;
    uint32_t place, origin;

    if (!get_distant(dec, proc, &ordinal) || !get_misc32(dec, &origin) ||
        !ttm_u64_map_find(&proc->by_ordinal, ordinal, &place))
        return -EBADMSG;
    struct life *life = &proc->lives[place];
    life->life.origin = origin;
    return hand_out_life(dec, TTM_RECORDED_RENAME, life);
}

static int read_process(struct ttm_decoder *dec, uint32_t number)
{
    struct ttm_recorded_process seen;
    uint64_t ago, next_ordinal;
    int r;

    if (!get_misc(dec, &ago) || !get_signed32(dec, &seen.pid) || !get_misc32(dec, &seen.uid) ||
        !get_misc8(dec, TTM_SOURCE_COUNT, &seen.source) || !get_misc(dec, &seen.start_wall_ns) ||
        !get_misc(dec, &next_ordinal) || next_ordinal >= UINT64_MAX / 2 ||
        !get_text(dec, &seen.command, &seen.command_length))
        return -EBADMSG;
    struct process *proc = find_process(dec, number);
    const bool is_known = proc;
    if (is_known &&
        (!dec->is_in_facts || proc->pid != seen.pid || proc->start_wall_ns != seen.start_wall_ns ||
         next_ordinal < proc->next_ordinal ||
         (!dec->is_taking_over && next_ordinal != proc->next_ordinal)))
        return -EBADMSG;
    if (!is_known) {
        r = add_process(dec, number, &proc);
        if (r < 0)
            return r;
    }
    dec->current = proc;
    proc->section = dec->section;
    proc->pid = seen.pid;
    proc->start_wall_ns = seen.start_wall_ns;
    proc->next_ordinal = next_ordinal;
    proc->site_count = 0;
    proc->guesses = (struct ttm_guesses){0};
    if (is_known)
        return 0;
    r = hand_out(dec, TTM_RECORDED_PROCESS);
    dec->record.time_ns = dec->time_ns - ttm_unfold(ago);
    dec->record.seen = seen;
    return r;
}

static int read_process_end(struct ttm_decoder *dec, struct process *proc)
{
    struct ttm_recorded_process_end end;

    if (!get_misc8(dec, TTM_PROCESS_HOW_COUNT, &end.how) || !get_signed32(dec, &end.code))
        return -EBADMSG;
    (void)hand_out(dec, TTM_RECORDED_PROCESS_END);
    dec->record.end = end;
    dec->walk_end = dec->record;
    dec->walk = WALK_PROCESS;
    dec->walk_life = 0;
    (void)ttm_u64_map_find(&dec->by_number, proc->number, &dec->walk_process);
    return 0;
}

static int read_device(struct ttm_decoder *dec, struct process *proc)
{
    struct ttm_recorded_device device = {0};
    uint64_t id, regions;

    if (!get_misc(dec, &id) || id >= TTM_DEVICE_COUNT || !get_misc8(dec, 256, &device.arch) ||
        !get_misc32(dec, &device.core_count) || !get_misc(dec, &device.asic_id) ||
        !get_misc(dec, &regions) || regions > 64)
        return -EBADMSG;
    device.id = (uint16_t)id;
    for (size_t i = 0; i < regions; i++) {
        uint64_t bytes;
        uint32_t count;
        if (!get_misc(dec, &bytes) || !get_misc32(dec, &count))
            return -EBADMSG;
        if (i >= TTM_REGION_COUNT) /* a newer writer knows more regions */
            continue;
        device.bank_bytes[i] = bytes;
        device.bank_count[i] = count;
    }
    if (!get_text(dec, &device.board, &device.board_length))
        return -EBADMSG;
    if (!is_news(dec, proc))
        return 0;
    const int r = hand_out(dec, TTM_RECORDED_DEVICE);
    dec->record.device = device;
    return r;
}

static int read_note(struct ttm_decoder *dec, struct process *proc)
{
    struct ttm_recorded_note note;
    uint64_t folded;

    if (!get_misc(dec, &folded) || !get_misc32(dec, &note.kind) ||
        !get_bytes(dec, TTM_RECORDED_NOTE_MAX, &note.bytes, &note.length))
        return -EBADMSG;
    const uint64_t number = proc->guesses.last_note + ttm_unfold(folded);
    if (number > UINT32_MAX)
        return -EBADMSG;
    note.number = (uint32_t)number;
    proc->guesses.last_note = note.number;
    if (!is_news(dec, proc))
        return 0;
    const int r = hand_out(dec, TTM_RECORDED_NOTE);
    dec->record.note = note;
    return r;
}

static int read_dispatch(struct ttm_decoder *dec, struct process *proc)
{
    struct ttm_recorded_dispatch dispatch;
    uint64_t folded;

    if (!get_misc(dec, &folded) || !get_misc32(dec, &dispatch.devices))
        return -EBADMSG;
    proc->guesses.last_program += ttm_unfold(folded);
    dispatch.program = proc->guesses.last_program;
    const int r = hand_out(dec, TTM_RECORDED_DISPATCH);
    dec->record.dispatch = dispatch;
    return r;
}

static int read_mark(struct ttm_decoder *dec)
{
    struct ttm_recorded_mark mark;

    if (!get_text(dec, &mark.name, &mark.name_length))
        return -EBADMSG;
    const int r = hand_out(dec, TTM_RECORDED_MARK);
    dec->record.mark = mark;
    return r;
}

static int read_failure(struct ttm_decoder *dec)
{
    struct ttm_recorded_failure failure;

    if (!get_misc8(dec, 256, &failure.kind) || !get_misc8(dec, TTM_REGION_COUNT, &failure.region) ||
        !get_misc32(dec, &failure.allocator) || !get_misc32(dec, &failure.devices) ||
        !get_misc32(dec, &failure.origin) || !get_misc(dec, &failure.wanted_bytes) ||
        !get_misc(dec, &failure.bank_wanted_bytes) || !get_misc(dec, &failure.bank_free_bytes) ||
        !get_misc(dec, &failure.bank_largest_bytes))
        return -EBADMSG;
    const int r = hand_out(dec, TTM_RECORDED_FAILURE);
    dec->record.failure = failure;
    return r;
}

static int read_loss(struct ttm_decoder *dec)
{
    uint64_t events;

    if (!get_misc(dec, &events))
        return -EBADMSG;
    const int r = hand_out(dec, TTM_RECORDED_LOSS);
    dec->record.loss = (struct ttm_recorded_loss){
        .events = events,
        .is_open = events > 0 && dec->block->head.minor >= TTM_MINOR_MADE_GOOD,
    };
    return r;
}

/* Writers before minor version 3 did not say it. */
static bool get_doubts(struct ttm_decoder *dec, struct ttm_recorded_counters *ret)
{
    uint64_t flags, trouble;

    if (dec->block->columns[TTM_COLUMN_DOUBTS].length == 0)
        return true;
    if (!get(dec, TTM_COLUMN_DOUBTS, &flags) || !get(dec, TTM_COLUMN_DOUBTS, &ret->untracked) ||
        !get(dec, TTM_COLUMN_DOUBTS, &ret->notes_left_out) ||
        !get(dec, TTM_COLUMN_DOUBTS, &trouble) || trouble > UINT32_MAX)
        return false;
    ret->trouble = (uint32_t)trouble;
    ret->has_gap = (flags & COUNTERS_GAP) != 0;
    ret->is_off = (flags & COUNTERS_OFF) != 0;
    ret->is_inexact = (flags & COUNTERS_INEXACT) != 0;
    return true;
}

static int read_counters(struct ttm_decoder *dec, struct process *proc)
{
    struct ttm_recorded_counters counters = {0};

    if (!get_misc(dec, &counters.unknown_frees) || !get_misc(dec, &counters.ambiguous_frees) ||
        !get_misc(dec, &counters.replaced) || !get_misc(dec, &counters.refused) ||
        !get_misc(dec, &counters.lost_events) || !get_doubts(dec, &counters))
        return -EBADMSG;
    if (!is_news(dec, proc))
        return 0;
    const int r = hand_out(dec, TTM_RECORDED_COUNTERS);
    dec->record.counters = counters;
    return r;
}

static int read_told_all(struct ttm_decoder *dec)
{
    if (!dec->is_telling || dec->is_in_facts)
        return -EBADMSG;
    dec->is_telling = false;
    if (!dec->is_taking_over)
        return 0;
    dec->is_taking_over = false;
    dec->walk = WALK_SWEEP;
    dec->walk_process = 0;
    dec->walk_life = 0;
    return 0;
}

/* ---- walking over lives that end together ---- */

/* The next life of 'proc' to end, those of the present section kept if asked. */
static int walk_lives(struct ttm_decoder *dec, struct process *proc, bool keeps_told, uint8_t how)
{
    while (dec->walk_life < proc->life_count) {
        struct life *life = &proc->lives[dec->walk_life++];
        if (life->next != LIVE || (keeps_told && life->section == dec->section))
            continue;
        uint32_t place;
        (void)ttm_u64_map_take(&proc->by_ordinal, life->ordinal, &place);
        leave_place(dec, proc, life);
        dec->record.how = how;
        return hand_out_life(dec, TTM_RECORDED_END, life);
    }
    return 0;
}

static int walk_process(struct ttm_decoder *dec)
{
    struct process *proc = dec->processes[dec->walk_process];

    if (walk_lives(dec, proc, false, TTM_ENDED_PROCESS_ENDED))
        return 1;
    dec->walk = WALK_NONE;
    remove_process(dec, proc);
    dec->record = dec->walk_end;
    return 1;
}

static int walk_sweep(struct ttm_decoder *dec)
{
    while (dec->walk_process < dec->process_count) {
        struct process *proc = dec->processes[dec->walk_process];
        const bool is_there = proc->section == dec->section;
        if (walk_lives(dec, proc, is_there, TTM_ENDED_UNHEARD))
            return 1;
        dec->walk_life = 0;
        if (is_there) {
            dec->walk_process++;
            continue;
        }
        (void)hand_out(dec, TTM_RECORDED_PROCESS_END);
        dec->record.process = proc->number;
        dec->record.end = (struct ttm_recorded_process_end){.how = TTM_PROCESS_UNHEARD};
        remove_process(dec, proc); /* the last one stands in its place now */
        return 1;
    }
    dec->walk = WALK_NONE;
    return 0;
}

/* ---- blocks ---- */

/* An operation of a process that is known, with its time read. */
static int read_of_process(struct ttm_decoder *dec, unsigned op, struct process *proc)
{
    switch (op) {
    case OP_BIRTH:
        return read_birth(dec, proc);
    case OP_FREED:
    case OP_END:
        return read_end(dec, proc, op == OP_FREED);
    case OP_TOLD:
        return read_told(dec, proc);
    case OP_SITE:
        return read_site(dec, proc);
    case OP_SITES_RESET:
        proc->site_count = 0;
        return 0;
    case OP_NOTE:
        return read_note(dec, proc);
    case OP_PROCESS_END:
        return read_process_end(dec, proc);
    case OP_DEVICE:
        return read_device(dec, proc);
    case OP_RENAME:
        return read_rename(dec, proc);
    case OP_DISPATCH:
        return read_dispatch(dec, proc);
    case OP_MARK:
        return read_mark(dec);
    case OP_FAILURE:
        return read_failure(dec);
    case OP_LOSS:
        return read_loss(dec);
    case OP_COUNTERS:
        return read_counters(dec, proc);
    default:
        return -EBADMSG;
    }
}

static inline bool op_has_time(unsigned op)
{
    return op != OP_TOLD && op != OP_SITE && op != OP_SITES_RESET && op != OP_NOTE;
}

/* Returns 1 with a record, 0 when the operation made none, or an error. */
static int read_op(struct ttm_decoder *dec, uint8_t byte)
{
    const unsigned op = byte & OP_MASK;
    uint32_t number;

    if (byte & ~(OP_MASK | OP_OTHER_PROCESS))
        return -EBADMSG;
    if (byte == OP_TOLD_ALL)
        return read_told_all(dec);
    if (byte == OP_TOLD_FACTS) {
        if (!dec->is_in_facts)
            return -EBADMSG;
        dec->is_in_facts = false;
        return 0;
    }
    if (!(byte & OP_OTHER_PROCESS)) {
        if (!dec->current || op == OP_PROCESS)
            return -EBADMSG;
    } else if (!get_misc32(dec, &number)) {
        return -EBADMSG;
    }
    if (op_has_time(op)) {
        if (!get_time(dec))
            return -EBADMSG;
        /* Facts told again happened before. */
        dec->block_events += !dec->is_in_facts;
    }
    if (op == OP_PROCESS)
        return read_process(dec, number);
    if (byte & OP_OTHER_PROCESS)
        dec->current = find_process(dec, number);
    return dec->current ? read_of_process(dec, op, dec->current) : -EBADMSG;
}

static int end_block(struct ttm_decoder *dec)
{
    bool is_whole = dec->block_events == dec->block->head.events;

    for (size_t i = 0; i < TTM_COLUMN_COUNT; i++)
        is_whole &= dec->columns[i].at == dec->columns[i].end;
    dec->block = NULL;
    return is_whole ? 0 : -EBADMSG;
}

int ttm_decoder_next(struct ttm_decoder *dec, const struct ttm_recorded **ret)
{
    int r = 0;

    *ret = &dec->record;
    if (dec->is_gap_due) {
        dec->is_gap_due = false;
        r = hand_out(dec, TTM_RECORDED_GAP);
        dec->record.gap = dec->gap;
        return r;
    }
    while (r == 0) {
        uint8_t op;
        if (dec->walk != WALK_NONE) {
            r = dec->walk == WALK_PROCESS ? walk_process(dec) : walk_sweep(dec);
        } else if (!dec->block) {
            return 0;
        } else if (get_byte(dec, TTM_COLUMN_OPS, &op)) {
            r = read_op(dec, op);
        } else {
            r = end_block(dec);
            if (r == 0)
                return 0;
        }
    }
    if (r < 0)
        ttm_decoder_lose(dec);
    return r;
}

static void begin_section(struct ttm_decoder *dec, const struct ttm_block_head *head)
{
    const bool is_gap = dec->is_started && (dec->is_lost || head->sequence != dec->sequence);

    /* Taking over that was not finished goes on here. */
    dec->is_taking_over |= !dec->is_started || is_gap;
    if (is_gap) {
        dec->gap = (struct ttm_recorded_gap){
            .from_ns = dec->latest_ns,
            .to_ns = head->first_ns,
            .events = head->events_before > dec->events ? head->events_before - dec->events : 0,
            .blocks = head->sequence > dec->sequence ? head->sequence - dec->sequence : 0,
        };
        dec->lost_events += dec->gap.events;
        dec->is_gap_due = true;
    }
    dec->section++;
    dec->is_lost = false;
    dec->is_in_facts = true;
    dec->is_telling = true;
    dec->current = NULL;
}

int ttm_decoder_begin(struct ttm_decoder *dec, const struct ttm_block *block)
{
    const struct ttm_block_head *head = &block->head;

    dec->walk = WALK_NONE;
    if (head->flags & TTM_BLOCK_SECTION) {
        begin_section(dec, head);
    } else if (!dec->is_started || dec->is_lost || head->sequence != dec->sequence) {
        ttm_decoder_lose(dec);
        return -ENODATA;
    }
    dec->is_started = true;
    dec->sequence = head->sequence + 1;
    dec->events = head->events_before + head->events;
    dec->block = block;
    dec->block_events = 0;
    dec->time_ns = head->first_ns;
    if (head->first_ns > dec->latest_ns)
        dec->latest_ns = head->first_ns;
    for (size_t i = 0; i < TTM_COLUMN_COUNT; i++) {
        dec->columns[i].at = block->columns[i].data;
        dec->columns[i].end = block->columns[i].data + block->columns[i].length;
    }
    return 0;
}

/* ---- the whole ---- */

struct ttm_decoder *ttm_decoder_new(uint64_t seed)
{
    struct ttm_decoder *dec = calloc(1, sizeof(*dec));

    if (!dec)
        return NULL;
    dec->seed = seed;
    ttm_u64_map_init(&dec->by_number, seed);
    return dec;
}

static void forget_processes(struct ttm_decoder *dec)
{
    for (uint32_t i = 0; i < dec->process_count; i++)
        free_process(dec->processes[i]);
    free(dec->processes);
    ttm_u64_map_done(&dec->by_number);
}

void ttm_decoder_free(struct ttm_decoder *dec)
{
    if (!dec)
        return;
    forget_processes(dec);
    free(dec);
}

void ttm_decoder_restart(struct ttm_decoder *dec)
{
    const uint64_t seed = dec->seed;

    forget_processes(dec);
    *dec = (struct ttm_decoder){.seed = seed};
    ttm_u64_map_init(&dec->by_number, seed);
}

void ttm_decoder_lose(struct ttm_decoder *dec)
{
    /* What was read of a block that turned out bad has been handed out; the rest is missing. */
    if (dec->block) {
        const struct ttm_block_head *head = &dec->block->head;
        dec->events = head->events_before;
        dec->events += dec->block_events < head->events ? dec->block_events : head->events;
    }
    dec->block = NULL;
    dec->walk = WALK_NONE;
    dec->is_lost = true;
    dec->is_started = true;
    dec->is_telling = false;
    dec->is_in_facts = false;
}

bool ttm_decoder_is_exact(const struct ttm_decoder *dec)
{
    return !dec->is_lost && !dec->is_taking_over;
}

uint32_t ttm_decoder_live(const struct ttm_decoder *dec)
{
    return dec->live;
}

uint64_t ttm_decoder_lost_events(const struct ttm_decoder *dec)
{
    return dec->lost_events;
}
