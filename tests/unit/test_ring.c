/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both ends of a segment. Where two threads meet, the reader works on the
 * producer's own mapping, so that the thread sanitizer sees one memory and not
 * two that happen to hold the same bytes.
 */
#include "testing.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hash.h"
#include "ring/producer.h"
#include "ring/reader.h"

#define SETTLE_MS 5
#define LOST_AFTER_MS 20000 /* a wake that has not come by then never will */

static struct ttm_producer producer;
static struct ttm_ring_reader reader;

/* The reader, moved to the producer's mapping. */
static void share_mapping(void)
{
    assert_int_equal(munmap(reader.segment, reader.bytes), 0);
    reader.segment = producer.segment;
}

static int set_up(void **state)
{
    (void)state;
    if (ttm_producer_new(&producer) < 0 || ttm_ring_reader_open(producer.fd.fd, &reader) < 0)
        return -1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (reader.segment == producer.segment)
        reader.segment = NULL;
    ttm_ring_reader_close(&reader);
    ttm_producer_done(&producer);
    return 0;
}

/* A record all of whose fields follow from two numbers, so that a torn one shows. */
static struct ttm_record record_of(uint64_t thread, uint64_t n)
{
    const uint64_t mixed = ttm_hash_u64(thread << 48 | n);

    return (struct ttm_record){
        .time_ns = mixed ^ 1,
        .serial = thread << 48 | n,
        .id = mixed ^ 2,
        .address = mixed ^ 3,
        .bytes = mixed ^ 4,
        .footprint_bytes = mixed ^ 5,
        .allocator = (uint16_t)(mixed >> 32) ^ 6,
        .banks = (uint16_t)(mixed >> 48),
        .devices = (uint32_t)(mixed >> 32) ^ 7,
        .origin = (uint32_t)(mixed >> 32) ^ 8,
        .op = (uint8_t)mixed,
        .region = (uint8_t)~mixed,
        .kind = (uint8_t)(mixed >> 8),
        .flags = (uint8_t)(mixed >> 16),
    };
}

static bool is_record_of(const struct ttm_record *record, uint64_t thread, uint64_t n)
{
    const struct ttm_record expected = record_of(thread, n);

    return memcmp(record, &expected, sizeof(expected)) == 0;
}

static bool push(struct ttm_ring *ring, uint64_t thread, uint64_t n)
{
    const struct ttm_record record = record_of(thread, n);

    return ttm_ring_push(&producer, ring, &record);
}

static uint32_t read_some(struct ttm_record *records, uint32_t max)
{
    uint64_t passed = 0;

    return ttm_ring_reader_read(&reader, records, max, &passed);
}

/* Reads records first … first + count - 1 of the thread, and no more. */
static void assert_reads(uint64_t thread, uint64_t first, uint32_t count)
{
    static struct ttm_record records[TTM_RING_SLOTS];
    uint32_t got = 0;

    while (got < count) {
        const uint32_t n = read_some(records, TTM_RING_SLOTS);
        assert_in_range(n, 1, count - got);
        for (uint32_t i = 0; i < n; i++)
            assert_true(is_record_of(&records[i], thread, first + got + i));
        got += n;
    }
    assert_int_equal(read_some(records, TTM_RING_SLOTS), 0);
}

/* ---- one ring ---- */

static void records_come_out_as_they_went_in_and_in_order(void **state)
{
    struct ttm_record records[4];
    (void)state;

    assert_int_equal(read_some(records, 4), 0); /* no ring was ever taken */
    struct ttm_ring *ring = ttm_producer_claim(&producer, 1);
    assert_non_null(ring);
    assert_int_equal(read_some(records, 4), 0);
    for (uint64_t n = 0; n < 10; n++)
        assert_true(push(ring, 1, n));
    assert_int_equal(read_some(records, 4), 4);
    for (uint64_t n = 0; n < 4; n++)
        assert_true(is_record_of(&records[n], 1, n));
    assert_reads(1, 4, 6);
    assert_int_equal(ttm_ring_reader_lost(&reader), 0);
    assert_int_equal(reader.corrupt, 0);
}

static void a_ring_wraps_around_without_losing_its_order(void **state)
{
    static struct ttm_record records[TTM_RING_SLOTS];
    struct ttm_ring *ring = ttm_producer_claim(&producer, 1);
    uint64_t seed = 42, written = 0, got = 0;
    (void)state;

    while (got < 5ull * TTM_RING_SLOTS) {
        for (uint32_t i = random_below(&seed, TTM_RING_SLOTS); i > 0; i--) {
            if (written - got < TTM_RING_SLOTS)
                assert_true(push(ring, 1, written++));
        }
        const uint32_t max = random_below(&seed, TTM_RING_SLOTS) + 1;
        const uint32_t n = read_some(records, max);
        assert_in_range(n, 0, max);
        for (uint32_t i = 0; i < n; i++)
            assert_true(is_record_of(&records[i], 1, got++));
    }
    assert_int_equal(ttm_ring_reader_lost(&reader), 0);
    assert_int_equal(reader.corrupt, 0);
}

static void the_counts_of_a_ring_may_wrap_around_themselves(void **state)
{
    struct ttm_ring *ring = ttm_producer_claim(&producer, 1);
    const uint64_t begin = UINT64_MAX - 5;
    (void)state;

    atomic_store(&ring->tail, begin);
    atomic_store(&ring->head, begin);
    ring->head_seen = begin;
    reader.heads[0] = begin;
    for (uint64_t n = 0; n < TTM_RING_SLOTS; n++)
        assert_true(push(ring, 1, n));
    assert_false(push(ring, 1, 0));
    assert_reads(1, 0, TTM_RING_SLOTS);
    assert_int_equal(reader.corrupt, 0);
}

static void a_full_ring_counts_what_it_loses_and_keeps_what_it_holds(void **state)
{
    struct ttm_ring *ring = ttm_producer_claim(&producer, 1);
    (void)state;

    for (uint64_t n = 0; n < TTM_RING_SLOTS; n++)
        assert_true(push(ring, 1, n));
    for (uint64_t n = 0; n < 100; n++)
        assert_false(push(ring, 2, n));
    assert_int_equal(ttm_ring_reader_lost(&reader), 100);
    assert_reads(1, 0, TTM_RING_SLOTS);
    assert_int_equal(ttm_ring_reader_lost(&reader), 100);
    /* There is room again, for exactly as many. */
    for (uint64_t n = 0; n < TTM_RING_SLOTS; n++)
        assert_true(push(ring, 3, n));
    assert_false(push(ring, 3, 0));
    assert_reads(3, 0, TTM_RING_SLOTS);
    assert_int_equal(ttm_ring_reader_lost(&reader), 101);
}

