/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "wire/hello.h"

static struct ttm_hello got;

static int decode(const uint8_t *buf, size_t len)
{
    return ttm_hello_decode(buf, len, &got);
}

static void the_golden_hello_is_decoded_and_encoded_again_the_same(void **state)
{
    struct bytes file = golden("hello.v1.bin");
    uint8_t buf[TTM_HELLO_SIZE];
    (void)state;

    assert_int_equal(decode(file.data, file.length), 0);
    assert_int_equal(got.major, 1);
    assert_int_equal(got.minor, 0);
    assert_true(got.optional == (1ull << 63 | 1));
    assert_true(got.required == 0);
    assert_int_equal(got.pid, 4242);
    assert_string_equal(got.software, "0.1.0");

    memset(buf, 0xff, sizeof(buf));
    ttm_hello_encode(&got, buf);
    assert_bytes_equal(&file, buf, sizeof(buf));
    bytes_done(&file);
}

static void a_hello_cut_off_anywhere_is_refused(void **state)
{
    struct bytes file = golden("hello.v1.bin");
    (void)state;

    assert_truncation_refused(&file, decode);
    bytes_done(&file);
}

static void a_longer_hello_of_a_newer_peer_is_accepted(void **state)
{
    uint8_t longer[TTM_HELLO_SIZE + 40];
    struct bytes file = golden("hello.v1.bin");
    (void)state;

    memset(longer, 0xee, sizeof(longer));
    memcpy(longer, file.data, file.length);
    assert_int_equal(decode(longer, sizeof(longer)), 0);
    assert_int_equal(got.pid, 4242);
    bytes_done(&file);
}

static void each_bit_of_the_magic_counts(void **state)
{
    struct bytes file = golden("hello.v1.bin");
    (void)state;

    for (unsigned bit = 0; bit < 32; bit++) {
        file.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(decode(file.data, file.length), -EBADMSG);
        file.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    bytes_done(&file);
}

static void a_software_name_without_end_is_cut(void **state)
{
    struct bytes file = golden("hello.v1.bin");
    struct ttm_hello hello = {0};
    uint8_t buf[TTM_HELLO_SIZE];
    (void)state;

    memset(file.data + 32, 'v', TTM_HELLO_SOFTWARE_SIZE);
    assert_int_equal(decode(file.data, file.length), 0);
    assert_int_equal(strlen(got.software), TTM_HELLO_SOFTWARE_SIZE - 1);

    memset(hello.software, 'w', sizeof(hello.software)); /* no NUL */
    ttm_hello_encode(&hello, buf);
    assert_int_equal(buf[62], 'w');
    assert_int_equal(buf[63], 0);
    bytes_done(&file);
}

static void another_major_version_ends_the_talk(void **state)
{
    const struct ttm_hello older = {.major = TTM_HELLO_MAJOR - 1};
    const struct ttm_hello newer = {.major = TTM_HELLO_MAJOR + 1};
    const struct ttm_hello same = {.major = TTM_HELLO_MAJOR, .minor = 999};
    (void)state;

    assert_int_equal(ttm_hello_check(&older), -EPROTONOSUPPORT);
    assert_int_equal(ttm_hello_check(&newer), -EPROTONOSUPPORT);
    assert_int_equal(ttm_hello_check(&same), 0);
}

static void an_unknown_optional_feature_is_fine_and_a_required_one_is_not(void **state)
{
    const struct ttm_hello optional = {.major = TTM_HELLO_MAJOR, .optional = UINT64_MAX};
    const struct ttm_hello required = {.major = TTM_HELLO_MAJOR, .required = 1ull << 63};
    (void)state;

    assert_int_equal(ttm_hello_check(&optional), 0);
    assert_int_equal(ttm_hello_check(&required), -EPROTONOSUPPORT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_golden_hello_is_decoded_and_encoded_again_the_same),
        cmocka_unit_test(a_hello_cut_off_anywhere_is_refused),
        cmocka_unit_test(a_longer_hello_of_a_newer_peer_is_accepted),
        cmocka_unit_test(each_bit_of_the_magic_counts),
        cmocka_unit_test(a_software_name_without_end_is_cut),
        cmocka_unit_test(another_major_version_ends_the_talk),
        cmocka_unit_test(an_unknown_optional_feature_is_fine_and_a_required_one_is_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
