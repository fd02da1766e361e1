/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process_list.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/u64_map.h"
#include "ring/control.h"

#define OFF_MAX 256

const char *ttm_reporting_name(enum ttm_reporting reporting)
{
    static const char *const names[] = {
        [TTM_REPORTING_TRACKED] = "tracked",
        [TTM_REPORTING_DISABLED] = "disabled",
        [TTM_REPORTING_RUNTIME] = "runtime",
        [TTM_REPORTING_NO] = "no",
    };

    return names[reporting];
}

/* While the list is made. */
struct builder {
    const char *root;
    const struct ttm_machine *machine;
    struct ttm_process_cache *cache; /* NULL: none */
    struct ttm_process_list *list;
    struct ttm_u64_map places; /* pid → place in the list */
    bool needs_scan;           /* the driver did not tell all holders */
    int error;
};

static void *grow(void *array, size_t count, size_t element_size)
{
    if (count & (count - 1)) /* the array has a power of two of places, or none */
        return array;
    return realloc(array, (count ? count * 2 : 1) * element_size);
}

static struct ttm_listed_process *find(const struct builder *builder, int32_t pid)
{
    uint32_t place;

    return ttm_u64_map_find(&builder->places, (uint32_t)pid, &place)
               ? &builder->list->processes[place]
               : NULL;
}

static struct ttm_listed_process *append(struct builder *builder, const struct ttm_process *process)
{
    struct ttm_process_list *list = builder->list;
    void *grown = grow(list->processes, list->count, sizeof(list->processes[0]));

    if (!grown) {
        builder->error = -ENOMEM;
        return NULL;
    }
    list->processes = grown;
    /* Those that cannot be told apart are not found again. */
    if (process->pid != 0 &&
        ttm_u64_map_add(&builder->places, (uint32_t)process->pid, (uint32_t)list->count) == -ENOMEM)
        builder->error = -ENOMEM;
    list->processes[list->count] = (struct ttm_listed_process){
        .process = *process,
        .reporting = TTM_REPORTING_NO,
        .source = -1,
    };
    return &list->processes[list->count++];
}

/* The process's place in the list; NULL when it has ended, or memory is short. */
static struct ttm_listed_process *find_or_read(struct builder *builder, int32_t pid)
{
    struct ttm_listed_process *found = find(builder, pid);
    struct ttm_process process;

    if (found)
        return found;
    if (ttm_process_cache_read(builder->cache, builder->root, pid, &process) == -ESRCH)
        return NULL;
    return append(builder, &process);
}

static void add_device(struct builder *builder, struct ttm_listed_process *listed, unsigned id)
{
    for (size_t i = 0; i < listed->device_count; i++) {
        if (listed->devices[i] == id)
            return;
    }
    unsigned *grown = grow(listed->devices, listed->device_count, sizeof(listed->devices[0]));
    if (!grown) {
        builder->error = -ENOMEM;
        return;
    }
    listed->devices = grown;
    size_t at = listed->device_count++;
    for (; at > 0 && grown[at - 1] > id; at--)
        grown[at] = grown[at - 1];
    grown[at] = id;
}

/* ---- who holds a device ---- */

static void add_holder(void *context, int32_t pid, unsigned number)
{
    struct builder *builder = context;
    struct ttm_listed_process *listed = find_or_read(builder, pid);

    if (listed)
        add_device(builder, listed, number);
    else
        builder->needs_scan = true; /* the opener has ended, and left the file to a child */
}

static void add_holders(struct builder *builder)
{
    const struct ttm_telemetry_view *view = &builder->machine->telemetry;

    for (size_t i = 0; i < view->count; i++) {
        const struct ttm_chip *chip = &view->chips[i].chip;
        if (!view->chips[i].has_reading || chip->state == TTM_CHIP_REMOVED)
            continue;
        if (chip->holders_validity != TTM_VALID)
            builder->needs_scan = true;
        for (size_t h = 0; h < chip->holder_count; h++)
            add_holder(builder, chip->holders[h].pid, chip->number);
        /* One line for each open file, so the chip that has most tells the least there can be. */
        if (chip->foreign_fd_count > builder->list->foreign_count)
            builder->list->foreign_count = chip->foreign_fd_count;
    }
    if (builder->needs_scan)
        builder->list->hidden_count =
            ttm_process_cache_scan(builder->cache, builder->root, add_holder, builder);
}

/* ---- what servers know ---- */

static void take_row(struct ttm_listed_process *listed, const struct ttm_process_row *row)
{
    listed->reporting = row->is_disabled ? TTM_REPORTING_DISABLED : TTM_REPORTING_TRACKED;
    listed->source = row->is_disabled ? -1 : row->source;
    if (!listed->process.has_uid) {
        listed->process.has_uid = true;
        listed->process.uid = row->uid;
    }
    if (!listed->process.command[0])
        (void)snprintf(listed->process.command, sizeof(listed->process.command), "%s",
                       row->command);
}

static void add_tracked(struct builder *builder, const struct ttm_answer_process *tracked)
{
    const struct ttm_process bare = {.pid = tracked->row.pid};
    struct ttm_listed_process *listed =
        tracked->row.pid > 0 ? find_or_read(builder, tracked->row.pid) : NULL;

    /* A server in another namespace, or of a recorded tree, knows processes that /proc does not. */
    if (!listed)
        listed = append(builder, &bare);
    if (!listed)
        return;
    take_row(listed, &tracked->row);
    /* A server forgets what a process holds when tracking is switched off in it. */
    for (size_t d = 0; d < tracked->device_count && !tracked->row.is_disabled; d++) {
        const struct ttm_process_device_row *row = &tracked->devices[d];
        const struct ttm_machine_device *device =
            ttm_machine_by_metal_id(builder->machine, row->device_id);
        add_device(builder, listed, device ? device->id : row->device_id);
        for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
            ttm_usage_add_totals(&listed->regions[r], &row->totals, r);
    }
}

