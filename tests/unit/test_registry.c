/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "model/registry.h"
#include "model/snapshot.h"
#include "wire/life_row.h"

#define ALL_REGIONS ((1u << TTM_REGION_COUNT) - 1)
#define BUFFER_REGIONS 0x1fu

static struct ttm_registry *reg;
static struct ttm_process *proc;

static struct ttm_process *new_process(int32_t pid)
{
    const struct ttm_process_info info = {.pid = pid};
    struct ttm_process *made = NULL;

    assert_int_equal(ttm_registry_add_process(reg, &info, &made), 0);
    return made;
}

static int set_up(void **state)
{
    (void)state;
    reg = ttm_registry_new(0x5eed5eed5eed5eedull);
    assert_non_null(reg);
    proc = new_process(100);
    return 0;
}

static int tear_down(void **state)
{
    const int64_t mismatches = ttm_registry_check(reg);
    (void)state;

    ttm_registry_free(reg);
    return mismatches == 0 && faults_pages_out() == 0 ? 0 : -1;
}

/* One allocation on one device, which is its allocator too. */
static struct ttm_birth birth_on(uint16_t device, uint8_t region, uint64_t id, uint64_t bytes)
{
    return (struct ttm_birth){
        .id = id,
        .address = id,
        .bytes = bytes,
        .footprint_bytes = bytes + 10,
        .time_ns = 1,
        .site = {.allocator = device, .device_set = device, .region = region},
    };
}

static int give_birth(struct ttm_process *to, const struct ttm_birth *birth)
{
    return ttm_registry_birth(reg, to, birth, NULL);
}

static int end(struct ttm_process *of, uint32_t allocator, uint32_t regions, uint64_t id)
{
    struct ttm_ended ended;

    return ttm_registry_end(reg, of, allocator, regions, id, &ended);
}

/* The sums of all processes; a device that only programs told of is gone with the last of them. */
static const struct ttm_device_totals *of_all(uint16_t device)
{
    static const struct ttm_device_totals none;

    return reg->devices[device] ? &reg->devices[device]->totals : &none;
}

static const struct ttm_device_totals *of_process(const struct ttm_process *of, uint16_t device)
{
    for (uint32_t i = 0; i < of->device_count; i++) {
        if (of->devices[i].id == device)
            return &of->devices[i].totals;
    }
    fail_msg("the process has no totals on device %u", device);
    return NULL;
}

static void assert_totals(const struct ttm_device_totals *totals, unsigned region, uint64_t count,
                          uint64_t bytes, uint64_t footprint)
{
    assert_int_equal(totals->region[region].count, count);
    assert_int_equal(totals->region[region].bytes, bytes);
    assert_int_equal(totals->region[region].footprint_bytes, footprint);
}

static void a_new_registry_knows_nothing(void **state)
{
    (void)state;
    assert_int_equal(reg->lives, 0);
    assert_int_equal(reg->device_count, 0);
    assert_int_equal(ttm_registry_life_bytes(reg), 0);
    assert_int_equal(ttm_registry_check(reg), 0);
    assert_false(ttm_registry_reclaim(reg));
    ttm_registry_free(NULL);
}

static void a_birth_is_counted_for_its_process_and_for_all(void **state)
{
    const struct ttm_birth birth = birth_on(3, TTM_REGION_L1, 0x1000, 64);
    struct ttm_process *other = new_process(101);
    (void)state;

    assert_int_equal(give_birth(proc, &birth), 0);
    assert_int_equal(give_birth(other, &birth), 0);
    assert_totals(of_process(proc, 3), TTM_REGION_L1, 1, 64, 74);
    assert_totals(of_process(other, 3), TTM_REGION_L1, 1, 64, 74);
    assert_totals(of_all(3), TTM_REGION_L1, 2, 128, 148);
    assert_totals(of_all(3), TTM_REGION_DRAM, 0, 0, 0);
    assert_int_equal(reg->lives, 2);
    assert_int_equal(reg->births, 2);
    assert_int_equal(proc->sites.counts[0].births, 1);
}

static void an_end_takes_out_what_the_birth_put_in_and_tells_of_it(void **state)
{
    const struct ttm_birth birth = birth_on(3, TTM_REGION_L1, 0x1000, 64);
    struct ttm_ended ended;
    (void)state;

    assert_int_equal(give_birth(proc, &birth), 0);
    assert_int_equal(ttm_registry_end(reg, proc, 3, BUFFER_REGIONS, 0x1000, &ended), 0);
    assert_int_equal(ended.life.id, 0x1000);
    assert_int_equal(ended.life.bytes, 64);
    assert_int_equal(ended.life.footprint_bytes, 74);
    assert_int_equal(ended.life.birth_ns, 1);
    assert_int_equal(ended.site.region, TTM_REGION_L1);
    assert_int_equal(ended.site.device_set, 3);
    assert_totals(of_process(proc, 3), TTM_REGION_L1, 0, 0, 0);
    assert_totals(of_all(3), TTM_REGION_L1, 0, 0, 0);
    assert_int_equal(of_all(3)->region[TTM_REGION_L1].births, 1);
    assert_int_equal(of_all(3)->region[TTM_REGION_L1].ends, 1);
    assert_int_equal(reg->lives, 0);
    assert_int_equal(reg->ends, 1);
    assert_int_equal(proc->sites.counts[0].ends, 1);
}

static void an_end_of_something_unknown_is_counted_and_changes_nothing(void **state)
{
    const struct ttm_birth birth = birth_on(0, TTM_REGION_DRAM, 0x1000, 64);
    struct ttm_process *other = new_process(101);
    (void)state;

    assert_int_equal(end(proc, 0, ALL_REGIONS, 0x1000), -ENOENT); /* before any birth */
    assert_int_equal(give_birth(proc, &birth), 0);
    assert_int_equal(end(proc, 0, ALL_REGIONS, 0x2000), -ENOENT);  /* another id */
    assert_int_equal(end(proc, 1, ALL_REGIONS, 0x1000), -ENOENT);  /* another allocator */
    assert_int_equal(end(other, 0, ALL_REGIONS, 0x1000), -ENOENT); /* another process */
    assert_int_equal(end(proc, 0, ALL_REGIONS & ~1u, 0x1000), -ENOENT);
    assert_int_equal(end(proc, 0, 0, 0x1000), -ENOENT);
    assert_int_equal(proc->counters.unknown_frees, 5);
    assert_int_equal(other->counters.unknown_frees, 1);
    assert_totals(of_all(0), TTM_REGION_DRAM, 1, 64, 74);
    assert_int_equal(reg->lives, 1);
    assert_int_equal(reg->ends, 0);
    assert_int_equal(ttm_registry_check(reg), 0);
}

static void a_second_end_of_the_same_life_is_unknown(void **state)
{
    const struct ttm_birth birth = birth_on(0, TTM_REGION_DRAM, 0x1000, 64);
    (void)state;

    assert_int_equal(give_birth(proc, &birth), 0);
    assert_int_equal(end(proc, 0, BUFFER_REGIONS, 0x1000), 0);
    assert_int_equal(end(proc, 0, BUFFER_REGIONS, 0x1000), -ENOENT);
    assert_totals(of_all(0), TTM_REGION_DRAM, 0, 0, 0);
    assert_int_equal(proc->counters.unknown_frees, 1);
}

static void an_id_born_again_while_live_ends_the_old_life_as_replaced(void **state)
{
    struct ttm_birth birth = birth_on(0, TTM_REGION_L1, 0x1000, 64);
    struct ttm_ended replaced = {0};
    (void)state;

    assert_int_equal(give_birth(proc, &birth), 0);
    birth.bytes = 100;
    birth.footprint_bytes = 100;
    assert_int_equal(ttm_registry_birth(reg, proc, &birth, &replaced), 1);
    assert_int_equal(replaced.life.bytes, 64);
    assert_int_equal(replaced.life.footprint_bytes, 74);
    assert_int_equal(replaced.site.region, TTM_REGION_L1);
    assert_int_equal(proc->counters.replaced, 1);
    assert_totals(of_all(0), TTM_REGION_L1, 1, 100, 100);
    assert_int_equal(reg->lives, 1);
    /* It was not freed by its owner, and the two were never there at once. */
    assert_int_equal(of_all(0)->region[TTM_REGION_L1].births, 2);
    assert_int_equal(of_all(0)->region[TTM_REGION_L1].ends, 0);
    assert_int_equal(of_all(0)->region[TTM_REGION_L1].peak_bytes, 100);
    assert_int_equal(reg->ends, 0);
    assert_int_equal(proc->sites.counts[0].ends, 0);

    assert_int_equal(end(proc, 0, BUFFER_REGIONS, 0x1000), 0); /* never a reference count */
    assert_int_equal(end(proc, 0, BUFFER_REGIONS, 0x1000), -ENOENT);
}

static void a_replaced_life_on_other_devices_leaves_those(void **state)
{
    struct ttm_birth birth = birth_on(0, TTM_REGION_L1, 7, 64);
    uint32_t mesh;
    (void)state;

    assert_int_equal(ttm_registry_hold_set(reg, proc, (uint16_t[]){0, 1, 2}, 3, &mesh), 0);
    birth.site.device_set = mesh;
    assert_int_equal(give_birth(proc, &birth), 0);
    birth.site.device_set = 5;
    assert_int_equal(give_birth(proc, &birth), 1);
    for (uint16_t d = 0; d < 3; d++)
        assert_totals(of_all(d), TTM_REGION_L1, 0, 0, 0);
    assert_totals(of_all(5), TTM_REGION_L1, 1, 64, 74);
}

