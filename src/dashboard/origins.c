/* SPDX-License-Identifier: Apache-2.0 */
#include "dashboard/origins.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/u64_map.h"
#include "wire/origin.h"

static unsigned number_of(const struct ttm_origins_source *source, unsigned metal_id)
{
    return source->numbers ? source->numbers[metal_id] : metal_id;
}

static bool is_wanted(const struct ttm_origins_source *source, const struct ttm_answer_site *site)
{
    if (source->devices.is_all)
        return true;
    for (size_t i = 0; i < site->device_count; i++) {
        if (ttm_device_filter_has(&source->devices, number_of(source, site->devices[i])))
            return true;
    }
    return false;
}

/* ---- groups ---- */

static uint64_t key_of(const struct ttm_process_row *row, uint32_t origin_number, unsigned region)
{
    /* Each by itself: siblings of one moment differ by as little in the one as in the other. */
    uint64_t key = ttm_hash_u64(ttm_hash_u64((uint64_t)(uint32_t)row->pid) ^ row->start_ns);

    key = ttm_hash_u64(key ^ origin_number);
    key = ttm_hash_u64(key ^ (region + 1));
    return key ? key : 1;
}

/* "decode.py:28:cache_kv" as people read it: "decode.py:28 cache_kv". */
static void put_frame(struct ttm_text *out, const char *lines)
{
    char frame[256];
    size_t n = strcspn(lines, "\n");

    n = n < sizeof(frame) - 1 ? n : sizeof(frame) - 1;
    memcpy(frame, lines, n);
    frame[n] = '\0';
    char *function = strrchr(frame, ':');
    if (function)
        *function = ' ';
    ttm_text_append_safe(out, frame);
}

/* Of a native frame, "/usr/lib/libfoo.so+0x12", the first in the list. */
static const char *without_folders(const char *frame)
{
    const size_t length = strcspn(frame, "\n");
    const char *slash = memrchr(frame, '/', length);

    return slash ? slash + 1 : frame;
}

#define CALLERS_MAX 4

/* Who has called the innermost line: helpers that many call look alike without it. */
static void put_callers(struct ttm_text *out, const struct ttm_answer_origin *origin)
{
    const char *line = origin ? origin->python : "";

    line += strcspn(line, "\n");
    for (unsigned i = 0; *line && i < CALLERS_MAX; i++) {
        const size_t length = strcspn(++line, "\n");
        const char *function = memrchr(line, ':', length);
        const char *number = function ? memrchr(line, ':', (size_t)(function - line)) : NULL;
        if (number) {
            char text[128];
            (void)snprintf(
                text, sizeof(text), "%.*s%.*s",
                (int)(line + length - function - 1 < 64 ? line + length - function - 1 : 64),
                function + 1, (int)(function - number < 16 ? function - number : 16), number);
            ttm_text_append(out, i == 0 ? "← " : " ← ");
            ttm_text_append_safe(out, text);
        }
        line += length;
    }
}

static void put_native(struct ttm_text *out, const struct ttm_origins_source *source, int32_t pid,
                       const char *lines)
{
    const char *frame = ttm_users_native_line(lines);

    if (!source->place_name ||
        !source->place_name(source->place_context, pid, frame, strcspn(frame, "\n"), out))
        put_frame(out, without_folders(frame));
}

static void put_where(struct ttm_text *out, const struct ttm_origins_source *source,
                      const struct ttm_answer_origin *origin, const struct ttm_process_row *row)
{
    if (origin && origin->python[0])
        put_frame(out, origin->python);
    else if (origin && origin->native[0])
        put_native(out, source, row->pid, origin->native);
    if (origin && origin->name[0]) {
        ttm_text_append(out, out->length > 0 ? " \"" : "\"");
        ttm_text_append_safe(out, origin->name);
        ttm_text_append(out, "\"");
    }
    if (origin && origin->context[0]) {
        ttm_text_append(out, out->length > 0 ? " in " : "in ");
        ttm_text_append_safe(out, origin->context);
    }
    if (out->length == 0)
        ttm_text_append(out, row->source == TTM_SOURCE_ORIGINAL
                                 ? "not told: the original protocol has no origins"
                                 : "not told by the program");
}

