/* SPDX-License-Identifier: Apache-2.0 */
#include "recording_testing.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "recording/recorder.h"

static char folder[] = "/tmp/ttm-test-recorder-XXXXXX";
static char path[128];

static int set_up(void **state)
{
    (void)state;
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    if (!mkdtemp(folder))
        return -1;
    (void)snprintf(path, sizeof(path), "%s/run.ttmem", folder);
    return 0;
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;

    (void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command); /* NOLINT(cert-env33-c): a path of our own */
}

static struct ttm_recorder *open_recorder(void)
{
    const struct ttm_recorder_options options = {
        .path = path, .now_ns = START_NS, .now_wall_ns = START_NS + WALL_OFFSET_NS, .seed = 5};
    struct ttm_recorder *rec = NULL;

    assert_int_equal(ttm_recorder_open(&options, &rec), 0);
    return rec;
}

/* Births without end; notes that do not compress make it large. */
static void fill(struct ttm_encoder *enc, uint64_t from, uint64_t count, size_t note_bytes)
{
    static uint8_t noise[65536];
    static uint64_t random = 77;

    for (uint64_t i = from; i < from + count; i++) {
        const struct ttm_recorded_life life = sample_life(1, i);
        for (size_t k = 0; k < note_bytes; k++)
            noise[k] = (uint8_t)(next_random(&random) >> 24);
        const struct ttm_recorded_note note = {
            .number = (uint32_t)i + 5000, .kind = 1, .bytes = noise, .length = note_bytes};
        if (note_bytes > 0)
            assert_int_equal(ttm_encoder_note(enc, 1, &note), 0);
        assert_int_equal(ttm_encoder_birth(enc, &life), 0);
    }
}

static struct mirror read_path(const char *file, struct ttm_recording_info *ret)
{
    struct mirror mirror = {0};
    struct ttm_recording *rec = NULL;
    const struct ttm_recorded *record;
    int r;

    assert_int_equal(ttm_recording_open(file, &rec), 0);
    while ((r = ttm_recording_next(rec, &record)) > 0)
        mirror_apply(&mirror, record);
    assert_int_equal(r, 0);
    ttm_recording_info(rec, ret);
    ttm_recording_close(rec);
    return mirror;
}

static void what_is_recorded_is_in_the_file(void **state)
{
    struct ttm_recorder *rec = open_recorder();
    struct ttm_recording_info info;
    char *where = NULL;
    (void)state;

    sample_process(ttm_recorder_encoder(rec), 1);
    fill(ttm_recorder_encoder(rec), 1, 100000, 0);
    assert_int_equal(ttm_recorder_close(rec, &where), 0);
    assert_string_equal(where, path);
    free(where);
    struct mirror mirror = read_path(path, &info);
    assert_true(info.is_complete);
    assert_int_equal(info.wall_offset_ns, WALL_OFFSET_NS);
    assert_int_equal(mirror.live.count, 100000);
    mirror_done(&mirror);
}

/* Flushed within a second, so that a crash loses no more. */
static void the_file_can_be_read_while_it_is_written(void **state)
{
    struct ttm_recorder *rec = open_recorder();
    struct ttm_recording *reader = NULL;
    const struct ttm_recorded *record;
    struct mirror mirror = {0};
    uint64_t now = START_NS;
    (void)state;

    sample_process(ttm_recorder_encoder(rec), 1);
    assert_int_equal(ttm_recording_open(path, &reader), 0);
    for (uint64_t round = 0; round < 20; round++) {
        const uint64_t serial = 1 + round * 10;
        for (uint64_t i = serial; i < serial + 10; i++) {
            struct ttm_recorded_life life = sample_life(1, i);
            life.birth_ns = now;
            assert_int_equal(ttm_encoder_birth(ttm_recorder_encoder(rec), &life), 0);
        }
        const int timeout = ttm_recorder_timeout_ms(rec, now);
        assert_true(timeout >= 1 && timeout <= 1001);
        now += (uint32_t)timeout * TTM_NS_PER_MS;
        assert_int_equal(ttm_recorder_tick(rec, now, now), 0);
        /* The thread writes it in its own time. */
        while (mirror.live.count < (round + 1) * 10) {
            const int r = ttm_recording_next(reader, &record);
            assert_true(r >= 0);
            if (r > 0)
                mirror_apply(&mirror, record);
            else
                (void)sched_yield();
        }
    }
    assert_int_equal(ttm_recorder_timeout_ms(rec, now), -1);
    assert_int_equal(ttm_recorder_close(rec, NULL), 0);
    while (ttm_recording_next(reader, &record) > 0)
        mirror_apply(&mirror, record);
    struct ttm_recording_info info;
    ttm_recording_info(reader, &info);
    assert_true(info.is_complete);
    assert_int_equal(mirror.live.count, 200);
    ttm_recording_close(reader);
    mirror_done(&mirror);
}

