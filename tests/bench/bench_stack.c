/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to say where a thread is, in nanoseconds of thread CPU.
 *
 *   bench_stack [-n ROUNDS] [LIBPYTHON…]
 *
 * Prints a Markdown table; judges nothing. The native rows are taken at the bottom
 * of a recursion, next to libunwind's unw_backtrace() of the same stack where that
 * library is installed (it is loaded for the comparison alone). For each
 * libpython3.X.so a child embeds that interpreter and takes the rows inside
 * Python calls, below 20 native calls. All rows of a table take turns in each round.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "stack/native.h"
#include "stack/python.h"
#include "stack/stack.h"
#include "wire/origin.h"

#define CALLS 2000u
#define ROUNDS_MAX 101
#define NATIVE_FRAMES 48u
#define PYTHON_FRAMES 8u
#define NOTES 4096u

enum row {
    ROW_UNW,
    ROW_WALK,
    ROW_NEW,
    ROW_MOVED,
    ROW_REMEMBERED,
    ROW_PYTHON,
    ROW_ALL,
    ROW_COUNT,
};

static const char *const row_names[ROW_COUNT] = {
    [ROW_UNW] = "`unw_backtrace` alone",
    [ROW_WALK] = "our walk alone",
    [ROW_NEW] = "native stack, never seen, its note made",
    [ROW_MOVED] = "native stack, seen elsewhere on the stack, walked",
    [ROW_REMEMBERED] = "native stack, remembered",
    [ROW_PYTHON] = "Python frames and operation, known",
    [ROW_ALL] = "everything, remembered",
};

static double costs[ROW_COUNT][ROUNDS_MAX];
static unsigned rounds = 15, frame_count, unw_count;
static int (*unw_backtrace)(void **, int);
static struct ttm_native *native;
static struct ttm_python *python;
static uint8_t scratch[TTM_STACK_SCRATCH_SIZE];
static uint32_t hint;
static volatile uint32_t sink;