/* Copies as much as fits, never a part of a character. */
static void copy_text(char *ret, size_t size, const char *text)
{
    size_t n = 0;

    while (text[n]) {
        const size_t length = ttm_utf8_length(text + n) ? ttm_utf8_length(text + n) : 1;
        if (n + length >= size)
            break;
        n += length;
    }
    memcpy(ret, text, n);
    ret[n] = '\0';
}

/* "0,2,4-7", with a '+' where there is no more room. */
static void put_devices(struct ttm_origin_group *group)
{
    const size_t size = sizeof(group->devices);
    size_t length = 0;
    unsigned last;

    for (unsigned first = 0; first < TTM_DEVICE_COUNT; first = last + 1) {
        char part[32];
        last = first;
        if (!ttm_origin_group_is_on(group, first))
            continue;
        while (ttm_origin_group_is_on(group, last + 1))
            last++;
        if (length == 0)
            group->first_device = (uint16_t)first;
        int n = snprintf(part, sizeof(part), length > 0 ? ",%u" : "%u", first);
        if (last > first)
            n += snprintf(part + n, sizeof(part) - (size_t)n, last > first + 1 ? "-%u" : ",%u",
                          last);
        if (length + (size_t)n + 2 >= size) {
            (void)snprintf(group->devices + length, size - length, "+");
            return;
        }
        memcpy(group->devices + length, part, (size_t)n + 1);
        length += (size_t)n;
    }
}

/* While the list is made. */
struct builder {
    struct ttm_origins *origins;
    const struct ttm_origins_source *source;
    struct ttm_u64_map index; /* key → group */
    uint32_t answer, process;
    const struct ttm_answer_process *row;
};

static struct ttm_origin_group *append_group(struct ttm_origins *origins)
{
    if (origins->count == origins->room) {
        const size_t room = origins->room ? origins->room * 2 : 64;
        void *grown = realloc(origins->groups, room * sizeof(origins->groups[0]));
        if (!grown)
            return NULL;
        origins->groups = grown;
        origins->room = room;
    }
    return &origins->groups[origins->count];
}

static int fill_group(struct builder *builder, struct ttm_origin_group *group,
                      const struct ttm_answer_site *site, uint64_t key)
{
    const struct ttm_answer_origin *origin = ttm_answer_origin(builder->row, site->origin);
    struct ttm_text text;

    *group = (struct ttm_origin_group){
        .key = key,
        .pid = builder->row->row.pid,
        .region = site->region,
        .answer = builder->answer,
        .process = builder->process,
        .origin = site->origin,
        .origin_number = origin ? origin->number : 0,
    };
    ttm_text_init(&text);
    put_where(&text, builder->source, origin, &builder->row->row);
    copy_text(group->where, sizeof(group->where), ttm_text_string(&text));
    ttm_text_clear(&text);
    put_callers(&text, origin);
    copy_text(group->callers, sizeof(group->callers), ttm_text_string(&text));
    ttm_text_clear(&text);
    if (origin)
        ttm_text_append_safe(&text, origin->operation);
    copy_text(group->operation, sizeof(group->operation), ttm_text_string(&text));
    const bool has_failed = ttm_text_failed(&text);
    ttm_text_done(&text);
    return has_failed ? -ENOMEM : 0;
}

#define NO_GROUP UINT32_MAX

/* The group that the lives of a site are in, or NO_GROUP. */
static int group_of_site(struct builder *builder, const struct ttm_answer_site *site, uint32_t *ret)
{
    struct ttm_origins *origins = builder->origins;
    const struct ttm_answer_origin *origin = ttm_answer_origin(builder->row, site->origin);

    *ret = NO_GROUP;
    if (!is_wanted(builder->source, site) || (site->flags & TTM_SITE_ALIAS))
        return 0;
    const uint64_t key = key_of(&builder->row->row, origin ? origin->number : 0, site->region);
    if (ttm_u64_map_find(&builder->index, key, ret))
        return 0;
    *ret = NO_GROUP;
    if (origins->count >= TTM_ORIGINS_MAX) {
        origins->left_out++;
        return 0;
    }
    struct ttm_origin_group *group = append_group(origins);
    int r = group ? fill_group(builder, group, site, key) : -ENOMEM;
    if (r == 0)
        r = ttm_u64_map_add(&builder->index, key, (uint32_t)origins->count);
    if (r == 0)
        *ret = (uint32_t)origins->count++;
    return r;
}