/* A killed server leaves what it had flushed, under the name that was asked for. */
static void after_kill_9_the_file_is_there_and_can_be_read(void **state)
{
    struct ttm_recording_info info;
    int status;
    (void)state;

    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct ttm_recorder *rec = open_recorder();
        struct ttm_recorder_status now = {0};
        sample_process(ttm_recorder_encoder(rec), 1);
        fill(ttm_recorder_encoder(rec), 1, 1000, 0);
        ttm_recorder_flush(rec);
        fill(ttm_recorder_encoder(rec), 1001, 10, 0);
        while (now.bytes <= TTM_FILE_HEAD_SIZE)
            ttm_recorder_status(rec, &now);
        (void)raise(SIGKILL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    struct mirror mirror = read_path(path, &info);
    assert_false(info.is_complete);
    assert_false(info.is_being_written);
    assert_true(info.is_exact);
    assert_int_equal(mirror.live.count, 1000);
    mirror_done(&mirror);
}

static size_t files_in_folder(void)
{
    DIR *dir = opendir(folder);
    size_t count = 0;
    struct dirent *entry;

    assert_non_null(dir);
    while ((entry = readdir(dir)))
        count += entry->d_name[0] != '.';
    (void)closedir(dir);
    return count;
}

static void an_existing_file_stays_until_the_new_one_is_whole(void **state)
{
    struct ttm_recording_info info;
    char *where = NULL;
    (void)state;

    struct ttm_recorder *rec = open_recorder();
    sample_process(ttm_recorder_encoder(rec), 1);
    assert_int_equal(ttm_recorder_close(rec, NULL), 0);

    rec = open_recorder();
    sample_process(ttm_recorder_encoder(rec), 1);
    fill(ttm_recorder_encoder(rec), 1, 50, 0);
    assert_int_equal(files_in_folder(), 2);
    struct mirror mirror = read_path(path, &info);
    assert_true(info.is_complete && mirror.live.count == 0);
    mirror_done(&mirror);
    assert_int_equal(ttm_recorder_close(rec, &where), 0);
    assert_string_equal(where, path);
    free(where);
    assert_int_equal(files_in_folder(), 1);
    mirror = read_path(path, &info);
    assert_true(info.is_complete);
    assert_int_equal(mirror.live.count, 50);
    mirror_done(&mirror);
}

static void through_a_link_the_file_behind_it_is_replaced(void **state)
{
    char target[160];
    struct ttm_recording_info info;
    struct stat st;
    (void)state;

    (void)snprintf(target, sizeof(target), "%s/target.ttmem", folder);
    FILE *file = fopen(target, "w");
    assert_non_null(file);
    (void)fclose(file);
    assert_int_equal(symlink(target, path), 0);
    struct ttm_recorder *rec = open_recorder();
    sample_process(ttm_recorder_encoder(rec), 1);
    assert_int_equal(ttm_recorder_close(rec, NULL), 0);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    struct mirror mirror = read_path(target, &info);
    assert_true(info.is_complete);
    mirror_done(&mirror);
}

/* Waits for the thread: it is what finds out. */
static int tick_until_error(struct ttm_recorder *rec)
{
    int r = 0;

    for (uint64_t i = 0; r >= 0 && i < 100000000; i++) {
        ttm_recorder_flush(rec);
        r = ttm_recorder_tick(rec, START_NS, START_NS);
    }
    return r;
}

static void a_full_disk_stops_the_recording_says_so_once_and_leaves_whole_blocks(void **state)
{
    const struct rlimit limit = {.rlim_cur = 200000, .rlim_max = RLIM_INFINITY};
    struct rlimit before;
    struct ttm_recording_info info;
    struct ttm_recorder_status status;
    struct stat st;
    (void)state;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    struct ttm_recorder *rec = open_recorder();
    sample_process(ttm_recorder_encoder(rec), 1);
    uint64_t serial = 1;
    for (; serial < 1000; serial += 20) {
        fill(ttm_recorder_encoder(rec), serial, 20, 1000);
        ttm_recorder_flush(rec);
    }
    assert_int_equal(tick_until_error(rec), -EFBIG);
    assert_int_equal(ttm_recorder_tick(rec, START_NS, START_NS), 0);
    /* Tracking goes on, to no purpose but without harm. */
    fill(ttm_recorder_encoder(rec), serial, 1000, 0);
    ttm_recorder_status(rec, &status);
    assert_int_equal(status.error, -EFBIG);
    assert_int_equal(ttm_recorder_close(rec, NULL), -EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, handler);

    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, status.bytes); /* no part of a block */
    assert_in_range(st.st_size, 150000, 200000);
    struct mirror mirror = read_path(path, &info);
    assert_false(info.is_complete);
    assert_int_equal(info.torn_bytes, 0);
    assert_true(info.is_exact);
    assert_in_range(mirror.live.count, 100, 200);
    mirror_done(&mirror);
}

