/* SPDX-License-Identifier: Apache-2.0 */
/* The processes here are this one: its page is found in /proc as any other's. */
#include "testing.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ring/control.h"

static struct ttm_control *own;
static int own_fd = -1;

/* The test links the library, which has made a page of its own when it was loaded. */
static void close_other_pages(void)
{
    for (int fd = 3; fd < 256; fd++) {
        char path[64], target[64] = "";
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (readlink(path, target, sizeof(target) - 1) > 0 &&
            strstr(target, "memfd:" TTM_CONTROL_NAME))
            (void)close(fd);
    }
}

static int set_up(void **state)
{
    (void)state;
    close_other_pages();
    own_fd = ttm_control_new(false);
    return own_fd < 0 ? own_fd : ttm_control_map(own_fd, &own);
}

static int tear_down(void **state)
{
    (void)state;
    (void)munmap(own, 4096);
    (void)close(own_fd);
    return 0;
}

static void a_page_is_found_and_shared(void **state)
{
    struct ttm_control_view view;
    (void)state;

    assert_int_equal(ttm_control_open("", getpid(), TTM_CONTROL_SWITCH, &view), 0);
    assert_int_equal(ttm_control_state(&view), TTM_CONTROL_OFF);
    atomic_store(&own->state, TTM_CONTROL_ON);
    assert_int_equal(ttm_control_state(&view), TTM_CONTROL_ON);
    ttm_control_switch(&view, "", true);
    assert_int_equal(atomic_load(&own->is_wanted), 1);
    ttm_control_switch(&view, "", false);
    assert_int_equal(atomic_load(&own->is_wanted), 0);
    ttm_control_close(&view);
    ttm_control_close(&view); /* once more does no harm */
}

static void a_page_that_was_not_used_yet_is_found_and_keeps_what_is_wanted(void **state)
{
    const int fd = ttm_control_new(false);
    struct ttm_control_view view;
    struct ttm_control *control;
    (void)state;

    assert_true(fd >= 0);
    assert_int_equal(ttm_control_open("", getpid(), TTM_CONTROL_SWITCH, &view), 0);
    assert_int_equal(ttm_control_state(&view), TTM_CONTROL_OFF);
    assert_false(ttm_control_read_wanted(fd));
    ttm_control_switch(&view, "", true);
    assert_true(ttm_control_read_wanted(fd));
    assert_int_equal(ttm_control_map(fd, &control), 0);
    assert_int_equal(atomic_load(&control->is_wanted), 1);
    assert_int_equal(atomic_load(&control->nudge_fd), -1);
    assert_true(atomic_load(&control->magic) == TTM_CONTROL_MAGIC);
    ttm_control_switch(&view, "", false);
    assert_int_equal(atomic_load(&control->is_wanted), 0);
    ttm_control_close(&view);
    (void)munmap(control, 4096);
    (void)close(fd);
}

static void a_page_of_a_process_that_begins_on_says_so(void **state)
{
    const int fd = ttm_control_new(true);
    struct ttm_control *control;
    (void)state;

    assert_true(ttm_control_read_wanted(fd));
    assert_int_equal(ttm_control_map(fd, &control), 0);
    assert_int_equal(atomic_load(&control->is_wanted), 1);
    (void)munmap(control, 4096);
    (void)close(fd);
    assert_false(ttm_control_read_wanted(fd)); /* of no page */
}

static void a_process_without_a_page_or_no_process_says_so(void **state)
{
    struct ttm_control_view view;
    (void)state;

    assert_int_equal(ttm_control_open("", getpid(), TTM_CONTROL_SWITCH, &view), -ENOENT);
    assert_int_equal(ttm_control_open("", 0x3fffffff, TTM_CONTROL_SWITCH, &view), -ESRCH);
    assert_int_equal(ttm_control_open("/nonexistent", getpid(), TTM_CONTROL_SWITCH, &view), -ESRCH);
}

static int set_up_without_page(void **state)
{
    (void)state;
    close_other_pages();
    return 0;
}

/* A memfd of that name, whatever is in it. */
static int fake_page(off_t size, bool is_sealed, uint64_t magic, uint32_t bytes)
{
    const int fd = memfd_create(TTM_CONTROL_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct ttm_control control = {.magic = magic, .bytes = bytes};

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &control, sizeof(control), 0), sizeof(control));
    assert_int_equal(ftruncate(fd, size), 0);
    if (is_sealed)
        assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    return fd;
}

