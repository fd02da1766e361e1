/* SPDX-License-Identifier: Apache-2.0 */
#include "server/notes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"
#include "server/record.h"
#include "wire/keepers.h"
#include "wire/note.h"
#include "wire/origin.h"

/* Neither of the two headers may include the other. */
_Static_assert((int)TTM_NOTE_DEVICES == (int)TTM_NOTED_DEVICES, "the same kinds");
_Static_assert((int)TTM_NOTE_STRING == (int)TTM_NOTED_STRING, "the same kinds");
_Static_assert((int)TTM_NOTE_CORES == (int)TTM_NOTED_CORES, "the same kinds");
_Static_assert((int)TTM_NOTE_DEVICE == (int)TTM_NOTED_DEVICE, "the same kinds");
_Static_assert((int)TTM_NOTE_ORIGIN == (int)TTM_NOTED_ORIGIN, "the same kinds");
_Static_assert((int)TTM_NOTE_STACKS == (int)TTM_NOTE_CODE, "the same kinds");

/* What it costs to read a note for the first time, in allocations on one device. */
#define COST_OF_ORIGIN 4096 /* with two stacks of the largest size */
#define COST_OF_REFUSED 4
#define REFUSED_MAX 65536 /* beyond that all is forgotten */
#define NOTE_MAX 1024     /* what a newer process may have appended is read and passed over */
#define LACKS_ROOM (UINT32_C(1) << 31) /* with a kind of note: refused until there is room for it */

void ttm_notes_init(struct ttm_notes *notes, const struct ttm_ring_reader *reader,
                    struct ttm_client *client)
{
    *notes = (struct ttm_notes){
        .reader = reader,
        .client = client,
        .reg = client->server->reg,
        .process = client->process,

    };
    ttm_u64_map_init(&notes->sets, notes->reg->seed);
    ttm_u64_set_init(&notes->refused, notes->reg->seed);
}

void ttm_notes_done(struct ttm_notes *notes)
{
    ttm_u64_map_done(&notes->sets);
    ttm_u64_set_done(&notes->refused);
    *notes = (struct ttm_notes){0};
}

/* Copies a note, as ttm_ring_reader_note(), and has it recorded the first time. */
static long read_note(const struct ttm_notes *notes, uint32_t number, uint32_t kind, void *ret,
                      uint32_t max)
{
    const long n = ttm_ring_reader_note(notes->reader, number, kind, ret, max);

    if (n >= 0 && ttm_record_wants_note(notes->client, number))
        ttm_record_note(notes->client, number, kind, ret, (size_t)n);
    return n;
}

/* ---- what was refused ---- */

static uint64_t refused_key(uint32_t kind, uint32_t number)
{
    return (uint64_t)kind << 32 | number;
}

static bool is_refused(const struct ttm_notes *notes, uint32_t kind, uint32_t number)
{
    return ttm_u64_set_has(&notes->refused, refused_key(kind, number));
}

/* A note does not change: what it says makes no more sense the next time. */
static void refuse(struct ttm_notes *notes, uint32_t kind, uint32_t number)
{
    if (notes->refused.count >= REFUSED_MAX)
        ttm_u64_set_clear(&notes->refused);
    (void)ttm_u64_set_add(&notes->refused, refused_key(kind, number));
}

/* ---- device sets and cores ---- */

static int learn_set(struct ttm_notes *notes, uint32_t number, uint32_t *ret)
{
    uint8_t bytes[2 * TTM_DEVICE_COUNT];
    uint16_t devices[TTM_DEVICE_COUNT];
    const long n = read_note(notes, number, TTM_NOTE_DEVICES, bytes, sizeof(bytes));

    if (n < 0)
        return -EINVAL;
    for (long i = 0; i < n / 2; i++)
        devices[i] = get_le16(bytes + 2 * i);
    const int r =
        ttm_registry_hold_set(notes->reg, notes->process, devices, (uint32_t)(n / 2), ret);
    if (r < 0)
        return r;

    return ttm_u64_map_add(&notes->sets, number, *ret);
}