static void the_key_is_process_allocator_region_and_id(void **state)
{
    struct ttm_process *other = new_process(101);
    struct ttm_birth births[] = {
        birth_on(0, TTM_REGION_L1, 0x1000, 1), birth_on(0, TTM_REGION_DRAM, 0x1000, 2),
        birth_on(0, TTM_REGION_L1, 0x1001, 3), birth_on(1, TTM_REGION_L1, 0x1000, 4),
        birth_on(0, TTM_REGION_CB, 0x1000, 5),
    };
    struct ttm_birth submesh = birth_on(0, TTM_REGION_L1, 0x1000, 6);
    (void)state;

    submesh.site.allocator = 4000; /* another allocator over the same device */
    for (size_t i = 0; i < COUNT_OF(births); i++)
        assert_int_equal(give_birth(proc, &births[i]), 0);
    assert_int_equal(give_birth(proc, &submesh), 0);
    assert_int_equal(give_birth(other, &births[0]), 0);
    assert_int_equal(proc->counters.replaced, 0);
    assert_int_equal(reg->lives, 7);
    assert_totals(of_all(0), TTM_REGION_L1, 4, 1 + 3 + 6 + 1, 1 + 3 + 6 + 1 + 40);
}

static void kind_devices_and_alias_are_no_part_of_the_key(void **state)
{
    struct ttm_birth birth = birth_on(0, TTM_REGION_KERNEL, 9, 8);
    (void)state;

    assert_int_equal(give_birth(proc, &birth), 0);
    birth.site.kind = TTM_KERNEL_FABRIC;
    assert_int_equal(give_birth(proc, &birth), 1);
    birth.site.flags = TTM_SITE_ALIAS;
    assert_int_equal(give_birth(proc, &birth), 1);
    birth.site.device_set = 3;
    assert_int_equal(give_birth(proc, &birth), 1);
    assert_int_equal(reg->lives, 1);
}

static void an_end_that_several_regions_match_ends_the_newest_and_is_ambiguous(void **state)
{
    const uint8_t order[] = {TTM_REGION_L1, TTM_REGION_TRACE, TTM_REGION_DRAM};
    struct ttm_ended ended;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(order); i++) {
        const struct ttm_birth birth = birth_on(0, order[i], 0x1000, 8);
        assert_int_equal(give_birth(proc, &birth), 0);
    }
    assert_int_equal(ttm_registry_end(reg, proc, 0, BUFFER_REGIONS, 0x1000, &ended), 1);
    assert_int_equal(ended.site.region, TTM_REGION_DRAM);
    assert_int_equal(ttm_registry_end(reg, proc, 0, BUFFER_REGIONS, 0x1000, &ended), 1);
    assert_int_equal(ended.site.region, TTM_REGION_TRACE);
    assert_int_equal(ttm_registry_end(reg, proc, 0, BUFFER_REGIONS, 0x1000, &ended), 0);
    assert_int_equal(ended.site.region, TTM_REGION_L1);
    assert_int_equal(proc->counters.ambiguous_frees, 2);
    assert_int_equal(reg->ends, 3);
}

static void a_life_born_again_is_the_newest(void **state)
{
    const struct ttm_birth l1 = birth_on(0, TTM_REGION_L1, 0x1000, 8);
    const struct ttm_birth dram = birth_on(0, TTM_REGION_DRAM, 0x1000, 8);
    struct ttm_ended ended;
    (void)state;

    assert_int_equal(give_birth(proc, &l1), 0);
    assert_int_equal(give_birth(proc, &dram), 0);
    assert_int_equal(give_birth(proc, &l1), 1);
    assert_int_equal(ttm_registry_end(reg, proc, 0, BUFFER_REGIONS, 0x1000, &ended), 1);
    assert_int_equal(ended.site.region, TTM_REGION_L1);
}

static void an_end_in_one_region_leaves_the_same_id_in_the_others(void **state)
{
    const struct ttm_birth cb = birth_on(0, TTM_REGION_CB, 0x1000, 8);
    const struct ttm_birth l1 = birth_on(0, TTM_REGION_L1, 0x1000, 8);
    (void)state;

    assert_int_equal(give_birth(proc, &l1), 0);
    assert_int_equal(give_birth(proc, &cb), 0);
    assert_int_equal(end(proc, 0, BUFFER_REGIONS, 0x1000), 0);
    assert_totals(of_all(0), TTM_REGION_CB, 1, 8, 18);
    assert_int_equal(end(proc, 0, BUFFER_REGIONS, 0x1000), -ENOENT);
    assert_int_equal(end(proc, 0, 1u << TTM_REGION_CB, 0x1000), 0);
}

static void a_life_on_a_mesh_is_counted_once_on_each_of_its_devices(void **state)
{
    struct ttm_birth birth = birth_on(0, TTM_REGION_DRAM, 0x1000, 64);
    uint32_t mesh;
    (void)state;

    assert_int_equal(ttm_registry_hold_set(reg, proc, (uint16_t[]){7, 0, 1023, 7}, 4, &mesh), 0);
    birth.site.allocator = 5000;
    birth.site.device_set = mesh;
    assert_int_equal(give_birth(proc, &birth), 0);
    assert_int_equal(reg->lives, 1);
    assert_int_equal(reg->births, 1);
    for (size_t i = 0; i < 3; i++) {
        const uint16_t device = (const uint16_t[]){0, 7, 1023}[i];
        assert_totals(of_all(device), TTM_REGION_DRAM, 1, 64, 74);
        assert_totals(of_process(proc, device), TTM_REGION_DRAM, 1, 64, 74);
    }
    assert_int_equal(ttm_registry_check(reg), 0);
    assert_int_equal(end(proc, 5000, BUFFER_REGIONS, 0x1000), 0);
    for (size_t i = 0; i < 3; i++)
        assert_totals(of_all((const uint16_t[]){0, 7, 1023}[i]), TTM_REGION_DRAM, 0, 0, 0);
}

static void an_alias_is_a_life_that_adds_nothing(void **state)
{
    struct ttm_birth owner = birth_on(0, TTM_REGION_L1, 1, 64);
    struct ttm_birth alias = birth_on(0, TTM_REGION_L1, 2, 64);
    (void)state;

    alias.site.flags = TTM_SITE_ALIAS;
    assert_int_equal(give_birth(proc, &owner), 0);
    assert_int_equal(give_birth(proc, &alias), 0);
    assert_int_equal(reg->lives, 2);
    assert_totals(of_all(0), TTM_REGION_L1, 1, 64, 74);
    assert_int_equal(of_all(0)->region[TTM_REGION_L1].births, 1);
    assert_int_equal(ttm_registry_check(reg), 0);
    assert_int_equal(end(proc, 0, BUFFER_REGIONS, 2), 0);
    assert_totals(of_all(0), TTM_REGION_L1, 1, 64, 74);
    assert_int_equal(of_all(0)->region[TTM_REGION_L1].ends, 0);
    assert_int_equal(reg->lives, 1);
}

static void an_alias_may_outlive_its_owner(void **state)
{
    struct ttm_birth owner = birth_on(0, TTM_REGION_L1, 1, 64);
    struct ttm_birth alias = birth_on(0, TTM_REGION_L1, 2, 64);
    struct ttm_departure departure;
    (void)state;

    alias.site.flags = TTM_SITE_ALIAS;
    assert_int_equal(give_birth(proc, &owner), 0);
    assert_int_equal(give_birth(proc, &alias), 0);
    assert_int_equal(end(proc, 0, BUFFER_REGIONS, 1), 0);
    assert_totals(of_all(0), TTM_REGION_L1, 0, 0, 0);
    ttm_registry_end_process(reg, proc, &departure);
    assert_int_equal(departure.lives, 1);
    assert_int_equal(departure.bytes, 0);
    assert_totals(of_all(0), TTM_REGION_L1, 0, 0, 0);
}

static void kernels_are_summed_by_kind(void **state)
{
    (void)state;
    for (uint8_t kind = 0; kind < TTM_KERNEL_KIND_COUNT; kind++) {
        struct ttm_birth birth = birth_on(0, TTM_REGION_KERNEL, kind, 100u << kind);
        birth.site.kind = kind;
        assert_int_equal(give_birth(proc, &birth), 0);
    }
    assert_int_equal(of_all(0)->kernel_bytes[TTM_KERNEL_APPLICATION], 100);
    assert_int_equal(of_all(0)->kernel_bytes[TTM_KERNEL_FABRIC], 200);
    assert_int_equal(of_process(proc, 0)->kernel_bytes[TTM_KERNEL_DISPATCH], 400);
    assert_totals(of_all(0), TTM_REGION_KERNEL, 3, 700, 730);
    assert_int_equal(end(proc, 0, 1u << TTM_REGION_KERNEL, TTM_KERNEL_FABRIC), 0);
    assert_int_equal(of_all(0)->kernel_bytes[TTM_KERNEL_APPLICATION], 100);
    assert_int_equal(of_all(0)->kernel_bytes[TTM_KERNEL_FABRIC], 0);
    assert_int_equal(of_all(0)->kernel_bytes[TTM_KERNEL_DISPATCH], 400);
}

static void other_regions_do_not_count_as_kernels(void **state)
{
    const struct ttm_birth birth = birth_on(0, TTM_REGION_CB, 1, 8);
    (void)state;

    assert_int_equal(give_birth(proc, &birth), 0);
    assert_int_equal(of_all(0)->kernel_bytes[0], 0);
}

static void the_peak_is_the_most_there_ever_was_at_once(void **state)
{
    (void)state;
    for (uint64_t id = 1; id <= 3; id++) {
        const struct ttm_birth birth = birth_on(0, TTM_REGION_L1, id, 100);
        assert_int_equal(give_birth(proc, &birth), 0);
    }
    assert_int_equal(end(proc, 0, BUFFER_REGIONS, 1), 0);
    assert_int_equal(end(proc, 0, BUFFER_REGIONS, 2), 0);
    const struct ttm_birth again = birth_on(0, TTM_REGION_L1, 4, 150);
    assert_int_equal(give_birth(proc, &again), 0);
    const struct ttm_totals *t = &of_all(0)->region[TTM_REGION_L1];
    assert_int_equal(t->bytes, 250);
    assert_int_equal(t->peak_bytes, 300);
    assert_int_equal(t->peak_footprint_bytes, 330);
    assert_int_equal(of_process(proc, 0)->region[TTM_REGION_L1].peak_bytes, 300);
}

