/* SPDX-License-Identifier: Apache-2.0 */
#include "model/registry.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "model/board.h"
#include "wire/life_row.h"

/* Chunks of 64 KiB that one slice lets go: about 0.3 ms. */
#define RECLAIM_BUDGET 32

/* Of the origins of a process that nothing refers to any more, that one slice lets go: 0.2 ms. */
#define ORIGIN_BLOCKS_AT_ONCE 8
#define ORIGIN_BYTES_AT_ONCE ((size_t)2 << 20)

/* The lives of a process that has ended, waiting to be let go. */
struct grave {
    struct ttm_list link;
    struct ttm_life_view lives;
};

struct ttm_registry *ttm_registry_new(uint64_t seed)
{
    struct ttm_registry *reg = calloc(1, sizeof(*reg));

    if (!reg)
        return NULL;
    ttm_list_init(&reg->processes);
    ttm_list_init(&reg->graves);
    ttm_list_init(&reg->unreferenced);
    ttm_device_sets_init(&reg->sets, seed);
    ttm_users_init(&reg->users, seed);
    reg->seed = seed;
    return reg;
}

void ttm_registry_set_owner(struct ttm_registry *reg, uint32_t uid)
{
    reg->users.owner = uid;
}

void ttm_registry_set_id_ranges(struct ttm_registry *reg, const struct ttm_id_ranges *ranges)
{
    reg->users.ranges = ranges;
}

void ttm_registry_free(struct ttm_registry *reg)
{
    if (!reg)
        return;
    TTM_LIST_FOR_EACH_SAFE(pos, &reg->processes) {
        struct ttm_departure departure;
        ttm_registry_end_process(reg, TTM_CONTAINER_OF(pos, struct ttm_process, link), &departure);
    }
    while (ttm_registry_reclaim(reg))
        ;
    for (size_t i = 0; i < TTM_DEVICE_COUNT; i++)
        free(reg->devices[i]);
    ttm_device_sets_done(&reg->sets);
    free(reg);
}

/* Who does not know the seed cannot make pairs of allocator and id that share a hash. */
static uint64_t key_hash(uint64_t seed, uint32_t allocator, uint64_t id)
{
    return ttm_hash_u64(id ^ ((uint64_t)allocator + 1) * (seed | 1));
}

/*
 * Serials that follow each other, as those of a thread do, have buckets side by side by the eight:
 * a telling of many lives would otherwise wait for memory at each. The eights are scattered; who
 * leaves seven of each out makes chains of eight, no longer.
 */
static uint64_t serial_hash(uint64_t seed, uint64_t serial)
{
    return ttm_hash_u64(serial >> 3 ^ seed) << 3 | (serial & 7);
}

static uint64_t life_hash(const void *context, const struct ttm_life *life)
{
    const struct ttm_process *proc = context;

    if (proc->has_serials)
        return serial_hash(proc->seed, life->serial);

    return key_hash(proc->seed, ttm_site_table_get(&proc->sites, life->site)->allocator, life->id);
}

int ttm_registry_add_process(struct ttm_registry *reg, const struct ttm_process_info *info,
                             struct ttm_process **ret)
{
    struct ttm_process *proc = calloc(1, sizeof(*proc));

    if (!proc)
        return -ENOMEM;
    if (ttm_users_ref(&reg->users, info->uid, &proc->user) < 0) {
        free(proc);
        return -ENOMEM;
    }
    proc->reg = reg;
    proc->info = *info;
    proc->refs = 1;
    proc->seed = reg->seed;
    ttm_life_table_init(&proc->lives, life_hash, proc);
    ttm_site_table_init(&proc->sites, proc->seed);
    ttm_origin_table_init(&proc->origins, proc->seed);
    ttm_story_init(&proc->story);
    ttm_remains_set_init(&proc->closed, proc->seed);
    ttm_cb_map_init(&proc->cbs, proc->seed);
    proc->sites.quota = &proc->user->sites;
    proc->origins.quota = &proc->user->origin_bytes;
    proc->cbs.cb_quota = &proc->user->cbs;
    proc->cbs.core_set_quota = &proc->user->core_sets;
    ttm_list_append(&reg->processes, &proc->link);
    reg->process_count++;
    *ret = proc;
    return 0;
}

void ttm_process_ref(struct ttm_process *proc)
{
    proc->refs++;
}