/* ---- what the runtime counts ---- */

static void add_counted(struct builder *builder, const struct ttm_upstream_file *file,
                        const struct ttm_upstream_process *counted)
{
    const struct ttm_machine_device *device = ttm_machine_of_file(builder->machine, file);
    struct ttm_listed_process *listed = find_or_read(builder, counted->pid);

    if (!listed || listed->reporting == TTM_REPORTING_TRACKED)
        return;
    if (listed->reporting == TTM_REPORTING_NO)
        listed->reporting = TTM_REPORTING_RUNTIME;
    listed->source = TTM_SOURCE_RUNTIME;
    if (!listed->process.command[0])
        (void)snprintf(listed->process.command, sizeof(listed->process.command), "%s",
                       counted->name);
    if (device)
        add_device(builder, listed, device->id);
    for (unsigned r = 0; r < TTM_UPSTREAM_REGION_COUNT; r++)
        ttm_usage_add_runtime(&listed->regions[ttm_machine_region(r)], counted->totals.bytes[r]);
}

static void add_all_counted(struct builder *builder)
{
    const struct ttm_upstream *upstream = &builder->machine->upstream;

    for (size_t i = 0; i < upstream->count; i++) {
        const struct ttm_upstream_file *file = &upstream->files[i];
        for (size_t p = 0; p < file->process_count; p++) {
            if (!file->processes[p].is_stale)
                add_counted(builder, file, &file->processes[p]);
        }
    }
}

/* ---- who could report ---- */

/* Also without a device; 'tt-mem status' has them, too. */
static void add_switched_off(struct builder *builder)
{
    pid_t pids[OFF_MAX];
    const size_t count = ttm_control_list_off(builder->root, pids, OFF_MAX);

    for (size_t i = 0; i < count; i++) {
        struct ttm_listed_process *listed = find_or_read(builder, pids[i]);
        if (listed && listed->reporting == TTM_REPORTING_NO)
            listed->reporting = TTM_REPORTING_DISABLED;
    }
}

/* ---- the list ---- */

uint64_t ttm_listed_process_bytes(const struct ttm_listed_process *process)
{
    uint64_t sum = 0;

    for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
        sum += process->regions[r].used_bytes;
    return sum;
}

static int compare(const void *a, const void *b)
{
    const struct ttm_listed_process *x = a, *y = b;
    const uint64_t xb = ttm_listed_process_bytes(x), yb = ttm_listed_process_bytes(y);

    return xb != yb ? (xb < yb ? 1 : -1) : x->process.pid - y->process.pid;
}

int ttm_process_list_read(const char *root, const struct ttm_machine *machine,
                          struct ttm_process_cache *cache, struct ttm_process_list *ret)
{
    struct builder builder = {.root = root, .machine = machine, .cache = cache, .list = ret};

    *ret = (struct ttm_process_list){0};
    add_holders(&builder);
    for (size_t a = 0; a < machine->answer_count; a++) {
        for (size_t p = 0; p < machine->answers[a].process_count; p++)
            add_tracked(&builder, &machine->answers[a].processes[p]);
    }
    add_all_counted(&builder);
    /* It takes a look into every process, which is too much for who does so again and again. */
    if (machine->answer_count > 0 && !cache)
        add_switched_off(&builder);
    for (size_t i = 0; i < ret->count; i++) {
        struct ttm_listed_process *listed = &ret->processes[i];
        if (listed->reporting != TTM_REPORTING_TRACKED &&
            listed->process.library == TTM_LIBRARY_LOADED)
            listed->reporting = TTM_REPORTING_DISABLED;
    }
    if (ret->count > 0)
        qsort(ret->processes, ret->count, sizeof(ret->processes[0]), compare);
    ttm_u64_map_done(&builder.places);
    return builder.error;
}

void ttm_process_list_done(struct ttm_process_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->processes[i].devices);
    free(list->processes);
    *list = (struct ttm_process_list){0};
}

/* ---- for people ---- */

void ttm_listed_process_devices(const struct ttm_listed_process *process, struct ttm_text *out)
{
    const size_t before = out->length;

    for (size_t i = 0; i < process->device_count;) {
        const unsigned first = process->devices[i];
        unsigned last = first;
        while (++i < process->device_count && process->devices[i] == last + 1)
            last++;
        ttm_text_format(out, out->length > before ? ",%u" : "%u", first);
        if (last > first)
            ttm_text_format(out, last > first + 1 ? "-%u" : ",%u", last);
    }
}

const char *ttm_process_user(const struct ttm_process *process, char ret[TTM_USER_SIZE])
{
    char room[4096];
    struct passwd entry, *found = NULL;

    ret[0] = '\0';
    if (!process->has_uid)
        return ret;
    if (getpwuid_r(process->uid, &entry, room, sizeof(room), &found) == 0 && found)
        (void)snprintf(ret, TTM_USER_SIZE, "%s", entry.pw_name);
    else
        (void)snprintf(ret, TTM_USER_SIZE, "%u", process->uid);
    return ret;
}
