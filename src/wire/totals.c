/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/totals.h"

#include "wire/row.h"

/* Field offsets; docs/wire-format.md draws each row. */
enum {
    TOTALS_SIZE = 56, /* one struct ttm_totals: seven u64; what came later is in MORE */
    DEVICE_TOTALS_SIZE = TTM_REGION_COUNT * TOTALS_SIZE + TTM_KERNEL_KIND_COUNT * 8,
    MORE_SIZE = TTM_REGION_COUNT * 24 + 32,

    MOMENT_SIZE = 32,
    DEVICE_TOTALS_AT = 16 + TTM_REGION_COUNT * 8,
    DEVICE_MORE_AT = DEVICE_TOTALS_AT + DEVICE_TOTALS_SIZE,
    DEVICE_BANKS_AT = DEVICE_MORE_AT + MORE_SIZE,
    DEVICE_FIXED = DEVICE_BANKS_AT + TTM_REGION_COUNT * 4 + 4, /* and a reserved u32 */
    PROCESS_LEAST = 88,
    PROCESS_TEXTS = 120, /* from here on with the texts behind the command */
    PROCESS_FIXED = 144,
    PROCESS_DEVICE_MORE_AT = 8 + DEVICE_TOTALS_SIZE,
    PROCESS_DEVICE_FIXED = PROCESS_DEVICE_MORE_AT + MORE_SIZE,
};

_Static_assert(DEVICE_FIXED + 2 + TTM_STRING_MAX <= TTM_ROW_SIZE_MAX, "a device row fits");
_Static_assert(PROCESS_FIXED + 3 * (2 + TTM_STRING_MAX) <= TTM_ROW_SIZE_MAX, "a process row too");
_Static_assert(PROCESS_DEVICE_FIXED <= TTM_ROW_SIZE_MAX, "and what it has on a device");

static void put_device_totals(uint8_t *p, const struct ttm_device_totals *totals)
{
    for (size_t i = 0; i < TTM_REGION_COUNT; i++, p += TOTALS_SIZE) {
        const struct ttm_totals *t = &totals->region[i];
        put_le64(p, t->count);
        put_le64(p + 8, t->bytes);
        put_le64(p + 16, t->footprint_bytes);
        put_le64(p + 24, t->peak_bytes);
        put_le64(p + 32, t->peak_footprint_bytes);
        put_le64(p + 40, t->births);
        put_le64(p + 48, t->ends);
    }
    for (size_t i = 0; i < TTM_KERNEL_KIND_COUNT; i++)
        put_le64(p + 8 * i, totals->kernel_bytes[i]);
}

static void get_device_totals(const uint8_t *p, struct ttm_device_totals *ret)
{
    for (size_t i = 0; i < TTM_REGION_COUNT; i++, p += TOTALS_SIZE) {
        ret->region[i] = (struct ttm_totals){
            .count = get_le64(p),
            .bytes = get_le64(p + 8),
            .footprint_bytes = get_le64(p + 16),
            .peak_bytes = get_le64(p + 24),
            .peak_footprint_bytes = get_le64(p + 32),
            .births = get_le64(p + 40),
            .ends = get_le64(p + 48),
        };
    }
    for (size_t i = 0; i < TTM_KERNEL_KIND_COUNT; i++)
        ret->kernel_bytes[i] = get_le64(p + 8 * i);
}

static void put_more(uint8_t *p, const struct ttm_device_totals *totals)
{
    for (size_t i = 0; i < TTM_REGION_COUNT; i++, p += 24) {
        put_le64(p, totals->region[i].closed_count);
        put_le64(p + 8, totals->region[i].closed_bytes);
        put_le64(p + 16, totals->region[i].closed_footprint_bytes);
    }
    put_le64(p, totals->cb.registered_bytes);
    put_le64(p + 8, totals->cb.resident_bytes);
    put_le64(p + 16, totals->cb.peak_registered_bytes);
    put_le64(p + 24, totals->cb.peak_resident_bytes);
}

