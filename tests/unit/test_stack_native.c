/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "stack/modules.h"
#include "stack/native.h"
#include "stack/probe.h"
#include "stack/python_runtime.h"
#include "wire/origin.h"

#define FRAMES 48u
#define BACKTRACE_MAX 100

/* What the last call of look() saw, by us and by the C library. */
static struct ttm_native *native;
static uint64_t ours[FRAMES + 8];
static unsigned ours_count;
static bool ours_cut;
static void *theirs[BACKTRACE_MAX];
static unsigned theirs_count;
static uint32_t number;
static uint8_t scratch[TTM_STACK_SCRATCH_SIZE];
static uint32_t hint;

static struct {
    uint32_t kind;
    uint32_t length;
    uint8_t bytes[TTM_NATIVE_STACK_NOTE_SIZE_MAX];
} notes[256];
static uint32_t note_count;

static uint32_t keep(uint32_t kind, const void *bytes, uint32_t length)
{
    for (uint32_t i = 0; i < note_count; i++)
        if (notes[i].kind == kind && notes[i].length == length &&
            memcmp(notes[i].bytes, bytes, length) == 0)
            return i + 1;
    if (note_count == COUNT_OF(notes) || length > sizeof(notes[0].bytes))
        return 0;
    notes[note_count].kind = kind;
    notes[note_count].length = length;
    memcpy(notes[note_count].bytes, bytes, length);
    return ++note_count;
}

/* Of the Python frames, as if there were any. */
static uint64_t python_key;

/* 'take_note': as an event does; else a walk alone, and the C library's of the same stack. */
__attribute__((noinline)) TTM_READS_FOREIGN static void look_as(bool take_note)
{
    const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    const struct ttm_registers registers = {
        .ip = (uint64_t)__builtin_return_address(0),
        .sp = frame + 16,
        .bp = ttm_load_u64(frame),
    };
    const uint64_t *addresses;

    if (take_note) {
        number = ttm_native_stack(native, &registers, python_key, keep, scratch, &hint);
        return;
    }
    ours_count = ttm_native_walk(native, &registers, &addresses, &ours_cut);
    memcpy(ours, addresses, ours_count * sizeof(ours[0]));
    theirs_count = (unsigned)backtrace(theirs, BACKTRACE_MAX);
}

__attribute__((noinline)) static void look(void *unused)
{
    (void)unused;
    look_as(false);
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

__attribute__((noinline)) static uint32_t note(void)
{
    look_as(true);
    __asm__ volatile("" ::: "memory");
    return number;
}

/* The C library's first address lies in look_as(); a sanitizer may put one of its own before it. */
static void assert_same_stack(unsigned at_least)
{
    unsigned first = 0;

    while (first < theirs_count && (uint64_t)theirs[first] != ours[0])
        first++;
    assert_true(first < theirs_count);
    assert_true(ours_count >= at_least);
    for (unsigned i = 0; i < ours_count && first + i < theirs_count; i++)
        if (ours[i] != (uint64_t)theirs[first + i])
            fail_msg("frame %u of %u: %#llx instead of %p", i, ours_count,
                     (unsigned long long)ours[i], theirs[first + i]);
    if (!ours_cut)
        assert_in_range(ours_count, theirs_count - first - 1, theirs_count - first + 1);
}

__attribute__((noinline)) static unsigned recurse(unsigned depth, void (*call)(void *))
{
    volatile unsigned result = depth;

    if (depth == 0)
        call(NULL);
    else
        result += recurse(depth - 1, call);
    return result;
}

__attribute__((noinline)) static unsigned with_variable_frame(unsigned bytes)
{
    char *block = __builtin_alloca(bytes);

    memset(block, 1, bytes);
    look(NULL);
    return (unsigned)block[bytes - 1];
}

/* gcc gives such a frame an address that takes an expression to find. */
__attribute__((noinline)) static unsigned with_aligned_frame(unsigned bytes)
{
    volatile char aligned[64] __attribute__((aligned(64)));
    char *block = __builtin_alloca(bytes);

    aligned[0] = 1;
    memset(block, 1, bytes);
    look((void *)aligned);
    return (unsigned)(aligned[0] + block[bytes - 1]);
}

static int compare_and_look(const void *a, const void *b)
{
    look(NULL);
    return *(const int *)a - *(const int *)b;
}

static void the_walk_is_the_same_as_the_c_librarys(void **state)
{
    int numbers[] = {2, 1};
    (void)state;

    look(NULL);
    assert_same_stack(3);
    (void)recurse(30, look);
    assert_same_stack(32);
    assert_false(ours_cut);
    (void)with_variable_frame(1000);
    assert_same_stack(3);
    (void)with_aligned_frame(333);
    assert_same_stack(3);
    qsort(numbers, 2, sizeof(numbers[0]), compare_and_look); /* through another library */
    assert_same_stack(4);
}

static void a_deep_stack_is_cut(void **state)
{
    (void)state;

    (void)recurse(200, look);
    assert_true(ours_cut);
    assert_int_equal(ours_count, FRAMES + 8);
    assert_same_stack(FRAMES + 8);
}

static void on_signal(int signal)
{
    (void)signal;
    look(NULL);
}

static void handle_usr1(int flags)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};

    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    assert_int_equal(raise(SIGUSR1), 0);
    (void)signal(SIGUSR1, SIG_DFL);
}

