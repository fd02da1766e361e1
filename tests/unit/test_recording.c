/* SPDX-License-Identifier: Apache-2.0 */
#include "recording_testing.h"

#include <sys/file.h>

/* The plain build looks at every byte; a sanitizer makes each look ten times as long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BYTE_STEP 7
#else
#define BYTE_STEP 1
#endif

/* What a reader got out of a file. */
struct reading {
    int opened;
    struct ttm_text lines;
    struct mirror mirror;
    struct ttm_recording_info info;
    unsigned errors;
};

static void read_lines(struct ttm_recording *rec, struct reading *ret)
{
    const struct ttm_recorded *record;
    char line[512];
    int r;

    while ((r = ttm_recording_next(rec, &record)) != 0) {
        if (r < 0) {
            assert_int_equal(r, -EBADMSG);
            assert_true(++ret->errors < 1000);
            continue;
        }
        mirror_apply(&ret->mirror, record);
        describe(record, line);
        ttm_text_append(&ret->lines, line);
        ttm_text_append(&ret->lines, "\n");
    }
    ttm_recording_info(rec, &ret->info);
}

static struct reading read_bytes(const uint8_t *bytes, size_t length)
{
    struct reading reading = {0};
    struct ttm_recording *rec = NULL;
    const int fd = memory_fd(bytes, length);

    ttm_text_init(&reading.lines);
    reading.opened = ttm_recording_open_fd(fd, &rec);
    if (reading.opened < 0) {
        assert_int_equal(reading.opened, -EBADMSG);
        (void)close(fd);
        return reading;
    }
    read_lines(rec, &reading);
    ttm_recording_close(rec);
    return reading;
}

static void reading_done(struct reading *reading)
{
    ttm_text_done(&reading->lines);
    mirror_done(&reading->mirror);
}

static struct bytes sample_bytes(bool is_finished)
{
    struct memory_file file;

    memory_begin(&file, 40); /* several sections */
    sample_run(file.encoder);
    return memory_end(&file, is_finished);
}

/* Whether each line of 'part' that is no word of the reader's own is in 'whole'. */
static bool is_part_of(const char *part, const char *whole)
{
    const char *from = whole; /* mostly they come in the same order */
    char line[520];

    for (const char *at = part; *at; at = strchr(at, '\n') + 1) {
        (void)snprintf(line, sizeof(line), "%.*s\n", (int)(strchr(at, '\n') - at), at);
        /* Behind a gap: what it is, what was told again, and what has ended unheard. */
        if (strstr(line, " gap of ") || strstr(line, " told ") || strstr(line, " end 6 "))
            continue;
        const char *found = strstr(from, line);
        if (!found)
            found = strstr(whole, line);
        if (!found && line[0] == 'p') /* facts are told again after a gap */
            continue;
        if (!found) {
            (void)fprintf(stderr, "not in the whole: %s", line);
            return false;
        }
        from = found + 1;
    }
    return true;
}

static void everything_that_was_written_is_read(void **state)
{
    struct bytes bytes = sample_bytes(true);
    struct reading reading = read_bytes(bytes.data, bytes.length);
    (void)state;

    assert_int_equal(reading.opened, 0);
    assert_int_equal(reading.errors, 0);
    assert_true(reading.info.is_complete);
    assert_true(reading.info.is_finished);
    assert_true(reading.info.is_exact);
    assert_int_equal(reading.info.wall_offset_ns, WALL_OFFSET_NS);
    assert_int_equal(reading.mirror.births, 200);
    const char *const lines = ttm_text_string(&reading.lines);
    static const char *const expected[] = {
        "1000000000001 p1 process pid 4001 uid 1000 source 1 start 1690000000000000000 'python3 "
        "run.py'\n",
        "p1 device 1 arch 2 cores 64 asic abcdef banks 1073741824 x 12 'n300'\n",
        "p2 note 1104 kind 7 'run.py:14:main'\n",
        "1000001100900 p1 mark 'warm'\n",
        "1000001100900 p1 dispatch 77 devices 0\n",
        "1000001100900 p2 failure 1 region 1 wanted 1073741824 banks 67108864 33554432 16777216 "
        "origin 1101\n",
        "1000001100900 p2 loss 12 open\n",
        "1000001100900 p2 loss 0\n",
        "p2 counters 1 2 3 4 5 gap inexact untracked 6 left out 7 trouble 1101\n",
        "1000001650900 p1 rename 0 serial 100000000001e birth 1000001650000 id 130 at 1060 bytes "
        "4096/24576 allocator 1 devices 1030 origin 1102 cores 0 region 0 kind 0 flags 1 banks 12\n",
        "1000005502000 p2 process end 1 code 9\n",
        "p1 birth 0 told serial 1000000000003 birth 1000000165000 id 103",
    };
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        const char *first = strstr(lines, expected[i]);
        if (!first)
            fail_msg("not read: %s", expected[i]);
        assert_null(strstr(first + 1, expected[i])); /* and only once */
    }
    reading_done(&reading);
    bytes_done(&bytes);
}

