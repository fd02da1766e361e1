/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "wire/life_row.h"

#define BASE 0x0102030405060000ull
#define SITE_LEAST 40 /* what the first version had */
#define SITE_FIXED 48

static struct ttm_site_row site;

static int decode_site(const uint8_t *buf, size_t len)
{
    return ttm_site_row_decode(buf, len, &site);
}

static int decode_head(const uint8_t *buf, size_t len)
{
    uint32_t index;

    return (int)ttm_lives_head_decode(buf, len, &index);
}

static void assert_golden_site(void)
{
    assert_int_equal(site.process_index, 3);
    assert_int_equal(site.site, 4);
    assert_int_equal(site.allocator, 0x01020304);
    assert_int_equal(site.region, TTM_REGION_KERNEL);
    assert_int_equal(site.kind, TTM_KERNEL_DISPATCH);
    assert_true(site.births == BASE);
    assert_true(site.ends == BASE + 1);
    assert_int_equal(site.device_count, 3);
    assert_int_equal(site.devices[0], 0);
    assert_int_equal(site.devices[1], 8);
    assert_int_equal(site.devices[2], 1023);
}

static void assert_second_site(void)
{
    assert_golden_site();
    assert_int_equal(site.flags, TTM_SITE_ALIAS | TTM_SITE_CORES | TTM_SITE_PROGRAM);
    assert_int_equal(site.origin, 0xa1a2a3a4);
}

static void the_golden_site_is_decoded_and_encoded_again_the_same(void **state)
{
    struct bytes file = golden("site.v2.bin");
    uint8_t buf[TTM_SITE_ROW_SIZE_MAX];
    (void)state;

    assert_int_equal(decode_site(file.data, file.length), 0);
    assert_second_site();
    memset(buf, 0xff, sizeof(buf));
    assert_bytes_equal(&file, buf, ttm_site_row_encode(&site, buf));
    bytes_done(&file);
}

static void the_golden_site_with_banks_is_decoded_and_encoded_again_the_same(void **state)
{
    struct bytes file = golden("site.v3.bin");
    uint8_t buf[TTM_SITE_ROW_SIZE_MAX];
    (void)state;

    assert_int_equal(decode_site(file.data, file.length), 0);
    assert_second_site();
    assert_int_equal(site.banks, 0xd1d2);
    memset(buf, 0xff, sizeof(buf));
    assert_bytes_equal(&file, buf, ttm_site_row_encode(&site, buf));
    bytes_done(&file);
}

static void a_site_of_an_older_sender_has_no_origin(void **state)
{
    struct bytes file = golden("site.v1.bin");
    (void)state;

    memset(&site, 0xff, sizeof(site)); /* nothing of this is left over */
    assert_int_equal(decode_site(file.data, file.length), 0);
    assert_golden_site();
    assert_int_equal(site.flags, TTM_SITE_ALIAS);
    assert_int_equal(site.origin, 0);
    assert_int_equal(site.banks, 0);
    assert_truncation_refused(&file, decode_site);
    bytes_done(&file);
}

static void a_site_cut_off_anywhere_is_refused(void **state)
{
    struct bytes file = golden("site.v2.bin");
    (void)state;

    assert_truncation_refused(&file, decode_site);
    bytes_done(&file);
}

static void a_longer_site_of_a_newer_sender_says_the_same(void **state)
{
    struct bytes file = golden("site.v2.bin");
    (void)state;

    for (size_t extra = 1; extra < 20; extra++) {
        struct bytes longer = lengthened(&file, SITE_FIXED, extra);
        assert_int_equal(decode_site(longer.data, longer.length), 0);
        assert_second_site();
        bytes_done(&longer);
    }
    bytes_done(&file);
}

static void a_site_with_a_field_that_is_none_is_refused(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
    } wrong[] = {
        {16, TTM_REGION_COUNT},
        {16, 255},
        {17, TTM_KERNEL_KIND_COUNT},
        {17, 255},
        {SITE_FIXED + 1, 0x04}, /* device 1024 */
        {SITE_FIXED + 5, 0xff},
        {2, 4},
        {3, 4}, /* 4 and 1027 devices */
        {0, SITE_LEAST - 1},
        {1, 1},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct bytes file = golden("site.v2.bin");
        file.data[wrong[i].at] = wrong[i].value;
        assert_int_equal(decode_site(file.data, file.length), -EBADMSG);
        bytes_done(&file);
    }
}

