/* SPDX-License-Identifier: Apache-2.0 */
#include "recording/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording/block.h"
#include "recording/decoder.h"
#include "recording/varint.h"

#define SEARCH_SIZE 65536
#define NOWHERE UINT64_MAX

struct ttm_recording {
    int fd;
    uint64_t offset; /* of the next block */
    uint64_t file_id;
    bool has_file_id;
    bool is_in_block;
    bool is_searching; /* for a block behind a damaged place at the end of the file */
    struct ttm_packer *packer;
    struct ttm_block block;
    struct ttm_decoder *decoder;
    uint8_t *body;
    size_t body_room;
    uint8_t *search;
    uint64_t events_total; /* by the index */
    uint64_t events_seen;  /* up to the end of the last block that could be begun */
    struct ttm_recording_info info;
};

/* Returns how much there is, up to 'length', or a negative errno. */
static ssize_t read_at(const struct ttm_recording *rec, uint64_t offset, uint8_t *buf,
                       size_t length)
{
    size_t done = 0;

    while (done < length) {
        const ssize_t n = pread(rec->fd, buf + done, length - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

/* Whether a head of this file stands there. Returns 1, 0, or a negative errno. */
static int is_head_at(const struct ttm_recording *rec, uint64_t offset)
{
    uint8_t buf[TTM_BLOCK_HEAD_SIZE];
    struct ttm_block_head head;
    const ssize_t n = read_at(rec, offset, buf, sizeof(buf));

    if (n < 0)
        return (int)n;
    if ((size_t)n < sizeof(buf) || ttm_block_head_decode(buf, &head) == -EBADMSG)
        return 0;
    return !rec->has_file_id || head.file_id == rec->file_id;
}

/*
 * Finds the next block of this file from '*offset' on. Returns 1; 0 when there is
 * none ('*offset' is then where to go on once there is more); a negative errno.
 */
static int search_block(struct ttm_recording *rec, uint64_t *offset)
{
    const size_t magic = strlen(TTM_BLOCK_MAGIC);

    if (!rec->search)
        rec->search = malloc(SEARCH_SIZE);
    if (!rec->search)
        return -ENOMEM;
    while (1) {
        const ssize_t n = read_at(rec, *offset, rec->search, SEARCH_SIZE);
        if (n < 0)
            return (int)n;
        const uint8_t *at = rec->search, *const end = rec->search + n;
        while ((at = memmem(at, (size_t)(end - at), TTM_BLOCK_MAGIC, magic))) {
            const uint64_t found = *offset + (uint64_t)(at - rec->search);
            const int r = is_head_at(rec, found);
            if (r != 0) {
                *offset = found;
                return r;
            }
            at++;
        }
        if (n < SEARCH_SIZE) {
            /* A head may be half there. */
            if (n >= TTM_BLOCK_HEAD_SIZE)
                *offset += (uint64_t)n - TTM_BLOCK_HEAD_SIZE + 1;
            return 0;
        }
        *offset += SEARCH_SIZE - magic + 1;
    }
}

/* A place that is no block. Goes on behind it if it can. */
static int pass_damage(struct ttm_recording *rec, uint64_t from)
{
    const bool was_searching = rec->is_searching;

    ttm_decoder_lose(rec->decoder);
    rec->offset = from;
    const int r = search_block(rec, &rec->offset);
    if (r < 0)
        return r;
    rec->is_searching = r == 0;
    if (was_searching)
        return r == 0 ? 0 : 1;
    rec->info.damaged_blocks++;
    return -EBADMSG;
}

static int read_body(struct ttm_recording *rec, uint32_t length)
{
    if (rec->body_room < length) {
        uint8_t *body = malloc(length);
        if (!body)
            return -ENOMEM;
        free(rec->body);
        rec->body = body;
        rec->body_room = length;
    }
    const ssize_t n = read_at(rec, rec->offset + TTM_BLOCK_HEAD_SIZE, rec->body, length);
    if (n < 0)
        return (int)n;
    rec->info.torn_bytes = (size_t)n < length ? (uint64_t)n + TTM_BLOCK_HEAD_SIZE : 0;
    return (size_t)n == length;
}

/* The end of a finished file. Returns whether it stands there. */
static bool is_end_at(struct ttm_recording *rec, const uint8_t *buf, size_t length)
{
    uint64_t index;

    return length == TTM_FILE_END_SIZE && rec->has_file_id &&
           ttm_file_end_decode(buf, rec->file_id, &index) == 0;
}

static void begin_block(struct ttm_recording *rec, const struct ttm_block_head *head)
{
    rec->info.wall_offset_ns = head->wall_offset_ns;
    if (head->kind == TTM_BLOCK_INDEX)
        rec->events_total = head->events_before;
    if (head->kind != TTM_BLOCK_RECORDS)
        return;
    if (ttm_decoder_begin(rec->decoder, &rec->block) < 0) {
        rec->info.skipped_blocks++;
        return;
    }
    rec->info.blocks++;
    rec->events_seen = head->events_before + head->events;
    if (head->last_ns > rec->info.last_ns)
        rec->info.last_ns = head->last_ns;
    rec->is_in_block = true;
}

/* Returns 1 when a block was read or passed over, 0 when there is no more, or an error. */
static int read_block(struct ttm_recording *rec)
{
    uint8_t buf[TTM_BLOCK_HEAD_SIZE];
    struct ttm_block_head head;
    const ssize_t n = read_at(rec, rec->offset, buf, sizeof(buf));
    int r;

    if (n < 0)
        return (int)n;
    if (is_end_at(rec, buf, (size_t)n)) {
        rec->info.is_finished = true;
        rec->info.torn_bytes = 0;
        return 0;
    }
    if ((size_t)n < sizeof(buf)) {
        rec->info.torn_bytes = (uint64_t)n;
        return 0;
    }
    r = ttm_block_head_decode(buf, &head);
    if (r == -EBADMSG || (rec->has_file_id && head.file_id != rec->file_id))
        return pass_damage(rec, rec->is_searching ? rec->offset : rec->offset + 1);
    if (r < 0) {
        rec->offset += TTM_BLOCK_HEAD_SIZE + (uint64_t)head.body_bytes;
        ttm_decoder_lose(rec->decoder);
        rec->info.damaged_blocks++;
        return r;
    }
    rec->is_searching = false;
    rec->file_id = head.file_id;
    rec->has_file_id = true;
    r = read_body(rec, head.body_bytes);
    if (r <= 0)
        return r;
    r = ttm_block_unpack(rec->packer, &head, rec->body, &rec->block);
    if (r == -EBADMSG) /* its length may be as wrong as the rest */
        return pass_damage(rec, rec->offset + TTM_BLOCK_HEAD_SIZE);
    if (r < 0)
        return r;
    rec->offset += TTM_BLOCK_HEAD_SIZE + (uint64_t)head.body_bytes;
    begin_block(rec, &head);
    return 1;
}

int ttm_recording_next(struct ttm_recording *rec, const struct ttm_recorded **ret)
{
    while (1) {
        if (rec->is_in_block) {
            const int r = ttm_decoder_next(rec->decoder, ret);
            if (r > 0)
                return r;
            rec->is_in_block = false;
            if (r < 0) {
                rec->info.damaged_blocks++;
                return r;
            }
        }
        const int r = read_block(rec);
        if (r <= 0)
            return r;
    }
}

/* ---- opening ---- */

static int read_head(struct ttm_recording *rec)
{
    uint8_t buf[TTM_FILE_HEAD_SIZE];
    const ssize_t n = read_at(rec, 0, buf, sizeof(buf));

    if (n < 0)
        return (int)n;
    if ((size_t)n < sizeof(buf))
        return -EBADMSG;
    const int r = ttm_file_head_decode(buf, &rec->file_id);
    if (r == 0) {
        rec->has_file_id = true;
        rec->offset = TTM_FILE_HEAD_SIZE;
    }
    if (r != -EBADMSG)
        return r;
    /* The blocks say all that the head does. */
    rec->info.is_head_damaged = true;
    const int found = search_block(rec, &rec->offset);
    return found > 0 ? 0 : found < 0 ? found : -EBADMSG;
}

int ttm_recording_open_fd(int fd, struct ttm_recording **ret)
{
    struct ttm_recording *rec = calloc(1, sizeof(*rec));
    uint64_t seed = 0;
    struct stat st;
    int r;

    if (!rec)
        return -ENOMEM;
    rec->fd = -1;
    /* Without it a hostile file may make us slow, nothing worse. */
    (void)!getrandom(&seed, sizeof(seed), GRND_NONBLOCK);
    rec->decoder = ttm_decoder_new(seed);
    rec->packer = ttm_packer_new();
    r = rec->decoder && rec->packer ? ttm_block_init(&rec->block) : -ENOMEM;
    if (r < 0)
        goto fail;
    rec->fd = fd;
    if (fstat(fd, &st) < 0) {
        r = -errno;
        goto fail;
    }
    rec->info.owner_uid = (uint32_t)st.st_uid;
    r = read_head(rec);
    if (r < 0)
        goto fail;
    *ret = rec;
    return 0;

fail:
    rec->fd = -1; /* the caller's */
    ttm_recording_close(rec);
    return r;
}

int ttm_recording_open(const char *path, struct ttm_recording **ret)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    int r = 0;

    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0)
        r = -errno;
    else if (S_ISDIR(st.st_mode))
        r = -EISDIR;
    else if (!S_ISREG(st.st_mode))
        r = -EBADMSG; /* it has to be read at any place */
    if (r == 0)
        r = ttm_recording_open_fd(fd, ret);
    if (r < 0)
        (void)close(fd);
    return r;
}

void ttm_recording_close(struct ttm_recording *rec)
{
    if (!rec)
        return;
    ttm_decoder_free(rec->decoder);
    ttm_packer_free(rec->packer);
    ttm_block_done(&rec->block);
    free(rec->body);
    free(rec->search);
    if (rec->fd >= 0)
        (void)close(rec->fd);
    free(rec);
}

/* ---- seeking ---- */

struct target {
    uint64_t time_ns;
    uint64_t offset; /* of the best section so far */
};

static void consider(struct target *target, uint64_t offset, uint64_t first_ns)
{
    if (target->offset == NOWHERE || first_ns <= target->time_ns)
        target->offset = offset;
}

static int read_index(struct ttm_recording *rec, struct target *target)
{
    const uint8_t *at = rec->block.columns[TTM_COLUMN_MISC].data;
    const uint8_t *const end = at + rec->block.columns[TTM_COLUMN_MISC].length;
    uint64_t count, offset = 0, first_ns = 0;

    if (!ttm_varint_get(&at, end, &count))
        return -EBADMSG;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t step, folded;
        if (!ttm_varint_get(&at, end, &step) || !ttm_varint_get(&at, end, &folded))
            return -EBADMSG;
        offset += step;
        first_ns += ttm_unfold(folded);
        consider(target, offset, first_ns);
    }
    return 0;
}

