/* SPDX-License-Identifier: Apache-2.0 */
#include "recording/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording/block.h"
#include "recording/rotation.h"
#include "recording/varint.h"

#define SUFFIX ".ttmem"
#define NAMES_MAX 1000
/* More sections than this are not listed; a reader finds them by going from block to block. */
#define SECTIONS_MAX 65536u

struct section {
    uint64_t offset;
    uint64_t first_ns;
};

struct ttm_output {
    int fd;
    char *path;    /* where it is written */
    char *becomes; /* the name it gets when it is finished, or NULL */
    bool is_regular;
    uint64_t file_id;
    uint64_t bytes;
    struct ttm_block_head last; /* of the last block */
    bool has_blocks;
    struct section *sections;
    uint32_t section_count;
    uint32_t section_room;
};

static int write_all(int fd, const uint8_t *bytes, size_t length)
{
    while (length > 0) {
        const ssize_t n = write(fd, bytes, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        bytes += n;
        length -= (size_t)n;
    }
    return 0;
}

/* Writes it whole or, as far as that can be, not at all. */
static int append(struct ttm_output *out, const uint8_t *bytes, size_t length)
{
    const int r = write_all(out->fd, bytes, length);

    if (r < 0) {
        if (out->is_regular)
            (void)!ftruncate(out->fd, (off_t)out->bytes); /* else the reader finds a torn end */
        return r;
    }
    out->bytes += length;
    return 0;
}

static struct ttm_output *new_output(uint64_t file_id)
{
    struct ttm_output *out = calloc(1, sizeof(*out));

    if (!out)
        return NULL;
    out->fd = -1;
    out->file_id = file_id;
    out->is_regular = true;
    return out;
}

void ttm_output_free(struct ttm_output *out)
{
    if (!out)
        return;
    if (out->fd >= 0)
        (void)close(out->fd);
    free(out->path);
    free(out->becomes);
    free(out->sections);
    free(out);
}

static int begin(struct ttm_output *out)
{
    uint8_t head[TTM_FILE_HEAD_SIZE];

    (void)flock(out->fd, LOCK_EX | LOCK_NB); /* tells readers that someone writes; no more */
    ttm_file_head_encode(out->file_id, head);
    return append(out, head, sizeof(head));
}

/* A new file of that name, or -EEXIST. */
static int create(struct ttm_output *out, const char *path, mode_t mode)
{
    out->path = strdup(path);
    if (!out->path)
        return -ENOMEM;
    out->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    return out->fd < 0 ? -errno : 0;
}

/* "run.ttmem" → "run.new-4242.ttmem", with another number when there is one already. */
static int create_beside(struct ttm_output *out)
{
    const char *path = out->becomes;
    const size_t length = strlen(path);
    const bool has_suffix =
        length > strlen(SUFFIX) && strcmp(path + length - strlen(SUFFIX), SUFFIX) == 0;
    const int stem = (int)(has_suffix ? length - strlen(SUFFIX) : length);
    char name[PATH_MAX];
    int r = -EEXIST;

    for (unsigned i = 0; i < NAMES_MAX && r == -EEXIST; i++) {
        char more[16] = "";
        if (i > 0)
            (void)snprintf(more, sizeof(more), ".%u", i);
        const int n =
            snprintf(name, sizeof(name), "%.*s.new-%ld%s" SUFFIX, stem, path, (long)getpid(), more);
        if (n < 0 || (size_t)n >= sizeof(name))
            return -ENAMETOOLONG;
        free(out->path);
        r = create(out, name, 0666);
    }
    return r;
}

static int open_path(struct ttm_output *out, const char *path)
{
    struct stat st;
    int r;

    r = create(out, path, 0666);
    if (r != -EEXIST)
        return r;
    if (stat(path, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode)) {
        out->is_regular = false;
        out->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        return out->fd < 0 ? -errno : 0;
    }
    out->becomes = realpath(path, NULL); /* a link stays, what it points at is replaced */
    return out->becomes ? create_beside(out) : -errno;
}

int ttm_output_open(const char *path, uint64_t file_id, struct ttm_output **ret)
{
    struct ttm_output *out = new_output(file_id);

    if (!out)
        return -ENOMEM;
    int r = open_path(out, path);
    if (r == 0)
        r = begin(out);
    if (r < 0) {
        ttm_output_free(out);
        return r;
    }
    *ret = out;
    return 0;
}

int ttm_output_open_in(const char *folder, uint64_t wall_ns, uint64_t file_id,
                       struct ttm_output **ret)
{
    struct ttm_output *out = new_output(file_id);
    int r = -EEXIST;

    if (!out)
        return -ENOMEM;
    for (unsigned i = 0; i < NAMES_MAX && r == -EEXIST; i++) {
        char name[TTM_ROTATION_NAME_SIZE], path[PATH_MAX];
        ttm_rotation_name(wall_ns, i, name);
        const int n = snprintf(path, sizeof(path), "%s/%s", folder, name);
        if (n < 0 || (size_t)n >= sizeof(path)) {
            r = -ENAMETOOLONG;
            break;
        }
        free(out->path);
        r = create(out, path, 0600); /* of every user's programs */
    }
    if (r == 0)
        r = begin(out);
    if (r < 0) {
        ttm_output_free(out);
        return r;
    }
    *ret = out;
    return 0;
}

static void list_section(struct ttm_output *out, const struct ttm_block_head *head)
{
    if (out->section_count == SECTIONS_MAX)
        return;
    if (out->section_count == out->section_room) {
        const uint32_t room = out->section_room ? out->section_room * 2 : 16;
        struct section *sections = realloc(out->sections, room * sizeof(sections[0]));
        if (!sections)
            return; /* it can be found without */
        out->sections = sections;
        out->section_room = room;
    }
    out->sections[out->section_count++] =
        (struct section){.offset = out->bytes, .first_ns = head->first_ns};
}

int ttm_output_write(struct ttm_output *out, struct ttm_packer *packer, struct ttm_block *block)
{
    const struct ttm_block_head *head = &block->head;
    const uint8_t *bytes;
    size_t length;
    int r;

    r = ttm_block_pack(packer, block, &bytes, &length);
    if (r < 0)
        return r;
    if (head->flags & TTM_BLOCK_SECTION)
        list_section(out, head);
    r = append(out, bytes, length);
    if (r < 0)
        return r;
    out->last = *head;
    out->has_blocks = true;
    return 0;
}

/* The block of the index: varints in the column of the rest. */
static int write_index(struct ttm_output *out, struct ttm_packer *packer)
{
    const uint8_t *bytes;
    struct ttm_block block;
    size_t length;
    uint64_t offset = 0, first_ns = 0;
    int r;

    r = ttm_block_init(&block);
    if (r < 0)
        return r;
    block.head = out->last;
    block.head.major = TTM_RECORDING_MAJOR;
    block.head.minor = TTM_RECORDING_MINOR;
    block.head.kind = TTM_BLOCK_INDEX;
    block.head.flags = 0;
    block.head.file_id = out->file_id;
    block.head.sequence = out->last.sequence + out->has_blocks;
    block.head.events_before = out->last.events_before + out->last.events;
    block.head.events = 0;
    r = ttm_block_reserve(&block, TTM_COLUMN_MISC,
                          ((size_t)out->section_count * 2 + 1) * TTM_VARINT_MAX);
    if (r == 0) {
        struct ttm_column *column = &block.columns[TTM_COLUMN_MISC];
        column->length += ttm_varint_put(column->data, out->section_count);
        for (uint32_t i = 0; i < out->section_count; i++) {
            const struct section *section = &out->sections[i];
            column->length +=
                ttm_varint_put(column->data + column->length, section->offset - offset);
            column->length += ttm_varint_put(column->data + column->length,
                                             ttm_fold(section->first_ns - first_ns));
            offset = section->offset;
            first_ns = section->first_ns;
        }
        r = ttm_block_pack(packer, &block, &bytes, &length);
    }
    if (r == 0)
        r = append(out, bytes, length);
    ttm_block_done(&block);
    return r;
}

int ttm_output_finish(struct ttm_output *out, struct ttm_packer *packer)
{
    const uint64_t index = out->bytes;
    uint8_t end[TTM_FILE_END_SIZE];
    int r;

    r = write_index(out, packer);
    if (r < 0)
        return r;
    ttm_file_end_encode(out->file_id, index, end);
    r = append(out, end, sizeof(end));
    if (r < 0)
        return r;
    if (!out->is_regular)
        return 0;
    if (fdatasync(out->fd) < 0)
        return -errno;
    if (!out->becomes)
        return 0;
    if (rename(out->path, out->becomes) < 0)
        return -errno;
    free(out->path);
    out->path = out->becomes;
    out->becomes = NULL;
    return 0;
}

uint64_t ttm_output_bytes(const struct ttm_output *out)
{
    return out->bytes;
}

const char *ttm_output_path(const struct ttm_output *out)
{
    return out->path;
}
