/* SPDX-License-Identifier: Apache-2.0 */
/* What those who watch are told of allocations that fail. */
#include "testing.h"

#include "server/state.h"
#include "wire/frame.h"
#include "wire/origin_row.h"

#define PID 77
#define FRAMES_MAX 4096

/* As much of a server as telling looks at, with one process and one who listens. */
static struct ttm_server server;
static struct ttm_account account;
static struct ttm_client client;
static struct ttm_session session;

static void add_origin(uint32_t number, const char *python)
{
    struct ttm_origin origin = {.number = number};

    for (size_t i = 0; i < TTM_ORIGIN_TEXTS; i++)
        origin.text[i] = "";
    origin.text[TTM_ORIGIN_PYTHON] = python;
    assert_int_equal(ttm_origin_table_add(&client.process->origins, &origin), 0);
}

static int set_up(void **state)
{
    const struct ttm_process_info info = {.pid = PID, .source = TTM_SOURCE_TRACKED};
    (void)state;

    server = (struct ttm_server){.reg = ttm_registry_new(5), .wall_offset_ns = 1000};
    ttm_list_init(&server.tails);
    ttm_list_init(&server.dirty);
    assert_non_null(ttm_registry_device(server.reg, 2));
    client = (struct ttm_client){.server = &server, .pid = PID, .pidfd = -1};
    assert_int_equal(ttm_registry_add_process(server.reg, &info, &client.process), 0);
    account = (struct ttm_account){.server = &server};
    session = (struct ttm_session){.server = &server, .account = &account};
    ttm_list_init(&session.dirty_link);
    ttm_list_init(&session.tail_link);
    ttm_queue_init(&session.out);
    assert_true(ttm_tail_subscribe(&session, &(struct ttm_events_request){.has_last_words = true}));
    add_origin(1, "p.py:4:alloc\np.py:5:weights\n");
    add_origin(2, "p.py:4:alloc\np.py:6:cache\n");
    add_origin(3, "p.py:4:alloc_more\n");
    add_origin(4, "q.py:9:step\n");
    add_origin(5, "");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_tail_leave(&session);
    ttm_queue_done(&session.out);
    ttm_registry_free(server.reg);
    return 0;
}

static void fail_with(uint64_t wanted_bytes, uint32_t origin, uint32_t owner)
{
    const struct ttm_failure_row failure = {
        .time_ns = 5,
        .wanted_bytes = wanted_bytes,
        .origin = origin,
        .device_id = 2,
        .region = TTM_REGION_L1,
        .owners = {{owner, 5, 7000, 8192}},
        .owner_count = 1,
    };

    assert_int_equal(ttm_story_add_failure(&client.process->story, &failure), 0);
    ttm_tail_failure(&server, &client, &failure);
}

/* What waits for the session, as a letter for each frame; the last failure and row of them. */
static const char *take(struct ttm_failure_row *ret_failure, struct ttm_process_row *ret_row)
{
    static char letters[FRAMES_MAX + 1];
    struct ttm_frame frame;
    size_t count = 0;

    while (ttm_queue_length(&session.out) > 0) {
        const long size = ttm_frame_parse(ttm_queue_front(&session.out),
                                          ttm_queue_length(&session.out), UINT32_MAX, &frame);
        assert_true(size > 0);
        assert_true(count < FRAMES_MAX);
        letters[count++] = frame.type == TTM_FRAME_PROCESS   ? 'p'
                           : frame.type == TTM_FRAME_DEVICE  ? 'd'
                           : frame.type == TTM_FRAME_ORIGIN  ? 'o'
                           : frame.type == TTM_FRAME_FAILURE ? 'f'
                                                             : '?';
        if (frame.type == TTM_FRAME_FAILURE && ret_failure)
            assert_int_equal(ttm_failure_row_decode(frame.payload, frame.length, ret_failure), 0);
        if (frame.type == TTM_FRAME_PROCESS && ret_row)
            assert_int_equal(ttm_process_row_decode(frame.payload, frame.length, ret_row), 0);
        ttm_queue_consume(&session.out, (size_t)size);
    }
    letters[count] = '\0';
    return letters;
}

