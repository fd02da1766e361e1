/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "base/pages.h"
#include "model/life_store.h"

static struct ttm_life_store store;

static int set_up(void **state)
{
    (void)state;
    ttm_life_store_init(&store);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_life_store_done(&store);
    return faults_pages_out() == 0 ? 0 : -1;
}

static struct ttm_life life_of(uint64_t id)
{
    return (struct ttm_life){.id = id, .bytes = id * 3, .site = 0};
}

static uint32_t add(uint64_t id)
{
    const struct ttm_life life = life_of(id);
    uint32_t ref = TTM_LIFE_NONE;

    assert_int_equal(ttm_life_store_add(&store, &life, TTM_LIFE_NONE, &ref), 0);
    assert_int_not_equal(ref, TTM_LIFE_NONE);
    return ref;
}

/* Lives in a view, which is used up. */
static size_t walk(struct ttm_life_view *view, uint64_t *ret_id_sum)
{
    const struct ttm_life *life;
    uint64_t at = 0;
    size_t count = 0;

    *ret_id_sum = 0;
    while ((life = ttm_life_view_next(view, &at)) != NULL) {
        *ret_id_sum += life->id;
        count++;
    }
    assert_null(ttm_life_view_next(view, &at));
    assert_true(ttm_life_view_release(view, UINT32_MAX));
    return count;
}

static void a_new_store_takes_no_memory(void **state)
{
    struct ttm_life_view view;
    uint64_t sum;
    (void)state;

    assert_int_equal(ttm_life_store_bytes(&store), 0);
    assert_int_equal(faults_pages_out(), 0);
    assert_int_equal(ttm_life_view_take(&store, &view), 0);
    assert_int_equal(walk(&view, &sum), 0);
}

static void each_life_has_a_reference_of_its_own(void **state)
{
    static uint32_t refs[3 * TTM_CHUNK_LIVES];
    (void)state;

    for (uint32_t i = 0; i < COUNT_OF(refs); i++)
        refs[i] = add(i);
    assert_int_equal(store.live, COUNT_OF(refs));
    for (uint32_t i = 0; i < COUNT_OF(refs); i++) {
        assert_int_equal(ttm_life_store_get(&store, refs[i])->id, i);
        assert_int_equal(ttm_life_store_get(&store, refs[i])->bytes, i * 3);
    }
    assert_int_equal(faults_pages_out(), 3 * TTM_CHUNK_SIZE);
    assert_in_range(ttm_life_store_bytes(&store), 3 * TTM_CHUNK_SIZE, 3 * TTM_CHUNK_SIZE + 256);
}

static void chunks_that_run_empty_go_back_to_the_kernel(void **state)
{
    static uint32_t refs[4 * TTM_CHUNK_LIVES];
    (void)state;

    for (uint32_t i = 0; i < COUNT_OF(refs); i++)
        refs[i] = add(i);
    for (uint32_t i = TTM_CHUNK_LIVES; i < 2 * TTM_CHUNK_LIVES; i++)
        ttm_life_store_remove(&store, refs[i]);
    /* The chunk is empty, but the only one with room: it stays, so that a border costs nothing. */
    assert_int_equal(faults_pages_out(), 4 * TTM_CHUNK_SIZE);
    for (uint32_t i = 0; i < COUNT_OF(refs); i++) {
        if (i / TTM_CHUNK_LIVES != 1)
            ttm_life_store_remove(&store, refs[i]);
    }
    assert_int_equal(store.live, 0);
    assert_int_equal(faults_pages_out(), TTM_CHUNK_SIZE);
    assert_in_range(ttm_life_store_bytes(&store), TTM_CHUNK_SIZE, TTM_CHUNK_SIZE + 256);
}

static void the_number_of_a_chunk_that_went_back_is_used_again(void **state)
{
    static uint32_t refs[3 * TTM_CHUNK_LIVES];
    (void)state;

    for (int round = 0; round < 5; round++) {
        for (uint32_t i = 0; i < COUNT_OF(refs); i++)
            refs[i] = add(i);
        for (uint32_t i = 0; i < COUNT_OF(refs); i++)
            ttm_life_store_remove(&store, refs[i]);
    }
    assert_true(store.chunk_count <= 3);
}