static void a_site_on_every_device_fits(void **state)
{
    struct ttm_site_row row = {.device_count = TTM_DEVICE_COUNT};
    (void)state;

    for (uint16_t i = 0; i < TTM_DEVICE_COUNT; i++)
        row.devices[i] = i;
    uint8_t *room = malloc(TTM_SITE_ROW_SIZE_MAX); /* exactly */
    assert_non_null(room);
    assert_int_equal(ttm_site_row_encode(&row, room), TTM_SITE_ROW_SIZE_MAX);
    assert_int_equal(decode_site(room, TTM_SITE_ROW_SIZE_MAX), 0);
    assert_int_equal(site.device_count, TTM_DEVICE_COUNT);
    assert_memory_equal(site.devices, row.devices, sizeof(row.devices));
    free(room);
}

static void the_golden_lives_are_decoded_and_encoded_again_the_same(void **state)
{
    struct bytes file = golden("lives.v1.bin");
    uint8_t buf[TTM_LIVES_HEAD_SIZE + 2 * TTM_LIFE_ROW_SIZE];
    uint32_t index = 0;
    (void)state;

    assert_int_equal(ttm_lives_head_decode(file.data, file.length, &index), 2);
    assert_int_equal(index, 3);
    memset(buf, 0xff, sizeof(buf));
    ttm_lives_head_encode(index, 2, buf);
    for (size_t i = 0; i < 2; i++) {
        const size_t at = TTM_LIVES_HEAD_SIZE + i * TTM_LIFE_ROW_SIZE;
        const uint64_t base = BASE + 0x100 * (i + 1);
        struct ttm_life_row row;
        ttm_life_row_decode(file.data + at, &row);
        assert_true(row.id == base);
        assert_true(row.address == base + 1);
        assert_true(row.bytes == base + 2);
        assert_true(row.footprint_bytes == base + 3);
        assert_true(row.age_ns == base + 4);
        assert_int_equal(row.site, i + 1);
        ttm_life_row_encode(&row, buf + at);
    }
    assert_bytes_equal(&file, buf, sizeof(buf));
    bytes_done(&file);
}

static void lives_cut_off_anywhere_are_refused(void **state)
{
    struct bytes file = golden("lives.v1.bin");
    (void)state;

    assert_truncation_refused(&file, decode_head);
    bytes_done(&file);
}

static void a_count_of_lives_that_would_overflow_is_refused(void **state)
{
    uint8_t buf[TTM_LIVES_HEAD_SIZE + TTM_LIFE_ROW_SIZE] = {0};
    (void)state;

    /* Times 48 this is 16 in 32 bits. */
    ttm_lives_head_encode(0, 0x55555556, buf);
    assert_int_equal(decode_head(buf, sizeof(buf)), -EBADMSG);
    ttm_lives_head_encode(0, UINT32_MAX, buf);
    assert_int_equal(decode_head(buf, sizeof(buf)), -EBADMSG);
    ttm_lives_head_encode(0, 2, buf);
    assert_int_equal(decode_head(buf, sizeof(buf)), -EBADMSG);
    ttm_lives_head_encode(0, 1, buf);
    assert_int_equal(decode_head(buf, sizeof(buf)), 1);
    ttm_lives_head_encode(0, 0, buf);
    assert_int_equal(decode_head(buf, TTM_LIVES_HEAD_SIZE), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_golden_site_is_decoded_and_encoded_again_the_same),
        cmocka_unit_test(the_golden_site_with_banks_is_decoded_and_encoded_again_the_same),
        cmocka_unit_test(a_site_of_an_older_sender_has_no_origin),
        cmocka_unit_test(a_site_cut_off_anywhere_is_refused),
        cmocka_unit_test(a_longer_site_of_a_newer_sender_says_the_same),
        cmocka_unit_test(a_site_with_a_field_that_is_none_is_refused),
        cmocka_unit_test(a_site_on_every_device_fits),
        cmocka_unit_test(the_golden_lives_are_decoded_and_encoded_again_the_same),
        cmocka_unit_test(lives_cut_off_anywhere_are_refused),
        cmocka_unit_test(a_count_of_lives_that_would_overflow_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
