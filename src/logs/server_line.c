/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/server_line.h"

#include <errno.h>

#include "logs/scan.h"
#include "wire/region.h"

#define BYTES_MAX (1ull << 40) /* as everywhere */
#define MIB (1024.0 * 1024.0)
#define DIGITS_MAX 15 /* of a fraction: more do not fit into a double */

static bool scan_device(struct ttm_scan *scan, struct ttm_server_line *ret)
{
    uint64_t device;

    if (!ttm_scan_decimal(scan, TTM_DEVICE_COUNT - 1, &device))
        return false;
    ret->device = (uint16_t)device;
    return true;
}

/* The longer names first: "L1" begins "L1_SMALL". */
static bool scan_region(struct ttm_scan *scan, int *ret)
{
    static const struct {
        const char *name;
        uint8_t length;
        uint8_t region;
    } names[] = {
        {"DRAM", 4, TTM_REGION_DRAM},
        {"L1_SMALL", 8, TTM_REGION_L1_SMALL},
        {"L1", 2, TTM_REGION_L1},
        {"TRACE", 5, TTM_REGION_TRACE},
        {"SYSTEM_MEMORY", 13, TTM_REGION_SYSTEM_MEMORY},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (ttm_scan_bytes(scan, names[i].name, names[i].length)) {
            *ret = names[i].region;
            return true;
        }
    }
    return false;
}

/* "0.25 MB", as a double was printed: also "1.04858e+06". */
static bool scan_megabytes(struct ttm_scan *scan, uint64_t *ret)
{
    uint64_t whole, fraction = 0, exponent = 0;
    double value, scale = 1;

    if (!ttm_scan_decimal(scan, BYTES_MAX, &whole))
        return false;
    value = (double)whole;
    if (TTM_SCAN(scan, ".")) {
        const char *begin = scan->at;
        if (!ttm_scan_decimal(scan, UINT64_MAX, &fraction) || scan->at - begin > DIGITS_MAX)
            return false;
        for (ptrdiff_t i = scan->at - begin; i > 0; i--)
            scale *= 10;
        value += (double)fraction / scale;
    }
    const bool is_small = TTM_SCAN(scan, "e-");
    if (is_small || TTM_SCAN(scan, "e+")) {
        if (!ttm_scan_decimal(scan, 20, &exponent))
            return false;
        while (exponent-- > 0)
            value = is_small ? value / 10 : value * 10;
    }
    if (!TTM_SCAN(scan, " MB") || value * MIB > (double)BYTES_MAX)
        return false;
    *ret = (uint64_t)(value * MIB + 0.5);
    return true;
}

/* "N bytes of TYPE on device D (buffer_id=ID)" or "…, ref_count=K)". */
static bool decode_allocated(struct ttm_scan *scan, struct ttm_server_line *ret)
{
    uint64_t references;

    ret->event = TTM_LINE_ALLOCATED;
    return ttm_scan_decimal(scan, BYTES_MAX, &ret->bytes) && ret->bytes > 0 &&
           TTM_SCAN(scan, " bytes of ") && scan_region(scan, &ret->region) &&
           TTM_SCAN(scan, " on device ") && scan_device(scan, ret) &&
           TTM_SCAN(scan, " (buffer_id=") && ttm_scan_number(scan, &ret->id) &&
           (TTM_SCAN(scan, ")") ||
            (TTM_SCAN(scan, ", ref_count=") && ttm_scan_decimal(scan, INT32_MAX, &references) &&
             TTM_SCAN(scan, ")")));
}

static bool scan_left(struct ttm_scan *scan, enum ttm_server_left *ret)
{
    uint64_t references;

    if (TTM_SCAN(scan, "ref_count=")) {
        *ret = TTM_LEFT_SOME;
        if (!ttm_scan_decimal(scan, INT32_MAX, &references) || !TTM_SCAN(scan, " remaining"))
            return false;
        if (references == 0)
            *ret = TTM_LEFT_NONE;
        return true;
    }
    *ret = TTM_SCAN(scan, "FINAL")           ? TTM_LEFT_NONE
           : TTM_SCAN(scan, "REPLACED")      ? TTM_LEFT_REPLACED
           : TTM_SCAN(scan, "DEVICE CLOSED") ? TTM_LEFT_CLOSED
                                             : TTM_LEFT_UNSAID;
    return *ret != TTM_LEFT_UNSAID;
}

