/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/python_object.h"

#include <errno.h>
#include <string.h>

#include "stack/probe.h"

#define ENTRIES_MAX 64u /* attributes that are looked through */
#define STRING_MAX (1u << 20)
#define FLAG_INLINE_VALUES (1u << 2)
#define FLAG_MANAGED_DICT (1u << 4)

bool ttm_python_is(uintptr_t object, uintptr_t type, size_t size)
{
    return object % 8 == 0 && ttm_probe(object, size) &&
           ttm_load_u64(object + TTM_OBJECT_TYPE) == type;
}

/* The characters of a str: where, how many, and how wide each is. */
struct characters {
    uintptr_t first;
    uint64_t count;
    unsigned width;
};

static bool find_characters(const struct ttm_python_view *view, uintptr_t object,
                            struct characters *ret)
{
    if (!ttm_python_is(object, view->types.string, view->layout->ascii_characters))
        return false;
    const uint32_t state = ttm_load_u32(object + TTM_STRING_STATE);
    const unsigned width = state >> 2 & 7;
    const bool is_compact = state >> 5 & 1, is_ascii = state >> 6 & 1;

    ret->count = ttm_load_u64(object + TTM_STRING_LENGTH);
    ret->width = width;
    ret->first =
        object + (is_ascii ? view->layout->ascii_characters : view->layout->compact_characters);
    if (!is_compact || (width != 1 && width != 2 && width != 4) || (is_ascii && width != 1) ||
        ret->count > STRING_MAX)
        return false;
    return ret->count == 0 || ttm_probe(ret->first, ret->count * width);
}

TTM_READS_FOREIGN static uint32_t character_at(const struct characters *c, uint64_t i)
{
    switch (c->width) {
    case 1:
        return ((const uint8_t *)c->first)[i];
    case 2:
        return ((const uint16_t *)c->first)[i];
    default:
        return ((const uint32_t *)c->first)[i];
    }
}

