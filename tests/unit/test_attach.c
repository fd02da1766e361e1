/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "wire/attach.h"
#include "wire/frame.h"

#define BASE 0x0102030405060000ull

static uint32_t epoch;

static int decode_head(const uint8_t *buf, size_t len)
{
    const long r = ttm_told_head_decode(buf, len, &epoch);

    return r < 0 ? (int)r : 0;
}

static void assert_life(const uint8_t *buf, uint64_t base, uint32_t devices, uint16_t allocator)
{
    struct ttm_told told;

    ttm_told_decode(buf, &told);
    assert_true(told.serial == base);
    assert_true(ttm_told_serial(buf) == base);
    assert_true(told.id == base + 1);
    assert_true(told.address == base + 2);
    assert_true(told.bytes == base + 3);
    assert_true(told.footprint_bytes == base + 4);
    assert_true(told.birth_ns == base + 5);
    assert_int_equal(told.devices, devices);
    assert_int_equal(told.origin, 0xb1b2b3b4);
    assert_int_equal(told.allocator, allocator);
    assert_int_equal(told.region, 6);
    assert_int_equal(told.kind, 2);
    assert_int_equal(told.flags, 1);
}

static void the_golden_lives_are_decoded_and_encoded_again_the_same(void **state)
{
    struct bytes file = golden("told.v1.bin");
    uint8_t buf[TTM_TOLD_HEAD_SIZE + 2 * TTM_TOLD_SIZE];
    struct ttm_told told;
    (void)state;

    assert_int_equal(file.length, sizeof(buf));
    assert_int_equal(ttm_told_head_decode(file.data, file.length, &epoch), 2);
    assert_int_equal(epoch, 0x01020304);
    const uint8_t *first = file.data + TTM_TOLD_HEAD_SIZE;
    assert_life(first, BASE + 0x100, 0xa1a2a3a4, 0xc1c2);
    assert_life(first + TTM_TOLD_SIZE, BASE + 0x200, 1023, 0xffff);

    memset(buf, 0xff, sizeof(buf));
    ttm_told_head_encode(epoch, 2, buf);
    for (size_t at = TTM_TOLD_HEAD_SIZE; at < sizeof(buf); at += TTM_TOLD_SIZE) {
        ttm_told_decode(file.data + at, &told);
        ttm_told_encode(&told, buf + at);
    }
    assert_bytes_equal(&file, buf, sizeof(buf));
    bytes_done(&file);
}

static void the_golden_question_is_a_head_without_lives(void **state)
{
    struct bytes file = golden("tell.v1.bin");
    uint8_t buf[TTM_TOLD_HEAD_SIZE];
    (void)state;

    assert_int_equal(ttm_told_head_decode(file.data, file.length, &epoch), 0);
    assert_int_equal(epoch, 0xfffffffe);
    ttm_told_head_encode(epoch, 0, buf);
    assert_bytes_equal(&file, buf, sizeof(buf));
    bytes_done(&file);
}

static void the_golden_announcement_has_no_lives_and_says_how_many_come(void **state)
{
    struct bytes file = golden("told_announce.v1.bin");
    uint8_t buf[TTM_TOLD_ANNOUNCE_SIZE];
    (void)state;

    assert_int_equal(ttm_told_head_decode(file.data, file.length, &epoch), 0);
    assert_int_equal(epoch, 0x01020304);
    assert_int_equal(ttm_told_announced(file.data, file.length), 0xa1a2a3a4);
    ttm_told_announce_encode(epoch, 0xa1a2a3a4, buf);
    assert_bytes_equal(&file, buf, sizeof(buf));
    bytes_done(&file);
}

static void frames_of_lives_and_shorter_ones_announce_nothing(void **state)
{
    struct bytes lives = golden("told.v1.bin");
    struct bytes file = golden("told_announce.v1.bin");
    (void)state;

    assert_int_equal(ttm_told_announced(lives.data, lives.length), 0);
    for (size_t length = TTM_TOLD_HEAD_SIZE; length < file.length; length++) {
        struct bytes cut = bytes_of(file.data, length);
        assert_int_equal(ttm_told_announced(cut.data, cut.length), 0);
        bytes_done(&cut);
    }
    bytes_done(&file);
    bytes_done(&lives);
}

static void lives_cut_off_anywhere_are_refused(void **state)
{
    struct bytes file = golden("told.v1.bin");
    (void)state;

    epoch = 7;
    assert_truncation_refused(&file, decode_head);
    assert_int_equal(epoch, 7); /* left alone */
    bytes_done(&file);
}

static void more_lives_than_there_are_bytes_for_are_refused(void **state)
{
    static const uint32_t counts[] = {3, 1u << 26, 0x04000001, 0x80000000, UINT32_MAX};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        struct bytes file = golden("told.v1.bin");
        memcpy(file.data + 4, &counts[i], 4);
        assert_int_equal(decode_head(file.data, file.length), -EBADMSG);
        bytes_done(&file);
    }
}

