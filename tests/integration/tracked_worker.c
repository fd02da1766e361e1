/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracked_worker - a program on libttmem that knows by itself what it holds.
 *
 * It is driven by lines on stdin and answers each with one line of JSON on
 * stdout: what it holds on each device and in each region, by its own books,
 * which are kept under a lock of its own and never asked of libttmem.
 *
 *   alloc DEVICE REGION COUNT BYTES   mesh COUNT BYTES [FIRST]   free COUNT   replace COUNT
 *   storm THREADS EVENTS SEED         births on some threads, frees on others; leaves a rest
 *   threads COUNT AT_ONCE             short threads that each leave one allocation
 *   signals THREADS EVENTS INTERVAL   a storm under a timer whose handler reports too
 *   fork DEVICE COUNT                 a child that allocates and waits; "reap" ends it
 *   fork_in_thread                    a child of a thread, which ends as threads do
 *   spawn                             vfork and exec
 *   open DEVICE   close DEVICE        a device of 4 banks; closing ends all that lies on it
 *   within N                          allocations from here on have the context "part_N"
 *   mark N                            sets the mark "mark_N"
 *   fail DEVICE REGION WANTED FREE LARGEST     an allocation that fails, sizes per bank
 *   clash DEVICE END                  circular buffers that would end above L1 buffers
 *   fail_often DEVICE COUNT           the same failure again and again
 *   enable   disable   truth
 *   exit STATUS   _exit STATUS   quick_exit STATUS   segv   return
 */
#include <ttmem/ttmem.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REGIONS 7
#define DEVICES 32
#define MESH_SIZE 8
#define ON_MESH 0xffff /* of eight devices from 0 on; less 1: from 1 on, and so forth */
#define BANKS 4
#define BANK_BYTES (8u << 20)
#define QUEUE_SIZE 256
#define THREADS_MAX 64
#define ERRNO_MARK 4711 /* none of libttmem's business */

extern char **environ;

struct life {
    uint64_t id;
    uint64_t bytes;
    uint64_t footprint_bytes;
    uint16_t device; /* or ON_MESH less its first device */
    uint8_t region;
};

struct sum {
    int64_t count;
    int64_t bytes;
    int64_t footprint_bytes;
};

/* The books. The lock guards all of them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sum truth[DEVICES][REGIONS];
static struct life *lives;
static size_t life_count, life_room;

static _Atomic uint64_t next_id = 1;
static _Atomic uint64_t errno_changes;
static _Atomic uint64_t longest_call_ns;
static uint32_t meshes[DEVICES]; /* libttmem's numbers for meshes, by their first device */
static int child_fd = -1;
static pid_t child_pid;

static void die(const char *why)
{
    (void)fprintf(stderr, "tracked_worker: %s\n", why);
    _exit(99);
}

static uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- the books ---- */

static void book_on(uint16_t device, const struct life *life, int64_t sign)
{
    struct sum *sum = &truth[device][life->region];

    sum->count += sign;
    sum->bytes += sign * (int64_t)life->bytes;
    sum->footprint_bytes += sign * (int64_t)life->footprint_bytes;
}

static bool is_on_mesh(const struct life *life)
{
    return life->device > ON_MESH - DEVICES;
}

/* The first device of its mesh. */
static uint16_t first_device(const struct life *life)
{
    return (uint16_t)(ON_MESH - life->device);
}

static void book(const struct life *life, int64_t sign)
{
    if (!is_on_mesh(life)) {
        book_on(life->device, life, sign);
        return;
    }
    for (uint16_t i = 0; i < MESH_SIZE; i++)
        book_on((uint16_t)(first_device(life) + i), life, sign);
}

static void keep(const struct life *life)
{
    if (life_count == life_room) {
        life_room = life_room ? 2 * life_room : 1024;
        lives = realloc(lives, life_room * sizeof(lives[0]));
        if (!lives)
            die("memory is short");
    }
    lives[life_count++] = *life;
}

static bool take_oldest(struct life *ret)
{
    if (life_count == 0)
        return false;
    *ret = lives[0];
    lives[0] = lives[--life_count];
    return true;
}