static void the_peaks_of_a_process_begin_anew_and_those_of_devices_stay(void **state)
{
    (void)state;
    for (uint64_t id = 1; id <= 3; id++) {
        const struct ttm_birth birth = birth_on(0, TTM_REGION_L1, id, 100);
        assert_int_equal(give_birth(proc, &birth), 0);
    }
    assert_int_equal(end(proc, 0, BUFFER_REGIONS, 1), 0);
    assert_int_equal(end(proc, 0, BUFFER_REGIONS, 2), 0);
    ttm_registry_reset_peaks(proc);
    const struct ttm_totals *t = &of_process(proc, 0)->region[TTM_REGION_L1];
    assert_int_equal(t->peak_bytes, 100);
    assert_int_equal(t->peak_footprint_bytes, 110);
    const struct ttm_birth again = birth_on(0, TTM_REGION_L1, 4, 50);
    assert_int_equal(give_birth(proc, &again), 0);
    assert_int_equal(of_process(proc, 0)->region[TTM_REGION_L1].peak_bytes, 150);
    assert_int_equal(of_all(0)->region[TTM_REGION_L1].peak_bytes, 300);
}

static struct ttm_birth birth_of_serial(uint64_t serial, uint16_t device, uint8_t region,
                                        uint64_t bytes)
{
    struct ttm_birth birth = birth_on(device, region, 1, bytes); /* the same key for all */

    birth.serial = serial;
    return birth;
}

static void held_peaks_do_not_rise_until_the_sums_are_exact_again(void **state)
{
    struct ttm_birth birth = birth_of_serial(1, 0, TTM_REGION_L1, 100);
    const struct ttm_process_info info = {.pid = 2};
    struct ttm_departure departure;
    struct ttm_process *other;
    struct ttm_ended ended;
    (void)state;

    proc->has_serials = true;
    assert_int_equal(give_birth(proc, &birth), 0);
    ttm_registry_hold_peaks(reg, proc, true);
    ttm_registry_hold_peaks(reg, proc, true); /* more was lost */
    for (birth.serial = 2; birth.serial <= 5; birth.serial++)
        assert_int_equal(give_birth(proc, &birth), 0);
    const struct ttm_birth elsewhere = birth_of_serial(9, 1, TTM_REGION_DRAM, 100);
    assert_int_equal(give_birth(proc, &elsewhere), 0); /* a device that it had not used before */
    assert_int_equal(of_process(proc, 0)->region[TTM_REGION_L1].peak_bytes, 100);
    assert_int_equal(of_all(0)->region[TTM_REGION_L1].peak_bytes, 100);
    assert_int_equal(of_all(1)->region[TTM_REGION_DRAM].peak_bytes, 0);

    /* The sums of a device are not exact while those of one process are not. */
    assert_int_equal(ttm_registry_add_process(reg, &info, &other), 0);
    const struct ttm_birth others = birth_on(0, TTM_REGION_L1, 1, 1000);
    assert_int_equal(give_birth(other, &others), 0);
    assert_int_equal(of_process(other, 0)->region[TTM_REGION_L1].peak_bytes, 1000);
    assert_int_equal(of_all(0)->region[TTM_REGION_L1].peak_bytes, 100);

    /* What was not told has ended: nobody has heard how. */
    for (uint64_t serial = 3; serial <= 5; serial++)
        assert_int_equal(ttm_registry_end_serial(reg, proc, serial, TTM_END_UNHEARD, &ended), 0);
    ttm_registry_hold_peaks(reg, proc, false);
    const struct ttm_totals *own = &of_process(proc, 0)->region[TTM_REGION_L1];
    assert_int_equal(own->peak_bytes, 200);
    assert_int_equal(own->bytes, 200);
    assert_int_equal(own->ends + own->closed_count, 0);
    assert_int_equal(of_all(0)->region[TTM_REGION_L1].peak_bytes, 1200);
    assert_int_equal(of_all(1)->region[TTM_REGION_DRAM].peak_bytes, 100);

    /* One that ends holds nothing any more. */
    ttm_registry_hold_peaks(reg, proc, true);
    ttm_registry_end_process(reg, proc, &departure);
    const struct ttm_birth more = birth_on(0, TTM_REGION_L1, 2, 1000);
    assert_int_equal(give_birth(other, &more), 0);
    assert_int_equal(of_all(0)->region[TTM_REGION_L1].peak_bytes, 2000);
    proc = other;
}

static struct ttm_process *new_process_of(uint32_t uid)
{
    const struct ttm_process_info info = {.pid = 1, .uid = uid};
    struct ttm_process *made = NULL;

    assert_int_equal(ttm_registry_add_process(reg, &info, &made), 0);
    return made;
}

static void peaks_of_devices_rise_again_while_one_process_never_becomes_exact(void **state)
{
    struct ttm_process *other = new_process_of(1000);
    struct ttm_birth birth = birth_of_serial(1, 0, TTM_REGION_L1, 100);
    struct ttm_departure departure;
    (void)state;

    proc->has_serials = true;
    assert_int_equal(give_birth(proc, &birth), 0);
    ttm_registry_hold_peaks(reg, proc, true);
    const struct ttm_birth first = birth_on(0, TTM_REGION_L1, 1, 1000);
    assert_int_equal(give_birth(other, &first), 0);
    assert_int_equal(of_all(0)->region[TTM_REGION_L1].peak_bytes, 100);

    ttm_registry_release_device_peaks(reg, proc);
    ttm_registry_release_device_peaks(reg, proc); /* as the server does in each pass */
    assert_int_equal(of_all(0)->region[TTM_REGION_L1].peak_bytes, 1100);
    const struct ttm_birth second = birth_on(0, TTM_REGION_L1, 2, 1000);
    assert_int_equal(give_birth(other, &second), 0);
    assert_int_equal(of_all(0)->region[TTM_REGION_L1].peak_bytes, 2100);
    /* On devices that it uses from now on, too; its own peaks do not rise. */
    birth = birth_of_serial(2, 1, TTM_REGION_L1, 100);
    assert_int_equal(give_birth(proc, &birth), 0);
    assert_int_equal(of_all(1)->region[TTM_REGION_L1].peak_bytes, 100);
    assert_int_equal(of_process(proc, 0)->region[TTM_REGION_L1].peak_bytes, 100);
    assert_int_equal(of_process(proc, 1)->region[TTM_REGION_L1].peak_bytes, 0);

    /* It becomes exact after all, loses something again, and ends: no device is held for ever. */
    ttm_registry_hold_peaks(reg, proc, false);
    assert_int_equal(of_process(proc, 1)->region[TTM_REGION_L1].peak_bytes, 100);
    ttm_registry_hold_peaks(reg, proc, true);
    ttm_registry_release_device_peaks(reg, proc);
    ttm_registry_end_process(reg, proc, &departure);
    const struct ttm_birth third = birth_on(0, TTM_REGION_L1, 3, 1000);
    assert_int_equal(give_birth(other, &third), 0);
    assert_int_equal(of_all(0)->region[TTM_REGION_L1].peak_bytes, 3000);
    proc = other;
}

static void the_peak_of_a_known_device_outlives_the_process(void **state)
{
    const struct ttm_birth birth = birth_on(0, TTM_REGION_L1, 1, 100);
    struct ttm_departure departure;
    (void)state;

    ttm_device_set_board(ttm_registry_device(reg, 0), "n150");
    assert_int_equal(give_birth(proc, &birth), 0);
    ttm_registry_end_process(reg, proc, &departure);
    assert_int_equal(of_all(0)->region[TTM_REGION_L1].peak_bytes, 100);
    assert_totals(of_all(0), TTM_REGION_L1, 0, 0, 0);
}

static void a_device_that_only_programs_named_goes_with_the_last_of_them(void **state)
{
    const struct ttm_birth birth = birth_on(77, TTM_REGION_L1, 1, 100);
    struct ttm_departure departure;
    struct ttm_process *other;
    const struct ttm_process_info info = {.pid = 4};
    (void)state;

    assert_int_equal(ttm_registry_add_process(reg, &info, &other), 0);
    assert_int_equal(give_birth(proc, &birth), 0);
    assert_int_equal(give_birth(other, &birth), 0);
    ttm_registry_end_process(reg, proc, &departure);
    assert_non_null(reg->devices[77]);
    ttm_registry_end_process(reg, other, &departure);
    assert_null(reg->devices[77]);
}

static void one_process_cannot_take_all_lives_there_may_be(void **state)
{
    struct ttm_birth birth = birth_on(0, TTM_REGION_L1, 1, 100);
    struct ttm_process *other;
    const struct ttm_process_info info = {.pid = 4};
    (void)state;

    assert_int_equal(ttm_registry_add_process(reg, &info, &other), 0);
    proc->lives.store.live = TTM_PROCESS_LIVES_MAX; /* as if it had that many */
    assert_int_equal(give_birth(proc, &birth), -ENOSPC);
    proc->lives.store.live = 0;
    assert_int_equal(give_birth(other, &birth), 0);
}

