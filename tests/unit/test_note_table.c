/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <pthread.h>

#include "client/note_table.h"

#define TEXTS 500
#define THREADS 8

static struct ttm_producer producer;
static struct ttm_note_table table;

static int set_up(void **state)
{
    (void)state;
    if (ttm_producer_new(&producer) < 0)
        return -1;
    return ttm_note_table_init(&table, 0x5eed);
}

static int tear_down(void **state)
{
    (void)state;
    ttm_note_table_done(&table);
    ttm_producer_done(&producer);
    return 0;
}

static uint32_t intern(uint32_t kind, const char *text, uint32_t length)
{
    return ttm_note_table_intern(&table, &producer, kind, text, length);
}

static void assert_says(uint32_t number, uint32_t kind, const char *text, uint32_t length)
{
    uint32_t there;
    const void *note = ttm_producer_read_note(&producer, number, kind, &there);

    assert_non_null(note);
    assert_int_equal(there, length);
    assert_memory_equal(note, text, length);
}

static void the_same_content_has_the_same_number_and_other_content_another(void **state)
{
    static const char text[] = "abcdefghijklmnopqrstuvwxyz";
    uint32_t numbers[2 * sizeof(text)];
    size_t count = 0;
    (void)state;

    /* Every length around a word of the hash, the empty text too, in two kinds. */
    for (uint32_t kind = TTM_NOTE_STRING; kind <= TTM_NOTE_CORES; kind++)
        for (uint32_t n = 0; n < sizeof(text); n++)
            numbers[count++] = intern(kind, text, n);
    const uint32_t used = atomic_load(&producer.segment->notes_used);
    for (size_t i = 0; i < count; i++) {
        const uint32_t kind = TTM_NOTE_STRING + (uint32_t)(i / sizeof(text));
        const uint32_t n = (uint32_t)(i % sizeof(text));
        assert_true(numbers[i] >= TTM_NOTE_FIRST);
        assert_says(numbers[i], kind, text, n);
        assert_int_equal(intern(kind, text, n), numbers[i]);
        for (size_t other = 0; other < i; other++)
            assert_int_not_equal(numbers[other], numbers[i]);
    }
    assert_int_equal(atomic_load(&producer.segment->notes_used), used); /* nothing said twice */
}

static void texts_that_only_differ_behind_a_nul_or_in_padding_differ(void **state)
{
    (void)state;
    const uint32_t first = intern(TTM_NOTE_STRING, "a\0b", 3);
    assert_int_not_equal(intern(TTM_NOTE_STRING, "a\0c", 3), first);
    assert_int_not_equal(intern(TTM_NOTE_STRING, "a", 1), first);
    assert_int_not_equal(intern(TTM_NOTE_STRING, "a\0", 2), intern(TTM_NOTE_STRING, "a", 1));
    assert_int_equal(intern(TTM_NOTE_STRING, "a\0b", 3), first);
}

/* ---- many threads ---- */

struct run {
    pthread_t thread;
    uint32_t offset; /* where it begins */
    uint32_t numbers[TEXTS];
};

static void *run(void *arg)
{
    struct run *own = arg;

    for (uint32_t i = 0; i < TEXTS; i++) {
        const uint32_t at = (i + own->offset) % TEXTS;
        char text[32];
        const int n = snprintf(text, sizeof(text), "text %u", at);
        own->numbers[at] = intern(TTM_NOTE_STRING, text, (uint32_t)n);
    }
    return NULL;
}

