/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's output as anybody may have changed it. The first byte says where the text is
 * cut in two; what is found must be the same as in one piece, and must add up.
 */
#include "log_fuzzing.h"

#include "logs/scan.h"
#include "logs/server_line.h"

static void try_lines(const char *text, size_t length)
{
    struct ttm_scan scan = {text, text + length}, line;
    struct ttm_server_line event;

    while (ttm_scan_line(&scan, &line)) {
        if (ttm_server_line_decode(line.at, ttm_scan_left(&line), &event) <= 0)
            continue;
        MUST(event.pid >= 0 && event.device < TTM_DEVICE_COUNT);
        MUST(event.region >= -1 && event.region < TTM_REGION_COUNT);
        MUST(event.kind < TTM_KERNEL_KIND_COUNT && event.bytes <= 1ull << 40);
        MUST(event.event != TTM_LINE_ALLOCATED || event.region >= 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    uint8_t *text = exact_copy(data + 1, size - 1);
    try_lines((const char *)text, size - 1);
    try_import((const char *)text, size - 1, data[0], TTM_LOG_FORMAT_SERVER);
    free(text);
    return 0;
}