static void a_page_that_is_something_else_is_refused(void **state)
{
    static const struct {
        off_t size;
        bool is_sealed;
        uint64_t magic;
        uint32_t bytes;
    } wrong[] = {
        {4096, true, TTM_CONTROL_MAGIC + 1, sizeof(struct ttm_control)},
        {4096, true, TTM_CONTROL_MAGIC, sizeof(struct ttm_control) - 1},
        {4096, true, TTM_CONTROL_MAGIC, 0},
        {4096, false, TTM_CONTROL_MAGIC, sizeof(struct ttm_control)}, /* could shrink under us */
        {4095, true, TTM_CONTROL_MAGIC, sizeof(struct ttm_control)},
        {0, true, TTM_CONTROL_MAGIC, sizeof(struct ttm_control)},
    };
    struct ttm_control_view view;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        const int fd = fake_page(wrong[i].size, wrong[i].is_sealed, wrong[i].magic, wrong[i].bytes);
        assert_int_equal(ttm_control_open("", getpid(), TTM_CONTROL_SWITCH, &view), -EBADMSG);
        (void)close(fd);
    }
}

static void a_page_of_a_newer_process_is_longer_and_fine(void **state)
{
    const int fd = fake_page(8192, true, TTM_CONTROL_MAGIC, 4000);
    struct ttm_control_view view;
    (void)state;

    assert_int_equal(ttm_control_open("", getpid(), TTM_CONTROL_SWITCH, &view), 0);
    ttm_control_close(&view);
    (void)close(fd);
}

/* ---- the pipe that wakes the helper ---- */

static int readable_bytes(int fd)
{
    char bytes[16];
    const ssize_t n = read(fd, bytes, sizeof(bytes));

    return n > 0 ? (int)n : 0;
}

static uint64_t inode_of(int fd)
{
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    return st.st_ino;
}

static void switch_own(void)
{
    struct ttm_control_view view;

    assert_int_equal(ttm_control_open("", getpid(), TTM_CONTROL_SWITCH, &view), 0);
    ttm_control_switch(&view, "", true);
    ttm_control_close(&view);
}

static void a_switch_writes_one_byte_into_the_pipe(void **state)
{
    int fds[2];
    (void)state;

    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    atomic_store(&own->nudge_inode, inode_of(fds[0]));
    atomic_store(&own->nudge_fd, fds[0]);
    switch_own();
    assert_int_equal(readable_bytes(fds[0]), 1);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static void a_switch_writes_into_no_other_file(void **state)
{
    int pipe_fds[2];
    char path[] = "/tmp/ttm-control-XXXXXX";
    const int file = mkstemp(path);
    (void)state;

    assert_true(file >= 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK), 0);
    const uint64_t inode = inode_of(pipe_fds[0]);

    /* The number stands for another pipe by now. */
    atomic_store(&own->nudge_inode, inode + 1);
    atomic_store(&own->nudge_fd, pipe_fds[0]);
    switch_own();
    assert_int_equal(readable_bytes(pipe_fds[0]), 0);

    /* It stands for a plain file, even one with that inode. */
    atomic_store(&own->nudge_inode, inode_of(file));
    atomic_store(&own->nudge_fd, file);
    switch_own();
    assert_int_equal(lseek(file, 0, SEEK_END), 0);

    /* It stands for nothing. */
    static const int32_t none[] = {-1, -2, 0x7fffffff, INT32_MIN};
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        atomic_store(&own->nudge_inode, inode);
        atomic_store(&own->nudge_fd, none[i]);
        switch_own();
        assert_int_equal(readable_bytes(pipe_fds[0]), 0);
    }
    (void)close(file);
    (void)close(pipe_fds[0]);
    (void)close(pipe_fds[1]);
}

