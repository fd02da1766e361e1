/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames are said once and referred to by number, devices with the same history share
 * their courses and banks, and a course says only where it changes: so a million events
 * are a few hundred kilobytes.
 */
#include "cli/page_data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/root_cause.h"
#include "analysis/stack_frames.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/recording_file.h"
#include "cli/report_json.h"
#include "cli/report_words.h"
#include "wire/region.h"
#include "wire/shortage.h"

struct page {
    const struct ttm_report *report;
    struct ttm_json json;
    struct ttm_source_lines *sources; /* NULL: none */
    struct ttm_frame_table frames;
    bool *is_own; /* of each frame: a process of the caller names it */
    uint32_t own_count, own_room;
    bool is_own_process;   /* the process that is written now */
    uint32_t course_spans; /* for each course */
    int status;
};

/* One process of it. */
struct part {
    struct page *page;
    const struct ttm_report_process *process;
    const struct ttm_report_origin **order; /* the worst first; those that are told of */
    uint32_t count;
    int64_t *place_of; /* in 'order', of each origin; -1: left out */
};

/* What each of 'count' gets of 'all', but no less than 'least'. */
static uint32_t share_of(uint32_t all, uint64_t count, uint32_t least)
{
    const uint64_t share = count > 0 ? all / count : all;

    return share < least ? least : (uint32_t)share;
}

static uint32_t process_count(const struct page *page)
{
    const uint32_t count = page->report->process_count;

    return count < TTM_PAGE_PROCESSES ? count : TTM_PAGE_PROCESSES;
}

/* A text of any length, cut where a character ends. */
static void put_text(struct ttm_json *json, const char *text)
{
    char cut[TTM_PAGE_TEXT + 4];
    size_t length = 0, n;

    if (strlen(text) <= TTM_PAGE_TEXT) {
        ttm_json_string(json, text);
        return;
    }
    while ((n = ttm_utf8_length(text + length)) + length < TTM_PAGE_TEXT)
        length += n ? n : 1;
    memcpy(cut, text, length);
    memcpy(cut + length, "…", 4);
    ttm_json_string(json, cut);
}

static void put_named(struct ttm_json *json, const char *key, const char *text)
{
    ttm_json_key(json, key);
    put_text(json, text);
}

/* [count, bytes, footprint] */
static void put_held(struct ttm_json *json, const char *key, const struct ttm_held *held)
{
    ttm_json_key(json, key);
    ttm_json_array_begin(json);
    ttm_json_u64(json, held->count);
    ttm_json_u64(json, held->bytes);
    ttm_json_u64(json, held->footprint_bytes);
    ttm_json_array_end(json);
}

static uint64_t since_start(const struct part *part, uint64_t time_ns)
{
    return time_ns > part->process->first_ns ? time_ns - part->process->first_ns : 0;
}

/* ---- stacks ---- */

/* Several processes may name the same frame. Returns 0 or -ENOMEM. */
static int note_owner(struct page *page, uint32_t number)
{
    if (number >= page->own_room) {
        const uint32_t room = number < 32 ? 64 : 2 * number;
        bool *is_own = realloc(page->is_own, room * sizeof(is_own[0]));
        if (!is_own)
            return -ENOMEM;
        page->is_own = is_own;
        page->own_room = room;
    }
    while (page->own_count <= number)
        page->is_own[page->own_count++] = false;
    page->is_own[number] |= page->is_own_process;
    return 0;
}

static void put_frame(struct page *page, struct ttm_stack_frame *frame)
{
    const long number = frame->name ? ttm_frame_table_add(&page->frames, frame) : -ENOMEM;

    if (number < 0 || note_owner(page, (uint32_t)number) < 0)
        page->status = -ENOMEM;
    else
        ttm_json_u64(&page->json, (uint64_t)number);
}