/* Whatever a reader missed: once it says that it is exact, it is. */
static void assert_right_if_exact(const struct reading *reading, const struct reading *whole)
{
    if (!reading->info.is_exact || !reading->info.is_finished)
        return;
    assert_int_equal(reading->mirror.live.count, whole->mirror.live.count);
    assert_int_equal(reading->mirror.bytes, whole->mirror.bytes);
}

static void each_flipped_byte_is_noticed_and_nothing_wrong_is_read(void **state)
{
    struct bytes bytes = sample_bytes(true);
    struct reading whole = read_bytes(bytes.data, bytes.length);
    size_t exact = 0;
    (void)state;

    for (size_t i = 0; i < bytes.length; i += BYTE_STEP) {
        const uint8_t flip = (uint8_t)(1u << i % 8);
        bytes.data[i] ^= flip;
        struct reading reading = read_bytes(bytes.data, bytes.length);
        if (reading.opened == 0) {
            if (reading.info.is_complete)
                fail_msg("byte %zu of %zu: not noticed", i, bytes.length);
            if (!is_part_of(ttm_text_string(&reading.lines), ttm_text_string(&whole.lines)))
                fail_msg("byte %zu of %zu", i, bytes.length);
            assert_right_if_exact(&reading, &whole);
            exact += reading.info.is_exact && reading.info.is_finished;
        }
        reading_done(&reading);
        bytes.data[i] ^= flip;
    }
    assert_true(exact >
                bytes.length / BYTE_STEP / 2); /* most damage is over with the next section */
    reading_done(&whole);
    bytes_done(&bytes);
}

static void each_truncation_is_noticed_and_its_whole_blocks_are_read(void **state)
{
    struct bytes bytes = sample_bytes(true);
    struct reading whole = read_bytes(bytes.data, bytes.length);
    size_t most = 0;
    (void)state;

    for (size_t n = 0; n < bytes.length; n += BYTE_STEP) {
        struct reading reading = read_bytes(bytes.data, n);
        if (reading.opened == 0) {
            assert_false(reading.info.is_complete);
            assert_false(reading.info.is_finished);
            assert_int_equal(reading.errors, 0);
            /* A beginning of the whole, and never less than with fewer bytes. */
            assert_true(reading.lines.length >= most);
            most = reading.lines.length;
            assert_memory_equal(ttm_text_string(&reading.lines), ttm_text_string(&whole.lines),
                                reading.lines.length);
        } else {
            assert_true(n < TTM_FILE_HEAD_SIZE);
        }
        reading_done(&reading);
    }
    assert_int_equal(most, whole.lines.length); /* all blocks, without the end of the file */
    reading_done(&whole);
    bytes_done(&bytes);
}

/* A part in the middle that was never written, as after a crash of the machine. */
static void a_hole_in_the_middle_leaves_what_follows(void **state)
{
    struct bytes bytes = sample_bytes(true);
    struct reading whole = read_bytes(bytes.data, bytes.length);
    const size_t hole = bytes.length / 3;
    (void)state;

    memset(bytes.data + hole, 0, bytes.length / 6);
    struct reading zeros = read_bytes(bytes.data, bytes.length);
    assert_true(zeros.errors > 0);
    assert_false(zeros.info.is_complete);
    assert_true(zeros.info.is_finished && zeros.info.is_exact);
    assert_int_equal(zeros.mirror.live.count, whole.mirror.live.count);
    assert_true(zeros.mirror.gaps == 1 && zeros.info.lost_events > 0);

    /* And one that is gone. */
    memmove(bytes.data + hole, bytes.data + hole + bytes.length / 6,
            bytes.length - hole - bytes.length / 6);
    struct reading cut = read_bytes(bytes.data, bytes.length - bytes.length / 6);
    assert_true(cut.errors > 0);
    assert_int_equal(cut.mirror.live.count, whole.mirror.live.count);
    assert_false(cut.info.is_complete);
    reading_done(&cut);
    reading_done(&zeros);
    reading_done(&whole);
    bytes_done(&bytes);
}

