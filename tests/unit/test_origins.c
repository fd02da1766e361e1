/* SPDX-License-Identifier: Apache-2.0 */
#include "dashboard_testing.h"

#include "dashboard/origins.h"

static struct ttm_origins origins;
static struct ttm_bank bank;

static int tear_down(void **state)
{
    (void)state;
    ttm_origins_done(&origins);
    ttm_bank_done(&bank);
    return 0;
}

static void lives_are_added_up_by_origin_and_region_largest_first(void **state)
{
    const struct ttm_origins_source source = make_lives();
    (void)state;

    assert_int_equal(ttm_origins_build(&origins, &source), 0);
    assert_int_equal(origins.count, 3);
    assert_int_equal(origins.live_count, 5); /* the alias is none of them */
    const struct ttm_origin_group *first = &origins.groups[0], *second = &origins.groups[1];
    assert_string_equal(first->where, "decode.py:28 cache_kv in decode");
    assert_string_equal(first->operation, "ttnn.zeros");
    assert_string_equal(first->devices, "0,1");
    assert_int_equal(first->count, 3);
    assert_int_equal(first->used_bytes, 4 * 0x40000);
    assert_int_equal(first->requested_bytes, 4 * 0x40000 - 3 * 24);
    assert_int_equal(first->held_ns, 90 * TTM_NS_PER_S);
    assert_string_equal(second->where, "\"weights\"");
    assert_string_equal(second->devices, "0");
    assert_string_equal(origins.groups[2].where, "not told by the program");
}

/* The same sites as sums, which come without lives: the alias has one too. */
static struct ttm_origins_source make_sums(void)
{
    struct ttm_origins_source source = make_lives();

    for (size_t i = 0; i < made_process.live_count; i++) {
        const struct ttm_life_row *life = &made_lives[i];
        struct ttm_site_sum *sum = &made_sites[life->site].sum;
        made_sites[life->site].has_sum = true;
        sum->live++;
        sum->bytes += life->bytes;
        sum->footprint_bytes += life->footprint_bytes;
        sum->first_age_ns = life->age_ns > sum->first_age_ns ? life->age_ns : sum->first_age_ns;
    }
    made_process.live_count = 0;
    source.is_partial = true;
    source.lives = NULL;
    source.lives_count = 0;
    return source;
}

static void sums_of_sites_make_the_same_groups_as_their_lives(void **state)
{
    struct ttm_origins of_lives = {0};
    struct ttm_origins_source source = make_lives();
    (void)state;

    assert_int_equal(ttm_origins_build(&of_lives, &source), 0);
    source = make_sums();
    assert_int_equal(ttm_origins_build(&origins, &source), 0);
    assert_int_equal(origins.count, 3);
    assert_int_equal(origins.live_count, of_lives.live_count);
    for (size_t i = 0; i < origins.count; i++)
        assert_memory_equal(&origins.groups[i], &of_lives.groups[i], sizeof(origins.groups[i]));
    ttm_origins_done(&of_lives);
}

/* Starts are told in nanoseconds: those of siblings may differ by one, just as their pids do. */
static void siblings_of_one_moment_stay_apart(void **state)
{
    struct ttm_origins_source source = make_sums();
    struct ttm_answer_process siblings[2] = {made_process, made_process};
    (void)state;

    siblings[0].row.pid = 4242;
    siblings[0].row.start_ns = 1700000000000000000;
    siblings[1].row.pid = 4243;
    siblings[1].row.start_ns = 1700000000000000001;
    made_answer.processes = siblings;
    made_answer.process_count = 2;
    assert_int_equal(ttm_origins_build(&origins, &source), 0);
    assert_int_equal(origins.count, 6);
}

static void a_site_that_holds_nothing_makes_no_group(void **state)
{
    const struct ttm_origins_source source = make_sums();
    (void)state;

    made_sites[1].sum = (struct ttm_site_sum){0};
    made_answer.left_out.sites = 5;
    assert_int_equal(ttm_origins_build(&origins, &source), 0);
    assert_int_equal(origins.count, 2);
    assert_int_equal(origins.left_out, 5);
}