static void free_process(struct ttm_process *proc)
{
    ttm_life_table_done(&proc->lives);
    ttm_site_table_done(&proc->sites);
    ttm_origin_table_done(&proc->origins);
    ttm_story_done(&proc->story);
    ttm_remains_set_done(&proc->closed);
    ttm_cb_map_done(&proc->cbs);
    for (uint32_t i = 0; i < proc->set_count; i++)
        ttm_device_sets_unref(&proc->reg->sets, proc->sets[i]);
    ttm_quota_subtract(&proc->user->device_sets, proc->set_count);
    ttm_quota_subtract(&proc->user->devices, proc->device_count);
    ttm_user_unref(proc->user);
    free(proc->sets);
    free(proc->devices);
    free(proc->slots);
    free(proc);
}

static bool has_set(const struct ttm_process *proc, uint32_t number)
{
    for (uint32_t i = 0; i < proc->set_count; i++) {
        if (proc->sets[i] == number)
            return true;
    }
    return false;
}

/* The process takes over a reference to a set that it does not have. Returns 0, -ENOSPC or -ENOMEM. */
static int add_set(struct ttm_process *proc, uint32_t number)
{
    if (proc->set_count == TTM_PROCESS_SETS_MAX || !ttm_quota_allows(&proc->user->device_sets, 1))
        return -ENOSPC;
    if (proc->set_count == proc->set_room) {
        const uint32_t room = proc->set_room ? proc->set_room * 2 : 4;
        uint32_t *grown = realloc(proc->sets, room * sizeof(grown[0]));
        if (!grown)
            return -ENOMEM;
        proc->sets = grown;
        proc->set_room = room;
    }
    proc->sets[proc->set_count++] = number;
    const uint32_t size = ttm_device_sets_get(&proc->reg->sets, number).count;
    if (size > proc->largest_set)
        proc->largest_set = size;
    ttm_quota_add(&proc->user->device_sets, 1);
    return 0;
}

int ttm_registry_hold_set(struct ttm_registry *reg, struct ttm_process *proc,
                          const uint16_t *devices, uint32_t count, uint32_t *ret_number)
{
    uint32_t number;

    int r = ttm_device_sets_intern(&reg->sets, devices, count, &number);
    if (r < 0)
        return r;
    const bool is_known = number < TTM_DEVICE_COUNT || has_set(proc, number);
    r = is_known ? 0 : add_set(proc, number);
    if (is_known || r < 0)
        ttm_device_sets_unref(&reg->sets, number); /* one is enough */
    if (r == 0)
        *ret_number = number;
    return r;
}

void ttm_cb_raise_peaks(struct ttm_device_totals *totals)
{
    struct ttm_cb_totals *cb = &totals->cb;

    if (totals->region[TTM_REGION_CB].peak_holds > 0)
        return;
    if (cb->registered_bytes > cb->peak_registered_bytes)
        cb->peak_registered_bytes = cb->registered_bytes;
    if (cb->resident_bytes > cb->peak_resident_bytes)
        cb->peak_resident_bytes = cb->resident_bytes;
}

static void raise_peaks(struct ttm_device_totals *totals)
{
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
        ttm_region_raise_peaks(&totals->region[r]);
    ttm_cb_raise_peaks(totals);
}

static void hold_peaks(struct ttm_device_totals *totals)
{
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
        totals->region[r].peak_holds++;
}

static void release_peaks(struct ttm_device_totals *totals)
{
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
        totals->region[r].peak_holds--;
    raise_peaks(totals);
}

/* Takes all that one process had on one device out of the sums over all processes. */
static void withdraw(struct ttm_device_totals *all, const struct ttm_device_totals *own)
{
    for (size_t i = 0; i < TTM_REGION_COUNT; i++) {
        all->region[i].count -= own->region[i].count;
        all->region[i].bytes -= own->region[i].bytes;
        all->region[i].footprint_bytes -= own->region[i].footprint_bytes;
    }
    for (size_t i = 0; i < TTM_KERNEL_KIND_COUNT; i++)
        all->kernel_bytes[i] -= own->kernel_bytes[i];
    all->cb.coreless_bytes -= own->cb.coreless_bytes;
    all->cb.registered_bytes -= own->cb.registered_bytes;
    all->cb.resident_bytes -= own->cb.resident_bytes;
}

static void keep_counters(struct ttm_process_counters *all, const struct ttm_process_counters *own)
{
    all->events += own->events;
    all->unknown_frees += own->unknown_frees;
    all->ambiguous_frees += own->ambiguous_frees;
    all->replaced += own->replaced;
    all->refused += own->refused;
    all->lost_events += own->lost_events;
    all->resyncs += own->resyncs;
    all->untracked += own->untracked;
    all->senseless += own->senseless;
    all->unknown_ends += own->unknown_ends;
    all->notes_left_out += own->notes_left_out;
}