static void add_life(struct ttm_origin_group *group, const struct ttm_life_row *life)
{
    group->count++;
    group->requested_bytes += life->bytes;
    group->used_bytes += life->footprint_bytes;
    if (life->age_ns > group->held_ns)
        group->held_ns = life->age_ns;
}

static void add_sum(struct ttm_origin_group *group, const struct ttm_site_sum *sum)
{
    group->count += sum->live;
    group->requested_bytes += sum->bytes;
    group->used_bytes += sum->footprint_bytes;
    if (sum->first_age_ns > group->held_ns)
        group->held_ns = sum->first_age_ns;
}

/* What the lives of one site are counted in. */
struct site_place {
    uint32_t group;
    bool has_lives;
};

static void add_devices(const struct builder *builder, struct ttm_origin_group *group,
                        const struct ttm_answer_site *site)
{
    for (size_t i = 0; i < site->device_count; i++) {
        const unsigned device = number_of(builder->source, site->devices[i]);
        if (ttm_device_filter_has(&builder->source->devices, device))
            group->device_bits[device / 8] |= (uint8_t)(1u << (device % 8));
    }
}

/* Adds up a site whose sum is told. Its lives are not looked at, if there are any. */
static void add_site(const struct builder *builder, struct site_place *place,
                     const struct ttm_answer_site *site)
{
    if (!site->has_sum || place->group == NO_GROUP)
        return;
    struct ttm_origin_group *group = &builder->origins->groups[place->group];
    place->group = NO_GROUP;
    if (site->sum.live == 0)
        return;
    add_devices(builder, group, site);
    add_sum(group, &site->sum);
    builder->origins->live_count += site->sum.live;
}

static int add_process(struct builder *builder)
{
    const struct ttm_answer_process *process = builder->row;
    struct site_place *places = calloc(process->site_count + 1, sizeof(places[0]));
    int r = places ? 0 : -ENOMEM;

    for (size_t i = 0; r == 0 && i < process->site_count; i++) {
        r = group_of_site(builder, &process->sites[i], &places[i].group);
        if (r == 0)
            add_site(builder, &places[i], &process->sites[i]);
    }
    for (size_t i = 0; r == 0 && i < process->live_count; i++) {
        struct site_place *place = &places[process->lives[i].site];
        if (place->group == NO_GROUP)
            continue;
        struct ttm_origin_group *group = &builder->origins->groups[place->group];
        if (!place->has_lives)
            add_devices(builder, group, &process->sites[process->lives[i].site]);
        place->has_lives = true;
        add_life(group, &process->lives[i]);
        builder->origins->live_count++;
    }
    free(places);
    return r;
}

static int compare_groups(const void *a, const void *b)
{
    const struct ttm_origin_group *x = a, *y = b;

    if (x->used_bytes != y->used_bytes)
        return x->used_bytes < y->used_bytes ? 1 : -1;
    return x->key != y->key ? (x->key < y->key ? -1 : 1) : 0;
}

int ttm_origins_build(struct ttm_origins *origins, const struct ttm_origins_source *source)
{
    struct builder builder = {.origins = origins, .source = source};
    size_t kept = 0;
    int r = 0;

    origins->count = origins->left_out = origins->hidden_count = 0;
    origins->live_count = 0;
    for (uint32_t a = 0; r == 0 && a < source->answer_count; a++) {
        const struct ttm_answer *answer = &source->answers[a];
        origins->left_out += answer->left_out.sites;
        for (uint32_t p = 0; r == 0 && p < answer->process_count; p++) {
            builder.answer = a;
            builder.process = p;
            builder.row = &answer->processes[p];
            if (!builder.row->row.has_lives && !builder.row->row.is_disabled)
                origins->hidden_count++;
            r = add_process(&builder);
        }
    }
    ttm_u64_map_done(&builder.index);
    /* A site stays known when its last life has ended. */
    for (size_t i = 0; i < origins->count; i++) {
        if (origins->groups[i].count > 0)
            origins->groups[kept++] = origins->groups[i];
    }
    origins->count = kept;
    for (size_t i = 0; i < kept; i++)
        put_devices(&origins->groups[i]);
    if (kept > 0)
        qsort(origins->groups, kept, sizeof(origins->groups[0]), compare_groups);
    return r;
}

void ttm_origins_done(struct ttm_origins *origins)
{
    free(origins->groups);
    *origins = (struct ttm_origins){0};
}

