/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "base/list.h"

struct item {
    int number;
    struct ttm_list link;
};

static void assert_order(const struct ttm_list *head, const int *numbers, size_t count)
{
    const struct ttm_list *back = head;
    size_t n = 0;

    TTM_LIST_FOR_EACH(pos, head) {
        assert_true(n < count);
        assert_int_equal(TTM_CONTAINER_OF(pos, struct item, link)->number, numbers[n++]);
    }
    assert_int_equal(n, count);
    while ((back = back->prev) != head)
        assert_int_equal(TTM_CONTAINER_OF(back, struct item, link)->number, numbers[--n]);
    assert_int_equal(n, 0);
}

static void a_new_list_is_empty(void **state)
{
    struct ttm_list head;
    (void)state;

    ttm_list_init(&head);
    assert_true(ttm_list_is_empty(&head));
    assert_order(&head, NULL, 0);
}

static void items_come_in_the_order_they_were_appended(void **state)
{
    struct item items[] = {{.number = 1}, {.number = 2}, {.number = 3}};
    struct ttm_list head;
    (void)state;

    ttm_list_init(&head);
    for (size_t i = 0; i < COUNT_OF(items); i++)
        ttm_list_append(&head, &items[i].link);
    assert_false(ttm_list_is_empty(&head));
    assert_order(&head, (int[]){1, 2, 3}, 3);
}

static void first_middle_and_last_can_be_removed(void **state)
{
    static const int left[3][2] = {{2, 3}, {1, 3}, {1, 2}};
    (void)state;

    for (size_t gone = 0; gone < 3; gone++) {
        struct item items[] = {{.number = 1}, {.number = 2}, {.number = 3}};
        struct ttm_list head;
        ttm_list_init(&head);
        for (size_t i = 0; i < COUNT_OF(items); i++)
            ttm_list_append(&head, &items[i].link);
        ttm_list_remove(&items[gone].link);
        assert_order(&head, left[gone], 2);
    }
}

static void removing_twice_or_from_no_list_is_harmless(void **state)
{
    struct item items[] = {{.number = 1}, {.number = 2}};
    struct item alone;
    struct ttm_list head;
    (void)state;

    ttm_list_init(&head);
    ttm_list_init(&alone.link);
    ttm_list_remove(&alone.link);
    ttm_list_append(&head, &items[0].link);
    ttm_list_append(&head, &items[1].link);
    ttm_list_remove(&items[0].link);
    ttm_list_remove(&items[0].link);
    assert_order(&head, (int[]){2}, 1);
    ttm_list_append(&head, &items[0].link);
    assert_order(&head, (int[]){2, 1}, 2);
}

static void the_safe_loop_lets_its_body_remove_each_item(void **state)
{
    struct item items[5];
    struct ttm_list head;
    int seen = 0;
    (void)state;

    ttm_list_init(&head);
    for (int i = 0; i < 5; i++) {
        items[i].number = i;
        ttm_list_append(&head, &items[i].link);
    }
    TTM_LIST_FOR_EACH_SAFE(pos, &head) {
        assert_int_equal(TTM_CONTAINER_OF(pos, struct item, link)->number, seen++);
        ttm_list_remove(pos);
    }
    assert_int_equal(seen, 5);
    assert_true(ttm_list_is_empty(&head));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_list_is_empty),
        cmocka_unit_test(items_come_in_the_order_they_were_appended),
        cmocka_unit_test(first_middle_and_last_can_be_removed),
        cmocka_unit_test(removing_twice_or_from_no_list_is_harmless),
        cmocka_unit_test(the_safe_loop_lets_its_body_remove_each_item),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