void ttm_registry_bury(struct ttm_registry *reg, struct ttm_life_view *lives)
{
    struct grave *grave = lives->chunks ? malloc(sizeof(*grave)) : NULL;

    if (!grave) { /* nothing to bury, or no memory for a grave: all at once then */
        (void)ttm_life_view_release(lives, UINT32_MAX);
        return;
    }
    grave->lives = *lives;
    *lives = (struct ttm_life_view){0};
    ttm_list_append(&reg->graves, &grave->link);
}

/* A device that only programs have told of goes with the last of them. */
static void forget_device(struct ttm_registry *reg, uint16_t id)
{
    struct ttm_device *device = reg->devices[id];

    if (--device->users > 0 || device->is_listed)
        return;
    free(device);
    reg->devices[id] = NULL;
    reg->device_count--;
}

static void count_allocations(struct ttm_registry *reg, struct ttm_process *proc, int64_t more)
{
    reg->lives += (uint32_t)more;
    proc->user->allocations.used += (uint64_t)more;
}

void ttm_registry_end_process(struct ttm_registry *reg, struct ttm_process *proc,
                              struct ttm_departure *ret)
{
    *ret = (struct ttm_departure){
        .lives = proc->lives.store.live - proc->program_parts,
        .bytes = proc->bytes - proc->program_bytes,
        .closed = proc->closed.total - proc->closed.program_parts,
        .closed_bytes = proc->closed.total_bytes - proc->closed.program_bytes,
    };
    for (uint32_t i = 0; i < proc->device_count; i++) {
        const struct ttm_process_device *device = &proc->devices[i];
        withdraw(&reg->devices[device->id]->totals, &device->totals);
        if (proc->are_device_peaks_held)
            release_peaks(&reg->devices[device->id]->totals);
        if (reg->devices[device->id]->described_by == proc)
            reg->devices[device->id]->described_by = NULL;
    }
    keep_counters(&reg->ended, &proc->counters);
    count_allocations(reg, proc, -(int64_t)proc->lives.store.live);
    reg->process_count--;
    reg->processes_ended++;
    ttm_list_remove(&proc->link);

    for (uint32_t i = 0; i < proc->device_count; i++)
        forget_device(reg, proc->devices[i].id);
    struct ttm_life_view lives;
    ttm_life_table_take_over(&proc->lives, &lives);
    ttm_registry_bury(reg, &lives);
    ttm_process_unref(proc);
}

void ttm_registry_forget_lives(struct ttm_registry *reg, struct ttm_process *proc)
{
    struct ttm_life_view lives;

    for (uint32_t i = 0; i < proc->device_count; i++) {
        struct ttm_device_totals *own = &proc->devices[i].totals;
        withdraw(&reg->devices[proc->devices[i].id]->totals, own);
        for (size_t r = 0; r < TTM_REGION_COUNT; r++) {
            own->region[r].count = 0;
            own->region[r].bytes = 0;
            own->region[r].footprint_bytes = 0;
        }
        memset(own->kernel_bytes, 0, sizeof(own->kernel_bytes));
        own->cb.coreless_bytes = 0;
        own->cb.registered_bytes = 0;
        own->cb.resident_bytes = 0;
    }
    proc->bytes = 0;
    proc->program_parts = 0;
    proc->program_bytes = 0;
    count_allocations(reg, proc, -(int64_t)proc->lives.store.live);
    ttm_cb_map_clear(&proc->cbs);
    ttm_site_table_forget_lives(&proc->sites);
    ttm_life_table_take_over(&proc->lives, &lives);
    ttm_registry_bury(reg, &lives);
}

void ttm_process_unref(struct ttm_process *proc)
{
    if (--proc->refs > 0)
        return;
    if (proc->origins.bytes <= ORIGIN_BYTES_AT_ONCE)
        free_process(proc);
    else
        ttm_list_append(&proc->reg->unreferenced, &proc->link);
}

/* Lets go of some origins of a process that nothing refers to, and at last of it. */
static void reclaim_process(struct ttm_registry *reg)
{
    struct ttm_process *proc = TTM_CONTAINER_OF(reg->unreferenced.next, struct ttm_process, link);

    if (!ttm_origin_table_drop(&proc->origins, ORIGIN_BLOCKS_AT_ONCE))
        return;
    ttm_list_remove(&proc->link);
    free_process(proc);
}

bool ttm_registry_reclaim(struct ttm_registry *reg)
{
    if (!ttm_list_is_empty(&reg->unreferenced)) {
        reclaim_process(reg);
        return true;
    }
    if (ttm_list_is_empty(&reg->graves))
        return false;
    struct grave *grave = TTM_CONTAINER_OF(reg->graves.next, struct grave, link);
    if (ttm_life_view_release(&grave->lives, RECLAIM_BUDGET)) {
        ttm_list_remove(&grave->link);
        free(grave);
    }
    return !ttm_list_is_empty(&reg->graves);
}