static void places_given_back_are_filled_before_a_new_chunk_is_taken(void **state)
{
    static uint32_t refs[2 * TTM_CHUNK_LIVES];
    (void)state;

    for (uint32_t i = 0; i < COUNT_OF(refs); i++)
        refs[i] = add(i);
    for (uint32_t i = 0; i < COUNT_OF(refs); i += 2)
        ttm_life_store_remove(&store, refs[i]);
    for (uint32_t i = 0; i < COUNT_OF(refs); i += 2)
        refs[i] = add(i);
    assert_int_equal(faults_pages_out(), 2 * TTM_CHUNK_SIZE);
    for (uint32_t i = 0; i < COUNT_OF(refs); i++)
        assert_int_equal(ttm_life_store_get(&store, refs[i])->id, i);
}

static void a_program_at_the_border_of_a_chunk_maps_nothing(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < TTM_CHUNK_LIVES; i++)
        (void)add(i);
    ttm_life_store_remove(&store, add(TTM_CHUNK_LIVES));
    faults_begin(0);
    for (int i = 0; i < 1000; i++)
        ttm_life_store_remove(&store, add(TTM_CHUNK_LIVES));
    assert_false(faults_end());
}

static void a_view_shares_chunks_until_they_change(void **state)
{
    static uint32_t refs[3 * TTM_CHUNK_LIVES];
    struct ttm_life_view view;
    uint64_t sum;
    (void)state;

    for (uint32_t i = 0; i < COUNT_OF(refs); i++)
        refs[i] = add(1);
    assert_int_equal(ttm_life_view_take(&store, &view), 0);
    assert_int_equal(faults_pages_out(), 3 * TTM_CHUNK_SIZE);

    ttm_life_store_edit(&store, refs[0])->id = 1000;
    ttm_life_store_edit(&store, refs[1])->id = 1000;
    assert_int_equal(faults_pages_out(), 4 * TTM_CHUNK_SIZE); /* the second edit finds the copy */
    assert_int_equal(ttm_life_store_get(&store, refs[0])->id, 1000);

    assert_int_equal(walk(&view, &sum), COUNT_OF(refs));
    assert_int_equal(sum, COUNT_OF(refs));
    assert_int_equal(faults_pages_out(), 3 * TTM_CHUNK_SIZE);
}

static void a_view_outlives_the_lives_and_the_store(void **state)
{
    static uint32_t refs[2 * TTM_CHUNK_LIVES];
    struct ttm_life_view view;
    uint64_t sum;
    (void)state;

    for (uint32_t i = 0; i < COUNT_OF(refs); i++)
        refs[i] = add(2);
    assert_int_equal(ttm_life_view_take(&store, &view), 0);
    for (uint32_t i = 0; i < COUNT_OF(refs); i++)
        ttm_life_store_remove(&store, refs[i]);
    (void)add(77);
    ttm_life_store_done(&store);
    assert_int_equal(faults_pages_out(), 2 * TTM_CHUNK_SIZE);
    assert_int_equal(walk(&view, &sum), COUNT_OF(refs));
    assert_int_equal(sum, 2 * COUNT_OF(refs));
    assert_int_equal(faults_pages_out(), 0);
}

static void a_view_lets_go_of_each_chunk_that_it_has_passed(void **state)
{
    struct ttm_life_view view;
    uint64_t at = 0;
    (void)state;

    for (uint32_t i = 0; i < 3 * TTM_CHUNK_LIVES; i++)
        (void)add(i);
    ttm_life_view_take_over(&store, &view);
    for (uint32_t i = 0; i < 3 * TTM_CHUNK_LIVES; i++) {
        assert_int_equal(ttm_life_view_next(&view, &at)->id, i);
        assert_int_equal(faults_pages_out(), (3 - i / TTM_CHUNK_LIVES) * TTM_CHUNK_SIZE);
    }
    assert_null(ttm_life_view_next(&view, &at));
    assert_int_equal(faults_pages_out(), 0);
    assert_true(ttm_life_view_release(&view, 1));
}