/* ---- what libttmem is told; errno is watched meanwhile ---- */

static void begin_call(uint64_t *ret_start_ns)
{
    errno = ERRNO_MARK;
    *ret_start_ns = now_ns();
}

static void end_call(uint64_t start_ns)
{
    if (errno != ERRNO_MARK)
        atomic_fetch_add(&errno_changes, 1);
    const uint64_t took_ns = now_ns() - start_ns;
    uint64_t longest = atomic_load(&longest_call_ns);
    while (took_ns > longest && !atomic_compare_exchange_weak(&longest_call_ns, &longest, took_ns))
        ;
}

static void tell_birth(const struct life *life)
{
    const struct ttmem_allocation allocation = {
        .id = life->id,
        .address = life->id * 65536 % (1ull << 39),
        .bytes = life->bytes,
        .footprint_bytes = life->footprint_bytes,
        .devices = is_on_mesh(life) ? meshes[first_device(life)] : life->device,
        .allocator = life->device,
        .region = life->region,
        .kind = life->region == TTMEM_KERNEL ? (uint8_t)(life->id % 3) : 0,
    };
    uint64_t start_ns;

    begin_call(&start_ns);
    ttmem_alloc(&allocation);
    end_call(start_ns);
}

static void tell_end(const struct life *life)
{
    uint64_t start_ns;

    begin_call(&start_ns);
    ttmem_free(life->device, life->region, life->id);
    end_call(start_ns);
}

static struct life new_life(uint16_t device, uint8_t region, uint64_t bytes)
{
    struct life life = {.id = atomic_fetch_add(&next_id, 1), .device = device, .region = region};

    life.bytes = bytes + life.id % 7;
    life.footprint_bytes = (life.bytes + 2047) / 2048 * 2048;
    return life;
}

/* Not in the list of lives: whoever calls this has it. */
static struct life bear(uint16_t device, uint8_t region, uint64_t bytes)
{
    const struct life life = new_life(device, region, bytes);

    tell_birth(&life);
    pthread_mutex_lock(&lock);
    book(&life, 1);
    pthread_mutex_unlock(&lock);
    return life;
}

static void end(const struct life *life)
{
    tell_end(life);
    pthread_mutex_lock(&lock);
    book(life, -1);
    pthread_mutex_unlock(&lock);
}

static void keep_safely(const struct life *life)
{
    pthread_mutex_lock(&lock);
    keep(life);
    pthread_mutex_unlock(&lock);
}

/* ---- commands on one thread ---- */

static void bear_many(uint16_t device, uint8_t region, uint32_t count, uint64_t bytes)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct life life = bear(device, region, bytes);
        keep_safely(&life);
    }
}

static void end_many(uint32_t count)
{
    struct life life;

    for (uint32_t i = 0; i < count && take_oldest(&life); i++)
        end(&life);
}

static void replace_many(uint32_t count)
{
    for (size_t i = 0; i < count && i < life_count; i++) {
        book(&lives[i], -1);
        lives[i].bytes += 1000;
        lives[i].footprint_bytes += 2048;
        book(&lives[i], 1);
        tell_birth(&lives[i]);
    }
}

static void find_mesh(uint16_t first)
{
    uint16_t ids[MESH_SIZE];

    if (first > DEVICES - MESH_SIZE)
        die("there are not so many devices");
    for (uint16_t i = 0; i < MESH_SIZE; i++)
        ids[i] = (uint16_t)(first + i);
    meshes[first] = ttmem_devices(ids, MESH_SIZE);
}

static bool lies_on(const struct life *life, uint16_t device)
{
    return is_on_mesh(life)
               ? device >= first_device(life) && device < first_device(life) + MESH_SIZE
               : life->device == device;
}

/* ---- devices, contexts and what fails ---- */

static void open_device(uint16_t device)
{
    struct ttmem_device known = {.id = device, .arch = 2, .core_count = 64, .board = "n150"};

    for (unsigned region = 0; region < REGIONS; region++) {
        known.bank_bytes[region] = BANK_BYTES;
        known.bank_count[region] = BANKS;
    }
    ttmem_device_open(&known);
}