static void sizes_that_no_device_has_are_refused_and_change_nothing(void **state)
{
    struct ttm_birth birth = birth_on(0, TTM_REGION_DRAM, 1, 0);
    (void)state;

    assert_int_equal(give_birth(proc, &birth), -ERANGE);
    birth.bytes = TTM_LIFE_BYTES_MAX + 1;
    assert_int_equal(give_birth(proc, &birth), -ERANGE);
    birth.bytes = UINT64_MAX;
    assert_int_equal(give_birth(proc, &birth), -ERANGE);
    birth.bytes = 1;
    birth.footprint_bytes = TTM_LIFE_BYTES_MAX + 1;
    assert_int_equal(give_birth(proc, &birth), -ERANGE);
    assert_int_equal(reg->lives, 0);
    assert_int_equal(reg->births, 0);
    assert_int_equal(reg->device_count, 0);
    birth.bytes = TTM_LIFE_BYTES_MAX;
    birth.footprint_bytes = TTM_LIFE_BYTES_MAX;
    assert_int_equal(give_birth(proc, &birth), 0);
    assert_totals(of_all(0), TTM_REGION_DRAM, 1, TTM_LIFE_BYTES_MAX, TTM_LIFE_BYTES_MAX);
}

static void regions_kinds_and_device_sets_that_are_none_are_refused(void **state)
{
    struct ttm_birth region = birth_on(0, TTM_REGION_COUNT, 1, 8);
    struct ttm_birth kind = birth_on(0, TTM_REGION_KERNEL, 1, 8);
    struct ttm_birth kind_of_buffer = birth_on(0, TTM_REGION_L1, 1, 8);
    struct ttm_birth kind_of_cb = birth_on(0, TTM_REGION_CB, 1, 8);
    struct ttm_birth set = birth_on(0, TTM_REGION_L1, 1, 8);
    (void)state;

    kind.site.kind = TTM_KERNEL_KIND_COUNT;
    kind_of_buffer.site.kind = TTM_BUFFER_KIND_COUNT;
    kind_of_cb.site.kind = TTM_BUFFER_OF_PROGRAM;
    set.site.device_set = TTM_DEVICE_COUNT; /* no mesh was made */
    assert_int_equal(give_birth(proc, &region), -EINVAL);
    assert_int_equal(give_birth(proc, &kind), -EINVAL);
    assert_int_equal(give_birth(proc, &kind_of_buffer), -EINVAL);
    assert_int_equal(give_birth(proc, &kind_of_cb), -EINVAL);
    assert_int_equal(give_birth(proc, &set), -EINVAL);
    region.site.region = 255;
    assert_int_equal(give_birth(proc, &region), -EINVAL);
    assert_int_equal(reg->lives, 0);
    assert_int_equal(reg->device_count, 0);
}

static void a_refused_birth_does_not_end_the_life_of_its_key(void **state)
{
    struct ttm_birth birth = birth_on(0, TTM_REGION_L1, 1, 8);
    (void)state;

    assert_int_equal(give_birth(proc, &birth), 0);
    birth.bytes = 0;
    assert_int_equal(give_birth(proc, &birth), -ERANGE);
    assert_int_equal(reg->lives, 1);
    assert_totals(of_all(0), TTM_REGION_L1, 1, 8, 18);
    assert_int_equal(proc->counters.replaced, 0);
}

static void devices_are_0_to_1023_and_no_others(void **state)
{
    (void)state;
    for (uint16_t device = 0; device < TTM_DEVICE_COUNT; device++) {
        const struct ttm_birth birth = birth_on(device, TTM_REGION_DRAM, 1, device + 1u);
        assert_int_equal(give_birth(proc, &birth), 0);
    }
    assert_int_equal(reg->device_count, TTM_DEVICE_COUNT);
    assert_totals(of_all(0), TTM_REGION_DRAM, 1, 1, 11);
    assert_totals(of_all(1023), TTM_REGION_DRAM, 1, 1024, 1034);
    assert_int_equal(ttm_registry_check(reg), 0);
    assert_non_null(ttm_registry_device(reg, 1023));
    assert_null(ttm_registry_device(reg, 1024));
    assert_null(ttm_registry_device(reg, UINT32_MAX));
}

static void a_device_is_made_known_once(void **state)
{
    struct ttm_device *device = ttm_registry_device(reg, 5);
    (void)state;

    assert_non_null(device);
    assert_ptr_equal(ttm_registry_device(reg, 5), device);
    assert_int_equal(reg->device_count, 1);
    assert_false(device->is_known);
}

static void a_board_or_an_architecture_fills_in_capacities(void **state)
{
    struct ttm_device *device = ttm_registry_device(reg, 0);
    struct ttm_device *other = ttm_registry_device(reg, 1);
    (void)state;

    ttm_device_set_board(device, "no such board");
    assert_false(device->is_known);
    ttm_device_set_board(device, "n150");
    assert_true(device->is_known);
    assert_string_equal(device->board, "n150");
    assert_int_equal(device->arch, TTM_ARCH_WORMHOLE_B0);
    assert_int_equal(device->core_count, 72);
    assert_int_equal(device->capacity_bytes[TTM_REGION_L1], 107937792);
    ttm_device_set_arch(device, TTM_ARCH_BLACKHOLE); /* the board is better knowledge */
    assert_int_equal(device->arch, TTM_ARCH_WORMHOLE_B0);

    ttm_device_set_arch(other, TTM_ARCH_UNKNOWN);
    ttm_device_set_arch(other, TTM_ARCH_COUNT);
    ttm_device_set_arch(other, 4000000000u);
    assert_false(other->is_known);
    ttm_device_set_arch(other, TTM_ARCH_BLACKHOLE);
    assert_true(other->is_known);
    assert_int_equal(other->capacity_bytes[TTM_REGION_DRAM], 8ull * 4080 * 1024 * 1024);
    assert_string_equal(other->board, "");
}

static void an_architecture_without_a_board_is_known_without_capacities(void **state)
{
    struct ttm_device *device = ttm_registry_device(reg, 0);
    (void)state;

    ttm_device_set_arch(device, TTM_ARCH_QUASAR);
    assert_int_equal(device->arch, TTM_ARCH_QUASAR);
    assert_int_equal(device->capacity_bytes[TTM_REGION_DRAM], 0);
}

static void the_end_of_a_process_withdraws_exactly_its_own(void **state)
{
    struct ttm_process *other = new_process(101);
    struct ttm_departure departure;
    (void)state;

    for (uint64_t id = 1; id <= 10; id++) {
        struct ttm_birth birth = birth_on((uint16_t)(id % 3), TTM_REGION_KERNEL, id, 100);
        assert_int_equal(give_birth(proc, &birth), 0);
        birth.bytes = 7;
        birth.footprint_bytes = 7;
        assert_int_equal(give_birth(other, &birth), 0);
    }
    (void)end(proc, 0, ALL_REGIONS, 999);
    ttm_registry_end_process(reg, proc, &departure);
    assert_int_equal(departure.lives, 10);
    assert_int_equal(departure.bytes, 1000);
    assert_totals(of_all(0), TTM_REGION_KERNEL, 3, 21, 21);
    assert_totals(of_all(1), TTM_REGION_KERNEL, 4, 28, 28);
    assert_int_equal(of_all(1)->kernel_bytes[0], 28);
    assert_int_equal(reg->lives, 10);
    assert_int_equal(reg->process_count, 1);
    assert_int_equal(reg->processes_ended, 1);
    assert_int_equal(reg->ended.unknown_frees, 1);
    assert_int_equal(ttm_registry_check(reg), 0);
}

static void a_departure_counts_a_life_on_a_mesh_once(void **state)
{
    struct ttm_birth birth = birth_on(0, TTM_REGION_DRAM, 1, 64);
    struct ttm_departure departure;
    uint32_t mesh;
    (void)state;

    assert_int_equal(ttm_registry_hold_set(reg, proc, (uint16_t[]){0, 1, 2, 3}, 4, &mesh), 0);
    birth.site.device_set = mesh;
    assert_int_equal(give_birth(proc, &birth), 0);
    birth.id = 2;
    assert_int_equal(give_birth(proc, &birth), 0);
    assert_int_equal(give_birth(proc, &birth), 1);
    assert_int_equal(end(proc, 0, ALL_REGIONS, 1), 0);
    ttm_registry_end_process(reg, proc, &departure);
    assert_int_equal(departure.lives, 1);
    assert_int_equal(departure.bytes, 64);
}

static void a_departure_leaves_out_parts_of_programs(void **state)
{
    struct ttm_birth birth = birth_on(0, TTM_REGION_CB, 1, 64);
    struct ttm_departure departure;
    struct ttm_process *other = new_process(101);
    (void)state;

    birth.site.flags = TTM_SITE_PROGRAM;
    assert_int_equal(give_birth(proc, &birth), 0);
    assert_int_equal(give_birth(other, &birth), 0);
    birth.id = 2;
    assert_int_equal(give_birth(proc, &birth), 0);
    assert_int_equal(end(proc, 0, ALL_REGIONS, 2), 0);
    birth = birth_on(0, TTM_REGION_L1, 3, 100);
    assert_int_equal(give_birth(proc, &birth), 0);
    ttm_registry_end_process(reg, proc, &departure);
    assert_int_equal(departure.lives, 1);
    assert_int_equal(departure.bytes, 100);

    ttm_registry_forget_lives(reg, other);
    assert_int_equal(give_birth(other, &birth), 0);
    ttm_registry_end_process(reg, other, &departure);
    assert_int_equal(departure.lives, 1);
    assert_int_equal(departure.bytes, 100);
}

static void a_process_that_held_nothing_ends_quietly(void **state)
{
    struct ttm_departure departure = {.lives = 99, .bytes = 99};
    (void)state;

    ttm_registry_end_process(reg, proc, &departure);
    assert_int_equal(departure.lives, 0);
    assert_int_equal(departure.bytes, 0);
    while (ttm_registry_reclaim(reg))
        ;
}