static void a_view_is_let_go_in_slices(void **state)
{
    struct ttm_life_view view;
    (void)state;

    for (uint32_t i = 0; i < 5 * TTM_CHUNK_LIVES; i++)
        (void)add(i);
    ttm_life_view_take_over(&store, &view);
    assert_false(ttm_life_view_release(&view, 2));
    assert_int_equal(faults_pages_out(), 3 * TTM_CHUNK_SIZE);
    assert_false(ttm_life_view_release(&view, 2));
    assert_int_equal(faults_pages_out(), TTM_CHUNK_SIZE);
    assert_true(ttm_life_view_release(&view, 2));
    assert_int_equal(faults_pages_out(), 0);
}

static void a_store_whose_lives_were_taken_over_is_empty_and_usable(void **state)
{
    struct ttm_life_view view;
    uint64_t sum;
    (void)state;

    (void)add(5);
    ttm_life_view_take_over(&store, &view);
    assert_int_equal(store.live, 0);
    assert_int_equal(ttm_life_store_bytes(&store), 0);
    assert_int_equal(ttm_life_store_get(&store, add(6))->id, 6);
    assert_int_equal(walk(&view, &sum), 1);
    assert_int_equal(sum, 5);
}

static void short_memory_adds_nothing_and_takes_no_view(void **state)
{
    const struct ttm_life life = life_of(1);
    struct ttm_life_view view;
    uint32_t ref;
    (void)state;

    for (unsigned grants = 0; grants < 2; grants++) {
        faults_begin(grants);
        assert_int_equal(ttm_life_store_add(&store, &life, TTM_LIFE_NONE, &ref), -ENOMEM);
        assert_true(faults_end());
        assert_int_equal(store.live, 0);
    }
    ref = add(1);
    faults_begin(0);
    assert_int_equal(ttm_life_view_take(&store, &view), -ENOMEM);
    assert_true(faults_end());
    ttm_life_store_remove(&store, ref);
    assert_int_equal(faults_pages_out(), TTM_CHUNK_SIZE);
}

static void without_memory_for_a_copy_the_store_is_right_and_the_view_sees_the_change(void **state)
{
    struct ttm_life_view view;
    uint64_t sum;
    (void)state;

    const uint32_t one = add(1);
    const uint32_t two = add(2);
    assert_int_equal(ttm_life_view_take(&store, &view), 0);
    faults_begin(0);
    ttm_life_store_edit(&store, one)->id = 10;
    ttm_life_store_remove(&store, two);
    const uint32_t three = add(3);
    assert_true(faults_end());
    assert_int_equal(store.live, 2);
    assert_int_equal(ttm_life_store_get(&store, one)->id, 10);
    assert_int_equal(ttm_life_store_get(&store, three)->id, 3);
    assert_int_equal(walk(&view, &sum), 2);
    assert_int_equal(sum, 13);
}

/* The naive truth: what each id holds, 0 for an id that is not live. */
#define ID_COUNT 40000

struct saved_view {
    bool is_taken;
    struct ttm_life_view view;
    uint32_t bytes[ID_COUNT];
    uint32_t live;
};

static uint32_t refs_by_id[ID_COUNT];
static uint32_t truth[ID_COUNT];
static struct saved_view saved[4];

static void assert_view_is_exact(struct saved_view *view)
{
    const struct ttm_life *life;
    uint64_t at = 0;
    uint32_t seen = 0;

    while ((life = ttm_life_view_next(&view->view, &at)) != NULL) {
        assert_true(life->id < ID_COUNT);
        assert_int_equal(life->bytes, view->bytes[life->id]);
        view->bytes[life->id] = 0; /* once */
        seen++;
    }
    assert_int_equal(seen, view->live);
    assert_true(ttm_life_view_release(&view->view, UINT32_MAX));
    view->is_taken = false;
}