static void a_file_that_grows_is_read_as_it_grows(void **state)
{
    struct bytes bytes = sample_bytes(true);
    struct reading whole = read_bytes(bytes.data, bytes.length);
    struct reading reading = {0};
    struct ttm_recording *rec = NULL;
    const int fd = memory_fd(bytes.data, TTM_FILE_HEAD_SIZE);
    (void)state;

    ttm_text_init(&reading.lines);
    assert_int_equal(ttm_recording_open_fd(fd, &rec), 0);
    for (size_t n = TTM_FILE_HEAD_SIZE; n < bytes.length; n += 37) {
        read_lines(rec, &reading);
        assert_false(reading.info.is_finished);
        const size_t step = bytes.length - n < 37 ? bytes.length - n : 37;
        assert_int_equal(write(fd, bytes.data + n, step), step);
    }
    read_lines(rec, &reading);
    assert_int_equal(reading.errors, 0);
    assert_true(reading.info.is_complete);
    assert_string_equal(ttm_text_string(&reading.lines), ttm_text_string(&whole.lines));
    ttm_recording_close(rec);
    reading_done(&reading);
    reading_done(&whole);
    bytes_done(&bytes);
}

static void seeking_gives_what_was_live_at_that_time(void **state)
{
    (void)state;
    for (int is_finished = 0; is_finished <= 1; is_finished++) {
        struct bytes bytes = sample_bytes(is_finished);
        struct reading whole = read_bytes(bytes.data, bytes.length);
        for (uint64_t time = START_NS - 1; time < START_NS + 6000000; time += 400000) {
            struct reading reading = {0};
            struct ttm_recording *rec = NULL;
            const struct ttm_recorded *record;
            ttm_text_init(&reading.lines);
            assert_int_equal(ttm_recording_open_fd(memory_fd(bytes.data, bytes.length), &rec), 0);
            for (int i = 0; i < 20; i++) /* from anywhere */
                assert_int_equal(ttm_recording_next(rec, &record), 1);
            assert_int_equal(ttm_recording_seek(rec, time), 0);
            read_lines(rec, &reading);
            assert_int_equal(reading.errors, 0);
            assert_true(reading.info.is_exact);
            assert_int_equal(reading.mirror.gaps, 0);
            assert_int_equal(reading.mirror.live.count, whole.mirror.live.count);
            assert_int_equal(reading.mirror.bytes, whole.mirror.bytes);
            if (time > START_NS + 5000000) /* a late section is short */
                assert_true(reading.lines.length < whole.lines.length / 2);
            ttm_recording_close(rec);
            reading_done(&reading);
        }
        reading_done(&whole);
        bytes_done(&bytes);
    }
}

static void blocks_of_another_file_are_not_taken_for_ours(void **state)
{
    struct bytes bytes = sample_bytes(true);
    struct reading reading;
    uint8_t head[TTM_FILE_HEAD_SIZE];
    (void)state;

    ttm_file_head_encode(FILE_ID + 1, head);
    memcpy(bytes.data, head, sizeof(head));
    reading = read_bytes(bytes.data, bytes.length);
    assert_int_equal(reading.opened, 0);
    assert_int_equal(reading.lines.length, 0);
    assert_int_equal(reading.errors, 1);
    assert_false(reading.info.is_complete);
    reading_done(&reading);
    bytes_done(&bytes);
}

static void what_is_no_recording_is_refused(void **state)
{
    struct ttm_recording *rec = NULL;
    uint8_t noise[5000];
    uint64_t random = 5;
    (void)state;

    for (size_t i = 0; i < sizeof(noise); i++)
        noise[i] = (uint8_t)next_random(&random);
    struct reading reading = read_bytes(noise, sizeof(noise));
    assert_int_equal(reading.opened, -EBADMSG);
    reading_done(&reading);
    reading = read_bytes(noise, 0);
    assert_int_equal(reading.opened, -EBADMSG);
    reading_done(&reading);
    assert_int_equal(ttm_recording_open("/nonexistent", &rec), -ENOENT);
    assert_int_equal(ttm_recording_open("/tmp", &rec), -EISDIR);
    assert_int_equal(ttm_recording_open("/dev/null", &rec), -EBADMSG);
}