/* Outermost first, the operation last. */
static void put_stack(struct page *page, const struct ttm_origin_words *words)
{
    struct ttm_stack_frame frames[TTM_STACK_FRAMES_MAX];
    const int count = ttm_stack_frames_read(words, false, frames);

    page->status = count < 0 ? count : page->status;
    ttm_json_key(&page->json, "stack");
    ttm_json_array_begin(&page->json);
    for (int i = 0; i < count; i++)
        put_frame(page, &frames[i]);
    ttm_json_array_end(&page->json);
}

/* Innermost first; where the user has no lines it is the stack already. */
static void put_native(struct page *page, const struct ttm_origin_words *words)
{
    if (words->native_count == 0 || ttm_origin_users_stack(words).count == 0)
        return;
    ttm_json_key(&page->json, "native");
    ttm_json_array_begin(&page->json);
    for (uint32_t i = 0; i < words->native_count; i++) {
        struct ttm_stack_frame frame = ttm_stack_frame_native(words->native[i]);
        put_frame(page, &frame);
    }
    ttm_json_array_end(&page->json);
}

/* [name, file, line, source]: the last two or three are left out where they are not known. */
static void put_frames(struct page *page)
{
    struct ttm_json *json = &page->json;
    uint32_t sources = 0;
    struct ttm_text line;

    ttm_text_init(&line);
    ttm_json_key(json, "frames");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < page->frames.count; i++) {
        const struct ttm_stack_frame *frame = &page->frames.frames[i];
        ttm_json_array_begin(json);
        put_text(json, frame->name);
        if (frame->file) {
            put_text(json, frame->file);
            ttm_json_u64(json, frame->line);
            ttm_text_clear(&line);
            if (sources < TTM_PAGE_SOURCES &&
                ttm_source_line(page->sources, i < page->own_count && page->is_own[i], frame->file,
                                frame->line, &line)) {
                put_text(json, ttm_text_string(&line));
                sources++;
            }
        }
        ttm_json_array_end(json);
    }
    ttm_json_array_end(json);
    page->status = ttm_text_failed(&line) ? -ENOMEM : page->status;
    ttm_text_done(&line);
}

/* ---- origins ---- */

static int by_weight(const void *a, const void *b)
{
    const struct ttm_report_origin *x = *(const struct ttm_report_origin *const *)a;
    const struct ttm_report_origin *y = *(const struct ttm_report_origin *const *)b;
    const uint64_t xs[] = {x->verdict.is_suspect, x->remaining.footprint_bytes,
                           x->peak.footprint_bytes, x->born_bytes, x->allocs};
    const uint64_t ys[] = {y->verdict.is_suspect, y->remaining.footprint_bytes,
                           y->peak.footprint_bytes, y->born_bytes, y->allocs};

    for (unsigned i = 0; i < sizeof(xs) / sizeof(xs[0]); i++) {
        if (xs[i] != ys[i])
            return xs[i] > ys[i] ? -1 : 1;
    }
    return x < y ? -1 : x > y; /* of one array */
}

static int choose_origins(struct part *part)
{
    const uint32_t all = part->process->origin_count;
    const uint32_t most = share_of(TTM_PAGE_ORIGINS, process_count(part->page), 50);

    part->order = malloc((all + 1) * sizeof(void *));
    part->place_of = malloc((all + 1) * sizeof(part->place_of[0]));
    if (!part->order || !part->place_of)
        return -ENOMEM;
    for (uint32_t i = 0; i < all; i++) {
        part->order[i] = &part->process->origins[i];
        part->place_of[i] = -1;
    }
    qsort(part->order, all, sizeof(void *), by_weight);
    part->count = all < most ? all : most;
    for (uint32_t i = 0; i < part->count; i++)
        part->place_of[part->order[i] - part->process->origins] = i;
    return 0;
}

static int by_count(const void *a, const void *b)
{
    const struct ttm_size_count *x = a, *y = b;

    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

/* [bytes, count, ...], the most frequent first. */
static int put_sizes(struct ttm_json *json, const struct ttm_report_origin *origin)
{
    const uint32_t count = origin->size_count;
    struct ttm_size_count *sizes = malloc((count + 1) * sizeof(sizes[0]));

    if (!sizes)
        return -ENOMEM;
    if (count > 0)
        memcpy(sizes, origin->sizes, count * sizeof(sizes[0]));
    qsort(sizes, count, sizeof(sizes[0]), by_count);
    ttm_json_key(json, "sizes");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < count && i < TTM_PAGE_SIZES; i++) {
        ttm_json_u64(json, sizes[i].bytes);
        ttm_json_u64(json, sizes[i].count);
    }
    ttm_json_array_end(json);
    ttm_json_put_u64(json, "size_count", count);
    free(sizes);
    return 0;
}

