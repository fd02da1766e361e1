/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks go round between the two threads in two rings of pointers, full ones one
 * way and empty ones the other. Each ring has one who puts and one who takes, and
 * room for every block there is, so putting cannot fail. An eventfd wakes the
 * writing thread. Nothing else is shared but three counters.
 */
#include "recording/recorder.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/quiet_thread.h"
#include "base/text.h"
#include "recording/block.h"
#include "recording/output.h"

#define BLOCKS 16 /* a power of two */
#define FLUSH_NS TTM_NS_PER_S
#define TICK_NS TTM_NS_PER_S
/* No file is shorter in time: each begins with all that is live, however little may follow. */
#define FILE_AGE_MIN_NS (10 * TTM_NS_PER_S)

struct ring {
    struct ttm_block *blocks[BLOCKS];
    _Atomic uint32_t put;  /* written by the one who puts */
    _Atomic uint32_t took; /* written by the one who takes */
};

static void ring_put(struct ring *ring, struct ttm_block *block)
{
    const uint32_t put = atomic_load_explicit(&ring->put, memory_order_relaxed); /* ours */

    ring->blocks[put % BLOCKS] = block;
    /* release: pairs with the acquire of 'put' in ring_take(); the block comes first. */
    atomic_store_explicit(&ring->put, put + 1, memory_order_release);
}

/* Returns NULL when there is none. */
static struct ttm_block *ring_take(struct ring *ring)
{
    const uint32_t took = atomic_load_explicit(&ring->took, memory_order_relaxed); /* ours */

    /* acquire: pairs with the release in ring_put(). */
    if (took == atomic_load_explicit(&ring->put, memory_order_acquire))
        return NULL;
    struct ttm_block *block = ring->blocks[took % BLOCKS];
    /* relaxed: the ring has room for all blocks, so nobody waits for the place. */
    atomic_store_explicit(&ring->took, took + 1, memory_order_relaxed);
    return block;
}

struct ttm_recorder {
    /* Of the thread that made it. */
    struct ttm_encoder *encoder;
    struct ttm_block blocks[BLOCKS];
    uint32_t used_blocks; /* those from here on were never written to, and have no memory yet */
    uint64_t seed;
    uint64_t file_start_ns;
    uint64_t file_id;
    uint64_t flushed_ns;
    uint64_t ticked_ns;
    uint64_t lost_events_said;
    bool is_error_said;
    bool is_thread_there;

    /* Of both. */
    struct ring full;
    struct ring empty;
    int wake_fd;
    _Atomic bool is_stopping;
    _Atomic int error;
    _Atomic uint64_t bytes;      /* in all files */
    _Atomic uint64_t file_bytes; /* in the present one */
    _Atomic uint32_t files;

    /* Of the writing thread, once it runs. */
    pthread_t thread;
    struct ttm_packer *packer;
    struct ttm_output *output;
    uint64_t output_id;
    uint64_t closed_bytes; /* in files before the present one */
    char *folder;          /* NULL: one file */
    struct ttm_rotation_limits limits;
};

/* ---- the writing thread ---- */

