/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry, driven by a program: each instruction is an operation and its
 * operands, one byte each. Totals must be the sum of the lives at any time,
 * and a snapshot must show what was there when it was taken.
 */
#include "fuzzing.h"

#include "model/registry.h"
#include "model/snapshot.h"
#include "wire/life_row.h"

#define PROCESSES 4
#define SNAPSHOTS 3

struct saved {
    struct ttm_snapshot *snap;
    uint64_t lives[PROCESSES];
    uint64_t bytes[PROCESSES];
};

struct machine {
    const uint8_t *program;
    size_t left;
    uint64_t time_ns;
    struct ttm_registry *reg;
    struct ttm_process *processes[PROCESSES];
    struct saved saved[SNAPSHOTS];
    uint64_t live; /* by our own count */
};

static uint8_t operand(struct machine *m)
{
    if (m->left == 0)
        return 0;
    m->left--;
    return *m->program++;
}

static struct ttm_process *process_of(struct machine *m)
{
    struct ttm_process **p = &m->processes[operand(m) % PROCESSES];
    const struct ttm_process_info info = {.pid = 1};

    if (!*p)
        MUST(ttm_registry_add_process(m->reg, &info, p) == 0);
    return *p;
}

static uint32_t device_set_of(struct machine *m, struct ttm_process *proc)
{
    const uint8_t kind = operand(m);
    uint32_t number = kind;

    if (kind == 255)
        return UINT32_MAX;
    if (kind >= 200) {
        uint16_t devices[] = {0, 0, (uint16_t)(kind * 4)};
        devices[0] = operand(m);
        devices[1] = operand(m);
        if (ttm_registry_hold_set(m->reg, proc, devices, 3, &number) < 0) {
            MUST(proc->set_count == TTM_PROCESS_SETS_MAX);
            return UINT32_MAX;
        }
    }
    return number;
}

static void give_birth(struct machine *m)
{
    struct ttm_process *proc = process_of(m);
    const uint64_t replaced = proc->counters.replaced;
    /* One after the other: an initialiser would let the compiler choose the order. */
    const uint8_t region = operand(m);
    const uint32_t device_set = device_set_of(m, proc);
    const uint32_t allocator = operand(m) & 3;
    const uint64_t id = operand(m) & 15;
    const uint64_t mantissa = operand(m);
    const unsigned shift = operand(m) & 63;
    const struct ttm_birth birth = {
        .site = {.region = region & 7,
                 .kind = region >> 3 & 3,
                 .flags = region >> 7,
                 .device_set = device_set,
                 .allocator = allocator},
        .id = id,
        .bytes = mantissa << shift,
        .footprint_bytes = mantissa,
        .time_ns = ++m->time_ns,
    };
    struct ttm_ended ended;

    const int r = ttm_registry_birth(m->reg, proc, &birth, &ended);
    if (r < 0) {
        MUST(birth.bytes == 0 || birth.bytes > TTM_LIFE_BYTES_MAX || birth.site.region > 6 ||
             birth.site.kind > 2 || (birth.site.kind != 0 && birth.site.region != 6) ||
             birth.site.device_set == UINT32_MAX);
        return;
    }
    m->live += r == 0;
    MUST(proc->counters.replaced == replaced + (uint64_t)r);
    if (r == 1)
        MUST(ended.life.id == birth.id && ended.site.region == birth.site.region &&
             ended.site.allocator == birth.site.allocator);
}

static void end(struct machine *m)
{
    struct ttm_process *proc = process_of(m);
    const uint64_t unknown = proc->counters.unknown_frees;
    const uint32_t allocator = operand(m) & 3;
    const uint32_t bits = operand(m);
    const uint64_t id = operand(m) & 15;
    struct ttm_ended ended;

    const int r = ttm_registry_end(m->reg, proc, allocator, bits, id, &ended);
    m->live -= r >= 0;
    MUST(proc->counters.unknown_frees == unknown + (r < 0));
    if (r >= 0)
        MUST(ended.life.id == id && (bits >> ended.site.region & 1));
}

static void end_process(struct machine *m)
{
    struct ttm_process **p = &m->processes[operand(m) % PROCESSES];
    struct ttm_departure departure;

    if (!*p)
        return;
    const uint64_t held = (*p)->lives.store.live, parts = (*p)->program_parts;
    ttm_registry_end_process(m->reg, *p, &departure);
    MUST(departure.lives + parts == held);
    m->live -= held;
    *p = NULL;
}

static void sum_up(struct ttm_snapshot_process *p, uint64_t *ret_lives, uint64_t *ret_bytes)
{
    const struct ttm_life *life;
    uint64_t at = 0;

    *ret_lives = 0;
    *ret_bytes = 0;
    while ((life = ttm_life_view_next(&p->lives, &at)) != NULL) {
        (*ret_lives)++;
        MUST(life->site < p->site_count);
        if (!(ttm_site_table_get(&p->process->sites, life->site)->flags & TTM_SITE_ALIAS))
            *ret_bytes += life->bytes;
    }
}

static void let_go(struct saved *saved)
{
    if (!saved->snap)
        return;
    for (uint32_t i = 0; i < saved->snap->process_count; i++) {
        uint64_t lives, bytes;
        sum_up(&saved->snap->processes[i], &lives, &bytes);
        MUST(lives == saved->lives[i]);
        MUST(bytes == saved->bytes[i]);
    }
    ttm_snapshot_free(saved->snap);
    saved->snap = NULL;
}

static void take_snapshot(struct machine *m)
{
    struct saved *saved = &m->saved[operand(m) % SNAPSHOTS];

    let_go(saved);
    saved->snap = ttm_snapshot_take(m->reg, m->time_ns);
    MUST(saved->snap);
    for (uint32_t i = 0; i < saved->snap->process_count; i++) {
        saved->lives[i] = saved->snap->processes[i].process->lives.store.live;
        saved->bytes[i] = saved->snap->processes[i].process->bytes;
    }
}

static void step(struct machine *m)
{
    switch (operand(m) % 16) {
    default:
        give_birth(m);
        break;
    case 9:
    case 10:
    case 11:
        end(m);
        break;
    case 12:
        end_process(m);
        break;
    case 13:
        (void)ttm_registry_reclaim(m->reg);
        break;
    case 14:
        take_snapshot(m);
        break;
    case 15:
        MUST(ttm_registry_check(m->reg) == 0);
        break;
    }
    MUST(m->reg->lives == m->live);
    MUST(!m->processes[0] || m->processes[0]->user->allocations.used == m->live);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct machine m = {.program = data, .left = size, .reg = ttm_registry_new(size)};

    MUST(m.reg);
    while (m.left > 0)
        step(&m);
    MUST(ttm_registry_check(m.reg) == 0);
    for (size_t i = 0; i < SNAPSHOTS; i++)
        let_go(&m.saved[i]);
    ttm_registry_free(m.reg);
    return 0;
}