static void put_numbers(struct ttm_json *json, const char *key, const uint64_t *numbers,
                        uint32_t count)
{
    ttm_json_key(json, key);
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < count; i++)
        ttm_json_u64(json, numbers[i]);
    ttm_json_array_end(json);
}

static void put_devices_of(struct ttm_json *json, const struct ttm_report_origin *origin)
{
    ttm_json_key(json, "devices");
    ttm_json_array_begin(json);
    for (uint16_t i = 0; i < origin->device_count; i++)
        ttm_json_u64(json, origin->devices[i]);
    ttm_json_array_end(json);
}

static void put_verdict(struct ttm_json *json, const struct ttm_verdict *verdict)
{
    ttm_json_put_string(json, "class", ttm_class_name(verdict->class));
    if (verdict->is_suspect)
        ttm_json_put_bool(json, "suspect", true);
    if (verdict->is_over)
        ttm_json_put_bool(json, "over", true);
    ttm_json_put_string(json, "why", verdict->why);
    ttm_json_put_string(json, "advice", verdict->advice);
}

/* Left out where the program was not asked. */
static void put_holders(struct ttm_json *json, const struct ttm_keepers *holders)
{
    if (!holders->is_known)
        return;
    ttm_json_key(json, "holders");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < holders->count; i++)
        put_text(json, holders->texts[i]);
    ttm_json_array_end(json);
    ttm_json_put_string(json, "holders_search", ttm_keepers_search_name(holders));
}

static void put_origin(const struct part *part, const struct ttm_report_origin *origin)
{
    struct page *page = part->page;
    struct ttm_json *json = &page->json;

    ttm_json_object_begin(json);
    put_stack(page, &origin->words);
    put_native(page, &origin->words);
    put_named(json, "op", origin->words.operation);
    put_named(json, "name", origin->words.name);
    put_named(json, "context", origin->words.context);
    put_named(json, "thread", origin->words.thread);
    /* Else the operation says more than the innermost frame. */
    ttm_json_put_bool(json, "lines", ttm_origin_users_stack(&origin->words).count > 0);
    put_devices_of(json, origin);
    ttm_json_put_string(json, "region", ttm_region_name(origin->region));
    ttm_json_put_u64(json, "allocs", origin->allocs);
    ttm_json_put_u64(json, "frees", origin->frees);
    if (origin->replaced > 0)
        ttm_json_put_u64(json, "replaced", origin->replaced);
    ttm_json_put_u64(json, "born", origin->born_bytes);
    put_held(json, "remaining", &origin->remaining);
    put_held(json, "peak", &origin->peak);
    put_held(json, "late", &origin->late);
    ttm_json_put_u64(json, "first", since_start(part, origin->first_ns));
    ttm_json_put_u64(json, "last", since_start(part, origin->last_ns));
    if (origin->frees > 0)
        ttm_json_put_u64(json, "life", origin->lifetime_ns / origin->frees);
    put_numbers(json, "bars", origin->bars, TTM_REPORT_BARS);
    if (put_sizes(json, origin) < 0)
        page->status = -ENOMEM;
    put_verdict(json, &origin->verdict);
    put_holders(json, &origin->keepers);
    if (origin->verdict.is_suspect && origin->judged.count < origin->remaining.count)
        put_held(json, "judged", &origin->judged); /* the rest of what remains does not grow */
    ttm_json_object_end(json);
}

