/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/queue.h"
#include "query/answer.h"

/* A server that has said everything it will say: frames in a socket that is shut behind them. */
static struct ttm_queue frames;
static struct ttm_connection conn;
static struct ttm_answer answer;

static int set_up(void **state)
{
    (void)state;
    ttm_queue_init(&frames);
    ttm_answer_init(&answer);
    conn = (struct ttm_connection){.fd = -1};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_queue_done(&frames);
    ttm_answer_done(&answer);
    ttm_connection_close(&conn);
    return 0;
}

static void say(uint16_t type, const void *payload, size_t length)
{
    assert_int_equal(ttm_frame_append(&frames, type, payload, (uint32_t)length), 0);
}

static void say_process(uint32_t index)
{
    const struct ttm_process_row row = {.index = index, .pid = 100 + (int32_t)index};
    uint8_t buf[TTM_ROW_SIZE_MAX];

    say(TTM_FRAME_PROCESS, buf, ttm_process_row_encode(&row, buf));
}

static void say_site(uint32_t process, uint32_t number, uint16_t device_count)
{
    struct ttm_site_row row = {
        .process_index = process,
        .site = number,
        .region = TTM_REGION_L1,
        .births = 10 + number,
        .device_count = device_count,
    };
    uint8_t buf[TTM_SITE_ROW_SIZE_MAX];

    for (uint16_t i = 0; i < device_count; i++)
        row.devices[i] = i;
    say(TTM_FRAME_SITE, buf, ttm_site_row_encode(&row, buf));
}

static void say_lives(uint32_t process, uint32_t site, uint32_t count)
{
    uint8_t *payload =
        ttm_frame_begin(&frames, TTM_FRAME_LIVES, TTM_LIVES_HEAD_SIZE + count * TTM_LIFE_ROW_SIZE);

    assert_non_null(payload);
    ttm_lives_head_encode(process, count, payload);
    for (uint32_t i = 0; i < count; i++) {
        const struct ttm_life_row row = {.id = i, .bytes = i + 1, .site = site};
        ttm_life_row_encode(&row, payload + TTM_LIVES_HEAD_SIZE + i * TTM_LIFE_ROW_SIZE);
    }
}

static void say_device(uint16_t id)
{
    const struct ttm_device_row row = {.id = id, .board = "n150"};
    uint8_t buf[TTM_ROW_SIZE_MAX];

    say(TTM_FRAME_DEVICE, buf, ttm_device_row_encode(&row, buf));
}

static void say_process_device(uint32_t process, uint16_t device)
{
    const struct ttm_process_device_row row = {.process_index = process, .device_id = device};
    uint8_t buf[TTM_ROW_SIZE_MAX];

    say(TTM_FRAME_PROCESS_DEVICE, buf, ttm_process_device_row_encode(&row, buf));
}

