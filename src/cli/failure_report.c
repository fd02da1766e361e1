/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/failure_report.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/u64_set.h"
#include "cli/caller.h"
#include "cli/failure_text.h"
#include "model/registry.h"
#include "wire/life_row.h"

void ttm_failure_reporter_init(struct ttm_failure_reporter *reporter,
                               const struct ttm_terminal *terminal)
{
    *reporter = (struct ttm_failure_reporter){.terminal = *terminal};
}

/* ---- who called ---- */

#define STACKS_MAX 1024 /* that are compared; of more origins, the newest */

/* What is told of from where, and the stacks of all that the process allocates from. */
struct places {
    const struct ttm_process *process;
    struct ttm_stack_words *stacks;
    uint32_t count;
    struct ttm_arena arena; /* all of it; the view borrows from it */
};

/* "decode.py:28:cache_kv", up to 'end'. */
static struct ttm_frame_words read_frame(struct ttm_arena *arena, const char *start,
                                         const char *end)
{
    const char *function = memrchr(start, ':', (size_t)(end - start));
    const char *line = function ? memrchr(start, ':', (size_t)(function - start)) : NULL;

    if (!line)
        return (struct ttm_frame_words){.file = ttm_arena_text(arena, start, (size_t)(end - start)),
                                        .function = ""};
    return (struct ttm_frame_words){
        .file = ttm_arena_text(arena, start, (size_t)(line - start)),
        .function = ttm_arena_text(arena, function + 1, (size_t)(end - function - 1)),
        .line = (uint32_t)strtoul(line + 1, NULL, 10),
    };
}

static struct ttm_stack_words read_stack(struct ttm_arena *arena, const struct ttm_origin *origin)
{
    const char *text = origin ? origin->text[TTM_ORIGIN_PYTHON] : "";
    uint32_t count = 0, lines = 0;

    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    struct ttm_frame_words *frames = ttm_arena_take(arena, lines, sizeof(frames[0]));
    for (const char *end; frames && count < lines; text = end + 1) {
        end = strchr(text, '\n');
        frames[count++] = read_frame(arena, text, end);
    }
    return (struct ttm_stack_words){frames, count};
}

static struct ttm_stack_words stack_at(const void *arg, uint32_t i)
{
    return ((const struct places *)arg)->stacks[i];
}

static struct places places_open(const struct ttm_process *process)
{
    const struct ttm_origin_table *table = &process->origins;
    const uint32_t count = table->count < STACKS_MAX ? table->count : STACKS_MAX;
    struct places places = {.process = process};

    ttm_arena_init(&places.arena);
    places.stacks = ttm_arena_take(&places.arena, count, sizeof(places.stacks[0]));
    for (uint32_t i = 0; places.stacks && i < count; i++)
        places.stacks[places.count++] =
            read_stack(&places.arena, table->origins[table->count - count + i]);
    return places;
}

static struct ttm_failure_place place_of(struct places *places, uint32_t number)
{
    const struct ttm_origin *origin =
        number != 0 ? ttm_origin_table_find(&places->process->origins, number) : NULL;
    const struct ttm_stack_words stack = read_stack(&places->arena, origin);

    return (struct ttm_failure_place){
        .words = ttm_origin_brief_of(origin),
        .caller = ttm_caller_find(&stack, stack_at, places, places->count),
        .frame = stack.frames,
    };
}

/* ---- what there is to say ---- */

static const char *operation_of(const struct ttm_process *process, uint32_t number)
{
    const struct ttm_origin *origin = ttm_origin_table_find(&process->origins, number);

    return ttm_origin_brief_of(number != 0 ? origin : NULL).operation;
}

/* Programs that have circular buffers on the device, and what those take. */
static void find_programs(const struct ttm_registry *reg, const struct ttm_process *process,
                          uint16_t device, struct ttm_failure_view *view)
{
    const uint16_t slot = process->slots ? process->slots[device] : 0;
    struct ttm_cb_sums sums = {0};
    struct ttm_u64_set programs;

    ttm_u64_set_init(&programs, reg->seed);
    for (uint32_t i = 0; i < process->cbs.count; i++) {
        const struct ttm_cb *cb = &process->cbs.cbs[i];
        const struct ttm_device_set set = ttm_device_sets_get(&reg->sets, cb->device_set);
        for (uint16_t d = 0; d < set.count; d++) {
            if (set.devices[d] == device)
                (void)ttm_u64_set_add(&programs, cb->program);
        }
    }
    (void)ttm_cb_map_sum(&process->cbs, &reg->sets, device, NULL, 0, &sums);
    view->program_count = (uint32_t)programs.count;
    view->cb_bytes = sums.registered_bytes;
    if (slot != 0)
        view->cb_bytes += process->devices[slot - 1].totals.cb.coreless_bytes;
    ttm_u64_set_done(&programs);
}