/* Lives of a closer look come in another answer, in which processes and origins have other places. */
static struct ttm_answer_process closer_process;
static struct ttm_answer closer_answer;

static struct ttm_origins_source make_closer(void)
{
    struct ttm_origins_source source = make_sums();

    closer_process = made_process;
    closer_process.live_count = 6;
    closer_answer = (struct ttm_answer){.processes = &closer_process, .process_count = 1};
    source.lives = &closer_answer;
    source.lives_count = 1;
    source.has_look = true;
    source.look = (struct ttm_closer_look){
        .region = TTM_REGION_L1, .origin_region = TTM_REGION_L1, .pid = 4242, .origin = 7};
    return source;
}

static void a_detail_waits_for_the_lives_of_its_origin(void **state)
{
    struct ttm_origins_source source = make_sums();
    struct ttm_origin_detail detail;
    (void)state;

    assert_int_equal(ttm_origins_build(&origins, &source), 0);
    ttm_origins_detail(&source, &origins.groups[0], &detail);
    assert_false(detail.is_told);
    assert_int_equal(detail.live_count, 0);
    assert_string_equal(detail.origin->operation, "ttnn.zeros"); /* what the sums tell of it */

    source = make_closer();
    ttm_origins_detail(&source, &origins.groups[0], &detail);
    assert_true(detail.is_told);
    assert_int_equal(detail.live_count, 3);
    assert_int_equal(detail.seen_count, 3);
    assert_int_equal(detail.youngest_ns, 30 * TTM_NS_PER_S);
    assert_int_equal(detail.oldest_ns, 90 * TTM_NS_PER_S);
    assert_int_equal(detail.left_out, 0);
    closer_answer.left_out.lives = 9;
    ttm_origins_detail(&source, &origins.groups[0], &detail);
    assert_int_equal(detail.left_out, 9);
    ttm_origins_detail(&source, &origins.groups[1], &detail); /* it is another */
    assert_false(detail.is_told);
    closer_process.row.start_ns++; /* the pid is another process's now */
    ttm_origins_detail(&source, &origins.groups[0], &detail);
    assert_int_equal(detail.live_count, 0);
}

static void lives_grow_older_with_the_sums(void **state)
{
    struct ttm_origins_source source = make_closer();
    struct ttm_origin_detail detail;
    (void)state;

    assert_int_equal(ttm_origins_build(&origins, &source), 0);
    made_answer.moment.uptime_ns = 100 * TTM_NS_PER_S;
    closer_answer.moment.uptime_ns = 93 * TTM_NS_PER_S;
    ttm_origins_detail(&source, &origins.groups[0], &detail);
    assert_int_equal(detail.youngest_ns, 37 * TTM_NS_PER_S);
    assert_int_equal(detail.lives[0].age_ns, 37 * TTM_NS_PER_S);
    assert_int_equal(detail.oldest_ns, 97 * TTM_NS_PER_S);
    closer_answer.moment.uptime_ns = 101 * TTM_NS_PER_S; /* they are newer than the sums */
    ttm_origins_detail(&source, &origins.groups[0], &detail);
    assert_int_equal(detail.youngest_ns, 30 * TTM_NS_PER_S);
}

