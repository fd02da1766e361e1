/* SPDX-License-Identifier: Apache-2.0 */
#include "ring/producer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file_limit.h"

#define PAGE 4096u

static size_t ring_stride(void)
{
    return sizeof(struct ttm_ring) + TTM_RING_SLOTS * sizeof(struct ttm_record);
}

static size_t header_bytes(void)
{
    return (sizeof(struct ttm_segment) + PAGE - 1) / PAGE * PAGE;
}

static size_t notes_offset(void)
{
    return header_bytes() + TTM_RINGS * ring_stride();
}

static size_t segment_bytes(void)
{
    return (notes_offset() + TTM_NOTES_BYTES + PAGE - 1) / PAGE * PAGE;
}

bool ttm_producer_is_allowed(void)
{
    return ttm_file_limit_allows(segment_bytes());
}

static int make_memfd(void)
{
    int fd = memfd_create("tt-mem", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return -errno;
    fd = ttm_own_fd_move_up(fd);
    if (fd < 0)
        return fd;
    if (ftruncate(fd, (off_t)segment_bytes()) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
        const int r = -errno;
        (void)close(fd);
        return r;
    }
    return fd;
}

int ttm_producer_new(struct ttm_producer *ret)
{
    void *mem = MAP_FAILED;
    int fd = -1, wake[2] = {-1, -1};
    int r;

    if (!ttm_producer_is_allowed())
        return -EFBIG;
    if (!ttm_own_fd_is_allowed())
        return -EMFILE;
    fd = make_memfd();
    if (fd < 0)
        return fd;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, wake) < 0) {
        r = -errno;
        goto fail;
    }
    r = ttm_own_fd_pair_move_up(wake);
    if (r < 0)
        goto fail;
    mem = mmap(NULL, segment_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mem == MAP_FAILED) {
        r = -errno;
        goto fail;
    }
    /* A core dump of the program need not hold it. */
    (void)madvise(mem, segment_bytes(), MADV_DONTDUMP);

    struct ttm_segment *segment = mem;
    segment->magic = TTM_SEGMENT_MAGIC;
    segment->version = TTM_SEGMENT_VERSION;
    segment->header_bytes = (uint32_t)header_bytes();
    segment->segment_bytes = segment_bytes();
    segment->ring_count = TTM_RINGS;
    segment->ring_slots = TTM_RING_SLOTS;
    segment->ring_stride = ring_stride();
    segment->notes_offset = notes_offset();
    segment->notes_bytes = TTM_NOTES_BYTES;
    *ret = (struct ttm_producer){.segment = segment,
                                 .fd = ttm_own_fd_of(fd),
                                 .wake_fd = ttm_own_fd_of(wake[0]),
                                 .sleep_fd = ttm_own_fd_of(wake[1])};
    return 0;

fail:
    for (int i = 0; i < 2; i++) {
        if (wake[i] >= 0)
            (void)close(wake[i]);
    }
    (void)close(fd);
    return r;
}

void ttm_producer_done(struct ttm_producer *producer)
{
    if (!producer->segment)
        return;
    (void)munmap(producer->segment, segment_bytes());
    ttm_own_fd_close(&producer->fd);
    ttm_own_fd_close(&producer->wake_fd);
    ttm_own_fd_close(&producer->sleep_fd);
    producer->segment = NULL;
}

static struct ttm_ring *ring_at(struct ttm_segment *segment, uint32_t number)
{
    return (struct ttm_ring *)((char *)segment + header_bytes() + number * ring_stride());
}

static bool try_claim(struct ttm_producer *producer, uint32_t number, uint32_t tid)
{
    uint32_t nobody = 0;

    /* acquire: pairs with the release in ttm_producer_release(); its tail is ours to go on from. */
    if (!atomic_compare_exchange_strong_explicit(&producer->owners[number], &nobody, tid,
                                                 memory_order_acquire, memory_order_relaxed))
        return false;
    /* relaxed: for the reader, as a fact to show. */
    atomic_store_explicit(&ring_at(producer->segment, number)->owner, tid, memory_order_relaxed);
    return true;
}

/* Raises what the reader sees to 'value'; another thread may have raised it further. */
static void publish_at_least(_Atomic uint32_t *shared, uint32_t value)
{
    uint32_t there = atomic_load_explicit(shared, memory_order_seq_cst);

    /* seq_cst: comes before our look at whether the reader sleeps. */
    while (there < value && !atomic_compare_exchange_weak_explicit(
                                shared, &there, value, memory_order_seq_cst, memory_order_seq_cst))
        ;
}

/* A ring that was never used, NULL when all were. */
static struct ttm_ring *claim_fresh(struct ttm_producer *producer, uint32_t tid)
{
    uint32_t used = atomic_load_explicit(&producer->rings_used, memory_order_relaxed); /* swapped */