/* Whether it was refused because there were too many sets, and there still are. */
static bool lacks_room(const struct ttm_notes *notes, uint32_t devices)
{
    const struct ttm_process *process = notes->process;

    return is_refused(notes, TTM_NOTE_DEVICES | LACKS_ROOM, devices) &&
           (process->set_count >= TTM_PROCESS_SETS_MAX ||
            !ttm_quota_allows(&process->user->device_sets, 1));
}

int ttm_notes_device_set(struct ttm_notes *notes, uint32_t devices, uint32_t *ret)
{
    if (devices < TTM_DEVICE_COUNT) {
        *ret = devices;
        return 0;
    }
    if (ttm_u64_map_find(&notes->sets, devices, ret))
        return 0;
    if (is_refused(notes, TTM_NOTE_DEVICES, devices))
        return -EINVAL;
    if (lacks_room(notes, devices))
        return -ENOSPC;
    const int r = learn_set(notes, devices, ret);
    if (r < 0 && r != -ENOMEM)
        refuse(notes, r == -ENOSPC ? TTM_NOTE_DEVICES | LACKS_ROOM : TTM_NOTE_DEVICES, devices);
    return r;
}

static int learn_cores(struct ttm_notes *notes, uint32_t number)
{
    uint8_t bytes[TTM_CORE_RANGES_MAX * TTM_CORE_RANGE_SIZE];
    struct ttm_core_range ranges[TTM_CORE_RANGES_MAX];
    const long n = read_note(notes, number, TTM_NOTE_CORES, bytes, sizeof(bytes));

    if (n < 0)
        return -EINVAL;
    const int count = ttm_cores_note_decode(bytes, (size_t)n, ranges);
    if (count < 0)
        return count;
    return ttm_cb_map_add_cores(&notes->process->cbs, number, ranges, (uint32_t)count);
}

int ttm_notes_cores(struct ttm_notes *notes, uint32_t number)
{
    const int known = ttm_cb_map_find_cores(&notes->process->cbs, number);

    if (known >= 0)
        return known;
    if (is_refused(notes, TTM_NOTE_CORES, number))
        return -EINVAL;
    const int r = learn_cores(notes, number);
    if (r < 0 && r != -ENOMEM)
        refuse(notes, TTM_NOTE_CORES, number);
    return r;
}

static uint32_t cost_of_devices(const struct ttm_notes *notes, uint32_t devices)
{
    uint32_t set;

    if (devices < TTM_DEVICE_COUNT)
        return 1;
    if (ttm_u64_map_find(&notes->sets, devices, &set))
        return ttm_device_sets_get(&notes->reg->sets, set).count;
    return is_refused(notes, TTM_NOTE_DEVICES, devices) || lacks_room(notes, devices)
               ? COST_OF_REFUSED
               : TTM_DEVICE_COUNT;
}

static uint32_t cost_of_origin(const struct ttm_notes *notes, uint32_t origin)
{
    if (origin == 0 || notes->known_origins[origin % TTM_NOTES_ORIGINS] == origin)
        return 0;
    if (ttm_origin_table_find(&notes->process->origins, origin))
        return 1;
    return is_refused(notes, TTM_NOTE_ORIGIN, origin) ? COST_OF_REFUSED : COST_OF_ORIGIN;
}

uint32_t ttm_notes_cost(const struct ttm_notes *notes, uint32_t devices, uint32_t origin)
{
    return cost_of_devices(notes, devices) + cost_of_origin(notes, origin);
}

void ttm_notes_text(const struct ttm_notes *notes, uint32_t number, char ret[TTM_STRING_MAX + 1])
{
    const long n = read_note(notes, number, TTM_NOTE_STRING, ret, TTM_STRING_MAX);

    ret[n > 0 ? n : 0] = '\0';
}

/* ---- origins ---- */

/* The texts of an origin while it is put together. */
struct origin_texts {
    char context[TTM_STRING_MAX + 1];
    char name[TTM_STRING_MAX + 1];
    char thread[TTM_STRING_MAX + 1];
    char operation[TTM_STRING_MAX + 1];
    struct ttm_text python;
    struct ttm_text native;
};