static void a_second_reader_goes_on_where_the_first_stopped(void **state)
{
    struct ttm_ring *ring = ttm_producer_claim(&producer, 1);
    struct ttm_record records[3];
    (void)state;

    for (uint64_t n = 0; n < 10; n++)
        assert_true(push(ring, 1, n));
    assert_int_equal(read_some(records, 3), 3);
    ttm_ring_reader_close(&reader);
    assert_int_equal(ttm_ring_reader_open(producer.fd.fd, &reader), 0);
    assert_reads(1, 3, 7);
}

static void what_a_process_wrote_is_read_after_it_has_gone(void **state)
{
    struct ttm_ring *ring = ttm_producer_claim(&producer, 1);
    const int fd = dup(producer.fd.fd);
    (void)state;

    for (uint64_t n = 0; n < 10; n++)
        assert_true(push(ring, 1, n));
    ttm_ring_reader_close(&reader);
    ttm_producer_done(&producer);
    assert_int_equal(ttm_ring_reader_open(fd, &reader), 0);
    assert_int_equal(close(fd), 0);
    assert_reads(1, 0, 10);
}

/* ---- many rings ---- */

static void a_ring_given_back_is_taken_by_the_next_thread_and_goes_on(void **state)
{
    struct ttm_ring *first = ttm_producer_claim(&producer, 1);
    struct ttm_ring *second = ttm_producer_claim(&producer, 2);
    (void)state;

    assert_ptr_not_equal(first, second);
    assert_true(push(first, 1, 0));
    ttm_producer_release(&producer, first);
    assert_ptr_equal(ttm_producer_claim(&producer, 3), first);
    assert_true(push(first, 1, 1));
    assert_reads(1, 0, 2);
    assert_int_equal(atomic_load(&producer.segment->rings_used), 2);
}

static void when_all_rings_are_taken_there_is_none_until_one_is_given_back(void **state)
{
    static struct ttm_ring *rings[TTM_RINGS];
    (void)state;

    for (uint32_t i = 0; i < TTM_RINGS; i++) {
        rings[i] = ttm_producer_claim(&producer, i + 1);
        assert_non_null(rings[i]);
        assert_int_equal(ttm_producer_number(&producer, rings[i]), i);
        assert_true(push(rings[i], i, 0));
    }
    assert_null(ttm_producer_claim(&producer, 9999));
    assert_null(ttm_producer_claim(&producer, 9999));
    ttm_producer_release(&producer, rings[77]);
    assert_ptr_equal(ttm_producer_claim(&producer, 9999), rings[77]);
    assert_null(ttm_producer_claim(&producer, 9999));
    for (uint32_t i = 0; i < TTM_RINGS; i++) {
        struct ttm_record record;
        assert_int_equal(read_some(&record, 1), 1);
        assert_true(is_record_of(&record, i, 0));
    }
}

static void a_busy_ring_does_not_keep_the_reader_from_the_others(void **state)
{
    struct ttm_ring *rings[3];
    struct ttm_record record;
    (void)state;

    for (uint32_t i = 0; i < 3; i++) {
        rings[i] = ttm_producer_claim(&producer, i + 1);
        for (uint64_t n = 0; n < 4; n++)
            assert_true(push(rings[i], i, n));
    }
    for (uint64_t n = 0; n < 4; n++) {
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(read_some(&record, 1), 1);
            assert_true(is_record_of(&record, i, n));
        }
    }
    assert_int_equal(read_some(&record, 1), 0);
}

static void a_pass_is_told_each_time_the_last_ring_is_left(void **state)
{
    struct ttm_ring *first = ttm_producer_claim(&producer, 1);
    struct ttm_record record;
    uint64_t passed = 0;
    (void)state;

    (void)ttm_producer_claim(&producer, 2);
    for (uint64_t n = 0; n < 3; n++)
        assert_true(push(first, 1, n));
    for (uint64_t n = 0; n < 3; n++) {
        assert_int_equal(ttm_ring_reader_read(&reader, &record, 1, &passed), 1);
        assert_int_equal(passed, n);
    }
    assert_int_equal(ttm_ring_reader_read(&reader, &record, 1, &passed), 0);
    assert_int_equal(passed, 3);
}

/* Fills a ring with records first … of the thread; it may have some. Returns the next number. */
static uint64_t fill(struct ttm_ring *ring, uint64_t thread, uint64_t first)
{
    uint64_t tail;

    while (ttm_ring_next(ring, &tail))
        assert_true(push(ring, thread, first++));
    return first;
}

static void a_ring_that_follows_a_full_one_is_read_after_it(void **state)
{
    struct ttm_ring *own = ttm_producer_claim(&producer, 1);
    (void)state;

    uint64_t next = fill(own, 1, 0);
    struct ttm_ring *second = ttm_producer_go_on(&producer, own, own);
    assert_non_null(second);
    next = fill(second, 1, next);
    struct ttm_ring *third = ttm_producer_go_on(&producer, own, second);
    assert_true(push(third, 1, next++));
    assert_reads(1, 0, (uint32_t)next);
    /* Its own was read by now, and the second one is given back. */
    next = fill(third, 1, next);
    assert_ptr_equal(ttm_producer_go_on(&producer, own, third), own);
    assert_int_equal(atomic_load(&second->owner), 0);
    assert_int_equal(atomic_load(&third->owner), 0);
    assert_int_equal(atomic_load(&own->owner), 1);
    assert_true(push(own, 1, next++));
    assert_reads(1, 2 * TTM_RING_SLOTS + 1, TTM_RING_SLOTS + 1);
    assert_int_equal(ttm_ring_reader_lost(&reader), 0);
}

static void there_are_no_more_rings_to_go_on_in_than_there_may_be(void **state)
{
    struct ttm_ring *own = ttm_producer_claim(&producer, 1);
    struct ttm_ring *ring = own;
    uint64_t next = 0;
    (void)state;

    for (uint32_t i = 0; i <= TTM_SPARE_RINGS; i++) {
        next = fill(ring, 1, next);
        ring = i < TTM_SPARE_RINGS ? ttm_producer_go_on(&producer, own, ring) : ring;
        assert_non_null(ring);
    }
    assert_null(ttm_producer_go_on(&producer, own, ring));
    assert_int_equal(atomic_load(&producer.segment->rings_used), 1 + TTM_SPARE_RINGS);
    /* Others have the same, and rings of their own. */
    struct ttm_ring *other = ttm_producer_claim(&producer, 2);
    assert_non_null(other);
    (void)fill(other, 2, 0);
    assert_null(ttm_producer_go_on(&producer, other, other));
    assert_int_equal(atomic_load(&other->owner), 2);
}