static void bytes_behind_the_lives_of_a_newer_sender_are_ignored(void **state)
{
    struct bytes file = golden("told.v1.bin");
    struct bytes longer = bytes_of(file.data, file.length);
    (void)state;

    const uint32_t one = 1;
    memcpy(longer.data + 4, &one, 4);
    assert_int_equal(ttm_told_head_decode(longer.data, longer.length, &epoch), 1);
    bytes_done(&longer);
    bytes_done(&file);
}

static void reserved_bytes_are_sent_as_zero_and_ignored_on_receipt(void **state)
{
    struct bytes file = golden("told.v1.bin");
    uint8_t buf[TTM_TOLD_SIZE], filled[TTM_TOLD_SIZE];
    struct ttm_told told;
    (void)state;

    memcpy(filled, file.data + TTM_TOLD_HEAD_SIZE, sizeof(filled));
    filled[61] = 0xaa;
    ttm_told_decode(filled, &told);
    memset(buf, 0xff, sizeof(buf));
    ttm_told_encode(&told, buf);
    assert_memory_equal(buf, file.data + TTM_TOLD_HEAD_SIZE, sizeof(buf));
    bytes_done(&file);
}

static void lives_with_banks_are_decoded_and_encoded_again_the_same(void **state)
{
    struct bytes file = golden("told.v2.bin"), older = golden("told.v1.bin");
    uint8_t buf[TTM_TOLD_SIZE];
    struct ttm_told told;
    (void)state;

    ttm_told_decode(file.data + TTM_TOLD_HEAD_SIZE, &told);
    assert_int_equal(told.banks, 0xd1d2);
    memset(buf, 0xff, sizeof(buf));
    ttm_told_encode(&told, buf);
    assert_memory_equal(buf, file.data + TTM_TOLD_HEAD_SIZE, sizeof(buf));
    ttm_told_decode(older.data + TTM_TOLD_HEAD_SIZE, &told);
    assert_int_equal(told.banks, 0);
    bytes_done(&older);
    bytes_done(&file);
}

static void a_frame_of_lives_fits_what_a_server_takes(void **state)
{
    (void)state;
    assert_in_range(TTM_TOLD_HEAD_SIZE + TTM_TOLD_PER_FRAME * TTM_TOLD_SIZE, TTM_TOLD_SIZE,
                    TTM_FRAME_REQUEST_MAX);
}

static void the_golden_switch_is_decoded_and_encoded_again_the_same(void **state)
{
    struct bytes file = golden("switched.v1.bin");
    uint8_t buf[TTM_TOLD_HEAD_SIZE];
    (void)state;

    assert_int_equal(ttm_told_head_decode(file.data, file.length, &epoch), 0);
    assert_int_equal(epoch, 1);
    memset(buf, 0xff, sizeof(buf));
    ttm_told_head_encode(epoch, 0, buf);
    assert_bytes_equal(&file, buf, sizeof(buf));
    assert_truncation_refused(&file, decode_head);
    bytes_done(&file);
}

static void the_golden_attachment_names_its_run_and_an_older_one_has_none(void **state)
{
    struct bytes file = golden("attach.v1.bin");
    uint8_t buf[TTM_ATTACH_SIZE];
    (void)state;

    assert_true(ttm_attach_decode(file.data, file.length) == BASE);
    ttm_attach_encode(BASE, buf);
    assert_bytes_equal(&file, buf, sizeof(buf));
    for (size_t length = 0; length < file.length; length++)
        assert_true(ttm_attach_decode(file.data, length) == 0);
    bytes_done(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_golden_switch_is_decoded_and_encoded_again_the_same),
        cmocka_unit_test(the_golden_lives_are_decoded_and_encoded_again_the_same),
        cmocka_unit_test(lives_with_banks_are_decoded_and_encoded_again_the_same),
        cmocka_unit_test(the_golden_question_is_a_head_without_lives),
        cmocka_unit_test(the_golden_announcement_has_no_lives_and_says_how_many_come),
        cmocka_unit_test(frames_of_lives_and_shorter_ones_announce_nothing),
        cmocka_unit_test(lives_cut_off_anywhere_are_refused),
        cmocka_unit_test(more_lives_than_there_are_bytes_for_are_refused),
        cmocka_unit_test(bytes_behind_the_lives_of_a_newer_sender_are_ignored),
        cmocka_unit_test(reserved_bytes_are_sent_as_zero_and_ignored_on_receipt),
        cmocka_unit_test(a_frame_of_lives_fits_what_a_server_takes),
        cmocka_unit_test(the_golden_attachment_names_its_run_and_an_older_one_has_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