/* "ID on device D (N bytes, FINAL)" or "…, ref_count=K remaining)". */
static bool decode_freed(struct ttm_scan *scan, struct ttm_server_line *ret)
{
    ret->event = TTM_LINE_FREED;
    if (!ttm_scan_number(scan, &ret->id) || !TTM_SCAN(scan, " on device ") ||
        !scan_device(scan, ret) || !TTM_SCAN(scan, " (") ||
        !ttm_scan_decimal(scan, BYTES_MAX, &ret->bytes) || !TTM_SCAN(scan, " bytes"))
        return false;
    if (!TTM_SCAN(scan, ")") &&
        !(TTM_SCAN(scan, ", ") && scan_left(scan, &ret->left) && TTM_SCAN(scan, ")")))
        return false;
    if (TTM_SCAN(scan, " of ")) /* as tt-mem tail says it */
        (void)scan_region(scan, &ret->region);
    return true;
}

/* "unknown buffer ID on device D (…", or "ALREADY FREED buffer …" of the enhanced server. */
static bool decode_unknown(struct ttm_scan *scan, struct ttm_server_line *ret)
{
    ret->event = TTM_LINE_UNKNOWN_FREE;
    return (TTM_SCAN(scan, "unknown buffer ") || TTM_SCAN(scan, "ALREADY FREED buffer ")) &&
           ttm_scan_number(scan, &ret->id) && TTM_SCAN(scan, " on device ") &&
           scan_device(scan, ret);
}

/* "42] Allocated …". */
static bool decode_of_process(struct ttm_scan *scan, struct ttm_server_line *ret)
{
    uint64_t pid;

    if (!ttm_scan_decimal(scan, INT32_MAX, &pid) || pid == 0 || !TTM_SCAN(scan, "] "))
        return false;
    ret->pid = (int32_t)pid;
    if (TTM_SCAN(scan, "Allocated "))
        return decode_allocated(scan, ret);
    if (TTM_SCAN(scan, "Freed buffer "))
        return decode_freed(scan, ret);
    if (TTM_SCAN(scan, "Deallocation for "))
        return decode_unknown(scan, ret);
    ret->event = TTM_LINE_PROCESS_END;
    return TTM_SCAN(scan, "Ended, "); /* as tt-mem tail says it */
}

/* " [PID 42] 4096 bytes, id=0x7", which tt-mem tail adds; nothing in other logs. */
static bool scan_exact(struct ttm_scan *scan, struct ttm_server_line *ret)
{
    uint64_t pid;

    if (!TTM_SCAN(scan, " [PID "))
        return true;
    if (!ttm_scan_decimal(scan, INT32_MAX, &pid) || !TTM_SCAN(scan, "] ") ||
        !ttm_scan_decimal(scan, BYTES_MAX, &ret->bytes) || !TTM_SCAN(scan, " bytes, id=") ||
        !ttm_scan_number(scan, &ret->id))
        return false;
    ret->pid = (int32_t)pid;
    if (TTM_SCAN(scan, ", replaced"))
        ret->left = TTM_LEFT_REPLACED;
    else if (TTM_SCAN(scan, ", device closed"))
        ret->left = TTM_LEFT_CLOSED;
    return true;
}

/* "Device D: +X MB (Total: Y MB)", with "Fabric kernel on " before it for kernels. */
static bool decode_of_program(struct ttm_scan *scan, struct ttm_server_line *ret)
{
    const bool is_birth = ret->event == TTM_LINE_ALLOCATED;
    uint64_t total;

    if (ret->region == TTM_REGION_KERNEL) {
        const bool is_named =
            TTM_SCAN(scan, "Application") ||
            (TTM_SCAN(scan, "Fabric") && (ret->kind = TTM_KERNEL_FABRIC, true)) ||
            (TTM_SCAN(scan, "Dispatch") && (ret->kind = TTM_KERNEL_DISPATCH, true));
        if (is_named && !TTM_SCAN(scan, " kernel on "))
            return false;
    }
    return TTM_SCAN(scan, "Device ") && scan_device(scan, ret) &&
           ttm_scan_bytes(scan, is_birth ? ": +" : ": -", 3) && scan_megabytes(scan, &ret->bytes) &&
           TTM_SCAN(scan, " (Total: ") && scan_megabytes(scan, &total) && TTM_SCAN(scan, ")") &&
           scan_exact(scan, ret);
}