/* relaxed throughout: single values that nothing else depends on. */
static void publish(struct ttm_recorder *rec)
{
    const uint64_t bytes = rec->output ? ttm_output_bytes(rec->output) : 0;

    atomic_store_explicit(&rec->file_bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(&rec->bytes, rec->closed_bytes + bytes, memory_order_relaxed);
}

static int next_output(struct ttm_recorder *rec, const struct ttm_block_head *head)
{
    struct ttm_output *next = NULL;
    int r;

    r = ttm_output_finish(rec->output, rec->packer);
    if (r < 0)
        return r;
    r = ttm_output_open_in(rec->folder, head->first_ns + (uint64_t)head->wall_offset_ns,
                           head->file_id, &next);
    if (r < 0)
        return r;
    rec->closed_bytes += ttm_output_bytes(rec->output);
    ttm_output_free(rec->output);
    rec->output = next;
    rec->output_id = head->file_id;
    (void)atomic_fetch_add_explicit(&rec->files, 1, memory_order_relaxed);
    /* A folder that cannot be trimmed now is trimmed with the next file. */
    (void)ttm_rotation_trim(rec->folder, rec->limits.total_bytes,
                            ttm_base_name(ttm_output_path(next)));
    return 0;
}

static int write_block(struct ttm_recorder *rec, struct ttm_block *block)
{
    if (block->head.file_id != rec->output_id) {
        const int r = next_output(rec, &block->head);
        if (r < 0)
            return r;
    }
    return ttm_output_write(rec->output, rec->packer, block);
}

static void drain(struct ttm_recorder *rec)
{
    struct ttm_block *block;

    while ((block = ring_take(&rec->full))) {
        if (atomic_load_explicit(&rec->error, memory_order_relaxed) == 0) { /* only we write it */
            const int r = write_block(rec, block);
            if (r < 0)
                atomic_store_explicit(&rec->error, r, memory_order_relaxed);
            publish(rec);
        }
        ring_put(&rec->empty, block);
    }
}

static void *write_blocks(void *arg)
{
    struct ttm_recorder *rec = arg;
    bool is_stopping;
    uint64_t count;

    do {
        (void)!read(rec->wake_fd, &count, sizeof(count)); /* whatever woke us, we look */
        /* acquire: pairs with the release in stop(); what was put before it is seen below. */
        is_stopping = atomic_load_explicit(&rec->is_stopping, memory_order_acquire);
        drain(rec);
    } while (!is_stopping);
    return NULL;
}

static int start_thread(struct ttm_recorder *rec)
{
    const int r = ttm_quiet_thread_start(&rec->thread, NULL, write_blocks, rec);

    rec->is_thread_there = r == 0;
    return r;
}

/* ---- the thread that made it ---- */

static void wake(struct ttm_recorder *rec)
{
    const uint64_t one = 1;

    (void)!write(rec->wake_fd, &one, sizeof(one)); /* it cannot be full: each wake reads it to 0 */
}

/* One that came back, whose pages are there and in the caches; else one more. NULL: all are full. */
static struct ttm_block *take_empty(struct ttm_recorder *rec)
{
    struct ttm_block *block = ring_take(&rec->empty);

    return block || rec->used_blocks == BLOCKS ? block : &rec->blocks[rec->used_blocks++];
}

static struct ttm_block *pass(void *arg, struct ttm_block *full)
{
    struct ttm_recorder *rec = arg;
    struct ttm_block *next = take_empty(rec);

    if (!next)
        return NULL;
    ring_put(&rec->full, full);
    if (rec->is_thread_there)
        wake(rec);
    else
        drain(rec); /* we may wait: at the end, or always */
    return next;
}

static void stop_thread(struct ttm_recorder *rec)
{
    if (!rec->is_thread_there)
        return;
    /* release: pairs with the acquire in write_blocks(). */
    atomic_store_explicit(&rec->is_stopping, true, memory_order_release);
    wake(rec);
    (void)pthread_join(rec->thread, NULL);
    rec->is_thread_there = false;
}

static void free_recorder(struct ttm_recorder *rec)
{
    stop_thread(rec);
    (void)ttm_encoder_free(rec->encoder); /* its block is one of ours */
    for (size_t i = 0; i < BLOCKS; i++)
        ttm_block_done(&rec->blocks[i]);
    ttm_packer_free(rec->packer);
    ttm_output_free(rec->output);
    free(rec->folder);
    if (rec->wake_fd >= 0)
        (void)close(rec->wake_fd);
    free(rec);
}

static int make_blocks(struct ttm_recorder *rec)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        const int r = ttm_block_init(&rec->blocks[i]);
        if (r < 0)
            return r;
    }
    rec->used_blocks = 1; /* the encoder begins with the first */
    return 0;
}

static int make_encoder(struct ttm_recorder *rec, const struct ttm_recorder_options *options)
{
    const struct ttm_encoder_options with = {
        .file_id = rec->file_id,
        .wall_offset_ns = (int64_t)(options->now_wall_ns - options->now_ns),
        .start_ns = options->now_ns,
        .seed = options->seed,
        .section_events = options->section_events,
        .pass = pass,
        .pass_arg = rec,
        .block = &rec->blocks[0],
    };

    rec->encoder = ttm_encoder_new(&with);
    return rec->encoder ? 0 : -ENOMEM;
}

static int open_output(struct ttm_recorder *rec, const struct ttm_recorder_options *options)
{
    int r;

    rec->output_id = rec->file_id;
    if (options->path)
        return ttm_output_open(options->path, rec->file_id, &rec->output);
    rec->folder = strdup(options->folder);
    if (!rec->folder)
        return -ENOMEM;
    r = ttm_output_open_in(rec->folder, options->now_wall_ns, rec->file_id, &rec->output);
    if (r == 0)
        (void)ttm_rotation_trim(rec->folder, rec->limits.total_bytes,
                                ttm_base_name(ttm_output_path(rec->output)));
    return r;
}

int ttm_recorder_open(const struct ttm_recorder_options *options, struct ttm_recorder **ret)
{
    struct ttm_recorder *rec = calloc(1, sizeof(*rec));
    int r;

    if (!rec)
        return -ENOMEM;
    rec->wake_fd = eventfd(0, EFD_CLOEXEC);
    if (rec->wake_fd < 0) {
        r = -errno;
        goto fail;
    }
    rec->seed = options->seed;
    rec->file_id = ttm_hash_u64(options->seed ^ options->now_wall_ns);
    rec->file_start_ns = rec->ticked_ns = options->now_ns;
    rec->limits = options->limits;
    ttm_rotation_limits_fill(&rec->limits);
    rec->packer = ttm_packer_new();
    r = rec->packer ? make_blocks(rec) : -ENOMEM;
    if (r == 0)
        r = make_encoder(rec, options);
    if (r == 0)
        r = open_output(rec, options);
    if (r < 0)
        goto fail;
    atomic_store_explicit(&rec->files, 1, memory_order_relaxed); /* the thread is not there yet */
    publish(rec);
    r = options->is_patient ? 0 : start_thread(rec);
    if (r < 0)
        goto fail;
    *ret = rec;
    return 0;

fail:
    free_recorder(rec);
    return r;
}

