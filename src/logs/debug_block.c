/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/debug_block.h"

#include <errno.h>
#include <inttypes.h>

#include "logs/scan.h"
#include "wire/region.h"

#define BYTES_MAX (1ull << 40)
#define RULE_LENGTH 59
#define RULE_LEAST 8 /* so many of them are a rule */
#define STACK_MAX UINT16_MAX

static const char *const titles[] = {
    [TTM_DEBUG_ALLOCATED] = "BUFFER ALLOCATED",
    [TTM_DEBUG_DEALLOCATED] = "BUFFER DEALLOCATED",
    [TTM_DEBUG_DESTRUCTOR] = "BUFFER DESTRUCTOR (still ALLOCATED - will deallocate)",
};

/* ---- reading ---- */

static bool is_rule(struct ttm_scan line)
{
    size_t count = 0;

    while (TTM_SCAN(&line, "═"))
        count++;
    ttm_scan_blanks(&line);
    return count >= RULE_LEAST && line.at == line.end;
}

static bool is_blank(struct ttm_scan line)
{
    ttm_scan_blanks(&line);
    return line.at == line.end;
}

static bool scan_title(struct ttm_scan line, enum ttm_debug_title *ret)
{
    for (unsigned i = 0; i < sizeof(titles) / sizeof(titles[0]); i++) {
        struct ttm_scan scan = line;
        if (ttm_scan_bytes(&scan, titles[i], strlen(titles[i])) && is_blank(scan)) {
            *ret = (enum ttm_debug_title)i;
            return true;
        }
    }
    return false;
}

bool ttm_debug_block_is_title(const char *line, size_t length)
{
    enum ttm_debug_title title;

    return scan_title((struct ttm_scan){line, line + length}, &title);
}

bool ttm_debug_block_is_rule(const char *line, size_t length)
{
    return is_rule((struct ttm_scan){line, line + length});
}

/* What a block must have; bits. */
enum {
    HAS_DEVICE = 1,
    HAS_ADDRESS = 2,
    HAS_SIZE = 4,
    HAS_TYPE = 8,
    HAS_POINTER = 16,
    HAS_ALL = 31,
};

static bool scan_time(struct ttm_scan *scan, uint32_t *ret)
{
    uint64_t hour, minute, second;

    if (!ttm_scan_decimal(scan, 23, &hour) || !TTM_SCAN(scan, ":") ||
        !ttm_scan_decimal(scan, 59, &minute) || !TTM_SCAN(scan, ":") ||
        !ttm_scan_decimal(scan, 60, &second))
        return false;
    if (second == 60) /* a leap second */
        second = 59;
    *ret = (uint32_t)(hour * 3600 + minute * 60 + second);
    return true;
}

static bool scan_type(struct ttm_scan *scan, struct ttm_debug_block *block)
{
    static const struct {
        const char *name;
        uint8_t length;
        uint8_t region;
    } types[] = {
        {"DRAM", 4, TTM_REGION_DRAM},   {"L1_SMALL", 8, TTM_REGION_L1_SMALL},
        {"L1", 2, TTM_REGION_L1},       {"OTHER", 5, TTM_REGION_TRACE},
        {"TRACE", 5, TTM_REGION_TRACE}, {"SYSTEM_MEMORY", 13, TTM_REGION_SYSTEM_MEMORY},
    };

    block->is_other = ttm_scan_left(scan) > 0 && *scan->at == 'O';
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (ttm_scan_bytes(scan, types[i].name, types[i].length)) {
            block->region = types[i].region;
            return true;
        }
    }
    return false;
}

static bool scan_answer(struct ttm_scan *scan, bool *ret)
{
    *ret = TTM_SCAN(scan, "yes");
    return *ret || TTM_SCAN(scan, "no");
}

/* "0x18b20 (101152)": both must say the same, so that a torn number is noticed. */
static bool scan_address(struct ttm_scan *scan, uint64_t *ret)
{
    uint64_t again;

    return ttm_scan_number(scan, ret) && TTM_SCAN(scan, " (") &&
           ttm_scan_decimal(scan, UINT64_MAX, &again) && TTM_SCAN(scan, ")") && again == *ret;
}

