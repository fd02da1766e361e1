/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "wire/event.h"
#include "wire/region.h"

#define BASE 0x0102030405060000ull

static struct ttm_event got;

static int decode(const uint8_t *buf, size_t len)
{
    return ttm_event_decode(buf, len, &got);
}

static void assert_event(uint8_t op, uint16_t device, uint8_t region, uint8_t kind)
{
    assert_true(got.time_ns == BASE);
    assert_true(got.id == BASE + 1);
    assert_true(got.address == BASE + 2);
    assert_true(got.bytes == BASE + 3);
    assert_true(got.footprint_bytes == BASE + 4);
    assert_true(got.total_bytes == BASE + 5);
    assert_int_equal(got.pid, -7);
    assert_int_equal(got.op, op);
    assert_int_equal(got.device_id, device);
    assert_int_equal(got.region, region);
    assert_int_equal(got.kind, kind);
}

static void the_golden_events_are_decoded_and_encoded_again_the_same(void **state)
{
    struct bytes file = golden("events.v1.bin");
    uint8_t buf[2 * TTM_EVENT_SIZE];
    (void)state;

    memset(buf, 0xff, sizeof(buf));
    assert_int_equal(decode(file.data, file.length), 0);
    assert_event(TTM_EVENT_BIRTH, 1023, TTM_REGION_CB, 0);
    ttm_event_encode(&got, buf);
    assert_int_equal(decode(file.data + TTM_EVENT_SIZE, file.length - TTM_EVENT_SIZE), 0);
    assert_event(TTM_EVENT_PROCESS_END, 0, TTM_REGION_KERNEL, TTM_KERNEL_DISPATCH);
    ttm_event_encode(&got, buf + TTM_EVENT_SIZE);
    assert_bytes_equal(&file, buf, sizeof(buf));
    bytes_done(&file);
}

static void an_event_cut_off_anywhere_is_refused(void **state)
{
    struct bytes file = golden("events.v1.bin");
    struct bytes one = bytes_of(file.data, TTM_EVENT_SIZE);
    (void)state;

    assert_truncation_refused(&one, decode);
    bytes_done(&one);
    bytes_done(&file);
}

static void an_event_with_a_field_that_is_none_is_refused(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
    } wrong[] = {
        {53, 0x04}, /* device 1279 */
        {54, TTM_EVENT_OP_COUNT},
        {54, 255},
        {55, TTM_REGION_COUNT},
        {55, 255},
        {56, TTM_KERNEL_KIND_COUNT},
        {56, 255},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct bytes file = golden("events.v1.bin");
        file.data[wrong[i].at] = wrong[i].value;
        assert_int_equal(decode(file.data, TTM_EVENT_SIZE), -EBADMSG);
        bytes_done(&file);
    }
}

static void reserved_bytes_are_sent_as_zero_and_ignored_on_receipt(void **state)
{
    struct bytes file = golden("events.v1.bin");
    uint8_t buf[TTM_EVENT_SIZE];
    (void)state;

    struct bytes one = bytes_of(file.data, TTM_EVENT_SIZE);
    memset(file.data + 57, 0xaa, 3);
    assert_int_equal(decode(file.data, TTM_EVENT_SIZE), 0);
    memset(buf, 0xff, sizeof(buf));
    ttm_event_encode(&got, buf);
    assert_bytes_equal(&one, buf, sizeof(buf));
    bytes_done(&one);
    bytes_done(&file);
}

static void an_event_has_the_number_of_its_origin(void **state)
{
    const struct ttm_event event = {.origin = 0x01020304};
    uint8_t buf[TTM_EVENT_SIZE];
    (void)state;

    ttm_event_encode(&event, buf);
    assert_int_equal(buf[60], 4);
    assert_int_equal(decode(buf, sizeof(buf)), 0);
    assert_int_equal(got.origin, 0x01020304);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_golden_events_are_decoded_and_encoded_again_the_same),
        cmocka_unit_test(an_event_cut_off_anywhere_is_refused),
        cmocka_unit_test(an_event_with_a_field_that_is_none_is_refused),
        cmocka_unit_test(reserved_bytes_are_sent_as_zero_and_ignored_on_receipt),
        cmocka_unit_test(an_event_has_the_number_of_its_origin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