static void a_closer_look_is_the_same_until_a_life_of_it_changes(void **state)
{
    const struct ttm_origins_source source = make_closer();
    struct ttm_closer_look look = source.look;
    uint16_t numbers[TTM_DEVICE_COUNT] = {[0] = 5, [1] = 3};
    (void)state;

    const uint64_t print = ttm_closer_look_print(&look, &made_answer, NULL);
    assert_int_not_equal(print, 0);
    assert_int_equal(ttm_closer_look_print(&look, &made_answer, NULL), print);
    made_sites[1].births++; /* in DRAM, and of another origin */
    assert_int_equal(ttm_closer_look_print(&look, &made_answer, NULL), print);
    look.region = TTM_REGION_DRAM;
    const uint64_t in_dram = ttm_closer_look_print(&look, &made_answer, NULL);
    made_sites[1].births++;
    assert_int_not_equal(ttm_closer_look_print(&look, &made_answer, NULL), in_dram);
    look.region = TTM_REGION_L1;
    made_sites[2].births++; /* of another origin, on the bank */
    assert_int_not_equal(ttm_closer_look_print(&look, &made_answer, NULL), print);
    made_sites[2].births--;
    made_sites[0].births++; /* one ends and one is born */
    made_sites[0].ends++;
    assert_int_not_equal(ttm_closer_look_print(&look, &made_answer, NULL), print);
    made_sites[0].births--;
    made_sites[0].ends--;
    assert_int_equal(ttm_closer_look_print(&look, &made_answer, NULL), print);
    look.device = 5; /* which is the same device by the driver's number */
    assert_int_equal(ttm_closer_look_print(&look, &made_answer, numbers), print);
    made_process.row.start_ns++; /* the pid is another process's now */
    assert_int_not_equal(ttm_closer_look_print(&look, &made_answer, numbers), print);
    made_answer.left_out.sites = 1;
    assert_int_equal(ttm_closer_look_print(&look, &made_answer, numbers), 0);
}

static void a_bank_waits_for_the_lives_that_lie_in_it(void **state)
{
    struct ttm_origins_source source = make_sums();
    (void)state;

    assert_false(ttm_origins_has_bank(&source, 0, TTM_REGION_L1));
    source = make_closer();
    assert_true(ttm_origins_has_bank(&source, 0, TTM_REGION_L1));
    assert_false(ttm_origins_has_bank(&source, 1, TTM_REGION_L1));
    assert_false(ttm_origins_has_bank(&source, 0, TTM_REGION_DRAM));
    closer_answer.left_out.lives = 9;
    assert_int_equal(ttm_bank_build(&bank, &source, 0, TTM_REGION_L1), 0);
    assert_int_equal(bank.count, 4);
    assert_int_equal(bank.bank_count, 4); /* known from the sums' answer */
    assert_int_equal(bank.left_out, 9);
}

static void a_key_stays_from_answer_to_answer(void **state)
{
    const struct ttm_origins_source source = make_lives();
    (void)state;

    assert_int_equal(ttm_origins_build(&origins, &source), 0);
    const uint64_t key = origins.groups[0].key;
    made_lives[0].footprint_bytes = 64; /* and so the weights come first */
    made_lives[2].footprint_bytes = 64;
    assert_int_equal(ttm_origins_build(&origins, &source), 0);
    assert_true(origins.groups[0].key != key);
    assert_string_equal(ttm_origins_find(&origins, key)->operation, "ttnn.zeros");
}

static void a_choice_of_devices_leaves_the_others_out(void **state)
{
    struct ttm_origins_source source = make_lives();
    (void)state;

    source.devices = (struct ttm_device_filter){0};
    ttm_device_filter_add(&source.devices, 1);
    assert_int_equal(ttm_origins_build(&origins, &source), 0);
    assert_int_equal(origins.count, 1);
    assert_string_equal(origins.groups[0].devices, "1");
}

static void devices_have_the_numbers_of_the_driver(void **state)
{
    struct ttm_origins_source source = make_lives();
    uint16_t numbers[TTM_DEVICE_COUNT] = {[0] = 5, [1] = 3};
    (void)state;

    source.numbers = numbers;
    assert_int_equal(ttm_origins_build(&origins, &source), 0);
    assert_string_equal(origins.groups[0].devices, "3,5");
    assert_int_equal(origins.groups[0].first_device, 3);
    assert_int_equal(ttm_bank_build(&bank, &source, 3, TTM_REGION_L1), 0);
    assert_int_equal(bank.count, 3); /* that on the other device is none of them */
}

static void who_may_not_be_seen_is_counted(void **state)
{
    const struct ttm_origins_source source = make_lives();
    (void)state;

    made_process.row.has_lives = false;
    made_process.live_count = 0;
    assert_int_equal(ttm_origins_build(&origins, &source), 0);
    assert_int_equal(origins.count, 0);
    assert_int_equal(origins.hidden_count, 1);
}