struct ttm_device *ttm_registry_device(struct ttm_registry *reg, uint32_t id)
{
    if (id >= TTM_DEVICE_COUNT)
        return NULL;
    if (!reg->devices[id]) {
        reg->devices[id] = calloc(1, sizeof(struct ttm_device));
        if (reg->devices[id])
            reg->device_count++;
    }
    return reg->devices[id];
}

static void fill_from_board(struct ttm_device *device, const struct ttm_board *board)
{
    device->arch = board->arch;
    device->core_count = board->core_count;
    device->l1_per_core_bytes = board->l1_per_core_bytes;
    device->dram_channels = board->dram_channels;
    device->dram_channel_bytes = board->dram_channel_bytes;
    for (size_t i = 0; i < TTM_REGION_COUNT; i++)
        device->capacity_bytes[i] = ttm_board_capacity(board, (enum ttm_region)i);
    device->is_known = true;
}

/* Returns whether there is such a board. */
static bool fill_from_name(struct ttm_device *device, const char *name)
{
    const struct ttm_board *board = ttm_board_find(name);

    if (!board)
        return false;
    fill_from_board(device, board);
    strncpy(device->board, name, TTM_STRING_MAX);
    return true;
}

void ttm_device_set_board(struct ttm_device *device, const char *name)
{
    if (fill_from_name(device, name))
        device->is_listed = true;
}

void ttm_device_set_arch(struct ttm_device *device, unsigned arch)
{
    const struct ttm_board *board = ttm_board_of_arch(arch);

    if (device->is_known || arch == TTM_ARCH_UNKNOWN || arch >= TTM_ARCH_COUNT)
        return;
    if (board)
        fill_from_board(device, board);
    device->arch = (uint8_t)arch;
    device->is_known = true;
}

void ttm_device_set_note(struct ttm_device *device, const struct ttm_device_note *note)
{
    if (note->board[0] != '\0' && !fill_from_name(device, note->board))
        memcpy(device->board, note->board, sizeof(note->board)); /* not one of ours: by name */
    ttm_device_set_arch(device, note->arch);
    if (note->arch != TTM_ARCH_UNKNOWN)
        device->arch = note->arch;
    if (note->core_count != 0)
        device->core_count = note->core_count;
    if (note->asic_id != 0)
        device->asic_id = note->asic_id;
    for (size_t i = 0; i < TTM_REGION_COUNT; i++) {
        uint64_t capacity;
        if (__builtin_mul_overflow(note->bank_bytes[i], note->bank_count[i], &capacity) ||
            capacity > TTM_LIFE_BYTES_MAX || capacity == 0)
            continue;
        device->capacity_bytes[i] = capacity;
        device->bank_count[i] = note->bank_count[i];
    }
    device->is_known = true;
}

size_t ttm_registry_life_bytes(const struct ttm_registry *reg)
{
    size_t bytes = 0;

    TTM_LIST_FOR_EACH(pos, &reg->processes)
        bytes += ttm_life_table_bytes(&TTM_CONTAINER_OF(pos, struct ttm_process, link)->lives);
    return bytes;
}

/* A circular buffer that is not known by core: it is taken to be there with all its bytes. */
static bool is_coreless(const struct ttm_site *site)
{
    return site->region == TTM_REGION_CB && !(site->flags & TTM_SITE_CORES);
}

static void change_coreless(struct ttm_device_totals *totals, uint64_t bytes)
{
    totals->cb.coreless_bytes += bytes;
    totals->cb.registered_bytes += bytes;
    totals->cb.resident_bytes += bytes;
    ttm_cb_raise_peaks(totals);
}

void ttm_totals_add(struct ttm_device_totals *totals, const struct ttm_site *site,
                    const struct ttm_life *life)
{
    struct ttm_totals *t = &totals->region[site->region];

    if (site->flags & TTM_SITE_ALIAS)
        return;
    ttm_region_add(t, life->bytes, life->footprint_bytes);
    if (site->region == TTM_REGION_KERNEL)
        totals->kernel_bytes[site->kind] += life->bytes;
    if (is_coreless(site))
        change_coreless(totals, life->footprint_bytes);
}

void ttm_totals_add_site(struct ttm_device_totals *totals, const struct ttm_site *site,
                         const struct ttm_site_counts *sum)
{
    if (site->flags & TTM_SITE_ALIAS)
        return;
    totals->region[site->region].count += sum->live;
    totals->region[site->region].bytes += sum->bytes;
    totals->region[site->region].footprint_bytes += sum->footprint_bytes;
    if (site->region == TTM_REGION_KERNEL)
        totals->kernel_bytes[site->kind] += sum->bytes;
}

