/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "base/bytes.h"
#include "recording/block.h"

static struct ttm_packer *packer;
static struct ttm_block block, back;

static int set_up(void **state)
{
    (void)state;
    packer = ttm_packer_new();
    return packer && ttm_block_init(&block) == 0 && ttm_block_init(&back) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_packer_free(packer);
    ttm_block_done(&block);
    ttm_block_done(&back);
    return 0;
}

static void fill(void)
{
    uint64_t random = 5;

    ttm_block_clear(&block);
    block.head = (struct ttm_block_head){.major = 1,
                                         .minor = 7,
                                         .kind = TTM_BLOCK_RECORDS,
                                         .flags = TTM_BLOCK_SECTION,
                                         .file_id = 0x1122334455667788,
                                         .sequence = 9,
                                         .events_before = 10,
                                         .first_ns = 11,
                                         .last_ns = 12,
                                         .wall_offset_ns = -13,
                                         .events = 14};
    for (size_t i = 0; i < TTM_COLUMN_COUNT; i++) {
        const size_t length = i == 3 ? 0 : 1000 * (i + 1);
        assert_int_equal(ttm_block_reserve(&block, (enum ttm_column_name)i, length), 0);
        for (size_t k = 0; k < length; k++)
            block.columns[i].data[k] = (uint8_t)(i % 2 ? next_random(&random) : k / 50);
        block.columns[i].length = length;
    }
}

static struct bytes packed(void)
{
    const uint8_t *bytes;
    size_t length;

    fill();
    assert_int_equal(ttm_block_pack(packer, &block, &bytes, &length), 0);
    return bytes_of(bytes, length);
}

static void what_is_packed_is_unpacked(void **state)
{
    struct bytes bytes = packed();
    struct ttm_block_head head;
    (void)state;

    assert_int_equal(ttm_block_head_decode(bytes.data, &head), 0);
    assert_int_equal(head.body_bytes, bytes.length - TTM_BLOCK_HEAD_SIZE);
    assert_memory_equal(&head, &block.head, sizeof(head));
    struct bytes body = bytes_of(bytes.data + TTM_BLOCK_HEAD_SIZE, head.body_bytes);
    assert_int_equal(ttm_block_unpack(packer, &head, body.data, &back), 0);
    for (size_t i = 0; i < TTM_COLUMN_COUNT; i++) {
        assert_int_equal(back.columns[i].length, block.columns[i].length);
        assert_memory_equal(back.columns[i].data, block.columns[i].data, back.columns[i].length);
    }
    bytes_done(&body);
    bytes_done(&bytes);
}

static void the_head_stands_at_its_offsets(void **state)
{
    struct bytes bytes = packed();
    (void)state;

    assert_memory_equal(bytes.data, "TTMBLK\r\n", 8);
    assert_int_equal(get_le16(bytes.data + 8), 1);
    assert_int_equal(get_le16(bytes.data + 10), 7);
    assert_int_equal(get_le16(bytes.data + 12), 1);
    assert_int_equal(get_le16(bytes.data + 14), 1);
    assert_true(get_le64(bytes.data + 16) == 0x1122334455667788);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(get_le64(bytes.data + 24 + i * 8), 9 + i);
    assert_true((int64_t)get_le64(bytes.data + 56) == -13);
    assert_int_equal(get_le32(bytes.data + 64), 14);
    assert_int_equal(get_le32(bytes.data + 68), bytes.length - 96);
    assert_int_equal(get_le64(bytes.data + 72), 0);
    bytes_done(&bytes);
}

static void another_major_version_is_told_from_damage(void **state)
{
    struct ttm_block_head head;
    const uint8_t *bytes;
    size_t length;
    (void)state;

    fill();
    block.head.major = 2;
    assert_int_equal(ttm_block_pack(packer, &block, &bytes, &length), 0);
    assert_int_equal(ttm_block_head_decode(bytes, &head), -ENOTSUP);
    assert_int_equal(head.major, 2);
}