static void put_origins(const struct part *part)
{
    const struct ttm_report_process *process = part->process;
    struct ttm_json *json = &part->page->json;
    struct ttm_held remaining = {0}, peak = {0};
    uint64_t allocs = 0, born_bytes = 0;

    ttm_json_key(json, "origins");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < part->count; i++)
        put_origin(part, part->order[i]);
    ttm_json_array_end(json);
    for (uint32_t i = part->count; i < process->origin_count; i++) {
        ttm_held_add(&remaining, &part->order[i]->remaining);
        ttm_held_add(&peak, &part->order[i]->peak);
        allocs += part->order[i]->allocs;
        born_bytes += part->order[i]->born_bytes;
    }
    ttm_json_key(json, "more"); /* those that are left out */
    ttm_json_object_begin(json);
    ttm_json_put_u64(json, "count", process->origin_count - part->count);
    ttm_json_put_u64(json, "allocs", allocs);
    ttm_json_put_u64(json, "born", born_bytes);
    put_held(json, "remaining", &remaining);
    put_held(json, "peak", &peak);
    ttm_json_object_end(json);
}

static bool is_on_page(const void *arg, const struct ttm_report_origin *origin)
{
    const struct part *part = arg;

    return part->place_of[origin - part->process->origins] >= 0;
}

/* Objects that hold what several lines allocated: which of the origins, and how much. */
static void put_causes(const struct part *part)
{
    struct ttm_json *json = &part->page->json;
    struct ttm_root_causes causes;

    if (ttm_root_causes_find(part->process, is_on_page, part, &causes) < 0)
        part->page->status = -ENOMEM;
    ttm_json_key(json, "causes");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < causes.count; i++) {
        const struct ttm_root_cause *cause = &causes.list[i];
        ttm_json_object_begin(json);
        put_named(json, "text", cause->text);
        ttm_json_put_string(json, "advice", cause->advice);
        ttm_json_key(json, "origins");
        ttm_json_array_begin(json);
        for (uint32_t k = 0; k < cause->count; k++)
            ttm_json_u64(json, (uint64_t)part->place_of[causes.origins[cause->first + k]]);
        ttm_json_array_end(json);
        put_held(json, "remaining", &cause->held);
        ttm_json_object_end(json);
    }
    ttm_json_array_end(json);
    ttm_root_causes_done(&causes);
}

/* ---- devices ---- */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The largest number that all of them are multiples of: sizes are multiples of pages. */
static uint64_t unit_of(const struct ttm_course *course)
{
    uint64_t unit = 0;

    for (uint32_t i = 0; i < course->count && unit != 1; i++) {
        unit = common_divisor(unit, course->spans[i].min);
        unit = common_divisor(unit, course->spans[i].max);
        unit = common_divisor(unit, course->spans[i].last);
    }
    return unit ? unit : 1;
}

/*
 * "course": {"at": start, "span": ns, "unit": bytes, "count": spans, "v": [skip, min, max, last, ...]}
 * where 'skip' spans before that one are flat at the last value.
 */
static void put_course(const struct part *part, const struct ttm_course *full)
{
    struct ttm_json *json = &part->page->json;
    struct ttm_course *course = ttm_course_copy(full);
    uint64_t skip = 0, before = 0;

    if (!course) {
        part->page->status = -ENOMEM;
        return;
    }
    ttm_course_thin(course, part->page->course_spans);
    const uint64_t unit = unit_of(course);
    ttm_json_key(json, "course");
    ttm_json_object_begin(json);
    ttm_json_put_u64(json, "at", since_start(part, course->start_ns));
    ttm_json_put_u64(json, "span", 1ull << course->shift);
    ttm_json_put_u64(json, "unit", unit);
    ttm_json_put_u64(json, "count", course->count);
    ttm_json_key(json, "v");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < course->count; i++) {
        const struct ttm_course_span *span = &course->spans[i];
        if (span->min == before && span->max == before && span->last == before) {
            skip++;
            continue;
        }
        ttm_json_u64(json, skip);
        ttm_json_u64(json, span->min / unit);
        ttm_json_u64(json, span->max / unit);
        ttm_json_u64(json, span->last / unit);
        skip = 0;
        before = span->last;
    }
    ttm_json_array_end(json);
    ttm_json_object_end(json);
    ttm_course_free(course);
}

