/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "wire/totals.h"

/* The golden files count up from here: tests/data/wire/make-golden. */
#define BASE 0x0102030405060000ull

/* Of the first version, and of ours. */
#define DEVICE_LEAST 488
#define DEVICE_FIXED 720
#define PROCESS_LEAST 88
#define PROCESS_FIXED 144
#define PROCESS_DEVICE_LEAST 424
#define PROCESS_DEVICE_FIXED 624

static struct ttm_moment moment;
static struct ttm_device_row device;
static struct ttm_process_row process;
static struct ttm_process_device_row process_device;

static int decode_moment(const uint8_t *buf, size_t len)
{
    return ttm_moment_decode(buf, len, &moment);
}

static int decode_device(const uint8_t *buf, size_t len)
{
    return ttm_device_row_decode(buf, len, &device);
}

static int decode_process(const uint8_t *buf, size_t len)
{
    return ttm_process_row_decode(buf, len, &process);
}

static int decode_process_device(const uint8_t *buf, size_t len)
{
    return ttm_process_device_row_decode(buf, len, &process_device);
}

static void assert_totals_count_up(const struct ttm_device_totals *totals)
{
    for (size_t r = 0; r < TTM_REGION_COUNT; r++) {
        const struct ttm_totals *t = &totals->region[r];
        const uint64_t values[] = {
            t->count,  t->bytes, t->footprint_bytes, t->peak_bytes, t->peak_footprint_bytes,
            t->births, t->ends,
        };
        for (size_t i = 0; i < COUNT_OF(values); i++)
            assert_true(values[i] == BASE + 7 * r + i);
    }
    for (size_t k = 0; k < TTM_KERNEL_KIND_COUNT; k++)
        assert_true(totals->kernel_bytes[k] == BASE + 49 + k);
}

static void assert_further_totals_count_up(const struct ttm_device_totals *totals)
{
    uint64_t next = BASE + 0x2000;

    for (size_t r = 0; r < TTM_REGION_COUNT; r++) {
        assert_true(totals->region[r].closed_count == next++);
        assert_true(totals->region[r].closed_bytes == next++);
        assert_true(totals->region[r].closed_footprint_bytes == next++);
    }
    assert_true(totals->cb.registered_bytes == next++);
    assert_true(totals->cb.resident_bytes == next++);
    assert_true(totals->cb.peak_registered_bytes == next++);
    assert_true(totals->cb.peak_resident_bytes == next++);
}

static void assert_no_further_totals(const struct ttm_device_totals *totals)
{
    const struct ttm_cb_totals none = {0};

    for (size_t r = 0; r < TTM_REGION_COUNT; r++) {
        assert_true(totals->region[r].closed_count == 0);
        assert_true(totals->region[r].closed_bytes == 0);
        assert_true(totals->region[r].closed_footprint_bytes == 0);
    }
    assert_memory_equal(&totals->cb, &none, sizeof(none));
}

static void assert_moment(void)
{
    assert_true(moment.time_ns == BASE);
    assert_true(moment.uptime_ns == BASE + 1);
    assert_int_equal(moment.device_count, 32);
    assert_int_equal(moment.process_count, 7);
}

/* What all versions say. */
static void assert_device(void)
{
    assert_int_equal(device.id, 1023);
    assert_int_equal(device.arch, TTM_ARCH_WORMHOLE_B0);
    assert_int_equal(device.core_count, 64);
    for (size_t r = 0; r < TTM_REGION_COUNT; r++)
        assert_true(device.capacity_bytes[r] == BASE + 0x1000 + r);
    assert_totals_count_up(&device.totals);
    assert_string_equal(device.board, "n300");
}

static void assert_no_banks(void)
{
    for (size_t r = 0; r < TTM_REGION_COUNT; r++)
        assert_int_equal(device.bank_count[r], 0);
}

static void assert_device_v1(void)
{
    assert_device();
    assert_no_further_totals(&device.totals);
    assert_no_banks();
}

static void assert_device_v2(void)
{
    assert_device();
    assert_further_totals_count_up(&device.totals);
    assert_no_banks();
}

static void assert_device_v3(void)
{
    assert_device();
    assert_further_totals_count_up(&device.totals);
    for (size_t r = 0; r < TTM_REGION_COUNT; r++)
        assert_int_equal(device.bank_count[r], 0xa1a20000 + r);
}

