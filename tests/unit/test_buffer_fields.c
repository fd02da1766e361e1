/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/buffer_fields.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "testing.h"

#ifdef __x86_64__

/* As the methods of ttnn 0.79 to 0.81 are: mov 0x10(%rdi),%rax, a load from there, ret. */
#define BODY 0x48, 0x8b, 0x47, 0x10
static const uint8_t type_code[] = {BODY, 0x8b, 0x40, 0x10, 0xc3};
static const uint8_t layout_code[] = {BODY, 0x8b, 0x40, 0x14, 0xc3};
static const uint8_t id_code[] = {BODY, 0x48, 0x8b, 0x80, 0x18, 0x02, 0, 0, 0xc3};
static const uint8_t size_code[] = {BODY, 0x48, 0x8b, 0x40, 0x08, 0xc3};
static const uint8_t page_code[] = {BODY, 0x48, 0x8b, 0x40, 0x48, 0xc3};
/* cmpb $0,0x38(%rax); je to behind the ret; mov 0x40(%rax),%eax; ret */
static const uint8_t address_code[] = {BODY, 0x80, 0x78, 0x38, 0,    0x74,
                                       0x04, 0x8b, 0x40, 0x40, 0xc3, 0x50};

/* As that of 0.79: test %rax,%rax; je to behind the ret; add $0x1c0,%rax; ret */
static const uint8_t map_code[] = {BODY, 0x48, 0x85, 0xc0, 0x74, 0x07, 0x48,
                                   0x05, 0xc0, 0x01, 0,    0,    0xc3};
/* As that of 0.81: push %rax; call somewhere; add $0x1c0,%rax; pop %rcx; ret */
static const uint8_t map_call_code[] = {0x50, 0xe8, 0x8a, 0x0d, 0xaf, 0xff, 0x48,
                                        0x05, 0xc0, 0x01, 0,    0,    0x59, 0xc3};

static const struct ttm_buffer_methods usual = {
    .type = type_code,
    .layout = layout_code,
    .id = id_code,
    .size = size_code,
    .page_size = page_code,
    .address = address_code,
    .core_addresses = map_code,
};

static struct ttm_buffer_fields learn(const struct ttm_buffer_methods *methods)
{
    struct ttm_buffer_fields fields;

    memset(&fields, 0xff, sizeof(fields));
    ttm_buffer_fields_learn(methods, &fields);
    return fields;
}

static void the_fields_are_where_the_methods_read_them(void **state)
{
    const struct ttm_buffer_fields fields = learn(&usual);
    char body[0x300] = {0};
    struct {
        uint64_t other[2];
        const char *body;
    } buffer = {.body = body};
    (void)state;

    assert_int_equal(fields.body, 0x10);
    assert_int_equal(fields.type, 0x10);
    assert_int_equal(fields.layout, 0x14);
    assert_int_equal(fields.id, 0x218);
    assert_int_equal(fields.size, 0x08);
    assert_int_equal(fields.page_size, 0x48);
    assert_int_equal(fields.has_address, 0x38);
    assert_int_equal(fields.address, 0x40);

    const uint64_t id = 0x1122334455667788;
    const uint32_t address = 0x89abcdef;
    memcpy(body + 0x218, &id, sizeof(id));
    memcpy(body + 0x40, &address, sizeof(address));
    assert_ptr_equal(ttm_buffer_body(&fields, &buffer), body);
    assert_int_equal(ttm_buffer_u64(body, fields.id), id);
    assert_int_equal(ttm_buffer_u32(body, fields.address), address);
}

static void a_landing_pad_before_the_code_is_passed_over(void **state)
{
    uint8_t code[sizeof(size_code) + 4] = {0xf3, 0x0f, 0x1e, 0xfa};
    struct ttm_buffer_methods methods = usual;
    (void)state;

    memcpy(code + 4, size_code, sizeof(size_code));
    methods.size = code;
    assert_int_equal(learn(&methods).body, 0x10);
}

static void a_method_that_is_missing_leaves_all_unknown(void **state)
{
    const size_t count = offsetof(struct ttm_buffer_methods, core_addresses) / sizeof(void *);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        struct ttm_buffer_methods methods = usual;
        memset((char *)&methods + i * sizeof(void *), 0, sizeof(void *));
        assert_int_equal(learn(&methods).body, 0);
    }
}

/* Of every method each bit of the code turned over: it is not known, or reads another offset. */
static void a_method_that_does_anything_else_is_not_known(void **state)
{
    struct {
        const uint8_t *code;
        size_t length, offset_at, offset_bytes;
    } methods[] = {
        {type_code, sizeof(type_code), 6, 1}, {layout_code, sizeof(layout_code), 6, 1},
        {id_code, sizeof(id_code), 7, 4},     {size_code, sizeof(size_code), 7, 1},
        {page_code, sizeof(page_code), 7, 1}, {address_code, sizeof(address_code) - 1, 12, 1},
    };
    (void)state;

    for (size_t m = 0; m < sizeof(methods) / sizeof(methods[0]); m++) {
        for (size_t bit = 0; bit < methods[m].length * 8; bit++) {
            const size_t at = bit / 8;
            uint8_t code[32];
            struct ttm_buffer_methods changed = usual;

            memcpy(code, methods[m].code, methods[m].length);
            code[at] ^= (uint8_t)(1u << bit % 8);
            const void **slots[] = {&changed.type, &changed.layout,    &changed.id,
                                    &changed.size, &changed.page_size, &changed.address};
            *slots[m] = code;
            const bool is_offset =
                (at >= methods[m].offset_at &&
                 at < methods[m].offset_at + methods[m].offset_bytes) ||
                (m == 5 && (at == 6 || at == 9)); /* of the byte that is tested; how far it jumps */
            if (!is_offset)
                assert_int_equal(learn(&changed).body, 0);
        }
    }
}

