/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "wire/site_sum.h"

#define BASE 0x0102030405060000u

static struct ttm_site_sum sum;
static struct ttm_left_out left_out;

static int decode_sum(const uint8_t *buf, size_t len)
{
    return ttm_site_sum_decode(buf, len, &sum);
}

static int decode_left_out(const uint8_t *buf, size_t len)
{
    return ttm_left_out_decode(buf, len, &left_out);
}

static void assert_golden_sum(void)
{
    assert_int_equal(sum.process_index, 3);
    assert_int_equal(sum.site, 4);
    assert_true(sum.live == BASE);
    assert_true(sum.bytes == BASE + 1);
    assert_true(sum.footprint_bytes == BASE + 2);
    assert_true(sum.first_age_ns == BASE + 3);
    assert_true(sum.last_age_ns == BASE + 4);
}

static void the_golden_sum_is_decoded_and_encoded_again_the_same(void **state)
{
    struct bytes file = golden("site_sum.v1.bin");
    uint8_t buf[TTM_SITE_SUM_SIZE];
    (void)state;

    assert_int_equal(decode_sum(file.data, file.length), 0);
    assert_golden_sum();
    memset(buf, 0xff, sizeof(buf));
    assert_bytes_equal(&file, buf, ttm_site_sum_encode(&sum, buf));
    assert_truncation_refused(&file, decode_sum);
    bytes_done(&file);
}

static void a_longer_sum_of_a_newer_sender_says_the_same(void **state)
{
    struct bytes file = golden("site_sum.v1.bin");
    uint8_t buf[TTM_SITE_SUM_SIZE + 16];
    (void)state;

    memset(buf, 0xee, sizeof(buf));
    memcpy(buf, file.data, file.length);
    buf[0] = sizeof(buf);
    assert_int_equal(decode_sum(buf, sizeof(buf)), 0);
    assert_golden_sum();
    bytes_done(&file);
}

static void the_golden_rest_is_decoded_and_encoded_again_the_same(void **state)
{
    struct bytes file = golden("left_out.v1.bin");
    uint8_t buf[TTM_LEFT_OUT_SIZE];
    (void)state;

    assert_int_equal(decode_left_out(file.data, file.length), 0);
    assert_true(left_out.sites == BASE);
    assert_true(left_out.lives == BASE + 1);
    assert_true(left_out.footprint_bytes == BASE + 2);
    memset(buf, 0xff, sizeof(buf));
    assert_bytes_equal(&file, buf, ttm_left_out_encode(&left_out, buf));
    assert_truncation_refused(&file, decode_left_out);
    bytes_done(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_golden_sum_is_decoded_and_encoded_again_the_same),
        cmocka_unit_test(a_longer_sum_of_a_newer_sender_says_the_same),
        cmocka_unit_test(the_golden_rest_is_decoded_and_encoded_again_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
