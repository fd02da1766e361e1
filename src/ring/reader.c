/* SPDX-License-Identifier: Apache-2.0 */
#include "ring/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* Checks the header and keeps a copy of what it says. 'bytes' is the real size of the file. */
static int read_header(const struct ttm_segment *segment, uint64_t bytes,
                       struct ttm_ring_reader *reader)
{
    struct ttm_segment copy;

    memcpy(&copy, segment, offsetof(struct ttm_segment, rings_used));
    /* From here on nothing is read from the segment again, whatever the compiler would like. */
    atomic_signal_fence(memory_order_seq_cst);
    if (copy.magic != TTM_SEGMENT_MAGIC || copy.version != TTM_SEGMENT_VERSION)
        return -EBADMSG;
    if (copy.ring_count == 0 || copy.ring_count > TTM_SEGMENT_RINGS_MAX || copy.ring_slots == 0 ||
        copy.ring_slots > 1u << 24 || (copy.ring_slots & (copy.ring_slots - 1)) != 0)
        return -EBADMSG;
    const uint64_t ring_bytes =
        sizeof(struct ttm_ring) + (uint64_t)copy.ring_slots * sizeof(struct ttm_record);
    if (copy.header_bytes < TTM_SEGMENT_HEADER_LEAST || copy.header_bytes % 64 != 0 ||
        copy.ring_stride < ring_bytes || copy.ring_stride % 64 != 0 ||
        copy.ring_stride > TTM_SEGMENT_BYTES_MAX)
        return -EBADMSG;
    const uint64_t rings_end = copy.header_bytes + copy.ring_count * copy.ring_stride;
    if (rings_end > bytes || copy.notes_offset < rings_end || copy.notes_offset % 8 != 0 ||
        copy.notes_offset > bytes || copy.notes_bytes > bytes - copy.notes_offset ||
        copy.notes_bytes > UINT32_MAX)
        return -EBADMSG;
    reader->bytes = bytes;
    reader->ring_count = copy.ring_count;
    reader->ring_slots = copy.ring_slots;
    reader->ring_stride = copy.ring_stride;
    reader->rings_offset = copy.header_bytes;
    reader->notes_offset = copy.notes_offset;
    reader->notes_bytes = copy.notes_bytes;
    return 0;
}

static struct ttm_ring *ring_at(const struct ttm_ring_reader *reader, uint32_t number);
static uint32_t rings_used(const struct ttm_ring_reader *reader);

/* Goes on where the last reader of the segment stopped. */
static void begin_at_heads(struct ttm_ring_reader *reader)
{
    const uint32_t used = rings_used(reader);

    for (uint32_t i = 0; i < used; i++) {
        /* relaxed: no other reader is there any more. */
        reader->heads[i] = atomic_load_explicit(&ring_at(reader, i)->head, memory_order_relaxed);
        reader->is_late = reader->is_late || reader->heads[i] != 0;
    }
}

int ttm_ring_reader_open(int fd, struct ttm_ring_reader *ret)
{
    struct ttm_ring_reader reader = {0};
    void *mem = MAP_FAILED;
    struct stat st;
    int r;

    /* Without this seal the client could shrink the file later and kill us with SIGBUS. */
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK))
        return -EPERM;
    /* Nor may it lie where a page can be taken away for good, as in huge pages with a hole. */
    struct statfs fs;
    if (fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC)
        return -EPERM;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_size < (off_t)TTM_SEGMENT_HEADER_LEAST || st.st_size > (off_t)TTM_SEGMENT_BYTES_MAX)
        return -EBADMSG;
    mem = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mem == MAP_FAILED)
        return -errno;
    r = read_header(mem, (uint64_t)st.st_size, &reader);
    if (r < 0)
        goto fail;
    reader.heads = calloc(reader.ring_count, sizeof(reader.heads[0]));
    reader.marks = calloc(reader.ring_count, sizeof(reader.marks[0]));
    reader.goals = calloc(reader.ring_count, sizeof(reader.goals[0]));
    if (!reader.heads || !reader.marks || !reader.goals) {
        r = -ENOMEM;
        goto fail;
    }
    reader.segment = mem;
    begin_at_heads(&reader);
    *ret = reader;
    return 0;

