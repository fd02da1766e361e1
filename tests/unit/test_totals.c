/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "wire/totals.h"

/* The golden files count up from here: tests/data/wire/make-golden. */
#define BASE 0x0102030405060000ull

#define DEVICE_FIXED 488
#define PROCESS_FIXED 88

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

static void assert_moment(void)
{
    assert_true(moment.time_ns == BASE);
    assert_true(moment.uptime_ns == BASE + 1);
    assert_int_equal(moment.device_count, 32);
    assert_int_equal(moment.process_count, 7);
}

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

static void assert_process(void)
{
    assert_int_equal(process.source, TTM_SOURCE_ORIGINAL);
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

static void assert_process_device(void)
{
    assert_int_equal(process_device.process_index, 3);
    assert_int_equal(process_device.device_id, 31);
    assert_totals_count_up(&process_device.totals);
}

static void every_golden_row_is_decoded(void **state)
{
    uint8_t buf[TTM_ROW_SIZE_MAX];
    (void)state;

    struct bytes file = golden("totals.v1.bin");
    assert_int_equal(decode_moment(file.data, file.length), 0);
    assert_moment();
    memset(buf, 0xff, sizeof(buf));
    assert_bytes_equal(&file, buf, ttm_moment_encode(&moment, buf));
    bytes_done(&file);

    file = golden("device.v1.bin");
    assert_int_equal(decode_device(file.data, file.length), 0);
    assert_device();
    bytes_done(&file);

    file = golden("process.v1.bin");
    assert_int_equal(decode_process(file.data, file.length), 0);
    assert_process();
    bytes_done(&file);

    file = golden("process_device.v1.bin");
    assert_int_equal(decode_process_device(file.data, file.length), 0);
    assert_process_device();
    bytes_done(&file);
}

static const struct {
    const char *file;
    decode_fn decode;
    size_t fixed;
    void (*assert_content)(void);
} rows[] = {
    {"totals.v1.bin", decode_moment, 32, assert_moment},
    {"device.v1.bin", decode_device, DEVICE_FIXED, assert_device},
    {"process.v1.bin", decode_process, PROCESS_FIXED, assert_process},
    {"process_device.v1.bin", decode_process_device, 424, assert_process_device},
};

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
        for (size_t extra = 1; extra < 30; extra += 3) {
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

static void a_fixed_part_shorter_than_known_or_longer_than_the_row_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct bytes file = golden(rows[i].file);
        const size_t wrong[] = {0, 1, rows[i].fixed - 1, file.length + 1, UINT16_MAX};
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
    struct bytes file = golden("device.v1.bin");
    file.data[2] = 0x00; /* 1024 */
    file.data[3] = 0x04;
    assert_int_equal(decode_device(file.data, file.length), -EBADMSG);
    bytes_done(&file);

    file = golden("process_device.v1.bin");
    file.data[2] = 0xff;
    file.data[3] = 0xff;
    assert_int_equal(decode_process_device(file.data, file.length), -EBADMSG);
    bytes_done(&file);
}

static void a_string_longer_than_ours_is_cut_and_one_longer_than_the_row_refused(void **state)
{
    uint8_t buf[2048];
    struct bytes file = golden("process.v1.bin");
    (void)state;

    memset(buf, 'x', sizeof(buf));
    memcpy(buf, file.data, PROCESS_FIXED);
    buf[PROCESS_FIXED] = 1000 & 0xff;
    buf[PROCESS_FIXED + 1] = 1000 >> 8;
    assert_int_equal(decode_process(buf, PROCESS_FIXED + 2 + 1000), 0);
    assert_int_equal(strlen(process.command), TTM_STRING_MAX);
    assert_int_equal(decode_process(buf, PROCESS_FIXED + 2 + 999), -EBADMSG);
    bytes_done(&file);
}

static void a_nul_inside_a_string_ends_it(void **state)
{
    struct bytes file = golden("process.v1.bin");
    (void)state;

    file.data[PROCESS_FIXED + 2 + 3] = '\0';
    assert_int_equal(decode_process(file.data, file.length), 0);
    assert_string_equal(process.command, "pyt");
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
    const size_t n = ttm_device_row_encode(&row, buf);
    assert_true(n <= TTM_ROW_SIZE_MAX);
    assert_int_equal(decode_device(buf, n), 0);
    assert_string_equal(device.board, row.board);
    const size_t m = ttm_process_row_encode(&other, buf);
    assert_true(m <= TTM_ROW_SIZE_MAX);
    assert_int_equal(decode_process(buf, m), 0);
    assert_string_equal(process.command, other.command);
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
        cmocka_unit_test(every_golden_row_is_decoded),
        cmocka_unit_test(a_row_cut_off_anywhere_is_refused),
        cmocka_unit_test(a_longer_row_of_a_newer_sender_says_the_same),
        cmocka_unit_test(bytes_behind_a_row_are_ignored),
        cmocka_unit_test(a_fixed_part_shorter_than_known_or_longer_than_the_row_is_refused),
        cmocka_unit_test(a_device_id_out_of_range_is_refused),
        cmocka_unit_test(a_string_longer_than_ours_is_cut_and_one_longer_than_the_row_refused),
        cmocka_unit_test(a_nul_inside_a_string_ends_it),
        cmocka_unit_test(the_longest_strings_fit_a_row),
        cmocka_unit_test(a_negative_pid_and_a_process_without_visible_lives_survive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