static void a_detail_has_sizes_and_the_youngest_first(void **state)
{
    const struct ttm_origins_source source = make_lives();
    struct ttm_origin_detail detail;
    (void)state;

    assert_int_equal(ttm_origins_build(&origins, &source), 0);
    ttm_origins_detail(&source, &origins.groups[0], &detail);
    assert_ptr_equal(detail.origin, &made_origins[0]);
    assert_int_equal(detail.live_count, 3);
    assert_int_equal(detail.lives[0].address, 0x140000);
    assert_int_equal(detail.lives[2].address, 0x100000);
    assert_int_equal(detail.size_count, 2);
    assert_int_equal(detail.sizes[0].count, 2);
    assert_int_equal(detail.sizes[0].bytes, 4 * 0x10000 - 24);
}

static void callers_tell_helpers_apart_and_are_bounded(void **state)
{
    const struct ttm_origins_source source = make_lives();
    (void)state;

    made_origins[0].python =
        (char *)"a.py:1:new\nb.py:22:load\nc.py:333:main\nodd\nd.py:4:x\ne.py:5:y";
    made_origins[1].python = (char *)"";
    made_origins[1].name = (char *)"";
    made_origins[1].native = (char *)"/usr/lib/libfoo.so+0x12\n/lib/libc.so+0x1";
    assert_int_equal(ttm_origins_build(&origins, &source), 0);
    assert_string_equal(origins.groups[0].where, "a.py:1 new in decode");
    assert_string_equal(origins.groups[0].callers, "← load:22 ← main:333 ← x:4");
    assert_string_equal(origins.groups[1].where, "libfoo.so+0x12");
    assert_string_equal(origins.groups[1].callers, "");
}

static void a_bank_of_l1_is_drawn_down_from_its_highest_address(void **state)
{
    const struct ttm_origins_source source = make_lives();
    (void)state;

    assert_int_equal(ttm_bank_build(&bank, &source, 0, TTM_REGION_L1), 0);
    assert_true(bank.has_size);
    assert_int_equal(bank.bank_count, 4);
    assert_int_equal(bank.bank_bytes, MIB);
    assert_int_equal(bank.end, 0x188000); /* the end of the highest block */
    assert_int_equal(bank.begin, 0x188000 - MIB);
    assert_int_equal(bank.free_bytes, MIB - 0x10000 - 0x10000 - 0x20000 - 0x8000);
    assert_int_equal(bank.largest_free_bytes, 0x100000 - (0x188000 - MIB));
    assert_int_equal(bank.blocks[0].address, 0x100000);
    const uint64_t key = bank.blocks[0].key;
    struct ttm_bank_share share = ttm_bank_share(&bank, 0x10f000, 0x118000, key);
    assert_int_equal(share.own_bytes, 0x1000);
    assert_int_equal(share.other_bytes, 0);
    share = ttm_bank_share(&bank, 0, UINT64_MAX, key);
    assert_int_equal(share.own_bytes, 0x40000);
    assert_int_equal(share.other_bytes, 0x8000);
    share = ttm_bank_share(&bank, 0x110000, 0x120000, key);
    assert_int_equal(share.own_bytes + share.other_bytes, 0);
    uint64_t begin, end;
    assert_true(ttm_bank_extent(&bank, &begin, &end));
    assert_int_equal(begin, 0x100000);
    assert_int_equal(end, 0x188000);
}

static void a_bank_of_dram_begins_at_nought_where_it_fits(void **state)
{
    const struct ttm_origins_source source = make_lives();
    (void)state;

    assert_int_equal(ttm_bank_build(&bank, &source, 0, TTM_REGION_DRAM), 0);
    assert_int_equal(bank.begin, 0);
    assert_int_equal(bank.end, MIB);
    assert_int_equal(bank.free_bytes, MIB - 0x40000);
}