    while (used < TTM_RINGS) {
        /* relaxed: nothing of the ring precedes it but zeros. */
        if (!atomic_compare_exchange_weak_explicit(&producer->rings_used, &used, used + 1,
                                                   memory_order_relaxed, memory_order_relaxed))
            continue;
        publish_at_least(&producer->segment->rings_used, used + 1);
        if (try_claim(producer, used, tid))
            return ring_at(producer->segment, used);
        used++;
    }
    return NULL;
}

uint32_t ttm_producer_rings_used(const struct ttm_producer *producer)
{
    /* relaxed: a ring that is missed is only used, or looked at, a little later. */
    return atomic_load_explicit(&producer->rings_used, memory_order_relaxed);
}

struct ttm_ring *ttm_producer_claim(struct ttm_producer *producer, uint32_t tid)
{
    const uint32_t used = ttm_producer_rings_used(producer);

    for (uint32_t i = 0; i < used; i++) {
        if (try_claim(producer, i, tid))
            return ring_at(producer->segment, i);
    }
    return claim_fresh(producer, tid);
}

uint32_t ttm_producer_number(const struct ttm_producer *producer, const struct ttm_ring *ring)
{
    const size_t offset = (size_t)((const char *)ring - (const char *)producer->segment);

    return (uint32_t)((offset - header_bytes()) / ring_stride());
}

void ttm_producer_release(struct ttm_producer *producer, struct ttm_ring *ring)
{
    atomic_store_explicit(&ring->owner, 0, memory_order_relaxed); /* see try_claim() */
    /* release: pairs with the acquire in try_claim(). */
    atomic_store_explicit(&producer->owners[ttm_producer_number(producer, ring)], 0,
                          memory_order_release);
}

struct ttm_ring *ttm_producer_ring(const struct ttm_producer *producer, uint32_t number)
{
    return ring_at(producer->segment, number);
}

/* Whether the reader has read all of a ring that is ours, or that nobody has. */
static bool is_read(struct ttm_ring *ring)
{
    /* acquire: pairs with the reader's release of head, as in is_full(). */
    return atomic_load_explicit(&ring->head, memory_order_acquire) ==
           atomic_load_explicit(&ring->tail, memory_order_relaxed);
}

/* One that somebody has given back, and that was read. */
static struct ttm_ring *claim_read(struct ttm_producer *producer, uint32_t tid)
{
    const uint32_t used = ttm_producer_rings_used(producer);

    for (uint32_t i = 0; i < used; i++) {
        struct ttm_ring *ring = ring_at(producer->segment, i);
        if (atomic_load_explicit(&producer->owners[i], memory_order_relaxed) != 0 ||
            !is_read(ring) || !try_claim(producer, i, tid))
            continue;
        if (is_read(ring)) /* others may have had it in between */
            return ring;
        ttm_producer_release(producer, ring);
    }
    return NULL;
}

/* One that nobody ever had, as long as there are some. */
static struct ttm_ring *claim_spare(struct ttm_producer *producer, uint32_t tid)
{
    uint32_t taken = atomic_load_explicit(&producer->spares, memory_order_relaxed); /* a number */