/* "runs": [gap before, length, held, count, origin or -1, whether others are in it, ...] */
static void put_runs(const struct part *part, const struct ttm_bank *bank)
{
    struct ttm_json *json = &part->page->json;
    uint64_t at = bank->start;

    ttm_json_key(json, "runs");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < bank->run_count; i++) {
        const struct ttm_bank_run *run = &bank->runs[i];
        ttm_json_u64(json, run->start - at);
        ttm_json_u64(json, run->end - run->start);
        ttm_json_u64(json, run->held_bytes);
        ttm_json_u64(json, run->count);
        ttm_json_i64(json, run->origin == UINT32_MAX ? -1 : part->place_of[run->origin]);
        ttm_json_u64(json, run->is_mixed);
        at = run->end;
    }
    ttm_json_array_end(json);
}

static void put_bank(const struct part *part, const struct ttm_report_device *device, unsigned r)
{
    const struct ttm_report_region *region = &device->region[r];
    const struct ttm_bank *bank = region->bank;
    struct ttm_json *json = &part->page->json;
    const uint32_t banks = device->bank_count[r];

    ttm_json_key(json, "bank");
    ttm_json_object_begin(json);
    ttm_json_put_u64(json, "start", bank->start);
    ttm_json_put_u64(json, "end", bank->end);
    ttm_json_put_u64(json, "bytes", banks > 0 ? region->capacity_bytes / banks : 0);
    ttm_json_put_u64(json, "banks", banks);
    ttm_json_put_u64(json, "held", bank->held_bytes);
    ttm_json_put_u64(json, "count", bank->count);
    ttm_json_put_u64(json, "gaps", bank->gap_count);
    ttm_json_put_u64(json, "gap_at", bank->largest_gap_start);
    ttm_json_put_u64(json, "gap", bank->largest_gap_bytes);
    put_runs(part, bank);
    ttm_json_object_end(json);
}

static void put_region(const struct part *part, const struct ttm_report_device *device, unsigned r)
{
    const struct ttm_report_region *region = &device->region[r];
    const struct ttm_report_amounts amounts = ttm_report_amounts(device, r);
    struct ttm_json *json = &part->page->json;

    ttm_json_key(json, ttm_region_name(r));
    ttm_json_object_begin(json);
    ttm_json_put_u64(json, "allocs", region->allocs);
    ttm_json_put_u64(json, "frees", region->frees);
    put_held(json, "remaining", &region->remaining);
    ttm_json_put_u64(json, "now", amounts.now_bytes);
    ttm_json_put_u64(json, "peak", amounts.peak_bytes);
    if (r != TTM_REGION_CB) /* of circular buffers it is not known to the nanosecond */
        ttm_json_put_u64(json, "peak_at", since_start(part, region->peak_ns));
    ttm_json_put_u64(json, "capacity", region->capacity_bytes);
    if (region->course)
        put_course(part, region->course);
    if (region->bank)
        put_bank(part, device, r);
    ttm_json_object_end(json);
}

/* Of devices with the same history the first one speaks for all. */
static const struct ttm_report_device *first_of(const struct ttm_report_process *process,
                                                const struct ttm_report_device *device)
{
    const struct ttm_report_device *first = process->devices;

    while (first->group != device->group || strcmp(first->board, device->board) != 0 ||
           first->arch != device->arch)
        first++;
    return first;
}

static void put_device(const struct part *part, const struct ttm_report_device *device)
{
    const struct ttm_report_device *first = first_of(part->process, device);
    struct ttm_json *json = &part->page->json;

    ttm_json_object_begin(json);
    ttm_json_put_u64(json, "id", device->id);
    if (first != device) {
        ttm_json_put_u64(json, "like", first->id);
        ttm_json_object_end(json);
        return;
    }
    ttm_json_put_string(json, "arch",
                        device->arch == TTM_ARCH_UNKNOWN ? "" : ttm_arch_name(device->arch));
    put_named(json, "board", device->board);
    ttm_json_key(json, "regions");
    ttm_json_object_begin(json);
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        if (device->region[r].allocs > 0)
            put_region(part, device, r);
    }
    ttm_json_object_end(json);
    ttm_json_object_end(json);
}