static void neighbours_of_one_origin_are_one_block(void **state)
{
    const struct ttm_origins_source source = make_lives();
    const uint64_t step = 0x10000; /* in this bank; there are four */
    (void)state;

    made_process.live_count = 0;
    make_life(0, 0x140000, 4 * step, 9);
    make_life(0, 0x140000 + step, 4 * step, 8); /* above */
    make_life(0, 0x140000 - step, 4 * step, 7); /* and below */
    make_life(0, 0x140000 + 4 * step, 4 * step, 6);
    make_life(2, 0x140000 + 5 * step, 4 * step, 5); /* beside it, of another origin */
    assert_int_equal(ttm_bank_build(&bank, &source, 0, TTM_REGION_L1), 0);
    assert_int_equal(bank.count, 3);
    assert_int_equal(bank.blocks[0].address, 0x140000 - step);
    assert_int_equal(bank.blocks[0].bytes, 3 * step);
    assert_int_equal(bank.blocks[1].bytes, step);
    assert_int_equal(bank.free_bytes, MIB - 5 * step);
    const struct ttm_bank_share share = ttm_bank_share(&bank, 0, UINT64_MAX, bank.blocks[0].key);
    assert_int_equal(share.own_bytes, 4 * step);
    assert_int_equal(share.other_bytes, step);
}

static void blocks_are_in_order_whatever_the_order_of_lives(void **state)
{
    static struct ttm_life_row many[300];
    const struct ttm_origins_source source = make_lives();
    uint64_t random = 4711;
    (void)state;

    /* Runs up, runs down, and none at all; two in three bytes are free, so nothing touches. */
    for (unsigned kind = 0; kind < 3; kind++) {
        for (size_t i = 0; i < COUNT_OF(many); i++) {
            const uint64_t place = kind == 0   ? i * 100 % COUNT_OF(many) + i / 3
                                   : kind == 1 ? COUNT_OF(many) - i
                                               : random_below(&random, 1 << 16);
            many[i] = (struct ttm_life_row){
                .address = 0x100000 + place * 3, .footprint_bytes = 4, .site = 0};
        }
        made_process.lives = many;
        made_process.live_count = COUNT_OF(many);
        assert_int_equal(ttm_bank_build(&bank, &source, 0, TTM_REGION_L1), 0);
        assert_int_equal(bank.count, COUNT_OF(many));
        uint64_t sum = 0, expected = 0;
        for (size_t i = 0; i < COUNT_OF(many); i++) {
            assert_true(i == 0 || bank.blocks[i - 1].address <= bank.blocks[i].address);
            sum += bank.blocks[i].address;
            expected += many[i].address;
        }
        assert_int_equal(sum, expected);
    }
}

static void cells_are_kept_until_something_is_another(void **state)
{
    const struct ttm_origins_source source = make_lives();
    struct ttm_bank_look look = {.begin = 0x100000, .end = 0x120000, .cells = 4};
    (void)state;

    assert_int_equal(ttm_bank_build(&bank, &source, 0, TTM_REGION_L1), 0);
    look.key = bank.blocks[0].key; /* 64 KiB, then 64 KiB that are free */
    const struct ttm_bank_share *cells = ttm_bank_cells(&bank, &look);
    assert_int_equal(cells[0].own_bytes, 0x8000);
    assert_int_equal(cells[1].own_bytes, 0x8000);
    assert_int_equal(cells[2].own_bytes + cells[3].own_bytes, 0);
    look.key++;
    cells = ttm_bank_cells(&bank, &look);
    assert_int_equal(cells[0].own_bytes, 0);
    assert_int_equal(cells[0].other_bytes, 0x8000);
    look.end = 0x110000;
    assert_int_equal(ttm_bank_cells(&bank, &look)[3].other_bytes, 0x4000);
    made_lives[0].address += 0x8000;
    assert_int_equal(ttm_bank_build(&bank, &source, 0, TTM_REGION_L1), 0);
    assert_int_equal(ttm_bank_cells(&bank, &look)[0].other_bytes, 0);
    look = (struct ttm_bank_look){
        .begin = 0x108000, .end = 0x108002, .cells = 8}; /* less than one each */
    assert_int_equal(ttm_bank_cells(&bank, &look)[7].other_bytes, 1);
}