static void an_existing_file_survives_a_full_disk(void **state)
{
    struct ttm_recording_info info;
    (void)state;

    struct ttm_recorder *rec = open_recorder();
    sample_process(ttm_recorder_encoder(rec), 1);
    assert_int_equal(ttm_recorder_close(rec, NULL), 0);

    const struct rlimit limit = {.rlim_cur = 1000, .rlim_max = RLIM_INFINITY};
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    rec = open_recorder();
    sample_process(ttm_recorder_encoder(rec), 1);
    fill(ttm_recorder_encoder(rec), 1, 10, 1000);
    char *where = NULL;
    assert_int_equal(ttm_recorder_close(rec, &where), -EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, handler);
    assert_string_not_equal(where, path);
    free(where);
    struct mirror mirror = read_path(path, &info);
    assert_true(info.is_complete);
    mirror_done(&mirror);
}

static void a_device_that_is_full_is_an_error_at_once(void **state)
{
    const struct ttm_recorder_options options = {.path = "/dev/full"};
    struct ttm_recorder *rec = NULL;
    struct stat st;
    (void)state;

    assert_int_equal(ttm_recorder_open(&options, &rec), -ENOSPC);
    assert_int_equal(stat("/dev/full", &st), 0);
    assert_true(S_ISCHR(st.st_mode)); /* and is still what it was */
}

static void what_is_no_regular_file_is_written_in_place(void **state)
{
    const struct ttm_recorder_options options = {.path = "/dev/null"};
    struct ttm_recorder *rec = NULL;
    struct stat st;
    (void)state;

    assert_int_equal(ttm_recorder_open(&options, &rec), 0);
    sample_process(ttm_recorder_encoder(rec), 1);
    assert_int_equal(ttm_recorder_close(rec, NULL), 0);
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
}

static void a_folder_that_cannot_be_written_is_an_error_at_once(void **state)
{
    const struct ttm_recorder_options file = {.path = "/nonexistent/x.ttmem"};
    const struct ttm_recorder_options rotating = {.folder = "/nonexistent"};
    struct ttm_recorder *rec = NULL;
    (void)state;

    assert_int_equal(ttm_recorder_open(&file, &rec), -ENOENT);
    assert_int_equal(ttm_recorder_open(&rotating, &rec), -ENOENT);
    assert_null(rec);
}

