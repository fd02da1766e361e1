/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "cli/caller.h"

#define FRAMES 4

/* In order of calls from the inside, up to a frame without a file. */
struct stack {
    struct ttm_frame_words frames[FRAMES];
};

static const struct ttm_frame_words alloc = {"lib/p.py", "alloc", 4};
static const struct ttm_terminal plain = {.has_utf8 = true, .columns = 80};

static const struct stack *others;

static struct ttm_stack_words words_of(const struct stack *stack)
{
    uint32_t count = 0;

    while (count < FRAMES && stack->frames[count].file)
        count++;
    return (struct ttm_stack_words){stack->frames, count};
}

static struct ttm_stack_words other_at(const void *arg, uint32_t i)
{
    (void)arg;
    return words_of(&others[i]);
}

/* The caller of the first stack, as it is told. */
static const char *told(const struct stack *stacks, uint32_t count, bool is_long)
{
    static char text[128];
    const struct ttm_stack_words first = words_of(&stacks[0]);
    struct ttm_text out;

    others = stacks;
    const struct ttm_caller caller = ttm_caller_find(&first, other_at, NULL, count);
    ttm_text_init(&out);
    if (caller.frame)
        ttm_caller_text(&out, &plain, is_long, &caller);
    (void)snprintf(text, sizeof(text), "%s", ttm_text_string(&out));
    ttm_text_done(&out);
    return text;
}

static void a_line_that_one_alone_comes_through_needs_no_caller(void **state)
{
    const struct stack stacks[] = {
        {{alloc, {"p.py", "load", 9}}},
        {{{"lib/p.py", "alloc", 5}, {"p.py", "step", 9}}}, /* another line */
        {{{"lib/q.py", "alloc", 4}, {"p.py", "step", 9}}}, /* another file */
        {{{0}}},
    };
    (void)state;

    assert_string_equal(told(stacks, 4, false), "");
    assert_string_equal(told(&stacks[3], 1, false), "");
    assert_string_equal(told(stacks, 0, false), "");
}

static void of_a_line_that_several_come_through_the_caller_is_told(void **state)
{
    const struct stack stacks[] = {
        {{alloc, {"lib/p.py", "load", 9}, {"p.py", "<module>", 20}}},
        {{alloc, {"lib/p.py", "step", 12}, {"p.py", "<module>", 21}}},
    };
    (void)state;

    assert_string_equal(told(stacks, 2, false), " ← load");
    assert_string_equal(told(stacks, 2, true), " ← p.py:9 load");
}

static void the_caller_is_the_first_in_which_they_differ(void **state)
{
    const struct stack stacks[] = {
        {{alloc, {"p.py", "zeros", 7}, {"p.py", "load", 9}}},
        {{alloc, {"p.py", "step", 12}}},
        {{alloc, {"p.py", "zeros", 7}, {"p.py", "step", 12}}},
    };
    (void)state;

    assert_string_equal(told(stacks, 2, false), " ← zeros");
    assert_string_equal(told(stacks, 3, false), " ← load");
}

static void lines_of_one_function_are_told_apart(void **state)
{
    const struct stack stacks[] = {
        {{alloc, {"p.py", "load", 9}}},
        {{alloc, {"p.py", "load", 10}}},
    };
    (void)state;

    assert_string_equal(told(stacks, 2, false), " ← load:9");
    assert_string_equal(told(stacks, 2, true), " ← p.py:9 load");
}

static void what_has_no_name_is_told_by_what_it_is_in(void **state)
{
    const struct stack stacks[] = {
        {{alloc, {"p.py", "<listcomp>", 9}, {"p.py", "<genexpr>", 9}, {"p.py", "load", 9}}},
        {{alloc, {"p.py", "<listcomp>", 12}, {"p.py", "<genexpr>", 9}, {"p.py", "step", 12}}},
        {{alloc, {"p.py", "<listcomp>", 15}, {"p.py", "<module>", 15}}},
    };
    (void)state;

    assert_string_equal(told(stacks, 3, false), " ← load");
    others = stacks;
    const struct ttm_stack_words last = words_of(&stacks[2]);
    const struct ttm_caller caller = ttm_caller_find(&last, other_at, NULL, 3);
    assert_ptr_equal(caller.frame, &stacks[2].frames[1]); /* all of them are nameless */
    assert_true(caller.needs_line);
}

static void a_native_caller_stands_without_its_scopes_where_columns_are_few(void **state)
{
    const struct ttm_frame_words make = {"m.cpp", "make", 4};
    const struct stack stacks[] = {
        {{make, {"m.cpp", "nn::Model<std::map<int, a::B>, 2>::step", 9}}},
        {{make, {"m.cpp", "nn::Model<std::map<int, a::B>, 2>::step", 12}}},
        {{make, {"m.cpp", "(anonymous namespace)::load", 20}}},
        {{make, {"", "main", 0}}}, /* its line is not known */
    };
    (void)state;

    assert_string_equal(told(stacks, 4, false), " ← step:9");
    assert_string_equal(told(stacks, 4, true),
                        " ← m.cpp:9 nn::Model<std::map<int, a::B>, 2>::step");
    assert_string_equal(told(&stacks[2], 2, false), " ← load");
    assert_string_equal(told(&stacks[3], 1, false), "");
    const struct stack last_first[] = {stacks[3], stacks[0]};
    assert_string_equal(told(last_first, 2, true), " ← main");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_that_one_alone_comes_through_needs_no_caller),
        cmocka_unit_test(of_a_line_that_several_come_through_the_caller_is_told),
        cmocka_unit_test(the_caller_is_the_first_in_which_they_differ),
        cmocka_unit_test(lines_of_one_function_are_told_apart),
        cmocka_unit_test(what_has_no_name_is_told_by_what_it_is_in),
        cmocka_unit_test(a_native_caller_stands_without_its_scopes_where_columns_are_few),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