static uint64_t thread_ns(void)
{
    return ttm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

static uint32_t origin(const struct ttm_stack *stack, uint32_t context)
{
    return stack->native + context;
}

/* Content-addressed, as the real one is, and as short as that can be. */
static uint32_t note(uint32_t kind, const void *bytes, uint32_t length)
{
    static struct {
        uint64_t hash;
        uint32_t number;
    } notes[NOTES];
    static uint32_t count;
    uint64_t hash = kind;

    for (uint32_t i = 0; i + 8 <= length; i += 8) {
        uint64_t word;
        memcpy(&word, (const uint8_t *)bytes + i, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 32;
    }
    for (uint32_t i = length / 8 * 8; i < length; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x9e3779b97f4a7c15ull;
    hash = ttm_hash_u64(hash);
    if (notes[hash % NOTES].hash != hash) {
        notes[hash % NOTES].hash = hash;
        notes[hash % NOTES].number = ++count;
    }
    return notes[hash % NOTES].number;
}

/* Registers as ttm_stack_capture() takes them. */
__attribute__((noinline)) static uint32_t take(enum row row)
{
    const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    const struct ttm_registers registers = {
        .ip = (uint64_t)__builtin_return_address(0),
        .sp = frame + 16,
        .bp = *(const uint64_t *)frame,
    };
    const uint64_t *addresses;
    void *buffer[NATIVE_FRAMES + 8];
    const struct ttm_kept *kept;
    uint64_t whole;
    bool is_cut;

    switch (row) {
    case ROW_UNW:
        unw_count = unw_backtrace ? (unsigned)unw_backtrace(buffer, NATIVE_FRAMES + 8) : 0;
        return unw_count;
    case ROW_WALK:
        frame_count = ttm_native_walk(native, &registers, &addresses, &is_cut);
        return frame_count;
    case ROW_NEW:
        ttm_native_forget_stacks(native);
        return ttm_native_stack(native, &registers, 0, note, scratch, &hint);
    case ROW_MOVED:
        ttm_native_forget_places(native);
        return ttm_native_stack(native, &registers, 0, note, scratch, &hint);
    case ROW_REMEMBERED:
        return ttm_native_stack(native, &registers, 0, note, scratch, &hint);
    case ROW_PYTHON:
        kept = ttm_python_stack(python, registers.sp, note, scratch, &whole);
        return kept ? kept->python : 0;
    default:
        return ttm_stack_origin(0);
    }
}

static void measure_here(unsigned round)
{
    for (unsigned i = 0; i < ROW_COUNT; i++) {
        const enum row row = (enum row)((i + round) % ROW_COUNT);
        sink = take(row); /* whatever is learned the first time */
        const uint64_t start = thread_ns();
        for (unsigned k = 0; k < CALLS; k++)
            sink = take(row);
        costs[row][round] = (double)(thread_ns() - start) / CALLS;
    }
}

__attribute__((noinline)) static unsigned recurse(unsigned depth, unsigned round)
{
    if (depth == 0) {
        measure_here(round);
        return round;
    }
    /* Work after the call, so that it stays one. */
    return recurse(depth - 1, round) + (sink == 0x7fffffff);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(enum row row)
{
    qsort(costs[row], rounds, sizeof(double), compare);
    return costs[row][rounds / 2];
}

static void print_table(const char *title, bool has_python)
{
    const double base = median(ROW_UNW);

    printf("\n%s; %u native frames, libunwind sees %u\n\n| what | ns | × `unw_backtrace` |\n"
           "|---|---|---|\n",
           title, frame_count, unw_count);
    for (enum row row = 0; row < ROW_COUNT; row++) {
        const double ns = median(row);

        if ((row == ROW_UNW && !unw_backtrace) || (row == ROW_PYTHON && !has_python))
            continue;
        if (unw_backtrace)
            printf("| %s | %.0f | %.2f |\n", row_names[row], ns, ns / base);
        else
            printf("| %s | %.0f | – |\n", row_names[row], ns);
    }
    (void)fflush(stdout);
}

static void start(void)
{
    struct ttm_stack_options options = TTM_STACK_DEFAULT_OPTIONS;
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "unw_backtrace") : NULL;
    void **end = dlsym(RTLD_DEFAULT, "__libc_stack_end");

    memcpy(&unw_backtrace, &symbol, sizeof(symbol));
    options.origin = origin;
    ttm_stack_start(&options, note);
    native = calloc(1, ttm_native_size(NATIVE_FRAMES));
    python = aligned_alloc(64, ttm_python_size());
    if (!native || !python || !end)
        exit(1);
    memset(python, 0, ttm_python_size());
    ttm_native_init(native, NATIVE_FRAMES, (uintptr_t)*end);
    ttm_python_init(python, PYTHON_FRAMES);
}

static unsigned python_round;

/* Called by the program below, through ctypes. */
static void from_python(void)
{
    (void)recurse(20, python_round);
}

static const char program[] = "import ctypes\n"
                              "call = ctypes.CFUNCTYPE(None)(%llu)\n"
                              "def f(n):\n"
                              "    if n: return f(n - 1)\n"
                              "    call()\n"
                              "f(20)\n";

static int run_python(const char *path)
{
    char home[4096], text[512], title[128];
    void *library;
    void (*initialize)(int);
    int (*run)(const char *, void *);
    const char *(*version)(void);

    (void)snprintf(home, sizeof(home), "%s", path);
    for (int i = 0; i < 2 && strrchr(home, '/'); i++)
        *strrchr(home, '/') = '\0';
    (void)setenv("PYTHONHOME", home, 1);
    library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        (void)fprintf(stderr, "bench_stack: %s\n", dlerror());
        return 1;
    }
    *(void **)&initialize = dlsym(library, "Py_InitializeEx");
    *(void **)&run = dlsym(library, "PyRun_SimpleStringFlags");
    *(void **)&version = dlsym(library, "Py_GetVersion");
    if (!initialize || !run || !version)
        return 1;
    initialize(0);
    start();
    (void)snprintf(text, sizeof(text), program, (unsigned long long)(uintptr_t)from_python);
    for (python_round = 0; python_round < rounds; python_round++)
        if (run(text, NULL) != 0)
            return 1;
    (void)snprintf(title, sizeof(title), "Python %.7s, 20 calls deep, %u frames taken", version(),
                   PYTHON_FRAMES);
    print_table(title, true);
    return 0;
}

static int run_child(const char *path)
{
    int status = 1;

    (void)fflush(stdout);
    const pid_t child = fork();
    if (child == 0)
        _exit(path ? run_python(path) : 1);
    if (child > 0)
        (void)waitpid(child, &status, 0);
    return status;
}

int main(int argc, char **argv)
{
    int option, failed = 0;

    while ((option = getopt(argc, argv, "n:")) == 'n')
        rounds = (unsigned)strtoul(optarg, NULL, 10);
    if (option != -1 || rounds == 0 || rounds > ROUNDS_MAX) {
        (void)fprintf(stderr, "usage: bench_stack [-n ROUNDS] [LIBPYTHON…]\n");
        return 2;
    }
    for (int i = optind; i < argc; i++)
        failed |= run_child(argv[i]) != 0;
    start();
    for (unsigned i = 0; i < rounds; i++)
        (void)recurse(35, i);
    print_table("A program without Python", false);
    return failed;
}