static void a_failure_comes_behind_its_process_with_what_it_names(void **state)
{
    struct ttm_failure_row failure;
    struct ttm_process_row row;
    (void)state;

    fail_with(4096, 4, 5);
    assert_string_equal(take(&failure, &row), "pdoof");
    assert_int_equal(row.pid, PID);
    assert_int_equal(row.failures, 1);
    assert_int_equal(failure.process_index, PID);
    assert_int_equal(failure.time_ns, 1005);
    assert_int_equal(failure.owner_count, 1);
    fail_with(8192, 4, 5);
    assert_string_equal(take(&failure, &row), "pdf"); /* the origins are known */
    assert_int_equal(row.failures, 2);
    assert_int_equal(failure.wanted_bytes, 8192);
    fail_with(8192, 0, 6); /* one that is none, and one that nobody knows */
    assert_string_equal(take(NULL, NULL), "pdf");
}

static void who_comes_through_the_same_line_is_told_too(void **state)
{
    (void)state;
    fail_with(4096, 2, 4);
    assert_string_equal(take(NULL, NULL), "pdooof"); /* 2 and 1, and 4 */
    fail_with(4096, 1, 3);
    assert_string_equal(take(NULL, NULL), "pdof");
}

static void who_has_not_asked_or_may_not_see_it_hears_nothing(void **state)
{
    (void)state;
    session.tail.has_last_words = false;
    fail_with(4096, 1, 2);
    session.tail = (struct ttm_events_request){.has_last_words = true, .pid = PID + 1};
    fail_with(4096, 1, 2);
    session.tail.pid = 0;
    session.uid = 5;
    client.uid = 6;
    fail_with(4096, 1, 2);
    assert_string_equal(take(NULL, NULL), "");
    session.uid = 6;
    fail_with(4096, 1, 2);
    assert_string_equal(take(NULL, NULL), "pdoof");
}

static void of_too_many_some_are_left_out_and_the_last_comes_with_the_last_words(void **state)
{
    struct ttm_failure_row failure;
    struct ttm_process_row row;
    (void)state;

    for (uint64_t i = 1; i <= 10000; i++)
        fail_with(i, 1, 2);
    assert_true(ttm_queue_length(&session.out) < TTM_OUT_HIGH / 2);
    assert_int_equal(session.tail_lost, 0);
    (void)take(&failure, &row);
    assert_true(row.failures == failure.wanted_bytes && row.failures < 10000);
    ttm_tail_last_words(&server, &client);
    assert_string_equal(take(&failure, &row), "pdf");
    assert_int_equal(failure.wanted_bytes, 10000);
    assert_int_equal(row.failures, 10000);
}

static void without_failures_the_last_words_are_a_row(void **state)
{
    (void)state;
    ttm_tail_last_words(&server, &client);
    assert_string_equal(take(NULL, NULL), "p");
}

static void long_stacks_leave_room_for_ends(void **state)
{
    static char python[16000];
    struct ttm_failure_row failure = {.owner_count = TTM_OWNERS_MAX};
    (void)state;

    for (uint32_t i = 0; i < TTM_OWNERS_MAX; i++) {
        for (size_t n = 0; n < sizeof(python); n++)
            python[n] = n % 20 == 19 ? '\n' : (char)('a' + (int)i);
        python[sizeof(python) - 1] = '\0';
        add_origin(100 + i, python);
        failure.owners[i].origin = 100 + i;
    }
    while (ttm_queue_length(&session.out) < TTM_OUT_LOW) {
        const size_t before = ttm_queue_length(&session.out);
        ttm_tail_failure(&server, &client, &failure);
        assert_true(ttm_queue_length(&session.out) > before);
    }
    assert_true(ttm_queue_length(&session.out) < TTM_OUT_HIGH * 3 / 4);
}

static void stacks_of_one_line_do_not_fill_the_queue(void **state)
{
    static char python[8000];
    (void)state;

    for (uint32_t i = 0; i < 2000; i++) {
        const int n = snprintf(python, sizeof(python), "r.py:1:alloc\nr.py:%u:", i);
        memset(python + n, 'x', 4000);
        memcpy(python + n + 4000, "\n", 2);
        add_origin(100 + i, python);
    }
    fail_with(4096, 100, 101);
    assert_true(ttm_queue_length(&session.out) < TTM_OUT_HIGH / 2);
    const char *letters = take(NULL, NULL);
    assert_int_equal(letters[strlen(letters) - 1], 'f');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_failure_comes_behind_its_process_with_what_it_names,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_comes_through_the_same_line_is_told_too, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_has_not_asked_or_may_not_see_it_hears_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            of_too_many_some_are_left_out_and_the_last_comes_with_the_last_words, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(without_failures_the_last_words_are_a_row, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(long_stacks_leave_room_for_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stacks_of_one_line_do_not_fill_the_queue, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
