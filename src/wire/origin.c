/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/origin.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"

#define ADDRESS_BITS 48
#define ADDRESS_MASK ((1ull << ADDRESS_BITS) - 1)
#define EXACT_BIT 0x8000u

static bool is_inside_character(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

struct ttm_note_text ttm_note_text_cut(struct ttm_note_text text, uint16_t max)
{
    if (text.length <= max)
        return text;
    text.length = max;
    while (text.length > 0 && is_inside_character(text.bytes[text.length]))
        text.length--;
    return text;
}

/* The last bytes of a text, at most 'max'. */
static struct ttm_note_text tail_of(struct ttm_note_text text, uint16_t max)
{
    if (text.length <= max)
        return text;
    text.bytes += text.length - max;
    text.length = max;
    while (text.length > 0 && is_inside_character(*text.bytes)) {
        text.bytes++;
        text.length--;
    }
    return text;
}

static size_t put_text(uint8_t *buf, struct ttm_note_text text)
{
    if (text.length > 0)
        memcpy(buf, text.bytes, text.length);
    return text.length;
}

size_t ttm_code_note_encode(const struct ttm_code_note *note, uint8_t buf[TTM_CODE_NOTE_SIZE_MAX])
{
    const struct ttm_note_text file = tail_of(note->file, TTM_CODE_FILE_MAX);
    const struct ttm_note_text name = ttm_note_text_cut(note->name, TTM_CODE_NAME_MAX);
    size_t size = 8;

    put_le32(buf, note->first_line);
    put_le16(buf + 4, file.length);
    put_le16(buf + 6, name.length);
    size += put_text(buf + size, file);
    size += put_text(buf + size, name);
    return size;
}

int ttm_code_note_decode(const uint8_t *buf, size_t len, struct ttm_code_note *ret)
{
    if (len < 8)
        return -EBADMSG;
    const uint16_t file_length = get_le16(buf + 4), name_length = get_le16(buf + 6);

    if (file_length > TTM_CODE_FILE_MAX || name_length > TTM_CODE_NAME_MAX ||
        len - 8 < (size_t)file_length + name_length)
        return -EBADMSG;
    *ret = (struct ttm_code_note){
        .first_line = get_le32(buf),
        .file = {(const char *)buf + 8, file_length},
        .name = {(const char *)buf + 8 + file_length, name_length},
    };
    return 0;
}

size_t ttm_python_stack_note_encode(const struct ttm_python_stack_note *note,
                                    uint8_t buf[TTM_PYTHON_STACK_NOTE_SIZE_MAX])
{
    put_le16(buf, note->count);
    put_le16(buf + 2, note->is_cut ? TTM_STACK_IS_CUT : 0);
    for (size_t i = 0; i < note->count; i++) {
        put_le32(buf + 4 + 8 * i, note->frames[i].code);
        put_le32(buf + 8 + 8 * i, note->frames[i].line);
    }
    return 4 + 8 * (size_t)note->count;
}

int ttm_python_stack_note_decode(const uint8_t *buf, size_t len, struct ttm_python_stack_note *ret)
{
    if (len < 4)
        return -EBADMSG;
    const uint16_t count = get_le16(buf);

    if (count > TTM_PYTHON_FRAMES_MAX || (len - 4) / 8 < count)
        return -EBADMSG;
    ret->count = count;
    ret->is_cut = get_le16(buf + 2) & TTM_STACK_IS_CUT;
    for (size_t i = 0; i < count; i++) {
        ret->frames[i].code = get_le32(buf + 4 + 8 * i);
        ret->frames[i].line = get_le32(buf + 8 + 8 * i);
    }
    return 0;
}

size_t ttm_module_note_encode(const struct ttm_module_note *note,
                              uint8_t buf[TTM_MODULE_NOTE_SIZE_MAX])
{
    const struct ttm_note_text path = tail_of(note->path, TTM_MODULE_PATH_MAX);
    const uint8_t id_length =
        note->build_id_length <= TTM_BUILD_ID_MAX ? note->build_id_length : TTM_BUILD_ID_MAX;
    size_t size = 28;

    put_le64(buf, note->bias);
    put_le64(buf + 8, note->start);
    put_le64(buf + 16, note->end);
    put_le16(buf + 24, path.length);
    buf[26] = id_length;
    buf[27] = 0;
    size += put_text(buf + size, path);
    if (id_length > 0)
        memcpy(buf + size, note->build_id, id_length);
    return size + id_length;
}

int ttm_module_note_decode(const uint8_t *buf, size_t len, struct ttm_module_note *ret)
{
    if (len < 28)
        return -EBADMSG;
    const uint16_t path_length = get_le16(buf + 24);
    const uint8_t id_length = buf[26];

    if (path_length > TTM_MODULE_PATH_MAX || id_length > TTM_BUILD_ID_MAX ||
        len - 28 < (size_t)path_length + id_length || get_le64(buf + 8) > get_le64(buf + 16))
        return -EBADMSG;
    *ret = (struct ttm_module_note){
        .bias = get_le64(buf),
        .start = get_le64(buf + 8),
        .end = get_le64(buf + 16),
        .path = {(const char *)buf + 28, path_length},
        .build_id = buf + 28 + path_length,
        .build_id_length = id_length,
    };
    return 0;
}

/* The place of a module in the list that is being made, from 1; 0 when it is full. */
static size_t place_of(uint32_t module, uint32_t modules[TTM_NATIVE_MODULES_MAX], size_t *count)
{
    if (module == 0)
        return 0;
    for (size_t i = *count; i > 0; i--) /* frames of a module follow one another */
        if (modules[i - 1] == module)
            return i;
    if (*count == TTM_NATIVE_MODULES_MAX)
        return 0;
    modules[(*count)++] = module;
    return *count;
}

size_t ttm_native_stack_note_encode(const struct ttm_native_stack_note *note,
                                    uint8_t buf[TTM_NATIVE_STACK_NOTE_SIZE_MAX])
{
    uint32_t modules[TTM_NATIVE_MODULES_MAX];
    uint16_t places[TTM_NATIVE_FRAMES_MAX] = {0};
    size_t module_count = 0;

    for (size_t i = 0; i < note->count; i++)
        places[i] = (uint16_t)(place_of(note->frames[i].module, modules, &module_count) |
                               (note->frames[i].is_exact ? EXACT_BIT : 0));

    put_le16(buf, note->count);
    put_le16(buf + 2, note->is_cut ? TTM_STACK_IS_CUT : 0);
    put_le16(buf + 4, (uint16_t)module_count);
    put_le16(buf + 6, 0);
    for (size_t i = 0; i < module_count; i++)
        put_le32(buf + 8 + 4 * i, modules[i]);
    uint8_t *frames = buf + 8 + 4 * module_count;
    for (size_t i = 0; i < note->count; i++)
        put_le64(frames + 8 * i,
                 (uint64_t)places[i] << ADDRESS_BITS | (note->frames[i].address & ADDRESS_MASK));
    return (size_t)(frames - buf) + 8 * (size_t)note->count;
}

int ttm_native_stack_note_decode(const uint8_t *buf, size_t len, struct ttm_native_stack_note *ret)
{
    if (len < 8)
        return -EBADMSG;
    const uint16_t count = get_le16(buf), module_count = get_le16(buf + 4);

    if (count > TTM_NATIVE_FRAMES_MAX || module_count > TTM_NATIVE_MODULES_MAX ||
        len - 8 < 4 * (size_t)module_count + 8 * (size_t)count)
        return -EBADMSG;
    const uint8_t *modules = buf + 8, *frames = modules + 4 * (size_t)module_count;

    for (size_t i = 0; i < count; i++) {
        const uint64_t word = get_le64(frames + 8 * i);
        const size_t place = (size_t)(word >> ADDRESS_BITS) & ~(size_t)EXACT_BIT;

        if (place > module_count)
            return -EBADMSG;
        ret->frames[i] = (struct ttm_native_frame){
            .module = place > 0 ? get_le32(modules + 4 * (place - 1)) : 0,
            .is_exact = (word >> ADDRESS_BITS & EXACT_BIT) != 0,
            .address = word & ADDRESS_MASK,
        };
    }
    ret->count = count;
    ret->is_cut = get_le16(buf + 2) & TTM_STACK_IS_CUT;
    return 0;
}

size_t ttm_thread_note_encode(const struct ttm_thread_note *note,
                              uint8_t buf[TTM_THREAD_NOTE_SIZE_MAX])
{
    put_le32(buf, note->tid);
    return 4 + put_text(buf + 4, ttm_note_text_cut(note->name, TTM_THREAD_NAME_MAX));
}

int ttm_thread_note_decode(const uint8_t *buf, size_t len, struct ttm_thread_note *ret)
{
    if (len < 4 || len - 4 > TTM_THREAD_NAME_MAX)
        return -EBADMSG;
    *ret = (struct ttm_thread_note){
        .tid = get_le32(buf),
        .name = {(const char *)buf + 4, (uint16_t)(len - 4)},
    };
    return 0;
}

int ttm_operation_note_decode(const uint8_t *buf, size_t len, struct ttm_note_text *ret)
{
    if (len == 0 || len > TTM_OPERATION_NAME_MAX)
        return -EBADMSG;
    *ret = (struct ttm_note_text){(const char *)buf, (uint16_t)len};
    return 0;
}

size_t ttm_named_stack_note_encode(const struct ttm_named_stack_note *note,
                                   uint8_t buf[TTM_NAMED_STACK_NOTE_SIZE_MAX])
{
    size_t size = 4;

    put_le16(buf, note->count);
    put_le16(buf + 2, note->is_cut ? TTM_STACK_IS_CUT : 0);
    for (size_t i = 0; i < note->count; i++) {
        const struct ttm_note_text module =
            ttm_note_text_cut(note->frames[i].module, TTM_FRAME_MODULE_MAX);
        const struct ttm_note_text name =
            ttm_note_text_cut(note->frames[i].name, TTM_FRAME_NAME_MAX);

        put_le16(buf + size, module.length);
        put_le16(buf + size + 2, name.length);
        size += 4;
        size += put_text(buf + size, module);
        size += put_text(buf + size, name);
    }
    return size;
}

int ttm_named_stack_note_decode(const uint8_t *buf, size_t len, struct ttm_named_stack_note *ret)
{
    if (len < 4 || get_le16(buf) > TTM_NATIVE_FRAMES_MAX)
        return -EBADMSG;
    const uint16_t count = get_le16(buf);
    size_t at = 4;

    for (size_t i = 0; i < count; i++) {
        if (len - at < 4)
            return -EBADMSG;
        const uint16_t module_length = get_le16(buf + at), name_length = get_le16(buf + at + 2);
        at += 4;
        if (module_length > TTM_FRAME_MODULE_MAX || name_length > TTM_FRAME_NAME_MAX ||
            len - at < (size_t)module_length + name_length)
            return -EBADMSG;
        ret->frames[i] = (struct ttm_named_frame){
            .module = {(const char *)buf + at, module_length},
            .name = {(const char *)buf + at + module_length, name_length},
        };
        at += (size_t)module_length + name_length;
    }
    ret->count = count;
    ret->is_cut = get_le16(buf + 2) & TTM_STACK_IS_CUT;
    return 0;
}

size_t ttm_log_note_encode(const struct ttm_log_note *note, uint8_t buf[TTM_LOG_NOTE_SIZE_MAX])
{
    put_le16(buf, note->is_untimed ? TTM_LOG_IS_UNTIMED : 0);
    put_le16(buf + 2, 0);
    return 4 + put_text(buf + 4, tail_of(note->name, TTM_LOG_NAME_MAX));
}

int ttm_log_note_decode(const uint8_t *buf, size_t len, struct ttm_log_note *ret)
{
    if (len < 4 || len - 4 > TTM_LOG_NAME_MAX)
        return -EBADMSG;
    *ret = (struct ttm_log_note){
        .is_untimed = get_le16(buf) & TTM_LOG_IS_UNTIMED,
        .name = {(const char *)buf + 4, (uint16_t)(len - 4)},
    };
    return 0;
}

bool ttm_is_users_file(const char *file, size_t length)
{
    static const char *const ours[] = {
        "-packages/ttnn/",
        "/ttnn/ttnn/",
        "-packages/ttmem/",
        "/python/ttmem/",
    };

    if (length == 0 || memmem(file, length, "<frozen ", 8) == file)
        return false;
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        if (memmem(file, length, ours[i], strlen(ours[i])))
            return false;
    }
    return true;
}

bool ttm_is_users_module(const char *path, size_t length)
{
    static const char *const others[] = {
        "libtt_metal", "libtt_stl", "libtt-umd", "libttmem", "libtracy", "_ttnn",
        "libttnn",     "libpython", "python",    "libc.so",  "libc-",    "libpthread",
        "libstdc++",   "libgcc_s",  "ld-linux",  "libffi",   "_ctypes",
    };
    const char *slash = length > 0 ? memrchr(path, '/', length) : NULL;
    const char *name = slash ? slash + 1 : path;
    const size_t n = (size_t)(path + length - name);

    if (n == 0)
        return false;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        const size_t size = strlen(others[i]);
        if (n >= size && memcmp(name, others[i], size) == 0)
            return false;
    }
    return true;
}

const char *ttm_users_native_line(const char *lines)
{
    for (const char *line = lines; *line;) {
        const size_t length = strcspn(line, "\n");
        const char *plus = memrchr(line, '+', length);
        if (plus && ttm_is_users_module(line, (size_t)(plus - line)))
            return line;
        line += length + (line[length] == '\n');
    }
    return lines;
}
