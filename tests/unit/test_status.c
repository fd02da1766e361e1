/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "wire/status.h"

#define BASE 0x0102030405060000ull
#define GOLDEN_COUNT 30 /* counters that version 1 began with; more may have come since */

static struct ttm_status got;
static struct ttm_checked checked;

static int decode(const uint8_t *buf, size_t len)
{
    return ttm_status_decode(buf, len, &got);
}

static int decode_checked(const uint8_t *buf, size_t len)
{
    return ttm_checked_decode(buf, len, &checked);
}

static void the_golden_status_is_decoded_and_encoded_again_the_same(void **state)
{
    struct bytes file = golden("status.v1.bin");
    uint8_t buf[TTM_STATUS_SIZE];
    (void)state;

    assert_true(TTM_COUNTER_COUNT >= GOLDEN_COUNT);
    assert_int_equal(decode(file.data, file.length), 0);
    for (uint64_t i = 0; i < GOLDEN_COUNT; i++)
        assert_true(got.counter[i] == BASE + i);
    memset(buf, 0xff, sizeof(buf));
    ttm_status_encode(&got, buf);
    assert_int_equal(buf[0], TTM_COUNTER_COUNT);
    buf[0] = GOLDEN_COUNT;
    assert_bytes_equal(&file, buf, 8 + 8 * GOLDEN_COUNT);
    bytes_done(&file);
}

static void a_status_cut_off_anywhere_is_refused(void **state)
{
    struct bytes file = golden("status.v1.bin");
    (void)state;

    assert_truncation_refused(&file, decode);
    bytes_done(&file);
}

static void counters_that_an_older_sender_lacks_read_as_zero(void **state)
{
    struct bytes file = golden("status.v1.bin");
    (void)state;

    memset(&got, 0xff, sizeof(got));
    file.data[0] = 2;
    assert_int_equal(decode(file.data, 8 + 16), 0);
    assert_true(got.counter[1] == BASE + 1);
    for (size_t i = 2; i < TTM_COUNTER_COUNT; i++)
        assert_true(got.counter[i] == 0);
    file.data[0] = 0;
    assert_int_equal(decode(file.data, 8), 0);
    assert_true(got.counter[0] == 0);
    bytes_done(&file);
}

static void counters_of_a_newer_sender_are_passed_over(void **state)
{
    uint8_t buf[8 + 8 * 1000] = {1000 & 0xff, 1000 >> 8};
    (void)state;

    buf[8] = 42;
    assert_int_equal(decode(buf, sizeof(buf)), 0);
    assert_true(got.counter[0] == 42);
    assert_int_equal(decode(buf, sizeof(buf) - 1), -EBADMSG);
}

static void a_count_that_would_overflow_is_refused(void **state)
{
    static const uint8_t buf[16] = {0xff, 0xff, 0xff, 0xff};
    static const uint8_t wrapping[16] = {0x01, 0, 0, 0x20}; /* times 8 this is 8 in 32 bits */
    (void)state;

    assert_int_equal(decode(buf, sizeof(buf)), -EBADMSG);
    assert_int_equal(decode(wrapping, sizeof(wrapping)), -EBADMSG);
}

static void every_counter_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (unsigned i = 0; i < TTM_COUNTER_COUNT; i++) {
        assert_non_null(ttm_counter_name(i));
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(ttm_counter_name(i), ttm_counter_name(k));
    }
    assert_string_equal(ttm_counter_name(TTM_COUNTER_UNKNOWN_FREES), "unknown_frees");
    assert_string_equal(ttm_counter_name(TTM_COUNTER_COUNT), "?");
}

static void the_golden_check_is_decoded_and_encoded_again_the_same(void **state)
{
    struct bytes file = golden("checked.v1.bin");
    uint8_t buf[TTM_CHECKED_SIZE];
    (void)state;

    assert_int_equal(decode_checked(file.data, file.length), 0);
    assert_true(checked.lives == BASE);
    assert_true(checked.processes == BASE + 1);
    assert_true(checked.mismatches == BASE + 2);
    ttm_checked_encode(&checked, buf);
    assert_bytes_equal(&file, buf, sizeof(buf));
    assert_truncation_refused(&file, decode_checked);
    bytes_done(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_golden_status_is_decoded_and_encoded_again_the_same),
        cmocka_unit_test(a_status_cut_off_anywhere_is_refused),
        cmocka_unit_test(counters_that_an_older_sender_lacks_read_as_zero),
        cmocka_unit_test(counters_of_a_newer_sender_are_passed_over),
        cmocka_unit_test(a_count_that_would_overflow_is_refused),
        cmocka_unit_test(every_counter_has_a_name_of_its_own),
        cmocka_unit_test(the_golden_check_is_decoded_and_encoded_again_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
