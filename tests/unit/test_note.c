/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "wire/note.h"

#define BASE 0x0102030405060000ull
#define DEVICE_LEAST 100 /* the board takes the rest */

static struct ttm_origin_note origin;
static struct ttm_device_note device;
static struct ttm_core_range ranges[TTM_CORE_RANGES_MAX];

static int decode_origin(const uint8_t *buf, size_t len)
{
    return ttm_origin_note_decode(buf, len, &origin);
}

static int decode_device(const uint8_t *buf, size_t len)
{
    return ttm_device_note_decode(buf, len, &device);
}

static void assert_origin(void)
{
    assert_int_equal(origin.context, 0xa1a2a300);
    assert_int_equal(origin.name, 0xa1a2a301);
    assert_int_equal(origin.thread, 0xa1a2a302);
    assert_int_equal(origin.operation, 0xa1a2a303);
    assert_int_equal(origin.python, 0xa1a2a304);
    assert_int_equal(origin.native, 0xa1a2a305);
}

static void the_golden_origin_is_decoded_and_encoded_again_the_same(void **state)
{
    struct bytes file = golden("note_origin.v1.bin");
    uint8_t buf[TTM_ORIGIN_NOTE_SIZE];
    (void)state;

    assert_int_equal(decode_origin(file.data, file.length), 0);
    assert_origin();
    memset(buf, 0xff, sizeof(buf));
    ttm_origin_note_encode(&origin, buf);
    assert_bytes_equal(&file, buf, sizeof(buf));
    assert_truncation_refused(&file, decode_origin);
    bytes_done(&file);
}

static void a_longer_origin_of_a_newer_process_says_the_same(void **state)
{
    struct bytes file = golden("note_origin.v1.bin");
    uint8_t buf[64];
    (void)state;

    memset(buf, 0xee, sizeof(buf));
    memcpy(buf, file.data, file.length);
    assert_int_equal(decode_origin(buf, sizeof(buf)), 0);
    assert_origin();
    bytes_done(&file);
}

static void assert_device(void)
{
    assert_int_equal(device.id, 1023);
    assert_int_equal(device.arch, TTM_ARCH_WORMHOLE_B0);
    assert_int_equal(device.core_count, 64);
    assert_true(device.asic_id == BASE);
    for (size_t i = 0; i < TTM_REGION_COUNT; i++) {
        assert_true(device.bank_bytes[i] == BASE + 1 + i);
        assert_int_equal(device.bank_count[i], 0xa1a20000 + i);
    }
}

static void the_golden_device_is_decoded_and_encoded_again_the_same(void **state)
{
    struct bytes file = golden("note_device.v1.bin");
    uint8_t buf[TTM_DEVICE_NOTE_SIZE_MAX];
    (void)state;

    assert_int_equal(decode_device(file.data, file.length), 0);
    assert_device();
    assert_string_equal(device.board, "n300");
    memset(buf, 0xff, sizeof(buf));
    assert_bytes_equal(&file, buf, ttm_device_note_encode(&device, buf));
    bytes_done(&file);
}

static void a_device_cut_off_before_its_board_is_refused(void **state)
{
    struct bytes file = golden("note_device.v1.bin");
    (void)state;

    for (size_t n = 0; n < file.length; n++) {
        struct bytes part = bytes_of(file.data, n);
        if (n < DEVICE_LEAST) {
            assert_int_equal(decode_device(part.data, part.length), -EBADMSG);
        } else {
            assert_int_equal(decode_device(part.data, part.length), 0);
            assert_device();
            assert_int_equal(strlen(device.board), n - DEVICE_LEAST);
        }
        bytes_done(&part);
    }
    bytes_done(&file);
}

static void a_board_name_of_any_length_is_cut_and_ends(void **state)
{
    struct bytes file = golden("note_device.v1.bin");
    uint8_t buf[DEVICE_LEAST + 300];
    (void)state;

    memset(buf, 'b', sizeof(buf));
    memcpy(buf, file.data, DEVICE_LEAST);
    for (size_t n = DEVICE_LEAST; n <= sizeof(buf); n++) {
        struct bytes part = bytes_of(buf, n);
        const size_t length = n - DEVICE_LEAST;
        assert_int_equal(decode_device(part.data, part.length), 0);
        assert_int_equal(strlen(device.board),
                         length < TTM_BOARD_NAME_MAX ? length : TTM_BOARD_NAME_MAX);
        bytes_done(&part);
    }
    /* The longest that we send ourselves. */
    uint8_t *room = malloc(TTM_DEVICE_NOTE_SIZE_MAX); /* exactly */
    assert_non_null(room);
    assert_int_equal(ttm_device_note_encode(&device, room), TTM_DEVICE_NOTE_SIZE_MAX);
    free(room);
    bytes_done(&file);
}