static void memory_of_an_ended_process_goes_in_slices(void **state)
{
    struct ttm_departure departure;
    unsigned slices = 1;
    (void)state;

    for (uint64_t id = 0; id < 200000; id++) {
        const struct ttm_birth birth = birth_on(0, TTM_REGION_L1, id, 8);
        assert_int_equal(give_birth(proc, &birth), 0);
    }
    const size_t before = faults_pages_out();
    ttm_registry_end_process(reg, proc, &departure);
    assert_int_equal(ttm_registry_life_bytes(reg), 0);
    assert_true(faults_pages_out() > before / 2); /* not at once */
    while (ttm_registry_reclaim(reg))
        slices++;
    assert_true(slices >= 3);
    assert_int_equal(faults_pages_out(), 0);
}

static void a_process_ends_also_when_memory_is_short(void **state)
{
    const struct ttm_birth birth = birth_on(0, TTM_REGION_L1, 1, 8);
    struct ttm_departure departure;
    (void)state;

    assert_int_equal(give_birth(proc, &birth), 0);
    faults_begin(0);
    ttm_registry_end_process(reg, proc, &departure);
    assert_true(faults_end());
    assert_int_equal(departure.lives, 1);
    assert_totals(of_all(0), TTM_REGION_L1, 0, 0, 0);
    assert_int_equal(faults_pages_out(), 0);
}

static void short_memory_refuses_a_birth_and_changes_nothing(void **state)
{
    uint32_t mesh;
    unsigned refusals = 0;
    (void)state;

    assert_int_equal(ttm_registry_hold_set(reg, proc, (uint16_t[]){1, 2}, 2, &mesh), 0);
    for (uint64_t id = 0; id < 3000; id++) {
        struct ttm_birth birth = birth_on(0, TTM_REGION_L1, id, 8);
        birth.site.device_set = mesh;
        birth.site.allocator = (uint32_t)(id % 50);
        for (unsigned grants = 0;; grants++) {
            faults_begin(grants);
            const int r = give_birth(proc, &birth);
            if (!faults_end()) {
                assert_int_equal(r, 0);
                break;
            }
            if (r == 0) /* a longer chain instead of another bucket */
                break;
            assert_int_equal(r, -ENOMEM);
            assert_int_equal(reg->lives, id);
            assert_int_equal(reg->births, id);
            assert_int_equal(ttm_registry_check(reg), 0);
            refusals++;
        }
    }
    assert_true(refusals > 5);
    assert_totals(of_all(2), TTM_REGION_L1, 3000, 24000, 54000);
    faults_begin(0);
    struct ttm_process *other;
    const struct ttm_process_info info = {.pid = 1};
    assert_int_equal(ttm_registry_add_process(reg, &info, &other), -ENOMEM);
    assert_null(ttm_registry_new(1));
    assert_null(ttm_registry_device(reg, 77));
    assert_true(faults_end());
    assert_int_equal(reg->process_count, 1);
}

/* Ids that would share a bucket on every device, were the seed not mixed in with the allocator. */
static void a_client_cannot_choose_ids_that_share_a_bucket(void **state)
{
    uint32_t longest = 0;
    (void)state;

    for (uint32_t device = 0; device < TTM_DEVICE_COUNT; device++) {
        const struct ttm_birth birth =
            birth_on((uint16_t)device, TTM_REGION_L1, 0x1000 ^ (uint64_t)device << 40, 8);
        assert_int_equal(give_birth(proc, &birth), 0);
    }
    for (uint32_t bucket = 0; bucket < proc->lives.buckets; bucket++) {
        uint32_t length = 0;
        uint32_t ref = ttm_life_table_first(&proc->lives, bucket);
        while (ref != TTM_LIFE_NONE) {
            length++;
            ref = ttm_life_table_next(&proc->lives, ref);
        }
        longest = length > longest ? length : longest;
    }
    assert_true(longest < 16);
}

static void a_million_lives_take_64_bytes_each_and_give_them_back(void **state)
{
    enum { COUNT = 1000000 };
    uint64_t seed = 99;
    (void)state;

    for (uint64_t id = 0; id < COUNT; id++) {
        const struct ttm_birth birth =
            birth_on((uint16_t)(id % 8), (uint8_t)(id % 5), id << 5, 1 + random_below(&seed, 999));
        assert_int_equal(give_birth(proc, &birth), 0);
    }
    assert_int_equal(reg->lives, COUNT);
    assert_true(ttm_registry_life_bytes(reg) <= (size_t)COUNT * 64);
    assert_true(faults_pages_out() <= (size_t)COUNT * 64);
    for (uint64_t id = 0; id < COUNT; id++) /* not in the order of birth */
    {
        const uint64_t pick = id * 7919 % COUNT;
        assert_int_equal(end(proc, (uint32_t)(pick % 8), BUFFER_REGIONS, pick << 5), 0);
    }
    assert_int_equal(reg->lives, 0);
    assert_true(ttm_registry_life_bytes(reg) <= 128 * 1024);
    assert_true(faults_pages_out() <= 128 * 1024);
}

/*
 * The soak: random events of five processes on eight devices, applied to the
 * registry and to a table that has a place for every possible key.
 */
#define SOAK_PROCESSES 5
#define SOAK_DEVICES 8
#define SOAK_ALLOCATORS 10 /* each device, and two meshes */
#define SOAK_IDS 24

struct truth {
    uint64_t sequence; /* of its birth; 0: not live */
    uint64_t bytes;
    uint64_t footprint_bytes;
    uint32_t device_bits;
    uint8_t kind;
    bool is_alias;
};

struct sums {
    struct ttm_totals region[TTM_REGION_COUNT];
    uint64_t kernel_bytes[TTM_KERNEL_KIND_COUNT];
};

static struct truth truths[SOAK_PROCESSES][SOAK_ALLOCATORS][TTM_REGION_COUNT][SOAK_IDS];
static struct ttm_process *processes[SOAK_PROCESSES];
static struct ttm_process_counters counters[SOAK_PROCESSES];
static struct sums own_sums[SOAK_PROCESSES][SOAK_DEVICES];
static struct sums all_sums[SOAK_DEVICES];
static uint32_t sets_of[SOAK_ALLOCATORS];
static uint32_t bits_of[SOAK_ALLOCATORS];
static uint32_t truth_lives;

static void add_to(struct sums *sums, const struct truth *t, unsigned region, bool is_birth)
{
    struct ttm_totals *s = &sums->region[region];
    const uint64_t sign = is_birth ? 1 : UINT64_MAX;

    s->count += sign;
    s->bytes += sign * t->bytes;
    s->footprint_bytes += sign * t->footprint_bytes;
    s->births += is_birth;
    if (s->bytes > s->peak_bytes)
        s->peak_bytes = s->bytes;
    if (s->footprint_bytes > s->peak_footprint_bytes)
        s->peak_footprint_bytes = s->footprint_bytes;
    if (region == TTM_REGION_KERNEL)
        sums->kernel_bytes[t->kind] += sign * t->bytes;
}

/* how: 1 birth, 0 replaced or process ended, -1 freed by its owner */
static void apply_truth(unsigned p, const struct truth *t, unsigned region, int how)
{
    truth_lives += how > 0 ? 1u : UINT32_MAX;
    if (t->is_alias)
        return;
    for (unsigned d = 0; d < SOAK_DEVICES; d++) {
        if (!(t->device_bits >> d & 1))
            continue;
        add_to(&own_sums[p][d], t, region, how > 0);
        add_to(&all_sums[d], t, region, how > 0);
        own_sums[p][d].region[region].ends += how < 0;
        all_sums[d].region[region].ends += how < 0;
    }
}

static void soak_birth(unsigned p, uint64_t *seed, uint64_t sequence)
{
    const uint32_t allocator = random_below(seed, SOAK_ALLOCATORS);
    const uint8_t region = (uint8_t)random_below(seed, TTM_REGION_COUNT);
    const uint32_t id = random_below(seed, SOAK_IDS);
    struct truth *t = &truths[p][allocator][region][id];
    const bool was_live = t->sequence != 0;
    const struct truth born = {
        .sequence = sequence,
        .bytes = 1 + random_below(seed, 100000),
        .footprint_bytes = random_below(seed, 200000),
        .device_bits = bits_of[allocator],
        .kind = (uint8_t)(region == TTM_REGION_KERNEL ? random_below(seed, 3) : 0),
        .is_alias = random_below(seed, 8) == 0,
    };
    const struct ttm_birth birth = {
        .id = id,
        .bytes = born.bytes,
        .footprint_bytes = born.footprint_bytes,
        .time_ns = sequence,
        .site = {.allocator = allocator,
                 .device_set = sets_of[allocator],
                 .region = region,
                 .kind = born.kind,
                 .flags = born.is_alias ? TTM_SITE_ALIAS : 0},
    };
    struct ttm_ended replaced;

    assert_int_equal(ttm_registry_birth(reg, processes[p], &birth, &replaced), was_live);
    if (was_live) {
        assert_int_equal(replaced.life.birth_ns, t->sequence);
        apply_truth(p, t, region, 0);
        counters[p].replaced++;
    }
    *t = born;
    apply_truth(p, t, region, 1);
}

static void soak_end(unsigned p, uint64_t *seed)
{
    const uint32_t allocator = random_below(seed, SOAK_ALLOCATORS);
    const uint32_t bits = random_below(seed, 3) == 0 ? 1u << random_below(seed, TTM_REGION_COUNT)
                                                     : random_below(seed, ALL_REGIONS + 1);
    const uint32_t id = random_below(seed, SOAK_IDS);
    struct truth *newest = NULL;
    unsigned region = 0, matches = 0;
    struct ttm_ended ended;

    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        struct truth *t = &truths[p][allocator][r][id];
        if (!(bits >> r & 1) || t->sequence == 0)
            continue;
        matches++;
        if (!newest || t->sequence > newest->sequence) {
            newest = t;
            region = r;
        }
    }
    const int r = ttm_registry_end(reg, processes[p], allocator, bits, id, &ended);
    assert_int_equal(r, matches == 0 ? -ENOENT : matches > 1);
    counters[p].unknown_frees += matches == 0;
    counters[p].ambiguous_frees += matches > 1;
    if (!newest)
        return;
    assert_int_equal(ended.life.birth_ns, newest->sequence);
    assert_int_equal(ended.site.region, region);
    apply_truth(p, newest, region, -1);
    newest->sequence = 0;
}