static void close_device(uint16_t device)
{
    size_t kept = 0;

    ttmem_device_close(device);
    for (size_t i = 0; i < life_count; i++) {
        if (lies_on(&lives[i], device))
            book(&lives[i], -1);
        else
            lives[kept++] = lives[i];
    }
    life_count = kept;
}

static void enter(unsigned long long number)
{
    static bool is_inside;
    char name[32];

    if (is_inside)
        ttmem_context_pop();
    is_inside = true;
    (void)snprintf(name, sizeof(name), "part_%llu", number);
    ttmem_context_push(name);
}

static void fail(uint16_t device, uint8_t region, uint64_t wanted, uint64_t left, uint64_t largest)
{
    const struct ttmem_failed_allocation failure = {
        .wanted_bytes = wanted * BANKS,
        .bank_wanted_bytes = wanted,
        .bank_free_bytes = left,
        .bank_largest_bytes = largest,
        .devices = device,
        .allocator = device,
        .region = region,
    };
    uint64_t start_ns;

    begin_call(&start_ns);
    ttmem_failure(&failure);
    end_call(start_ns);
}

static void clash(uint16_t device, uint64_t end)
{
    const struct ttmem_failed_allocation failure = {
        .wanted_bytes = end,
        .bank_wanted_bytes = end,
        .devices = device,
        .allocator = device,
        .region = TTMEM_CB,
        .kind = TTMEM_CB_CLASH,
    };

    ttmem_failure(&failure);
}

static void fail_often(uint16_t device, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        fail(device, TTMEM_L1, 4096, 100, 100);
}

/* ---- storms ---- */

/* From the thread that allocates to the one that frees. */
struct handover {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct life queue[QUEUE_SIZE];
    uint32_t head, tail;
    bool is_over;
    uint32_t births;
    uint64_t seed;
    pthread_t bearer, ender;
};

static uint64_t random_next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static void hand_over(struct handover *h, const struct life *life)
{
    pthread_mutex_lock(&h->lock);
    while (h->tail - h->head == QUEUE_SIZE)
        pthread_cond_wait(&h->changed, &h->lock);
    h->queue[h->tail++ % QUEUE_SIZE] = *life;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

static bool receive(struct handover *h, struct life *ret)
{
    pthread_mutex_lock(&h->lock);
    while (h->tail == h->head && !h->is_over)
        pthread_cond_wait(&h->changed, &h->lock);
    const bool has_one = h->tail != h->head;
    if (has_one)
        *ret = h->queue[h->head++ % QUEUE_SIZE];
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    return has_one;
}

/* The threads of a storm get the signals, wherever they are; the main thread only waits. */
static void set_alarms(int how)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    (void)pthread_sigmask(how, &set, NULL);
}