/* All that is live is in each file; the oldest go; none is torn. */
static void files_rotate_and_each_can_be_read_alone(void **state)
{
    const struct ttm_recorder_options options = {
        .folder = folder,
        .limits = {.file_bytes = 50000, .total_bytes = 400000},
        .now_ns = START_NS,
        .now_wall_ns = START_NS + WALL_OFFSET_NS,
        .seed = 9,
        .is_patient = true}; /* a thread that gets no turn would lose blocks */
    struct ttm_recorder_status status = {0};
    struct ttm_recorder *rec = NULL;
    uint64_t serial = 1, now = START_NS, random = 3;
    char *where = NULL;
    (void)state;

    assert_int_equal(ttm_recorder_open(&options, &rec), 0);
    sample_process(ttm_recorder_encoder(rec), 1);
    fill(ttm_recorder_encoder(rec), serial, 100, 0);
    serial += 100;
    while (status.files < 12) {
        char noise[2000];
        for (size_t k = 0; k < sizeof(noise); k++)
            noise[k] = (char)next_random(&random);
        ttm_recorder_status(rec, &status);
        const struct ttm_recorded_mark mark = {.name = noise, .name_length = sizeof(noise)};
        assert_int_equal(ttm_encoder_mark(ttm_recorder_encoder(rec), now, 1, &mark), 0);
        serial++;
        now += 400 * TTM_NS_PER_MS;
        assert_int_equal(ttm_recorder_tick(rec, now, now + WALL_OFFSET_NS), 0);
        assert_true(serial < 1000000);
    }
    assert_int_equal(ttm_recorder_close(rec, &where), 0);

    struct dirent **entries;
    const int count = scandir(folder, &entries, NULL, alphasort);
    uint64_t sum = 0;
    int files = 0;
    for (int i = 0; i < count; i++) {
        char file[512];
        struct stat st;
        (void)snprintf(file, sizeof(file), "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') {
            struct ttm_recording_info info;
            assert_true(ttm_rotation_is_name(entries[i]->d_name));
            struct mirror mirror = read_path(file, &info);
            assert_true(info.is_complete);
            assert_int_equal(mirror.live.count, 100);
            mirror_done(&mirror);
            assert_int_equal(stat(file, &st), 0);
            sum += (uint64_t)st.st_size;
            files++;
            if (i == count - 1)
                assert_string_equal(file, where);
        }
        free(entries[i]);
    }
    free(entries);
    free(where);
    assert_in_range(files, 2, 11);
    assert_true(sum <= 500000); /* the last one comes on top */
}

static void a_file_that_is_too_old_is_followed_by_a_new_one(void **state)
{
    const struct ttm_recorder_options options = {.folder = folder,
                                                 .limits = {.file_age_ns = 60 * TTM_NS_PER_S},
                                                 .now_ns = START_NS,
                                                 .now_wall_ns = START_NS + WALL_OFFSET_NS};
    struct ttm_recorder *rec = NULL;
    (void)state;

    assert_int_equal(ttm_recorder_open(&options, &rec), 0);
    sample_process(ttm_recorder_encoder(rec), 1);
    const uint64_t later = START_NS + 61 * TTM_NS_PER_S;
    assert_int_equal(ttm_recorder_tick(rec, later - 2 * TTM_NS_PER_S, 0), 0);
    assert_int_equal(ttm_recorder_tick(rec, later, later + WALL_OFFSET_NS), 0);
    fill(ttm_recorder_encoder(rec), 1, 1, 0);
    assert_int_equal(ttm_recorder_close(rec, NULL), 0);
    assert_int_equal(files_in_folder(), 2);
}

/* As the server does it: a tick when it is due, and blocks that are full before a flush is. */
static int step_when_busy(struct ttm_recorder *rec, uint64_t now)
{
    static uint64_t random = 11;
    struct ttm_recorder_status before, status;
    char noise[2000];
    int r = 0;

    for (size_t k = 0; k < sizeof(noise); k++)
        noise[k] = (char)next_random(&random);
    const struct ttm_recorded_mark mark = {.name = noise, .name_length = sizeof(noise)};
    assert_int_equal(ttm_encoder_mark(ttm_recorder_encoder(rec), now, 1, &mark), 0);
    ttm_recorder_status(rec, &before);
    if (ttm_recorder_timeout_ms(rec, now) == 0)
        r = ttm_recorder_tick(rec, now, now + WALL_OFFSET_NS);
    ttm_recorder_flush(rec);
    do
        ttm_recorder_status(rec, &status);
    while (status.error == 0 && status.bytes == before.bytes);
    return r;
}

