/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <stdio.h>
#include <unistd.h>

#include "base/id_ranges.h"

static void read_text(struct ttm_id_ranges *ranges, const char *text)
{
    char path[] = "/tmp/ttm-test-id-ranges-XXXXXX";
    const int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    (void)close(fd);
    ttm_id_ranges_read(ranges, path);
    (void)unlink(path);
}

static void all_ids_of_a_range_are_one_user(void **state)
{
    struct ttm_id_ranges ranges;
    (void)state;

    read_text(&ranges, "one:100000:65536\ntwo:165536:65536\n1003:400000:1");
    assert_int_equal(ranges.count, 3);
    assert_int_equal(ttm_id_ranges_user(&ranges, 100000), 100000);
    assert_int_equal(ttm_id_ranges_user(&ranges, 165535), 100000);
    assert_int_equal(ttm_id_ranges_user(&ranges, 165536), 165536);
    assert_int_equal(ttm_id_ranges_user(&ranges, 400000), 400000);
    ttm_id_ranges_done(&ranges);
}

static void other_ids_are_users_of_their_own(void **state)
{
    struct ttm_id_ranges ranges;
    (void)state;

    read_text(&ranges, "one:100000:65536\n");
    assert_int_equal(ttm_id_ranges_user(&ranges, 0), 0);
    assert_int_equal(ttm_id_ranges_user(&ranges, 1000), 1000);
    assert_int_equal(ttm_id_ranges_user(&ranges, 165536), 165536);
    ttm_id_ranges_done(&ranges);
    ttm_id_ranges_read(&ranges, "/nonexistent/subuid");
    assert_int_equal(ttm_id_ranges_user(&ranges, 100001), 100001);
}

static void lines_that_make_no_sense_are_passed_over(void **state)
{
    struct ttm_id_ranges ranges;
    (void)state;

    read_text(&ranges,
              "\nnothing\na:b:c\na:1\na:1:\na:1:0\na:0:10\na:4294967290:7\na:4294967290:6\n"
              "a:18446744073709551615:2\na:5:6:7\n");
    assert_int_equal(ranges.count, 1);
    assert_int_equal(ttm_id_ranges_user(&ranges, UINT32_MAX), 4294967290u);
    ttm_id_ranges_done(&ranges);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ids_of_a_range_are_one_user),
        cmocka_unit_test(other_ids_are_users_of_their_own),
        cmocka_unit_test(lines_that_make_no_sense_are_passed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
