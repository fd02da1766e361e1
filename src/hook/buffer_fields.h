/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer_fields - where a Buffer keeps what its methods tell.
 *
 * To ask a buffer for its id, size, type and address takes six calls of methods that
 * read a word each, and with cold caches a call costs more than all it does. So the
 * code of these methods is read once, when the runtime is found: where each is known
 * to do nothing but read a field, the field is read. Where one does anything else,
 * nothing is known and the methods are called.
 */
#ifndef TTM_HOOK_BUFFER_FIELDS_H
#define TTM_HOOK_BUFFER_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Offsets in what the pointer at 'body' of a Buffer points to. */
struct ttm_buffer_fields {
    uint16_t body;                /* 0: nothing is known */
    uint16_t type, layout;        /* 32 bits */
    uint16_t id, size, page_size; /* 64 bits */
    uint16_t has_address;         /* a byte; while it is 0 the method refuses */
    uint16_t address;             /* 32 bits */
    uint16_t core_map;            /* places in single cores, as the code has it; 0: not known */
    uint16_t core_count; /* 64 bits, atomic: how many these are; 0: nobody has looked yet */
};

/* A std::unordered_map counts its entries in its fourth word. */
#define TTM_CORE_MAP_COUNT 24

/* The methods, as they lie in memory. */
struct ttm_buffer_methods {
    const void *type, *layout, *id, *size, *page_size, *address;
    const void *core_addresses; /* may be NULL */
};

/* Leaves '*ret' unknown where a method is missing or not of the kind that was described. */
void ttm_buffer_fields_learn(const struct ttm_buffer_methods *methods,
                             struct ttm_buffer_fields *ret);

/*
 * A buffer with this body has its places in single cores here, as its method says. Unlike the
 * others that method calls another: what is known of its code holds once it was seen to be so.
 */
void ttm_buffer_fields_see_core_map(struct ttm_buffer_fields *fields, const char *body,
                                    const void *map);

static inline const char *ttm_buffer_body(const struct ttm_buffer_fields *fields,
                                          const void *buffer)
{
    const char *body;

    __builtin_memcpy(&body, (const char *)buffer + fields->body, sizeof(body));
    return body;
}

static inline uint32_t ttm_buffer_u32(const char *body, uint16_t offset)
{
    uint32_t value;

    __builtin_memcpy(&value, body + offset, sizeof(value));
    return value;
}

static inline uint64_t ttm_buffer_u64(const char *body, uint16_t offset)
{
    uint64_t value;

    __builtin_memcpy(&value, body + offset, sizeof(value));
    return value;
}

#ifdef __cplusplus
}
#endif

#endif /* TTM_HOOK_BUFFER_FIELDS_H */