static void files_rotate_also_when_no_flush_is_ever_due(void **state)
{
    const struct ttm_recorder_options options = {.folder = folder,
                                                 .limits = {.file_bytes = 20000},
                                                 .now_ns = START_NS,
                                                 .now_wall_ns = START_NS + WALL_OFFSET_NS};
    struct ttm_recorder *rec = NULL;
    (void)state;

    assert_int_equal(ttm_recorder_open(&options, &rec), 0);
    sample_process(ttm_recorder_encoder(rec), 1);
    for (uint64_t i = 1; i <= 100; i++)
        assert_int_equal(step_when_busy(rec, START_NS + i * 400 * TTM_NS_PER_MS), 0);
    assert_int_equal(ttm_recorder_close(rec, NULL), 0);
    assert_int_equal(files_in_folder(), 4); /* none is shorter than ten seconds */
}

static void a_full_disk_is_told_also_when_no_flush_is_ever_due(void **state)
{
    const struct rlimit limit = {.rlim_cur = 5000, .rlim_max = RLIM_INFINITY};
    struct rlimit before;
    uint64_t now = START_NS;
    int r = 0;
    (void)state;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    struct ttm_recorder *rec = open_recorder();
    sample_process(ttm_recorder_encoder(rec), 1);
    for (int i = 0; i < 10 && r == 0; i++)
        r = step_when_busy(rec, now += 400 * TTM_NS_PER_MS);
    assert_int_equal(r, -EFBIG);
    assert_int_equal(ttm_recorder_close(rec, NULL), -EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, handler);
}

/* A disk that hangs: a pipe that nobody reads. Events are lost and counted, the caller never waits. */
static void a_disk_that_hangs_stops_nobody(void **state)
{
    struct ttm_recorder_status status;
    struct ttm_recorder *rec = NULL;
    char buf[65536];
    (void)state;

    assert_int_equal(mkfifo(path, 0600), 0);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    const struct ttm_recorder_options options = {.path = path, .now_ns = START_NS};
    assert_int_equal(ttm_recorder_open(&options, &rec), 0);
    sample_process(ttm_recorder_encoder(rec), 1);
    for (uint64_t serial = 1; serial < 4000; serial += 50) {
        fill(ttm_recorder_encoder(rec), serial, 50, 4000);
        ttm_recorder_flush(rec);
    }
    ttm_recorder_status(rec, &status);
    /* Either the pipe was full, which is an error, or it is waited for, which costs events. */
    assert_true(status.error < 0 || status.lost_events > 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    while (read(fd, buf, sizeof(buf)) > 0)
        ;
    assert_true(ttm_recorder_close(rec, NULL) < 0);
    (void)close(fd);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(what_is_recorded_is_in_the_file),
        WITH_FOLDER(the_file_can_be_read_while_it_is_written),
        WITH_FOLDER(after_kill_9_the_file_is_there_and_can_be_read),
        WITH_FOLDER(an_existing_file_stays_until_the_new_one_is_whole),
        WITH_FOLDER(through_a_link_the_file_behind_it_is_replaced),
        WITH_FOLDER(a_full_disk_stops_the_recording_says_so_once_and_leaves_whole_blocks),
        WITH_FOLDER(an_existing_file_survives_a_full_disk),
        WITH_FOLDER(a_device_that_is_full_is_an_error_at_once),
        WITH_FOLDER(what_is_no_regular_file_is_written_in_place),
        WITH_FOLDER(a_folder_that_cannot_be_written_is_an_error_at_once),
        WITH_FOLDER(files_rotate_and_each_can_be_read_alone),
        WITH_FOLDER(a_file_that_is_too_old_is_followed_by_a_new_one),
        WITH_FOLDER(files_rotate_also_when_no_flush_is_ever_due),
        WITH_FOLDER(a_full_disk_is_told_also_when_no_flush_is_ever_due),
        WITH_FOLDER(a_disk_that_hangs_stops_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