/* Receives what was said. */
static int receive(void)
{
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const size_t length = ttm_queue_length(&frames);
    const int room = (int)(2 * length);
    assert_int_equal(setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
    if (length > 0)
        assert_int_equal(send(ends[1], ttm_queue_front(&frames), length, MSG_DONTWAIT), length);
    (void)close(ends[1]);
    conn.fd = ends[0];
    return ttm_answer_receive(&conn, 0, &answer);
}

static void a_whole_answer_is_received_as_data(void **state)
{
    const struct ttm_moment moment = {.time_ns = 5, .device_count = 3, .process_count = 2};
    uint8_t buf[TTM_ROW_SIZE_MAX];
    (void)state;

    say(TTM_FRAME_TOTALS, buf, ttm_moment_encode(&moment, buf));
    for (uint16_t id = 0; id < 5; id++)
        say_device((uint16_t)(id * 3));
    say_process(0);
    say_process_device(0, 3);
    say_process_device(0, 12);
    say_process_device(0, 0);
    say_process(1);
    say_site(0, 0, 1);
    say_site(0, 1, 3);
    say_lives(0, 1, 500);
    say_site(1, 0, 1024);
    say_lives(1, 0, 0);
    say_lives(0, 0, 100);
    say(TTM_FRAME_END, NULL, 0);
    assert_int_equal(receive(), 0);

    assert_int_equal(answer.moment.time_ns, 5);
    assert_int_equal(answer.device_count, 5);
    assert_non_null(ttm_answer_device(&answer, 12));
    assert_string_equal(ttm_answer_device(&answer, 12)->board, "n150");
    assert_null(ttm_answer_device(&answer, 1));
    assert_int_equal(answer.process_count, 2);
    assert_int_equal(answer.processes[1].row.pid, 101);
    assert_int_equal(answer.processes[0].device_count, 3);
    assert_int_equal(answer.processes[0].devices[1].device_id, 12);
    assert_int_equal(answer.processes[0].site_count, 2);
    assert_int_equal(answer.processes[0].sites[1].births, 11);
    assert_int_equal(answer.processes[0].sites[1].device_count, 3);
    assert_int_equal(answer.processes[0].sites[1].devices[2], 2);
    assert_int_equal(answer.processes[1].sites[0].device_count, 1024);
    assert_int_equal(answer.processes[0].live_count, 600);
    assert_int_equal(answer.processes[0].lives[499].bytes, 500);
    assert_int_equal(answer.processes[0].lives[500].site, 0);
    assert_int_equal(answer.processes[1].live_count, 0);
}

static void say_origin(uint32_t process, uint32_t number, const char *name)
{
    const struct ttm_origin_row row = {.process_index = process,
                                       .number = number,
                                       .context = "c",
                                       .name = name,
                                       .thread = "t",
                                       .operation = "o",
                                       .python = "p",
                                       .native = "n"};
    static uint8_t buf[TTM_ORIGIN_ROW_SIZE_MAX];

    say(TTM_FRAME_ORIGIN, buf, ttm_origin_row_encode(&row, buf));
}

static void say_site_of(uint32_t process, uint32_t number, uint32_t origin)
{
    const struct ttm_site_row row = {
        .process_index = process, .site = number, .origin = origin, .device_count = 1};
    uint8_t buf[TTM_SITE_ROW_SIZE_MAX];

    say(TTM_FRAME_SITE, buf, ttm_site_row_encode(&row, buf));
}

static void say_mark(uint32_t process, const char *name)
{
    struct ttm_mark_row row = {.process_index = process, .time_ns = 7};
    uint8_t buf[TTM_ROW_SIZE_MAX];

    memcpy(row.name, name, strlen(name));
    say(TTM_FRAME_MARK, buf, ttm_mark_row_encode(&row, buf));
}

static void say_failure(uint32_t process, uint32_t origin)
{
    const struct ttm_failure_row row = {.process_index = process, .origin = origin};
    uint8_t buf[TTM_ROW_SIZE_MAX];

    say(TTM_FRAME_FAILURE, buf, ttm_failure_row_encode(&row, buf));
}

static void assert_origin(uint32_t process, uint32_t origin, const char *name)
{
    const struct ttm_answer_origin *found = ttm_answer_origin(&answer.processes[process], origin);

    if (!name) {
        assert_null(found);
        return;
    }
    assert_non_null(found);
    assert_string_equal(found->name, name);
    assert_string_equal(found->context, "c");
    assert_string_equal(found->thread, "t");
    assert_string_equal(found->operation, "o");
    assert_string_equal(found->python, "p");
    assert_string_equal(found->native, "n");
}

static void sites_and_failures_know_their_origins_whatever_the_order(void **state)
{
    (void)state;
    say_process(0);
    say_failure(0, 9000);
    say_failure(0, 1);
    say_process(1);
    for (uint32_t i = 0; i < 100; i++) /* not in the order of their numbers */
        say_origin(0, 9000 - i * 7, i == 0 ? "first" : i == 99 ? "last" : "between");
    say_site_of(0, 0, 9000);
    say_site_of(0, 1, 9000 - 99 * 7);
    say_site_of(0, 2, 8999); /* was not sent */
    say_site_of(0, 3, 0);
    say_origin(1, 9000, "of the other");
    say_site_of(1, 0, 9000);
    say_site_of(1, 1, UINT32_MAX);
    say(TTM_FRAME_END, NULL, 0);
    assert_int_equal(receive(), 0);
    const struct ttm_answer_process *p = &answer.processes[0];
    assert_int_equal(p->origin_count, 100);
    assert_origin(0, p->sites[0].origin, "first");
    assert_origin(0, p->sites[1].origin, "last");
    assert_origin(0, p->sites[2].origin, NULL);
    assert_origin(0, p->sites[3].origin, NULL);
    assert_origin(0, p->failures[0].origin, "first");
    assert_origin(0, p->failures[1].origin, NULL);
    assert_origin(1, answer.processes[1].sites[0].origin, "of the other");
    assert_origin(1, answer.processes[1].sites[1].origin, NULL);
}

static void marks_are_received_in_order(void **state)
{
    (void)state;
    say_process(0);
    say_mark(0, "one");
    say_mark(0, "two");
    say_mark(0, "three");
    say(TTM_FRAME_END, NULL, 0);
    assert_int_equal(receive(), 0);
    assert_int_equal(answer.processes[0].mark_count, 3);
    assert_string_equal(answer.processes[0].marks[0].name, "one");
    assert_string_equal(answer.processes[0].marks[2].name, "three");
    assert_int_equal(answer.processes[0].marks[1].time_ns, 7);
}

static void an_origin_of_no_process_is_refused(void **state)
{
    (void)state;
    say_process(0);
    say_origin(1, 5, "x");
    say(TTM_FRAME_END, NULL, 0);
    assert_int_equal(receive(), -EPROTO);
}

static void a_mark_of_no_process_is_refused(void **state)
{
    (void)state;
    say_mark(0, "x");
    say(TTM_FRAME_END, NULL, 0);
    assert_int_equal(receive(), -EPROTO);
}

static void a_failure_of_no_process_is_refused(void **state)
{
    (void)state;
    say_process(0);
    say_failure(UINT32_MAX, 0);
    say(TTM_FRAME_END, NULL, 0);
    assert_int_equal(receive(), -EPROTO);
}

static void an_origin_cut_off_is_refused(void **state)
{
    struct bytes file = golden("origin.v1.bin");
    (void)state;

    say_process(0);
    say_process(1);
    say_process(2);
    say_process(3);
    say(TTM_FRAME_ORIGIN, file.data, file.length - 1);
    say(TTM_FRAME_END, NULL, 0);
    assert_int_equal(receive(), -EBADMSG);
    bytes_done(&file);
}

static void frames_of_an_unknown_type_are_passed_over(void **state)
{
    (void)state;
    say(0x7777, "of a newer server", 17);
    say_process(0);
    say(0x7778, NULL, 0);
    say(TTM_FRAME_END, NULL, 0);
    assert_int_equal(receive(), 0);
    assert_int_equal(answer.process_count, 1);
}

static void the_status_and_the_check_are_received(void **state)
{
    struct ttm_status status = {0};
    const struct ttm_checked checked = {.lives = 7, .processes = 2, .mismatches = 1};
    uint8_t buf[TTM_STATUS_SIZE];
    (void)state;

    status.counter[TTM_COUNTER_BIRTHS] = 99;
    ttm_status_encode(&status, buf);
    say(TTM_FRAME_STATUS, buf, sizeof(buf));
    ttm_checked_encode(&checked, buf);
    say(TTM_FRAME_CHECKED, buf, TTM_CHECKED_SIZE);
    say(TTM_FRAME_END, NULL, 0);
    assert_int_equal(receive(), 0);
    assert_int_equal(answer.status.counter[TTM_COUNTER_BIRTHS], 99);
    assert_int_equal(answer.checked.mismatches, 1);
}

static void an_answer_that_stops_before_its_end_is_a_broken_pipe(void **state)
{
    (void)state;
    say_process(0);
    assert_int_equal(receive(), -EPIPE);
}

static void an_answer_that_stops_in_mid_frame_is_a_broken_pipe(void **state)
{
    (void)state;
    say_process(0);
    say(TTM_FRAME_END, NULL, 0);
    frames.tail -= 3;
    assert_int_equal(receive(), -EPIPE);
}

static void a_server_that_says_nothing_in_time_is_given_up(void **state)
{
    int ends[2];
    (void)state;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    conn.fd = ends[0];
    assert_int_equal(ttm_answer_receive(&conn, 0, &answer), -ETIMEDOUT);
    (void)close(ends[1]);
}

static void an_error_of_the_server_is_kept_in_its_words(void **state)
{
    char text[400];
    (void)state;

    memset(text, 'e', sizeof(text));
    memcpy(text, "no: ", 4);
    say(TTM_FRAME_ERROR, text, sizeof(text)); /* longer than we keep */
    assert_int_equal(receive(), -EREMOTEIO);
    assert_int_equal(strlen(conn.why), sizeof(conn.why) - 1);
    assert_memory_equal(conn.why, "no: eee", 7);
}

static void a_frame_above_the_limit_is_refused_before_memory_is_taken(void **state)
{
    static const uint8_t huge[] = {TTM_FRAME_LIVES, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
    (void)state;

    assert_int_equal(ttm_queue_append(&frames, huge, sizeof(huge)), 0);
    assert_int_equal(receive(), -EMSGSIZE);
}

static void a_process_out_of_order_is_refused(void **state)
{
    (void)state;
    say_process(1);
    assert_int_equal(receive(), -EPROTO);
}

static void a_process_said_twice_is_refused(void **state)
{
    (void)state;
    say_process(0);
    say_process(0);
    assert_int_equal(receive(), -EPROTO);
}

static void a_device_of_an_unknown_process_is_refused(void **state)
{
    (void)state;
    say_process(0);
    say_process_device(1, 0);
    assert_int_equal(receive(), -EPROTO);
}

static void a_site_of_an_unknown_process_is_refused(void **state)
{
    (void)state;
    say_site(0, 0, 1);
    assert_int_equal(receive(), -EPROTO);
}

static void a_site_out_of_order_is_refused(void **state)
{
    (void)state;
    say_process(0);
    say_site(0, 1, 1);
    assert_int_equal(receive(), -EPROTO);
}

static void a_site_on_no_device_is_refused(void **state)
{
    (void)state;
    say_process(0);
    say_site(0, 0, 0);
    assert_int_equal(receive(), -EPROTO);
}

static void lives_of_an_unknown_process_are_refused(void **state)
{
    (void)state;
    say_lives(0, 0, 1);
    assert_int_equal(receive(), -EPROTO);
}

static void a_life_of_a_site_not_yet_said_is_refused(void **state)
{
    (void)state;
    say_process(0);
    say_site(0, 0, 1);
    say_lives(0, 1, 1);
    assert_int_equal(receive(), -EPROTO);
}

static void a_row_that_does_not_decode_is_refused(void **state)
{
    (void)state;
    say(TTM_FRAME_DEVICE, "short", 5);
    assert_int_equal(receive(), -EBADMSG);
}

static void short_memory_is_said_and_leaks_nothing(void **state)
{
    (void)state;
    say_device(1);
    say_process(0);
    say_process_device(0, 1);
    say_site(0, 0, 2);
    say_lives(0, 0, 3);
    say(TTM_FRAME_END, NULL, 0);
    for (unsigned grants = 0;; grants++) {
        faults_begin(grants);
        const int r = receive();
        const bool has_failed = faults_end();
        ttm_connection_close(&conn);
        ttm_answer_done(&answer);
        if (!has_failed) {
            assert_int_equal(r, 0);
            assert_true(grants >= 7);
            return;
        }
        assert_int_equal(r, -ENOMEM);
        conn = (struct ttm_connection){.fd = -1};
    }
}

static void a_request_is_sent_as_one_frame(void **state)
{
    struct ttm_frame frame;
    uint8_t buf[64];
    int ends[2];
    (void)state;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    conn.fd = ends[0];
    assert_int_equal(ttm_connection_send(&conn, TTM_FRAME_GET_LIVES, "12345678", 8), 0);
    const ssize_t n = recv(ends[1], buf, sizeof(buf), MSG_DONTWAIT);
    assert_int_equal(n, 16);
    assert_int_equal(ttm_frame_parse(buf, (size_t)n, TTM_FRAME_REQUEST_MAX, &frame), 16);
    assert_int_equal(frame.type, TTM_FRAME_GET_LIVES);
    assert_memory_equal(frame.payload, "12345678", 8);
    (void)close(ends[1]);
    assert_int_equal(ttm_connection_send(&conn, TTM_FRAME_GET_STATUS, NULL, 0), -EPIPE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_whole_answer_is_received_as_data),
        TEST(frames_of_an_unknown_type_are_passed_over),
        TEST(sites_and_failures_know_their_origins_whatever_the_order),
        TEST(marks_are_received_in_order),
        TEST(an_origin_of_no_process_is_refused),
        TEST(a_mark_of_no_process_is_refused),
        TEST(a_failure_of_no_process_is_refused),
        TEST(an_origin_cut_off_is_refused),
        TEST(the_status_and_the_check_are_received),
        TEST(an_answer_that_stops_before_its_end_is_a_broken_pipe),
        TEST(an_answer_that_stops_in_mid_frame_is_a_broken_pipe),
        TEST(a_server_that_says_nothing_in_time_is_given_up),
        TEST(an_error_of_the_server_is_kept_in_its_words),
        TEST(a_frame_above_the_limit_is_refused_before_memory_is_taken),
        TEST(a_process_out_of_order_is_refused),
        TEST(a_process_said_twice_is_refused),
        TEST(a_device_of_an_unknown_process_is_refused),
        TEST(a_site_of_an_unknown_process_is_refused),
        TEST(a_site_out_of_order_is_refused),
        TEST(a_site_on_no_device_is_refused),
        TEST(lives_of_an_unknown_process_are_refused),
        TEST(a_life_of_a_site_not_yet_said_is_refused),
        TEST(a_row_that_does_not_decode_is_refused),
        TEST(short_memory_is_said_and_leaks_nothing),
        TEST(a_request_is_sent_as_one_frame),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