/* By the index of a finished file. Returns 0 or a negative errno: there is none. */
static int seek_by_index(struct ttm_recording *rec, uint64_t size, struct target *target)
{
    uint8_t buf[TTM_BLOCK_HEAD_SIZE];
    struct ttm_block_head head;
    uint64_t index;
    int r;

    if (size < TTM_FILE_HEAD_SIZE + TTM_FILE_END_SIZE || !rec->has_file_id ||
        read_at(rec, size - TTM_FILE_END_SIZE, buf, TTM_FILE_END_SIZE) != TTM_FILE_END_SIZE ||
        ttm_file_end_decode(buf, rec->file_id, &index) < 0 || index >= size ||
        read_at(rec, index, buf, sizeof(buf)) != sizeof(buf) ||
        ttm_block_head_decode(buf, &head) < 0 || head.kind != TTM_BLOCK_INDEX)
        return -ENOENT;
    const uint64_t before = rec->offset;
    rec->offset = index;
    r = read_body(rec, head.body_bytes);
    rec->offset = before;
    if (r <= 0)
        return r < 0 ? r : -ENOENT;
    r = ttm_block_unpack(rec->packer, &head, rec->body, &rec->block);
    return r < 0 ? r : read_index(rec, target);
}

/* From head to head; past a damaged one by searching. */
static int seek_by_scan(struct ttm_recording *rec, struct target *target)
{
    uint64_t offset = 0;

    while (1) {
        uint8_t buf[TTM_BLOCK_HEAD_SIZE];
        struct ttm_block_head head;
        int r = search_block(rec, &offset);
        if (r <= 0)
            return r;
        const ssize_t n = read_at(rec, offset, buf, sizeof(buf));
        if (n != sizeof(buf) || ttm_block_head_decode(buf, &head) == -EBADMSG)
            return n < 0 ? (int)n : 0; /* it was there a moment ago */
        if (head.kind == TTM_BLOCK_RECORDS && head.flags & TTM_BLOCK_SECTION)
            consider(target, offset, head.first_ns);
        offset += TTM_BLOCK_HEAD_SIZE + (uint64_t)head.body_bytes;
    }
}

