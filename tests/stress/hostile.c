/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile - a user of the same machine who attacks the server.
 *
 *   hostile ATTACK UID FOLDER NATIVE_SOCKET LEGACY_SOCKET
 *   hostile --list
 *
 * Runs until stdin is closed or SIGTERM comes, then prints {"attack":NAME,"rounds":N}. Started as
 * root it first makes what the attack needs of root (a FUSE mount in a namespace of its own, which a
 * user has by fusermount), and is user UID from then on. Exits with 77 and one line where the attack
 * cannot be made on this machine.
 *
 * The processes have the lowest priority: to use processor time is the one thing that a user may do
 * to others, and it is not what is tested here.
 *
 *   keeper (this process) ── FUSE server
 *                         └─ leader of a process group ── the attack's processes and theirs
 *
 * The keeper adopts and ends them all. It ends the FUSE server first: a process that waits for that
 * one cannot be killed.
 */
#include "hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire/attach.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/original.h"

#define SKIPPED 77
#define FDS_MAX 253 /* SCM_MAX_FD of the kernel */

static struct sockaddr_un addresses[2]; /* by enum hostile_socket */
static _Atomic uint64_t *rounds;        /* shared by all processes of the attack */

/* ---- processes ---- */

void hostile_die(const char *what)
{
    (void)fprintf(stderr, "hostile: %s: %s\n", what, strerror(errno));
    _exit(1);
}

pid_t hostile_fork(void)
{
    const pid_t parent = getpid();
    const pid_t pid = fork();

    if (pid != 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    return 0;
}

void hostile_count(void)
{
    atomic_fetch_add_explicit(rounds, 1, memory_order_relaxed); /* a number to be shown */
}

void hostile_sleep_ms(unsigned ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

    (void)nanosleep(&time, NULL);
}

unsigned hostile_raise_fd_limit(void)
{
    struct rlimit limit = {.rlim_cur = 1024};

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    return limit.rlim_cur < 1u << 20 ? (unsigned)limit.rlim_cur : 1u << 20;
}

/* ---- connections ---- */

int hostile_connect(enum hostile_socket which)
{
    for (;; hostile_sleep_ms(10)) {
        const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
            continue;
        if (connect(fd, (const struct sockaddr *)&addresses[which], sizeof(addresses[which])) == 0)
            return fd;
        (void)close(fd);
    }
}

int hostile_greet(void)
{
    const struct ttm_hello hello = ttm_hello_own((int32_t)getpid());
    uint8_t payload[TTM_HELLO_SIZE];
    const int fd = hostile_connect(HOSTILE_NATIVE);

    ttm_hello_encode(&hello, payload);
    (void)hostile_say(fd, TTM_FRAME_HELLO, payload, sizeof(payload));
    return fd;
}

bool hostile_send(int fd, const void *bytes, size_t length, const int *fds, size_t fd_count)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control = {0};
    struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

    if (fd_count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(header), fds, fd_count * sizeof(int));
    }
    return sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)length;
}

bool hostile_say(int fd, uint16_t type, const void *payload, uint32_t length)
{
    uint8_t frame[TTM_FRAME_HEADER_SIZE + TTM_FRAME_REQUEST_MAX];

    if (length > TTM_FRAME_REQUEST_MAX)
        return false;
    ttm_frame_header_encode(type, length, frame);
    if (length > 0)
        memcpy(frame + TTM_FRAME_HEADER_SIZE, payload, length);
    return hostile_send(fd, frame, TTM_FRAME_HEADER_SIZE + length, NULL, 0);
}

bool hostile_attach(int fd, int segment_fd, int wake_fd)
{
    const int fds[] = {segment_fd, wake_fd};
    uint8_t frame[TTM_FRAME_HEADER_SIZE + TTM_ATTACH_SIZE];

    ttm_frame_header_encode(TTM_FRAME_ATTACH, TTM_ATTACH_SIZE, frame);
    ttm_attach_encode(0, frame + TTM_FRAME_HEADER_SIZE);
    return hostile_send(fd, frame, sizeof(frame), fds, 2);
}

bool hostile_report_original(int fd, bool is_free, int32_t device, uint64_t id, uint64_t bytes)
{
    const struct ttm_original_message message = {
        .type = is_free ? TTM_ORIGINAL_FREE : TTM_ORIGINAL_ALLOC,
        .device_id = device,
        .size = bytes,
        .process_id = (int32_t)getpid(),
        .buffer_id = id,
        .timestamp = ttm_clock_wall_ns(),
    };
    uint8_t buf[TTM_ORIGINAL_SIZE_MAX];

    ttm_original_encode(&message, TTM_ORIGINAL_V144, buf);
    return hostile_send(fd, buf, TTM_ORIGINAL_V144, NULL, 0);
}