static void threads_that_say_the_same_at_once_get_the_same_numbers(void **state)
{
    static struct run runs[THREADS];
    (void)state;

    for (uint32_t i = 0; i < THREADS; i++) {
        runs[i].offset = i % 2 * TEXTS / 2; /* some side by side, some apart */
        assert_int_equal(pthread_create(&runs[i].thread, NULL, run, &runs[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(runs[i].thread, NULL), 0);
    for (uint32_t at = 0; at < TEXTS; at++) {
        char text[32];
        const int n = snprintf(text, sizeof(text), "text %u", at);
        assert_says(runs[0].numbers[at], TTM_NOTE_STRING, text, (uint32_t)n);
        for (uint32_t i = 1; i < THREADS; i++)
            assert_int_equal(runs[i].numbers[at], runs[0].numbers[at]);
    }
}

/* ---- no room ---- */

static void a_full_area_takes_nothing_more_and_keeps_what_it_has(void **state)
{
    const uint32_t length = 1u << 20;
    char *text = calloc(1, length);
    uint32_t numbers[TTM_NOTES_BYTES >> 20] = {0};
    uint32_t count = 0, number;
    (void)state;

    assert_non_null(text);
    const uint32_t small = intern(TTM_NOTE_STRING, "small", 5);
    for (text[0] = 1; (number = intern(TTM_NOTE_STRING, text, length)) != 0; text[0]++)
        numbers[count++] = number;
    assert_int_equal(count, COUNT_OF(numbers) - 1);
    const uint32_t used = atomic_load(&producer.segment->notes_used);
    assert_true(used <= TTM_NOTES_BYTES);
    assert_int_equal(intern(TTM_NOTE_STRING, text, length), 0);
    assert_int_equal(atomic_load(&producer.segment->notes_used), used);
    assert_int_equal(intern(TTM_NOTE_STRING, "small", 5), small);
    for (uint32_t i = 0; i < count; i++) {
        text[0] = (char)(i + 1);
        assert_int_equal(intern(TTM_NOTE_STRING, text, length), numbers[i]);
    }
    assert_int_equal(ttm_producer_note(&producer, TTM_NOTE_STRING, text, UINT32_MAX), 0);
    free(text);
}

/* The last places of the area, to the byte. */
static void notes_fill_the_area_to_its_end_and_not_beyond(void **state)
{
    (void)state;
    atomic_store(&producer.notes_used, TTM_NOTES_BYTES - 24);
    assert_int_equal(intern(TTM_NOTE_STRING, "seventeen bytes !", 17), 0);
    const uint32_t number = intern(TTM_NOTE_STRING, "sixteen bytes !!", 16);
    assert_int_equal(number, (TTM_NOTES_BYTES - 24) / 8 + TTM_NOTE_FIRST);
    assert_says(number, TTM_NOTE_STRING, "sixteen bytes !!", 16);
    assert_int_equal(atomic_load(&producer.segment->notes_left_out), 1);
    assert_int_equal(intern(TTM_NOTE_STRING, "", 0), 0);
    assert_int_equal(atomic_load(&producer.segment->notes_left_out), 2);
}

static void a_table_that_is_full_at_a_spot_gives_no_number(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < TTM_NOTE_PLACES; i++) /* of notes that are not there */
        atomic_store_explicit(&table.places[i], 1, memory_order_relaxed);
    assert_int_equal(intern(TTM_NOTE_STRING, "a", 1), 0);
    assert_int_equal(atomic_load(&producer.segment->notes_used), 0);
    assert_int_equal(atomic_load(&producer.segment->notes_left_out), 1);
}

/* ---- the other side writes into the area too ---- */

static struct ttm_note *note_at(uint32_t number)
{
    uint32_t length;
    const char *bytes = ttm_producer_read_note(&producer, number, TTM_NOTE_STRING, &length);

    assert_non_null(bytes);
    return (struct ttm_note *)(uintptr_t)(bytes - sizeof(struct ttm_note));
}

static void whatever_is_written_over_a_note_it_is_said_anew(void **state)
{
    static const uint32_t lengths[] = {0, 4, 6, TTM_NOTES_BYTES, UINT32_MAX - 7, UINT32_MAX};
    (void)state;

    uint32_t number = intern(TTM_NOTE_STRING, "hello", 5);
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        note_at(number)->length = lengths[i];
        const uint32_t again = intern(TTM_NOTE_STRING, "hello", 5);
        assert_int_not_equal(again, number);
        assert_says(again, TTM_NOTE_STRING, "hello", 5);
        number = again;
    }
    atomic_store(&note_at(number)->kind, TTM_NOTE_CORES);
    number = intern(TTM_NOTE_STRING, "hello", 5);
    assert_says(number, TTM_NOTE_STRING, "hello", 5);
    memcpy(note_at(number) + 1, "HELLO", 5);
    assert_int_not_equal(intern(TTM_NOTE_STRING, "hello", 5), number);
}

static void a_count_of_used_bytes_that_lies_is_not_believed(void **state)
{
    static const uint32_t lies[] = {0, 3, TTM_NOTES_BYTES - 8, TTM_NOTES_BYTES, UINT32_MAX};
    uint32_t numbers[COUNT_OF(lies)];
    (void)state;

    for (size_t i = 0; i < COUNT_OF(lies); i++) {
        char text[32];
        const int n = snprintf(text, sizeof(text), "lie %zu", i);
        atomic_store(&producer.segment->notes_used, lies[i]);
        numbers[i] = intern(TTM_NOTE_STRING, text, (uint32_t)n);
    }
    for (size_t i = 0; i < COUNT_OF(lies); i++) {
        char text[32];
        const int n = snprintf(text, sizeof(text), "lie %zu", i);
        assert_says(numbers[i], TTM_NOTE_STRING, text, (uint32_t)n);
    }
}

static void numbers_of_no_note_read_as_nothing(void **state)
{
    static const uint32_t numbers[] = {0,
                                       1,
                                       TTM_NOTE_FIRST - 1,
                                       TTM_NOTE_FIRST,
                                       TTM_NOTE_FIRST + TTM_NOTES_BYTES / 8 - 1,
                                       TTM_NOTE_FIRST + TTM_NOTES_BYTES / 8,
                                       UINT32_MAX};
    uint32_t length;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        assert_null(ttm_producer_read_note(&producer, numbers[i], TTM_NOTE_STRING, &length));
}

#define WITH_TABLE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TABLE(the_same_content_has_the_same_number_and_other_content_another),
        WITH_TABLE(texts_that_only_differ_behind_a_nul_or_in_padding_differ),
        WITH_TABLE(threads_that_say_the_same_at_once_get_the_same_numbers),
        WITH_TABLE(a_full_area_takes_nothing_more_and_keeps_what_it_has),
        WITH_TABLE(notes_fill_the_area_to_its_end_and_not_beyond),
        WITH_TABLE(a_table_that_is_full_at_a_spot_gives_no_number),
        WITH_TABLE(whatever_is_written_over_a_note_it_is_said_anew),
        WITH_TABLE(a_count_of_used_bytes_that_lies_is_not_believed),
        WITH_TABLE(numbers_of_no_note_read_as_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
