/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "wire/origin_row.h"

#define BASE 0x0102030405060000ull
#define ORIGIN_FIXED 16
#define MARK_FIXED 16
#define FAILURE_LEAST 56 /* without owners */
#define FAILURE_FIXED 320

static struct ttm_origin_row origin;
static struct ttm_origin_texts texts;
static struct ttm_mark_row mark;
static struct ttm_failure_row failure;

static int decode_origin(const uint8_t *buf, size_t len)
{
    return ttm_origin_row_decode(buf, len, &texts, &origin);
}

static int decode_mark(const uint8_t *buf, size_t len)
{
    return ttm_mark_row_decode(buf, len, &mark);
}

static int decode_failure(const uint8_t *buf, size_t len)
{
    return ttm_failure_row_decode(buf, len, &failure);
}

static size_t encode_origin(uint8_t *buf)
{
    return ttm_origin_row_encode(&origin, buf);
}

static size_t encode_mark(uint8_t *buf)
{
    return ttm_mark_row_encode(&mark, buf);
}

static size_t encode_failure(uint8_t *buf)
{
    return ttm_failure_row_encode(&failure, buf);
}

static void assert_origin(void)
{
    assert_int_equal(origin.process_index, 3);
    assert_int_equal(origin.number, 0xa1a2a3a4);
    assert_string_equal(origin.context, "init/ü");
    assert_string_equal(origin.name, "weights");
    assert_string_equal(origin.thread, "loader");
    assert_string_equal(origin.operation, "ttnn.to_device");
    assert_string_equal(origin.python, "decode.py:28:cache_kv\nmain.py:3:main\n");
    assert_string_equal(origin.native, "libtt.so:0x10:f\n");
}

static void assert_mark(void)
{
    assert_int_equal(mark.process_index, 3);
    assert_true(mark.time_ns == BASE);
    assert_string_equal(mark.name, "warm-up döne");
}

static void assert_failure_without_owners(void)
{
    assert_int_equal(failure.device_id, 1023);
    assert_int_equal(failure.process_index, 3);
    assert_true(failure.time_ns == BASE);
    assert_true(failure.wanted_bytes == BASE + 1);
    assert_true(failure.bank_wanted_bytes == BASE + 2);
    assert_true(failure.bank_free_bytes == BASE + 3);
    assert_true(failure.bank_largest_bytes == BASE + 4);
    assert_int_equal(failure.origin, 0xa1a2a3a4);
    assert_int_equal(failure.region, TTM_REGION_CB);
    assert_int_equal(failure.kind, TTM_FAILURE_CB_CLASH);
}

static void assert_failure(void)
{
    assert_failure_without_owners();
    assert_int_equal(failure.owner_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(failure.owners[i].origin, 0xa0 + i);
        assert_true(failure.owners[i].count == BASE + 16 + i);
        assert_true(failure.owners[i].bytes == BASE + 32 + i);
        assert_true(failure.owners[i].footprint_bytes == BASE + 48 + i);
    }
}

static const struct {
    const char *file;
    decode_fn decode;
    size_t (*encode)(uint8_t *buf);
    size_t fixed;
    size_t least; /* as the first version had it */
    void (*assert_content)(void);
} rows[] = {
    {"origin.v1.bin", decode_origin, encode_origin, ORIGIN_FIXED, ORIGIN_FIXED, assert_origin},
    {"mark.v1.bin", decode_mark, encode_mark, MARK_FIXED, MARK_FIXED, assert_mark},
    {"failure.v2.bin", decode_failure, encode_failure, FAILURE_FIXED, FAILURE_LEAST,
     assert_failure},
};

static void every_golden_row_is_decoded_and_encoded_again_the_same(void **state)
{
    static uint8_t buf[TTM_ORIGIN_ROW_SIZE_MAX];
    (void)state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct bytes file = golden(rows[i].file);
        assert_int_equal(rows[i].decode(file.data, file.length), 0);
        rows[i].assert_content();
        memset(buf, 0xff, sizeof(buf));
        assert_bytes_equal(&file, buf, rows[i].encode(buf));
        bytes_done(&file);
    }
}