static void *run_bearer(void *arg)
{
    struct handover *h = arg;

    set_alarms(SIG_UNBLOCK);
    for (uint32_t i = 0; i < h->births; i++) {
        const uint16_t device = (uint16_t)(random_next(&h->seed) % 4);
        const uint8_t region = (uint8_t)(random_next(&h->seed) % REGIONS);
        const struct life life = bear(device, region, 1 + random_next(&h->seed) % 100000);
        hand_over(h, &life);
    }
    pthread_mutex_lock(&h->lock);
    h->is_over = true;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

static void *run_ender(void *arg)
{
    struct handover *h = arg;
    struct life life;

    set_alarms(SIG_UNBLOCK);
    while (receive(h, &life)) {
        if (life.id % 64 == 0)
            keep_safely(&life);
        else
            end(&life);
    }
    return NULL;
}

static void storm(uint32_t threads, uint32_t events, uint64_t seed)
{
    if (threads == 0 || threads > THREADS_MAX)
        die("so many threads are not meant");
    struct handover *all = calloc(threads, sizeof(all[0]));
    if (!all)
        die("memory is short");
    for (uint32_t i = 0; i < threads; i++) {
        struct handover *h = &all[i];
        pthread_mutex_init(&h->lock, NULL);
        pthread_cond_init(&h->changed, NULL);
        h->births = events / 2 / threads;
        h->seed = seed * 1000 + i;
        if (pthread_create(&h->bearer, NULL, run_bearer, h) != 0 ||
            pthread_create(&h->ender, NULL, run_ender, h) != 0)
            die("no thread");
    }
    for (uint32_t i = 0; i < threads; i++) {
        pthread_join(all[i].bearer, NULL);
        pthread_join(all[i].ender, NULL);
        pthread_mutex_destroy(&all[i].lock);
        pthread_cond_destroy(&all[i].changed);
    }
    free(all);
}

static void *run_short(void *arg)
{
    const struct life kept = bear(*(const uint16_t *)arg, TTMEM_L1, 100);
    const struct life gone = bear(*(const uint16_t *)arg, TTMEM_DRAM, 100);

    keep_safely(&kept);
    end(&gone);
    return NULL;
}

static void short_threads(uint32_t count, uint32_t at_once)
{
    static const uint16_t device = 1;
    pthread_t threads[THREADS_MAX];

    if (at_once == 0 || at_once > THREADS_MAX)
        die("so many threads are not meant");
    for (uint32_t done = 0; done < count;) {
        uint32_t n = 0;
        while (n < at_once && done + n < count &&
               pthread_create(&threads[n], NULL, run_short, (void *)&device) == 0)
            n++;
        if (n == 0)
            die("no thread");
        for (uint32_t i = 0; i < n; i++)
            pthread_join(threads[i], NULL);
        done += n;
    }
}

/* ---- signals ---- */

#define SIGNAL_DEVICE 15
#define SIGNAL_BYTES 512
#define SIGNAL_BURST 200

static _Atomic uint64_t signal_count;

/* Many within the one event that was interrupted, all freed again. */
static void burst_in_handler(uint64_t n)
{
    for (uint64_t i = 0; i < SIGNAL_BURST; i++) {
        const struct ttmem_allocation allocation = {
            .id = (n + 1) << 32 | i,
            .bytes = SIGNAL_BYTES,
            .devices = SIGNAL_DEVICE,
            .allocator = SIGNAL_DEVICE,
        };
        ttmem_alloc(&allocation);
    }
    for (uint64_t i = 0; i < SIGNAL_BURST; i++)
        ttmem_free(SIGNAL_DEVICE, TTMEM_DRAM, (n + 1) << 32 | i);
}

/* Each leaves one allocation and frees the one before; it may interrupt a call of libttmem. */
static void handle_alarm(int number)
{
    const uint64_t n = atomic_fetch_add(&signal_count, 1);
    const struct ttmem_allocation allocation = {
        .id = n,
        .bytes = SIGNAL_BYTES,
        .devices = SIGNAL_DEVICE,
        .allocator = SIGNAL_DEVICE,
    };
    const int saved_errno = errno;

    (void)number;
    errno = ERRNO_MARK;
    ttmem_alloc(&allocation);
    if (n % 2 == 1)
        ttmem_free(SIGNAL_DEVICE, TTMEM_DRAM, n);
    burst_in_handler(n);
    if (errno != ERRNO_MARK)
        atomic_fetch_add(&errno_changes, 1);
    errno = saved_errno;
}

static void storm_with_signals(uint32_t threads, uint32_t events, uint32_t interval_us)
{
    const struct sigaction action = {.sa_handler = handle_alarm, .sa_flags = SA_RESTART};
    const struct itimerval often = {.it_interval.tv_usec = interval_us,
                                    .it_value.tv_usec = interval_us};
    const struct itimerval never = {0};
    const int64_t left_before = (int64_t)(atomic_load(&signal_count) + 1) / 2;

    (void)sigaction(SIGALRM, &action, NULL);
    set_alarms(SIG_BLOCK);
    (void)setitimer(ITIMER_REAL, &often, NULL);
    storm(threads, events, 7);
    (void)setitimer(ITIMER_REAL, &never, NULL);
    (void)signal(SIGALRM, SIG_IGN);
    set_alarms(SIG_UNBLOCK);
    /* Those with even numbers remain. */
    const int64_t left = (int64_t)(atomic_load(&signal_count) + 1) / 2 - left_before;
    pthread_mutex_lock(&lock);
    truth[SIGNAL_DEVICE][TTMEM_DRAM].count += left;
    truth[SIGNAL_DEVICE][TTMEM_DRAM].bytes += left * SIGNAL_BYTES;
    truth[SIGNAL_DEVICE][TTMEM_DRAM].footprint_bytes += left * SIGNAL_BYTES;
    pthread_mutex_unlock(&lock);
}

/* ---- other processes ---- */

/* A child begins with nothing. */
static void forget_all(void)
{
    memset(truth, 0, sizeof(truth));
    life_count = 0;
}

static void fork_child(uint16_t device, uint32_t count)
{
    int to_child[2], from_child[2];
    char byte;

    if (pipe(to_child) < 0 || pipe(from_child) < 0)
        die("no pipe");
    child_pid = fork();
    if (child_pid < 0)
        die("no child");
    if (child_pid == 0) {
        (void)close(to_child[1]);
        forget_all();
        bear_many(device, TTMEM_DRAM, count, 1000);
        end_many(count / 2);
        if (write(from_child[1], "x", 1) != 1 || read(to_child[0], &byte, 1) != 0)
            _exit(98);
        exit(0);
    }
    (void)close(to_child[0]);
    (void)close(from_child[1]);
    if (read(from_child[0], &byte, 1) != 1)
        die("the child does not answer");
    (void)close(from_child[0]);
    child_fd = to_child[1];
}

/* Returns its exit status, or 128 and the signal that ended it. */
static int wait_for_child(pid_t pid)
{
    int status;

    if (waitpid(pid, &status, 0) < 0)
        die("no child to wait for");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int reap(void)
{
    (void)close(child_fd);
    return wait_for_child(child_pid);
}

/* Ends the process after the thread, so that the thread ends as threads do. */
static void *run_last(void *arg)
{
    pthread_join(*(const pthread_t *)arg, NULL);
    exit(0);
}

static void *run_forker(void *arg)
{
    const struct life before = bear(2, TTMEM_DRAM, 100);

    keep_safely(&before);
    const pid_t pid = fork();
    if (pid < 0)
        die("no child");
    if (pid == 0) {
        static pthread_t self, last;
        const struct life own = bear(3, TTMEM_DRAM, 100);
        end(&own);
        self = pthread_self();
        if (pthread_create(&last, NULL, run_last, &self) != 0)
            die("no thread");
        return NULL;
    }
    *(int *)arg = wait_for_child(pid);
    return NULL;
}

static int fork_in_thread(void)
{
    pthread_t thread;
    int status = -1;

    if (pthread_create(&thread, NULL, run_forker, &status) != 0)
        die("no thread");
    pthread_join(thread, NULL);
    return status;
}

static int spawn(void)
{
    char *const argv[] = {"true", NULL};
    pid_t pid;

    if (posix_spawnp(&pid, "true", NULL, NULL, argv, environ) != 0)
        die("cannot spawn");
    return wait_for_child(pid);
}

/* ---- lines ---- */

static void answer(int value, uint64_t took_ns)
{
    const char *comma = "";

    printf("{\"pid\":%d,\"child\":%d,\"value\":%d,\"took_ns\":%llu,\"longest_call_ns\":%llu,"
           "\"errno_changes\":%llu,\"is_enabled\":%d,\"truth\":[",
           (int)getpid(), (int)child_pid, value, (unsigned long long)took_ns,
           (unsigned long long)atomic_exchange(&longest_call_ns, 0),
           (unsigned long long)atomic_load(&errno_changes), ttmem_is_enabled());
    for (unsigned device = 0; device < DEVICES; device++) {
        for (unsigned region = 0; region < REGIONS; region++) {
            const struct sum *sum = &truth[device][region];
            if (sum->count == 0)
                continue;
            printf("%s[%u,%u,%lld,%lld,%lld]", comma, device, region, (long long)sum->count,
                   (long long)sum->bytes, (long long)sum->footprint_bytes);
            comma = ",";
        }
    }
    printf("]}\n");
    (void)fflush(stdout);
}

/* Those that end the process. */
static void leave(const char *verb, int status)
{
    if (strcmp(verb, "exit") == 0)
        exit(status);
    if (strcmp(verb, "_exit") == 0)
        _exit(status);
    if (strcmp(verb, "quick_exit") == 0)
        quick_exit(status);
    if (strcmp(verb, "segv") == 0) {
        (void)signal(SIGSEGV, SIG_DFL); /* a sanitizer has a handler of its own */
        (void)raise(SIGSEGV);
    }
}

/* Nothing is known afterwards of what was there before. */
static void disable(void)
{
    ttmem_disable();
    forget_all();
}

static void set_mark(unsigned long long number)
{
    char name[32];

    (void)snprintf(name, sizeof(name), "mark_%llu", number);
    ttmem_mark(name);
}

static int obey(const char *verb, const unsigned long long n[5])
{
    if (strcmp(verb, "alloc") == 0)
        bear_many((uint16_t)n[0], (uint8_t)n[1], (uint32_t)n[2], n[3]);
    else if (strcmp(verb, "mesh") == 0) {
        find_mesh((uint16_t)n[2]);
        bear_many((uint16_t)(ON_MESH - n[2]), TTMEM_L1, (uint32_t)n[0], n[1]);
    } else if (strcmp(verb, "free") == 0)
        end_many((uint32_t)n[0]);
    else if (strcmp(verb, "replace") == 0)
        replace_many((uint32_t)n[0]);
    else if (strcmp(verb, "open") == 0)
        open_device((uint16_t)n[0]);
    else if (strcmp(verb, "close") == 0)
        close_device((uint16_t)n[0]);
    else if (strcmp(verb, "within") == 0)
        enter(n[0]);
    else if (strcmp(verb, "mark") == 0)
        set_mark(n[0]);
    else if (strcmp(verb, "fail") == 0)
        fail((uint16_t)n[0], (uint8_t)n[1], n[2], n[3], n[4]);
    else if (strcmp(verb, "clash") == 0)
        clash((uint16_t)n[0], n[1]);
    else if (strcmp(verb, "fail_often") == 0)
        fail_often((uint16_t)n[0], n[1]);
    else if (strcmp(verb, "storm") == 0)
        storm((uint32_t)n[0], (uint32_t)n[1], n[2]);
    else if (strcmp(verb, "threads") == 0)
        short_threads((uint32_t)n[0], (uint32_t)n[1]);
    else if (strcmp(verb, "signals") == 0)
        storm_with_signals((uint32_t)n[0], (uint32_t)n[1], (uint32_t)n[2]);
    else if (strcmp(verb, "fork") == 0)
        fork_child((uint16_t)n[0], (uint32_t)n[1]);
    else if (strcmp(verb, "reap") == 0)
        return reap();
    else if (strcmp(verb, "fork_in_thread") == 0)
        return fork_in_thread();
    else if (strcmp(verb, "spawn") == 0)
        return spawn();
    else if (strcmp(verb, "enable") == 0)
        return ttmem_enable();
    else if (strcmp(verb, "disable") == 0)
        disable();
    else if (strcmp(verb, "truth") != 0)
        die("what?");
    return 0;
}

int main(void)
{
    char line[256], verb[32];

    while (fgets(line, sizeof(line), stdin)) {
        unsigned long long n[5] = {0};
        if (sscanf(line, "%31s %llu %llu %llu %llu %llu", verb, &n[0], &n[1], &n[2], &n[3], &n[4]) <
            1)
            die("an empty line");
        if (strcmp(verb, "return") == 0)
            return (int)n[0];
        leave(verb, (int)n[0]);
        const uint64_t start_ns = now_ns();
        const int value = obey(verb, n);
        answer(value, now_ns() - start_ns);
    }
    return 0;
}
