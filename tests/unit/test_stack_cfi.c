/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <sys/mman.h>

#include "stack/cfi.h"

#define PAGE 4096u
#define FUNCTION 0x1000u /* of 64 bytes, counted from the header */

/* A module of one page, right before one that cannot be read. */
static uint8_t *page;

static size_t put(size_t at, const void *bytes, size_t size)
{
    memcpy(page + at, bytes, size);
    return at + size;
}

static size_t put_u32(size_t at, uint32_t value)
{
    return put(at, &value, sizeof(value));
}

/* The header at 0, a CIE at 32 and an FDE behind it with these instructions. */
static void make_module(const char *augmentation, const uint8_t *program, size_t size)
{
    static const uint8_t header[] = {1, 0x1b, 0x03, 0x3b};
    /* code 1, data -8, return address in register 16; def_cfa rsp 8; offset of it 1 */
    static const uint8_t start[] = {1, 0x78, 16};
    static const uint8_t first_rules[] = {0x0c, 7, 8, 0x80 | 16, 1};
    const size_t cie = 32;
    size_t at;

    memset(page, 0, PAGE);
    at = put(0, header, sizeof(header));
    at = put_u32(at, 0);
    at = put_u32(at, 1);
    at = put_u32(at, FUNCTION);
    const size_t fde_place = at;

    at = put_u32(cie + 4, 0);
    at = put(at, "\1", 1);
    at = put(at, augmentation, strlen(augmentation) + 1);
    at = put(at, start, sizeof(start));
    at = put(at, "\1\x1b", 2); /* one byte of augmentation: pointers are relative, 4 bytes */
    at = put(at, first_rules, sizeof(first_rules));
    at = (at + 7) / 8 * 8;
    (void)put_u32(cie, (uint32_t)(at - cie - 4));

    const size_t fde = at;
    (void)put_u32(fde_place, (uint32_t)fde);
    at = put_u32(fde + 4, (uint32_t)(fde + 4 - cie));
    at = put_u32(at, (uint32_t)(FUNCTION - at));
    at = put_u32(at, 64);
    at = put(at, "\0", 1);
    at = put(at, program, size);
    at = (at + 7) / 8 * 8;
    (void)put_u32(fde, (uint32_t)(at - fde - 4));
}

static struct ttm_row row_at(unsigned offset)
{
    struct ttm_row row;

    ttm_cfi_read_row((uintptr_t)page + FUNCTION + offset, (uintptr_t)page, (uintptr_t)page,
                     (uintptr_t)page + PAGE, &row);
    return row;
}

static void rows_follow_the_instructions(void **state)
{
    static const uint8_t program[] = {
        0x40 | 1, 0x0e, 16,   0x80 | 6, 2, /* after push %rbp */
        0x40 | 3, 0x0d, 6,                 /* after mov %rsp, %rbp */
        0x0a,                              /* remembered */
        0x02,     20,   0x0c, 7,        8, /* after leave */
        0x0b,                              /* as remembered */
    };
    (void)state;

    make_module("zR", program, sizeof(program));
    struct ttm_row row = row_at(0);
    assert_int_equal(row.kind, TTM_ROW_RSP);
    assert_int_equal(row.cfa_offset, 8);
    assert_int_equal(row.rbp_offset, 0);
    row = row_at(1);
    assert_int_equal(row.kind, TTM_ROW_RSP);
    assert_int_equal(row.cfa_offset, 16);
    assert_int_equal(row.rbp_offset, -16);
    row = row_at(10);
    assert_int_equal(row.kind, TTM_ROW_RBP);
    assert_int_equal(row.cfa_offset, 16);
    assert_int_equal(row.rbp_offset, -16);
    row = row_at(30);
    assert_int_equal(row.kind, TTM_ROW_RBP);
}

static void an_address_outside_every_function_has_no_row(void **state)
{
    (void)state;

    make_module("zR", (const uint8_t *)"", 0);
    assert_int_equal(row_at(63).kind, TTM_ROW_RSP);
    assert_int_equal(row_at(64).kind, TTM_ROW_UNKNOWN);
    assert_int_equal(row_at(0u - 1u).kind, TTM_ROW_UNKNOWN);
}

static void signal_frames_and_outermost_ones_are_known_as_such(void **state)
{
    static const uint8_t outermost[] = {0x07, 16};
    (void)state;

    make_module("zRS", (const uint8_t *)"", 0);
    assert_int_equal(row_at(1).kind, TTM_ROW_SIGNAL);
    make_module("zR", outermost, sizeof(outermost));
    assert_int_equal(row_at(1).kind, TTM_ROW_OUTERMOST);
}

static void a_realigned_frame_is_found_by_its_expression(void **state)
{
    static const uint8_t program[] = {0x10, 6, 2, 0x76, 0, 0x0f, 3, 0x76, 0x78, 6};
    (void)state;

    make_module("zR", program, sizeof(program));
    const struct ttm_row row = row_at(1);
    assert_int_equal(row.kind, TTM_ROW_REALIGNED);
    assert_int_equal(row.cfa_offset, -8);
}

static void what_needs_other_registers_is_unknown(void **state)
{
    static const uint8_t by_r10[] = {0x0c, 10, 0};
    static const uint8_t by_expression[] = {0x0f, 2, 0x77, 8};
    static const uint8_t unheard_of[] = {0x3f};
    (void)state;

    make_module("zR", by_r10, sizeof(by_r10));
    assert_int_equal(row_at(1).kind, TTM_ROW_UNKNOWN);
    make_module("zR", by_expression, sizeof(by_expression));
    assert_int_equal(row_at(1).kind, TTM_ROW_UNKNOWN);
    make_module("zR", unheard_of, sizeof(unheard_of));
    assert_int_equal(row_at(1).kind, TTM_ROW_UNKNOWN);
}

static void descriptions_of_nonsense_are_never_read_beyond_the_module(void **state)
{
    static const uint8_t program[] = {0x40 | 1, 0x0e, 16, 0x80 | 6, 2, 0x40 | 3, 0x0d, 6};
    uint64_t seed = 0xabcdef;
    (void)state;

    for (unsigned i = 0; i < 100000; i++) {
        make_module("zR", program, sizeof(program));
        for (unsigned k = random_below(&seed, 6); k > 0; k--)
            page[random_below(&seed, 120)] = (uint8_t)next_random(&seed);
        const struct ttm_row row = row_at(random_below(&seed, 64));
        assert_true(row.is_known && row.kind <= TTM_ROW_OUTERMOST);
    }
    for (unsigned i = 0; i < 20000; i++) {
        for (unsigned k = 0; k < PAGE; k += 8) {
            const uint64_t word = next_random(&seed);
            memcpy(page + k, &word, 8);
        }
        memcpy(page, "\1\x1b\3\x3b", 4);
        memset(page + 10, 0, 2); /* a count that may fit */
        (void)row_at(random_below(&seed, 64));
    }
}

static int set_up(void **state)
{
    (void)state;
    page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || mprotect(page + PAGE, PAGE, PROT_NONE) != 0)
        return -1;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_follow_the_instructions),
        cmocka_unit_test(an_address_outside_every_function_has_no_row),
        cmocka_unit_test(signal_frames_and_outermost_ones_are_known_as_such),
        cmocka_unit_test(a_realigned_frame_is_found_by_its_expression),
        cmocka_unit_test(what_needs_other_registers_is_unknown),
        cmocka_unit_test(descriptions_of_nonsense_are_never_read_beyond_the_module),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