static void a_signal_handlers_stack_goes_on_in_what_it_interrupted(void **state)
{
    (void)state;

    handle_usr1(0);
    assert_same_stack(5);
}

static void a_stack_of_its_own_ends_at_its_border(void **state)
{
    const size_t size = 65536;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const stack_t alternate = {.ss_sp = memory, .ss_size = size};
    const stack_t none = {.ss_flags = SS_DISABLE};
    (void)state;

    assert_int_equal(sigaltstack(&alternate, NULL), 0);
    handle_usr1(SA_ONSTACK);
    assert_int_equal(sigaltstack(&none, NULL), 0);
    assert_true(ours_count >= 2); /* the handler, and how it was called */
    munmap(memory, size);
}

static ucontext_t main_context;

static void in_coroutine(void)
{
    (void)recurse(5, look);
    (void)note();
}

static void a_coroutines_stack_is_walked_and_not_beyond(void **state)
{
    const size_t size = 65536;
    ucontext_t context;
    (void)state;

    for (unsigned i = 0; i < 3; i++) { /* another one each time, often at the same place */
        char *memory =
            mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_int_equal(mprotect(memory + size, 4096, PROT_NONE), 0);
        assert_int_equal(getcontext(&context), 0);
        context.uc_stack.ss_sp = memory;
        context.uc_stack.ss_size = size;
        context.uc_link = &main_context;
        makecontext(&context, in_coroutine, 0);
        assert_int_equal(swapcontext(&main_context, &context), 0);
        assert_true(ours_count >= 7);
        munmap(memory, size + 4096);
    }
}

static void a_stack_that_comes_again_is_remembered(void **state)
{
    const struct ttm_native_counts *counts = ttm_native_counts(native);
    const struct ttm_native_counts before = *counts;
    uint32_t first = 0;
    (void)state;

    for (volatile unsigned i = 0; i < 1000; i++) { /* volatile: one call site, not unrolled */
        const uint32_t got = note();
        first = i == 0 ? got : first;
        assert_int_not_equal(got, 0);
        assert_int_equal(got, first);
    }
    assert_true(counts->remembered - before.remembered >= 990);
    assert_true(counts->walked - before.walked >= 3); /* now and then, to be sure */
    assert_true(counts->surprises == before.surprises);
}

__attribute__((noinline)) static uint32_t left(void)
{
    const uint32_t got = note();

    __asm__ volatile("" ::: "memory");
    return got;
}

__attribute__((noinline)) static uint32_t right(void)
{
    const uint32_t got = note();

    __asm__ volatile("nop" ::: "memory");
    return got;
}

static void stacks_of_the_same_depth_are_told_apart(void **state)
{
    static uint32_t (*const sides[])(void) = {left, right};
    uint32_t seen[2] = {0};
    (void)state;

    for (volatile unsigned i = 0; i < 1200; i++) {
        const uint32_t number_now = sides[i % 2]();
        if (i < 2)
            seen[i] = number_now;
        assert_int_equal(number_now, seen[i % 2]);
    }
    assert_int_not_equal(seen[0], seen[1]);
}

/* The C library stands in for an interpreter: it calls one of the two, and is called from two places. */
static int call_back(const void *a, const void *b)
{
    (void)b;
    number = (*(uint32_t(*const *)(void))a)();
    return 0;
}