static void a_row_cut_off_anywhere_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct bytes file = golden(rows[i].file);
        assert_truncation_refused(&file, rows[i].decode);
        bytes_done(&file);
    }
}

static void a_longer_row_of_a_newer_sender_says_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct bytes file = golden(rows[i].file);
        for (size_t extra = 1; extra < 40; extra += 3) {
            struct bytes longer = lengthened(&file, rows[i].fixed, extra);
            assert_int_equal(rows[i].decode(longer.data, longer.length), 0);
            rows[i].assert_content();
            bytes_done(&longer);
        }
        bytes_done(&file);
    }
}

static void a_fixed_part_shorter_than_the_first_or_longer_than_the_row_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct bytes file = golden(rows[i].file);
        const size_t wrong[] = {0, 1, rows[i].least - 1, file.length + 1, UINT16_MAX};
        for (size_t w = 0; w < COUNT_OF(wrong); w++) {
            file.data[0] = (uint8_t)wrong[w];
            file.data[1] = (uint8_t)(wrong[w] >> 8);
            assert_int_equal(rows[i].decode(file.data, file.length), -EBADMSG);
        }
        bytes_done(&file);
    }
}

static void a_failure_of_an_older_server_has_no_owners(void **state)
{
    struct bytes file = golden("failure.v1.bin");
    (void)state;

    assert_int_equal(file.length, FAILURE_LEAST);
    failure.owner_count = 5;
    assert_int_equal(decode_failure(file.data, file.length), 0);
    assert_failure_without_owners();
    assert_int_equal(failure.owner_count, 0);
    assert_truncation_refused(&file, decode_failure);
    bytes_done(&file);
}

static void a_failure_with_a_field_that_is_none_is_refused(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
    } wrong[] = {
        {52, TTM_REGION_COUNT},
        {52, 255},
        {53, TTM_FAILURE_KIND_COUNT},
        {53, 255},
        {3, 4},                   /* a device id of 1024 and more */
        {56, TTM_OWNERS_MAX + 1}, /* owners */
        {59, 255},                /* likewise */
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct bytes file = golden("failure.v2.bin");
        file.data[wrong[i].at] = wrong[i].value;
        assert_int_equal(decode_failure(file.data, file.length), -EBADMSG);
        bytes_done(&file);
    }
}

/* A text of 'length' bytes: lines of nine and a newline. */
static char *lines_of(size_t length)
{
    char *text = malloc(length + 1);

    assert_non_null(text);
    for (size_t i = 0; i < length; i++)
        text[i] = i % 10 == 9 ? '\n' : 'x';
    text[length] = '\0';
    return text;
}

static void frames_beyond_what_fits_are_left_out_line_by_line(void **state)
{
    static const size_t lengths[] = {TTM_FRAMES_TEXT_MAX - 1, TTM_FRAMES_TEXT_MAX,
                                     TTM_FRAMES_TEXT_MAX + 1, 100000};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        char *text = lines_of(lengths[i]);
        const struct ttm_origin_row row = {.context = "",
                                           .name = "",
                                           .thread = "",
                                           .operation = "",
                                           .python = text,
                                           .native = text};
        uint8_t *room = malloc(TTM_ORIGIN_ROW_SIZE_MAX); /* exactly */
        assert_non_null(room);
        const size_t n = ttm_origin_row_encode(&row, room);
        assert_int_equal(decode_origin(room, n), 0);
        const size_t kept =
            lengths[i] > TTM_FRAMES_TEXT_MAX ? TTM_FRAMES_TEXT_MAX / 10 * 10 : lengths[i];
        assert_int_equal(strlen(origin.python), kept);
        assert_int_equal(strlen(origin.native), kept);
        assert_memory_equal(origin.python, text, kept);
        free(room);
        free(text);
    }
}