static void a_device_id_out_of_range_is_refused_and_an_unknown_arch_is_unknown(void **state)
{
    struct bytes file = golden("note_device.v1.bin");
    (void)state;

    file.data[2] = TTM_ARCH_COUNT;
    assert_int_equal(decode_device(file.data, file.length), 0);
    assert_int_equal(device.arch, TTM_ARCH_UNKNOWN);
    file.data[2] = 255;
    assert_int_equal(decode_device(file.data, file.length), 0);
    assert_int_equal(device.arch, TTM_ARCH_UNKNOWN);
    file.data[0] = 0x00; /* 1024 */
    file.data[1] = 0x04;
    assert_int_equal(decode_device(file.data, file.length), -EBADMSG);
    bytes_done(&file);
}

static void the_golden_cores_are_decoded_and_encoded_again_the_same(void **state)
{
    struct bytes file = golden("note_cores.v1.bin");
    uint8_t buf[3 * TTM_CORE_RANGE_SIZE];
    (void)state;

    assert_int_equal(ttm_cores_note_decode(file.data, file.length, ranges), 3);
    assert_int_equal(ranges[0].start_x, 0);
    assert_int_equal(ranges[0].start_y, 0);
    assert_int_equal(ranges[0].end_x, 7);
    assert_int_equal(ranges[0].end_y, 6);
    assert_int_equal(ranges[1].start_x, 31);
    assert_int_equal(ranges[1].start_y, 30);
    assert_int_equal(ranges[1].end_x, 31);
    assert_int_equal(ranges[1].end_y, 31);
    memset(buf, 0xff, sizeof(buf));
    ttm_cores_note_encode(ranges, 3, buf);
    assert_bytes_equal(&file, buf, sizeof(buf));
    bytes_done(&file);
}

static void cores_that_are_none_or_too_many_are_refused(void **state)
{
    const size_t most = (size_t)TTM_CORE_RANGES_MAX * TTM_CORE_RANGE_SIZE;
    struct bytes all = {.length = most + TTM_CORE_RANGE_SIZE, .block = calloc(1, most + 4)};
    (void)state;

    assert_non_null(all.block);
    all.data = all.block;
    for (size_t n = 0; n < TTM_CORE_RANGE_SIZE; n++)
        assert_int_equal(ttm_cores_note_decode(all.data, n, ranges), -EBADMSG);
    assert_int_equal(ttm_cores_note_decode(all.data, 7, ranges), 1); /* the rest is no range */
    assert_int_equal(ttm_cores_note_decode(all.data, most, ranges), TTM_CORE_RANGES_MAX);
    assert_int_equal(ttm_cores_note_decode(all.data, all.length, ranges), -EBADMSG);
    bytes_done(&all);
}

static void a_range_that_ends_before_it_starts_is_refused(void **state)
{
    static const uint8_t wrong[][TTM_CORE_RANGE_SIZE] = {
        {1, 0, 0, 0}, {0, 1, 0, 0}, {255, 0, 254, 0}, {0, 255, 0, 254}};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        uint8_t two[2 * TTM_CORE_RANGE_SIZE] = {0};
        assert_int_equal(ttm_cores_note_decode(wrong[i], sizeof(wrong[i]), ranges), -EBADMSG);
        memcpy(two + TTM_CORE_RANGE_SIZE, wrong[i], sizeof(wrong[i]));
        assert_int_equal(ttm_cores_note_decode(two, sizeof(two), ranges), -EBADMSG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_golden_origin_is_decoded_and_encoded_again_the_same),
        cmocka_unit_test(a_longer_origin_of_a_newer_process_says_the_same),
        cmocka_unit_test(the_golden_device_is_decoded_and_encoded_again_the_same),
        cmocka_unit_test(a_device_cut_off_before_its_board_is_refused),
        cmocka_unit_test(a_board_name_of_any_length_is_cut_and_ends),
        cmocka_unit_test(a_device_id_out_of_range_is_refused_and_an_unknown_arch_is_unknown),
        cmocka_unit_test(the_golden_cores_are_decoded_and_encoded_again_the_same),
        cmocka_unit_test(cores_that_are_none_or_too_many_are_refused),
        cmocka_unit_test(a_range_that_ends_before_it_starts_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