static void a_ring_that_follows_nothing_or_itself_holds_up_no_other(void **state)
{
    struct ttm_ring *liar = ttm_producer_claim(&producer, 1);
    struct ttm_ring *other = ttm_producer_claim(&producer, 2);
    struct ttm_record record;
    (void)state;

    assert_true(push(liar, 1, 0));
    atomic_store(&liar->follows_tail, UINT64_MAX / 2);
    static const uint32_t none[] = {0, 3, 4097, UINT32_MAX};
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        atomic_store(&liar->follows, none[i]);
        assert_int_equal(read_some(&record, 1), 1);
        assert_true(push(liar, 1, 0));
    }
    atomic_store(&liar->follows, 1); /* itself, for ever */
    assert_true(push(other, 2, 0));
    assert_int_equal(read_some(&record, 1), 1);
    assert_true(is_record_of(&record, 2, 0));
    assert_int_equal(read_some(&record, 1), 1); /* nothing else is left, so it is not believed */
    assert_true(is_record_of(&record, 1, 0));
    assert_true(ttm_ring_reader_sleep(&reader));
}

static void rings_that_follow_each_other_are_read_all_the_same(void **state)
{
    struct ttm_ring *rings[2];
    struct ttm_record record;
    (void)state;

    for (uint32_t i = 0; i < 2; i++) {
        rings[i] = ttm_producer_claim(&producer, i + 1);
        assert_true(push(rings[i], i + 1, 0));
        atomic_store(&rings[i]->follows_tail, 1);
        atomic_store(&rings[i]->follows, 2 - i);
    }
    assert_int_equal(read_some(&record, 1), 1);
    assert_int_equal(read_some(&record, 1), 1);
    assert_int_equal(read_some(&record, 1), 0);
    assert_true(ttm_ring_reader_sleep(&reader));
}

static void the_reader_is_past_a_mark_when_all_written_before_it_is_read(void **state)
{
    struct ttm_ring *first = ttm_producer_claim(&producer, 1);
    struct ttm_ring *second = ttm_producer_claim(&producer, 2);
    struct ttm_record record;
    (void)state;

    ttm_ring_reader_mark(&reader);
    assert_true(ttm_ring_reader_is_past_mark(&reader)); /* nothing was written */
    assert_true(push(first, 1, 0));
    assert_true(push(second, 2, 0));
    ttm_ring_reader_mark(&reader);
    assert_true(push(first, 1, 1)); /* after it, and a ring after it: no matter */
    assert_true(push(ttm_producer_claim(&producer, 3), 3, 0));
    assert_false(ttm_ring_reader_is_past_mark(&reader));
    assert_int_equal(read_some(&record, 1), 1);
    assert_false(ttm_ring_reader_is_past_mark(&reader));
    assert_int_equal(read_some(&record, 1), 1);
    assert_true(ttm_ring_reader_is_past_mark(&reader));
    assert_int_equal(read_some(&record, 1), 1);
    assert_true(ttm_ring_reader_is_past_mark(&reader));
}

static void losses_are_summed_over_all_rings(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        struct ttm_ring *ring = ttm_producer_claim(&producer, i + 1);
        for (uint64_t n = 0; n < TTM_RING_SLOTS + i; n++)
            (void)push(ring, i, n);
    }
    assert_int_equal(ttm_ring_reader_lost(&reader), 0 + 1 + 2);
}

struct claimer {
    pthread_t thread;
    uint32_t tid;
    uint32_t failures;
};

static void *claim_again_and_again(void *arg)
{
    struct claimer *claimer = arg;

    for (int i = 0; i < 2000; i++) {
        struct ttm_ring *ring = ttm_producer_claim(&producer, claimer->tid);
        if (!ring) {
            claimer->failures++;
            continue;
        }
        claimer->failures += atomic_load(&ring->owner) != claimer->tid;
        (void)push(ring, claimer->tid, (uint64_t)i); /* also proves that nobody else is in it */
        claimer->failures += atomic_load(&ring->owner) != claimer->tid;
        ttm_producer_release(&producer, ring);
    }
    return NULL;
}

static void threads_that_come_and_go_never_share_a_ring(void **state)
{
    struct claimer claimers[6] = {0};
    (void)state;

    for (uint32_t i = 0; i < COUNT_OF(claimers); i++) {
        claimers[i].tid = i + 1;
        assert_int_equal(
            pthread_create(&claimers[i].thread, NULL, claim_again_and_again, &claimers[i]), 0);
    }
    for (uint32_t i = 0; i < COUNT_OF(claimers); i++) {
        assert_int_equal(pthread_join(claimers[i].thread, NULL), 0);
        assert_int_equal(claimers[i].failures, 0);
    }
    /* Two threads may open a ring each where one was about to be given back; never many. */
    assert_in_range(atomic_load(&producer.segment->rings_used), 1, 2 * COUNT_OF(claimers));
}

/* The reader can write to the segment, and what it writes must not have two threads in one ring. */
static void a_reader_that_writes_over_the_owners_makes_no_two_threads_share_a_ring(void **state)
{
    struct ttm_ring *rings[8];
    (void)state;

    for (uint32_t i = 0; i < COUNT_OF(rings); i++) {
        rings[i] = ttm_producer_claim(&producer, i + 1);
        assert_non_null(rings[i]);
        assert_int_equal(ttm_producer_number(&producer, rings[i]), i);
        atomic_store(&rings[i]->owner, 0);
        atomic_store(&producer.segment->rings_used, 0);
    }
    for (uint32_t i = 0; i < COUNT_OF(rings); i++)
        atomic_store(&rings[i]->tail, 0); /* as if all of them had been read */
    assert_int_equal(
        ttm_producer_number(&producer, ttm_producer_go_on(&producer, rings[0], rings[0])),
        COUNT_OF(rings));
    atomic_store(&producer.segment->rings_used, UINT32_MAX);
    assert_int_equal(ttm_producer_number(&producer, ttm_producer_claim(&producer, 9)),
                     COUNT_OF(rings) + 1);
}

/* ---- sleep and wake ---- */

static uint64_t wakes(void)
{
    uint64_t count = 0;
    char byte;

    while (recv(producer.sleep_fd.fd, &byte, 1, MSG_DONTWAIT) == 0) /* an empty message each */
        count++;
    return count;
}

static void a_reader_does_not_sleep_over_a_record(void **state)
{
    struct ttm_ring *ring = ttm_producer_claim(&producer, 1);
    (void)state;

    assert_true(push(ring, 1, 0));
    assert_false(ttm_ring_reader_sleep(&reader));
    assert_true(push(ring, 1, 1));
    assert_int_equal(wakes(), 0); /* it took its announcement back */
    assert_reads(1, 0, 2);
    assert_true(ttm_ring_reader_sleep(&reader));
}