void ttm_totals_take(struct ttm_device_totals *totals, const struct ttm_site *site,
                     const struct ttm_life *life)
{
    struct ttm_totals *t = &totals->region[site->region];

    if (site->flags & TTM_SITE_ALIAS)
        return;
    ttm_region_take(t, life->bytes, life->footprint_bytes);
    if (site->region == TTM_REGION_KERNEL)
        totals->kernel_bytes[site->kind] -= life->bytes;
    if (is_coreless(site))
        change_coreless(totals, -life->footprint_bytes);
}

static void change_peaks(struct ttm_device_totals *totals, bool are_held)
{
    if (are_held)
        hold_peaks(totals);
    else
        release_peaks(totals);
}

static void hold_device_peaks(struct ttm_registry *reg, struct ttm_process *proc, bool are_held)
{
    if (proc->are_device_peaks_held == are_held)
        return;
    proc->are_device_peaks_held = are_held;
    for (uint32_t i = 0; i < proc->device_count; i++)
        change_peaks(&reg->devices[proc->devices[i].id]->totals, are_held);
}

void ttm_registry_hold_peaks(struct ttm_registry *reg, struct ttm_process *proc, bool are_held)
{
    if (proc->are_peaks_held == are_held)
        return;
    proc->are_peaks_held = are_held;
    for (uint32_t i = 0; i < proc->device_count; i++)
        change_peaks(&proc->devices[i].totals, are_held);
    hold_device_peaks(reg, proc, are_held);
}

void ttm_registry_release_device_peaks(struct ttm_registry *reg, struct ttm_process *proc)
{
    hold_device_peaks(reg, proc, false);
}

bool ttm_registry_may_describe(struct ttm_device *device, const struct ttm_process *proc)
{
    const struct ttm_process *other = device->described_by;

    if (other && other->user != proc->user && !proc->user->is_privileged)
        return false;
    device->described_by = proc;
    return true;
}

void ttm_registry_reset_peaks(struct ttm_process *proc)
{
    for (uint32_t i = 0; i < proc->device_count; i++) {
        struct ttm_device_totals *totals = &proc->devices[i].totals;
        for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
            totals->region[r].peak_bytes = 0;
            totals->region[r].peak_footprint_bytes = 0;
        }
        totals->cb.peak_registered_bytes = 0;
        totals->cb.peak_resident_bytes = 0;
        raise_peaks(totals);
    }
}

int ttm_registry_know_device(struct ttm_registry *reg, struct ttm_process *proc, uint16_t device)
{
    if (!proc->slots) {
        proc->slots = calloc(TTM_DEVICE_COUNT, sizeof(proc->slots[0]));
        if (!proc->slots)
            return -ENOMEM;
    }
    if (proc->slots[device] != 0)
        return 0;
    if (!ttm_quota_allows(&proc->user->devices, 1))
        return -ENOSPC;
    if (!ttm_registry_device(reg, device))
        return -ENOMEM;
    if (proc->device_count == proc->device_room) {
        const uint32_t room = proc->device_room ? proc->device_room * 2 : 1;
        struct ttm_process_device *grown = realloc(proc->devices, room * sizeof(grown[0]));
        if (!grown)
            return -ENOMEM;
        proc->devices = grown;
        proc->device_room = room;
    }
    ttm_quota_add(&proc->user->devices, 1);
    proc->devices[proc->device_count] = (struct ttm_process_device){.id = device};
    proc->slots[device] = (uint16_t)++proc->device_count;
    reg->devices[device]->users++;
    if (proc->are_peaks_held)
        hold_peaks(&proc->devices[proc->device_count - 1].totals);
    if (proc->are_device_peaks_held)
        hold_peaks(&reg->devices[device]->totals);
    return 0;
}

enum change { ADD, TAKE_FREED, TAKE_REPLACED, TAKE_CLOSED, TAKE_UNHEARD };

/* An end leaves its trace, but for an unheard one and a replaced life, whose memory another has. */
static void count_end(struct ttm_totals *totals, const struct ttm_life *life, enum change change)
{
    if (change == TAKE_FREED)
        totals->ends++;
    if (change != TAKE_CLOSED)
        return;
    totals->closed_count++;
    totals->closed_bytes += life->bytes;
    totals->closed_footprint_bytes += life->footprint_bytes;
}

/* Applies a life to the totals of each device of its set. The devices are known. */
static void change_totals(struct ttm_registry *reg, struct ttm_process *proc,
                          const struct ttm_site *site, const struct ttm_life *life,
                          enum change change)
{
    const struct ttm_device_set set = ttm_device_sets_get(&reg->sets, site->device_set);