const char *ttm_recorder_path(const struct ttm_recorder *rec)
{
    return ttm_output_path(rec->output); /* the thread changes it in a folder alone */
}

struct ttm_encoder *ttm_recorder_encoder(struct ttm_recorder *rec)
{
    return rec->encoder;
}

static bool is_next_file_due(const struct ttm_recorder *rec, uint64_t now_ns)
{
    const uint64_t age_ns = now_ns - rec->file_start_ns;

    if (!rec->folder || age_ns < FILE_AGE_MIN_NS)
        return false;
    /* relaxed: a block more or less in a file is of no account. */
    return age_ns >= rec->limits.file_age_ns ||
           atomic_load_explicit(&rec->file_bytes, memory_order_relaxed) >= rec->limits.file_bytes;
}

/* When the next flush is due: a second after the first event, and after the flush before. */
static bool flush_due_ns(const struct ttm_recorder *rec, uint64_t *ret)
{
    uint64_t since_ns;

    if (!ttm_encoder_is_dirty(rec->encoder, &since_ns))
        return false;
    *ret = (since_ns > rec->flushed_ns ? since_ns : rec->flushed_ns) + FLUSH_NS;
    return true;
}

int ttm_recorder_tick(struct ttm_recorder *rec, uint64_t now_ns, uint64_t now_wall_ns)
{
    const int error = atomic_load_explicit(&rec->error, memory_order_relaxed); /* one value */
    uint64_t due_ns;

    rec->ticked_ns = now_ns;
    if (error < 0) {
        const bool is_news = !rec->is_error_said;
        rec->is_error_said = true;
        return is_news ? error : 0;
    }
    if (is_next_file_due(rec, now_ns)) {
        rec->file_id = ttm_hash_u64(rec->file_id ^ rec->seed ^ now_ns);
        rec->file_start_ns = now_ns;
        atomic_store_explicit(&rec->file_bytes, 0, memory_order_relaxed); /* not again at once */
        ttm_encoder_next_file(rec->encoder, rec->file_id, (int64_t)(now_wall_ns - now_ns));
    } else if (flush_due_ns(rec, &due_ns) && now_ns >= due_ns) {
        rec->flushed_ns = now_ns;
        ttm_encoder_flush(rec->encoder);
    }
    const uint64_t lost = ttm_encoder_lost_events(rec->encoder);
    const bool is_more = lost > rec->lost_events_said;
    rec->lost_events_said = lost;
    return is_more;
}

/* Whether a block has not come back yet from the thread that writes it. */
static bool is_writing(const struct ttm_recorder *rec)
{
    /* acquire: pairs with the release in ring_put(); an error of that block is seen after it. */
    return atomic_load_explicit(&rec->empty.put, memory_order_acquire) !=
           atomic_load_explicit(&rec->full.put, memory_order_relaxed); /* ours */
}

int ttm_recorder_timeout_ms(const struct ttm_recorder *rec, uint64_t now_ns)
{
    uint64_t due_ns = UINT64_MAX;

    /* What has stopped need not be waited for. */
    if (rec->is_error_said)
        return -1;
    /* How it went is looked at also when nothing more comes. */
    const bool is_open = is_writing(rec);
    if (atomic_load_explicit(&rec->error, memory_order_relaxed) < 0) /* one value */
        return 0;
    if (!flush_due_ns(rec, &due_ns) && !is_open)
        return -1;
    /* Where blocks are full before a flush is due, none ever is; the rest has to be looked at. */
    if (due_ns > rec->ticked_ns + TICK_NS)
        due_ns = rec->ticked_ns + TICK_NS;
    if (due_ns <= now_ns)
        return 0;
    const uint64_t left_ms = (due_ns - now_ns) / TTM_NS_PER_MS + 1;
    return left_ms < INT_MAX ? (int)left_ms : INT_MAX;
}

void ttm_recorder_flush(struct ttm_recorder *rec)
{
    ttm_encoder_flush(rec->encoder);
}

void ttm_recorder_status(const struct ttm_recorder *rec, struct ttm_recorder_status *ret)
{
    *ret = (struct ttm_recorder_status){
        .bytes = atomic_load_explicit(&rec->bytes, memory_order_relaxed),
        .lost_events = ttm_encoder_lost_events(rec->encoder),
        .files = atomic_load_explicit(&rec->files, memory_order_relaxed),
        .error = atomic_load_explicit(&rec->error, memory_order_relaxed),
        .is_error_said = rec->is_error_said,
    };
}

int ttm_recorder_close(struct ttm_recorder *rec, char **ret_path)
{
    if (ret_path)
        *ret_path = NULL;
    if (!rec)
        return 0;
    stop_thread(rec);
    ttm_encoder_finish(rec->encoder);
    int r = atomic_load_explicit(&rec->error, memory_order_relaxed);
    if (r == 0)
        r = ttm_output_finish(rec->output, rec->packer);
    if (ret_path && rec->output)
        *ret_path = strdup(ttm_output_path(rec->output));
    free_recorder(rec);
    return r;
}