static void put_devices(const struct part *part)
{
    struct ttm_json *json = &part->page->json;

    ttm_json_key(json, "devices");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < part->process->device_count; i++)
        put_device(part, &part->process->devices[i]);
    ttm_json_array_end(json);
}

/* ---- marks, failures ---- */

/* [time, name, ...]; of too many, every so many-th. */
static void put_marks(const struct part *part)
{
    const uint32_t count = part->process->mark_count;
    const uint32_t most = share_of(TTM_PAGE_MARKS, process_count(part->page), 20);
    const uint32_t step = (count + most - 1) / most;
    struct ttm_json *json = &part->page->json;

    ttm_json_key(json, "marks");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < count; i += step) {
        ttm_json_u64(json, since_start(part, part->process->marks[i].time_ns));
        put_text(json, part->process->marks[i].name);
    }
    ttm_json_array_end(json);
    ttm_json_put_u64(json, "mark_count", count);
}

static void put_failure(const struct part *part, const struct ttm_report_failure *failure)
{
    const struct ttm_recorded_failure *f = &failure->failure;
    struct ttm_json *json = &part->page->json;

    ttm_json_object_begin(json);
    ttm_json_put_bool(json, "clash", f->kind == TTM_FAILURE_CB_CLASH);
    ttm_json_put_u64(json, "time", since_start(part, failure->time_ns));
    if (failure->is_last) { /* of its kind, and it speaks for all of them */
        ttm_json_put_u64(json, "alike", failure->alike);
        ttm_json_put_u64(json, "first", since_start(part, failure->first_ns));
    }
    ttm_json_put_u64(json, "device", failure->device_id);
    ttm_json_put_string(json, "region", ttm_region_name(f->region));
    ttm_json_put_u64(json, "wanted", f->wanted_bytes);
    ttm_json_put_u64(json, "bank_wanted", f->bank_wanted_bytes);
    ttm_json_put_u64(json, "free", f->bank_free_bytes);
    ttm_json_put_u64(json, "largest", f->bank_largest_bytes);
    if (failure->shortage != TTM_SHORTAGE_NONE)
        ttm_json_put_string(json, "verdict", ttm_shortage_name(failure->shortage));
    put_stack(part->page, &failure->words);
    put_named(json, "op", failure->words.operation);
    ttm_json_key(json, "owners"); /* [origin, footprint, count, ...] */
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < failure->owner_count; i++) {
        ttm_json_i64(json, part->place_of[failure->owners[i].origin]);
        ttm_json_u64(json, failure->owners[i].held.footprint_bytes);
        ttm_json_u64(json, failure->owners[i].held.count);
    }
    ttm_json_array_end(json);
    ttm_json_object_end(json);
}

static void put_failures(const struct part *part)
{
    struct ttm_json *json = &part->page->json;

    ttm_json_key(json, "failures");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < part->process->failure_count; i++)
        put_failure(part, &part->process->failures[i]);
    ttm_json_array_end(json);
    ttm_json_put_u64(json, "failures_ever", part->process->failures_ever);
}

/* ---- all of it ---- */

static bool is_suspect(const void *arg, const struct ttm_report_origin *origin)
{
    (void)arg;
    return origin->verdict.is_suspect;
}