/* "decode.py:28:cache_kv"; nothing for a frame that is not the user's, unless all are wanted. */
static void put_python_frame(const struct ttm_notes *notes, const struct ttm_python_frame *frame,
                             bool is_all, struct ttm_text *out)
{
    uint8_t bytes[TTM_CODE_NOTE_SIZE_MAX];
    struct ttm_code_note code;
    char file[TTM_CODE_FILE_MAX + 1], name[TTM_CODE_NAME_MAX + 1];
    const long n = read_note(notes, frame->code, TTM_NOTE_CODE, bytes, sizeof(bytes));

    if (n < 0 || ttm_code_note_decode(bytes, (size_t)n, &code) < 0 ||
        (!is_all && !ttm_is_users_file(code.file.bytes, code.file.length)))
        return;
    memcpy(file, code.file.bytes, code.file.length);
    file[code.file.length] = '\0';
    memcpy(name, code.name.bytes, code.name.length);
    name[code.name.length] = '\0';
    ttm_text_format(out, "%s:%u:%s\n", ttm_base_name(file), frame->line, name);
}

static void put_python(const struct ttm_notes *notes, uint32_t number, struct ttm_text *out)
{
    uint8_t bytes[TTM_PYTHON_STACK_NOTE_SIZE_MAX];
    struct ttm_python_stack_note stack;
    const long n = read_note(notes, number, TTM_NOTE_PYTHON_STACK, bytes, sizeof(bytes));

    if (n < 0 || ttm_python_stack_note_decode(bytes, (size_t)n, &stack) < 0)
        return;
    for (uint16_t i = 0; i < stack.count; i++)
        put_python_frame(notes, &stack.frames[i], false, out);
    /* Better the insides of ttnn than nothing. */
    const bool has_none = out->length == 0;
    for (uint16_t i = 0; has_none && i < stack.count; i++)
        put_python_frame(notes, &stack.frames[i], true, out);
}

/* "/usr/lib/libtt_metal.so+0x1234"; whoever shows it looks the name up. */
static void put_native_frame(const struct ttm_notes *notes, const struct ttm_native_frame *frame,
                             struct ttm_text *out)
{
    uint8_t bytes[TTM_MODULE_NOTE_SIZE_MAX];
    struct ttm_module_note module = {0};
    char path[TTM_MODULE_PATH_MAX + 1] = "";
    const long n = frame->module != 0
                       ? read_note(notes, frame->module, TTM_NOTE_MODULE, bytes, sizeof(bytes))
                       : -ENOENT;

    if (n >= 0 && ttm_module_note_decode(bytes, (size_t)n, &module) == 0)
        memcpy(path, module.path.bytes, module.path.length);
    ttm_text_format(out, "%s+0x%llx\n", path, (unsigned long long)frame->address);
}

static void put_native(const struct ttm_notes *notes, uint32_t number, struct ttm_text *out)
{
    uint8_t bytes[TTM_NATIVE_STACK_NOTE_SIZE_MAX];
    struct ttm_native_stack_note stack;
    const long n = read_note(notes, number, TTM_NOTE_NATIVE_STACK, bytes, sizeof(bytes));

    if (n < 0 || ttm_native_stack_note_decode(bytes, (size_t)n, &stack) < 0)
        return;
    for (uint16_t i = 0; i < stack.count; i++)
        put_native_frame(notes, &stack.frames[i], out);
}

static void read_thread(const struct ttm_notes *notes, uint32_t number, char *ret)
{
    uint8_t bytes[TTM_THREAD_NOTE_SIZE_MAX];
    struct ttm_thread_note thread;
    const long n = read_note(notes, number, TTM_NOTE_THREAD, bytes, sizeof(bytes));

    ret[0] = '\0';
    if (n < 0 || ttm_thread_note_decode(bytes, (size_t)n, &thread) < 0)
        return;
    memcpy(ret, thread.name.bytes, thread.name.length);
    ret[thread.name.length] = '\0';
}