/* ---- start and end ---- */

static const struct hostile_attack *const all_attacks[] = {
    hostile_socket_attacks,
    hostile_fd_attacks,
    hostile_segment_attacks,
};

#define TABLES (sizeof(all_attacks) / sizeof(all_attacks[0]))

static const struct hostile_attack *find_attack(const char *name)
{
    for (size_t t = 0; t < TABLES; t++) {
        for (const struct hostile_attack *attack = all_attacks[t]; attack->name; attack++) {
            if (strcmp(attack->name, name) == 0)
                return attack;
        }
    }
    return NULL;
}

/* One line for each: its name, and whether it needs FUSE. */
static int list_attacks(void)
{
    for (size_t t = 0; t < TABLES; t++) {
        for (const struct hostile_attack *attack = all_attacks[t]; attack->name; attack++)
            printf("%s%s\n", attack->name, attack->needs_fuse ? " fuse" : "");
    }
    return 0;
}

void hostile_become(uid_t uid)
{
    if (geteuid() != 0)
        return;
    if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
        hostile_die("cannot change the user");
}

static void set_address(enum hostile_socket which, const char *path)
{
    addresses[which].sun_family = AF_UNIX;
    if (strlen(path) >= sizeof(addresses[which].sun_path))
        hostile_die("the path of a socket is too long");
    memcpy(addresses[which].sun_path, path, strlen(path) + 1);
}

/* The signals of the keeper, as a file. */
static int open_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

static void allow_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    (void)sigprocmask(SIG_SETMASK, &set, NULL);
}

/* The leader of the group: starts the processes of the attack and waits for its own end. */
__attribute__((noreturn)) static void lead(const struct hostile_attack *attack)
{
    (void)setpgid(0, 0);
    allow_signals();
    (void)signal(SIGPIPE, SIG_IGN);
    for (unsigned i = 0; i < attack->processes; i++) {
        if (hostile_fork() != 0)
            continue;
        attack->run(i);
        _exit(0);
    }
    for (;;)
        pause();
}

static void end_all(pid_t fuse, pid_t leader)
{
    if (fuse > 0) {
        (void)kill(fuse, SIGKILL);
        (void)waitpid(fuse, NULL, 0);
    }
    (void)kill(-leader, SIGKILL);
    (void)kill(leader, SIGKILL); /* it may not have made its group yet */
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
}

static void wait_for_end(int signals)
{
    struct pollfd ends[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                            {.fd = signals, .events = POLLIN}};

    while (poll(ends, 2, -1) < 0 && errno == EINTR)
        ;
}

static int run(const struct hostile_attack *attack, uid_t uid, const char *folder)
{
    const char *why = NULL;
    pid_t fuse = 0;

    const int signals = open_signals();
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    rounds = mmap(NULL, sizeof(*rounds), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (signals < 0 || rounds == MAP_FAILED)
        hostile_die("cannot start");
    if (attack->needs_fuse && (fuse = hostile_fuse_mount(folder, uid, &why)) < 0) {
        printf("skipped: %s: %s\n", why, strerror(-fuse));
        return SKIPPED;
    }
    hostile_become(uid);
    (void)setpriority(PRIO_PROCESS, 0, 19);
    const pid_t leader = hostile_fork();
    if (leader < 0)
        hostile_die("cannot fork");
    if (leader == 0)
        lead(attack);
    (void)setpgid(leader, leader);
    wait_for_end(signals);
    end_all(fuse, leader);
    printf("{\"attack\":\"%s\",\"rounds\":%" PRIu64 "}\n", attack->name, atomic_load(rounds));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list_attacks();
    const struct hostile_attack *attack = argc == 6 ? find_attack(argv[1]) : NULL;
    if (!attack) {
        (void)fprintf(stderr, "usage: hostile ATTACK UID FOLDER NATIVE_SOCKET LEGACY_SOCKET\n"
                              "       hostile --list\n");
        return 2;
    }
    set_address(HOSTILE_NATIVE, argv[4]);
    set_address(HOSTILE_LEGACY, argv[5]);
    return run(attack, (uid_t)strtoul(argv[2], NULL, 10), argv[3]);
}
