/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "recording/site_book.h"

static struct ttm_site_facts facts_of(uint32_t n)
{
    return (struct ttm_site_facts){.bytes = n / 7, .origin = n, .region = (uint8_t)(n % 5)};
}

static void the_same_facts_are_the_same_site(void **state)
{
    static uint32_t places[5000];
    struct ttm_site_book book;
    uint64_t random = 3;
    (void)state;

    ttm_site_book_init(&book, 11);
    for (uint32_t i = 0; i < COUNT_OF(places); i++) {
        const struct ttm_site_facts facts = facts_of(i);
        assert_int_equal(ttm_site_book_get(&book, &facts, &places[i]), 0);
    }
    assert_int_equal(book.used, COUNT_OF(places));
    for (uint32_t i = 0; i < 20000; i++) {
        const uint32_t n = i % 2 ? random_below(&random, COUNT_OF(places)) : i % 300;
        const struct ttm_site_facts facts = facts_of(n);
        uint32_t place;
        assert_int_equal(ttm_site_book_get(&book, &facts, &place), 0);
        assert_int_equal(place, places[n]);
        assert_memory_equal(&book.sites[place].facts, &facts, sizeof(facts));
    }
    assert_int_equal(book.used, COUNT_OF(places));
    ttm_site_book_done(&book);
}

static void renumbering_keeps_what_lives_refer_to_and_uses_the_rest_again(void **state)
{
    struct ttm_site_book book;
    uint32_t place;
    (void)state;

    ttm_site_book_init(&book, 11);
    for (uint32_t i = 0; i < 1000; i++) {
        const struct ttm_site_facts facts = facts_of(i);
        assert_int_equal(ttm_site_book_get(&book, &facts, &place), 0);
        book.sites[place].number = book.numbered++;
        book.sites[place].refs = i % 10 == 0;
    }
    ttm_site_book_renumber(&book);
    assert_int_equal(book.used, 100);
    assert_int_equal(book.numbered, 0);
    for (uint32_t i = 0; i < 1000; i += 10) {
        const struct ttm_site_facts facts = facts_of(i);
        assert_int_equal(ttm_site_book_get(&book, &facts, &place), 0);
        assert_int_equal(place, i);
        assert_int_equal(book.sites[place].number, TTM_SITE_UNNUMBERED);
        assert_int_equal(book.sites[place].refs, 1);
    }
    assert_int_equal(book.used, 100);
    for (uint32_t i = 2000; i < 2900; i++) {
        const struct ttm_site_facts facts = facts_of(i);
        assert_int_equal(ttm_site_book_get(&book, &facts, &place), 0);
        assert_true(place < 1000 && place % 10 != 0);
    }
    assert_int_equal(book.count, 1000);
    ttm_site_book_done(&book);
}

/* The site that followed one before may be gone. */
static void a_guess_that_is_gone_is_not_taken(void **state)
{
    const struct ttm_site_facts first = facts_of(1), second = facts_of(2);
    struct ttm_site_book book;
    uint32_t one, two, again;
    (void)state;

    ttm_site_book_init(&book, 11);
    assert_int_equal(ttm_site_book_get(&book, &first, &one), 0);
    assert_int_equal(ttm_site_book_get(&book, &second, &two), 0);
    book.sites[one].refs = 1;
    ttm_site_book_renumber(&book);
    assert_int_equal(book.used, 1);
    assert_int_equal(ttm_site_book_get(&book, &first, &again), 0);
    assert_int_equal(again, one);
    assert_int_equal(ttm_site_book_get(&book, &second, &again), 0);
    assert_int_equal(book.used, 2); /* added anew, not found dead */
    ttm_site_book_done(&book);
}

static void without_memory_the_book_stays_as_it_was(void **state)
{
    struct ttm_site_book book;
    uint32_t place, added = 0;
    (void)state;

    ttm_site_book_init(&book, 1);
    for (uint32_t i = 0; i < 200; i++) {
        const struct ttm_site_facts facts = facts_of(i);
        faults_begin(i % 2);
        const int r = ttm_site_book_get(&book, &facts, &place);
        const bool has_failed = faults_end();
        assert_int_equal(r, has_failed ? -ENOMEM : 0);
        added += r == 0;
        assert_int_equal(book.used, added);
    }
    assert_true(added < 200);
    ttm_site_book_done(&book);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_facts_are_the_same_site),
        cmocka_unit_test(renumbering_keeps_what_lives_refer_to_and_uses_the_rest_again),
        cmocka_unit_test(a_guess_that_is_gone_is_not_taken),
        cmocka_unit_test(without_memory_the_book_stays_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