static void without_the_number_of_banks_the_addresses_are_drawn(void **state)
{
    const struct ttm_origins_source source = make_lives();
    (void)state;

    made_rows[0].bank_count[TTM_REGION_L1] = 0;
    assert_int_equal(ttm_bank_build(&bank, &source, 0, TTM_REGION_L1), 0);
    assert_false(bank.has_size);
    assert_int_equal(bank.begin, 0x100000);
    assert_int_equal(bank.end, 0x140000 + 4 * 0x20000);
}

static void addresses_that_fit_no_bank_are_no_bank(void **state)
{
    const struct ttm_origins_source source = make_lives();
    (void)state;

    made_lives[0].address = 0x10;
    made_lives[1].address = UINT64_MAX - 5; /* ends before it begins, and is left out */
    assert_int_equal(ttm_bank_build(&bank, &source, 0, TTM_REGION_L1), 0);
    assert_false(bank.has_size);
    assert_int_equal(bank.end, 0x188000);
}

static void an_empty_bank_is_all_free(void **state)
{
    const struct ttm_origins_source source = make_lives();
    (void)state;

    assert_int_equal(ttm_bank_build(&bank, &source, 1, TTM_REGION_DRAM), 0);
    assert_int_equal(bank.largest_free_bytes, MIB);
    assert_int_equal(ttm_bank_share(&bank, 0, MIB, 1).other_bytes, 0);
    assert_false(ttm_bank_extent(&bank, &(uint64_t){0}, &(uint64_t){0}));
}

static void short_memory_is_told(void **state)
{
    const struct ttm_origins_source source = make_lives();
    (void)state;

    for (int n = 0; n < 4; n++) {
        faults_begin((unsigned)n);
        assert_int_equal(ttm_origins_build(&origins, &source), -ENOMEM);
        assert_true(faults_end());
        ttm_origins_done(&origins);
    }
    faults_begin(0);
    assert_int_equal(ttm_bank_build(&bank, &source, 0, TTM_REGION_L1), -ENOMEM);
    assert_true(faults_end());
}

#define ORIGINS_TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ORIGINS_TEST(lives_are_added_up_by_origin_and_region_largest_first),
        ORIGINS_TEST(sums_of_sites_make_the_same_groups_as_their_lives),
        ORIGINS_TEST(siblings_of_one_moment_stay_apart),
        ORIGINS_TEST(a_site_that_holds_nothing_makes_no_group),
        ORIGINS_TEST(a_detail_waits_for_the_lives_of_its_origin),
        ORIGINS_TEST(lives_grow_older_with_the_sums),
        ORIGINS_TEST(a_closer_look_is_the_same_until_a_life_of_it_changes),
        ORIGINS_TEST(a_bank_waits_for_the_lives_that_lie_in_it),
        ORIGINS_TEST(a_key_stays_from_answer_to_answer),
        ORIGINS_TEST(a_choice_of_devices_leaves_the_others_out),
        ORIGINS_TEST(devices_have_the_numbers_of_the_driver),
        ORIGINS_TEST(who_may_not_be_seen_is_counted),
        ORIGINS_TEST(a_detail_has_sizes_and_the_youngest_first),
        ORIGINS_TEST(callers_tell_helpers_apart_and_are_bounded),
        ORIGINS_TEST(a_bank_of_l1_is_drawn_down_from_its_highest_address),
        ORIGINS_TEST(a_bank_of_dram_begins_at_nought_where_it_fits),
        ORIGINS_TEST(neighbours_of_one_origin_are_one_block),
        ORIGINS_TEST(blocks_are_in_order_whatever_the_order_of_lives),
        ORIGINS_TEST(cells_are_kept_until_something_is_another),
        ORIGINS_TEST(without_the_number_of_banks_the_addresses_are_drawn),
        ORIGINS_TEST(addresses_that_fit_no_bank_are_no_bank),
        ORIGINS_TEST(an_empty_bank_is_all_free),
        ORIGINS_TEST(short_memory_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
