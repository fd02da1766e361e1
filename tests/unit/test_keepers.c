/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "wire/keepers.h"

static struct ttm_keepers_note decoded;

static int decode(const uint8_t *buf, size_t len)
{
    return ttm_keepers_note_decode(buf, len, &decoded);
}

static struct ttm_note_text text_of(const char *string)
{
    return (struct ttm_note_text){string, (uint16_t)strlen(string)};
}

static void assert_text(struct ttm_note_text text, const char *expected)
{
    assert_int_equal(text.length, strlen(expected));
    assert_memory_equal(text.bytes, expected, text.length);
}

static void the_golden_note_is_decoded_and_encoded_again_the_same(void **state)
{
    struct bytes file = golden("note_keepers.v1.bin");
    uint8_t buf[TTM_KEEPERS_NOTE_SIZE_MAX];
    (void)state;

    assert_int_equal(decode(file.data, file.length), 0);
    assert_int_equal(decoded.origin, 1030);
    assert_int_equal(decoded.round, 7);
    assert_int_equal(decoded.cause, TTM_CAUSE_CONTAINER);
    assert_int_equal(decoded.search, TTM_SEARCH_DONE);
    assert_int_equal(decoded.roots[0], 0);
    assert_int_equal(decoded.count, 2);
    assert_text(decoded.keepers[0], "list LEAKED in module decode");
    assert_text(decoded.keepers[1], "me");
    assert_bytes_equal(&file, buf, ttm_keepers_note_encode(&decoded, buf));
    assert_truncation_refused(&file, decode);
    bytes_done(&file);
}

static void the_second_golden_note_has_roots_and_says_that_the_search_is_unfinished(void **state)
{
    struct bytes file = golden("note_keepers.v2.bin");
    uint8_t buf[TTM_KEEPERS_NOTE_SIZE_MAX];
    (void)state;

    assert_int_equal(decode(file.data, file.length), 0);
    assert_int_equal(decoded.search, TTM_SEARCH_UNFINISHED);
    assert_int_equal(decoded.roots[0], 3);
    assert_int_equal(decoded.roots[1], 0x01020304);
    assert_text(decoded.keepers[1], "me");
    assert_bytes_equal(&file, buf, ttm_keepers_note_encode(&decoded, buf));
    for (size_t i = 1; i < 12; i++) /* a part of what was appended */
        assert_int_equal(decode(file.data, file.length - i), -EBADMSG);
    bytes_done(&file);
}

static void a_state_of_the_future_is_unfinished(void **state)
{
    const struct ttm_keepers_note note = {.search = TTM_SEARCH_COUNT};
    uint8_t buf[TTM_KEEPERS_NOTE_SIZE_MAX];
    (void)state;

    assert_int_equal(decode(buf, ttm_keepers_note_encode(&note, buf)), 0);
    assert_int_equal(decoded.search, TTM_SEARCH_UNFINISHED);
}

static void a_note_without_keepers_is_whole(void **state)
{
    const struct ttm_keepers_note none = {.origin = 1024};
    uint8_t buf[TTM_KEEPERS_NOTE_SIZE_MAX];
    (void)state;

    const size_t size = ttm_keepers_note_encode(&none, buf);
    assert_int_equal(size, 8);
    assert_int_equal(decode(buf, size), 0);
    assert_int_equal(decoded.count, 0);
    assert_null(ttm_cause_name(decoded.cause));
}

static void a_long_text_is_cut_at_a_character_and_the_largest_note_fits(void **state)
{
    struct ttm_keepers_note note = {.origin = 1024, .count = TTM_KEEPERS_MAX};
    uint8_t buf[TTM_KEEPERS_NOTE_SIZE_MAX];
    char longest[400];
    (void)state;

    memset(longest, 'x', sizeof(longest));
    memcpy(longest + 254, "\xc3\xa8", 2); /* the limit lies within it */
    for (unsigned i = 0; i < TTM_KEEPERS_MAX; i++)
        note.keepers[i] = (struct ttm_note_text){longest, sizeof(longest)}, note.roots[i] = i + 1;
    assert_int_equal(decode(buf, ttm_keepers_note_encode(&note, buf)), 0);
    assert_int_equal(decoded.keepers[TTM_KEEPERS_MAX - 1].length, 254);
    memset(longest, 'x', sizeof(longest));
    assert_int_equal(ttm_keepers_note_encode(&note, buf), sizeof(buf));
}

static void counts_and_lengths_beyond_the_limits_are_refused(void **state)
{
    const struct ttm_keepers_note note = {.count = 1, .keepers = {text_of("me")}};
    uint8_t buf[TTM_KEEPERS_NOTE_SIZE_MAX + 8] = {0};
    (void)state;

    const size_t size = ttm_keepers_note_encode(&note, buf);
    assert_int_equal(decode(buf, size), 0);
    buf[5] = TTM_KEEPERS_MAX + 1;
    assert_int_equal(decode(buf, sizeof(buf)), -EBADMSG);
    buf[5] = 1;
    buf[9] = 1; /* 258 bytes: there are as many, and none may have them */
    assert_int_equal(decode(buf, sizeof(buf)), -EBADMSG);
}

static void a_cause_of_the_future_is_none(void **state)
{
    const struct ttm_keepers_note note = {.cause = TTM_CAUSE_COUNT};
    uint8_t buf[TTM_KEEPERS_NOTE_SIZE_MAX];
    (void)state;

    assert_int_equal(decode(buf, ttm_keepers_note_encode(&note, buf)), 0);
    assert_int_equal(decoded.cause, TTM_CAUSE_NONE);
    assert_null(ttm_cause_name(TTM_CAUSE_COUNT));
    assert_string_equal(ttm_cause_name(TTM_CAUSE_TRACEBACK), "traceback");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_golden_note_is_decoded_and_encoded_again_the_same),
        cmocka_unit_test(the_second_golden_note_has_roots_and_says_that_the_search_is_unfinished),
        cmocka_unit_test(a_state_of_the_future_is_unfinished),
        cmocka_unit_test(a_note_without_keepers_is_whole),
        cmocka_unit_test(a_long_text_is_cut_at_a_character_and_the_largest_note_fits),
        cmocka_unit_test(counts_and_lengths_beyond_the_limits_are_refused),
        cmocka_unit_test(a_cause_of_the_future_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