const struct ttm_origin_group *ttm_origins_find(const struct ttm_origins *origins, uint64_t key)
{
    for (size_t i = 0; i < origins->count; i++) {
        if (origins->groups[i].key == key)
            return &origins->groups[i];
    }
    return NULL;
}

/* ---- one of them ---- */

/* Counts sizes; beyond so many different ones the rest are told as a number. */
struct size_counter {
    uint64_t bytes[64];
    uint64_t count[64];
    size_t used;
    size_t others;
};

static void count_size(struct size_counter *counter, uint64_t bytes)
{
    for (size_t i = 0; i < counter->used; i++) {
        if (counter->bytes[i] == bytes) {
            counter->count[i]++;
            return;
        }
    }
    if (counter->used == sizeof(counter->bytes) / sizeof(counter->bytes[0])) {
        counter->others++;
        return;
    }
    counter->bytes[counter->used] = bytes;
    counter->count[counter->used++] = 1;
}

static void take_sizes(struct size_counter *counter, struct ttm_origin_detail *ret)
{
    while (ret->size_count < TTM_DETAIL_SIZES && counter->used > 0) {
        size_t best = 0;
        for (size_t i = 1; i < counter->used; i++) {
            if (counter->count[i] > counter->count[best] ||
                (counter->count[i] == counter->count[best] &&
                 counter->bytes[i] > counter->bytes[best]))
                best = i;
        }
        ret->sizes[ret->size_count].bytes = counter->bytes[best];
        ret->sizes[ret->size_count++].count = counter->count[best];
        counter->used--;
        counter->bytes[best] = counter->bytes[counter->used];
        counter->count[best] = counter->count[counter->used];
    }
    ret->more_sizes = counter->used + counter->others;
}

/* Puts a life among the youngest, if it is one of them. */
static void keep_young(struct ttm_origin_detail *detail, const struct ttm_life_row *life)
{
    size_t at = detail->live_count;

    if (at == TTM_DETAIL_LIVES && detail->lives[at - 1].age_ns <= life->age_ns)
        return;
    if (at == TTM_DETAIL_LIVES)
        at--;
    else
        detail->live_count++;
    for (; at > 0 && detail->lives[at - 1].age_ns > life->age_ns; at--)
        detail->lives[at] = detail->lives[at - 1];
    detail->lives[at] = *life;
}

/* Whether a process has been told to be that of a group, in this or another answer. */
static bool is_of(const struct ttm_answer_process *process, const struct ttm_origin_group *group)
{
    return process->row.pid == group->pid &&
           key_of(&process->row, group->origin_number, group->region) == group->key;
}

/* How much older lives are by now than they were when they were told, as the sums may be newer. */
static uint64_t grown_ns(const struct ttm_answer *sums, const struct ttm_answer *lives)
{
    return sums->moment.uptime_ns > lives->moment.uptime_ns
               ? sums->moment.uptime_ns - lives->moment.uptime_ns
               : 0;
}

/* Servers tell of the youngest mostly last, and keeping the youngest begins with them. */
static void add_detail(const struct ttm_origins_source *source,
                       const struct ttm_answer_process *process,
                       const struct ttm_origin_group *group, uint64_t older_ns,
                       struct size_counter *sizes, struct ttm_origin_detail *ret)
{
    for (size_t i = process->live_count; i-- > 0;) {
        struct ttm_life_row life = process->lives[i];
        const struct ttm_answer_site *site = &process->sites[life.site];
        const struct ttm_answer_origin *origin = ttm_answer_origin(process, site->origin);
        if ((origin ? origin->number : 0) != group->origin_number ||
            site->region != group->region || !is_wanted(source, site) ||
            (site->flags & TTM_SITE_ALIAS))
            continue;
        ret->origin = origin; /* its stack may be longer than that in the sums */
        life.age_ns += older_ns;
        count_size(sizes, life.bytes);
        keep_young(ret, &life);
        ret->oldest_ns = life.age_ns > ret->oldest_ns ? life.age_ns : ret->oldest_ns;
        ret->seen_count++;
    }
}