static void put_head(const struct part *part)
{
    const struct ttm_report_process *process = part->process;
    const struct ttm_report *report = part->page->report;
    struct ttm_json *json = &part->page->json;
    char how[TTM_END_WORDS_SIZE];

    ttm_json_put_i64(json, "pid", process->pid);
    ttm_json_put_string(json, "command", process->command);
    if (process->is_logged)
        ttm_json_put_bool(json, "logged", true);
    if (process->is_untimed)
        ttm_json_put_bool(json, "untimed", true);
    ttm_json_put_u64(json, "start_ms",
                     (process->start_wall_ns ? process->start_wall_ns
                                             : ttm_report_wall(report, process->first_ns)) /
                         TTM_NS_PER_MS);
    ttm_json_put_u64(json, "ran", ttm_report_span_ns(report, process));
    ttm_json_put_u64(json, "heard", since_start(part, process->last_ns));
    ttm_json_put_bool(json, "ended", process->has_ended);
    ttm_json_put_string(json, "end", ttm_report_end_words(report, process, how));
    ttm_json_put_bool(json, "well",
                      !process->has_ended ||
                          (process->end.how == TTM_PROCESS_EXITED && process->end.code == 0));
    ttm_json_put_bool(json, "complete", process->is_complete);
    ttm_json_put_string(json, "why", process->why_incomplete);
    ttm_json_put_u64(json, "lost", process->counters.lost_events);
    ttm_json_put_bool(json, "missed", process->has_missed);
    if (process->session_count > 1)
        ttm_json_put_u64(json, "at_a_time", ttm_report_most_judged(process, is_suspect, NULL));
    ttm_json_put_u64(json, "allocs", process->allocs);
    ttm_json_put_u64(json, "frees", process->frees);
}

static void put_process(struct page *page, const struct ttm_report_process *process)
{
    struct part part = {.page = page, .process = process};

    page->is_own_process = page->sources && ttm_source_is_own(page->sources, process);
    if (choose_origins(&part) < 0) {
        page->status = -ENOMEM;
    } else {
        ttm_json_object_begin(&page->json);
        put_head(&part);
        put_devices(&part);
        put_origins(&part);
        put_causes(&part);
        put_marks(&part);
        put_failures(&part);
        ttm_report_findings_json(&page->json, process);
        ttm_json_object_end(&page->json);
    }
    free(part.order);
    free(part.place_of);
}

static uint64_t count_courses(const struct ttm_report *report)
{
    uint64_t count = 0;

    for (uint32_t p = 0; p < report->process_count; p++) {
        const struct ttm_report_process *process = &report->processes[p];
        for (uint32_t d = 0; d < process->device_count; d++) {
            const struct ttm_report_device *device = &process->devices[d];
            for (unsigned r = 0; r < TTM_REGION_COUNT && first_of(process, device) == device; r++)
                count += device->region[r].course != NULL;
        }
    }
    return count;
}

static void put_recording(struct page *page, const char *path)
{
    const struct ttm_recording_info *info = &page->report->info;
    struct ttm_text flaws;

    ttm_text_init(&flaws);
    ttm_recording_flaws(info, &flaws);
    ttm_json_put_string(&page->json, "tool", "tt-mem " TTM_VERSION);
    ttm_json_put_string(&page->json, "file", ttm_base_name(path));
    ttm_json_put_string(&page->json, "flaws", ttm_text_string(&flaws));
    ttm_json_put_bool(&page->json, "whole", info->is_complete);
    ttm_json_put_u64(&page->json, "records", page->report->records);
    page->status = ttm_text_failed(&flaws) ? -ENOMEM : page->status;
    ttm_text_done(&flaws);
}

int ttm_page_data(const struct ttm_report *report, const char *path,
                  struct ttm_source_lines *sources, struct ttm_text *out)
{
    struct page page = {.report = report, .sources = sources};

    page.course_spans = share_of(TTM_PAGE_SPANS, count_courses(report), 16);
    ttm_json_init(&page.json, out);
    ttm_json_object_begin(&page.json);
    put_recording(&page, path);
    ttm_json_put_u64(&page.json, "process_count", report->process_count);
    ttm_json_key(&page.json, "processes");
    ttm_json_array_begin(&page.json);
    for (uint32_t i = 0; i < process_count(&page) && page.status == 0; i++)
        put_process(&page, &report->processes[i]);
    ttm_json_array_end(&page.json);
    put_frames(&page);
    ttm_json_object_end(&page.json);
    ttm_frame_table_done(&page.frames);
    free(page.is_own);
    return page.status < 0 || ttm_text_failed(out) ? -ENOMEM : 0;
}