/* "32768 bytes (32 KB)". */
static bool scan_size(struct ttm_scan *scan, uint64_t *ret)
{
    if (!ttm_scan_decimal(scan, BYTES_MAX, ret) || *ret == 0 || !TTM_SCAN(scan, " bytes ("))
        return false;
    const char *unit = memmem(scan->at, ttm_scan_left(scan), " KB)", 4);
    if (!unit)
        return false;
    scan->at = unit + 4;
    return true;
}

/* One line before the call stack. Returns whether it is one that a block has. */
static bool scan_field(struct ttm_scan line, struct ttm_debug_block *block, unsigned *has)
{
    bool owns_data = true;
    uint64_t device = 0;
    bool is_fine = false;

    if (TTM_SCAN(&line, "Time: ")) {
        is_fine = scan_time(&line, &block->second);
    } else if (TTM_SCAN(&line, "Device: ")) {
        is_fine = ttm_scan_decimal(&line, TTM_DEVICE_COUNT - 1, &device);
        block->device = (uint16_t)device;
        *has |= HAS_DEVICE;
    } else if (TTM_SCAN(&line, "Address: ")) {
        is_fine = scan_address(&line, &block->address);
        *has |= HAS_ADDRESS;
    } else if (TTM_SCAN(&line, "Size: ")) {
        is_fine = scan_size(&line, &block->bytes);
        *has |= HAS_SIZE;
    } else if (TTM_SCAN(&line, "Type: ")) {
        is_fine = scan_type(&line, block);
        *has |= HAS_TYPE;
    } else if (TTM_SCAN(&line, "Buffer*: ")) {
        is_fine = ttm_scan_number(&line, &block->pointer);
        *has |= HAS_POINTER;
    } else if (TTM_SCAN(&line, "Owns Data: ")) {
        is_fine = scan_answer(&line, &owns_data);
        block->is_view = !owns_data;
    } else if (TTM_SCAN(&line, "Hooked: ")) {
        is_fine = scan_answer(&line, &block->is_hooked);
    }
    return is_fine && is_blank(line);
}

static bool take_line(struct ttm_debug_reader *reader, struct ttm_scan *ret)
{
    struct ttm_scan scan = {reader->at, reader->end};

    if (!ttm_scan_line(&scan, ret))
        return false;
    reader->at = scan.at;
    reader->line++;
    return true;
}

/* The lines up to an empty one or the rule of the next block, which is left where it is. */
static struct ttm_note_text take_stack(struct ttm_debug_reader *reader)
{
    const char *begin = reader->at;
    struct ttm_scan line;
    struct ttm_debug_reader ahead = *reader;

    while (take_line(&ahead, &line) && !is_blank(line) && line.at[0] == ' ')
        *reader = ahead;
    const size_t length = (size_t)(reader->at - begin);
    return (struct ttm_note_text){begin, (uint16_t)(length < STACK_MAX ? length : STACK_MAX)};
}

/* What is behind the title. Stops before whatever does not belong to it. */
static bool read_fields(struct ttm_debug_reader *reader, struct ttm_debug_block *block)
{
    unsigned has = 0;
    struct ttm_scan line;
    struct ttm_debug_reader ahead = *reader;

    while (take_line(&ahead, &line)) {
        if (is_rule(line) || is_blank(line))
            break;
        *reader = ahead;
        struct ttm_scan heading = line;
        if (TTM_SCAN(&heading, "Call Stack:") && is_blank(heading)) {
            block->stack = take_stack(reader);
            return has == HAS_ALL;
        }
        /* The end of a text that breaks off: what is left of a number is another one. */
        const bool is_torn = ahead.at == ahead.end && ahead.end[-1] != '\n';
        if (is_torn || !scan_field(line, block, &has))
            return false;
    }
    return has == HAS_ALL; /* without a stack, as by whoever cut it off */
}

/* To where the next block may begin: a broken one is told of once, and takes no other along. */
static void pass_over(struct ttm_debug_reader *reader)
{
    enum ttm_debug_title title;
    struct ttm_debug_reader ahead = *reader;
    struct ttm_scan line;

    while (take_line(&ahead, &line) && !is_blank(line) && !is_rule(line) &&
           !scan_title(line, &title))
        *reader = ahead;
}

