/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "wire/origin_row.h"

#define BASE 0x0102030405060000ull
#define FIXED_WITHOUT_OWNERS 56
#define FIXED 320

static struct ttm_failure_row row;

static int decode(const uint8_t *buf, size_t len)
{
    return ttm_failure_row_decode(buf, len, &row);
}

static void assert_golden_failure(void)
{
    assert_int_equal(row.device_id, 1023);
    assert_int_equal(row.process_index, 3);
    assert_true(row.time_ns == BASE);
    assert_true(row.wanted_bytes == BASE + 1);
    assert_true(row.bank_wanted_bytes == BASE + 2);
    assert_true(row.bank_free_bytes == BASE + 3);
    assert_true(row.bank_largest_bytes == BASE + 4);
    assert_int_equal(row.origin, 0x01020304);
    assert_int_equal(row.region, TTM_REGION_L1);
    assert_int_equal(row.kind, TTM_FAILURE_CB_CLASH);
}

static void a_failure_is_as_the_golden_one(void **state)
{
    struct bytes whole = golden("failure.v2.bin");
    uint8_t buf[TTM_ROW_SIZE_MAX];
    (void)state;

    assert_int_equal(decode(whole.data, whole.length), 0);
    assert_golden_failure();
    assert_int_equal(row.owner_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(row.owners[i].origin, 0xa0 + i);
        assert_true(row.owners[i].count == BASE + 16 + i);
        assert_true(row.owners[i].bytes == BASE + 32 + i);
        assert_true(row.owners[i].footprint_bytes == BASE + 48 + i);
    }
    assert_bytes_equal(&whole, buf, ttm_failure_row_encode(&row, buf));
    assert_truncation_refused(&whole, decode);
    struct bytes longer = lengthened(&whole, FIXED, 8);
    assert_int_equal(decode(longer.data, longer.length), 0);
    assert_int_equal(row.owner_count, 2);
    bytes_done(&longer);
    bytes_done(&whole);
}

static void a_failure_of_an_older_server_has_no_owners(void **state)
{
    struct bytes whole = golden("failure.v1.bin");
    (void)state;

    assert_int_equal(whole.length, FIXED_WITHOUT_OWNERS);
    row.owner_count = 5;
    assert_int_equal(decode(whole.data, whole.length), 0);
    assert_golden_failure();
    assert_int_equal(row.owner_count, 0);
    assert_truncation_refused(&whole, decode);
    bytes_done(&whole);
}

static void nonsense_is_refused(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
    } wrong[] = {
        {3, 4},                       /* a device id of 1024 and more */
        {52, TTM_REGION_COUNT},       /* region */
        {53, TTM_FAILURE_KIND_COUNT}, /* kind */
        {56, TTM_OWNERS_MAX + 1},     /* owners */
        {59, 0xff},                   /* likewise */
    };
    struct bytes whole = golden("failure.v2.bin");
    (void)state;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        const uint8_t right = whole.data[wrong[i].at];
        whole.data[wrong[i].at] = wrong[i].value;
        assert_int_equal(decode(whole.data, whole.length), -EBADMSG);
        whole.data[wrong[i].at] = right;
    }
    assert_int_equal(decode(whole.data, whole.length), 0);
    bytes_done(&whole);
}

static void fragmented_is_room_that_is_there_in_pieces(void **state)
{
    struct ttm_failure_row failure = {
        .bank_wanted_bytes = 512, .bank_free_bytes = 512, .bank_largest_bytes = 511};
    (void)state;

    assert_true(ttm_failure_is_fragmented(&failure));
    failure.bank_free_bytes = 511;
    assert_false(ttm_failure_is_fragmented(&failure));
    failure.bank_free_bytes = failure.bank_largest_bytes = 512;
    assert_false(ttm_failure_is_fragmented(&failure));
    failure.bank_largest_bytes = 1;
    failure.kind = TTM_FAILURE_CB_CLASH; /* its sizes are addresses */
    assert_false(ttm_failure_is_fragmented(&failure));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_is_as_the_golden_one),
        cmocka_unit_test(a_failure_of_an_older_server_has_no_owners),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(fragmented_is_room_that_is_there_in_pieces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
