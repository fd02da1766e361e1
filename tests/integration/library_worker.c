/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library_worker - a program that calls each function of ttmem.h as it is told,
 * and behaves as badly towards libttmem as programs do.
 *
 * One command a line on stdin, "ok VALUE" for each on stdout.
 *
 *   alloc ID BYTES [DEVICE [REGION [BANKS [FLAGS]]]]   free ID [REGION]
 *   name ID NAME CONTEXT ("-" for NULL)
 *   cb PROGRAM PART ADDRESS BYTES X Y  on the cores 0,0 to X,Y of device 0
 *   kernel PROGRAM PART BYTES KIND     end_program PROGRAM   dispatch PROGRAM DEVICE
 *   open DEVICE BOARD   close DEVICE   close_allocator NUMBER
 *   push NAME   pop   mark NAME (the rest of the line)   fail KIND WANTED FREE
 *   enabled   enable   disable
 *   guest                              is a guest from here on, as libttmem-hook is: its origins have an
 *                                      operation, and when tracking begins it tells of ids 901 and 902
 *   slow_guest MS                      is one that takes so long to tell of what is live, and to stop
 *   nulls                              NULL where a pointer is wanted
 *   lasting_guest                      is one whose origins last: "asked-1" is the first that it was asked for
 *   thread COMMAND                     one of the commands above, in a thread that ends with it
 *   guest_calls                        how often it was told that tracking began, and ends
 *   guest_done                         how often it was done with that
 *   guest_close ID                     the end of an allocation that its owner did not give back
 *   fill_notes                         leaves no room for names and contexts
 *   say RUNTIME/TROUBLE                what this process is, and what is wrong with it
 *   churn THREADS   churn_stop         threads that allocate and free without end; all is freed then
 *   swap_fds KIND                      closes fds from 3 on, and opens others there
 *   swap_wakes KIND                    the same for sockets that wake the server alone
 *   touched                            what was written to or taken from those
 *   forks COUNT                        children that each allocate and exit
 *   child HOW COMMAND/COMMAND…         those commands in a child, which goes on waiting: its pid. HOW is
 *                                      fork, _Fork, clone, or thread: of _Fork, in a thread of the child first
 *   exec                               this program anew, in this process
 *   deny NUMBER…                       system calls that fail with EPERM from here on
 *   chroot PATH
 *   pthread_exit MS                    the main thread leaves, a worker goes on for so long
 *   late_worker MS                     the same, and tracking begins in the worker
 */
#include <ttmem/ttmem.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/older_headers.h"
#include "client/guest.h"
#include "wire/origin.h"

#define SWAPPED_MAX 64
#define DENIED_MAX 8

static char *own_path;

/* Fds of the program itself where libttmem's were; 'peers' are their other ends, if they have. */
static int swapped[SWAPPED_MAX], peers[SWAPPED_MAX];
static int swapped_count;
static char swapped_kind[16];

static void die(const char *why)
{
    (void)fprintf(stderr, "library_worker: %s: %s\n", why, strerror(errno));
    _exit(99);
}

/* ---- what is told ---- */

static void alloc(const char *args)
{
    unsigned long long id = 0, bytes = 0;
    unsigned device = 0, region = 0, banks = 0, flags = 0;

    (void)sscanf(args, "%llu %llu %u %u %u %u", &id, &bytes, &device, &region, &banks, &flags);
    const struct ttmem_allocation allocation = {.id = id,
                                                .address = id * 64,
                                                .bytes = bytes,
                                                .devices = device,
                                                .banks = banks,
                                                .allocator = (uint16_t)device,
                                                .region = (uint8_t)region,
                                                .flags = flags};
    ttmem_alloc(&allocation);
}

static void alloc_cb(const char *args)
{
    unsigned long long program = 0, part = 0, address = 0, bytes = 0;
    unsigned x = 0, y = 0;

    (void)sscanf(args, "%llu %llu %llu %llu %u %u", &program, &part, &address, &bytes, &x, &y);
    const struct ttmem_core_range range = {0, 0, (uint8_t)x, (uint8_t)y};
    const struct ttmem_allocation allocation = {.id = part,
                                                .program = program,
                                                .address = address,
                                                .bytes = bytes,
                                                .footprint_bytes = bytes * (x + 1) * (y + 1),
                                                .cores = ttmem_cores(&range, 1),
                                                .region = TTMEM_CB};
    ttmem_alloc(&allocation);
}