static void get_more(const uint8_t *p, struct ttm_device_totals *ret)
{
    for (size_t i = 0; i < TTM_REGION_COUNT; i++, p += 24) {
        ret->region[i].closed_count = get_le64(p);
        ret->region[i].closed_bytes = get_le64(p + 8);
        ret->region[i].closed_footprint_bytes = get_le64(p + 16);
    }
    ret->cb = (struct ttm_cb_totals){
        .registered_bytes = get_le64(p),
        .resident_bytes = get_le64(p + 8),
        .peak_registered_bytes = get_le64(p + 16),
        .peak_resident_bytes = get_le64(p + 24),
    };
}

size_t ttm_moment_encode(const struct ttm_moment *row, uint8_t *buf)
{
    put_le16(buf, MOMENT_SIZE);
    memset(buf + 2, 0, 6);
    put_le64(buf + 8, row->time_ns);
    put_le64(buf + 16, row->uptime_ns);
    put_le32(buf + 24, row->device_count);
    put_le32(buf + 28, row->process_count);
    return MOMENT_SIZE;
}

int ttm_moment_decode(const uint8_t *buf, size_t len, struct ttm_moment *ret)
{
    if (row_fixed_size(buf, len, MOMENT_SIZE) < 0)
        return -EBADMSG;
    *ret = (struct ttm_moment){
        .time_ns = get_le64(buf + 8),
        .uptime_ns = get_le64(buf + 16),
        .device_count = get_le32(buf + 24),
        .process_count = get_le32(buf + 28),
    };
    return 0;
}

size_t ttm_device_row_encode(const struct ttm_device_row *row, uint8_t *buf)
{
    put_le16(buf, DEVICE_FIXED);
    put_le16(buf + 2, row->id);
    buf[4] = row->arch;
    memset(buf + 5, 0, 3);
    put_le32(buf + 8, row->core_count);
    put_le32(buf + 12, 0);
    for (size_t i = 0; i < TTM_REGION_COUNT; i++)
        put_le64(buf + 16 + 8 * i, row->capacity_bytes[i]);
    put_device_totals(buf + DEVICE_TOTALS_AT, &row->totals);
    put_more(buf + DEVICE_MORE_AT, &row->totals);
    for (size_t i = 0; i < TTM_REGION_COUNT; i++)
        put_le32(buf + DEVICE_BANKS_AT + 4 * i, row->bank_count[i]);
    put_le32(buf + DEVICE_FIXED - 4, 0);
    return DEVICE_FIXED + row_put_string(buf + DEVICE_FIXED, row->board, TTM_STRING_MAX);
}

int ttm_device_row_decode(const uint8_t *buf, size_t len, struct ttm_device_row *ret)
{
    uint8_t part[DEVICE_FIXED];
    const int fixed = row_get_fixed(buf, len, DEVICE_MORE_AT, sizeof(part), part);
    struct ttm_device_row row = {0};

    if (fixed < 0)
        return fixed;
    row.id = get_le16(part + 2);
    row.arch = part[4];
    row.core_count = get_le32(part + 8);
    for (size_t i = 0; i < TTM_REGION_COUNT; i++)
        row.capacity_bytes[i] = get_le64(part + 16 + 8 * i);
    get_device_totals(part + DEVICE_TOTALS_AT, &row.totals);
    get_more(part + DEVICE_MORE_AT, &row.totals);
    for (size_t i = 0; i < TTM_REGION_COUNT; i++)
        row.bank_count[i] = get_le32(part + DEVICE_BANKS_AT + 4 * i);
    size_t at = (size_t)fixed;
    if (row.id >= TTM_DEVICE_COUNT || row_get_string(buf, len, &at, row.board, TTM_STRING_MAX) < 0)
        return -EBADMSG;
    *ret = row;
    return 0;
}