/* The operations that made them; several origins may be of one. */
static void find_operations(const struct ttm_registry *reg, const struct ttm_process *process,
                            uint16_t device, struct ttm_failure_view *view)
{
    struct ttm_holders holders;

    if (ttm_holders_find(reg, process, device, TTM_REGION_CB, &holders) < 0)
        return;
    for (uint32_t i = 0; i < holders.count; i++) {
        const char *operation = operation_of(process, holders.largest[i].origin);
        bool is_new = operation[0] != '\0' && view->operation_count < TTM_FAILURE_OPERATIONS_MAX;
        for (uint32_t n = 0; is_new && n < view->operation_count; n++)
            is_new = strcmp(view->operations[n], operation) != 0;
        if (is_new)
            view->operations[view->operation_count++] = operation;
    }
}

/* What is known of a failure whenever it is told of. */
static struct ttm_failure_view glance(const struct ttm_registry *reg, struct places *places,
                                      const struct ttm_failure_row *failure)
{
    const uint8_t region = ttm_failure_held_region(failure);
    const struct ttm_device *device = reg->devices[failure->device_id];
    struct ttm_failure_view view = {
        .failure = failure,
        .pid = reg->process_count > 1 ? places->process->info.pid : 0,
        .where = place_of(places, failure->origin),
    };

    if (device && device->bank_count[region] > 0) {
        view.bank_count = device->bank_count[region];
        view.bank_bytes = device->capacity_bytes[region] / view.bank_count;
    }
    return view;
}

static void name_holders(struct places *places, struct ttm_failure_view *view)
{
    for (uint32_t i = 0; i < view->holders.count; i++)
        view->holder_places[i] = place_of(places, view->holders.largest[i].origin);
}

/* At the time of the failure. */
static void look(const struct ttm_failure_reporter *reporter, const struct ttm_registry *reg,
                 struct places *places, struct ttm_failure_view *view)
{
    const struct ttm_process *process = places->process;
    const struct ttm_failure_row *failure = view->failure;
    const uint8_t region = ttm_failure_held_region(failure);

    (void)ttm_holders_find(reg, process, failure->device_id, region, &view->holders);
    name_holders(places, view);
    (void)ttm_bank_map_draw(reg, process, failure->device_id, region, view->bank_count,
                            ttm_failure_map_cells(&reporter->terminal), &view->map);
    for (uint32_t i = 0; i < view->map.lowest_count; i++)
        view->lowest_places[i] = place_of(places, view->map.lowest[i].origin);
    if (region == TTM_REGION_L1) {
        find_programs(reg, process, failure->device_id, view);
        find_operations(reg, process, failure->device_id, view);
    }
}

/* Later, or elsewhere: the lives are not those of then, but the server noted the largest owners. */
static void look_back(struct places *places, struct ttm_failure_view *view)
{
    const struct ttm_failure_row *failure = view->failure;
    struct ttm_holders *holders = &view->holders;

    view->is_late = true;
    memcpy(holders->largest, failure->owners, sizeof(holders->largest));
    holders->count = holders->origins = failure->owner_count;
    name_holders(places, view);
}

/* ---- saying it ---- */

/* Failures of one kind differ in size and time alone. */
static uint64_t kind_of(const struct ttm_process *process, const struct ttm_failure_row *failure)
{
    const struct ttm_origin *origin = ttm_origin_table_find(&process->origins, failure->origin);
    uint64_t hash =
        ttm_hash_u64((uint64_t)process->info.pid << 32 | (uint64_t)failure->device_id << 16 |
                     (unsigned)failure->region << 8 | (unsigned)failure->kind << 2 |
                     (unsigned)ttm_failure_shortage(failure));

    if (failure->origin == 0 || !origin)
        return hash;
    /* From where: of these the first that is known. */
    static const enum ttm_origin_text texts[] = {TTM_ORIGIN_PYTHON, TTM_ORIGIN_NATIVE,
                                                 TTM_ORIGIN_CONTEXT};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (origin->text[texts[i]][0] != '\0')
            return ttm_hash_text(hash, origin->text[texts[i]]);
    }
    return ttm_hash_text(hash, origin->text[TTM_ORIGIN_OPERATION]);
}

/* Whether none of the kind was told of, and one can be. */
static bool is_new(struct ttm_failure_reporter *reporter, uint64_t kind)
{
    for (uint32_t i = 0; i < reporter->kind_count; i++) {
        if (reporter->kinds[i] == kind)
            return false;
    }
    if (reporter->kind_count == TTM_FAILURE_KINDS_MAX)
        return false;
    reporter->kinds[reporter->kind_count++] = kind;
    return true;
}