static void change_something(uint64_t *seed, bool is_growing)
{
    const uint32_t id = random_below(seed, ID_COUNT);
    const uint32_t value = 1 + random_below(seed, 1000000);
    const struct ttm_life life = {.id = id, .bytes = value};

    if (truth[id] == 0) {
        if (!is_growing && random_below(seed, 4) != 0)
            return;
        assert_int_equal(ttm_life_store_add(&store, &life, TTM_LIFE_NONE, &refs_by_id[id]), 0);
        truth[id] = value;
    } else if (random_below(seed, is_growing ? 8 : 2) == 0) {
        ttm_life_store_remove(&store, refs_by_id[id]);
        truth[id] = 0;
    } else {
        ttm_life_store_edit(&store, refs_by_id[id])->bytes = value;
        truth[id] = value;
    }
}

static void views_taken_at_any_time_stay_exact_while_changes_go_on(void **state)
{
    uint64_t seed = 4711;
    (void)state;

    memset(truth, 0, sizeof(truth));
    for (uint32_t step = 0; step < 200000; step++) {
        change_something(&seed, step / 50000 % 2 == 0);
        if (random_below(&seed, 2000) != 0)
            continue;
        struct saved_view *view = &saved[random_below(&seed, COUNT_OF(saved))];
        if (view->is_taken)
            assert_view_is_exact(view);
        assert_int_equal(ttm_life_view_take(&store, &view->view), 0);
        memcpy(view->bytes, truth, sizeof(truth));
        view->live = store.live;
        view->is_taken = true;
    }
    for (size_t i = 0; i < COUNT_OF(saved); i++) {
        if (saved[i].is_taken)
            assert_view_is_exact(&saved[i]);
    }
    for (uint32_t id = 0; id < ID_COUNT; id++) {
        if (truth[id] == 0)
            continue;
        assert_int_equal(ttm_life_store_get(&store, refs_by_id[id])->bytes, truth[id]);
        ttm_life_store_remove(&store, refs_by_id[id]);
    }
    assert_int_equal(store.live, 0);
    assert_int_equal(faults_pages_out(), TTM_CHUNK_SIZE);
}

/* ---- chunks that are given together ---- */

#define BLOCK TTM_LIFE_BLOCK_SIZE
#define BLOCK_LIVES TTM_LIFE_BLOCK_LIVES

static void add_many(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        (void)add(i);
}

static void give_block(void)
{
    void *block = ttm_pages_alloc(BLOCK);

    assert_non_null(block);
    ttm_life_store_give_block(&store, block);
}

static void who_promises_lives_gets_blocks_for_as_many_as_he_has_brought(void **state)
{
    (void)state;

    ttm_life_store_expect(&store, 10 * BLOCK_LIVES);
    assert_int_equal(ttm_life_store_wants_blocks(&store), 0);
    add_many(BLOCK_LIVES - 1);
    assert_int_equal(ttm_life_store_wants_blocks(&store), 0);
    add_many(1);
    assert_int_equal(ttm_life_store_wants_blocks(&store), 9);
    assert_int_equal(faults_pages_out(), BLOCK);
    give_block();
    assert_int_equal(ttm_life_store_wants_blocks(&store), 0);
    assert_in_range(ttm_life_store_bytes(&store), 2 * BLOCK, 2 * BLOCK + 4096);
    add_many(BLOCK_LIVES);
    assert_int_equal(faults_pages_out(), 2 * BLOCK);
    assert_int_equal(ttm_life_store_wants_blocks(&store), 8);
    /* Without one it goes on by itself. */
    add_many(1);
    assert_int_equal(faults_pages_out(), 2 * BLOCK + TTM_CHUNK_SIZE);
    give_block();
    add_many(TTM_CHUNK_LIVES);
    /* What he has not kept goes back. */
    ttm_life_store_expect(&store, 0);
    assert_int_equal(faults_pages_out(), 2 * BLOCK + 2 * TTM_CHUNK_SIZE);
    assert_int_equal(ttm_life_store_wants_blocks(&store), 0);
    add_many(TTM_CHUNK_LIVES);
    assert_int_equal(faults_pages_out(), 2 * BLOCK + 3 * TTM_CHUNK_SIZE);
}

