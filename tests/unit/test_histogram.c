/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "cli/histogram.h"

#define S 1000000000ull
#define KB 1024ull

static struct ttm_histogram histogram;

static int set_up(void **state)
{
    (void)state;
    ttm_histogram_init(&histogram, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_histogram_done(&histogram);
    return 0;
}

static void an_empty_histogram_has_no_sizes(void **state)
{
    const struct ttm_terminal plain = {.columns = 80};
    struct ttm_text text;
    (void)state;

    assert_int_equal(ttm_histogram_sort(&histogram), 0);
    ttm_text_init(&text);
    ttm_histogram_text(&histogram, &plain, &text);
    assert_false(ttm_text_failed(&text));
    assert_null(strstr(ttm_text_string(&text), "buffer "));
    ttm_text_done(&text);
}

static void sizes_are_rounded_to_the_nearest_kb(void **state)
{
    (void)state;
    ttm_histogram_add(&histogram, 1, 0);      /* 0 KB */
    ttm_histogram_add(&histogram, 511, 0);    /* 0 KB */
    ttm_histogram_add(&histogram, 512, 0);    /* 1 KB */
    ttm_histogram_add(&histogram, 1024, 0);   /* 1 KB */
    ttm_histogram_add(&histogram, 1535, 0);   /* 1 KB */
    ttm_histogram_add(&histogram, 1536, 0);   /* 2 KB */
    ttm_histogram_add(&histogram, 2 * KB, 0); /* 2 KB */
    assert_int_equal(ttm_histogram_sort(&histogram), 3);
    assert_int_equal(histogram.groups[0].kb, 1);
    assert_int_equal(histogram.groups[0].count, 3);
    assert_int_equal(histogram.groups[0].bytes, 512 + 1024 + 1535);
    assert_int_equal(histogram.groups[1].kb, 2); /* of two as common the larger comes first */
    assert_int_equal(histogram.groups[2].kb, 0);
    assert_int_equal(histogram.count, 7);
    assert_int_equal(histogram.bytes, 1 + 511 + 512 + 1024 + 1535 + 1536 + 2048);
}

static void the_most_common_size_comes_first_among_thousands(void **state)
{
    uint64_t total = 0;
    (void)state;

    for (uint64_t kb = 1; kb <= 3000; kb++) {
        for (uint64_t n = 0; n < kb % 7 + (kb == 1234 ? 100 : 1); n++) {
            ttm_histogram_add(&histogram, kb * KB, 0);
            total++;
        }
    }
    assert_int_equal(ttm_histogram_sort(&histogram), 3000);
    assert_int_equal(histogram.groups[0].kb, 1234);
    uint64_t sum = 0;
    for (size_t i = 0; i < 3000; i++) {
        sum += histogram.groups[i].count;
        if (i > 0)
            assert_true(histogram.groups[i].count <= histogram.groups[i - 1].count);
    }
    assert_int_equal(sum, total);
    assert_int_equal(histogram.count, total);
}

static void every_age_falls_into_one_decade(void **state)
{
    static const struct {
        uint64_t age_ns;
        size_t group;
    } ages[] = {
        {0, 0},          {S - 1, 0},         {S, 1},           {10 * S - 1, 1}, {10 * S, 2},
        {60 * S - 1, 2}, {60 * S, 3},        {600 * S - 1, 3}, {600 * S, 4},    {3600 * S - 1, 4},
        {3600 * S, 5},   {36000 * S - 1, 5}, {36000 * S, 6},   {UINT64_MAX, 6},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(ages); i++) {
        const uint64_t before = histogram.ages[ages[i].group];
        ttm_histogram_add(&histogram, 1, ages[i].age_ns);
        assert_int_equal(histogram.ages[ages[i].group], before + 1);
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < TTM_AGE_GROUPS; i++)
        sum += histogram.ages[i];
    assert_int_equal(sum, histogram.count);
}

static void the_text_shows_the_ten_most_common_sizes_and_their_share(void **state)
{
    const struct ttm_terminal plain = {.columns = 80};
    struct ttm_text text;
    (void)state;

    for (uint64_t kb = 1; kb <= 12; kb++) {
        for (uint64_t n = 0; n < kb; n++)
            ttm_histogram_add(&histogram, kb * KB, n == 0 ? 0 : 100 * S);
    }
    ttm_text_init(&text);
    ttm_histogram_text(&histogram, &plain, &text);
    const char *string = ttm_text_string(&text);
    assert_non_null(strstr(string, "Most Common Buffer Sizes"));
    assert_non_null(strstr(string, " 12 KB         12 buffers"));
    assert_non_null(strstr(string, " 22 %")); /* 144 of 650 KB */
    assert_non_null(strstr(string, " 3 KB          3 buffers"));
    assert_null(strstr(string, " 2 KB "));
    assert_non_null(strstr(string, "< 1 s            12"));
    assert_non_null(strstr(string, "< 10 min         66"));
    assert_null(strstr(string, "< 1 h"));
    ttm_text_done(&text);
}

static void one_buffer_below_half_a_kb_is_shown_as_such(void **state)
{
    const struct ttm_terminal plain = {.columns = 80};
    struct ttm_text text;
    (void)state;

    ttm_histogram_add(&histogram, 100, 0);
    ttm_text_init(&text);
    ttm_histogram_text(&histogram, &plain, &text);
    assert_non_null(strstr(ttm_text_string(&text), "< 1 KB          1 buffer "));
    assert_non_null(strstr(ttm_text_string(&text), "100 %"));
    ttm_text_done(&text);
}

static void short_memory_is_remembered(void **state)
{
    (void)state;
    faults_begin(0);
    ttm_histogram_add(&histogram, 1, 0);
    assert_true(faults_end());
    assert_true(histogram.failed);
    assert_int_equal(ttm_histogram_sort(&histogram), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void sizes_without_ages_are_listed_alone_or_in_a_line_that_fits(void **state)
{
    const struct ttm_terminal plain = {.columns = 80};
    struct ttm_text text;
    (void)state;

    ttm_histogram_add_many(&histogram, 8 * KB, 40);
    ttm_histogram_add_many(&histogram, 32 * KB, 5);
    ttm_histogram_add_many(&histogram, 16 * KB, 1);
    ttm_histogram_add_many(&histogram, 64 * KB, 0);
    ttm_text_init(&text);
    ttm_histogram_text(&histogram, &plain, &text);
    assert_null(strstr(ttm_text_string(&text), "Ages"));
    assert_non_null(strstr(ttm_text_string(&text), "40 buffers"));
    ttm_text_clear(&text);
    ttm_histogram_line(&histogram, &plain, 46, &text);
    assert_non_null(strstr(ttm_text_string(&text), "8 KB 40 buffers 65 %"));
    assert_non_null(strstr(ttm_text_string(&text), "32 KB 5 buffers 32 %"));
    assert_null(strstr(ttm_text_string(&text), "16 KB"));
    ttm_text_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_empty_histogram_has_no_sizes),
        TEST(sizes_are_rounded_to_the_nearest_kb),
        TEST(the_most_common_size_comes_first_among_thousands),
        TEST(every_age_falls_into_one_decade),
        TEST(the_text_shows_the_ten_most_common_sizes_and_their_share),
        TEST(one_buffer_below_half_a_kb_is_shown_as_such),
        TEST(sizes_without_ages_are_listed_alone_or_in_a_line_that_fits),
        TEST(short_memory_is_remembered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