static void assert_process(void)
{
    assert_true(process.has_lives);
    assert_int_equal(process.index, 3);
    assert_int_equal(process.pid, 4242);
    assert_int_equal(process.uid, 1000);
    assert_int_equal(process.connections, 2);
    assert_int_equal(process.lives, 99);
    assert_true(process.start_ns == BASE);
    assert_true(process.events == BASE + 1);
    assert_true(process.unknown_frees == BASE + 2);
    assert_true(process.ambiguous_frees == BASE + 3);
    assert_true(process.replaced == BASE + 4);
    assert_true(process.refused == BASE + 5);
    assert_true(process.lost_events == BASE + 6);
    assert_string_equal(process.command, "pytest ü");
}

static void assert_process_v1(void)
{
    assert_process();
    assert_int_equal(process.source, TTM_SOURCE_ORIGINAL);
    assert_true(process.resyncs == 0);
    assert_true(process.untracked == 0);
    assert_true(process.unknown_ends == 0);
    assert_int_equal(process.events_per_s, 0);
    assert_int_equal(process.ring_permille, 0);
    assert_false(process.is_disabled);
    assert_false(process.has_gap);
    assert_string_equal(process.runtime, "");
    assert_string_equal(process.trouble, "");
}

static void assert_process_of_any_run(void)
{
    assert_process();
    assert_int_equal(process.source, TTM_SOURCE_TRACKED);
    assert_true(process.resyncs == BASE + 7);
    assert_true(process.untracked == BASE + 8);
    assert_true(process.unknown_ends == BASE + 9);
    assert_int_equal(process.events_per_s, 0x01020304);
    assert_int_equal(process.ring_permille, 0x0506);
    assert_true(process.is_disabled);
    assert_true(process.has_gap);
    assert_string_equal(process.runtime, "ttnn 0.81.1");
    assert_string_equal(process.trouble, "no ärgument");
}

static void assert_process_v2(void)
{
    assert_process_of_any_run();
    assert_true(process.run == 0);
    assert_false(process.is_behind);
}

static void assert_process_told(void)
{
    assert_process_of_any_run();
    assert_true(process.is_behind);
    assert_int_equal(process.resync_us, 0xd1d2d3d4);
}

static void assert_process_v3(void)
{
    assert_process_told();
    assert_true(process.run == 0);
}

static void assert_process_v4(void)
{
    assert_process_told();
    assert_true(process.run == BASE + 10);
    assert_true(process.notes_left_out == 0);
}

static void assert_process_since_v5(void)
{
    assert_process_told();
    assert_true(process.run == BASE + 10);
    assert_true(process.notes_left_out == BASE + 11);
}

static void assert_process_v5(void)
{
    assert_process_since_v5();
    assert_true(process.failures == 0);
}

static void assert_process_v6(void)
{
    assert_process_since_v5();
    assert_true(process.failures == BASE + 12);
}

static void assert_process_device(void)
{
    assert_int_equal(process_device.process_index, 3);
    assert_int_equal(process_device.device_id, 31);
    assert_totals_count_up(&process_device.totals);
}

static void assert_process_device_v1(void)
{
    assert_process_device();
    assert_no_further_totals(&process_device.totals);
}

static void assert_process_device_v2(void)
{
    assert_process_device();
    assert_further_totals_count_up(&process_device.totals);
}

static size_t encode_moment(uint8_t *buf)
{
    return ttm_moment_encode(&moment, buf);
}

static size_t encode_device(uint8_t *buf)
{
    return ttm_device_row_encode(&device, buf);
}

static size_t encode_process(uint8_t *buf)
{
    return ttm_process_row_encode(&process, buf);
}

static size_t encode_process_device(uint8_t *buf)
{
    return ttm_process_device_row_encode(&process_device, buf);
}