static void the_map_of_cores_is_where_its_method_says_once_it_was_seen_there(void **state)
{
    const uint8_t *codes[] = {map_code, map_call_code};
    const char body[0x300] = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        struct ttm_buffer_methods methods = usual;

        methods.core_addresses = codes[i];
        struct ttm_buffer_fields fields = learn(&methods);
        assert_int_equal(fields.core_map, 0x1c0);
        assert_int_equal(fields.core_count, 0);
        ttm_buffer_fields_see_core_map(&fields, body, body + 0x1b8);
        assert_int_equal(fields.core_count, 0);
        ttm_buffer_fields_see_core_map(&fields, body, body + 0x1c0);
        assert_int_equal(fields.core_count, 0x1c0 + TTM_CORE_MAP_COUNT);
    }
}

/* The rest is known all the same. */
static void a_map_of_cores_whose_method_is_another_is_not_known(void **state)
{
    const struct {
        const uint8_t *code;
        size_t length, free_at, free_bytes, offset_at;
    } methods[] = {
        {map_code, sizeof(map_code), 8, 1, 11},
        {map_call_code, sizeof(map_call_code), 2, 4, 8},
    };
    struct ttm_buffer_methods changed = usual;
    (void)state;

    for (size_t m = 0; m < COUNT_OF(methods); m++) {
        for (size_t bit = 0; bit < methods[m].length * 8; bit++) {
            const size_t at = bit / 8;
            uint8_t code[32] = {0};

            memcpy(code, methods[m].code, methods[m].length);
            code[at] ^= (uint8_t)(1u << bit % 8);
            changed.core_addresses = code;
            const struct ttm_buffer_fields fields = learn(&changed);
            assert_int_equal(fields.body, 0x10);
            /* Where it jumps or calls to does not matter, as it is seen where that leads. */
            const bool is_free =
                (at >= methods[m].free_at && at < methods[m].free_at + methods[m].free_bytes) ||
                (m == 0 && at == 3);
            const bool is_offset = at >= methods[m].offset_at && at < methods[m].offset_at + 4;
            if (!is_free && !is_offset)
                assert_int_equal(fields.core_map, 0);
        }
    }
    changed.core_addresses = NULL;
    struct ttm_buffer_fields fields = learn(&changed);
    assert_int_equal(fields.core_map, 0);
    ttm_buffer_fields_see_core_map(&fields, (const char *)&fields, &fields);
    assert_int_equal(fields.core_count, 0);
}

static void a_jump_that_does_not_pass_the_return_is_not_known(void **state)
{
    uint8_t code[sizeof(address_code)];
    struct ttm_buffer_methods methods = usual;
    (void)state;

    memcpy(code, address_code, sizeof(code));
    methods.address = code;
    code[9] = 0x03;
    assert_int_equal(learn(&methods).body, 0);
    code[9] = 0x80; /* backwards */
    assert_int_equal(learn(&methods).body, 0);
}

static void offsets_that_are_negative_or_do_not_fit_are_not_known(void **state)
{
    uint8_t code[sizeof(id_code)];
    struct ttm_buffer_methods methods = usual;
    (void)state;

    memcpy(code, id_code, sizeof(code));
    methods.id = code;
    code[9] = 0x01; /* 0x10218 */
    assert_int_equal(learn(&methods).body, 0);
    memset(code + 7, 0xff, 4);
    assert_int_equal(learn(&methods).body, 0);
}

static void nothing_is_read_behind_a_method(void **state)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *pages =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ttm_buffer_methods methods = usual;
    (void)state;

    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
    uint8_t *code = pages + page - sizeof(type_code);
    memcpy(code, type_code, sizeof(type_code));
    methods.type = code;
    assert_int_equal(learn(&methods).body, 0x10);
    pages[page - 1] = 0xc3;
    methods.type = pages + page - 1; /* a method that does nothing */
    assert_int_equal(learn(&methods).body, 0);
    assert_int_equal(munmap(pages, 2 * page), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fields_are_where_the_methods_read_them),
        cmocka_unit_test(a_landing_pad_before_the_code_is_passed_over),
        cmocka_unit_test(a_method_that_is_missing_leaves_all_unknown),
        cmocka_unit_test(a_method_that_does_anything_else_is_not_known),
        cmocka_unit_test(the_map_of_cores_is_where_its_method_says_once_it_was_seen_there),
        cmocka_unit_test(a_map_of_cores_whose_method_is_another_is_not_known),
        cmocka_unit_test(a_jump_that_does_not_pass_the_return_is_not_known),
        cmocka_unit_test(offsets_that_are_negative_or_do_not_fit_are_not_known),
        cmocka_unit_test(nothing_is_read_behind_a_method),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* code is read on x86-64 alone */
}

#endif