static void a_sleeping_reader_is_woken_once(void **state)
{
    (void)state;
    assert_true(ttm_ring_reader_sleep(&reader));
    assert_int_equal(wakes(), 0);
    struct ttm_ring *ring = ttm_producer_claim(&producer, 1); /* born while the reader sleeps */
    for (uint64_t n = 0; n < 10; n++)
        assert_true(push(ring, 1, n));
    assert_int_equal(wakes(), 1);
    assert_reads(1, 0, 10);
    assert_true(ttm_ring_reader_sleep(&reader));
    assert_true(push(ring, 1, 10));
    assert_int_equal(wakes(), 1);
}

static void a_loss_wakes_a_sleeping_reader_too(void **state)
{
    struct ttm_ring *ring = ttm_producer_claim(&producer, 1);
    (void)state;

    assert_true(ttm_ring_reader_sleep(&reader));
    ttm_ring_lose(&producer, ring);
    assert_int_equal(wakes(), 1);
    assert_int_equal(ttm_ring_reader_lost(&reader), 1);
}

static void a_dozing_reader_is_woken_when_three_quarters_of_a_ring_are_full(void **state)
{
    struct ttm_ring *ring = ttm_producer_claim(&producer, 1);
    uint64_t n = 0;
    (void)state;

    ttm_ring_reader_doze(&reader);
    for (; n < TTM_RING_SLOTS / 4 * 3 - 1; n++)
        assert_true(push(ring, 1, n));
    assert_int_equal(wakes(), 0);
    assert_true(push(ring, 1, n++));
    assert_true(push(ring, 1, n++)); /* it is on its way */
    assert_int_equal(wakes(), 1);
    assert_reads(1, 0, (uint32_t)n);
    ttm_ring_reader_doze(&reader);
    assert_true(push(ring, 1, n)); /* what was read does not count */
    assert_int_equal(wakes(), 0);
}

static void a_loss_wakes_a_dozing_reader_too(void **state)
{
    struct ttm_ring *ring = ttm_producer_claim(&producer, 1);
    (void)state;

    ttm_ring_reader_doze(&reader);
    ttm_ring_lose(&producer, ring);
    assert_int_equal(wakes(), 1);
}

static void a_reader_that_woke_by_itself_is_not_woken(void **state)
{
    struct ttm_ring *ring = ttm_producer_claim(&producer, 1);
    (void)state;

    assert_true(ttm_ring_reader_sleep(&reader));
    ttm_ring_reader_wake(&reader);
    assert_true(push(ring, 1, 0));
    assert_int_equal(wakes(), 0);
}

static void waking_the_reader_keeps_errno_and_bears_a_closed_socket(void **state)
{
    struct ttm_ring *ring = ttm_producer_claim(&producer, 1);
    const int wake_fd = producer.wake_fd.fd;
    (void)state;

    assert_true(ttm_ring_reader_sleep(&reader));
    producer.wake_fd.fd = -1; /* the host has closed fds that it took for its own */
    errno = 1234;
    assert_true(push(ring, 1, 0));
    assert_int_equal(errno, 1234);
    producer.wake_fd.fd = wake_fd;
}

/* Asleep with nothing to read, so that the next record is to wake it. */
static void fall_asleep(void)
{
    struct ttm_record records[4];

    while (read_some(records, 4) > 0)
        continue;
    assert_true(ttm_ring_reader_sleep(&reader));
}

static void a_reader_that_cannot_be_woken_costs_neither_errno_nor_a_signal(void **state)
{
    struct ttm_ring *ring = ttm_producer_claim(&producer, 1);
    (void)state;

    errno = 1234;
    for (uint64_t n = 0; n < 1000; n++) { /* many more than there is room for */
        fall_asleep();
        assert_true(push(ring, 1, n));
    }
    assert_int_equal(errno, 1234);
    assert_int_not_equal(wakes(), 0);
    (void)close(producer.sleep_fd.fd); /* nobody has that end any more: SIGPIPE, of a pipe */
    fall_asleep();
    errno = 1234;
    assert_true(push(ring, 1, 1000));
    assert_int_equal(errno, 1234);
}

static void who_holds_the_other_end_is_told_when_ours_is_closed(void **state)
{
    struct pollfd pollfd = {.fd = producer.sleep_fd.fd, .events = POLLIN};
    (void)state;

    assert_int_equal(poll(&pollfd, 1, 0), 0);
    (void)close(producer.wake_fd.fd);
    assert_int_equal(poll(&pollfd, 1, 0), 1);
    assert_true(pollfd.revents & POLLHUP);
}

static void a_file_in_the_place_of_ours_is_left_alone(void **state)
{
    struct ttm_ring *ring = ttm_producer_claim(&producer, 1);
    const int wake_fd = producer.wake_fd.fd;
    int pair[2];
    char byte;
    (void)state;

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    assert_int_equal(dup2(pair[0], wake_fd), wake_fd);
    fall_asleep();
    assert_true(push(ring, 1, 0));
    assert_int_equal(recv(pair[1], &byte, 1, MSG_DONTWAIT), -1); /* not even an empty message */
    (void)close(pair[0]);
    (void)close(pair[1]);
    (void)close(wake_fd);
}

static void *push_while_cancelled(void *arg)
{
    _Atomic bool *has_returned = arg;
    struct ttm_ring *ring = ttm_producer_claim(&producer, 1);

    (void)pthread_cancel(pthread_self()); /* takes effect at the next cancellation point */
    (void)push(ring, 1, 0);
    atomic_store(has_returned, true);
    /* Ends by itself: the address sanitizer does not bear a thread that is cancelled. */
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    return NULL;
}