__attribute__((noinline)) static uint32_t from_here(uint32_t (*side)(void))
{
    uint32_t (*two[])(void) = {side, side};

    qsort(two, 2, sizeof(two[0]), call_back);
    __asm__ volatile("" ::: "memory");
    return number;
}

__attribute__((noinline)) static uint32_t from_there(uint32_t (*side)(void))
{
    uint32_t (*two[])(void) = {side, side};

    qsort(two, 2, sizeof(two[0]), call_back);
    __asm__ volatile("nop" ::: "memory");
    return number;
}

static void what_calls_the_interpreter_and_what_it_calls_tell_stacks_apart(void **state)
{
    static uint32_t (*const callers[])(uint32_t(*)(void)) = {from_here, from_there};
    static uint32_t (*const sides[])(void) = {left, right};
    const uint64_t surprises = ttm_native_counts(native)->surprises;
    uint32_t seen[2][2] = {0};
    (void)state;

    ttm_python_runtime.view.types.code = (uintptr_t)&qsort;
    for (volatile unsigned i = 0; i < 2400; i++) {
        const unsigned caller = i % 2, side = i / 2 % 2;
        /* At first another line of Python for each caller; then one line, and native code calls twice. */
        python_key = i < 1200 ? 0x1001 + caller * 0x200 : 0x7007;
        const uint32_t got = callers[caller](sides[side]);
        if (i < 4)
            seen[caller][side] = got;
        assert_int_equal(got, seen[caller][side]);
    }
    assert_int_not_equal(seen[0][0], seen[0][1]);
    assert_int_not_equal(seen[0][0], seen[1][0]);
    assert_int_not_equal(seen[1][0], seen[1][1]);
    assert_true(ttm_native_counts(native)->surprises == surprises);
    python_key = 0;
    ttm_python_runtime.view.types.code = 0;
}

static void a_note_names_modules_and_addresses_within_them(void **state)
{
    struct ttm_native_stack_note stack;
    struct ttm_module_note module;
    Dl_info info;
    (void)state;

    const uint32_t got = note();
    assert_int_not_equal(got, 0);
    assert_int_equal(notes[got - 1].kind, TTM_NOTE_NATIVE_STACK);
    assert_int_equal(
        ttm_native_stack_note_decode(notes[got - 1].bytes, notes[got - 1].length, &stack), 0);
    assert_true(stack.count >= 3);
    const uint32_t place = stack.frames[0].module;
    assert_int_not_equal(place, 0);
    assert_int_equal(
        ttm_module_note_decode(notes[place - 1].bytes, notes[place - 1].length, &module), 0);
    assert_int_not_equal(dladdr((void *)(uintptr_t)note, &info), 0);
    assert_true(module.start <= (uintptr_t)note && (uintptr_t)note < module.end);
    assert_true(module.bias == (uintptr_t)info.dli_fbase);
    assert_true(stack.frames[0].address + module.bias - (uintptr_t)note < 64);
    assert_true(module.path.length > 0 && module.path.bytes[0] == '/');
}

static void *walk_in_thread(void *ret)
{
    struct ttm_native *main_native = native;

    native = calloc(1, ttm_native_size(FRAMES));
    assert_non_null(native);
    ttm_native_init(native, FRAMES, (uintptr_t)pthread_self());
    (void)recurse(10, look);
    *(bool *)ret = note() != 0;
    free(native);
    native = main_native;
    return NULL;
}