void ttm_origins_detail(const struct ttm_origins_source *source,
                        const struct ttm_origin_group *group, struct ttm_origin_detail *ret)
{
    struct size_counter sizes = {0};

    *ret = (struct ttm_origin_detail){0};
    if (group->answer >= source->answer_count ||
        group->process >= source->answers[group->answer].process_count)
        return;
    const struct ttm_answer_process *process =
        &source->answers[group->answer].processes[group->process];
    ret->origin =
        group->origin <= process->origin_count ? ttm_answer_origin(process, group->origin) : NULL;
    ret->is_told = !source->is_partial || (source->has_look && source->look.pid == group->pid &&
                                           source->look.origin == group->origin_number &&
                                           source->look.origin_region == group->region);
    for (size_t a = 0; ret->is_told && a < source->lives_count; a++) {
        const uint64_t older_ns = grown_ns(&source->answers[group->answer], &source->lives[a]);
        ret->left_out += source->lives[a].left_out.lives;
        for (size_t p = 0; p < source->lives[a].process_count; p++) {
            if (is_of(&source->lives[a].processes[p], group))
                add_detail(source, &source->lives[a].processes[p], group, older_ns, &sizes, ret);
        }
    }
    ret->youngest_ns = ret->live_count > 0 ? ret->lives[0].age_ns : 0;
    take_sizes(&sizes, ret);
}

/* ---- the bank ---- */

/* An allocation that lies beside the one before it, as most do, makes one block with it. */
static bool extend_block(struct ttm_bank *bank, uint64_t address, uint64_t bytes, uint64_t key)
{
    struct ttm_bank_block *last = bank->count > 0 ? &bank->blocks[bank->count - 1] : NULL;

    if (!last || last->key != key)
        return false;
    if (address == last->address + last->bytes) {
        last->bytes += bytes;
    } else if (address + bytes == last->address) {
        last->address = address;
        last->bytes += bytes;
    } else {
        return false;
    }
    return true;
}

static int append_block(struct ttm_bank *bank, uint64_t address, uint64_t bytes, uint64_t key)
{
    if (extend_block(bank, address, bytes, key))
        return 0;
    if (bank->count == bank->room) {
        const size_t room = bank->room ? bank->room * 2 : 256;
        void *grown = realloc(bank->blocks, room * sizeof(bank->blocks[0]));
        if (!grown)
            return -ENOMEM;
        bank->blocks = grown;
        bank->room = room;
    }
    bank->blocks[bank->count++] = (struct ttm_bank_block){address, bytes, key};
    return 0;
}

/* Where the run ends that begins there; one that goes down is turned round. */
static size_t end_of_run(struct ttm_bank_block *blocks, size_t begin, size_t count)
{
    size_t end = begin + 1;

    while (end < count && blocks[end].address < blocks[end - 1].address)
        end++;
    for (size_t low = begin, high = end - 1; low < high; low++, high--) {
        const struct ttm_bank_block block = blocks[low];
        blocks[low] = blocks[high];
        blocks[high] = block;
    }
    while (end < count && blocks[end].address >= blocks[end - 1].address)
        end++;
    return end;
}

/* Merges each two neighbouring runs into 'to'. Returns how many runs there were. */
static size_t merge_runs(struct ttm_bank_block *from, size_t count, struct ttm_bank_block *to)
{
    size_t runs = 0;

    for (size_t at = 0; at < count;) {
        size_t left = at;
        const size_t middle = end_of_run(from, at, count);
        size_t right = middle;
        const size_t end = middle < count ? end_of_run(from, middle, count) : middle;
        runs += end > middle ? 2 : 1;
        while (at < end)
            to[at++] = right == end || (left < middle && from[left].address <= from[right].address)
                           ? from[left++]
                           : from[right++];
    }
    return runs;
}

/*
 * By address. Servers tell of lives in the order of their births, and an allocator goes up or down,
 * so there are few runs of many blocks, and merging them takes a tenth of what qsort() does.
 */
static int sort_blocks(struct ttm_bank *bank)
{
    if (bank->count == 0)
        return 0;
    struct ttm_bank_block *other = malloc(bank->room * sizeof(other[0]));
    if (!other)
        return -ENOMEM;
    size_t runs;
    do {
        struct ttm_bank_block *merged = other;
        runs = merge_runs(bank->blocks, bank->count, merged);
        other = bank->blocks;
        bank->blocks = merged;
    } while (runs > 2); /* two are one by now */
    free(other);
    return 0;
}

static bool is_on(const struct ttm_origins_source *source, const struct ttm_answer_site *site,
                  uint16_t device)
{
    for (size_t i = 0; i < site->device_count; i++) {
        if (number_of(source, site->devices[i]) == device)
            return true;
    }
    return false;
}