    if (!(site->flags & TTM_SITE_ALIAS))
        proc->bytes += change == ADD ? life->bytes : -life->bytes;
    if (ttm_site_is_of_program(site))
        proc->program_parts += change == ADD ? UINT64_C(1) : -UINT64_C(1);
    if (ttm_site_is_of_program(site) && !(site->flags & TTM_SITE_ALIAS))
        proc->program_bytes += change == ADD ? life->bytes : -life->bytes;
    for (uint16_t i = 0; i < set.count; i++) {
        const uint16_t id = set.devices[i];
        struct ttm_device_totals *own = &proc->devices[proc->slots[id] - 1].totals;
        struct ttm_device_totals *all = &reg->devices[id]->totals;

        if (change == ADD) {
            ttm_totals_add(own, site, life);
            ttm_totals_add(all, site, life);
            continue;
        }
        ttm_totals_take(own, site, life);
        ttm_totals_take(all, site, life);
        if (site->flags & TTM_SITE_ALIAS)
            continue;
        count_end(&own->region[site->region], life, change);
        count_end(&all->region[site->region], life, change);
    }
}

/* Its owner never gave it back: it remains, by size and origin, when its process is summed up. */
static void keep_closed(const struct ttm_registry *reg, struct ttm_process *proc,
                        const struct ttm_ended *ended)
{
    const struct ttm_remains remains = ttm_remains_of(&reg->sets, &ended->site, &ended->life);

    ttm_remains_add(&proc->closed, &remains);
}

static void remove_life(struct ttm_registry *reg, struct ttm_process *proc, uint64_t hash,
                        uint32_t ref, enum change change, struct ttm_ended *ret)
{
    ret->life = *ttm_life_table_get(&proc->lives, ref);
    ret->site = *ttm_site_table_get(&proc->sites, ret->life.site);
    ttm_life_table_remove(&proc->lives, hash, ref);
    change_totals(reg, proc, &ret->site, &ret->life, change);
    ttm_site_counts_take(&proc->sites.counts[ret->life.site], ret->life.bytes,
                         ret->life.footprint_bytes);
    if (change == TAKE_FREED)
        proc->sites.counts[ret->life.site].ends++;
    if (change == TAKE_CLOSED && !(ret->site.flags & TTM_SITE_ALIAS))
        keep_closed(reg, proc, ret);
    count_allocations(reg, proc, -1);
}

static bool matches(const struct ttm_process *proc, const struct ttm_life *life, uint32_t allocator,
                    uint32_t region_bits, uint64_t id)
{
    if (life->id != id)
        return false;
    const struct ttm_site *site = ttm_site_table_get(&proc->sites, life->site);
    return site->allocator == allocator && (region_bits >> site->region & 1) != 0;
}

/* The newest life that matches at or after 'ref' in its bucket, or TTM_LIFE_NONE. */
static uint32_t find_from(const struct ttm_process *proc, uint32_t ref, uint32_t allocator,
                          uint32_t region_bits, uint64_t id)
{
    while (ref != TTM_LIFE_NONE &&
           !matches(proc, ttm_life_table_get(&proc->lives, ref), allocator, region_bits, id))
        ref = ttm_life_table_next(&proc->lives, ref);
    return ref;
}

static uint32_t find_serial(const struct ttm_process *proc, uint64_t hash, uint64_t serial)
{
    uint32_t ref = ttm_life_table_first(&proc->lives, hash);

    while (ref != TTM_LIFE_NONE && ttm_life_table_get(&proc->lives, ref)->serial != serial)
        ref = ttm_life_table_next(&proc->lives, ref);
    return ref;
}

bool ttm_registry_has_serial(const struct ttm_process *proc, uint64_t serial)
{
    return find_serial(proc, serial_hash(proc->seed, serial), serial) != TTM_LIFE_NONE;
}

void ttm_registry_find(const struct ttm_process *proc, const uint64_t *serials, uint32_t count,
                       uint32_t *ret_refs)
{
    uint64_t hashes[TTM_FIND_MAX];
    bool are_new = true;

    assert(count <= TTM_FIND_MAX);
    if (count == 0)
        return;
    for (uint32_t i = 0; i < count; i++) {
        hashes[i] = serial_hash(proc->seed, serials[i]);
        are_new = are_new && ttm_serial_is_new(proc, serials[i]);
    }
    ttm_life_table_fetch(&proc->lives, hashes, count);
    if (are_new) {
        for (uint32_t i = 0; i < count; i++)
            ret_refs[i] = TTM_LIFE_NONE;
        return;
    }
    ttm_life_table_fetch_lives(&proc->lives, hashes, count);
    for (uint32_t i = 0; i < count; i++)
        ret_refs[i] = find_serial(proc, hashes[i], serials[i]);
}