static unsigned utf8_length(uint32_t c)
{
    return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

/* Lone surrogates, by which Python stands for undecodable bytes, become "?". */
static unsigned put_utf8(uint32_t c, char *buf)
{
    const unsigned length = utf8_length(c);

    if (length == 1 || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff) {
        buf[0] = (char)(length == 1 ? c : (uint32_t)'?');
        return 1;
    }
    for (unsigned i = length - 1; i > 0; i--, c >>= 6)
        buf[i] = (char)(0x80 | (c & 0x3f));
    buf[0] = (char)((0xf00u >> length & 0xff) | c);
    return length;
}

int ttm_python_text(const struct ttm_python_view *view, uintptr_t object, enum ttm_python_keep keep,
                    char *buf, size_t size)
{
    struct characters c;
    uint64_t i = 0;
    size_t n = 0;

    if (!find_characters(view, object, &c))
        return -EINVAL;
    if (keep == TTM_KEEP_TAIL) {
        size_t needed = 0;
        for (i = c.count; i > 0; i--) {
            needed += utf8_length(character_at(&c, i - 1));
            if (needed > size)
                break;
        }
    }
    for (; i < c.count; i++) {
        const uint32_t character = character_at(&c, i);

        if (utf8_length(character) > size - n)
            break;
        n += put_utf8(character, buf + n);
    }
    return (int)n;
}

static bool is_named(const struct ttm_python_view *view, uintptr_t key, const char *name)
{
    struct characters c;
    const size_t length = strlen(name);

    if (!find_characters(view, key, &c) || c.width != 1 || c.count != length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (character_at(&c, i) != (uint8_t)name[i])
            return false;
    return true;
}

/* Where the entries of a dict's keys are, and how they look. */
struct entries {
    uintptr_t first;
    uint64_t count;
    unsigned size;
    unsigned key; /* the value follows it */
};

static bool find_entries(const struct ttm_python_layout *layout, uintptr_t keys,
                         struct entries *ret)
{
    if (keys % 8 != 0 || !ttm_probe(keys, 40))
        return false;
    if (layout->minor == 10) { /* dk_size, dk_nentries, dk_indices */
        const uint64_t size = ttm_load_u64(keys + 8);
        const unsigned width = size <= 0xff ? 1 : size <= 0xffff ? 2 : 4;

        if (size > UINT32_MAX)
            return false;
        *ret = (struct entries){keys + 40 + size * width, ttm_load_u64(keys + 32), 24, 8};
    } else { /* dk_log2_index_bytes, dk_kind, dk_nentries, dk_indices */
        const unsigned log2_bytes = ttm_load_u8(keys + 9);
        const bool is_general = ttm_load_u8(keys + 10) == 0;

        if (log2_bytes > 32)
            return false;
        *ret = (struct entries){keys + 32 + ((uintptr_t)1 << log2_bytes), ttm_load_u64(keys + 24),
                                is_general ? 24 : 16, is_general ? 8 : 0};
    }
    if (ret->count > ENTRIES_MAX)
        ret->count = ENTRIES_MAX;
    return true;
}

/* 'values' is 0 when the entries have them. */
static uintptr_t find_value(const struct ttm_python_view *view, uintptr_t keys, uintptr_t values,
                            const char *name)
{
    struct entries entries;

    if (!find_entries(view->layout, keys, &entries))
        return 0;
    for (uint64_t i = 0; i < entries.count; i++) {
        const uintptr_t entry = entries.first + i * entries.size;
        uint64_t key, value;

        if (!ttm_probe_u64(entry + entries.key, &key))
            return 0;
        if (key != 0 && is_named(view, key, name)) {
            (void)ttm_probe_u64(values != 0 ? values + 8 * i : entry + entries.key + 8, &value);
            return value;
        }
    }
    return 0;
}

static uintptr_t find_in_dict(const struct ttm_python_view *view, uintptr_t dict, const char *name)
{
    if (!ttm_python_is(dict, view->types.dict, TTM_DICT_VALUES + 8))
        return 0;
    const uintptr_t keys = ttm_load_u64(dict + TTM_DICT_KEYS);
    const uintptr_t values = ttm_load_u64(dict + TTM_DICT_VALUES);

    return find_value(view, keys, values != 0 ? values + view->layout->values_first : 0, name);
}

/* Values without a dict: 'ret_values' is 0 when the object has a dict, at 'ret_dict'. */
static void find_values(const struct ttm_python_layout *layout, uintptr_t object, uintptr_t type,
                        uint64_t *ret_values, uint64_t *ret_dict)
{
    const uint32_t flags = ttm_load_u32(type + TTM_TYPE_FLAGS);
    const int64_t dict_offset = (int64_t)ttm_load_u64(type + TTM_TYPE_DICT_OFFSET);

    *ret_values = *ret_dict = 0;
    if (layout->values == TTM_VALUES_NONE || !(flags & FLAG_MANAGED_DICT)) {
        if (dict_offset > 0)
            (void)ttm_probe_u64(object + (uint64_t)dict_offset, ret_dict);
        return;
    }
    (void)ttm_probe_u64(object - 24, ret_dict);
    if (layout->values == TTM_VALUES_BEFORE) {
        (void)ttm_probe_u64(object - 32, ret_values);
    } else if (layout->values == TTM_VALUES_TAGGED && (*ret_dict & 1)) {
        *ret_values = *ret_dict + 1;
    } else if (layout->values == TTM_VALUES_INLINE && (flags & FLAG_INLINE_VALUES)) {
        const uintptr_t values = object + ttm_load_u64(type + TTM_TYPE_BASIC_SIZE);
        if (ttm_probe(values, 8) && ttm_load_u8(values + 3) != 0) /* valid */
            *ret_values = values + layout->values_first;
    }
}

uintptr_t ttm_python_attribute(const struct ttm_python_view *view, uintptr_t object,
                               const char *name)
{
    const struct ttm_python_layout *layout = view->layout;
    uint64_t type, values, dict;

    if (object % 8 != 0 || !ttm_probe_u64(object + TTM_OBJECT_TYPE, &type) || type % 8 != 0 ||
        !ttm_probe(type, (size_t)layout->type_cached_keys + 8))
        return 0;
    find_values(layout, object, type, &values, &dict);
    if (values != 0)
        return find_value(view, ttm_load_u64(type + layout->type_cached_keys), values, name);
    return find_in_dict(view, dict, name);
}