static uint64_t mix(uint64_t print, uint64_t number)
{
    return ttm_hash_u64(print ^ number);
}

static bool is_looked_at(const struct ttm_closer_look *look,
                         const struct ttm_origins_source *source,
                         const struct ttm_answer_process *process,
                         const struct ttm_answer_site *site)
{
    const struct ttm_answer_origin *origin = ttm_answer_origin(process, site->origin);

    if (site->region == look->region && is_on(source, site, look->device))
        return true;
    return process->row.pid == look->pid && site->region == look->origin_region &&
           (origin ? origin->number : 0) == look->origin;
}

uint64_t ttm_closer_look_print(const struct ttm_closer_look *look, const struct ttm_answer *answer,
                               const uint16_t *numbers)
{
    const struct ttm_origins_source source = {.numbers = numbers};
    uint64_t print = 1;

    if (answer->left_out.sites > 0)
        return 0;
    for (size_t p = 0; p < answer->process_count; p++) {
        const struct ttm_answer_process *process = &answer->processes[p];
        for (size_t i = 0; i < process->site_count; i++) {
            const struct ttm_answer_site *site = &process->sites[i];
            if (!is_looked_at(look, &source, process, site))
                continue;
            print = mix(mix(print, (uint64_t)(uint32_t)process->row.pid), process->row.start_ns);
            print = mix(mix(print, site->births), site->ends);
            print = mix(mix(print, site->sum.live), site->sum.footprint_bytes);
        }
    }
    return print ? print : 1;
}

/* The keys that the sites of a process have on that bank; 0 for those that are not there. */
static uint64_t *keys_on_bank(const struct ttm_origins_source *source,
                              const struct ttm_answer_process *process, uint16_t device,
                              uint8_t region)
{
    uint64_t *keys = calloc(process->site_count + 1, sizeof(keys[0]));

    for (size_t i = 0; keys && i < process->site_count; i++) {
        const struct ttm_answer_site *site = &process->sites[i];
        const struct ttm_answer_origin *origin = ttm_answer_origin(process, site->origin);
        if (site->region == region && !(site->flags & TTM_SITE_ALIAS) &&
            is_on(source, site, device))
            keys[i] = key_of(&process->row, origin ? origin->number : 0, region);
    }
    return keys;
}

static int add_blocks(struct ttm_bank *bank, const struct ttm_origins_source *source,
                      const struct ttm_answer_process *process, uint16_t device, uint8_t region)
{
    if (process->live_count == 0)
        return 0;
    uint64_t *keys = keys_on_bank(source, process, device, region);
    int r = keys ? 0 : -ENOMEM;

    for (size_t i = 0; r == 0 && i < process->live_count; i++) {
        const struct ttm_life_row *life = &process->lives[i];
        if (keys[life->site] == 0)
            continue;
        const uint64_t bytes = (life->footprint_bytes + bank->bank_count - 1) / bank->bank_count;
        if (life->address + bytes < life->address) /* nonsense: it would end before it begins */
            continue;
        r = append_block(bank, life->address, bytes > 0 ? bytes : 1, keys[life->site]);
    }
    free(keys);
    return r;
}

/* Adds up what is free between the blocks, which are in order. */
static void add_gaps(struct ttm_bank *bank, uint64_t begin, uint64_t end)
{
    uint64_t at = begin;

    for (size_t i = 0; i <= bank->count; i++) {
        const uint64_t next = i < bank->count ? bank->blocks[i].address : end;
        if (next > at) {
            bank->free_bytes += next - at;
            if (next - at > bank->largest_free_bytes)
                bank->largest_free_bytes = next - at;
        }
        const uint64_t after =
            i < bank->count ? bank->blocks[i].address + bank->blocks[i].bytes : end;
        at = after > at ? after : at;
    }
    bank->begin = begin;
    bank->end = end;
}

/* How large a bank is, by the first server that knows. */
static void find_size(struct ttm_bank *bank, const struct ttm_origins_source *source,
                      uint16_t device, uint8_t region)
{
    for (size_t a = 0; a < source->answer_count; a++) {
        for (size_t d = 0; d < source->answers[a].device_count; d++) {
            const struct ttm_device_row *row = &source->answers[a].devices[d];
            if (number_of(source, row->id) != device || row->bank_count[region] == 0)
                continue;
            bank->bank_count = row->bank_count[region];
            bank->bank_bytes = row->capacity_bytes[region] / row->bank_count[region];
            return;
        }
    }
    bank->bank_count = 1;
}

