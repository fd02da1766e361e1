/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A debug log as anybody may have changed it. The first byte says where the text is cut in
 * two. What was read of a block is written again, and must then mean the same.
 */
#include "log_fuzzing.h"

#include "logs/debug_block.h"

static void try_frames(struct ttm_note_text stack)
{
    const char *const begin = stack.bytes, *const end = stack.bytes + stack.length;
    struct ttm_debug_frame frame;

    while (ttm_debug_frame_next(&stack, &frame)) {
        MUST(frame.name.bytes >= begin && frame.name.bytes + frame.name.length <= end);
        MUST(frame.module.length == 0 ||
             (frame.module.bytes >= begin && frame.module.bytes + frame.module.length <= end));
    }
}

static void try_again(const struct ttm_debug_block *block)
{
    struct ttm_debug_block copy = *block, again;
    struct ttm_text out;
    uint64_t line;

    copy.stack = (struct ttm_note_text){"", 0};
    if (copy.second == TTM_DEBUG_NO_TIME)
        copy.second = 0;
    ttm_text_init(&out);
    ttm_debug_block_append(&out, &copy);
    struct ttm_debug_reader reader = {ttm_text_string(&out), ttm_text_string(&out) + out.length, 1};
    MUST(ttm_debug_block_next(&reader, &again, &line) == 1);
    MUST(again.title == copy.title && again.device == copy.device && again.bytes == copy.bytes);
    MUST(again.address == copy.address && again.pointer == copy.pointer);
    MUST(again.second == copy.second);
    MUST(again.region == copy.region || again.is_other);
    MUST(ttm_debug_block_next(&reader, &again, &line) == 0);
    ttm_text_done(&out);
}

static void try_blocks(const char *text, size_t length)
{
    struct ttm_debug_reader reader = {.at = text, .end = text + length, .line = 1};
    struct ttm_debug_block block;
    uint64_t line, last = 0;
    int r;

    while ((r = ttm_debug_block_next(&reader, &block, &line)) != 0) {
        MUST(line > last && reader.line > line);
        last = line;
        if (r < 0)
            continue;
        MUST(block.device < TTM_DEVICE_COUNT && block.region < TTM_REGION_CB);
        MUST(block.bytes > 0 && block.bytes <= 1ull << 40);
        try_frames(block.stack);
        try_again(&block);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    uint8_t *text = exact_copy(data + 1, size - 1);
    try_blocks((const char *)text, size - 1);
    try_import((const char *)text, size - 1, data[0], TTM_LOG_FORMAT_DEBUG);
    free(text);
    return 0;
}