static void alloc_kernel(const char *args)
{
    unsigned long long program = 0, part = 0, bytes = 0;
    unsigned kind = 0;

    (void)sscanf(args, "%llu %llu %llu %u", &program, &part, &bytes, &kind);
    const struct ttmem_allocation allocation = {.id = part,
                                                .program = program,
                                                .bytes = bytes,
                                                .region = TTMEM_KERNEL,
                                                .kind = (uint8_t)kind};
    ttmem_alloc(&allocation);
}

static void open_device(const char *args)
{
    struct ttmem_device device = {
        .arch = 2,
        .core_count = 56,
        .asic_id = 0x1234,
        .bank_bytes = {[TTMEM_DRAM] = 1 << 20, [TTMEM_L1] = 1 << 10},
        .bank_count = {[TTMEM_DRAM] = 12, [TTMEM_L1] = 56},
    };
    unsigned id = 0;

    (void)sscanf(args, "%u %31s", &id, device.board);
    device.id = (uint16_t)id;
    ttmem_device_open(&device);
}

static void name(const char *args)
{
    unsigned long long id = 0;
    static char name[1024], context[1024];

    (void)sscanf(args, "%llu %1023s %1023s", &id, name, context);
    ttmem_name(0, TTMEM_DRAM, id, strcmp(name, "-") == 0 ? NULL : name,
               strcmp(context, "-") == 0 ? NULL : context);
}

static int name_at(const char *args)
{
    unsigned long long address = 0, id = 0;
    unsigned device = 0;
    static char name[1024];

    (void)sscanf(args, "%u %llu %llu %1023s", &device, &address, &id, name);
    return ttmem_name_at((uint16_t)device, TTMEM_DRAM, address, id, name, NULL);
}

static int name_unique(const char *args)
{
    unsigned long long address = 0, id = 0;
    static char name[1024];

    (void)sscanf(args, "%llu %llu %1023s", &id, &address, name);
    return ttmem_name_unique(id, address, name, NULL);
}

static int alloc_in(const char *args)
{
    unsigned long long id = 0, address = 0;
    unsigned allocator = 0, first = 0, last = 0;
    uint16_t ids[8];

    (void)sscanf(args, "%u %llu %llu %u %u", &allocator, &id, &address, &first, &last);
    uint32_t count = 0;
    for (unsigned chip = first; chip <= last && count < 8; chip++)
        ids[count++] = (uint16_t)chip;
    ttmem_alloc(&(struct ttmem_allocation){.id = id,
                                           .address = address,
                                           .bytes = 100,
                                           .devices = ttmem_devices(ids, count),
                                           .allocator = (uint16_t)allocator,
                                           .region = TTMEM_DRAM});
    return 0;
}

static void fail(const char *args)
{
    unsigned long long wanted = 0, free_bytes = 0;
    unsigned kind = 0;

    (void)sscanf(args, "%u %llu %llu", &kind, &wanted, &free_bytes);
    const struct ttmem_failed_allocation failure = {.wanted_bytes = 12 * wanted,
                                                    .bank_wanted_bytes = wanted,
                                                    .bank_free_bytes = free_bytes,
                                                    .bank_largest_bytes = free_bytes / 2,
                                                    .devices = 3,
                                                    .region = TTMEM_L1,
                                                    .kind = (uint8_t)kind};
    ttmem_failure(&failure);
}

static void pass_nulls(void)
{
    ttmem_alloc(NULL);
    ttmem_name(0, TTMEM_DRAM, 1, NULL, NULL);
    ttmem_context_push(NULL);
    ttmem_context_set(NULL);
    ttmem_mark(NULL);
    ttmem_failure(NULL);
    ttmem_device_open(NULL);
    (void)ttmem_devices(NULL, 2);
    (void)ttmem_cores(NULL, 1);
    (void)ttmem_name_at(0, TTMEM_DRAM, 4096, 1, NULL, NULL);
}

