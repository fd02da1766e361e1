/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host - a program with a TT-Metal of our own (fake_metal.cpp) that is hooked.
 *
 * usage: host HOOK LIBRARY…
 *
 * Loads the hook for all to see, and then the libraries as Python does, out of sight of
 * others. It works with the first of them unless told otherwise. It is driven by lines on stdin and answers
 * each with one line of JSON on stdout: what it holds, by its own books.
 *
 *   open CHIPS   close   unclosed   alloc REGION COUNT BYTES   free COUNT   virtual COUNT   fail REGION
 *   storm THREADS EVENTS SWITCHES   births and ends on many threads; leaves a rest. Meanwhile
 *                                   tracking is switched off and on again so many times.
 *   work CHIPS CB_BYTES KERNEL BYTES   run   clash   end
 *   enable   disable   library INDEX   fork
 *   fork_amid      while another thread switches tracking on and asks what is live
 *   child HOW      one that goes on waiting, its pid is in the answer. HOW: 0 by _Fork(), 1 by a bare clone()
 *   install        with "-HOOK" for the hook, which is then loaded here and not at the start
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ttmem/ttmem.h>

#include "base/older_headers.h"

#define REGIONS 5
#define BUFFERS_MAX 100000
#define LIBRARIES_MAX 2
#define ERRNO_MARK 4711 /* the hook's to keep */
#define PATIENCE_S 20   /* with a child that hangs */

struct library {
    void (*open)(int chips);
    void (*close)(void);
    bool (*close_in_vain)(void);
    void (*while_asked)(void (*action)(void));
    void *(*alloc)(int region, uint64_t bytes, bool is_virtual);
    void (*free)(void *buffer);
    void *(*workload)(int chips, uint64_t cb_bytes, const char *kernel, uint32_t bytes);
    void (*run)(void *workload);
    bool (*clash)(void *workload);
    void (*end)(void *workload);
};

struct life {
    void *buffer;
    int region;
    uint64_t bytes;
};

static struct library libraries[LIBRARIES_MAX];
static struct library *fake = libraries;
static struct life lives[BUFFERS_MAX];
static uint32_t life_count;
static uint64_t counts[REGIONS], bytes[REGIONS];
static void *workload;
static const char *late_hook;
static int errno_changes;
static pid_t last_child;

/* Guards the books above; the runtime is called outside it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *find(void *handle, const char *name)
{
    void *function = dlsym(handle, name);

    if (!function) {
        (void)fprintf(stderr, "host: %s\n", dlerror());
        exit(2);
    }
    return function;
}

static void *open_library(const char *path, int flags)
{
    void *handle = dlopen(path, flags);

    if (!handle) {
        (void)fprintf(stderr, "host: %s\n", dlerror());
        exit(2);
    }
    return handle;
}

static void load(const char *path, struct library *ret)
{
    void *handle = open_library(path, RTLD_LAZY | RTLD_LOCAL);

    *(void **)&ret->open = find(handle, "fake_open");
    *(void **)&ret->close = find(handle, "fake_close");
    *(void **)&ret->close_in_vain = find(handle, "fake_close_in_vain");
    *(void **)&ret->while_asked = find(handle, "fake_while_asked");
    *(void **)&ret->alloc = find(handle, "fake_alloc");
    *(void **)&ret->free = find(handle, "fake_free");
    *(void **)&ret->workload = find(handle, "fake_workload");
    *(void **)&ret->run = find(handle, "fake_run");
    *(void **)&ret->clash = find(handle, "fake_clash");
    *(void **)&ret->end = find(handle, "fake_end");
}

/* Loads the hook into a process that has TT-Metal already; counts as wrong when it changes nothing. */
static void install(const char *hook)
{
    int (*call)(void);

    *(void **)&call = find(open_library(hook, RTLD_NOW | RTLD_GLOBAL), "ttmem_hook_install");
    if (call() <= 0)
        errno_changes += 1000;
    if (call() != 0) /* all is ours by now */
        errno_changes += 1000;
}