int ttm_debug_block_next(struct ttm_debug_reader *reader, struct ttm_debug_block *ret,
                         uint64_t *ret_line)
{
    struct ttm_scan line;

    *ret = (struct ttm_debug_block){.second = TTM_DEBUG_NO_TIME, .stack = {"", 0}};
    for (;;) {
        *ret_line = reader->line;
        if (!take_line(reader, &line))
            return 0;
        if (is_blank(line) || is_rule(line))
            continue;
        if (scan_title(line, &ret->title) && read_fields(reader, ret))
            return 1;
        pass_over(reader);
        return -EBADMSG;
    }
}

/* ---- call stacks ---- */

/* "/project/decode.py:28": a file of Python's and a line. */
static bool is_python(struct ttm_note_text module, struct ttm_debug_frame *ret)
{
    const char *colon = memrchr(module.bytes, ':', module.length);

    if (!colon || colon - module.bytes < 1)
        return false;
    struct ttm_scan number = {colon + 1, module.bytes + module.length};
    const size_t file = (size_t)(colon - module.bytes);
    uint64_t line;
    if (!ttm_scan_decimal(&number, UINT32_MAX, &line) || number.at != number.end || line == 0 ||
        !((file > 3 && memcmp(colon - 3, ".py", 3) == 0) || colon[-1] == '>'))
        return false;
    ret->module = (struct ttm_note_text){module.bytes, (uint16_t)file};
    ret->line = (uint32_t)line;
    return true;
}

bool ttm_debug_frame_next(struct ttm_note_text *stack, struct ttm_debug_frame *ret)
{
    struct ttm_scan scan = {stack->bytes, stack->bytes + stack->length}, line;

    *ret = (struct ttm_debug_frame){0};
    if (stack->length == 0 || !ttm_scan_line(&scan, &line))
        return false;
    *stack = (struct ttm_note_text){scan.at, (uint16_t)ttm_scan_left(&scan)};
    ttm_scan_blanks(&line);
    const size_t length = ttm_scan_left(&line);
    /* The first ": " ends the module; "::" of a name is none. */
    const char *colon = memmem(line.at, length, ": ", 2);
    const char *name = colon ? colon + 2 : line.at;
    ret->name = (struct ttm_note_text){name, (uint16_t)(line.end - name)};
    if (!colon)
        return true;
    ret->module = (struct ttm_note_text){line.at, (uint16_t)(colon - line.at)};
    (void)is_python(ret->module, ret);
    return true;
}

void ttm_debug_frame_append(struct ttm_text *out, const char *module, uint32_t line,
                            const char *name)
{
    ttm_text_append(out, "    ");
    ttm_text_append_safe(out, module);
    if (line > 0)
        ttm_text_format(out, ":%" PRIu32, line);
    ttm_text_append(out, ": ");
    ttm_text_append_safe(out, name);
    ttm_text_append(out, "\n");
}

/* ---- writing ---- */

static const char *type_of(unsigned region)
{
    return region == TTM_REGION_TRACE || region == TTM_REGION_SYSTEM_MEMORY
               ? "OTHER"
               : ttm_region_name(region);
}

void ttm_debug_block_append(struct ttm_text *out, const struct ttm_debug_block *block)
{
    ttm_text_repeat(out, "═", RULE_LENGTH);
    ttm_text_format(out,
                    "\n%s\nTime: %02u:%02u:%02u\nDevice: %u\nAddress: 0x%" PRIx64 " (%" PRIu64
                    ")\nSize: %" PRIu64 " bytes (%g KB)\nType: %s\nBuffer*: 0x%" PRIx64 "\n",
                    titles[block->title], (unsigned)(block->second / 3600),
                    (unsigned)(block->second / 60 % 60), (unsigned)(block->second % 60),
                    block->device, block->address, block->address, block->bytes,
                    (double)block->bytes / 1024, type_of(block->region), block->pointer);
    if (block->title == TTM_DEBUG_ALLOCATED)
        ttm_text_format(out, "Owns Data: %s\nHooked: %s\n", block->is_view ? "no" : "yes",
                        block->is_hooked ? "yes" : "no");
    ttm_text_append(out, "Call Stack:\n");
    ttm_text_append_bytes(out, block->stack.bytes, block->stack.length);
    ttm_text_append(out, "\n");
}
