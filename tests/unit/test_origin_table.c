/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "model/origin_table.h"

static struct ttm_origin_table table;

static int set_up(void **state)
{
    (void)state;
    ttm_origin_table_init(&table, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_origin_table_done(&table);
    return 0;
}

static int add(uint32_t number, const char *context, const char *name, const char *python)
{
    const struct ttm_origin origin = {
        .number = number,
        .text = {[TTM_ORIGIN_CONTEXT] = context,
                 [TTM_ORIGIN_NAME] = name,
                 [TTM_ORIGIN_THREAD] = "t",
                 [TTM_ORIGIN_OPERATION] = "",
                 [TTM_ORIGIN_PYTHON] = python,
                 [TTM_ORIGIN_NATIVE] = ""},
    };

    return ttm_origin_table_add(&table, &origin);
}

static void what_an_origin_says_is_copied(void **state)
{
    char name[] = "weights";
    (void)state;

    assert_null(ttm_origin_table_find(&table, 1024));
    assert_int_equal(add(1024, "init", name, "a.py:1:f\n"), 0);
    memset(name, 'x', sizeof(name) - 1);
    const struct ttm_origin *found = ttm_origin_table_find(&table, 1024);
    assert_non_null(found);
    assert_int_equal(found->number, 1024);
    assert_string_equal(found->text[TTM_ORIGIN_CONTEXT], "init");
    assert_string_equal(found->text[TTM_ORIGIN_NAME], "weights");
    assert_string_equal(found->text[TTM_ORIGIN_THREAD], "t");
    assert_string_equal(found->text[TTM_ORIGIN_OPERATION], "");
    assert_string_equal(found->text[TTM_ORIGIN_PYTHON], "a.py:1:f\n");
    assert_string_equal(found->text[TTM_ORIGIN_NATIVE], "");
    assert_null(ttm_origin_table_find(&table, 1025));
    assert_null(ttm_origin_table_find(&table, 0));
}

static void many_origins_are_found_again_and_stay_where_they_are(void **state)
{
    const struct ttm_origin *first;
    char name[32];
    (void)state;

    assert_int_equal(add(7, "", "first", ""), 0);
    first = ttm_origin_table_find(&table, 7);
    for (uint32_t i = 0; i < 20000; i++) {
        (void)snprintf(name, sizeof(name), "n%u", i);
        assert_int_equal(add(1024 + i * 1024, "", name, ""), 0);
    }
    assert_ptr_equal(ttm_origin_table_find(&table, 7), first);
    for (uint32_t i = 0; i < 20000; i++) {
        (void)snprintf(name, sizeof(name), "n%u", i);
        const struct ttm_origin *found = ttm_origin_table_find(&table, 1024 + i * 1024);
        assert_non_null(found);
        assert_string_equal(found->text[TTM_ORIGIN_NAME], name);
        assert_ptr_equal(table.origins[i + 1], found); /* in the order they were heard of */
    }
    assert_null(ttm_origin_table_find(&table, 1025));
}

static void the_table_is_bounded_in_bytes(void **state)
{
    const size_t length = 1 << 20;
    char *text = malloc(length + 1);
    uint32_t number = 1;
    (void)state;

    assert_non_null(text);
    memset(text, 'x', length);
    text[length] = '\0';
    while (add(number, "", "", text) == 0)
        number++;
    assert_int_equal(add(number, "", "", ""), -ENOSPC);
    assert_in_range(table.bytes, TTM_ORIGIN_BYTES_MAX, TTM_ORIGIN_BYTES_MAX + 2 * length);
    assert_non_null(ttm_origin_table_find(&table, number - 1));
    assert_null(ttm_origin_table_find(&table, number));
    free(text);
}

static void the_table_is_bounded_in_number(void **state)
{
    (void)state;
    for (uint32_t i = 1; i <= TTM_ORIGINS_MAX; i++)
        assert_int_equal(add(i, "", "", ""), 0);
    assert_int_equal(add(TTM_ORIGINS_MAX + 1, "", "", ""), -ENOSPC);
    assert_non_null(ttm_origin_table_find(&table, TTM_ORIGINS_MAX));
}

static void when_memory_is_short_nothing_has_changed(void **state)
{
    static char large[10000]; /* has a block of its own */
    (void)state;

    memset(large, 'x', sizeof(large) - 1);
    for (int i = 0; i < 3; i++) { /* the list, its index, the copy */
        faults_begin((unsigned)i);
        assert_int_equal(add(1, "a", "b", "c"), -ENOMEM);
        assert_true(faults_end());
        assert_null(ttm_origin_table_find(&table, 1));
        ttm_origin_table_done(&table);
    }
    assert_int_equal(add(1, "a", "b", "c"), 0);
    assert_string_equal(ttm_origin_table_find(&table, 1)->text[TTM_ORIGIN_NAME], "b");
    for (uint32_t i = 2; i <= 16; i++)
        assert_int_equal(add(i, "", "", ""), 0);
    for (int i = 0; i < 3; i++) {
        faults_begin((unsigned)i);
        assert_int_equal(add(17, "a", large, "c"), -ENOMEM);
        assert_true(faults_end());
        assert_null(ttm_origin_table_find(&table, 17));
        assert_non_null(ttm_origin_table_find(&table, 16));
    }
    assert_int_equal(add(17, "a", "b", "c"), 0);
    assert_non_null(ttm_origin_table_find(&table, 17));
}

static void many_origins_lie_in_blocks_and_are_dropped_in_parts(void **state)
{
    static char text[4000];
    (void)state;

    memset(text, 'y', sizeof(text) - 1);
    for (uint32_t i = 1; i <= 1000; i++)
        assert_int_equal(add(i, "", text, ""), 0);
    for (uint32_t i = 1; i <= 1000; i++)
        assert_string_equal(ttm_origin_table_find(&table, i)->text[TTM_ORIGIN_NAME], text);
    assert_false(ttm_origin_table_drop(&table, 8)); /* of some 16 */
    uint32_t steps = 1;
    while (!ttm_origin_table_drop(&table, 8))
        steps++;
    assert_true(steps >= 2);
}

#define WITH_TABLE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TABLE(what_an_origin_says_is_copied),
        WITH_TABLE(many_origins_are_found_again_and_stay_where_they_are),
        WITH_TABLE(the_table_is_bounded_in_bytes),
        WITH_TABLE(the_table_is_bounded_in_number),
        WITH_TABLE(when_memory_is_short_nothing_has_changed),
        WITH_TABLE(many_origins_lie_in_blocks_and_are_dropped_in_parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