/* ---- a guest ---- */

static _Atomic int guest_calls, guest_done; /* 100 for a beginning, 1 for an end */
static _Atomic int guest_takes_ms;

static void begin_guest(void)
{
    atomic_fetch_add(&guest_calls, 100);
    (void)usleep((useconds_t)guest_takes_ms * 1000);
    alloc("901 100 0 0 0 128"); /* TTMEM_GUEST_ALLOCATION */
    alloc("902 100 0 0 0 128");
    atomic_fetch_add(&guest_done, 100);
}

static void end_guest(void)
{
    atomic_fetch_add(&guest_calls, 1);
    (void)usleep((useconds_t)guest_takes_ms * 1000);
    atomic_fetch_add(&guest_done, 1);
}

static uint32_t find_origin(uint32_t context)
{
    const struct ttmem_guest_origin from = {
        .operation = ttmem_guest_note(TTM_NOTE_OPERATION, "worker.step", 11)};

    return ttmem_guest_origin_note(&from, context);
}

static void be_guest(void)
{
    static const struct ttmem_guest guest = {
        .on_enable = begin_guest, .on_disable = end_guest, .origin = find_origin};

    ttmem_guest_register(&guest);
}

static void be_slow_guest(const char *args)
{
    guest_takes_ms = atoi(args);
    be_guest();
}

static uint32_t find_lasting_origin(uint32_t context)
{
    static _Atomic int asked;
    char text[32];
    const int length = snprintf(text, sizeof(text), "asked-%d", atomic_fetch_add(&asked, 1) + 1);

    const struct ttmem_guest_origin from = {
        .operation = ttmem_guest_note(TTM_NOTE_OPERATION, text, (uint32_t)length)};

    return ttmem_guest_origin_note(&from, context);
}

static void be_lasting_guest(void)
{
    static const struct ttmem_guest guest = {.origin = find_lasting_origin, .is_lasting = true};

    ttmem_guest_register(&guest);
}

/* Each size until it finds no room; what is found is nobody's kind. */
static void fill_notes(void)
{
    static char bytes[1 << 20];
    unsigned long long number = 0;

    for (size_t size = sizeof(bytes); size >= sizeof(number); size /= 2) {
        do
            memcpy(bytes, &number, sizeof(number));
        while (number++, ttmem_guest_note(99, bytes, (uint32_t)size) != 0);
    }
}

static void say(char *args)
{
    char *trouble = strchr(args, '/');

    if (trouble)
        *trouble++ = '\0';
    ttmem_guest_say(args, trouble ? trouble : "");
}

/* ---- threads that go on while others switch ---- */

#define CHURNERS_MAX 16
#define CHURN_LIVE 50

static pthread_t churners[CHURNERS_MAX];
static int churner_count;
static _Atomic bool is_churning;

static void *churn(void *arg)
{
    const uint64_t base = (uint64_t)(uintptr_t)arg << 32;
    uint64_t n = 0;

    for (; atomic_load(&is_churning); n++) {
        ttmem_alloc(&(struct ttmem_allocation){.id = base + n, .address = n * 64, .bytes = 8});
        if (n >= CHURN_LIVE)
            ttmem_free(0, TTMEM_DRAM, base + n - CHURN_LIVE);
        if (n % 1000 == 0)
            (void)usleep(500);
    }
    for (uint64_t i = n > CHURN_LIVE ? n - CHURN_LIVE : 0; i < n; i++)
        ttmem_free(0, TTMEM_DRAM, base + i);
    return NULL;
}

static void start_churn(int count)
{
    atomic_store(&is_churning, true);
    for (churner_count = 0; churner_count < count && churner_count < CHURNERS_MAX;
         churner_count++) {
        if (pthread_create(&churners[churner_count], NULL, churn,
                           (void *)(uintptr_t)(churner_count + 1)) != 0)
            die("no thread");
    }
}

static void stop_churn(void)
{
    atomic_store(&is_churning, false);
    for (int i = 0; i < churner_count; i++)
        (void)pthread_join(churners[i], NULL);
}