static void read_operation(const struct ttm_notes *notes, uint32_t number, char *ret)
{
    uint8_t bytes[TTM_OPERATION_NAME_MAX];
    struct ttm_note_text name;
    const long n = read_note(notes, number, TTM_NOTE_OPERATION, bytes, sizeof(bytes));

    ret[0] = '\0';
    if (n < 0 || ttm_operation_note_decode(bytes, (size_t)n, &name) < 0)
        return;
    memcpy(ret, name.bytes, name.length);
    ret[name.length] = '\0';
}

static void read_texts(const struct ttm_notes *notes, const struct ttm_origin_note *note,
                       struct origin_texts *ret)
{
    ttm_notes_text(notes, note->context, ret->context);
    ttm_notes_text(notes, note->name, ret->name);
    read_thread(notes, note->thread, ret->thread);
    read_operation(notes, note->operation, ret->operation);
    ttm_text_init(&ret->python);
    ttm_text_init(&ret->native);
    put_python(notes, note->python, &ret->python);
    put_native(notes, note->native, &ret->native);
}

/* Puts it together the first time. Returns its number, 0 when that cannot be. */
static uint32_t learn_origin(struct ttm_notes *notes, uint32_t number)
{
    struct ttm_origin_table *origins = &notes->process->origins;
    uint8_t bytes[NOTE_MAX];
    struct ttm_origin_note note;
    struct origin_texts texts;

    if (ttm_origin_table_find(origins, number))
        return number;
    const long n = read_note(notes, number, TTM_NOTE_ORIGIN, bytes, sizeof(bytes));
    if (n < 0 || ttm_origin_note_decode(bytes, (size_t)n, &note) < 0)
        return 0;
    read_texts(notes, &note, &texts);
    const struct ttm_origin origin = {
        .number = number,
        .text = {[TTM_ORIGIN_CONTEXT] = texts.context,
                 [TTM_ORIGIN_NAME] = texts.name,
                 [TTM_ORIGIN_THREAD] = texts.thread,
                 [TTM_ORIGIN_OPERATION] = texts.operation,
                 [TTM_ORIGIN_PYTHON] = ttm_text_string(&texts.python),
                 [TTM_ORIGIN_NATIVE] = ttm_text_string(&texts.native)},
    };
    const int r = ttm_origin_table_add(origins, &origin);
    ttm_text_done(&texts.python);
    ttm_text_done(&texts.native);
    return r == 0 ? number : 0;
}

uint32_t ttm_notes_origin(struct ttm_notes *notes, uint32_t number)
{
    uint32_t *known = &notes->known_origins[number % TTM_NOTES_ORIGINS];

    if (number == 0 || *known == number)
        return number;
    if (is_refused(notes, TTM_NOTE_ORIGIN, number))
        return 0;
    *known = learn_origin(notes, number);
    if (*known == 0) {
        refuse(notes, TTM_NOTE_ORIGIN, number);
        notes->left_out++;
    }
    return *known;
}

void ttm_notes_device(struct ttm_notes *notes, uint32_t number)
{
    uint8_t bytes[NOTE_MAX];
    struct ttm_device_note note;
    const long n = read_note(notes, number, TTM_NOTE_DEVICE, bytes, sizeof(bytes));

    if (n < 0 || ttm_device_note_decode(bytes, (size_t)n, &note) < 0 ||
        ttm_registry_know_device(notes->reg, notes->process, note.id) < 0)
        return;
    ttm_record_device(notes->client, &note);
    struct ttm_device *device = ttm_registry_device(notes->reg, note.id);
    if (ttm_registry_may_describe(device, notes->process))
        ttm_device_set_note(device, &note);
}

void ttm_notes_keepers(const struct ttm_notes *notes, uint32_t number)
{
    uint8_t bytes[TTM_KEEPERS_NOTE_SIZE_MAX];

    (void)read_note(notes, number, TTM_NOTE_KEEPERS, bytes, sizeof(bytes));
}