fail:
    free(reader.heads);
    free(reader.marks);
    free(reader.goals);
    (void)munmap(mem, (size_t)st.st_size);
    return r;
}

/* Pieces, as other threads may wait for the lock of our address space meanwhile. */
#define UNMAP_AT_ONCE ((uint64_t)8 << 20)

static void unmap(void *memory, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += UNMAP_AT_ONCE)
        (void)munmap((char *)memory + at, bytes - at < UNMAP_AT_ONCE ? bytes - at : UNMAP_AT_ONCE);
}

void ttm_ring_reader_close(struct ttm_ring_reader *reader)
{
    if (reader->segment)
        unmap(reader->segment, reader->bytes);
    free(reader->heads);
    free(reader->marks);
    free(reader->goals);
    *reader = (struct ttm_ring_reader){0};
}

static struct ttm_ring *ring_at(const struct ttm_ring_reader *reader, uint32_t number)
{
    return (struct ttm_ring *)((char *)reader->segment + reader->rings_offset +
                               number * reader->ring_stride);
}

static uint32_t rings_used(const struct ttm_ring_reader *reader)
{
    /* seq_cst: of a sleep, it comes after the announcement; see ttm_producer_claim(). */
    const uint32_t used = atomic_load_explicit(&reader->segment->rings_used, memory_order_seq_cst);

    return used < reader->ring_count ? used : reader->ring_count;
}

/* Whether what is in the ring comes after something that was not read yet. */
static bool is_to_wait(const struct ttm_ring_reader *reader, struct ttm_ring *ring)
{
    /* relaxed: both were written before the tail that we have acquired. */
    const uint32_t follows = atomic_load_explicit(&ring->follows, memory_order_relaxed);

    return follows != 0 && follows <= rings_used(reader) &&
           (int64_t)(reader->heads[follows - 1] -
                     atomic_load_explicit(&ring->follows_tail, memory_order_relaxed)) < 0;
}

/*
 * Copies from one ring, unless it is to wait and '*waiting' is not NULL, where that is counted. A
 * tail that makes no sense loses what the ring held, and is counted.
 */
static uint32_t read_ring(struct ttm_ring_reader *reader, uint32_t number,
                          struct ttm_record *records, uint32_t max, uint32_t *waiting)
{
    struct ttm_ring *ring = ring_at(reader, number);
    const struct ttm_record *slots = (const struct ttm_record *)(ring + 1);
    const uint64_t head = reader->heads[number];
    /* acquire: pairs with the release in ttm_ring_publish(); the records are there. */
    const uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    uint64_t n = tail - head;

    if (n == 0)
        return 0;
    if (waiting && is_to_wait(reader, ring)) {
        (*waiting)++;
        return 0;
    }
    if (n > reader->ring_slots) {
        reader->corrupt++;
        reader->heads[number] = tail;
        atomic_store_explicit(&ring->head, tail, memory_order_release);
        return 0;
    }
    if (n > max)
        n = max;
    const uint64_t first = head & (reader->ring_slots - 1);
    const uint64_t until_end = reader->ring_slots - first;
    const uint64_t in_one = n < until_end ? n : until_end;
    memcpy(records, slots + first, in_one * sizeof(records[0]));
    memcpy(records + in_one, slots, (n - in_one) * sizeof(records[0]));
    reader->heads[number] = head + n;
    /* release: pairs with the acquire of head in is_full() of the producer; the copy above comes first. */
    atomic_store_explicit(&ring->head, head + n, memory_order_release);
    return (uint32_t)n;
}