static bool allocate(int region, uint64_t size)
{
    errno = ERRNO_MARK;
    void *buffer = fake->alloc(region, size, false);
    if (!buffer)
        return false;
    pthread_mutex_lock(&lock);
    errno_changes += errno != ERRNO_MARK;
    if (life_count < BUFFERS_MAX)
        lives[life_count++] = (struct life){buffer, region, size};
    counts[region]++;
    bytes[region] += size;
    pthread_mutex_unlock(&lock);
    return true;
}

/* Any of them: the storm frees what other threads made. */
static void free_one(uint32_t at)
{
    pthread_mutex_lock(&lock);
    if (life_count == 0) {
        pthread_mutex_unlock(&lock);
        return;
    }
    at %= life_count;
    const struct life life = lives[at];
    lives[at] = lives[--life_count];
    counts[life.region]--;
    bytes[life.region] -= life.bytes;
    pthread_mutex_unlock(&lock);
    errno = ERRNO_MARK;
    fake->free(life.buffer);
    if (errno != ERRNO_MARK)
        __atomic_fetch_add(&errno_changes, 1, __ATOMIC_RELAXED);
}

static void *storm(void *context)
{
    const uint32_t events = *(const uint32_t *)context;
    unsigned int seed = (unsigned int)(uintptr_t)&events;

    for (uint32_t i = 0; i < events; i++) {
        const int choice = rand_r(&seed);

        if (choice % 5 < 3)
            (void)allocate(choice % 2 ? 0 : 3, (uint64_t)(choice % 50 + 1));
        else
            free_one((uint32_t)choice);
    }
    return NULL;
}

static void run_storm(uint32_t threads, uint32_t events, uint32_t switches)
{
    pthread_t ids[64];

    threads = threads > 64 ? 64 : threads;
    for (uint32_t i = 0; i < threads; i++)
        (void)pthread_create(&ids[i], NULL, storm, &events);
    for (uint32_t i = 0; i < switches; i++) {
        ttmem_disable();
        (void)ttmem_enable();
    }
    for (uint32_t i = 0; i < threads; i++)
        (void)pthread_join(ids[i], NULL);
}

/* A child that frees what it inherited and makes one of its own. */
static void fork_child(void)
{
    const pid_t child = fork();

    if (child == 0) {
        (void)alarm(PATIENCE_S);
        free_one(0);
        (void)allocate(0, 64);
        _exit(errno_changes ? 1 : 0);
    }
    int status = -1;
    (void)waitpid(child, &status, 0);
    if (status != 0)
        errno_changes++;
}

static _Atomic bool is_asking, is_forking;

/* The allocator is locked until a fork has begun, and for as long as one takes that does not wait. */
static void stay_asking(void)
{
    is_asking = true;
    while (!is_forking)
        (void)usleep(1000);
    (void)usleep(100000);
}

static void note_fork(void)
{
    is_forking = true;
}

static void *switch_on_again(void *unused)
{
    ttmem_disable();
    (void)ttmem_enable();
    return unused;
}

static void fork_amid_switch(void)
{
    pthread_t thread;

    (void)pthread_atfork(note_fork, NULL, NULL); /* the last to come is the first to be called */
    fake->while_asked(stay_asking);
    (void)pthread_create(&thread, NULL, switch_on_again, NULL);
    while (!is_asking)
        (void)usleep(1000);
    fork_child();
    (void)pthread_join(thread, NULL);
    fake->while_asked(NULL);
}

/* In a child that nobody was told of. Returns whether all is as it should be there. */
static bool live_untold(void)
{
    for (uint32_t i = 0; i < 2; i++) { /* of its parent's, and of its own */
        free_one(0);
        if (!allocate(0, 64))
            return false;
    }
    run_storm(2, 200, 0);
    fake->run(workload);
    return errno_changes == 0 && !ttmem_is_enabled() && ttmem_enable() < 0;
}

