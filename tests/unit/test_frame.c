/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "base/queue.h"
#include "wire/frame.h"

static void the_golden_frame_is_parsed_and_written_again_the_same(void **state)
{
    struct bytes file = golden("frame.v1.bin");
    struct ttm_frame frame;
    struct ttm_queue queue;
    (void)state;

    assert_int_equal(ttm_frame_parse(file.data, file.length, 5, &frame), file.length);
    assert_int_equal(frame.type, TTM_FRAME_TOTALS);
    assert_int_equal(frame.length, 5);
    assert_ptr_equal(frame.payload, file.data + TTM_FRAME_HEADER_SIZE);
    assert_memory_equal(frame.payload, "hello", 5);

    ttm_queue_init(&queue);
    assert_int_equal(ttm_frame_append(&queue, frame.type, frame.payload, frame.length), 0);
    assert_bytes_equal(&file, ttm_queue_front(&queue), ttm_queue_length(&queue));
    ttm_queue_done(&queue);
    bytes_done(&file);
}

static void a_part_of_a_frame_wants_more_bytes(void **state)
{
    struct bytes file = golden("frame.v1.bin");
    (void)state;

    for (size_t n = 0; n < file.length; n++) {
        struct bytes part = bytes_of(file.data, n);
        struct ttm_frame frame = {.type = 77};
        assert_int_equal(ttm_frame_parse(part.data, part.length, 5, &frame), 0);
        assert_int_equal(frame.type, 77);
        assert_int_equal(ttm_frame_missing(part.data, part.length),
                         n < TTM_FRAME_HEADER_SIZE ? TTM_FRAME_HEADER_SIZE - n : file.length - n);
        bytes_done(&part);
    }
    assert_int_equal(ttm_frame_missing(file.data, file.length), 0);
    bytes_done(&file);
}

static void a_length_above_the_limit_is_refused_as_soon_as_it_is_there(void **state)
{
    static const uint8_t huge[] = {16, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
    struct bytes file = golden("frame.v1.bin");
    struct ttm_frame frame;
    (void)state;

    assert_int_equal(ttm_frame_parse(file.data, TTM_FRAME_HEADER_SIZE, 4, &frame), -EMSGSIZE);
    assert_int_equal(ttm_frame_parse(file.data, file.length, 4, &frame), -EMSGSIZE);
    assert_int_equal(ttm_frame_parse(huge, sizeof(huge), TTM_FRAME_ANSWER_MAX, &frame), -EMSGSIZE);
    bytes_done(&file);
}

static void an_empty_frame_is_its_header(void **state)
{
    struct ttm_queue queue;
    struct ttm_frame frame;
    (void)state;

    ttm_queue_init(&queue);
    assert_int_equal(ttm_frame_append(&queue, TTM_FRAME_END, NULL, 0), 0);
    assert_int_equal(ttm_queue_length(&queue), TTM_FRAME_HEADER_SIZE);
    assert_int_equal(ttm_frame_parse(ttm_queue_front(&queue), 8, 0, &frame), 8);
    assert_int_equal(frame.type, TTM_FRAME_END);
    assert_int_equal(frame.length, 0);
    ttm_queue_done(&queue);
}

static void an_unknown_type_is_skipped_by_its_length(void **state)
{
    struct ttm_queue queue;
    struct ttm_frame frame;
    (void)state;

    ttm_queue_init(&queue);
    assert_int_equal(ttm_frame_append(&queue, 0xfffe, "of a newer sender", 17), 0);
    assert_int_equal(ttm_frame_append(&queue, TTM_FRAME_END, NULL, 0), 0);
    const long n = ttm_frame_parse(ttm_queue_front(&queue), ttm_queue_length(&queue), 64, &frame);
    assert_int_equal(n, 25);
    assert_int_equal(frame.type, 0xfffe);
    ttm_queue_consume(&queue, (size_t)n);
    assert_int_equal(ttm_frame_parse(ttm_queue_front(&queue), ttm_queue_length(&queue), 64, &frame),
                     8);
    assert_int_equal(frame.type, TTM_FRAME_END);
    ttm_queue_done(&queue);
}

static void reserved_bytes_are_sent_as_zero_and_ignored_on_receipt(void **state)
{
    struct bytes file = golden("frame.v1.bin");
    struct ttm_frame frame;
    (void)state;

    assert_int_equal(file.data[2], 0);
    assert_int_equal(file.data[3], 0);
    memset(file.data + 2, 0xaa, 2);
    assert_int_equal(ttm_frame_parse(file.data, file.length, 5, &frame), file.length);
    bytes_done(&file);
}

static void a_frame_begun_has_room_for_its_payload(void **state)
{
    struct ttm_queue queue;
    struct ttm_frame frame;
    (void)state;

    ttm_queue_init(&queue);
    uint8_t *payload = ttm_frame_begin(&queue, TTM_FRAME_LIVES, 3000);
    assert_non_null(payload);
    memset(payload, 0x5a, 3000);
    assert_int_equal(
        ttm_frame_parse(ttm_queue_front(&queue), ttm_queue_length(&queue), 3000, &frame), 3008);
    assert_int_equal(frame.payload[2999], 0x5a);
    ttm_queue_done(&queue);
}

static void short_memory_appends_nothing(void **state)
{
    struct ttm_queue queue;
    (void)state;

    ttm_queue_init(&queue);
    faults_begin(0);
    assert_int_equal(ttm_frame_append(&queue, TTM_FRAME_END, NULL, 0), -ENOMEM);
    assert_true(faults_end());
    assert_int_equal(ttm_queue_length(&queue), 0);
    ttm_queue_done(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_golden_frame_is_parsed_and_written_again_the_same),
        cmocka_unit_test(a_part_of_a_frame_wants_more_bytes),
        cmocka_unit_test(a_length_above_the_limit_is_refused_as_soon_as_it_is_there),
        cmocka_unit_test(an_empty_frame_is_its_header),
        cmocka_unit_test(an_unknown_type_is_skipped_by_its_length),
        cmocka_unit_test(reserved_bytes_are_sent_as_zero_and_ignored_on_receipt),
        cmocka_unit_test(a_frame_begun_has_room_for_its_payload),
        cmocka_unit_test(short_memory_appends_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