/* Whether this one is told of; says so when it is the first that is not any more. */
static bool take_turn(struct ttm_failure_reporter *reporter, uint64_t kind, uint64_t time_ns)
{
    if (!is_new(reporter, kind)) {
        /* An older one, of another thread, is of the same second. */
        if (reporter->is_silent ||
            (reporter->told > 0 && time_ns < reporter->last_ns + TTM_NS_PER_S))
            return false;
        if (reporter->told >= TTM_FAILURE_REPORTS_MAX) {
            reporter->is_silent = true;
            ttm_log("%s more failures, %s", ttm_terminal_ellipsis(&reporter->terminal),
                    reporter->is_unrecorded ? "which the summary counts" : "see the report");
            return false;
        }
    }
    if (time_ns > reporter->last_ns)
        reporter->last_ns = time_ns;
    reporter->told++;
    return true;
}

/* Those of the process that were held back; NULL: none. */
static struct ttm_failures_held *find_held(struct ttm_failure_reporter *reporter,
                                           const struct ttm_process *process)
{
    for (uint32_t i = 0; i < reporter->held_count; i++) {
        if (reporter->held[i].process == process)
            return &reporter->held[i];
    }
    return NULL;
}

static void hold_back(struct ttm_failure_reporter *reporter, const struct ttm_process *process,
                      const struct ttm_failure_row *failure, uint64_t count)
{
    struct ttm_failures_held *held = find_held(reporter, process);

    if (!held && reporter->held_count < TTM_FAILURE_PROCESSES_MAX) {
        held = &reporter->held[reporter->held_count++];
        *held = (struct ttm_failures_held){.process = process};
    }
    if (!held)
        return; /* it is counted in the summary */
    held->count += count;
    held->last = *failure;
}

static void forget(struct ttm_failure_reporter *reporter, struct ttm_failures_held *held)
{
    *held = reporter->held[--reporter->held_count];
}

/*
 * 'more': how many others there were since the last one, and what is to be said of this one. Where
 * Python tells the place, no file is looked at for names.
 */
static void say(const struct ttm_failure_reporter *reporter, struct ttm_failure_view *view,
                uint64_t more, const char *then)
{
    struct ttm_text whole, out;
    char number[TTM_NUMBER_SIZE];

    ttm_text_init(&whole);
    ttm_text_init(&out);
    if (more > 0)
        ttm_text_format(&whole, "tt-mem: %s more %s since%s\n", ttm_format_count(more, number),
                        more == 1 ? "failure" : "failures", then);
    view->names = ttm_native_names_new();
    ttm_failure_text(view, &reporter->terminal, &whole);
    ttm_native_names_free(view->names);
    ttm_terminal_fit(&reporter->terminal, &whole, &out);
    if (!ttm_text_failed(&whole) && !ttm_text_failed(&out))
        ttm_log_text(ttm_text_string(&out), out.length);
    ttm_text_done(&whole);
    ttm_text_done(&out);
}

/* With how many were held back before it, and 'missed' ones. */
static void say_now(struct ttm_failure_reporter *reporter, const struct ttm_process *process,
                    struct ttm_failure_view *view, uint64_t missed)
{
    struct ttm_failures_held *held = find_held(reporter, process);

    say(reporter, view, missed + (held ? held->count : 0), "");
    if (held)
        forget(reporter, held);
}

void ttm_failure_report(void *context, const struct ttm_registry *reg,
                        const struct ttm_process *process, const struct ttm_failure_row *failure)
{
    struct ttm_failure_reporter *reporter = context;

    if (!take_turn(reporter, kind_of(process, failure), failure->time_ns)) {
        hold_back(reporter, process, failure, 1);
        return;
    }
    struct places places = places_open(process);
    struct ttm_failure_view view = glance(reg, &places, failure);
    look(reporter, reg, &places, &view);
    say_now(reporter, process, &view, 0);
    ttm_arena_done(&places.arena);
}

void ttm_failure_report_heard(struct ttm_failure_reporter *reporter, const struct ttm_registry *reg,
                              const struct ttm_process *process,
                              const struct ttm_failure_row *failure, uint64_t missed)
{
    if (!take_turn(reporter, kind_of(process, failure), failure->time_ns)) {
        hold_back(reporter, process, failure, missed + 1);
        return;
    }
    struct places places = places_open(process);
    struct ttm_failure_view view = glance(reg, &places, failure);
    look_back(&places, &view);
    say_now(reporter, process, &view, missed);
    ttm_arena_done(&places.arena);
}

void ttm_failure_report_end(struct ttm_failure_reporter *reporter, const struct ttm_registry *reg,
                            const struct ttm_process *process)
{
    struct ttm_failures_held *held = find_held(reporter, process);

    if (!held)
        return;
    struct places places = places_open(process);
    struct ttm_failure_view view = glance(reg, &places, &held->last);
    look_back(&places, &view);
    say(reporter, &view, held->count > 1 ? held->count : 0, ", the last of them:");
    ttm_arena_done(&places.arena);
    forget(reporter, held);
}