bool ttm_origins_has_bank(const struct ttm_origins_source *source, uint16_t device, uint8_t region)
{
    return !source->is_partial ||
           (source->has_look && source->look.device == device && source->look.region == region);
}

int ttm_bank_build(struct ttm_bank *bank, const struct ttm_origins_source *source, uint16_t device,
                   uint8_t region)
{
    uint64_t low = UINT64_MAX, high = 0;
    int r = 0;

    *bank = (struct ttm_bank){
        .blocks = bank->blocks,
        .room = bank->room,
        .cells = bank->cells,
        .cell_room = bank->cell_room,
    };
    find_size(bank, source, device, region);
    for (size_t a = 0; r == 0 && a < source->lives_count; a++) {
        bank->left_out += source->lives[a].left_out.lives;
        for (size_t p = 0; r == 0 && p < source->lives[a].process_count; p++)
            r = add_blocks(bank, source, &source->lives[a].processes[p], device, region);
    }
    if (r == 0)
        r = sort_blocks(bank);
    if (r < 0)
        return r;
    for (size_t i = 0; i < bank->count; i++) {
        const struct ttm_bank_block *block = &bank->blocks[i];
        low = block->address < low ? block->address : low;
        high = block->address + block->bytes > high ? block->address + block->bytes : high;
    }
    if (bank->count == 0)
        low = 0;
    bank->first = low;
    bank->last = high;
    bank->has_size = bank->bank_bytes > 0 && high - low <= bank->bank_bytes;
    if (bank->has_size) {
        if (high <= bank->bank_bytes) {
            low = 0;
            high = bank->bank_bytes;
        } else if (region == TTM_REGION_L1 || region == TTM_REGION_L1_SMALL) {
            low = high - bank->bank_bytes;
        } else {
            high = low + bank->bank_bytes;
        }
    }
    add_gaps(bank, low, high);
    return 0;
}

void ttm_bank_done(struct ttm_bank *bank)
{
    free(bank->blocks);
    free(bank->cells);
    *bank = (struct ttm_bank){0};
}

/* The first block that ends behind 'begin'. Blocks lie in order; of those that overlap, which only
   nonsense does, some may be missed. */
static size_t first_behind(const struct ttm_bank *bank, uint64_t begin)
{
    size_t low = 0, high = bank->count;

    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (bank->blocks[middle].address + bank->blocks[middle].bytes <= begin)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct ttm_bank_share ttm_bank_share(const struct ttm_bank *bank, uint64_t begin, uint64_t end,
                                     uint64_t key)
{
    struct ttm_bank_share share = {0};

    for (size_t i = first_behind(bank, begin); i < bank->count && bank->blocks[i].address < end;
         i++) {
        const struct ttm_bank_block *block = &bank->blocks[i];
        const uint64_t block_end = block->address + block->bytes;
        const uint64_t from = block->address > begin ? block->address : begin;
        const uint64_t to = block_end < end ? block_end : end;
        if (to <= from)
            continue;
        *(block->key == key ? &share.own_bytes : &share.other_bytes) += to - from;
    }
    return share;
}

const struct ttm_bank_share *ttm_bank_cells(struct ttm_bank *bank, const struct ttm_bank_look *look)
{
    if (bank->cell_count == look->cells && bank->cell_look.begin == look->begin &&
        bank->cell_look.end == look->end && bank->cell_look.key == look->key)
        return bank->cells;
    if (look->cells > bank->cell_room) {
        void *grown = realloc(bank->cells, look->cells * sizeof(bank->cells[0]));
        if (!grown)
            return NULL;
        bank->cells = grown;
        bank->cell_room = look->cells;
    }
    for (size_t i = 0; i < look->cells; i++) {
        const uint64_t begin = ttm_bank_cell_begin(look, i);
        bank->cells[i] =
            ttm_bank_share(bank, begin, begin + ttm_bank_cell_bytes(look, i), look->key);
    }
    bank->cell_count = look->cells;
    bank->cell_look = *look;
    return bank->cells;
}

bool ttm_bank_extent(const struct ttm_bank *bank, uint64_t *ret_begin, uint64_t *ret_end)
{
    *ret_begin = bank->first;
    *ret_end = bank->last;
    return bank->last > 0;
}