static void one_frame_that_does_not_fit_is_left_out_whole(void **state)
{
    char *text = malloc(TTM_FRAMES_TEXT_MAX + 2);
    static uint8_t room[TTM_ORIGIN_ROW_SIZE_MAX];
    (void)state;

    assert_non_null(text);
    memset(text, 'x', TTM_FRAMES_TEXT_MAX + 1);
    text[TTM_FRAMES_TEXT_MAX + 1] = '\0';
    const struct ttm_origin_row row = {
        .context = "c", .name = "", .thread = "", .operation = "", .python = text, .native = "n"};
    assert_int_equal(decode_origin(room, ttm_origin_row_encode(&row, room)), 0);
    assert_string_equal(origin.context, "c");
    assert_string_equal(origin.python, "");
    assert_string_equal(origin.native, "n");
    free(text);
}

static void the_longest_strings_fit_a_row(void **state)
{
    char name[400];
    (void)state;

    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    char *frames = lines_of(TTM_FRAMES_TEXT_MAX);
    const struct ttm_origin_row row = {.context = name,
                                       .name = name,
                                       .thread = name,
                                       .operation = name,
                                       .python = frames,
                                       .native = frames};
    uint8_t *room = malloc(TTM_ORIGIN_ROW_SIZE_MAX); /* exactly */
    assert_non_null(room);
    assert_int_equal(ttm_origin_row_encode(&row, room), TTM_ORIGIN_ROW_SIZE_MAX);
    assert_int_equal(decode_origin(room, TTM_ORIGIN_ROW_SIZE_MAX), 0);
    assert_int_equal(strlen(origin.operation), TTM_STRING_MAX);
    free(room);
    free(frames);
}

static void kinds_of_failure_have_names(void **state)
{
    (void)state;
    assert_string_equal(ttm_failure_kind_name(TTM_FAILURE_OUT_OF_MEMORY), "out_of_memory");
    assert_string_equal(ttm_failure_kind_name(TTM_FAILURE_CB_CLASH), "cb_clash");
    assert_string_equal(ttm_failure_kind_name(TTM_FAILURE_KIND_COUNT), "?");
}

static void fragmented_is_room_that_is_there_in_pieces(void **state)
{
    struct ttm_failure_row row = {
        .bank_wanted_bytes = 512, .bank_free_bytes = 512, .bank_largest_bytes = 511};
    (void)state;

    assert_int_equal(ttm_failure_shortage(&row), TTM_SHORTAGE_FRAGMENTED);
    row.bank_free_bytes = 511;
    assert_int_equal(ttm_failure_shortage(&row), TTM_SHORTAGE_EXHAUSTED);
    row.bank_free_bytes = row.bank_largest_bytes = 512; /* it failed for another reason */
    assert_int_equal(ttm_failure_shortage(&row), TTM_SHORTAGE_NONE);
    row.bank_largest_bytes = 1;
    row.kind = TTM_FAILURE_CB_CLASH; /* its sizes are addresses */
    assert_int_equal(ttm_failure_shortage(&row), TTM_SHORTAGE_NONE);
    row = (struct ttm_failure_row){.wanted_bytes = 4096}; /* nothing is known of a bank */
    assert_int_equal(ttm_failure_shortage(&row), TTM_SHORTAGE_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_golden_row_is_decoded_and_encoded_again_the_same),
        cmocka_unit_test(a_row_cut_off_anywhere_is_refused),
        cmocka_unit_test(a_longer_row_of_a_newer_sender_says_the_same),
        cmocka_unit_test(a_fixed_part_shorter_than_the_first_or_longer_than_the_row_is_refused),
        cmocka_unit_test(a_failure_of_an_older_server_has_no_owners),
        cmocka_unit_test(fragmented_is_room_that_is_there_in_pieces),
        cmocka_unit_test(a_failure_with_a_field_that_is_none_is_refused),
        cmocka_unit_test(frames_beyond_what_fits_are_left_out_line_by_line),
        cmocka_unit_test(one_frame_that_does_not_fit_is_left_out_whole),
        cmocka_unit_test(the_longest_strings_fit_a_row),
        cmocka_unit_test(kinds_of_failure_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