/* ---- programs that take all fds for their own ---- */

static bool is_socket_kind(void)
{
    return strcmp(swapped_kind, "socket") == 0 || strcmp(swapped_kind, "seqpacket") == 0;
}

static void open_over(int number)
{
    const int type = strcmp(swapped_kind, "socket") == 0 ? SOCK_STREAM : SOCK_SEQPACKET;
    int fds[2] = {-1, -1};

    if (strcmp(swapped_kind, "file") == 0)
        fds[0] = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    else if (strcmp(swapped_kind, "pipe") == 0)
        (void)!pipe2(fds, O_CLOEXEC | O_NONBLOCK);
    else if (is_socket_kind())
        (void)!socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds);
    else
        fds[0] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fds[0] < 0)
        die("no fd");
    const int own = swapped_count++;
    swapped[own] = number;
    peers[own] = -1;
    if (fds[1] >= 0 && (peers[own] = fcntl(fds[1], F_DUPFD_CLOEXEC, 1000)) < 0)
        die("no peer");
    if (is_socket_kind() && send(peers[own], "precious", 8, 0) != 8)
        die("no data");
    if (fds[0] != number && (dup2(fds[0], number) < 0 || close(fds[0]) < 0))
        die("no such number");
    if (fds[1] >= 0 && fds[1] != number)
        (void)close(fds[1]);
}

static bool is_wake(int fd)
{
    int type = 0;
    socklen_t length = sizeof(type);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_SEQPACKET;
}

/* Those that were open, from 3 on. */
static void swap_fds(const char *args, bool is_wake_alone)
{
    bool was_open[SWAPPED_MAX] = {false};

    (void)sscanf(args, "%15s", swapped_kind);
    for (int fd = 3; fd < SWAPPED_MAX; fd++)
        was_open[fd] = is_wake_alone ? is_wake(fd) : fcntl(fd, F_GETFD) >= 0;
    for (int fd = 3; fd < 65536; fd++) {
        if (!is_wake_alone || (fd < SWAPPED_MAX && was_open[fd]))
            (void)close(fd);
    }
    for (int fd = SWAPPED_MAX - 1; fd >= 3; fd--) {
        if (was_open[fd])
            open_over(fd);
    }
}

/* How many of them somebody has written to, read from or closed. */
static int count_touched(void)
{
    int touched = 0;

    for (int i = 0; i < swapped_count; i++) {
        char bytes[64];
        if (strcmp(swapped_kind, "file") == 0)
            touched += lseek(swapped[i], 0, SEEK_END) != 0;
        else if (strcmp(swapped_kind, "pipe") == 0)
            touched += read(swapped[i], bytes, sizeof(bytes)) != -1 || errno != EAGAIN;
        else if (is_socket_kind())
            touched += recv(swapped[i], bytes, sizeof(bytes), MSG_PEEK) != 8 ||
                       recv(peers[i], bytes, sizeof(bytes), 0) != -1 || errno != EAGAIN;
        else
            touched += read(swapped[i], bytes, 8) != -1 || errno != EAGAIN;
    }
    return touched;
}

/* ---- other processes ---- */

static int fork_many(int count)
{
    int failed = 0;

    for (int done = 0; done < count; done += 8) {
        pid_t pids[8];
        for (int i = 0; i < 8; i++) {
            pids[i] = fork();
            if (pids[i] < 0)
                die("no child");
            if (pids[i] == 0) {
                const struct ttmem_allocation a = {.id = (uint64_t)i, .bytes = 100, .devices = 7};
                ttmem_alloc(&a);
                ttmem_free(0, TTMEM_DRAM, a.id);
                ttmem_alloc(&a);
                if (i % 2)
                    _exit(0);
                exit(0);
            }
        }
        for (int i = 0; i < 8; i++) {
            int status;
            failed += waitpid(pids[i], &status, 0) < 0 || status != 0;
        }
    }
    return failed;
}

static void exec_again(void)
{
    char *const argv[] = {own_path, NULL};

    (void)printf("ok 0\n"); /* the new one has nothing to answer to this line */
    (void)fflush(stdout);
    (void)execv(own_path, argv);
    die("no exec");
}