size_t ttm_process_row_encode(const struct ttm_process_row *row, uint8_t *buf)
{
    put_le16(buf, PROCESS_FIXED);
    buf[2] = row->source;
    buf[3] = row->has_lives;
    put_le32(buf + 4, row->index);
    put_le32(buf + 8, (uint32_t)row->pid);
    put_le32(buf + 12, row->uid);
    put_le32(buf + 16, row->connections);
    put_le32(buf + 20, row->lives);
    put_le64(buf + 24, row->start_ns);
    put_le64(buf + 32, row->events);
    put_le64(buf + 40, row->unknown_frees);
    put_le64(buf + 48, row->ambiguous_frees);
    put_le64(buf + 56, row->replaced);
    put_le64(buf + 64, row->refused);
    put_le64(buf + 72, row->lost_events);
    put_le64(buf + 80, row->resyncs);
    put_le64(buf + 88, row->untracked);
    put_le64(buf + 96, row->unknown_ends);
    put_le32(buf + 104, row->events_per_s);
    put_le16(buf + 108, row->ring_permille);
    buf[110] = row->is_disabled;
    buf[111] = row->has_gap;
    buf[112] = row->is_behind;
    memset(buf + 113, 0, 3);
    put_le32(buf + 116, row->resync_us);
    put_le64(buf + 120, row->run);
    put_le64(buf + 128, row->notes_left_out);
    put_le64(buf + 136, row->failures);
    size_t at = PROCESS_FIXED;
    at += row_put_string(buf + at, row->command, TTM_STRING_MAX);
    at += row_put_string(buf + at, row->runtime, TTM_STRING_MAX);
    return at + row_put_string(buf + at, row->trouble, TTM_STRING_MAX);
}

int ttm_process_row_decode(const uint8_t *buf, size_t len, struct ttm_process_row *ret)
{
    uint8_t part[PROCESS_FIXED];
    const int fixed = row_get_fixed(buf, len, PROCESS_LEAST, sizeof(part), part);

    if (fixed < 0)
        return fixed;
    struct ttm_process_row row = {
        .source = part[2],
        .has_lives = part[3] != 0,
        .index = get_le32(part + 4),
        .pid = (int32_t)get_le32(part + 8),
        .uid = get_le32(part + 12),
        .connections = get_le32(part + 16),
        .lives = get_le32(part + 20),
        .start_ns = get_le64(part + 24),
        .events = get_le64(part + 32),
        .unknown_frees = get_le64(part + 40),
        .ambiguous_frees = get_le64(part + 48),
        .replaced = get_le64(part + 56),
        .refused = get_le64(part + 64),
        .lost_events = get_le64(part + 72),
        .resyncs = get_le64(part + 80),
        .untracked = get_le64(part + 88),
        .unknown_ends = get_le64(part + 96),
        .events_per_s = get_le32(part + 104),
        .ring_permille = get_le16(part + 108),
        .is_disabled = part[110] != 0,
        .has_gap = part[111] != 0,
        .is_behind = part[112] != 0,
        .resync_us = get_le32(part + 116),
        .run = get_le64(part + 120),
        .notes_left_out = get_le64(part + 128),
        .failures = get_le64(part + 136),
    };
    size_t at = (size_t)fixed;
    if (row_get_string(buf, len, &at, row.command, TTM_STRING_MAX) < 0)
        return -EBADMSG;
    if (fixed >= PROCESS_TEXTS && (row_get_string(buf, len, &at, row.runtime, TTM_STRING_MAX) < 0 ||
                                   row_get_string(buf, len, &at, row.trouble, TTM_STRING_MAX) < 0))
        return -EBADMSG;
    *ret = row;
    return 0;
}

size_t ttm_process_device_row_encode(const struct ttm_process_device_row *row, uint8_t *buf)
{
    put_le16(buf, PROCESS_DEVICE_FIXED);
    put_le16(buf + 2, row->device_id);
    put_le32(buf + 4, row->process_index);
    put_device_totals(buf + 8, &row->totals);
    put_more(buf + PROCESS_DEVICE_MORE_AT, &row->totals);
    return PROCESS_DEVICE_FIXED;
}

int ttm_process_device_row_decode(const uint8_t *buf, size_t len,
                                  struct ttm_process_device_row *ret)
{
    uint8_t part[PROCESS_DEVICE_FIXED];

    if (row_get_fixed(buf, len, PROCESS_DEVICE_MORE_AT, sizeof(part), part) < 0)
        return -EBADMSG;
    ret->device_id = get_le16(part + 2);
    ret->process_index = get_le32(part + 4);
    get_device_totals(part + 8, &ret->totals);
    get_more(part + PROCESS_DEVICE_MORE_AT, &ret->totals);
    return ret->device_id < TTM_DEVICE_COUNT ? 0 : -EBADMSG;
}
