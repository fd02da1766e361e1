/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/ending.h"

#include <string.h>

#include "testing.h"

#ifdef __x86_64__

/* Code that refers to what lies behind it, as interpreters were seen to have it. */
static struct {
    uint8_t code[32];
    const uint64_t *entry; /* of the global offset table */
    uint64_t words[128];
} module;

#define COMPARISON 0x48, 0x85, 0xc0, 0x0f, 0x95, 0xc0, 0x0f, 0xb6, 0xc0, 0xc3

/* Puts it down with the distance to 'target' at its byte 'at'. */
static void put(const uint8_t *code, size_t size, size_t at, const void *target)
{
    const int32_t distance = (int32_t)((const uint8_t *)target - (module.code + at + 4));

    memset(&module, 0, sizeof(module));
    memcpy(module.code, code, size);
    memcpy(module.code + at, &distance, sizeof(distance));
    module.entry = module.words;
}

static void a_word_that_is_loaded_and_compared_is_found(void **state)
{
    static const uint8_t code[] = {0x48, 0x8b, 0x05, 0, 0, 0, 0, COMPARISON};
    static const uint8_t padded[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8b,
                                     0x05, 0,    0,    0,    0,    COMPARISON};
    (void)state;

    put(code, sizeof(code), 3, &module.words[5]);
    assert_ptr_equal(ttm_ending_read_code(module.code), &module.words[5]);
    put(padded, sizeof(padded), 7, &module.words[6]);
    assert_ptr_equal(ttm_ending_read_code(module.code), &module.words[6]);
}

static void a_word_of_what_an_entry_leads_to_is_found(void **state)
{
    static const uint8_t near[] = {0x48, 0x8b, 0x05, 0,    0,    0,
                                   0,    0x48, 0x8b, 0x40, 0x18, COMPARISON};
    static const uint8_t far[] = {0x48, 0x8b, 0x05, 0,    0,    0, 0,         0x48,
                                  0x8b, 0x80, 0x60, 0x02, 0x00, 0, COMPARISON};
    (void)state;

    put(near, sizeof(near), 3, &module.entry);
    assert_ptr_equal(ttm_ending_read_code(module.code), &module.words[3]);
    put(far, sizeof(far), 3, &module.entry);
    assert_ptr_equal(ttm_ending_read_code(module.code), &module.words[0x260 / 8]);
}

static void a_word_of_what_has_an_address_is_found(void **state)
{
    static const uint8_t code[] = {0x48, 0x8d, 0x05, 0,    0,    0,
                                   0,    0x48, 0x8b, 0x40, 0x10, COMPARISON};
    (void)state;

    put(code, sizeof(code), 3, module.words);
    assert_ptr_equal(ttm_ending_read_code(module.code), &module.words[2]);
}

static void any_other_code_is_not_understood(void **state)
{
    static const uint8_t code[] = {0x48, 0x8b, 0x05, 0,    0,    0,
                                   0,    0x48, 0x8b, 0x40, 0x18, COMPARISON};
    (void)state;

    put(code, sizeof(code), 3, &module.entry);
    for (size_t i = 0; i < sizeof(code); i++) {
        if ((i >= 3 && i < 7) || i == 10) /* what differs from one to the next */
            continue;
        module.code[i] ^= 0x20;
        assert_null(ttm_ending_read_code(module.code));
        module.code[i] ^= 0x20;
    }
    module.code[10] = 0x88; /* a negative offset */
    assert_null(ttm_ending_read_code(module.code));
}

#endif

static void a_program_without_an_interpreter_is_not_on_its_way_out(void **state)
{
    (void)state;

    ttm_ending_look();
    assert_false(ttm_ending_has_begun());
    assert_true(*ttm_ending_word() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef __x86_64__
        cmocka_unit_test(a_word_that_is_loaded_and_compared_is_found),
        cmocka_unit_test(a_word_of_what_an_entry_leads_to_is_found),
        cmocka_unit_test(a_word_of_what_has_an_address_is_found),
        cmocka_unit_test(any_other_code_is_not_understood),
#endif
        cmocka_unit_test(a_program_without_an_interpreter_is_not_on_its_way_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