static void deny(char *args)
{
    struct sock_filter filter[2 * DENIED_MAX + 2];
    unsigned short n = 0;

    filter[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (char *word = strtok(args, " \n"); word && n < 2 * DENIED_MAX; word = strtok(NULL, " \n")) {
        const unsigned number = (unsigned)strtoul(word, NULL, 10);
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {.len = n, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        die("no filter");
}

/* ---- a main thread that leaves ---- */

static void *work_on(void *arg)
{
    const struct ttmem_allocation a = {.id = 77, .bytes = 100};
    const unsigned ms = *(const unsigned *)arg;

    ttmem_alloc(&a);
    (void)usleep(ms * 1000);
    return NULL;
}

static void *work_late(void *arg)
{
    static const unsigned none = 0;

    (void)usleep(*(const unsigned *)arg * 1000); /* the main thread has gone */
    if (ttmem_enable() < 0)
        die("not enabled");
    return work_on((void *)&none);
}

static void leave_main(void *(*work)(void *), const char *args)
{
    static unsigned ms;
    pthread_t thread;

    ms = (unsigned)atoi(args);
    if (pthread_create(&thread, NULL, work, &ms) != 0)
        die("no thread");
    (void)pthread_detach(thread);
    pthread_exit(NULL);
}

/* ---- sets of devices ---- */

static int number_of_devices(const char *args)
{
    uint16_t ids[64];
    uint32_t count = 0;
    char *end;

    for (unsigned long id = strtoul(args, &end, 10); end != args && count < 64;
         id = strtoul(args, &end, 10)) {
        ids[count++] = (uint16_t)id;
        args = end;
    }
    return (int)ttmem_devices(ids, count);
}

/* ---- lines ---- */

static bool obey_told(const char *verb, char *args)
{
    if (strcmp(verb, "alloc") == 0)
        alloc(args);
    else if (strcmp(verb, "free") == 0) {
        unsigned long long id = 0;
        unsigned region = 0;
        (void)sscanf(args, "%llu %u", &id, &region);
        ttmem_free(0, (uint8_t)region, id);
    } else if (strcmp(verb, "name") == 0)
        name(args);
    else if (strcmp(verb, "cb") == 0)
        alloc_cb(args);
    else if (strcmp(verb, "kernel") == 0)
        alloc_kernel(args);
    else if (strcmp(verb, "end_program") == 0)
        ttmem_program_end(strtoull(args, NULL, 10));
    else if (strcmp(verb, "dispatch") == 0) {
        unsigned long long program = 0;
        unsigned device = 0;
        (void)sscanf(args, "%llu %u", &program, &device);
        ttmem_program_dispatch(program, device);
    } else if (strcmp(verb, "open") == 0)
        open_device(args);
    else if (strcmp(verb, "close") == 0)
        ttmem_device_close((uint16_t)atoi(args));
    else if (strcmp(verb, "close_allocator") == 0)
        ttmem_allocator_close((uint16_t)atoi(args));
    else if (strcmp(verb, "push") == 0)
        ttmem_context_push(args);
    else if (strcmp(verb, "context_set") == 0)
        ttmem_context_set(args);
    else if (strcmp(verb, "pop") == 0)
        ttmem_context_pop();
    else if (strcmp(verb, "mark") == 0)
        ttmem_mark(args);
    else if (strcmp(verb, "reset_peaks") == 0)
        ttmem_reset_peaks();
    else if (strcmp(verb, "fail") == 0)
        fail(args);
    else if (strcmp(verb, "guest_close") == 0)
        ttmem_guest_close(0, TTMEM_DRAM, strtoull(args, NULL, 10));
    else if (strcmp(verb, "fill_notes") == 0)
        fill_notes();
    else if (strcmp(verb, "say") == 0)
        say(args);
    else if (strcmp(verb, "guest") == 0)
        be_guest();
    else if (strcmp(verb, "slow_guest") == 0)
        be_slow_guest(args);
    else if (strcmp(verb, "nulls") == 0)
        pass_nulls();
    else if (strcmp(verb, "lasting_guest") == 0)
        be_lasting_guest();
    else
        return false;
    return true;
}

static pid_t make_child(const char *how)
{
    if (strcmp(how, "fork") == 0)
        return fork();
    if (strcmp(how, "clone") == 0)
        return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    return _Fork();
}

static void *obey_in_thread(void *line)
{
    char *args = strchr(line, ' ');

    if (!args)
        die(line);
    *args++ = '\0';
    if (!obey_told(line, args))
        die(line);
    return NULL;
}

static void run_thread(char *line)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, obey_in_thread, line) != 0)
        die("no thread");
    (void)pthread_join(thread, NULL);
}