static void make_child(bool is_bare)
{
    char byte = 0;
    int ready[2];

    if (pipe(ready) < 0)
        exit(2);
    last_child = is_bare ? (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) : _Fork();
    if (last_child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        byte = live_untold() ? 'y' : 'n';
        (void)!write(ready[1], &byte, 1);
        for (;;)
            (void)pause();
    }
    (void)close(ready[1]);
    if (read(ready[0], &byte, 1) != 1 || byte != 'y')
        errno_changes++;
    (void)close(ready[0]);
}

static void forget_books(void)
{
    life_count = 0; /* what is left is freed by the process's end */
    memset(counts, 0, sizeof(counts));
    memset(bytes, 0, sizeof(bytes));
}

static bool do_buffers(const char *word, const unsigned long *n)
{
    bool is_done = true;

    if (strcmp(word, "alloc") == 0) {
        for (unsigned long i = 0; i < n[1]; i++)
            is_done = allocate((int)n[0], n[2]) && is_done;
    } else if (strcmp(word, "free") == 0) {
        for (unsigned long i = 0; i < n[0]; i++)
            free_one(0);
    } else if (strcmp(word, "virtual") == 0) {
        for (unsigned long i = 0; i < n[0]; i++)
            fake->free(fake->alloc(0, 64, true));
    } else if (strcmp(word, "fail") == 0) {
        is_done = !allocate((int)n[0], (uint64_t)1 << 38);
    } else if (strcmp(word, "storm") == 0) {
        run_storm((uint32_t)n[0], (uint32_t)n[1], (uint32_t)n[2]);
    } else if (strcmp(word, "fork") == 0) {
        fork_child();
    } else if (strcmp(word, "fork_amid") == 0) {
        fork_amid_switch();
    } else if (strcmp(word, "child") == 0) {
        make_child(n[0] == 1);
    } else {
        return false;
    }
    if (!is_done)
        errno_changes += 1000; /* shows as wrong whatever the reason */
    return true;
}

static void do_line(const char *line)
{
    char word[32] = "", name[64] = "";
    unsigned long n[4] = {0};

    if (sscanf(line, "work %lu %lu %63s %lu", &n[0], &n[1], name, &n[2]) == 4) {
        workload = fake->workload((int)n[0], n[1], name, (uint32_t)n[2]);
        return;
    }
    (void)sscanf(line, "%31s %lu %lu %lu", word, &n[0], &n[1], &n[2]);
    if (do_buffers(word, n))
        return;
    if (strcmp(word, "open") == 0)
        fake->open((int)n[0]);
    if (strcmp(word, "close") == 0) {
        fake->close();
        forget_books();
    }
    if (strcmp(word, "unclosed") == 0)
        errno_changes += fake->close_in_vain() ? 0 : 1000;
    if (strcmp(word, "run") == 0)
        fake->run(workload);
    if (strcmp(word, "clash") == 0)
        errno_changes += fake->clash(workload) ? 0 : 1000;
    if (strcmp(word, "end") == 0)
        fake->end(workload);
    if (strcmp(word, "enable") == 0)
        (void)ttmem_enable();
    if (strcmp(word, "disable") == 0)
        ttmem_disable();
    if (strcmp(word, "install") == 0)
        install(late_hook);
    if (strcmp(word, "library") == 0)
        fake = &libraries[n[0] % LIBRARIES_MAX];
}

int main(int argc, char **argv)
{
    char line[256];

    if (argc < 2)
        return 2;
    if (argv[1][0] == '-')
        late_hook = argv[1] + 1;
    else
        (void)open_library(argv[1], RTLD_NOW | RTLD_GLOBAL);
    for (int i = 2; i < argc && i < 2 + LIBRARIES_MAX; i++)
        load(argv[i], &libraries[i - 2]);
    while (fgets(line, sizeof(line), stdin)) {
        do_line(line);
        printf("{\"wrong\":%d,\"child\":%d,\"holds\":[", errno_changes, (int)last_child);
        for (int i = 0, shown = 0; i < REGIONS; i++) {
            if (counts[i])
                printf("%s[%d,%lu,%lu]", shown++ ? "," : "", i, (unsigned long)counts[i],
                       (unsigned long)bytes[i]);
        }
        printf("]}\n");
        (void)fflush(stdout);
    }
    return 0;
}