/* One look at each ring, until one of them has something. */
static uint32_t look_around(struct ttm_ring_reader *reader, struct ttm_record *records,
                            uint32_t max, uint64_t *ret_passed, uint32_t *waiting)
{
    const uint32_t used = rings_used(reader);

    for (uint32_t looked = 0; looked < used; looked++) {
        if (reader->at_ring >= used) {
            reader->at_ring = 0;
            (*ret_passed)++;
        }
        const uint32_t n = read_ring(reader, reader->at_ring++, records, max, waiting);
        if (n > 0)
            return n;
    }
    return 0;
}

uint32_t ttm_ring_reader_read(struct ttm_ring_reader *reader, struct ttm_record *records,
                              uint32_t max, uint64_t *ret_passed)
{
    uint64_t again = 0; /* it is the same pass */
    uint32_t waiting = 0;
    const uint32_t n = look_around(reader, records, max, ret_passed, &waiting);

    /* Of rings that wait, one waits for something that can be read, unless somebody lies. */
    return n > 0 || waiting == 0 ? n : look_around(reader, records, max, &again, NULL);
}

static uint32_t take_tails(const struct ttm_ring_reader *reader, uint64_t *tails)
{
    const uint32_t used = rings_used(reader);

    for (uint32_t i = 0; i < used; i++) /* acquire: as in read_ring() */
        tails[i] = atomic_load_explicit(&ring_at(reader, i)->tail, memory_order_acquire);
    return used;
}

static bool is_past(const struct ttm_ring_reader *reader, const uint64_t *tails, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if ((int64_t)(reader->heads[i] - tails[i]) < 0)
            return false;
    }
    return true;
}

void ttm_ring_reader_mark(struct ttm_ring_reader *reader)
{
    reader->marked = take_tails(reader, reader->marks);
}

bool ttm_ring_reader_is_past_mark(const struct ttm_ring_reader *reader)
{
    return is_past(reader, reader->marks, reader->marked);
}

void ttm_ring_reader_aim(struct ttm_ring_reader *reader)
{
    reader->aimed = take_tails(reader, reader->goals);
}

bool ttm_ring_reader_is_past_aim(const struct ttm_ring_reader *reader)
{
    return is_past(reader, reader->goals, reader->aimed);
}

uint64_t ttm_ring_reader_lost(const struct ttm_ring_reader *reader)
{
    const uint32_t used = rings_used(reader);
    uint64_t lost = 0;

    for (uint32_t i = 0; i < used; i++) /* seq_cst: of a sleep, it comes after the announcement */
        lost += atomic_load_explicit(&ring_at(reader, i)->lost, memory_order_seq_cst);
    return lost;
}

static bool is_empty(const struct ttm_ring_reader *reader)
{
    const uint32_t used = rings_used(reader);

    for (uint32_t i = 0; i < used; i++) {
        if (atomic_load_explicit(&ring_at(reader, i)->tail, memory_order_seq_cst) !=
            reader->heads[i])
            return false;
    }
    return true;
}

uint32_t ttm_ring_reader_used(const struct ttm_ring_reader *reader)
{
    return rings_used(reader);
}

bool ttm_ring_reader_has_more(const struct ttm_ring_reader *reader)
{
    return !is_empty(reader);
}

bool ttm_ring_reader_sleep(struct ttm_ring_reader *reader)
{
    /* seq_cst: comes before our look at the tails and losses; see ttm_ring_publish(). */
    atomic_store_explicit(&reader->segment->reader_sleep, TTM_READER_ASLEEP, memory_order_seq_cst);
    if (is_empty(reader))
        return true;
    ttm_ring_reader_wake(reader);
    return false;
}

void ttm_ring_reader_wake(struct ttm_ring_reader *reader)
{
    /* relaxed: a producer that does not read it yet wakes us once more than needed. */
    atomic_store_explicit(&reader->segment->reader_sleep, TTM_READER_AWAKE, memory_order_relaxed);
}

void ttm_ring_reader_doze(struct ttm_ring_reader *reader)
{
    /* relaxed: what is pushed before a producer reads it is found when we look by ourselves. */
    atomic_store_explicit(&reader->segment->reader_sleep, TTM_READER_DOZING, memory_order_relaxed);
}