static void soak_end_process(unsigned p)
{
    struct ttm_departure departure;
    uint64_t lives = 0, bytes = 0;

    for (unsigned a = 0; a < SOAK_ALLOCATORS; a++) {
        for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
            for (unsigned i = 0; i < SOAK_IDS; i++) {
                struct truth *t = &truths[p][a][r][i];
                if (t->sequence == 0)
                    continue;
                lives++;
                bytes += t->is_alias ? 0 : t->bytes;
                apply_truth(p, t, r, 0);
                t->sequence = 0;
            }
        }
    }
    ttm_registry_end_process(reg, processes[p], &departure);
    assert_int_equal(departure.lives, lives);
    assert_int_equal(departure.bytes, bytes);
    processes[p] = new_process((int32_t)p);
    memset(own_sums[p], 0, sizeof(own_sums[p]));
    counters[p] = (struct ttm_process_counters){0};
}

static void assert_soak_state(void)
{
    assert_int_equal(ttm_registry_check(reg), 0);
    assert_int_equal(reg->lives, truth_lives);
    for (uint16_t d = 0; d < SOAK_DEVICES; d++) {
        if (reg->devices[d]) {
            assert_memory_equal(of_all(d)->region, all_sums[d].region, sizeof(all_sums[d].region));
            assert_memory_equal(of_all(d)->kernel_bytes, all_sums[d].kernel_bytes,
                                sizeof(all_sums[d].kernel_bytes));
        }
    }
    for (unsigned p = 0; p < SOAK_PROCESSES; p++) {
        for (uint32_t i = 0; i < processes[p]->device_count; i++) {
            const struct ttm_process_device *device = &processes[p]->devices[i];
            assert_memory_equal(device->totals.region, own_sums[p][device->id].region,
                                sizeof(device->totals.region));
            assert_memory_equal(device->totals.kernel_bytes, own_sums[p][device->id].kernel_bytes,
                                sizeof(device->totals.kernel_bytes));
        }
        assert_int_equal(processes[p]->counters.replaced, counters[p].replaced);
        assert_int_equal(processes[p]->counters.unknown_frees, counters[p].unknown_frees);
        assert_int_equal(processes[p]->counters.ambiguous_frees, counters[p].ambiguous_frees);
    }
}

static void two_hundred_thousand_random_events_agree_with_a_naive_table(void **state)
{
    uint64_t seed = 20240229;
    (void)state;

    memset(truths, 0, sizeof(truths));
    memset(own_sums, 0, sizeof(own_sums));
    memset(all_sums, 0, sizeof(all_sums));
    memset(counters, 0, sizeof(counters));
    truth_lives = 0;
    for (uint32_t a = 0; a < SOAK_DEVICES; a++) {
        sets_of[a] = a;
        bits_of[a] = 1u << a;
    }
    bits_of[8] = 0xff;
    bits_of[9] = 0x2c;
    assert_int_equal(
        ttm_registry_hold_set(reg, proc, (uint16_t[]){0, 1, 2, 3, 4, 5, 6, 7}, 8, &sets_of[8]), 0);
    assert_int_equal(ttm_registry_hold_set(reg, proc, (uint16_t[]){5, 3, 2}, 3, &sets_of[9]), 0);
    for (unsigned p = 0; p < SOAK_PROCESSES; p++)
        processes[p] = new_process((int32_t)p);

    for (uint64_t n = 1; n <= 200000; n++) {
        const unsigned p = random_below(&seed, SOAK_PROCESSES);
        if (random_below(&seed, 4000) == 0)
            soak_end_process(p);
        else if (random_below(&seed, 100) < (n / 20000 % 2 ? 35u : 60u))
            soak_birth(p, &seed, n);
        else
            soak_end(p, &seed);
        if (n % 7 == 0)
            (void)ttm_registry_reclaim(reg);
        if (n % 250 == 0)
            assert_soak_state();
    }
    assert_true(reg->processes_ended > 3);
    assert_true(truth_lives > 100);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* ---- lives that are found by serial ---- */

static void lives_are_found_by_many_serials_at_once(void **state)
{
    uint64_t serials[TTM_FIND_MAX];
    uint32_t refs[TTM_FIND_MAX];
    (void)state;

    proc->has_serials = true;
    for (uint32_t i = 0; i < TTM_FIND_MAX; i++)
        serials[i] = i * 5 + 1;
    ttm_registry_find(proc, serials, TTM_FIND_MAX, refs);
    for (uint32_t i = 0; i < TTM_FIND_MAX; i++)
        assert_int_equal(refs[i], TTM_LIFE_NONE);
    for (uint64_t serial = 1; serial <= 3000; serial += 2) {
        const struct ttm_birth birth = birth_of_serial(serial, 0, TTM_REGION_L1, 100);
        assert_int_equal(give_birth(proc, &birth), 0);
    }
    ttm_registry_find(proc, serials, TTM_FIND_MAX, refs);
    for (uint32_t i = 0; i < TTM_FIND_MAX; i++) {
        if (serials[i] % 2 == 0)
            assert_int_equal(refs[i], TTM_LIFE_NONE);
        else
            assert_int_equal(ttm_life_table_get(&proc->lives, refs[i])->serial, serials[i]);
    }
}

static void a_serial_above_all_others_is_not_found_and_one_below_is(void **state)
{
    const uint64_t serials[] = {10, 11};
    const struct ttm_birth ten = birth_of_serial(10, 0, TTM_REGION_L1, 100);
    uint32_t refs[2];
    (void)state;

    proc->has_serials = true;
    assert_int_equal(give_birth(proc, &ten), 0);
    ttm_registry_find(proc, serials, 2, refs);
    assert_int_not_equal(refs[0], TTM_LIFE_NONE);
    assert_int_equal(refs[1], TTM_LIFE_NONE);
    ttm_registry_find(proc, serials + 1, 1, refs);
    assert_int_equal(refs[0], TTM_LIFE_NONE);
}

static void births_of_one_site_end_at_the_one_that_is_none(void **state)
{
    const struct ttm_birth first = birth_of_serial(1, 0, TTM_REGION_L1, 100);
    struct ttm_life lives[4] = {0};
    (void)state;

    proc->has_serials = true;
    assert_int_equal(give_birth(proc, &first), 0);
    for (uint32_t i = 0; i < 4; i++)
        lives[i] = (struct ttm_life){
            .serial = i + 2, .bytes = 100 + i, .footprint_bytes = 200, .birth_ns = 5 - i};
    lives[2].bytes = TTM_LIFE_BYTES_MAX + 1;
    assert_int_equal(ttm_registry_births(reg, proc, lives, 4), 2);
    assert_int_equal(reg->lives, 3);
    assert_int_equal(proc->bytes, 100 + 100 + 101);
    assert_int_equal(of_all(0)->region[TTM_REGION_L1].peak_bytes, 301);
    assert_int_equal(proc->sites.counts[0].last_ns, 5);
    assert_true(ttm_registry_has_serial(proc, 3));
    assert_false(ttm_registry_has_serial(proc, 4));
    assert_int_equal(ttm_registry_births(reg, proc, lives + 2, 2), 0);
    assert_int_equal(ttm_registry_births(reg, proc, lives + 3, 1), 1);
    assert_int_equal(reg->lives, 4);
}

static void serials_tell_lives_apart_whatever_their_key(void **state)
{
    struct ttm_ended ended;
    (void)state;

    proc->has_serials = true;
    for (uint64_t serial = 1; serial <= 3; serial++) {
        const struct ttm_birth birth = birth_of_serial(serial, 0, TTM_REGION_L1, 100 * serial);
        assert_int_equal(give_birth(proc, &birth), 0);
        assert_int_equal(give_birth(proc, &birth), -EEXIST);
    }
    assert_totals(of_all(0), TTM_REGION_L1, 3, 600, 630);
    assert_int_equal(ttm_registry_end_serial(reg, proc, 2, TTM_END_FREED, &ended), 0);
    assert_int_equal(ended.life.bytes, 200);
    assert_int_equal(ttm_registry_end_serial(reg, proc, 2, TTM_END_FREED, &ended), -ENOENT);
    assert_int_equal(proc->counters.unknown_frees, 0);
    assert_totals(of_all(0), TTM_REGION_L1, 2, 400, 420);
}

static void a_life_that_ended_with_its_device_is_closed_and_not_freed(void **state)
{
    struct ttm_ended ended;
    (void)state;

    proc->has_serials = true;
    for (uint64_t serial = 1; serial <= 3; serial++) {
        const struct ttm_birth birth = birth_of_serial(serial, 4, TTM_REGION_DRAM, 100 * serial);
        assert_int_equal(give_birth(proc, &birth), 0);
    }
    assert_int_equal(ttm_registry_end_serial(reg, proc, 1, TTM_END_CLOSED, &ended), 0);
    assert_int_equal(ttm_registry_end_serial(reg, proc, 2, TTM_END_FREED, &ended), 0);
    assert_int_equal(ttm_registry_end_serial(reg, proc, 3, TTM_END_REPLACED, &ended), 0);
    const struct ttm_device_totals *both[] = {of_all(4), of_process(proc, 4)};
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        const struct ttm_totals *t = &both[i]->region[TTM_REGION_DRAM];
        assert_int_equal(t->count, 0);
        assert_int_equal(t->births, 3);
        assert_int_equal(t->ends, 1);
        assert_int_equal(t->closed_count, 1);
        assert_int_equal(t->closed_bytes, 100);
        assert_int_equal(t->closed_footprint_bytes, 110);
    }
    assert_int_equal(proc->counters.replaced, 1);
    assert_int_equal(reg->ends, 1);
}