static void waking_the_reader_is_no_cancellation_point(void **state)
{
    _Atomic bool has_returned = false;
    pthread_t thread;
    (void)state;

    assert_true(ttm_ring_reader_sleep(&reader));
    assert_int_equal(pthread_create(&thread, NULL, push_while_cancelled, &has_returned), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(atomic_load(&has_returned));
    assert_int_equal(wakes(), 1);
}

/* ---- two threads on one mapping ---- */

#define ROUNDS 20000u

/* Turns of a conversation: the producer writes a little, and goes on when all of it was read. */
struct conversation {
    _Atomic uint32_t answered; /* rounds that were read whole */
    _Atomic bool has_given_up;
};

static void *talk_in_rounds(void *arg)
{
    struct conversation *talk = arg;
    struct ttm_ring *ring = ttm_producer_claim(&producer, 1);
    uint64_t seed = 7, n = 0;

    for (uint32_t round = 0; round < ROUNDS; round++) {
        /* From at once to a little later: somewhere in between the reader falls asleep. */
        for (volatile uint32_t spin = random_below(&seed, 400); spin > 0;)
            spin = spin - 1;
        for (uint32_t i = round % 3 + 1; i > 0; i--)
            (void)push(ring, 1, n++);
        for (uint32_t looks = 1; atomic_load(&talk->answered) <= round; looks++) {
            if (atomic_load(&talk->has_given_up))
                return NULL;
            if (looks % 4096 == 0) /* seldom: the answer is met on its way, not after a nap */
                (void)sched_yield();
        }
    }
    return NULL;
}

/* Sleeps as the server does. Returns whether it was woken, or need not sleep. */
static bool sleep_until_woken(void)
{
    struct pollfd pollfd = {.fd = producer.sleep_fd.fd, .events = POLLIN};

    if (!ttm_ring_reader_sleep(&reader))
        return true;
    if (poll(&pollfd, 1, SETTLE_MS) != 1) {
        /* What crossed the announcement is seen by now; for the rest there is a wake. */
        if (ttm_ring_reader_has_more(&reader)) {
            ttm_ring_reader_wake(&reader);
            return true;
        }
        if (poll(&pollfd, 1, LOST_AFTER_MS) != 1)
            return false;
    }
    return wakes() > 0;
}

static void no_wake_is_ever_lost(void **state)
{
    struct conversation talk = {0};
    struct ttm_record records[4];
    uint32_t sleeps = 0, in_round = 0;
    pthread_t thread;
    (void)state;

    share_mapping();
    assert_int_equal(pthread_create(&thread, NULL, talk_in_rounds, &talk), 0);
    for (uint32_t round = 0; round < ROUNDS;) {
        const uint32_t n = read_some(records, 4);
        in_round += n;
        if (in_round == round % 3 + 1) {
            in_round = 0;
            atomic_store(&talk.answered, ++round);
        }
        sleeps += n == 0;
        if (n == 0 && !sleep_until_woken()) {
            atomic_store(&talk.has_given_up, true);
            assert_int_equal(pthread_join(thread, NULL), 0);
            fail_msg("asleep for ever in round %u", round);
        }
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_not_equal(sleeps, 0);
}

#define WRITERS 3u
#define RECORDS_EACH 60000u

struct writer {
    pthread_t thread;
    uint64_t number;
    uint64_t refused;
};

static void *write_everything(void *arg)
{
    struct writer *writer = arg;
    struct ttm_ring *ring = ttm_producer_claim(&producer, (uint32_t)writer->number + 1);

    for (uint64_t n = 0; n < RECORDS_EACH; n++) {
        while (!push(ring, writer->number, n)) {
            writer->refused++;
            (void)sched_yield();
        }
    }
    ttm_producer_release(&producer, ring);
    return NULL;
}

static void records_arrive_whole_and_in_order_from_several_threads_at_once(void **state)
{
    static struct ttm_record records[512];
    struct writer writers[WRITERS] = {0};
    uint64_t next[WRITERS] = {0}, wrong = 0, refused = 0;
    (void)state;

    share_mapping();
    for (uint32_t i = 0; i < WRITERS; i++) {
        writers[i].number = i;
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_everything, &writers[i]),
                         0);
    }
    for (uint64_t got = 0; got < (uint64_t)WRITERS * RECORDS_EACH;) {
        const uint32_t n = read_some(records, COUNT_OF(records));
        for (uint32_t i = 0; i < n; i++) {
            const uint64_t from = records[i].serial >> 48;
            if (from >= WRITERS || !is_record_of(&records[i], from, next[from]))
                wrong++;
            else
                next[from]++;
        }
        got += n;
        if (n == 0 && !sleep_until_woken())
            fail_msg("asleep for ever after %llu records", (unsigned long long)got);
    }
    for (uint32_t i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
        refused += writers[i].refused;
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(ttm_ring_reader_lost(&reader), refused);
    assert_int_equal(reader.corrupt, 0);
}

/* ---- notes ---- */

static void notes_are_read_back_by_number_and_kind(void **state)
{
    uint8_t buf[32];
    (void)state;

    const uint32_t first = ttm_producer_note(&producer, 1, "abc", 3);
    const uint32_t second = ttm_producer_note(&producer, 2, "defghijkl", 9);
    const uint32_t empty = ttm_producer_note(&producer, 3, "", 0);
    assert_int_equal(first, TTM_NOTE_FIRST);
    assert_int_equal(ttm_ring_reader_note(&reader, first, 1, buf, sizeof(buf)), 3);
    assert_memory_equal(buf, "abc", 3);
    assert_int_equal(ttm_ring_reader_note(&reader, second, 2, buf, sizeof(buf)), 9);
    assert_memory_equal(buf, "defghijkl", 9);
    assert_int_equal(ttm_ring_reader_note(&reader, empty, 3, buf, sizeof(buf)), 0);
    assert_int_equal(ttm_ring_reader_note(&reader, second, 2, buf, 9), 9);

    assert_int_equal(ttm_ring_reader_note(&reader, first, 2, buf, sizeof(buf)), -ENOENT);
    assert_int_equal(ttm_ring_reader_note(&reader, empty + 1, 3, buf, sizeof(buf)), -ENOENT);
    assert_int_equal(ttm_ring_reader_note(&reader, second, 2, buf, 8), -EMSGSIZE);
    for (uint32_t number = 0; number < TTM_NOTE_FIRST; number++)
        assert_int_equal(ttm_ring_reader_note(&reader, number, 1, buf, sizeof(buf)), -ENOENT);
}

static void a_note_that_does_not_fit_leaves_room_for_smaller_ones(void **state)
{
    static uint8_t big[TTM_NOTES_BYTES / 2];
    uint8_t buf[8];
    (void)state;

    assert_int_equal(ttm_producer_note(&producer, 1, big, UINT32_MAX), 0);
    assert_int_equal(ttm_producer_note(&producer, 1, big, sizeof(big) + 1), 0);
    assert_int_not_equal(ttm_producer_note(&producer, 1, big, sizeof(big)), 0);
    assert_int_equal(ttm_producer_note(&producer, 1, big, sizeof(big)), 0);
    const uint32_t number = ttm_producer_note(&producer, 1, "x", 1);
    assert_int_not_equal(number, 0);
    assert_int_equal(ttm_ring_reader_note(&reader, number, 1, buf, sizeof(buf)), 1);
    while (ttm_producer_note(&producer, 1, big, 65536 - 8))
        ;
    while (ttm_producer_note(&producer, 1, big, 0))
        ;
    assert_int_equal(atomic_load(&producer.segment->notes_used), TTM_NOTES_BYTES);
    assert_int_equal(ttm_ring_reader_note(&reader, number, 1, buf, sizeof(buf)), 1);
}

struct noter {
    pthread_t thread;
    uint32_t number;
    uint32_t count;
    uint32_t notes[4096];
};

/* Small notes, and large ones that no longer fit, around the end of the area. */
static void *note_to_the_end(void *arg)
{
    static const uint8_t big[65536];
    struct noter *noter = arg;

    for (uint32_t misses = 0; misses < 2000 && noter->count < COUNT_OF(noter->notes);) {
        const uint64_t said = (uint64_t)noter->number << 32 | noter->count;
        (void)ttm_producer_note(&producer, 9, big, sizeof(big));
        noter->notes[noter->count] = ttm_producer_note(&producer, 1, &said, sizeof(said));
        if (noter->notes[noter->count] != 0)
            noter->count++;
        else
            misses++;
    }
    return NULL;
}

static void notes_of_threads_that_fill_the_area_together_do_not_overlap(void **state)
{
    static struct noter noters[4];
    uint32_t total = 0;
    (void)state;

    /* All but the last 32 KiB. */
    atomic_store(&producer.notes_used, TTM_NOTES_BYTES - 32768);
    memset(noters, 0, sizeof(noters));
    for (uint32_t i = 0; i < COUNT_OF(noters); i++) {
        noters[i].number = i + 1;
        assert_int_equal(pthread_create(&noters[i].thread, NULL, note_to_the_end, &noters[i]), 0);
    }
    for (uint32_t i = 0; i < COUNT_OF(noters); i++)
        assert_int_equal(pthread_join(noters[i].thread, NULL), 0);
    for (uint32_t i = 0; i < COUNT_OF(noters); i++) {
        total += noters[i].count;
        for (uint32_t n = 0; n < noters[i].count; n++) {
            uint64_t said = 0;
            assert_int_equal(ttm_ring_reader_note(&reader, noters[i].notes[n], 1, &said, 8), 8);
            assert_true(said == ((uint64_t)noters[i].number << 32 | n));
        }
    }
    assert_int_equal(total, 32768 / 16);
}

/* ---- a producer that lies ---- */

#define SMALL_HEADER 192u
#define SMALL_RINGS 2u
#define SMALL_SLOTS 4u
#define SMALL_STRIDE (sizeof(struct ttm_ring) + SMALL_SLOTS * sizeof(struct ttm_record))
#define SMALL_NOTES (SMALL_HEADER + SMALL_RINGS * SMALL_STRIDE)
#define SMALL_NOTES_BYTES 256u
#define SMALL_BYTES (SMALL_NOTES + SMALL_NOTES_BYTES)

/* A segment of the test's own making: as small as can be, and without guard or gap. */
struct small {
    int fd;
    struct ttm_segment *segment;
    struct ttm_ring_reader reader;
};

static struct small small_segment(void)
{
    struct small small = {.fd = memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING)};

    assert_true(small.fd >= 0);
    assert_int_equal(ftruncate(small.fd, SMALL_BYTES), 0);
    assert_int_equal(fcntl(small.fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    small.segment = mmap(NULL, SMALL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, small.fd, 0);
    assert_ptr_not_equal(small.segment, MAP_FAILED);
    small.segment->magic = TTM_SEGMENT_MAGIC;
    small.segment->version = TTM_SEGMENT_VERSION;
    small.segment->header_bytes = SMALL_HEADER;
    small.segment->segment_bytes = SMALL_BYTES;
    small.segment->ring_count = SMALL_RINGS;
    small.segment->ring_slots = SMALL_SLOTS;
    small.segment->ring_stride = SMALL_STRIDE;
    small.segment->notes_offset = SMALL_NOTES;
    small.segment->notes_bytes = SMALL_NOTES_BYTES;
    atomic_store(&small.segment->rings_used, SMALL_RINGS);
    return small;
}

static void small_done(struct small *small)
{
    ttm_ring_reader_close(&small->reader);
    assert_int_equal(munmap(small->segment, SMALL_BYTES), 0);
    assert_int_equal(close(small->fd), 0);
}

static struct ttm_ring *small_ring(struct small *small, uint32_t number)
{
    return (struct ttm_ring *)((char *)small->segment + SMALL_HEADER + number * SMALL_STRIDE);
}

static uint32_t small_read(struct small *small)
{
    struct ttm_record records[SMALL_SLOTS * 2];
    uint64_t passed = 0;

    return ttm_ring_reader_read(&small->reader, records, COUNT_OF(records), &passed);
}

#define FIELD(name) offsetof(struct ttm_segment, name), sizeof(((struct ttm_segment *)0)->name)

static void a_header_with_any_field_wrong_is_refused(void **state)
{
    static const struct {
        size_t at, size;
        uint64_t value;
    } wrong[] = {
        {FIELD(magic), 0},
        {FIELD(magic), TTM_SEGMENT_MAGIC + 1},
        {FIELD(version), 0},
        {FIELD(version), TTM_SEGMENT_VERSION + 1},
        {FIELD(header_bytes), 0},
        {FIELD(header_bytes), 128}, /* smaller than the header */
        {FIELD(header_bytes), SMALL_HEADER + 8},
        {FIELD(header_bytes), SMALL_HEADER + 64}, /* the rings run into the notes */
        {FIELD(header_bytes), UINT32_MAX},
        {FIELD(header_bytes), UINT32_MAX - 63},
        {FIELD(ring_count), 0},
        {FIELD(ring_count), SMALL_RINGS + 1},
        {FIELD(ring_count), TTM_SEGMENT_RINGS_MAX + 1},
        {FIELD(ring_count), UINT32_MAX},
        {FIELD(ring_slots), 0},
        {FIELD(ring_slots), 3},
        {FIELD(ring_slots), SMALL_SLOTS << 1},
        {FIELD(ring_slots), 1u << 24},
        {FIELD(ring_slots), 1u << 25},
        {FIELD(ring_slots), 1u << 31},
        {FIELD(ring_slots), UINT32_MAX},
        {FIELD(ring_stride), 0},
        {FIELD(ring_stride), 64},
        {FIELD(ring_stride), SMALL_STRIDE - 64},
        {FIELD(ring_stride), SMALL_STRIDE + 8},
        {FIELD(ring_stride), SMALL_STRIDE + 64},
        {FIELD(ring_stride), 1ull << 30},
        {FIELD(ring_stride), 1ull << 63}, /* times two is zero */
        {FIELD(ring_stride), UINT64_MAX - 63},
        {FIELD(notes_offset), 0},
        {FIELD(notes_offset), SMALL_NOTES - 8},
        {FIELD(notes_offset), SMALL_NOTES + 4},
        {FIELD(notes_offset), SMALL_NOTES + 8}, /* with their bytes beyond the end */
        {FIELD(notes_offset), SMALL_BYTES + 8},
        {FIELD(notes_offset), UINT64_MAX - 7},
        {FIELD(notes_bytes), SMALL_NOTES_BYTES + 1},
        {FIELD(notes_bytes), UINT32_MAX},
        {FIELD(notes_bytes), 1ull << 32},
        {FIELD(notes_bytes), UINT64_MAX},
        {FIELD(notes_bytes), 0 - (uint64_t)SMALL_NOTES},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct small small = small_segment();
        memcpy((char *)small.segment + wrong[i].at, &wrong[i].value, wrong[i].size);
        const int r = ttm_ring_reader_open(small.fd, &small.reader);
        if (r != -EBADMSG)
            fail_msg("offset %zu, value %#llx: %d", wrong[i].at, (unsigned long long)wrong[i].value,
                     r);
        small_done(&small);
    }
}

static void the_size_of_a_segment_is_the_file_s_whatever_the_header_says(void **state)
{
    static const uint64_t sizes[] = {0, 1, SMALL_BYTES - 1, SMALL_BYTES, UINT64_MAX};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct small small = small_segment();
        small.segment->segment_bytes = sizes[i];
        assert_int_equal(ttm_ring_reader_open(small.fd, &small.reader), 0);
        assert_int_equal(small.reader.bytes, SMALL_BYTES);
        small_done(&small);
    }
}

static void a_header_that_changes_after_the_check_changes_nothing(void **state)
{
    struct small small = small_segment();
    uint8_t buf[8];
    (void)state;

    assert_int_equal(ttm_ring_reader_open(small.fd, &small.reader), 0);
    memset(small.segment, 0xff, SMALL_HEADER); /* also: a reader is asleep, 2^32 - 1 rings in use */
    atomic_store(&small_ring(&small, 1)->tail, 2);
    assert_int_equal(small_read(&small), 2);
    assert_int_equal(small_read(&small), 0);
    assert_int_equal(ttm_ring_reader_lost(&small.reader), 0);
    assert_int_equal(ttm_ring_reader_note(&small.reader, UINT32_MAX, 1, buf, 8), -ENOENT);
    assert_true(ttm_ring_reader_sleep(&small.reader));
    atomic_store(&small.segment->rings_used, 0); /* fewer than before */
    assert_int_equal(small_read(&small), 0);
    small_done(&small);
}

static void an_fd_that_is_no_sealed_memory_of_the_right_size_is_refused(void **state)
{
    static const struct {
        off_t bytes;
        int seals;
        int expected;
    } files[] = {
        {SMALL_BYTES, 0, -EPERM},
        {SMALL_BYTES, F_SEAL_GROW | F_SEAL_SEAL, -EPERM},
        {0, F_SEAL_SHRINK, -EBADMSG},
        {sizeof(struct ttm_segment) - 1, F_SEAL_SHRINK, -EBADMSG},
        {sizeof(struct ttm_segment), F_SEAL_SHRINK, -EBADMSG}, /* of zeros */
        {(off_t)TTM_SEGMENT_BYTES_MAX + 1, F_SEAL_SHRINK, -EBADMSG},
    };
    struct ttm_ring_reader none;
    int ends[2];
    (void)state;

    for (size_t i = 0; i < COUNT_OF(files); i++) {
        const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        assert_int_equal(ftruncate(fd, files[i].bytes), 0);
        assert_int_equal(fcntl(fd, F_ADD_SEALS, files[i].seals), 0);
        assert_int_equal(ttm_ring_reader_open(fd, &none), files[i].expected);
        assert_int_equal(close(fd), 0);
    }
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(ttm_ring_reader_open(ends[0], &none), -EPERM);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(ttm_ring_reader_open(-1, &none), -EPERM);
}

static void a_reader_without_memory_says_so(void **state)
{
    struct small small = small_segment();
    (void)state;

    for (unsigned grants = 0;; grants++) {
        faults_begin(grants);
        const int r = ttm_ring_reader_open(small.fd, &small.reader);
        if (!faults_end())
            break;
        assert_int_equal(r, -ENOMEM);
    }
    small_done(&small);
}

static void a_tail_that_makes_no_sense_is_counted_and_the_ring_goes_on_from_there(void **state)
{
    static const uint64_t tails[] = {SMALL_SLOTS + 1, 1ull << 32, 1ull << 63, UINT64_MAX};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(tails); i++) {
        struct small small = small_segment();
        struct ttm_ring *ring = small_ring(&small, 0);
        assert_int_equal(ttm_ring_reader_open(small.fd, &small.reader), 0);
        atomic_store(&ring->tail, tails[i]);
        assert_int_equal(small_read(&small), 0);
        assert_int_equal(small.reader.corrupt, 1);
        assert_true(ttm_ring_reader_sleep(&small.reader));
        atomic_store(&ring->tail, tails[i] + SMALL_SLOTS);
        assert_int_equal(small_read(&small), SMALL_SLOTS);
        assert_int_equal(small.reader.corrupt, 1);
        atomic_store(&ring->tail, tails[i] + SMALL_SLOTS - 1); /* behind */
        assert_int_equal(small_read(&small), 0);
        assert_int_equal(small.reader.corrupt, 2);
        small_done(&small);
    }
}

