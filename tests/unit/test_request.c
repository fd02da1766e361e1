/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "wire/request.h"

static uint32_t number;
static struct ttm_lives_request lives;
static struct ttm_events_request events;

static int decode_number(const uint8_t *buf, size_t len)
{
    return ttm_number_request_decode(buf, len, &number);
}

static int decode_events(const uint8_t *buf, size_t len)
{
    return ttm_events_request_decode(buf, len, &events);
}

static int decode_lives(const uint8_t *buf, size_t len)
{
    return ttm_lives_request_decode(buf, len, &lives);
}

static void the_golden_request_for_some_lives_is_decoded_and_encoded_again_the_same(void **state)
{
    struct bytes file = golden("get_lives_of.v1.bin");
    uint8_t buf[TTM_LIVES_REQUEST_SIZE];
    (void)state;

    assert_int_equal(decode_lives(file.data, file.length), 0);
    assert_int_equal(lives.most, 0x01020304);
    assert_int_equal(lives.frames, 5);
    assert_int_equal(lives.device, 1023);
    assert_int_equal(lives.region, TTM_REGION_L1);
    assert_int_equal(lives.origin_region, TTM_REGION_CB);
    assert_int_equal(lives.pid, -7);
    assert_int_equal(lives.origin, 0xa1a2a3a4);
    memset(buf, 0xff, sizeof(buf));
    ttm_lives_request_encode(&lives, buf);
    assert_bytes_equal(&file, buf, sizeof(buf));
    assert_truncation_refused(&file, decode_lives);
    bytes_done(&file);
}

static void a_request_for_lives_on_nothing_is_refused(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
    } wrong[] = {{9, 4}, {10, TTM_REGION_COUNT}, {11, TTM_REGION_COUNT}};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct bytes file = golden("get_lives_of.v1.bin");
        file.data[wrong[i].at] = wrong[i].value;
        assert_int_equal(decode_lives(file.data, file.length), -EBADMSG);
        bytes_done(&file);
    }
}

static void the_golden_number_requests_are_decoded_and_encoded_again_the_same(void **state)
{
    static const struct {
        const char *file;
        uint32_t number;
    } requests[] = {{"get_lives.v1.bin", 0x01020304},
                    {"subscribe_totals.v1.bin", 500},
                    {"get_sites.v1.bin", 5}};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        struct bytes file = golden(requests[i].file);
        uint8_t buf[TTM_NUMBER_REQUEST_SIZE];
        assert_int_equal(decode_number(file.data, file.length), 0);
        assert_int_equal(number, requests[i].number);
        memset(buf, 0xff, sizeof(buf));
        ttm_number_request_encode(number, buf);
        assert_bytes_equal(&file, buf, sizeof(buf));
        assert_truncation_refused(&file, decode_number);
        bytes_done(&file);
    }
}

static void the_golden_events_request_is_decoded_and_encoded_again_the_same(void **state)
{
    struct bytes file = golden("subscribe_events.v1.bin");
    uint8_t buf[TTM_EVENTS_REQUEST_SIZE];
    (void)state;

    assert_int_equal(decode_events(file.data, file.length), 0);
    assert_int_equal(events.pid, -7);
    assert_false(events.devices.is_all);
    for (unsigned device = 0; device < TTM_DEVICE_COUNT; device++)
        assert_int_equal(ttm_device_filter_has(&events.devices, device),
                         device == 0 || device == 9 || device == 1023);
    memset(buf, 0xff, sizeof(buf));
    ttm_events_request_encode(&events, buf);
    assert_bytes_equal(&file, buf, sizeof(buf));
    bytes_done(&file);
}

static void an_events_request_cut_off_anywhere_is_refused(void **state)
{
    struct bytes file = golden("subscribe_events.v1.bin");
    (void)state;

    assert_truncation_refused(&file, decode_events);
    bytes_done(&file);
}

static void longer_requests_of_a_newer_client_are_accepted(void **state)
{
    uint8_t buf[256];
    struct bytes file = golden("subscribe_events.v1.bin");
    (void)state;

    memset(buf, 0xee, sizeof(buf));
    memcpy(buf, file.data, file.length);
    assert_int_equal(decode_events(buf, sizeof(buf)), 0);
    assert_int_equal(events.pid, -7);
    assert_int_equal(decode_number(buf, sizeof(buf)), 0);
    bytes_done(&file);
}

static void all_devices_is_said_by_a_flag_and_other_flags_are_ignored(void **state)
{
    struct ttm_events_request all = {.devices = {.is_all = true}};
    uint8_t buf[TTM_EVENTS_REQUEST_SIZE];
    (void)state;

    ttm_events_request_encode(&all, buf);
    assert_int_equal(decode_events(buf, sizeof(buf)), 0);
    assert_true(events.devices.is_all);
    assert_true(ttm_device_filter_has(&events.devices, 512));
    assert_false(events.has_last_words);
    memset(buf + 4, 0xff, 4);
    buf[4] = 0xfc; /* every flag but ours */
    assert_int_equal(decode_events(buf, sizeof(buf)), 0);
    assert_false(events.devices.is_all || events.has_last_words);
    ttm_events_request_encode(&(struct ttm_events_request){.has_last_words = true}, buf);
    assert_int_equal(decode_events(buf, sizeof(buf)), 0);
    assert_true(events.has_last_words && !events.devices.is_all);
}

static void a_device_added_to_a_filter_is_the_only_one_in_it(void **state)
{
    (void)state;
    for (unsigned device = 0; device < TTM_DEVICE_COUNT; device += 93) {
        struct ttm_device_filter filter = {0};
        ttm_device_filter_add(&filter, device);
        for (unsigned other = 0; other < TTM_DEVICE_COUNT; other++)
            assert_int_equal(ttm_device_filter_has(&filter, other), other == device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_golden_request_for_some_lives_is_decoded_and_encoded_again_the_same),
        cmocka_unit_test(a_request_for_lives_on_nothing_is_refused),
        cmocka_unit_test(the_golden_number_requests_are_decoded_and_encoded_again_the_same),
        cmocka_unit_test(the_golden_events_request_is_decoded_and_encoded_again_the_same),
        cmocka_unit_test(an_events_request_cut_off_anywhere_is_refused),
        cmocka_unit_test(longer_requests_of_a_newer_client_are_accepted),
        cmocka_unit_test(all_devices_is_said_by_a_flag_and_other_flags_are_ignored),
        cmocka_unit_test(a_device_added_to_a_filter_is_the_only_one_in_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