static void an_alias_that_is_closed_adds_nothing_there_either(void **state)
{
    struct ttm_birth birth = birth_of_serial(1, 0, TTM_REGION_L1, 64);
    struct ttm_ended ended;
    (void)state;

    proc->has_serials = true;
    birth.site.flags = TTM_SITE_ALIAS;
    assert_int_equal(give_birth(proc, &birth), 0);
    assert_int_equal(ttm_registry_end_serial(reg, proc, 1, TTM_END_CLOSED, &ended), 0);
    assert_int_equal(of_all(0)->region[TTM_REGION_L1].closed_count, 0);
}

static void forgotten_lives_are_gone_and_peaks_and_counts_stay(void **state)
{
    struct ttm_process *other = new_process(101);
    struct ttm_snapshot *snap;
    (void)state;

    proc->has_serials = other->has_serials = true;
    ttm_device_set_board(ttm_registry_device(reg, 0), "n150");
    for (uint64_t serial = 1; serial <= 5000; serial++) {
        const struct ttm_birth birth =
            birth_of_serial(serial, 0, (uint8_t)(serial % TTM_REGION_COUNT), 10);
        assert_int_equal(give_birth(proc, &birth), 0);
    }
    const struct ttm_birth stays = birth_of_serial(1, 0, TTM_REGION_DRAM, 77);
    assert_int_equal(give_birth(other, &stays), 0);
    const uint64_t peak = of_process(proc, 0)->region[TTM_REGION_DRAM].peak_bytes;
    const uint64_t births = of_process(proc, 0)->region[TTM_REGION_DRAM].births;
    snap = ttm_snapshot_take(reg, 1); /* shares the lives that are forgotten */
    assert_non_null(snap);

    ttm_registry_forget_lives(reg, proc);
    assert_int_equal(reg->lives, 1);
    assert_int_equal(proc->lives.store.live, 0);
    assert_int_equal(proc->bytes, 0);
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
        assert_totals(of_process(proc, 0), r, 0, 0, 0);
    assert_totals(of_all(0), TTM_REGION_DRAM, 1, 77, 87);
    assert_int_equal(of_process(proc, 0)->kernel_bytes[0], 0);
    assert_int_equal(of_process(proc, 0)->region[TTM_REGION_DRAM].peak_bytes, peak);
    assert_int_equal(of_process(proc, 0)->region[TTM_REGION_DRAM].births, births);
    assert_int_equal(of_process(proc, 0)->region[TTM_REGION_DRAM].ends, 0);
    assert_int_equal(ttm_registry_check(reg), 0);
    ttm_snapshot_free(snap);

    /* It begins anew, with serials that it had before too. */
    const struct ttm_birth again = birth_of_serial(1, 0, TTM_REGION_L1, 5);
    assert_int_equal(give_birth(proc, &again), 0);
    assert_totals(of_process(proc, 0), TTM_REGION_L1, 1, 5, 15);
    ttm_registry_forget_lives(reg, proc);
    ttm_registry_forget_lives(reg, proc); /* nothing left to forget */
    assert_int_equal(ttm_registry_check(reg), 0);
}

/* Each of a thousand serials is live or not, as of 'born'; sums are those of a table of our own. */
#define SUMMED_SERIALS 1000
#define SUMMED_ORIGINS 7

struct summed {
    struct ttm_birth born[SUMMED_SERIALS]; /* 'bytes' is 0 where nothing is live */
    uint64_t ends[SUMMED_ORIGINS];
};

static void assert_site_sums(const struct summed *truth)
{
    for (uint32_t i = 0; i < proc->sites.count; i++) {
        const struct ttm_site *site = ttm_site_table_get(&proc->sites, i);
        const struct ttm_site_counts *counts = &proc->sites.counts[i];
        uint64_t live = 0, bytes = 0, footprint = 0;
        for (size_t s = 0; s < SUMMED_SERIALS; s++) {
            const struct ttm_birth *birth = &truth->born[s];
            if (birth->bytes == 0 || birth->site.origin != site->origin ||
                birth->site.region != site->region || birth->site.device_set != site->device_set)
                continue;
            live++;
            bytes += birth->bytes;
            footprint += birth->footprint_bytes;
            assert_true(counts->first_ns <= birth->time_ns && birth->time_ns <= counts->last_ns);
        }
        assert_int_equal(counts->live, live);
        assert_int_equal(counts->bytes, bytes);
        assert_int_equal(counts->footprint_bytes, footprint);
    }
    for (uint32_t origin = 0; origin < SUMMED_ORIGINS; origin++) {
        uint64_t ends = 0;
        for (uint32_t i = 0; i < proc->sites.count; i++)
            ends += proc->sites.sites[i].origin == origin ? proc->sites.counts[i].ends : 0;
        assert_int_equal(ends, truth->ends[origin]);
    }
}

static void change_one(struct summed *truth, uint64_t *seed, uint64_t now_ns)
{
    const uint64_t serial = random_below(seed, SUMMED_SERIALS);
    struct ttm_birth *birth = &truth->born[serial];
    const uint32_t origin = random_below(seed, SUMMED_ORIGINS);
    struct ttm_ended ended;

    if (birth->bytes == 0) {
        *birth = birth_of_serial(serial + 1, (uint16_t)random_below(seed, 3),
                                 (uint8_t)random_below(seed, 3), 1 + random_below(seed, 999));
        birth->site.origin = origin;
        /* One that is told may have been born long before. */
        birth->time_ns = random_below(seed, 4) == 0 ? random_below(seed, 1000) : now_ns;
        assert_int_equal(give_birth(proc, birth), 0);
    } else if (random_below(seed, 4) == 0) {
        assert_int_equal(ttm_registry_set_origin(reg, proc, serial + 1, origin), 0);
        birth->site.origin = origin;
    } else {
        const enum ttm_end how = (enum ttm_end)random_below(seed, 3);
        assert_int_equal(ttm_registry_end_serial(reg, proc, serial + 1, how, &ended), 0);
        truth->ends[birth->site.origin] += how == TTM_END_FREED;
        birth->bytes = 0;
    }
}

static void the_sums_of_sites_are_those_of_their_lives_after_anything(void **state)
{
    static struct summed truth;
    uint64_t seed = 2024;
    (void)state;

    truth = (struct summed){0};
    proc->has_serials = true;
    for (uint64_t step = 0; step < 20000; step++) {
        change_one(&truth, &seed, 1000 + step);
        if (step % 5000 == 4321) { /* tracking was off: nothing is known any more */
            ttm_registry_forget_lives(reg, proc);
            for (size_t s = 0; s < SUMMED_SERIALS; s++)
                truth.born[s].bytes = 0;
        }
        if (step % 500 == 0 || step % 5000 == 4321) {
            assert_site_sums(&truth);
            assert_int_equal(ttm_registry_check(reg), 0);
        }
    }
    assert_site_sums(&truth);
}

static void a_site_that_held_nothing_has_its_first_birth_anew(void **state)
{
    struct ttm_birth birth = birth_of_serial(1, 0, TTM_REGION_L1, 100);
    struct ttm_ended ended;
    (void)state;

    proc->has_serials = true;
    birth.time_ns = 50;
    assert_int_equal(give_birth(proc, &birth), 0);
    birth.serial = 2;
    birth.time_ns = 70;
    assert_int_equal(give_birth(proc, &birth), 0);
    assert_int_equal(ttm_registry_end_serial(reg, proc, 1, TTM_END_FREED, &ended), 0);
    assert_int_equal(proc->sites.counts[0].first_ns, 50); /* not known better */
    assert_int_equal(ttm_registry_end_serial(reg, proc, 2, TTM_END_FREED, &ended), 0);
    birth.serial = 3;
    birth.time_ns = 90;
    assert_int_equal(give_birth(proc, &birth), 0);
    assert_int_equal(proc->sites.counts[0].first_ns, 90);
    assert_int_equal(proc->sites.counts[0].last_ns, 90);
    assert_int_equal(proc->sites.counts[0].births, 3);
    assert_int_equal(proc->sites.counts[0].ends, 2);
}

static const struct ttm_site_counts *counts_of_origin(uint32_t origin)
{
    for (uint32_t i = 0; i < proc->sites.count; i++) {
        if (ttm_site_table_get(&proc->sites, i)->origin == origin)
            return &proc->sites.counts[i];
    }
    fail_msg("no site of origin %u", origin);
    return NULL;
}

static void another_origin_moves_the_birth_and_changes_no_total(void **state)
{
    struct ttm_ended ended;
    (void)state;

    proc->has_serials = true;
    for (uint64_t serial = 1; serial <= 3; serial++) {
        const struct ttm_birth birth = birth_of_serial(serial, 0, TTM_REGION_L1, 100);
        assert_int_equal(give_birth(proc, &birth), 0);
    }
    assert_int_equal(ttm_registry_set_origin(reg, proc, 2, 1024), 0);
    assert_int_equal(ttm_registry_set_origin(reg, proc, 9, 1024), -ENOENT);
    assert_int_equal(counts_of_origin(0)->births, 2);
    assert_int_equal(counts_of_origin(1024)->births, 1);
    assert_totals(of_all(0), TTM_REGION_L1, 3, 300, 330);
    assert_int_equal(ttm_registry_set_origin(reg, proc, 2, 1024), 0); /* the same once more */
    assert_int_equal(counts_of_origin(1024)->births, 1);
    assert_int_equal(ttm_registry_end_serial(reg, proc, 2, TTM_END_FREED, &ended), 0);
    assert_int_equal(ended.site.origin, 1024);
    assert_int_equal(counts_of_origin(1024)->ends, 1);
    assert_int_equal(counts_of_origin(0)->ends, 0);
    assert_int_equal(ttm_registry_check(reg), 0);
}