static void a_head_that_was_written_over_is_not_looked_at(void **state)
{
    struct small small = small_segment();
    struct ttm_ring *ring = small_ring(&small, 0);
    (void)state;

    assert_int_equal(ttm_ring_reader_open(small.fd, &small.reader), 0);
    atomic_store(&ring->tail, 3);
    atomic_store(&ring->head, 0xdeadbeef);
    assert_int_equal(small_read(&small), 3);
    assert_int_equal(atomic_load(&ring->head), 3);
    assert_int_equal(small.reader.corrupt, 0);
    small_done(&small);
}

static void a_head_that_lies_when_the_reader_comes_loses_one_ring_s_records(void **state)
{
    struct small small = small_segment();
    (void)state;

    atomic_store(&small_ring(&small, 0)->head, 1ull << 40);
    atomic_store(&small_ring(&small, 0)->tail, 2);
    atomic_store(&small_ring(&small, 1)->tail, 2);
    assert_int_equal(ttm_ring_reader_open(small.fd, &small.reader), 0);
    assert_int_equal(small_read(&small), 2);
    assert_int_equal(small_read(&small), 0);
    assert_int_equal(small.reader.corrupt, 1);
    small_done(&small);
}

static void a_head_ahead_of_the_tail_reads_as_full_to_the_producer(void **state)
{
    struct ttm_ring *ring = ttm_producer_claim(&producer, 1);
    (void)state;

    for (uint64_t n = 0; n < TTM_RING_SLOTS; n++)
        assert_true(push(ring, 1, n));
    atomic_store(&ring->head, TTM_RING_SLOTS + 1);
    assert_false(push(ring, 1, 0));
    assert_reads(1, 0, TTM_RING_SLOTS);
}