    do {
        if (taken >= TTM_SPARE_RINGS)
            return NULL;
    } while (!atomic_compare_exchange_weak_explicit(&producer->spares, &taken, taken + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    return claim_fresh(producer, tid);
}

struct ttm_ring *ttm_producer_go_on(struct ttm_producer *producer, struct ttm_ring *own,
                                    struct ttm_ring *full)
{
    /* relaxed: it is this thread's. */
    const uint32_t tid = atomic_load_explicit(&producer->owners[ttm_producer_number(producer, own)],
                                              memory_order_relaxed);
    struct ttm_ring *next = full != own && is_read(own) ? own : NULL;

    if (!next)
        next = claim_read(producer, tid);
    if (!next)
        next = claim_spare(producer, tid);
    if (!next)
        return NULL;
    next->head_seen = atomic_load_explicit(&next->tail, memory_order_relaxed); /* it is empty */
    /* relaxed: the next release of its tail publishes them. */
    atomic_store_explicit(&next->follows_tail,
                          atomic_load_explicit(&full->tail, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&next->follows, ttm_producer_number(producer, full) + 1,
                          memory_order_relaxed);
    if (full != own)
        ttm_producer_release(producer, full);
    return next;
}

/*
 * Wakes the reader, which has announced that it sleeps, unless another thread does.
 *
 * By an empty message through a socket that keeps them apart. The program may have closed our end
 * and opened a file of its own under that number: a socket can be told from any other file, as an
 * eventfd cannot; and should it happen between our look and the write, nothing is written to
 * whatever it is. Nor is there a signal when the other end is gone, as there is with a pipe. The
 * reader is told by the kernel when our end is closed, and looks by itself from then on.
 */
static void wake_reader(struct ttm_producer *producer)
{
    if (atomic_exchange_explicit(&producer->segment->reader_sleep, TTM_READER_AWAKE,
                                 memory_order_seq_cst) == TTM_READER_AWAKE)
        return;
    const int saved_errno = errno; /* the host may be about to read it */
    /* Not write(), which is a cancellation point: the thread would end in mid-event. */
    if (ttm_own_fd_is_ours(&producer->wake_fd))
        (void)syscall(SYS_write, producer->wake_fd.fd, "", 0);
    errno = saved_errno;
}

static bool is_filling_up(struct ttm_ring *ring, uint64_t tail)
{
    if (tail - ring->head_seen < TTM_RING_WAKE_AT)
        return false;
    ring->head_seen = atomic_load_explicit(&ring->head, memory_order_acquire); /* as below */
    return tail - ring->head_seen >= TTM_RING_WAKE_AT;
}

void ttm_ring_lose(struct ttm_producer *producer, struct ttm_ring *ring)
{
    /* relaxed: only we write it. */
    const uint64_t lost = atomic_load_explicit(&ring->lost, memory_order_relaxed);

    /*
     * seq_cst, both: the reader may have emptied the ring and gone to sleep since we found it
     * full. It announces its sleep and looks at this once more, in that order.
     */
    atomic_store_explicit(&ring->lost, lost + 1, memory_order_seq_cst);
    if (atomic_load_explicit(&producer->segment->reader_sleep, memory_order_seq_cst) !=
        TTM_READER_AWAKE)
        wake_reader(producer);
}

bool ttm_ring_is_full(struct ttm_ring *ring, uint64_t tail)
{
    /* acquire: pairs with the reader's release of head; it has copied what we write over. */
    ring->head_seen = atomic_load_explicit(&ring->head, memory_order_acquire);
    return tail - ring->head_seen >= TTM_RING_SLOTS;
}

void ttm_ring_call_reader(struct ttm_producer *producer, struct ttm_ring *ring, uint64_t tail,
                          uint32_t sleep)
{
    const bool is_late = is_filling_up(ring, tail);

    if (sleep != TTM_READER_AWAKE && (sleep != TTM_READER_DOZING || is_late))
        wake_reader(producer);
}

bool ttm_ring_push(struct ttm_producer *producer, struct ttm_ring *ring,
                   const struct ttm_record *record)
{
    uint64_t tail;
    struct ttm_record *slot = ttm_ring_next(ring, &tail);

    if (!slot) {
        ttm_ring_lose(producer, ring);
        return false;
    }
    memcpy(slot, record, sizeof(*record));
    ttm_ring_publish(producer, ring, tail);
    return true;
}

uint32_t ttm_producer_note(struct ttm_producer *producer, uint32_t kind, const void *bytes,
                           uint32_t length)
{
    struct ttm_segment *segment = producer->segment;

    if (length > TTM_NOTES_BYTES / 2)
        return 0;
    const uint32_t size = (uint32_t)(sizeof(struct ttm_note) + length + 7) / 8 * 8;
    /* relaxed: the place is ours by the swap alone; the kind below publishes it. */
    uint32_t at = atomic_load_explicit(&producer->notes_used, memory_order_relaxed);
    /* No addition that is taken back: what others got meanwhile would be given out twice. */
    do {
        if (at > TTM_NOTES_BYTES - size)
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(&producer->notes_used, &at, at + size,
                                                    memory_order_relaxed, memory_order_relaxed));
    publish_at_least(&segment->notes_used, at + size);
    struct ttm_note *note = (struct ttm_note *)((char *)segment + notes_offset() + at);
    note->length = length;
    memcpy(note + 1, bytes, length);
    /* release: pairs with the reader's acquire; a note is whole when its kind is there. */
    atomic_store_explicit(&note->kind, kind, memory_order_release);
    return at / 8 + TTM_NOTE_FIRST;
}

const void *ttm_producer_read_note(const struct ttm_producer *producer, uint32_t number,
                                   uint32_t kind, uint32_t *ret_length)
{
    const uint64_t at = ((uint64_t)number - TTM_NOTE_FIRST) * 8;

    if (number < TTM_NOTE_FIRST || at > TTM_NOTES_BYTES - sizeof(struct ttm_note))
        return NULL;
    const struct ttm_note *note =
        (const struct ttm_note *)((const char *)producer->segment + notes_offset() + at);
    /* acquire: pairs with the release in ttm_producer_note(). */
    if (atomic_load_explicit(&note->kind, memory_order_acquire) != kind)
        return NULL;
    /* The other side can write here too: whatever it says, we stay within the area. */
    const uint32_t length = *(const volatile uint32_t *)&note->length;
    if (length > TTM_NOTES_BYTES - sizeof(*note) - at)
        return NULL;
    *ret_length = length;
    return note + 1;
}