long ttm_ring_reader_note(const struct ttm_ring_reader *reader, uint32_t number, uint32_t kind,
                          void *ret, uint32_t max)
{
    const uint64_t at = ((uint64_t)number - TTM_NOTE_FIRST) * 8;

    if (number < TTM_NOTE_FIRST || reader->notes_bytes < sizeof(struct ttm_note) ||
        at > reader->notes_bytes - sizeof(struct ttm_note))
        return -ENOENT;
    struct ttm_note *note =
        (struct ttm_note *)((char *)reader->segment + reader->notes_offset + at);
    /* acquire: pairs with the release in ttm_producer_note(). */
    if (atomic_load_explicit(&note->kind, memory_order_acquire) != kind)
        return -ENOENT;
    const uint32_t length = *(volatile uint32_t *)&note->length;
    if (length > reader->notes_bytes - at - sizeof(*note))
        return -ENOENT;
    if (length > max)
        return -EMSGSIZE;
    memcpy(ret, note + 1, length);
    return (long)length;
}

uint32_t ttm_ring_reader_fill(const struct ttm_ring_reader *reader)
{
    const uint32_t used = rings_used(reader);
    uint64_t fullest = 0;

    for (uint32_t i = 0; i < used; i++) { /* relaxed: a number to be shown */
        const uint64_t n = atomic_load_explicit(&ring_at(reader, i)->tail, memory_order_relaxed) -
                           reader->heads[i];
        if (n > fullest && n <= reader->ring_slots)
            fullest = n;
    }
    return (uint32_t)(fullest * 1000 / reader->ring_slots);
}

bool ttm_ring_reader_is_late(const struct ttm_ring_reader *reader)
{
    return reader->is_late;
}

/* A process of an older version has a smaller header. */
static bool has_states(const struct ttm_ring_reader *reader)
{
    return reader->rings_offset >= sizeof(struct ttm_segment);
}

void ttm_ring_reader_device(const struct ttm_ring_reader *reader, uint32_t id,
                            struct ttm_device_state *ret)
{
    *ret = (struct ttm_device_state){0};
    if (!has_states(reader) || id >= TTM_SEGMENT_DEVICES)
        return;
    struct ttm_device_cell *cell = &reader->segment->devices[id];
    /* acquire: pairs with the releases of the process; notes and programs are there. */
    ret->note = atomic_load_explicit(&cell->note, memory_order_acquire);
    ret->dispatched = atomic_load_explicit(&cell->dispatched, memory_order_acquire);
    ret->program_count =
        ret->dispatched < TTM_SEGMENT_PROGRAMS ? ret->dispatched : TTM_SEGMENT_PROGRAMS;
    for (uint32_t i = 0; i < ret->program_count; i++)
        ret->programs[i] =
            atomic_load_explicit(&cell->programs[(ret->dispatched - 1 - i) % TTM_SEGMENT_PROGRAMS],
                                 memory_order_relaxed);
}

void ttm_ring_reader_process(const struct ttm_ring_reader *reader, struct ttm_process_state *ret)
{
    struct ttm_segment *segment = reader->segment;

    *ret = (struct ttm_process_state){0};
    if (!has_states(reader))
        return;
    /* relaxed: numbers to be shown; acquire: the notes are whole. */
    ret->unknown_ends = atomic_load_explicit(&segment->unknown_ends, memory_order_relaxed);
    ret->untracked = atomic_load_explicit(&segment->untracked, memory_order_relaxed);
    ret->senseless = atomic_load_explicit(&segment->senseless, memory_order_relaxed);
    ret->unknown_frees = atomic_load_explicit(&segment->unknown_frees, memory_order_relaxed);
    ret->notes_left_out = atomic_load_explicit(&segment->notes_left_out, memory_order_relaxed);
    ret->runtime_note = atomic_load_explicit(&segment->runtime_note, memory_order_acquire);
    ret->trouble_note = atomic_load_explicit(&segment->trouble_note, memory_order_acquire);
    ret->opening_note = atomic_load_explicit(&segment->opening_note, memory_order_acquire);
}