int ttm_recording_seek(struct ttm_recording *rec, uint64_t time_ns)
{
    struct target target = {.time_ns = time_ns, .offset = NOWHERE};
    struct stat st;

    if (fstat(rec->fd, &st) < 0)
        return -errno;
    rec->is_in_block = false;
    if (seek_by_index(rec, (uint64_t)st.st_size, &target) < 0 || target.offset == NOWHERE) {
        target.offset = NOWHERE;
        const int r = seek_by_scan(rec, &target);
        if (r < 0)
            return r;
    }
    ttm_decoder_restart(rec->decoder);
    const bool is_head_damaged = rec->info.is_head_damaged;
    rec->info = (struct ttm_recording_info){.is_head_damaged = is_head_damaged};
    rec->is_searching = false;
    rec->events_total = 0;
    rec->events_seen = 0;
    rec->offset = target.offset != NOWHERE ? target.offset : TTM_FILE_HEAD_SIZE;
    return 0;
}

void ttm_recording_info(struct ttm_recording *rec, struct ttm_recording_info *ret)
{
    struct stat st;

    *ret = rec->info;
    ret->offset = rec->offset;
    ret->is_exact = ttm_decoder_is_exact(rec->decoder);
    ret->lost_events = ttm_decoder_lost_events(rec->decoder);
    if (rec->events_total > rec->events_seen)
        ret->lost_events += rec->events_total - rec->events_seen;
    ret->is_complete = ret->is_finished && !ret->is_head_damaged && ret->damaged_blocks == 0 &&
                       ret->skipped_blocks == 0 && ret->lost_events == 0 && ret->is_exact;
    if (fstat(rec->fd, &st) == 0)
        ret->size_bytes = (uint64_t)st.st_size;
    ret->is_being_written = flock(rec->fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    if (!ret->is_being_written)
        (void)flock(rec->fd, LOCK_UN);
}