static void a_full_pipe_does_not_hold_up_the_switch(void **state)
{
    int fds[2];
    char bytes[4096] = {0};
    (void)state;

    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    while (write(fds[1], bytes, sizeof(bytes)) > 0)
        ;
    atomic_store(&own->nudge_inode, inode_of(fds[0]));
    atomic_store(&own->nudge_fd, fds[0]);
    switch_own(); /* returns */
    assert_int_equal(atomic_load(&own->is_wanted), 1);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

/* ---- the list ---- */

static bool is_listed(void)
{
    static pid_t pids[65536];
    const size_t n = ttm_control_list_off("", pids, COUNT_OF(pids));

    for (size_t i = 0; i < n; i++) {
        if (pids[i] == getpid())
            return true;
    }
    return false;
}

static void a_process_is_listed_while_it_is_off(void **state)
{
    pid_t none[1];
    (void)state;

    assert_true(is_listed());
    atomic_store(&own->state, TTM_CONTROL_ON);
    assert_false(is_listed());
    atomic_store(&own->state, TTM_CONTROL_OFF);
    assert_true(is_listed());
    assert_int_equal(ttm_control_list_off("", none, 0), 0);
    assert_int_equal(ttm_control_list_off("/nonexistent", none, 1), 0);
}

static void one_that_was_never_used_is_listed_when_it_was_switched_off(void **state)
{
    (void)state;

    atomic_store(&own->magic, 0);
    assert_true(is_listed());
    atomic_store(&own->is_wanted, 1); /* it would report, and has nothing to report */
    assert_false(is_listed());
    atomic_store(&own->magic, TTM_CONTROL_MAGIC);
    assert_true(is_listed());
}

/*
 * In a namespace of its own: a file that /proc shows under the name of a control page. A mount
 * that is detached has its root where "/" is shown. Its fd, or a negative errno.
 */
static int open_disguised(const char *folder)
{
    char path[256];

    if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", folder, "tmpfs", 0, NULL) < 0)
        return -errno;
    (void)snprintf(path, sizeof(path), "%s/memfd:%s (deleted)", folder, TTM_CONTROL_NAME);
    const int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || umount2(folder, MNT_DETACH) < 0)
        return -errno;
    return fd;
}

/* Forks a process that has such a file open until 'ret_end' is closed. Returns its pid; 'ret_fd' as above. */
static pid_t start_disguised(int *ret_fd, int *ret_end)
{
    char folder[] = "/tmp/test_control.XXXXXX";
    int answer[2], end[2];
    char byte;

    assert_non_null(mkdtemp(folder));
    assert_int_equal(pipe(answer), 0);
    assert_int_equal(pipe(end), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        (void)close(end[1]);
        const int fd = open_disguised(folder);
        (void)!write(answer[1], &fd, sizeof(fd));
        (void)!read(end[0], &byte, 1);
        _exit(0);
    }
    (void)close(end[0]);
    assert_int_equal(read(answer[0], ret_fd, sizeof(*ret_fd)), sizeof(*ret_fd));
    (void)rmdir(folder);
    (void)close(answer[0]);
    (void)close(answer[1]);
    *ret_end = end[1];
    return pid;
}

static void a_file_that_only_has_the_name_of_a_page_is_not_opened(void **state)
{
    struct ttm_control_view view;
    char events[4096], path[64], target[128] = "";
    int disguised, end;
    (void)state;

    const pid_t pid = start_disguised(&disguised, &end);
    if (disguised >= 0) {
        (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, disguised);
        assert_true(readlink(path, target, sizeof(target) - 1) > 0);
        assert_string_equal(target, "/memfd:" TTM_CONTROL_NAME " (deleted)");
        const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        assert_true(inotify_add_watch(watch, path, IN_OPEN) >= 0);
        assert_int_equal(ttm_control_open("", pid, TTM_CONTROL_SWITCH, &view), -EBADMSG);
        assert_int_equal(read(watch, events, sizeof(events)), -1); /* nobody opened it */
        (void)close(watch);
    }
    (void)close(end);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    if (disguised < 0)
        skip(); /* no namespaces here */
}

static void a_page_that_is_only_read_is_not_writable(void **state)
{
    struct ttm_control_view view;
    (void)state;

    assert_int_equal(ttm_control_open("", getpid(), TTM_CONTROL_READ, &view), 0);
    assert_int_equal(mprotect(view.control, 4096, PROT_READ | PROT_WRITE), -1);
    ttm_control_close(&view);
}

#define WITH_PAGE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_process_without_a_page_or_no_process_says_so, set_up_without_page),
        cmocka_unit_test_setup(a_page_that_is_something_else_is_refused, set_up_without_page),
        cmocka_unit_test_setup(a_page_that_was_not_used_yet_is_found_and_keeps_what_is_wanted,
                               set_up_without_page),
        cmocka_unit_test_setup(a_page_of_a_process_that_begins_on_says_so, set_up_without_page),
        cmocka_unit_test_setup(a_page_of_a_newer_process_is_longer_and_fine, set_up_without_page),
        cmocka_unit_test_setup(a_file_that_only_has_the_name_of_a_page_is_not_opened,
                               set_up_without_page),
        WITH_PAGE(a_page_that_is_only_read_is_not_writable),
        WITH_PAGE(a_page_is_found_and_shared),
        WITH_PAGE(a_switch_writes_one_byte_into_the_pipe),
        WITH_PAGE(a_switch_writes_into_no_other_file),
        WITH_PAGE(a_full_pipe_does_not_hold_up_the_switch),
        WITH_PAGE(a_process_is_listed_while_it_is_off),
        WITH_PAGE(one_that_was_never_used_is_listed_when_it_was_switched_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