/* Writes a note's header where there may be none. */
static void lie(struct small *small, uint32_t at, uint32_t kind, uint32_t length)
{
    struct ttm_note *note = (struct ttm_note *)((char *)small->segment + SMALL_NOTES + at);

    note->length = length;
    atomic_store(&note->kind, kind);
}

static void notes_that_reach_beyond_their_area_are_not_there(void **state)
{
    static const uint32_t lengths[] = {SMALL_NOTES_BYTES - 8 + 1, SMALL_NOTES_BYTES, 1u << 31,
                                       UINT32_MAX - 8, UINT32_MAX};
    const uint32_t last = TTM_NOTE_FIRST + SMALL_NOTES_BYTES / 8 - 1;
    struct small small = small_segment();
    uint8_t buf[SMALL_NOTES_BYTES];
    (void)state;

    assert_int_equal(ttm_ring_reader_open(small.fd, &small.reader), 0);
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        lie(&small, 0, 1, lengths[i]);
        assert_int_equal(ttm_ring_reader_note(&small.reader, TTM_NOTE_FIRST, 1, buf, UINT32_MAX),
                         -ENOENT);
    }
    lie(&small, 0, 1, SMALL_NOTES_BYTES - 8); /* all there is */
    assert_int_equal(ttm_ring_reader_note(&small.reader, TTM_NOTE_FIRST, 1, buf, sizeof(buf)),
                     SMALL_NOTES_BYTES - 8);
    lie(&small, SMALL_NOTES_BYTES - 8, 1, 0); /* at the very end */
    assert_int_equal(ttm_ring_reader_note(&small.reader, last, 1, buf, sizeof(buf)), 0);
    lie(&small, SMALL_NOTES_BYTES - 8, 1, 1);
    assert_int_equal(ttm_ring_reader_note(&small.reader, last, 1, buf, sizeof(buf)), -ENOENT);
    assert_int_equal(ttm_ring_reader_note(&small.reader, last + 1, 1, buf, sizeof(buf)), -ENOENT);
    lie(&small, 0, 0, 0); /* not whole */
    assert_int_equal(ttm_ring_reader_note(&small.reader, TTM_NOTE_FIRST, 1, buf, sizeof(buf)),
                     -ENOENT);
    small_done(&small);
}

