/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "base/text.h"

#define MS 1000000ull
#define S (1000 * MS)

static void assert_safe(const char *string, const char *expected)
{
    struct ttm_text text;

    ttm_text_init(&text);
    ttm_text_append_safe(&text, string);
    assert_string_equal(ttm_text_string(&text), expected);
    ttm_text_done(&text);
}

static void assert_column(const char *string, size_t columns, bool utf8, const char *expected)
{
    struct ttm_text text;

    ttm_text_init(&text);
    ttm_text_append(&text, "|");
    ttm_text_append_column(&text, string, columns, utf8);
    ttm_text_append(&text, "|");
    assert_string_equal(ttm_text_string(&text), expected);
    ttm_text_done(&text);
}

static void assert_bytes(uint64_t bytes, const char *expected)
{
    char buf[TTM_NUMBER_SIZE];

    assert_string_equal(ttm_format_bytes(bytes, buf), expected);
}

static void assert_count(uint64_t count, const char *expected)
{
    char buf[TTM_NUMBER_SIZE];

    assert_string_equal(ttm_format_count(count, buf), expected);
}

static void assert_duration(uint64_t duration_ns, const char *expected)
{
    char buf[TTM_NUMBER_SIZE];

    assert_string_equal(ttm_format_duration(duration_ns, buf), expected);
}

static void nothing_appended_is_the_empty_string(void **state)
{
    struct ttm_text text;
    (void)state;

    ttm_text_init(&text);
    assert_string_equal(ttm_text_string(&text), "");
    ttm_text_append(&text, "");
    ttm_text_repeat(&text, "x", 0);
    assert_string_equal(ttm_text_string(&text), "");
    assert_int_equal(text.length, 0);
    assert_false(ttm_text_failed(&text));
    ttm_text_done(&text);
}

static void appends_of_every_length_around_the_room_keep_all_bytes(void **state)
{
    (void)state;
    for (size_t n = 250; n < 260; n++) {
        struct ttm_text text;
        ttm_text_init(&text);
        ttm_text_repeat(&text, "a", n);
        ttm_text_format(&text, "%s-%d", "end", 7);
        assert_int_equal(text.length, n + 5);
        assert_int_equal(strlen(ttm_text_string(&text)), n + 5);
        assert_string_equal(ttm_text_string(&text) + n, "end-7");
        ttm_text_done(&text);
    }
}

static void one_large_append_makes_enough_room(void **state)
{
    struct ttm_text text;
    char *large = malloc(100001);
    (void)state;

    assert_non_null(large);
    memset(large, 'z', 100000);
    large[100000] = '\0';
    ttm_text_init(&text);
    ttm_text_append(&text, large);
    ttm_text_format(&text, "%s", large);
    assert_int_equal(text.length, 200000);
    assert_int_equal(strlen(ttm_text_string(&text)), 200000);
    ttm_text_done(&text);
    free(large);
}

static void a_cleared_text_starts_anew(void **state)
{
    struct ttm_text text;
    (void)state;

    ttm_text_init(&text);
    ttm_text_clear(&text);
    assert_string_equal(ttm_text_string(&text), "");
    ttm_text_append(&text, "long gone");
    ttm_text_clear(&text);
    assert_string_equal(ttm_text_string(&text), "");
    ttm_text_append(&text, "now");
    assert_string_equal(ttm_text_string(&text), "now");
    ttm_text_done(&text);
}

static void short_memory_is_remembered_until_the_text_is_cleared(void **state)
{
    struct ttm_text text;
    (void)state;

    ttm_text_init(&text);
    faults_begin(0);
    ttm_text_append(&text, "x");
    assert_true(faults_end());
    assert_true(ttm_text_failed(&text));
    ttm_text_append(&text, "y");
    ttm_text_format(&text, "%d", 1);
    assert_string_equal(ttm_text_string(&text), "");
    assert_true(ttm_text_failed(&text));

    ttm_text_clear(&text);
    ttm_text_append(&text, "z");
    assert_false(ttm_text_failed(&text));
    assert_string_equal(ttm_text_string(&text), "z");
    ttm_text_done(&text);
}

static void bytes_with_a_nul_inside_are_kept(void **state)
{
    struct ttm_text text;
    (void)state;

    ttm_text_init(&text);
    ttm_text_append_bytes(&text, "a\0b", 3);
    assert_int_equal(text.length, 3);
    assert_memory_equal(ttm_text_string(&text), "a\0b", 4);
    ttm_text_done(&text);
}

static void well_formed_utf8_is_measured(void **state)
{
    (void)state;
    assert_int_equal(ttm_utf8_length(""), 1);
    assert_int_equal(ttm_utf8_length("\x7f"), 1);
    assert_int_equal(ttm_utf8_length("\xc2\x80"), 2);
    assert_int_equal(ttm_utf8_length("\xdf\xbf"), 2);
    assert_int_equal(ttm_utf8_length("\xe0\xa0\x80"), 3);
    assert_int_equal(ttm_utf8_length("\xed\x9f\xbf"), 3);
    assert_int_equal(ttm_utf8_length("\xee\x80\x80"), 3);
    assert_int_equal(ttm_utf8_length("\xef\xbf\xbf"), 3);
    assert_int_equal(ttm_utf8_length("\xf0\x90\x80\x80"), 4);
    assert_int_equal(ttm_utf8_length("\xf4\x8f\xbf\xbf"), 4);
}