/* Each line in turn, and in a thread of its own before that. */
static void obey_lines(char *lines, bool is_threaded)
{
    char *rest = NULL;

    for (char *line = strtok_r(lines, "/", &rest); line; line = strtok_r(NULL, "/", &rest)) {
        char copy[256];
        (void)snprintf(copy, sizeof(copy), "%s", line);
        if (is_threaded)
            run_thread(copy);
        (void)obey_in_thread(line);
    }
}

static int run_child(char *args)
{
    char *how = args, *lines = strchr(args, ' '), byte;
    int ready[2];

    if (!lines || pipe(ready) < 0)
        die("child HOW COMMAND");
    *lines++ = '\0';
    const pid_t pid = make_child(how);
    if (pid < 0)
        die("no child");
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        obey_lines(lines, strcmp(how, "thread") == 0);
        (void)close(ready[1]);
        for (;;)
            (void)pause();
    }
    (void)close(ready[1]);
    (void)!read(ready[0], &byte, 1);
    (void)close(ready[0]);
    return pid;
}

static int obey(const char *verb, char *args)
{
    if (obey_told(verb, args))
        return 0;
    if (strcmp(verb, "enabled") == 0)
        return ttmem_is_enabled();
    if (strcmp(verb, "devices") == 0)
        return number_of_devices(args);
    if (strcmp(verb, "name_at") == 0)
        return name_at(args);
    if (strcmp(verb, "name_unique") == 0)
        return name_unique(args);
    if (strcmp(verb, "alloc_in") == 0)
        return alloc_in(args);
    if (strcmp(verb, "enable") == 0)
        return ttmem_enable();
    if (strcmp(verb, "guest_calls") == 0)
        return atomic_load(&guest_calls);
    if (strcmp(verb, "guest_done") == 0)
        return atomic_load(&guest_done);
    if (strcmp(verb, "touched") == 0)
        return count_touched();
    if (strcmp(verb, "forks") == 0)
        return fork_many(atoi(args));
    if (strcmp(verb, "child") == 0)
        return run_child(args);
    if (strcmp(verb, "disable") == 0)
        ttmem_disable();
    else if (strcmp(verb, "churn") == 0)
        start_churn(atoi(args));
    else if (strcmp(verb, "churn_stop") == 0)
        stop_churn();
    else if (strcmp(verb, "thread") == 0)
        run_thread(args);
    else if (strcmp(verb, "swap_fds") == 0)
        swap_fds(args, false);
    else if (strcmp(verb, "swap_wakes") == 0)
        swap_fds(args, true);
    else if (strcmp(verb, "deny") == 0)
        deny(args);
    else if (strcmp(verb, "chroot") == 0)
        return chroot(args) < 0 || chdir("/") < 0 ? -errno : 0;
    else if (strcmp(verb, "pthread_exit") == 0)
        leave_main(work_on, args);
    else if (strcmp(verb, "late_worker") == 0)
        leave_main(work_late, args);
    else if (strcmp(verb, "exec") == 0)
        exec_again();
    else
        die(verb);
    return 0;
}

int main(int argc, char **argv)
{
    static char line[8192];

    own_path = argc > 0 ? argv[0] : NULL;
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        char *args = line + strcspn(line, " ");
        if (*args)
            *args++ = '\0';
        const int value = obey(line, args);
        printf("ok %d\n", value);
        (void)fflush(stdout);
    }
    return 0;
}