static void a_segment_without_room_for_notes_has_none(void **state)
{
    uint8_t buf[8];
    (void)state;

    for (uint32_t bytes = 0; bytes < sizeof(struct ttm_note); bytes++) {
        struct small small = small_segment();
        small.segment->notes_bytes = bytes;
        lie(&small, 0, 1, 0);
        assert_int_equal(ttm_ring_reader_open(small.fd, &small.reader), 0);
        assert_int_equal(ttm_ring_reader_note(&small.reader, TTM_NOTE_FIRST, 1, buf, 8), -ENOENT);
        small_done(&small);
    }
}

#define WITH_SEGMENT(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SEGMENT(records_come_out_as_they_went_in_and_in_order),
        WITH_SEGMENT(a_ring_wraps_around_without_losing_its_order),
        WITH_SEGMENT(the_counts_of_a_ring_may_wrap_around_themselves),
        WITH_SEGMENT(a_full_ring_counts_what_it_loses_and_keeps_what_it_holds),
        WITH_SEGMENT(a_second_reader_goes_on_where_the_first_stopped),
        WITH_SEGMENT(what_a_process_wrote_is_read_after_it_has_gone),
        WITH_SEGMENT(a_ring_given_back_is_taken_by_the_next_thread_and_goes_on),
        WITH_SEGMENT(when_all_rings_are_taken_there_is_none_until_one_is_given_back),
        WITH_SEGMENT(a_busy_ring_does_not_keep_the_reader_from_the_others),
        WITH_SEGMENT(a_pass_is_told_each_time_the_last_ring_is_left),
        WITH_SEGMENT(a_ring_that_follows_a_full_one_is_read_after_it),
        WITH_SEGMENT(there_are_no_more_rings_to_go_on_in_than_there_may_be),
        WITH_SEGMENT(a_ring_that_follows_nothing_or_itself_holds_up_no_other),
        WITH_SEGMENT(rings_that_follow_each_other_are_read_all_the_same),
        WITH_SEGMENT(the_reader_is_past_a_mark_when_all_written_before_it_is_read),
        WITH_SEGMENT(losses_are_summed_over_all_rings),
        WITH_SEGMENT(threads_that_come_and_go_never_share_a_ring),
        WITH_SEGMENT(a_reader_that_writes_over_the_owners_makes_no_two_threads_share_a_ring),
        WITH_SEGMENT(a_reader_does_not_sleep_over_a_record),
        WITH_SEGMENT(a_sleeping_reader_is_woken_once),
        WITH_SEGMENT(a_loss_wakes_a_sleeping_reader_too),
        WITH_SEGMENT(a_reader_that_woke_by_itself_is_not_woken),
        WITH_SEGMENT(a_dozing_reader_is_woken_when_three_quarters_of_a_ring_are_full),
        WITH_SEGMENT(a_loss_wakes_a_dozing_reader_too),
        WITH_SEGMENT(waking_the_reader_keeps_errno_and_bears_a_closed_socket),
        WITH_SEGMENT(a_reader_that_cannot_be_woken_costs_neither_errno_nor_a_signal),
        WITH_SEGMENT(who_holds_the_other_end_is_told_when_ours_is_closed),
        WITH_SEGMENT(a_file_in_the_place_of_ours_is_left_alone),
        WITH_SEGMENT(waking_the_reader_is_no_cancellation_point),
        WITH_SEGMENT(no_wake_is_ever_lost),
        WITH_SEGMENT(records_arrive_whole_and_in_order_from_several_threads_at_once),
        WITH_SEGMENT(notes_are_read_back_by_number_and_kind),
        WITH_SEGMENT(a_note_that_does_not_fit_leaves_room_for_smaller_ones),
        WITH_SEGMENT(notes_of_threads_that_fill_the_area_together_do_not_overlap),
        cmocka_unit_test(a_header_with_any_field_wrong_is_refused),
        cmocka_unit_test(the_size_of_a_segment_is_the_file_s_whatever_the_header_says),
        cmocka_unit_test(a_header_that_changes_after_the_check_changes_nothing),
        cmocka_unit_test(an_fd_that_is_no_sealed_memory_of_the_right_size_is_refused),
        cmocka_unit_test(a_reader_without_memory_says_so),
        cmocka_unit_test(a_tail_that_makes_no_sense_is_counted_and_the_ring_goes_on_from_there),
        cmocka_unit_test(a_head_that_was_written_over_is_not_looked_at),
        cmocka_unit_test(a_head_that_lies_when_the_reader_comes_loses_one_ring_s_records),
        WITH_SEGMENT(a_head_ahead_of_the_tail_reads_as_full_to_the_producer),
        cmocka_unit_test(notes_that_reach_beyond_their_area_are_not_there),
        cmocka_unit_test(a_segment_without_room_for_notes_has_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