static void a_snapshot_keeps_the_origin_that_a_life_had(void **state)
{
    const struct ttm_birth birth = birth_of_serial(1, 0, TTM_REGION_L1, 100);
    uint64_t at = 0;
    (void)state;

    proc->has_serials = true;
    assert_int_equal(give_birth(proc, &birth), 0);
    struct ttm_life_view view;
    assert_int_equal(ttm_life_view_take(&proc->lives.store, &view), 0);
    assert_int_equal(ttm_registry_set_origin(reg, proc, 1, 1024), 0);
    const struct ttm_life *before = ttm_life_view_next(&view, &at);
    assert_non_null(before);
    assert_int_equal(ttm_site_table_get(&proc->sites, before->site)->origin, 0);
    assert_true(ttm_life_view_release(&view, UINT32_MAX));
}

/* ---- what programs say of devices ---- */

static struct ttm_device_note note_of(uint16_t id)
{
    struct ttm_device_note note = {.id = id, .arch = TTM_ARCH_WORMHOLE_B0, .core_count = 64};

    note.bank_bytes[TTM_REGION_DRAM] = 1 << 20;
    note.bank_count[TTM_REGION_DRAM] = 12;
    return note;
}

static void what_a_process_says_of_a_device_holds_over_what_a_board_has(void **state)
{
    struct ttm_device *device = ttm_registry_device(reg, 0);
    struct ttm_device_note note = note_of(0);
    (void)state;

    ttm_device_set_board(device, "n150");
    const uint64_t l1 = device->capacity_bytes[TTM_REGION_L1];
    assert_true(l1 > 0);
    note.asic_id = 0x1234;
    note.core_count = 56;
    ttm_device_set_note(device, &note);
    assert_int_equal(device->capacity_bytes[TTM_REGION_DRAM], 12 << 20);
    assert_int_equal(device->bank_count[TTM_REGION_DRAM], 12);
    assert_int_equal(device->capacity_bytes[TTM_REGION_L1], l1); /* it says nothing of that */
    assert_int_equal(device->core_count, 56);
    assert_true(device->asic_id == 0x1234);
    assert_string_equal(device->board, "n150");

    const struct ttm_device_note silent = {.id = 0};
    ttm_device_set_note(device, &silent);
    assert_int_equal(device->core_count, 56);
    assert_int_equal(device->arch, TTM_ARCH_WORMHOLE_B0);
    assert_int_equal(device->capacity_bytes[TTM_REGION_DRAM], 12 << 20);
}

/* As the server does with a note. Returns whether it holds. */
static bool describe(struct ttm_process *by, uint32_t cores)
{
    struct ttm_device *device = ttm_registry_device(reg, 0);
    struct ttm_device_note note = note_of(0);

    assert_int_equal(ttm_registry_know_device(reg, by, 0), 0);
    if (!ttm_registry_may_describe(device, by))
        return false;
    note.core_count = cores;
    ttm_device_set_note(device, &note);
    return true;
}

static void a_device_is_described_by_one_user_and_by_root(void **state)
{
    struct ttm_process *first = new_process_of(1000), *same = new_process_of(1000);
    struct ttm_process *other = new_process_of(1001), *owner = new_process_of(1002);
    struct ttm_departure departure;
    (void)state;

    assert_true(describe(first, 10));
    assert_true(describe(first, 11));
    assert_true(describe(same, 12)); /* of the same user */
    assert_false(describe(other, 13));
    assert_int_equal(reg->devices[0]->core_count, 12);
    assert_true(describe(proc, 14)); /* root's */
    assert_false(describe(first, 15));
    assert_false(describe(other, 16));
    assert_int_equal(reg->devices[0]->core_count, 14);

    ttm_registry_end_process(reg, proc, &departure);
    assert_int_equal(reg->devices[0]->core_count, 14); /* until somebody says better */
    assert_true(describe(other, 17));
    assert_false(describe(first, 18));
    ttm_registry_end_process(reg, first, &departure); /* not the one that described it last */
    assert_false(describe(same, 19));
    assert_int_equal(reg->devices[0]->core_count, 17);
    ttm_registry_end_process(reg, other, &departure);
    assert_true(describe(same, 20));

    ttm_registry_end_process(reg, owner, &departure);
    ttm_registry_set_owner(reg, 1002); /* whoever runs the server */
    owner = new_process_of(1002);
    assert_true(describe(owner, 21));
    assert_int_equal(reg->devices[0]->core_count, 21);
    proc = owner;
}

static void a_capacity_that_no_device_has_is_not_believed(void **state)
{
    static const struct {
        uint64_t bytes;
        uint32_t count;
    } lies[] = {{UINT64_MAX, 2}, {UINT64_MAX, UINT32_MAX}, {1ull << 40, 2}, {0, 5}, {5, 0}};
    struct ttm_device *device = ttm_registry_device(reg, 0);
    struct ttm_device_note note = note_of(0);
    (void)state;

    ttm_device_set_note(device, &note);
    for (size_t i = 0; i < COUNT_OF(lies); i++) {
        note.bank_bytes[TTM_REGION_DRAM] = lies[i].bytes;
        note.bank_count[TTM_REGION_DRAM] = lies[i].count;
        ttm_device_set_note(device, &note);
        assert_int_equal(device->capacity_bytes[TTM_REGION_DRAM], 12 << 20);
        assert_int_equal(device->bank_count[TTM_REGION_DRAM], 12);
    }
}

static void a_device_whose_board_a_program_told_goes_with_the_last_program(void **state)
{
    struct ttm_device_note note = note_of(6);
    struct ttm_departure departure;
    (void)state;

    memcpy(note.board, "n150", 5);
    assert_int_equal(ttm_registry_know_device(reg, proc, 6), 0);
    ttm_device_set_note(ttm_registry_device(reg, 6), &note);
    assert_string_equal(reg->devices[6]->board, "n150");
    ttm_registry_end_process(reg, proc, &departure);
    assert_null(reg->devices[6]);
    assert_int_equal(reg->device_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lives_are_found_by_many_serials_at_once),
        TEST(a_serial_above_all_others_is_not_found_and_one_below_is),
        TEST(births_of_one_site_end_at_the_one_that_is_none),
        TEST(serials_tell_lives_apart_whatever_their_key),
        TEST(a_life_that_ended_with_its_device_is_closed_and_not_freed),
        TEST(an_alias_that_is_closed_adds_nothing_there_either),
        TEST(forgotten_lives_are_gone_and_peaks_and_counts_stay),
        TEST(the_sums_of_sites_are_those_of_their_lives_after_anything),
        TEST(a_site_that_held_nothing_has_its_first_birth_anew),
        TEST(another_origin_moves_the_birth_and_changes_no_total),
        TEST(a_snapshot_keeps_the_origin_that_a_life_had),
        TEST(what_a_process_says_of_a_device_holds_over_what_a_board_has),
        TEST(a_device_is_described_by_one_user_and_by_root),
        TEST(a_capacity_that_no_device_has_is_not_believed),
        TEST(a_device_whose_board_a_program_told_goes_with_the_last_program),
        TEST(a_new_registry_knows_nothing),
        TEST(a_birth_is_counted_for_its_process_and_for_all),
        TEST(an_end_takes_out_what_the_birth_put_in_and_tells_of_it),
        TEST(an_end_of_something_unknown_is_counted_and_changes_nothing),
        TEST(a_second_end_of_the_same_life_is_unknown),
        TEST(an_id_born_again_while_live_ends_the_old_life_as_replaced),
        TEST(a_replaced_life_on_other_devices_leaves_those),
        TEST(the_key_is_process_allocator_region_and_id),
        TEST(kind_devices_and_alias_are_no_part_of_the_key),
        TEST(an_end_that_several_regions_match_ends_the_newest_and_is_ambiguous),
        TEST(a_life_born_again_is_the_newest),
        TEST(an_end_in_one_region_leaves_the_same_id_in_the_others),
        TEST(a_life_on_a_mesh_is_counted_once_on_each_of_its_devices),
        TEST(an_alias_is_a_life_that_adds_nothing),
        TEST(an_alias_may_outlive_its_owner),
        TEST(kernels_are_summed_by_kind),
        TEST(other_regions_do_not_count_as_kernels),
        TEST(the_peak_is_the_most_there_ever_was_at_once),
        TEST(held_peaks_do_not_rise_until_the_sums_are_exact_again),
        TEST(peaks_of_devices_rise_again_while_one_process_never_becomes_exact),
        TEST(the_peaks_of_a_process_begin_anew_and_those_of_devices_stay),
        TEST(the_peak_of_a_known_device_outlives_the_process),
        TEST(a_device_that_only_programs_named_goes_with_the_last_of_them),
        TEST(one_process_cannot_take_all_lives_there_may_be),
        TEST(sizes_that_no_device_has_are_refused_and_change_nothing),
        TEST(regions_kinds_and_device_sets_that_are_none_are_refused),
        TEST(a_refused_birth_does_not_end_the_life_of_its_key),
        TEST(devices_are_0_to_1023_and_no_others),
        TEST(a_device_is_made_known_once),
        TEST(a_board_or_an_architecture_fills_in_capacities),
        TEST(an_architecture_without_a_board_is_known_without_capacities),
        TEST(the_end_of_a_process_withdraws_exactly_its_own),
        TEST(a_departure_counts_a_life_on_a_mesh_once),
        TEST(a_departure_leaves_out_parts_of_programs),
        TEST(a_process_that_held_nothing_ends_quietly),
        TEST(memory_of_an_ended_process_goes_in_slices),
        TEST(a_process_ends_also_when_memory_is_short),
        TEST(short_memory_refuses_a_birth_and_changes_nothing),
        TEST(a_client_cannot_choose_ids_that_share_a_bucket),
        TEST(a_million_lives_take_64_bytes_each_and_give_them_back),
        TEST(two_hundred_thousand_random_events_agree_with_a_naive_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