static void broken_utf8_has_no_length(void **state)
{
    static const char *const broken[] = {
        "\x80",             /* a continuation alone */
        "\xbf",             /* the last of those */
        "\xc0\x80",         /* NUL in two bytes */
        "\xc1\xbf",         /* DEL in two bytes */
        "\xc2",             /* cut off */
        "\xc2\x41",         /* not continued */
        "\xe0\x9f\xbf",     /* overlong */
        "\xe2\x82",         /* cut off */
        "\xe2\x82\x41",     /* not continued */
        "\xed\xa0\x80",     /* a surrogate */
        "\xf0\x8f\xbf\xbf", /* overlong */
        "\xf0\x9f\x98",     /* cut off */
        "\xf4\x90\x80\x80", /* above U+10FFFF */
        "\xf5\x80\x80\x80", /* no such first byte */
        "\xff",
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(broken); i++)
        assert_int_equal(ttm_utf8_length(broken[i]), 0);
}

static void a_sequence_cut_off_at_the_end_is_not_read_beyond(void **state)
{
    static const char *const cut[] = {"\xc2", "\xe2\x82", "\xf0\x9f\x98", "\xf0"};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cut); i++) {
        struct bytes string = bytes_of(cut[i], strlen(cut[i]) + 1);
        struct ttm_text text;
        ttm_text_init(&text);
        ttm_text_append_safe(&text, (const char *)string.data);
        ttm_text_append_column(&text, (const char *)string.data, 3, true);
        assert_false(ttm_text_failed(&text));
        ttm_text_done(&text);
        bytes_done(&string);
    }
}

static void control_characters_cannot_reach_a_terminal(void **state)
{
    (void)state;
    assert_safe("a\033[2Jb", "a\\x1b[2Jb");
    assert_safe("line\nbreak\ttab\r", "line\\x0abreak\\x09tab\\x0d");
    assert_safe("\x7f", "\\x7f");
    assert_safe("\xc2\x9b"
                "31m",
                "\\xc2\\x9b31m"); /* the one-character CSI of C1 */
    assert_safe("\xc2\xa0", "\xc2\xa0");
}

static void text_cannot_be_turned_around_or_break_a_line(void **state)
{
    (void)state;
    assert_safe("a\u202eb", "a\\xe2\\x80\\xaeb");
    assert_safe("\u2028\u2029", "\\xe2\\x80\\xa8\\xe2\\x80\\xa9");
    assert_safe("\u2066\u2069", "\\xe2\\x81\\xa6\\xe2\\x81\\xa9");
    assert_safe("\u061c\u200e\u200f", "\\xd8\\x9c\\xe2\\x80\\x8e\\xe2\\x80\\x8f");
    assert_safe("\u2027\u202f\u2065\u206a\u061b", "\u2027\u202f\u2065\u206a\u061b");
}

static void broken_utf8_is_shown_byte_by_byte(void **state)
{
    (void)state;
    assert_safe("a\xff\xfe"
                "b",
                "a\\xff\\xfeb");
    assert_safe("\xe2\x82", "\\xe2\\x82");
    assert_safe("grün … 日本", "grün … 日本");
    assert_safe("", "");
}

/* No buffer ends in the middle of a character or of what stands for one. */
static void a_safe_copy_ends_between_two_pieces(void **state)
{
    static const char string[] = "a\x1b"
                                 "\xc3\xbc\xff"
                                 "\xe2\x80\xae"
                                 "b";
    static const char whole[] = "a\\x1b\xc3\xbc\\xff\\xe2\\x80\\xae"
                                "b";
    static const size_t ends[] = {0, 1, 5, 7, 11, 15, 19, 23, 24};
    char copy[sizeof(whole) + 1];
    (void)state;

    for (size_t size = 1; size <= sizeof(whole); size++) {
        memset(copy, '#', sizeof(copy));
        const size_t length = ttm_text_copy_safe(copy, size, string);
        assert_true(length < size && copy[length] == '\0' && copy[size] == '#');
        assert_memory_equal(copy, whole, length);
        bool is_end = false;
        for (size_t i = 0; i < COUNT_OF(ends); i++)
            is_end |= length == ends[i];
        assert_true(is_end);
    }
    assert_string_equal(copy, whole);
}

static void a_column_is_padded_to_its_width(void **state)
{
    (void)state;
    assert_column("", 0, true, "||");
    assert_column("", 3, true, "|   |");
    assert_column("ab", 4, true, "|ab  |");
    assert_column("über", 6, true, "|über  |");
}

static void a_column_that_fits_exactly_is_left_alone(void **state)
{
    (void)state;
    assert_column("abcd", 4, true, "|abcd|");
    assert_column("日本語", 3, true, "|日本語|");
    assert_column("x", 1, false, "|x|");
}