static bool is_size(uint64_t bytes, uint64_t footprint_bytes)
{
    return bytes != 0 && bytes <= TTM_LIFE_BYTES_MAX && footprint_bytes <= TTM_LIFE_BYTES_MAX;
}

/* Everything that can be wrong with a birth, before anything changes. */
static int check_birth(const struct ttm_registry *reg, const struct ttm_process *proc,
                       const struct ttm_birth *birth, struct ttm_device_set *ret_set)
{
    const struct ttm_site *site = &birth->site;

    if (site->region >= TTM_REGION_COUNT || site->kind >= ttm_region_kinds(site->region))
        return -EINVAL;
    if (!is_size(birth->bytes, birth->footprint_bytes))
        return -ERANGE;
    *ret_set = ttm_device_sets_get(&reg->sets, site->device_set);
    if (ret_set->count == 0)
        return -EINVAL;
    const struct ttm_quota *quota = &proc->user->allocations;
    const bool has_room = reg->lives < TTM_LIVES_MAX && quota->used < quota->max &&
                          proc->lives.store.live < TTM_PROCESS_LIVES_MAX;
    return has_room ? 0 : -ENOSPC;
}

static void see_serial(struct ttm_process *proc, uint64_t serial)
{
    *ttm_serials_seen(proc, serial) = serial << (64 - TTM_SERIAL_BITS);
}

int ttm_registry_birth(struct ttm_registry *reg, struct ttm_process *proc,
                       const struct ttm_birth *birth, struct ttm_ended *ret_replaced)
{
    const struct ttm_site *site = &birth->site;
    struct ttm_device_set set;
    struct ttm_ended replaced;
    uint32_t number;

    int r = check_birth(reg, proc, birth, &set);
    if (r < 0)
        return r;
    for (uint16_t i = 0; i < set.count; i++) {
        r = ttm_registry_know_device(reg, proc, set.devices[i]);
        if (r < 0)
            return r;
    }
    r = ttm_site_table_intern(&proc->sites, site, &number);
    if (r < 0)
        return r;

    const uint64_t hash = proc->has_serials ? serial_hash(proc->seed, birth->serial)
                                            : key_hash(proc->seed, site->allocator, birth->id);
    uint32_t old = TTM_LIFE_NONE;
    const bool is_new = proc->has_serials && ttm_serial_is_new(proc, birth->serial);
    if (proc->has_serials && !is_new && !birth->is_unknown &&
        find_serial(proc, hash, birth->serial) != TTM_LIFE_NONE)
        return -EEXIST;
    if (!proc->has_serials)
        old = find_from(proc, ttm_life_table_first(&proc->lives, hash), site->allocator,
                        1u << site->region, birth->id);
    const struct ttm_life life = {
        .serial = proc->has_serials ? birth->serial : proc->births + 1,
        .id = birth->id,
        .address = birth->address,
        .bytes = birth->bytes,
        .footprint_bytes = birth->footprint_bytes,
        .birth_ns = birth->time_ns,
        .site = number,
    };
    r = ttm_life_table_add(&proc->lives, hash, &life);
    if (r < 0)
        return r;
    if (is_new)
        see_serial(proc, birth->serial);
    count_allocations(reg, proc, 1);
    reg->births++;
    proc->births++;
    proc->sites.counts[number].births++;
    ttm_site_counts_add(&proc->sites.counts[number], life.bytes, life.footprint_bytes,
                        life.birth_ns);
    if (old != TTM_LIFE_NONE) {
        remove_life(reg, proc, hash, old, TAKE_REPLACED, ret_replaced ? ret_replaced : &replaced);
        proc->counters.replaced++;
    }
    change_totals(reg, proc, site, &life, ADD);
    return old != TTM_LIFE_NONE;
}

/* Lives of one site that are new to the tables. They only add, so a peak is what the last one makes it. */
static void add_sums(struct ttm_registry *reg, struct ttm_process *proc, uint32_t number,
                     const struct ttm_site_counts *sums)
{
    const struct ttm_site *site = ttm_site_table_get(&proc->sites, number);
    const struct ttm_device_set set = ttm_device_sets_get(&reg->sets, site->device_set);
    const uint32_t lives = (uint32_t)sums->live;

    count_allocations(reg, proc, lives);
    reg->births += lives;
    proc->births += lives;
    proc->bytes += sums->bytes;
    if (ttm_site_is_of_program(site)) {
        proc->program_parts += lives;
        proc->program_bytes += sums->bytes;
    }
    ttm_site_counts_add_many(&proc->sites.counts[number], sums);
    for (uint16_t i = 0; i < set.count; i++) {
        const uint16_t id = set.devices[i];
        struct ttm_device_totals *own = &proc->devices[proc->slots[id] - 1].totals;
        struct ttm_device_totals *all = &reg->devices[id]->totals;
        ttm_region_add_many(&own->region[site->region], lives, sums->bytes, sums->footprint_bytes);
        ttm_region_add_many(&all->region[site->region], lives, sums->bytes, sums->footprint_bytes);
    }
}

