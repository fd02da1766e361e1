/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block - the unit of a .ttmem file: a head, and columns of bytes.
 *
 * Records are taken apart into columns (what they are, when, where, …), because
 * numbers of one kind compress far better among themselves. Each column is
 * compressed on its own; head and body carry a checksum each. A block is taken
 * over whole or not at all.
 *
 * Pure: no file, no thread, no clock. docs/recording-format.md has the offsets.
 */
#ifndef TTM_RECORDING_BLOCK_H
#define TTM_RECORDING_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TTM_RECORDING_MAJOR 1
#define TTM_RECORDING_MINOR 3
#define TTM_MINOR_MADE_GOOD 2 /* since then it is said when losses are made good */

#define TTM_FILE_HEAD_SIZE 32
#define TTM_BLOCK_HEAD_SIZE 96
#define TTM_FILE_END_SIZE 32
#define TTM_BLOCK_MAGIC "TTMBLK\r\n"

/* More records than this are not put into one block. */
#define TTM_BLOCK_RECORDS_MAX 32768u
/* With this many bytes in the last two columns a block is full. */
#define TTM_BLOCK_BYTES_FULL (1u << 20)
/* Nothing larger is read: a full block and one more record of the largest kind. */
#define TTM_COLUMN_MAX (4u << 20)
#define TTM_BLOCK_BODY_MAX (16u << 20)

enum ttm_block_kind {
    TTM_BLOCK_RECORDS = 1,
    TTM_BLOCK_INDEX = 2,
};

enum ttm_block_flags {
    TTM_BLOCK_SECTION = 1, /* can be read without any block before it */
};

enum ttm_column_name {
    TTM_COLUMN_OPS,
    TTM_COLUMN_TIME_LOW,
    TTM_COLUMN_TIME_MID,
    TTM_COLUMN_TIME_HIGH,
    TTM_COLUMN_SITE,
    TTM_COLUMN_ID,
    TTM_COLUMN_ADDRESS,
    TTM_COLUMN_SERIAL,
    TTM_COLUMN_DISTANCE,
    TTM_COLUMN_MISC,
    TTM_COLUMN_BYTES,
    TTM_COLUMN_BANKS,  /* since minor version 1 */
    TTM_COLUMN_DOUBTS, /* since minor version 3 */
    TTM_COLUMN_COUNT
};

/* Files have at least these; what an older writer did not know is as if it were empty. */
#define TTM_COLUMN_LEAST TTM_COLUMN_BANKS

/* The columns before this one have room for a full block from the start. */
#define TTM_COLUMN_GROWING TTM_COLUMN_MISC

struct ttm_block_head {
    uint16_t major;
    uint16_t minor;
    uint16_t kind;  /* enum ttm_block_kind */
    uint16_t flags; /* enum ttm_block_flags */
    uint64_t file_id;
    uint64_t sequence;      /* 0, 1, 2 …: one that is missing was lost */
    uint64_t events_before; /* in all blocks before it, lost ones too */
    uint64_t first_ns;      /* times begin here */
    uint64_t last_ns;       /* the latest */
    int64_t wall_offset_ns; /* wall clock - monotonic clock */
    uint32_t events;        /* that happened: no definitions, nothing told again */
    uint32_t body_bytes;
    uint64_t body_checksum;
};

struct ttm_column {
    uint8_t *data;
    size_t length;
    size_t room;
};

struct ttm_block {
    struct ttm_block_head head;
    struct ttm_column columns[TTM_COLUMN_COUNT];
    void *pages; /* of the columns that do not grow */
};

/* Returns 0 or -ENOMEM. The pages of a block cost memory only once they are used. */
int ttm_block_init(struct ttm_block *block);

/* A block of zeros is fine. */
void ttm_block_done(struct ttm_block *block);

/* No record, a head of zeros; the memory is kept. */
void ttm_block_clear(struct ttm_block *block);

/* Room for 'length' more bytes in a column that grows. Returns 0 or -ENOMEM. */
int ttm_block_reserve(struct ttm_block *block, enum ttm_column_name name, size_t length);

/* What compression needs between blocks. Belongs to one thread. */
struct ttm_packer;
struct ttm_packer *ttm_packer_new(void);
void ttm_packer_free(struct ttm_packer *packer);

/*
 * The block as it stands in a file; borrowed until the next call. Returns 0 or
 * -ENOMEM. Fills in the head's body_bytes and body_checksum.
 */
int ttm_block_pack(struct ttm_packer *packer, struct ttm_block *block, const uint8_t **ret,
                   size_t *ret_length);

/*
 * Returns 0; -EBADMSG when the 96 bytes are no head; -ENOTSUP for one of a
 * version that this program cannot read, with 'ret' filled in.
 */
int ttm_block_head_decode(const uint8_t *buf, struct ttm_block_head *ret);

/*
 * Takes the columns out of a body of head->body_bytes bytes. Returns 0, -EBADMSG
 * or -ENOMEM; on an error the block is clear.
 */
int ttm_block_unpack(struct ttm_packer *packer, const struct ttm_block_head *head,
                     const uint8_t *body, struct ttm_block *block);

/* The first bytes of a file, and the last ones of a file that was finished. */
void ttm_file_head_encode(uint64_t file_id, uint8_t buf[TTM_FILE_HEAD_SIZE]);
int ttm_file_head_decode(const uint8_t *buf, uint64_t *ret_file_id);
void ttm_file_end_encode(uint64_t file_id, uint64_t index_offset, uint8_t buf[TTM_FILE_END_SIZE]);
int ttm_file_end_decode(const uint8_t *buf, uint64_t file_id, uint64_t *ret_index_offset);

#endif /* TTM_RECORDING_BLOCK_H */
