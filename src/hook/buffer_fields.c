/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/buffer_fields.h"

#include <stddef.h>
#include <string.h>

#include "hook/code.h"

#ifdef __x86_64__

/* The displacement of the operand whose byte 'modrm' has just been taken: 8 or 32 bits, not negative. */
static bool take_offset(struct ttm_code *code, bool is_long, uint16_t *ret)
{
    uint32_t offset = *code->at;

    if (is_long)
        memcpy(&offset, code->at, sizeof(offset));
    code->at += is_long ? sizeof(offset) : 1;
    *ret = (uint16_t)offset;
    return offset <= (is_long ? UINT16_MAX : (uint32_t)INT8_MAX);
}

/* mov offset(%rdi),%rax: the pointer to the body, which every one of the methods begins with. */
static bool take_body(struct ttm_code *code, uint16_t *ret)
{
    ttm_code_take_landing_pad(code);
    return TTM_CODE_TAKE(code, 0x48, 0x8b, 0x47) && take_offset(code, false, ret) && *ret != 0;
}

/* mov offset(%rax),%eax and ret. */
static bool take_result_u32(struct ttm_code *code, uint16_t *ret)
{
    const bool is_long = TTM_CODE_TAKE(code, 0x8b, 0x80);

    return (is_long || TTM_CODE_TAKE(code, 0x8b, 0x40)) && take_offset(code, is_long, ret) &&
           TTM_CODE_TAKE(code, 0xc3);
}

/* The same with %rax. */
static bool take_result_u64(struct ttm_code *code, uint16_t *ret)
{
    return TTM_CODE_TAKE(code, 0x48) && take_result_u32(code, ret);
}

static bool learn_u32(const void *method, uint16_t *ret_body, uint16_t *ret)
{
    struct ttm_code code = {method};

    return method && take_body(&code, ret_body) && take_result_u32(&code, ret);
}

static bool learn_u64(const void *method, uint16_t *ret_body, uint16_t *ret)
{
    struct ttm_code code = {method};

    return method && take_body(&code, ret_body) && take_result_u64(&code, ret);
}

/* cmpb $0,offset(%rax) and a short je past the return, to where it throws. */
static bool learn_address(const void *method, uint16_t *ret_body, uint16_t *ret_has, uint16_t *ret)
{
    struct ttm_code code = {method};

    if (!method || !take_body(&code, ret_body) || !TTM_CODE_TAKE(&code, 0x80, 0x78) ||
        !take_offset(&code, false, ret_has) || !TTM_CODE_TAKE(&code, 0x00, 0x74))
        return false;
    const uint32_t skipped = *code.at++;
    const uint8_t *from = code.at;
    return take_result_u32(&code, ret) && code.at <= from + skipped && skipped <= INT8_MAX;
}

/* add $offset,%rax */
static bool take_addition(struct ttm_code *code, uint16_t *ret)
{
    return TTM_CODE_TAKE(code, 0x48, 0x05) && take_offset(code, true, ret);
}

/*
 * A place in the body. Until 0.79 it takes the pointer itself, and a short je leads to where it
 * throws when there is none; later it calls for it, with a push and a pop around to keep the stack
 * even.
 */
static uint16_t learn_place(const void *method)
{
    struct ttm_code code = {method};
    uint16_t body, place;

    if (!method)
        return 0;
    ttm_code_take_landing_pad(&code);
    if (TTM_CODE_TAKE(&code, 0x50)) {
        if (!TTM_CODE_TAKE(&code, 0xe8))
            return 0;
        code.at += sizeof(int32_t);
        return take_addition(&code, &place) && TTM_CODE_TAKE(&code, 0x59, 0xc3) ? place : 0;
    }
    if (!take_body(&code, &body) || !TTM_CODE_TAKE(&code, 0x48, 0x85, 0xc0, 0x74))
        return 0;
    code.at++;
    return take_addition(&code, &place) && TTM_CODE_TAKE(&code, 0xc3) ? place : 0;
}

void ttm_buffer_fields_learn(const struct ttm_buffer_methods *methods,
                             struct ttm_buffer_fields *ret)
{
    struct ttm_buffer_fields fields = {0};
    uint16_t bodies[6];

    *ret = fields;
    if (!learn_u32(methods->type, &bodies[0], &fields.type) ||
        !learn_u32(methods->layout, &bodies[1], &fields.layout) ||
        !learn_u64(methods->id, &bodies[2], &fields.id) ||
        !learn_u64(methods->size, &bodies[3], &fields.size) ||
        !learn_u64(methods->page_size, &bodies[4], &fields.page_size) ||
        !learn_address(methods->address, &bodies[5], &fields.has_address, &fields.address))
        return;
    for (uint32_t i = 1; i < 6; i++) {
        if (bodies[i] != bodies[0])
            return;
    }
    fields.body = bodies[0];
    fields.core_map = learn_place(methods->core_addresses);
    *ret = fields;
}

#else

void ttm_buffer_fields_learn(const struct ttm_buffer_methods *methods,
                             struct ttm_buffer_fields *ret)
{
    (void)methods;
    *ret = (struct ttm_buffer_fields){0};
}

#endif

void ttm_buffer_fields_see_core_map(struct ttm_buffer_fields *fields, const char *body,
                                    const void *map)
{
    /* relaxed: who does not see it asks the method. */
    if (fields->core_map != 0 && map == body + fields->core_map)
        __atomic_store_n(&fields->core_count, fields->core_map + TTM_CORE_MAP_COUNT,
                         __ATOMIC_RELAXED);
}