/* The newest version of each row: ours. */
static const struct {
    const char *file;
    decode_fn decode;
    size_t (*encode)(uint8_t *buf);
    size_t fixed; /* size of the fixed part */
    size_t least; /* what the first version had */
    void (*assert_content)(void);
} rows[] = {
    {"totals.v1.bin", decode_moment, encode_moment, 32, 32, assert_moment},
    {"device.v3.bin", decode_device, encode_device, DEVICE_FIXED, DEVICE_LEAST, assert_device_v3},
    {"process.v6.bin", decode_process, encode_process, PROCESS_FIXED, PROCESS_LEAST,
     assert_process_v6},
    {"process_device.v2.bin", decode_process_device, encode_process_device, PROCESS_DEVICE_FIXED,
     PROCESS_DEVICE_LEAST, assert_process_device_v2},
};

static const struct {
    const char *file;
    decode_fn decode;
    void (*assert_content)(void);
} older_rows[] = {
    {"device.v1.bin", decode_device, assert_device_v1},
    {"device.v2.bin", decode_device, assert_device_v2},
    {"process.v1.bin", decode_process, assert_process_v1},
    {"process.v2.bin", decode_process, assert_process_v2},
    {"process.v3.bin", decode_process, assert_process_v3},
    {"process.v4.bin", decode_process, assert_process_v4},
    {"process.v5.bin", decode_process, assert_process_v5},
    {"process_device.v1.bin", decode_process_device, assert_process_device_v1},
};

static void every_golden_row_is_decoded_and_encoded_again_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct bytes file = golden(rows[i].file);
        uint8_t buf[TTM_ROW_SIZE_MAX];
        assert_int_equal(rows[i].decode(file.data, file.length), 0);
        rows[i].assert_content();
        memset(buf, 0xff, sizeof(buf));
        assert_bytes_equal(&file, buf, rows[i].encode(buf));
        bytes_done(&file);
    }
}

static void a_row_of_an_older_sender_has_zeros_for_what_it_did_not_know(void **state)
{
    (void)state;
    memset(&device, 0xff, sizeof(device)); /* nothing of these is left over */
    memset(&process, 0xff, sizeof(process));
    memset(&process_device, 0xff, sizeof(process_device));
    for (size_t i = 0; i < COUNT_OF(older_rows); i++) {
        struct bytes file = golden(older_rows[i].file);
        assert_int_equal(older_rows[i].decode(file.data, file.length), 0);
        older_rows[i].assert_content();
        assert_truncation_refused(&file, older_rows[i].decode);
        bytes_done(&file);
    }
}

static void a_row_cut_off_anywhere_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct bytes file = golden(rows[i].file);
        assert_truncation_refused(&file, rows[i].decode);
        bytes_done(&file);
    }
}

static void a_longer_row_of_a_newer_sender_says_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct bytes file = golden(rows[i].file);
        for (size_t extra = 1; extra < 40; extra += 3) {
            struct bytes longer = lengthened(&file, rows[i].fixed, extra);
            assert_int_equal(rows[i].decode(longer.data, longer.length), 0);
            rows[i].assert_content();
            bytes_done(&longer);
        }
        bytes_done(&file);
    }
}

static void bytes_behind_a_row_are_ignored(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct bytes file = golden(rows[i].file);
        uint8_t buf[TTM_ROW_SIZE_MAX];
        memset(buf, 0xee, sizeof(buf));
        memcpy(buf, file.data, file.length);
        assert_int_equal(rows[i].decode(buf, sizeof(buf)), 0);
        rows[i].assert_content();
        bytes_done(&file);
    }
}

static void a_fixed_part_shorter_than_the_first_or_longer_than_the_row_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct bytes file = golden(rows[i].file);
        const size_t wrong[] = {0, 1, rows[i].least - 1, file.length + 1, UINT16_MAX};
        for (size_t w = 0; w < COUNT_OF(wrong); w++) {
            file.data[0] = (uint8_t)wrong[w];
            file.data[1] = (uint8_t)(wrong[w] >> 8);
            assert_int_equal(rows[i].decode(file.data, file.length), -EBADMSG);
        }
        bytes_done(&file);
    }
}

static void a_device_id_out_of_range_is_refused(void **state)
{
    (void)state;
    struct bytes file = golden("device.v2.bin");
    file.data[2] = 0x00; /* 1024 */
    file.data[3] = 0x04;
    assert_int_equal(decode_device(file.data, file.length), -EBADMSG);
    bytes_done(&file);

    file = golden("process_device.v2.bin");
    file.data[2] = 0xff;
    file.data[3] = 0xff;
    assert_int_equal(decode_process_device(file.data, file.length), -EBADMSG);
    bytes_done(&file);
}