static void the_last_lives_that_are_expected_want_no_block(void **state)
{
    (void)state;

    ttm_life_store_expect(&store, 2 * BLOCK_LIVES - 1);
    add_many(BLOCK_LIVES);
    assert_int_equal(ttm_life_store_wants_blocks(&store), 0);
    ttm_life_store_expect(&store, 2 * BLOCK_LIVES);
    assert_int_equal(ttm_life_store_wants_blocks(&store), 1);
    /* Nor do those who come though nobody said so. */
    ttm_life_store_expect(&store, BLOCK_LIVES - 1);
    assert_int_equal(ttm_life_store_wants_blocks(&store), 0);
}

static void a_chunk_of_a_block_goes_back_alone(void **state)
{
    static uint32_t refs[2 * BLOCK_LIVES];
    (void)state;

    ttm_life_store_expect(&store, UINT32_MAX);
    for (uint32_t i = 0; i < COUNT_OF(refs); i++) {
        if (i == BLOCK_LIVES)
            give_block();
        refs[i] = add(i);
    }
    assert_int_equal(faults_pages_out(), 2 * BLOCK);
    for (uint32_t i = 0; i < BLOCK_LIVES; i += 2 * TTM_CHUNK_LIVES) {
        for (uint32_t k = 0; k < TTM_CHUNK_LIVES; k++)
            ttm_life_store_remove(&store, refs[BLOCK_LIVES + i + k]);
    }
    /* One that is empty stays. */
    assert_int_equal(faults_pages_out(), 2 * BLOCK - 15 * TTM_CHUNK_SIZE);
    for (uint32_t k = 0; k < TTM_CHUNK_LIVES; k++)
        assert_int_equal(ttm_life_store_get(&store, refs[BLOCK_LIVES + TTM_CHUNK_LIVES + k])->id,
                         BLOCK_LIVES + TTM_CHUNK_LIVES + k);
}

static void a_store_that_ends_in_the_middle_of_a_block_lets_go_of_all(void **state)
{
    struct ttm_life_view view;
    (void)state;

    ttm_life_store_expect(&store, UINT32_MAX);
    add_many(BLOCK_LIVES);
    give_block();
    add_many(1);
    ttm_life_view_take_over(&store, &view);
    assert_int_equal(faults_pages_out(), BLOCK + TTM_CHUNK_SIZE);
    assert_true(ttm_life_view_release(&view, UINT32_MAX));
    assert_int_equal(faults_pages_out(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_store_takes_no_memory),
        TEST(each_life_has_a_reference_of_its_own),
        TEST(chunks_that_run_empty_go_back_to_the_kernel),
        TEST(the_number_of_a_chunk_that_went_back_is_used_again),
        TEST(places_given_back_are_filled_before_a_new_chunk_is_taken),
        TEST(a_program_at_the_border_of_a_chunk_maps_nothing),
        TEST(a_view_shares_chunks_until_they_change),
        TEST(a_view_outlives_the_lives_and_the_store),
        TEST(a_view_lets_go_of_each_chunk_that_it_has_passed),
        TEST(a_view_is_let_go_in_slices),
        TEST(a_store_whose_lives_were_taken_over_is_empty_and_usable),
        TEST(short_memory_adds_nothing_and_takes_no_view),
        TEST(without_memory_for_a_copy_the_store_is_right_and_the_view_sees_the_change),
        TEST(who_promises_lives_gets_blocks_for_as_many_as_he_has_brought),
        TEST(the_last_lives_that_are_expected_want_no_block),
        TEST(a_chunk_of_a_block_goes_back_alone),
        TEST(a_store_that_ends_in_the_middle_of_a_block_lets_go_of_all),
        TEST(views_taken_at_any_time_stay_exact_while_changes_go_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