static bool begins_of_program(struct ttm_scan *scan, struct ttm_server_line *ret)
{
    static const struct {
        const char *name;
        uint8_t length;
        uint8_t event;
        uint8_t region;
    } names[] = {
        {"[CB_ALLOC] ", 11, TTM_LINE_ALLOCATED, TTM_REGION_CB},
        {"[CB_FREE] ", 10, TTM_LINE_FREED, TTM_REGION_CB},
        {"[KERNEL_LOAD] ", 14, TTM_LINE_ALLOCATED, TTM_REGION_KERNEL},
        {"[KERNEL_UNLOAD] ", 16, TTM_LINE_FREED, TTM_REGION_KERNEL},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (ttm_scan_bytes(scan, names[i].name, names[i].length)) {
            ret->event = (enum ttm_server_event)names[i].event;
            ret->region = names[i].region;
            return true;
        }
    }
    return false;
}

/* "PID 42 is dead, removing its buffers...". */
static bool decode_death(struct ttm_scan *scan, struct ttm_server_line *ret)
{
    uint64_t pid;

    if (!TTM_SCAN(scan, "PID ") || !ttm_scan_decimal(scan, INT32_MAX, &pid) || pid == 0 ||
        !TTM_SCAN(scan, " is dead"))
        return false;
    ret->event = TTM_LINE_PROCESS_END;
    ret->pid = (int32_t)pid;
    return true;
}

/* "12 lines lost", as tt-mem tail says it. */
static bool decode_lost(struct ttm_scan *scan, struct ttm_server_line *ret)
{
    ret->event = TTM_LINE_LOST;
    return ttm_scan_decimal(scan, UINT32_MAX, &ret->lost) &&
           (TTM_SCAN(scan, " lines lost") || TTM_SCAN(scan, " line lost"));
}

static bool has(const struct ttm_scan *scan, const char *word)
{
    return memmem(scan->at, ttm_scan_left(scan), word, strlen(word)) != NULL;
}

/* Whether a line that is no event need not be one: headings, statistics, frames, pictures. */
static bool is_decoration(struct ttm_scan scan)
{
    /* What servers say of themselves, their clients and their buffers. */
    static const char *const words[] = {"Removed ",    "DIFFERENT size", "No buffers",  "REMAINING",
                                        "ALLOC size=", "FREE size=",     "REUSE size=", "- Buffer ",
                                        "buffers, ",   "erver",          "lient",       NULL};

    ttm_scan_blanks(&scan);
    if (scan.at == scan.end || scan.end[-1] == ':')
        return true;
    if (TTM_SCAN(&scan, "✓ ") || TTM_SCAN(&scan, "✗ ") || TTM_SCAN(&scan, "⚠ ") ||
        TTM_SCAN(&scan, "⚠️ "))
        ttm_scan_blanks(&scan);
    else if ((unsigned char)*scan.at >= 0x80) /* a box or a picture */
        return true;
    if (scan.at < scan.end && *scan.at == '[')
        return false;
    for (size_t i = 0; words[i]; i++) {
        if (has(&scan, words[i]))
            return true;
    }
    /* "DRAM: 4096 bytes (4 KB)", "Active allocations: 12", "====". */
    const char *colon = memchr(scan.at, ':', ttm_scan_left(&scan));
    if (colon && colon + 1 < scan.end && colon[1] == ' ')
        return true;
    return scan.at < scan.end && strchr("=-*#", *scan.at) && scan.at[0] == scan.end[-1];
}

int ttm_server_line_decode(const char *line, size_t length, struct ttm_server_line *ret)
{
    struct ttm_scan scan = {line, line + length};
    const char *bracket = memchr(line, '[', length < 64 ? length : 64);

    *ret = (struct ttm_server_line){.region = -1};
    if (bracket) {
        scan.at = bracket;
        if (TTM_SCAN(&scan, "[PID "))
            return decode_of_process(&scan, ret) ? 1 : -EBADMSG;
        if (begins_of_program(&scan, ret))
            return decode_of_program(&scan, ret) ? 1 : -EBADMSG;
        scan.at = line;
    }
    ttm_scan_blanks(&scan);
    if (TTM_SCAN(&scan, "⚠ ") || TTM_SCAN(&scan, "⚠️ "))
        ttm_scan_blanks(&scan);
    if (decode_death(&scan, ret) || decode_lost(&scan, ret))
        return 1;
    return is_decoration((struct ttm_scan){line, line + length}) ? 0 : -EBADMSG;
}