/* With the right checksum, as a hostile writer would have it: the sizes must still be checked. */
static void a_body_that_lies_about_its_sizes_is_refused(void **state)
{
    struct bytes bytes = packed();
    struct ttm_block_head head;
    (void)state;

    assert_int_equal(ttm_block_head_decode(bytes.data, &head), 0);
    /* Each cut of the body: never whole, never a read beyond it. */
    for (uint32_t n = 0; n < head.body_bytes; n += n < 64 ? 1 : 97) {
        struct ttm_block_head cut = head;
        struct bytes body = bytes_of(bytes.data + TTM_BLOCK_HEAD_SIZE, n);
        cut.body_bytes = n;
        assert_int_equal(ttm_block_unpack(packer, &cut, body.data, &back), -EBADMSG);
        assert_int_equal(back.columns[0].length, 0);
        bytes_done(&body);
    }
    bytes_done(&bytes);
}

static void a_column_grows_up_to_its_limit(void **state)
{
    (void)state;
    ttm_block_clear(&block);
    assert_int_equal(ttm_block_reserve(&block, TTM_COLUMN_BYTES, 100000), 0);
    assert_true(block.columns[TTM_COLUMN_BYTES].room >= 100000);
    assert_int_equal(ttm_block_reserve(&block, TTM_COLUMN_BYTES, TTM_COLUMN_MAX + 1), -ENOMEM);
    assert_int_equal(ttm_block_reserve(&block, TTM_COLUMN_OPS, TTM_BLOCK_RECORDS_MAX), 0);
    assert_int_equal(ttm_block_reserve(&block, TTM_COLUMN_OPS, TTM_BLOCK_RECORDS_MAX + 1), -ENOMEM);
}

static void head_and_end_of_a_file_know_damage(void **state)
{
    uint8_t head[TTM_FILE_HEAD_SIZE], end[TTM_FILE_END_SIZE];
    uint64_t id = 0, offset = 0;
    (void)state;

    ttm_file_head_encode(77, head);
    ttm_file_end_encode(77, 1234, end);
    assert_memory_equal(head, "TTMEM\r\n\x1a", 8);
    assert_memory_equal(end, "TTMEMEND", 8);
    assert_int_equal(ttm_file_head_decode(head, &id), 0);
    assert_int_equal(id, 77);
    assert_int_equal(ttm_file_end_decode(end, 77, &offset), 0);
    assert_int_equal(offset, 1234);
    assert_int_equal(ttm_file_end_decode(end, 78, &offset), -EBADMSG);
    for (size_t i = 0; i < TTM_FILE_HEAD_SIZE; i++) {
        head[i] ^= 4;
        end[i] ^= 4;
        assert_int_equal(ttm_file_head_decode(head, &id), -EBADMSG);
        assert_int_equal(ttm_file_end_decode(end, 77, &offset), -EBADMSG);
        head[i] ^= 4;
        end[i] ^= 4;
    }
}

static void without_memory_there_is_no_block(void **state)
{
    struct ttm_block another;
    (void)state;

    for (unsigned grants = 0; grants < 3; grants++) {
        const size_t pages = faults_pages_out();
        faults_begin(grants);
        assert_int_equal(ttm_block_init(&another), -ENOMEM);
        assert_true(faults_end());
        assert_int_equal(faults_pages_out(), pages);
    }
}

#define WITH_BLOCKS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BLOCKS(what_is_packed_is_unpacked),
        WITH_BLOCKS(the_head_stands_at_its_offsets),
        WITH_BLOCKS(another_major_version_is_told_from_damage),
        WITH_BLOCKS(a_body_that_lies_about_its_sizes_is_refused),
        WITH_BLOCKS(a_column_grows_up_to_its_limit),
        cmocka_unit_test(head_and_end_of_a_file_know_damage),
        cmocka_unit_test(without_memory_there_is_no_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