static void a_string_longer_than_ours_is_cut_and_one_longer_than_the_row_refused(void **state)
{
    uint8_t buf[8192];
    struct bytes file = golden("process.v6.bin");
    (void)state;

    memset(buf, 'x', sizeof(buf));
    memcpy(buf, file.data, PROCESS_FIXED);
    for (size_t i = 0; i < 3; i++) { /* command, runtime, trouble */
        buf[PROCESS_FIXED + 1002 * i] = 1000 & 0xff;
        buf[PROCESS_FIXED + 1002 * i + 1] = 1000 >> 8;
    }
    assert_int_equal(decode_process(buf, PROCESS_FIXED + 3 * 1002), 0);
    assert_int_equal(strlen(process.command), TTM_STRING_MAX);
    assert_int_equal(strlen(process.runtime), TTM_STRING_MAX);
    assert_int_equal(strlen(process.trouble), TTM_STRING_MAX);
    assert_int_equal(decode_process(buf, PROCESS_FIXED + 3 * 1002 - 1), -EBADMSG);
    bytes_done(&file);
}

static void a_nul_inside_a_string_ends_it(void **state)
{
    struct bytes file = golden("process.v6.bin");
    (void)state;

    file.data[PROCESS_FIXED + 2 + 3] = '\0';
    assert_int_equal(decode_process(file.data, file.length), 0);
    assert_string_equal(process.command, "pyt");
    assert_string_equal(process.runtime, "ttnn 0.81.1");
    bytes_done(&file);
}

static void the_longest_strings_fit_a_row(void **state)
{
    uint8_t buf[TTM_ROW_SIZE_MAX];
    struct ttm_device_row row = {.id = 5};
    struct ttm_process_row other = {.index = 1};
    (void)state;

    memset(row.board, 'b', TTM_STRING_MAX);
    memset(other.command, 'c', TTM_STRING_MAX);
    memset(other.runtime, 'r', TTM_STRING_MAX);
    memset(other.trouble, 't', TTM_STRING_MAX);
    const size_t n = ttm_device_row_encode(&row, buf);
    assert_true(n <= TTM_ROW_SIZE_MAX);
    assert_int_equal(decode_device(buf, n), 0);
    assert_string_equal(device.board, row.board);
    const size_t m = ttm_process_row_encode(&other, buf);
    assert_true(m <= TTM_ROW_SIZE_MAX);
    assert_int_equal(decode_process(buf, m), 0);
    assert_string_equal(process.command, other.command);
    assert_string_equal(process.runtime, other.runtime);
    assert_string_equal(process.trouble, other.trouble);
}

static void a_negative_pid_and_a_process_without_visible_lives_survive(void **state)
{
    uint8_t buf[TTM_ROW_SIZE_MAX];
    const struct ttm_process_row row = {.pid = -1, .source = TTM_SOURCE_RUNTIME, .uid = UINT32_MAX};
    (void)state;

    assert_int_equal(decode_process(buf, ttm_process_row_encode(&row, buf)), 0);
    assert_int_equal(process.pid, -1);
    assert_int_equal(process.uid, UINT32_MAX);
    assert_int_equal(process.source, TTM_SOURCE_RUNTIME);
    assert_false(process.has_lives);
    assert_string_equal(process.command, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_golden_row_is_decoded_and_encoded_again_the_same),
        cmocka_unit_test(a_row_of_an_older_sender_has_zeros_for_what_it_did_not_know),
        cmocka_unit_test(a_row_cut_off_anywhere_is_refused),
        cmocka_unit_test(a_longer_row_of_a_newer_sender_says_the_same),
        cmocka_unit_test(bytes_behind_a_row_are_ignored),
        cmocka_unit_test(a_fixed_part_shorter_than_the_first_or_longer_than_the_row_is_refused),
        cmocka_unit_test(a_device_id_out_of_range_is_refused),
        cmocka_unit_test(a_string_longer_than_ours_is_cut_and_one_longer_than_the_row_refused),
        cmocka_unit_test(a_nul_inside_a_string_ends_it),
        cmocka_unit_test(the_longest_strings_fit_a_row),
        cmocka_unit_test(a_negative_pid_and_a_process_without_visible_lives_survive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