static uint32_t least(uint32_t a, uint64_t b)
{
    return a < b ? a : (uint32_t)b;
}

uint32_t ttm_registry_births(struct ttm_registry *reg, struct ttm_process *proc,
                             const struct ttm_life *lives, uint32_t count)
{
    struct ttm_site_counts sums = {0};
    uint64_t hashes[TTM_FIND_MAX];
    uint32_t n = 0;

    assert(proc->has_serials && count <= TTM_FIND_MAX);
    const struct ttm_quota *quota = &proc->user->allocations;
    count = least(count, TTM_LIVES_MAX - reg->lives);
    count = least(count, TTM_PROCESS_LIVES_MAX - proc->lives.store.live);
    count = least(count, quota->max - quota->used);
    for (; n < count && is_size(lives[n].bytes, lives[n].footprint_bytes); n++)
        hashes[n] = serial_hash(proc->seed, lives[n].serial);
    n = ttm_life_table_add_many(&proc->lives, hashes, lives, n);
    for (uint32_t i = 0; i < n; i++) {
        if (ttm_serial_is_new(proc, lives[i].serial))
            see_serial(proc, lives[i].serial);
        ttm_site_counts_add(&sums, lives[i].bytes, lives[i].footprint_bytes, lives[i].birth_ns);
    }
    if (n > 0)
        add_sums(reg, proc, lives[0].site, &sums);
    return n;
}

int ttm_registry_end(struct ttm_registry *reg, struct ttm_process *proc, uint32_t allocator,
                     uint32_t region_bits, uint64_t id, struct ttm_ended *ret)
{
    const uint64_t hash = key_hash(proc->seed, allocator, id);
    const uint32_t first = ttm_life_table_first(&proc->lives, hash);
    const uint32_t newest = find_from(proc, first, allocator, region_bits, id);

    if (newest == TTM_LIFE_NONE) {
        proc->counters.unknown_frees++;
        return -ENOENT;
    }
    const uint32_t other =
        find_from(proc, ttm_life_table_next(&proc->lives, newest), allocator, region_bits, id);
    remove_life(reg, proc, hash, newest, TAKE_FREED, ret);
    reg->ends++;
    if (other == TTM_LIFE_NONE)
        return 0;
    proc->counters.ambiguous_frees++;
    return 1;
}

int ttm_registry_end_serial(struct ttm_registry *reg, struct ttm_process *proc, uint64_t serial,
                            enum ttm_end how, struct ttm_ended *ret)
{
    static const enum change changes[] = {
        [TTM_END_FREED] = TAKE_FREED,
        [TTM_END_REPLACED] = TAKE_REPLACED,
        [TTM_END_CLOSED] = TAKE_CLOSED,
        [TTM_END_UNHEARD] = TAKE_UNHEARD,
    };
    const uint64_t hash = serial_hash(proc->seed, serial);
    const uint32_t ref = find_serial(proc, hash, serial);

    if (ref == TTM_LIFE_NONE)
        return -ENOENT;
    remove_life(reg, proc, hash, ref, changes[how], ret);
    if (ret->site.flags & TTM_SITE_CORES)
        ttm_cb_map_remove(&proc->cbs, serial);
    if (how == TTM_END_REPLACED)
        proc->counters.replaced++;
    if (how == TTM_END_FREED)
        reg->ends++;
    return 0;
}

int ttm_registry_set_origin(struct ttm_registry *reg, struct ttm_process *proc, uint64_t serial,
                            uint32_t origin)
{
    const uint32_t ref = find_serial(proc, serial_hash(proc->seed, serial), serial);
    uint32_t number;

    (void)reg;
    if (ref == TTM_LIFE_NONE)
        return -ENOENT;
    const struct ttm_life life = *ttm_life_table_get(&proc->lives, ref);
    struct ttm_site site = *ttm_site_table_get(&proc->sites, life.site);
    site.origin = origin;
    const int r = ttm_site_table_intern(&proc->sites, &site, &number);
    if (r < 0)
        return r;
    ttm_life_table_set_site(&proc->lives, ref, number);
    ttm_site_counts_take(&proc->sites.counts[life.site], life.bytes, life.footprint_bytes);
    proc->sites.counts[life.site].births--;
    ttm_site_counts_add(&proc->sites.counts[number], life.bytes, life.footprint_bytes,
                        life.birth_ns);
    proc->sites.counts[number].births++;
    return 0;
}