static void a_newer_version_is_named_as_such(void **state)
{
    struct bytes bytes = sample_bytes(true);
    struct ttm_recording *rec = NULL;
    uint8_t head[TTM_FILE_HEAD_SIZE];
    uint64_t id;
    (void)state;

    ttm_file_head_encode(FILE_ID, head);
    assert_int_equal(ttm_file_head_decode(head, &id), 0);
    head[8] = 2; /* no checksum of ours: that is made anew by the one who writes version 2 */
    assert_int_equal(ttm_file_head_decode(head, &id), -EBADMSG);
    struct bytes newer = bytes_of(bytes.data, bytes.length);
    newer.data[TTM_FILE_HEAD_SIZE + 8] = 2;
    const int fd = memory_fd(newer.data, newer.length);
    const struct ttm_recorded *record;
    assert_int_equal(ttm_recording_open_fd(fd, &rec), 0);
    assert_int_equal(ttm_recording_next(rec, &record), -EBADMSG);
    ttm_recording_close(rec);
    bytes_done(&newer);
    bytes_done(&bytes);
}

static void a_reader_sees_whether_someone_writes(void **state)
{
    struct memory_file file;
    struct ttm_recording *rec = NULL;
    struct ttm_recording_info info;
    (void)state;

    memory_begin(&file, 0);
    assert_int_equal(ttm_recording_open(file.path, &rec), 0);
    ttm_recording_info(rec, &info);
    assert_true(info.is_being_written);
    struct bytes bytes = memory_end(&file, true);
    ttm_recording_info(rec, &info);
    assert_false(info.is_being_written);
    ttm_recording_close(rec);
    bytes_done(&bytes);
}

/* Recordings of older versions are read for ever. The golden lines tell what is in them. */
static void assert_reads_as_ever(const char *name)
{
    struct reading reading = {0};
    struct ttm_recording *rec = NULL;
    static char expected[1 << 20];
    char path[512];

    ttm_text_init(&reading.lines);
    (void)snprintf(path, sizeof(path), "%s/recording/%s.ttmem", TTM_TEST_DATA, name);
    assert_int_equal(ttm_recording_open(path, &rec), 0);
    read_lines(rec, &reading);
    assert_true(reading.info.is_complete);
    (void)snprintf(path, sizeof(path), "%s/recording/%s.txt", TTM_TEST_DATA, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    const size_t length = fread(expected, 1, sizeof(expected) - 1, file);
    expected[length] = '\0';
    (void)fclose(file);
    assert_string_equal(ttm_text_string(&reading.lines), expected);
    ttm_recording_close(rec);
    reading_done(&reading);
}

static void the_golden_recordings_read_as_ever(void **state)
{
    (void)state;
    assert_reads_as_ever("v1-small");
    assert_reads_as_ever("v1.1-small");
    assert_reads_as_ever("v1.2-small");
    assert_reads_as_ever("v1.3-small");
}

/* 'test_recording --golden FILE TEXT' writes what becomes golden with a new version. */
static int write_golden(const char *path, const char *text_path)
{
    struct bytes bytes = sample_bytes(true);
    struct reading reading = read_bytes(bytes.data, bytes.length);
    FILE *file = fopen(path, "wb"), *text = fopen(text_path, "w");

    if (!file || !text || fwrite(bytes.data, 1, bytes.length, file) != bytes.length ||
        fputs(ttm_text_string(&reading.lines), text) < 0 || fclose(file) != 0 || fclose(text) != 0)
        return 1;
    reading_done(&reading);
    bytes_done(&bytes);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_that_was_written_is_read),
        cmocka_unit_test(each_flipped_byte_is_noticed_and_nothing_wrong_is_read),
        cmocka_unit_test(each_truncation_is_noticed_and_its_whole_blocks_are_read),
        cmocka_unit_test(a_hole_in_the_middle_leaves_what_follows),
        cmocka_unit_test(a_file_that_grows_is_read_as_it_grows),
        cmocka_unit_test(seeking_gives_what_was_live_at_that_time),
        cmocka_unit_test(blocks_of_another_file_are_not_taken_for_ours),
        cmocka_unit_test(what_is_no_recording_is_refused),
        cmocka_unit_test(a_newer_version_is_named_as_such),
        cmocka_unit_test(a_reader_sees_whether_someone_writes),
        cmocka_unit_test(the_golden_recordings_read_as_ever),
    };

    if (argc == 4 && strcmp(argv[1], "--golden") == 0)
        return write_golden(argv[2], argv[3]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