static void a_column_too_long_ends_in_a_mark(void **state)
{
    (void)state;
    assert_column("abcde", 4, true, "|abc…|");
    assert_column("abcde", 4, false, "|abc~|");
    assert_column("abcde", 1, true, "|…|");
    assert_column("abcde", 0, true, "||");
    assert_column("日本語", 2, true, "|日…|");
}

static void sizes_are_shown_in_the_largest_unit_that_keeps_digits(void **state)
{
    (void)state;
    assert_bytes(0, "0 B");
    assert_bytes(1, "1 B");
    assert_bytes(512, "512 B");
    assert_bytes(1023, "1023 B");
    assert_bytes(1024, "1.0 KiB");
    assert_bytes(2048, "2.0 KiB");
    assert_bytes(131072, "128 KiB");
    assert_bytes(1048576, "1.0 MiB");
    assert_bytes(12873777152, "11.99 GiB");
    assert_bytes(12884901888, "12.00 GiB");
    assert_bytes(1ull << 40, "1.00 TiB");
    assert_bytes(UINT64_MAX, "16.00 EiB");
}

static void a_size_just_below_a_unit_never_shows_1024_of_the_smaller(void **state)
{
    (void)state;
    for (unsigned shift = 20; shift <= 60; shift += 10) {
        const uint64_t unit = 1ull << shift;
        for (uint64_t below = 1; below < unit / 512; below = below * 2 + 1) {
            char buf[TTM_NUMBER_SIZE];
            assert_memory_not_equal(ttm_format_bytes(unit - below, buf), "1024", 4);
        }
    }
    assert_bytes((1 << 20) - 1, "1.0 MiB");
    assert_bytes((1 << 20) - 600, "1023 KiB");
}

static void the_switch_to_no_decimals_never_shows_100_with_one(void **state)
{
    (void)state;
    assert_bytes(102348, "99.9 KiB");
    assert_bytes(102349, "100 KiB");
    assert_bytes(102400, "100 KiB");
}

static void counts_are_grouped_by_thousands(void **state)
{
    (void)state;
    assert_count(0, "0");
    assert_count(999, "999");
    assert_count(1000, "1,000");
    assert_count(24687, "24,687");
    assert_count(100000, "100,000");
    assert_count(1234567, "1,234,567");
    assert_count(UINT64_MAX, "18,446,744,073,709,551,615");
}

static void durations_are_shown_in_two_units(void **state)
{
    (void)state;
    assert_duration(0, "0 ms");
    assert_duration(MS - 1, "0 ms");
    assert_duration(12 * MS, "12 ms");
    assert_duration(999 * MS, "999 ms");
    assert_duration(1 * S, "1.0 s");
    assert_duration(3 * S + 450 * MS, "3.4 s");
    assert_duration(59 * S + 999 * MS, "59.9 s");
    assert_duration(60 * S, "1 min 00 s");
    assert_duration(125 * S, "2 min 05 s");
    assert_duration(3599 * S, "59 min 59 s");
    assert_duration(3600 * S, "1 h 00 min");
    assert_duration(7980 * S, "2 h 13 min");
    assert_duration(86400 * S, "1 d 00 h");
    assert_duration((3 * 86400 + 4 * 3600) * S, "3 d 04 h");
    assert_duration(UINT64_MAX, "213503 d 23 h");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_appended_is_the_empty_string),
        cmocka_unit_test(appends_of_every_length_around_the_room_keep_all_bytes),
        cmocka_unit_test(one_large_append_makes_enough_room),
        cmocka_unit_test(a_cleared_text_starts_anew),
        cmocka_unit_test(short_memory_is_remembered_until_the_text_is_cleared),
        cmocka_unit_test(bytes_with_a_nul_inside_are_kept),
        cmocka_unit_test(well_formed_utf8_is_measured),
        cmocka_unit_test(broken_utf8_has_no_length),
        cmocka_unit_test(a_sequence_cut_off_at_the_end_is_not_read_beyond),
        cmocka_unit_test(control_characters_cannot_reach_a_terminal),
        cmocka_unit_test(text_cannot_be_turned_around_or_break_a_line),
        cmocka_unit_test(broken_utf8_is_shown_byte_by_byte),
        cmocka_unit_test(a_safe_copy_ends_between_two_pieces),
        cmocka_unit_test(a_column_is_padded_to_its_width),
        cmocka_unit_test(a_column_that_fits_exactly_is_left_alone),
        cmocka_unit_test(a_column_too_long_ends_in_a_mark),
        cmocka_unit_test(sizes_are_shown_in_the_largest_unit_that_keeps_digits),
        cmocka_unit_test(a_size_just_below_a_unit_never_shows_1024_of_the_smaller),
        cmocka_unit_test(the_switch_to_no_decimals_never_shows_100_with_one),
        cmocka_unit_test(counts_are_grouped_by_thousands),
        cmocka_unit_test(durations_are_shown_in_two_units),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