static void a_threads_stack_ends_where_the_thread_began(void **state)
{
    bool was_noted = false;
    pthread_t thread;
    (void)state;

    assert_int_equal(pthread_create(&thread, NULL, walk_in_thread, &was_noted), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(was_noted);
    assert_same_stack(12);
    assert_false(ours_cut);
}

static void modules_may_come_and_go(void **state)
{
    static const char *const paths[] = {TTM_TEST_MODULE_A, TTM_TEST_MODULE_B};
    typedef int (*call_fn)(void (*)(void *), void *);
    (void)state;

    for (unsigned i = 0; i < 20; i++) {
        void *library = dlopen(paths[i % 2], RTLD_NOW | RTLD_LOCAL);
        call_fn call;

        assert_non_null(library);
        *(void **)&call = dlsym(library, "module_call");
        assert_non_null(call);
        ttm_native_forget(native); /* as ttm_stack_unloaded() has it done */
        (void)call(look, NULL);
        assert_same_stack(5);
        assert_int_equal(dlclose(library), 0);
    }
}

/* Without being told: a walk by old rows may end early or go astray, but never beyond the stack. */
static void modules_that_went_unnoticed_do_no_harm(void **state)
{
    static const char *const paths[] = {TTM_TEST_MODULE_A, TTM_TEST_MODULE_B};
    typedef int (*call_fn)(void (*)(void *), void *);
    (void)state;

    for (unsigned i = 0; i < 20; i++) {
        void *library = dlopen(paths[i % 2], RTLD_NOW | RTLD_LOCAL);
        call_fn call;

        assert_non_null(library);
        *(void **)&call = dlsym(library, "module_call");
        assert_non_null(call);
        (void)call(look, NULL);
        assert_true(ours_count > 0 && ours_count <= FRAMES + 8);
        assert_int_equal(dlclose(library), 0);
    }
    ttm_native_forget(native);
}

static unsigned looks_at_load;

static void look_at_load(void *unused)
{
    looks_at_load++;
    look(unused);
}

static void a_library_that_is_being_loaded_can_be_walked(void **state)
{
    char text[32];
    (void)state;

    (void)snprintf(text, sizeof(text), "%llx", (unsigned long long)(uintptr_t)look_at_load);
    (void)setenv("TTM_TEST_AT_LOAD", text, 1);
    void *library = dlopen(TTM_TEST_MODULE_A, RTLD_NOW | RTLD_LOCAL);
    (void)unsetenv("TTM_TEST_AT_LOAD");
    assert_non_null(library);
    assert_int_equal(looks_at_load, 1);
    assert_same_stack(8); /* through the loader */
    assert_int_equal(dlclose(library), 0);
    ttm_native_forget(native);
}

static void a_forked_child_walks_on(void **state)
{
    int status = 1;
    (void)state;

    const pid_t child = fork();
    if (child == 0) {
        (void)recurse(10, look);
        _exit(ours_count >= 12 && note() != 0 ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void nonsense_registers_give_a_short_stack_and_no_crash(void **state)
{
    const uint64_t values[] = {0, 1, 8, 0x7ffffffff000, UINT64_MAX, (uint64_t)&values};
    const uint64_t *addresses;
    bool is_cut;
    (void)state;

    for (unsigned i = 0; i < COUNT_OF(values); i++)
        for (unsigned k = 0; k < COUNT_OF(values); k++)
            for (unsigned m = 0; m < COUNT_OF(values); m++) {
                const struct ttm_registers registers = {values[i], values[k], values[m]};
                (void)ttm_native_walk(native, &registers, &addresses, &is_cut);
                (void)ttm_native_stack(native, &registers, python_key, keep, scratch, &hint);
            }
}

static int set_up(void **state)
{
    void **end = dlsym(RTLD_DEFAULT, "__libc_stack_end");
    (void)state;

    if (ttm_modules_start(NULL, 0) < 0) {
        print_message("skipped: needs a C library with _dl_find_object\n");
        exit(77);
    }
    native = calloc(1, ttm_native_size(FRAMES));
    assert_non_null(native);
    assert_non_null(end);
    ttm_native_init(native, FRAMES, (uintptr_t)*end);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(native);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_walk_is_the_same_as_the_c_librarys),
        cmocka_unit_test(a_deep_stack_is_cut),
        cmocka_unit_test(a_signal_handlers_stack_goes_on_in_what_it_interrupted),
        cmocka_unit_test(a_stack_of_its_own_ends_at_its_border),
        cmocka_unit_test(a_coroutines_stack_is_walked_and_not_beyond),
        cmocka_unit_test(a_stack_that_comes_again_is_remembered),
        cmocka_unit_test(stacks_of_the_same_depth_are_told_apart),
        cmocka_unit_test(what_calls_the_interpreter_and_what_it_calls_tell_stacks_apart),
        cmocka_unit_test(a_note_names_modules_and_addresses_within_them),
        cmocka_unit_test(a_threads_stack_ends_where_the_thread_began),
        cmocka_unit_test(modules_may_come_and_go),
        cmocka_unit_test(modules_that_went_unnoticed_do_no_harm),
        cmocka_unit_test(a_library_that_is_being_loaded_can_be_walked),
        cmocka_unit_test(a_forked_child_walks_on),
        cmocka_unit_test(nonsense_registers_give_a_short_stack_and_no_crash),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
