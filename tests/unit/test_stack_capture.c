/* SPDX-License-Identifier: Apache-2.0 */
/* A program without Python; test_stack_python.py has those with it. */
#include "testing.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stack/probe.h"
#include "stack/stack.h"
#include "wire/origin.h"

#define THREADS 16

static struct {
    uint32_t kind;
    uint32_t length;
    uint8_t bytes[TTM_NATIVE_STACK_NOTE_SIZE_MAX];
} notes[512];
static uint32_t note_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the notes */
static _Thread_local bool shall_interrupt;
static _Thread_local struct ttm_stack inner;

static uint32_t keep(uint32_t kind, const void *bytes, uint32_t length)
{
    uint32_t i, number = 0;

    if (shall_interrupt) { /* in the middle of a capture */
        shall_interrupt = false;
        raise(SIGUSR2);
    }
    pthread_mutex_lock(&lock);
    for (i = 0; i < note_count; i++)
        if (notes[i].kind == kind && notes[i].length == length &&
            memcmp(notes[i].bytes, bytes, length) == 0)
            break;
    if (i == note_count && i < COUNT_OF(notes) && length <= sizeof(notes[0].bytes)) {
        notes[i].kind = kind;
        notes[i].length = length;
        memcpy(notes[i].bytes, bytes, length);
        note_count++;
    }
    if (i < note_count)
        number = i + 1;
    pthread_mutex_unlock(&lock);
    return number;
}

static _Thread_local struct ttm_stack made; /* the last one that had an origin made for it */
static uint32_t origins_made;               /* by one thread at a time */

static uint32_t make_origin(const struct ttm_stack *stack, uint32_t context)
{
    assert_in_range(context, 1, 2);
    made = *stack;
    errno = ENOSPC;
    return 1000 * context + ++origins_made;
}

__attribute__((noinline)) static struct ttm_stack capture(void)
{
    struct ttm_stack stack;

    ttm_stack_capture(&stack);
    return stack;
}

static void assert_thread_name(struct ttm_stack stack, const char *name)
{
    struct ttm_thread_note note;

    assert_int_not_equal(stack.thread, 0);
    assert_int_equal(notes[stack.thread - 1].kind, TTM_NOTE_THREAD);
    assert_int_equal(ttm_thread_note_decode(notes[stack.thread - 1].bytes,
                                            notes[stack.thread - 1].length, &note),
                     0);
    assert_int_equal(note.name.length, strlen(name));
    assert_memory_equal(note.name.bytes, name, note.name.length);
}

static void nothing_is_captured_before_the_start(void **state)
{
    struct ttm_stack_options options = TTM_STACK_DEFAULT_OPTIONS;
    const struct ttm_stack stack = capture();
    (void)state;

    options.origin = make_origin;
    assert_int_equal(stack.native, 0);
    assert_int_equal(stack.thread, 0);
    ttm_stack_start(&options, keep);
    assert_string_equal(ttm_stack_trouble(), "");
}

static void a_program_without_python_has_native_frames_and_a_thread(void **state)
{
    struct ttm_stack first = {0}, second = {0};
    (void)state;

    for (volatile unsigned i = 0; i < 2; i++) { /* volatile: one call site, not unrolled */
        second = first;
        errno = EXDEV;
        first = capture();
        assert_int_equal(errno, EXDEV);
    }
    assert_int_not_equal(first.native, 0);
    assert_int_equal(first.native, second.native);
    assert_int_equal(first.python, 0);
    assert_int_equal(first.operation, 0);
    assert_thread_name(first, "test_stack_capt"); /* 15 bytes are all that the kernel keeps */
}

static void *capture_named(void *ret)
{
    assert_int_equal(prctl(PR_SET_NAME, "compiler"), 0);
    *(struct ttm_stack *)ret = capture();
    return NULL;
}

static void *capture_unnamed(void *ret)
{
    *(struct ttm_stack *)ret = capture();
    ((struct ttm_stack *)ret)->python = (uint32_t)gettid();
    return NULL;
}

static void a_thread_has_its_own_name_or_its_number(void **state)
{
    struct ttm_stack stack;
    pthread_t thread;
    char name[32];
    (void)state;

    assert_int_equal(pthread_create(&thread, NULL, capture_named, &stack), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_thread_name(stack, "compiler");
    assert_int_equal(pthread_create(&thread, NULL, capture_unnamed, &stack), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)snprintf(name, sizeof(name), "Thread-%u", stack.python);
    assert_thread_name(stack, name);
}

/* Beyond those that are kept for the next threads. */
static void threads_give_back_their_memory(void **state)
{
    struct ttm_stack stacks[THREADS];
    pthread_t threads[THREADS];
    (void)state;

    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, capture_named, &stacks[i]), 0);
        for (unsigned i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
            assert_int_not_equal(stacks[i].native, 0);
            assert_thread_name(stacks[i], "compiler");
        }
    }
    assert_in_range(faults_pages_out(), 1, 10 * 320 * 1024); /* eight, and this thread's */
}

static void *capture_without_memory(void *ret)
{
    faults_begin(0);
    *(struct ttm_stack *)ret = capture();
    (void)faults_end();
    return NULL;
}

static void a_thread_without_memory_has_no_stack(void **state)
{
    struct ttm_stack stack = {.native = 1};
    pthread_t thread;
    (void)state;

    assert_int_equal(pthread_create(&thread, NULL, capture_without_memory, &stack), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(stack.native, 0);
    assert_int_equal(stack.thread, 0);
}

static void on_signal(int signal)
{
    (void)signal;
    inner = capture();
}

static void a_signal_in_the_middle_of_a_capture_gets_nothing(void **state)
{
    (void)state;

    assert_ptr_not_equal(signal(SIGUSR2, on_signal), SIG_ERR);
    ttm_stack_forget(); /* so that notes are made */
    inner = (struct ttm_stack){.native = 77, .thread = 77};
    shall_interrupt = true;
    const struct ttm_stack outer = capture();
    assert_false(shall_interrupt);
    assert_int_equal(inner.native, 0);
    assert_int_equal(inner.thread, 0);
    assert_int_not_equal(outer.native, 0);
    raise(SIGUSR2); /* outside of one it gets its own */
    assert_int_not_equal(inner.native, 0);
    (void)signal(SIGUSR2, SIG_DFL);
}

static void numbers_are_asked_for_again_after_forgetting(void **state)
{
    (void)state;

    (void)capture();
    note_count = 0; /* another segment */
    ttm_stack_forget();
    const struct ttm_stack stack = capture();
    assert_in_range(stack.native, 1, note_count);
    assert_in_range(stack.thread, 1, note_count);
    assert_int_equal(notes[stack.native - 1].kind, TTM_NOTE_NATIVE_STACK);
    ttm_stack_unloaded();
    assert_int_equal(notes[capture().native - 1].kind, TTM_NOTE_NATIVE_STACK);
}

__attribute__((noinline)) static uint32_t origin_in(uint32_t context)
{
    const uint32_t origin = ttm_stack_origin(context);

    assert_int_not_equal(origin, 0); /* and it is no tail call */
    return origin;
}

static void an_origin_is_made_once_for_each_stack_and_context(void **state)
{
    uint32_t first[2] = {0}, inside[2] = {0};
    (void)state;

    origins_made = 0;
    errno = EXDEV;
    for (volatile unsigned i = 0; i < 6; i++) { /* volatile: one call site, not unrolled */
        const uint32_t context = 1 + i % 2;
        const uint32_t origin = origin_in(context);
        if (i < 2)
            first[i] = origin;
        assert_int_equal(origin, first[i % 2]);
        assert_int_equal(origin / 1000, context);
    }
    assert_int_equal(origins_made, 2);
    assert_int_equal(errno, EXDEV);
    const struct ttm_stack outside = made;
    for (volatile unsigned i = 0; i < 4; i++) { /* another call site */
        inside[i / 2] = origin_in(1);
        assert_int_not_equal(inside[i / 2], first[0]);
    }
    assert_int_equal(inside[1], inside[0]);
    assert_int_equal(origins_made, 3);
    assert_int_not_equal(made.native, outside.native);
    assert_int_equal(made.thread, outside.thread);
}

static struct ttm_native_stack_note native_of(struct ttm_stack stack)
{
    struct ttm_native_stack_note note = {0};

    assert_int_not_equal(stack.native, 0);
    assert_int_equal(ttm_native_stack_note_decode(notes[stack.native - 1].bytes,
                                                  notes[stack.native - 1].length, &note),
                     0);
    return note;
}

/* As one that is called by somebody of whom nothing is to be seen. */
__attribute__((noinline)) TTM_READS_FOREIGN static uint32_t origin_of_caller(void)
{
    const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    const struct ttm_registers caller = {
        .ip = (uint64_t)__builtin_return_address(0),
        .sp = frame + 16,
        .bp = ttm_load_u64(frame),
    };

    ttm_stack_set_frame(&caller);
    const uint32_t origin = origin_in(1);
    ttm_stack_set_frame(NULL);
    return origin;
}

static void an_origin_begins_where_it_is_told_to(void **state)
{
    struct ttm_stack here;
    (void)state;

    assert_int_not_equal(origin_of_caller(), 0);
    const struct ttm_native_stack_note told = native_of(made);
    const uint32_t thread = made.thread;
    assert_int_not_equal(origin_in(1), 0);
    const struct ttm_native_stack_note inside = native_of(made);
    ttm_stack_capture(&here);
    const struct ttm_native_stack_note own = native_of(here);

    /* The first frame is this function's each time, at another call; what has called it is the same. */
    assert_int_equal(told.count, own.count);
    assert_true(told.count > 1);
    for (unsigned i = 1; i < told.count; i++)
        assert_int_equal(told.frames[i].address, own.frames[i].address);
    assert_int_equal(inside.count, own.count + 1); /* that of origin_in() as well */
    assert_int_equal(thread, here.thread);
}

static void an_origin_is_made_again_after_forgetting(void **state)
{
    (void)state;

    origins_made = 0;
    for (volatile unsigned i = 0; i < 3; i++) {
        if (i == 2)
            ttm_stack_forget();
        (void)origin_in(1);
    }
    assert_int_equal(origins_made, 2);
}

static void *rename_between(void *ret)
{
    const struct timespec while_ago = {.tv_nsec = 30000000};
    uint32_t origins[4];

    assert_int_equal(prctl(PR_SET_NAME, "early"), 0);
    for (volatile unsigned i = 0; i < 4; i++) {
        origins[i] = origin_in(i == 2 ? 2 : 1);
        assert_thread_name(made, i < 2 ? "early" : "later");
        if (i == 0) {
            assert_int_equal(prctl(PR_SET_NAME, "later"), 0);
            assert_int_equal(nanosleep(&while_ago, NULL), 0);
        }
    }
    assert_int_equal(origins[0], origins[1]); /* nothing new, and nobody looks */
    assert_int_not_equal(origins[0], origins[3]);
    return ret;
}

static void a_thread_that_was_renamed_is_told_so_from_its_next_new_origin_on(void **state)
{
    pthread_t thread;
    (void)state;

    assert_int_equal(pthread_create(&thread, NULL, rename_between, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void *find_origin(void *ret)
{
    *(uint32_t *)ret = origin_in(1);
    assert_thread_name(made, "taken over");
    return NULL;
}

static void *begin_named(void *ret)
{
    assert_int_equal(prctl(PR_SET_NAME, "taken over"), 0);
    return find_origin(ret);
}

/* One after the other, so that the second has the memory and the stack of the first. */
static void a_thread_that_takes_over_a_memory_has_origins_of_its_own(void **state)
{
    uint32_t origins[2];
    (void)state;

    for (unsigned i = 0; i < 2; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, begin_named, &origins[i]), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    assert_int_not_equal(origins[0], origins[1]);
}

static void a_forked_child_names_itself(void **state)
{
    int status = 1;
    (void)state;

    const struct ttm_stack before = capture();
    const pid_t child = fork();
    if (child == 0) {
        ttm_stack_forget();
        const struct ttm_stack stack = capture();
        struct ttm_thread_note note = {0};
        (void)ttm_thread_note_decode(notes[stack.thread - 1].bytes, notes[stack.thread - 1].length,
                                     &note);
        _exit(stack.native != 0 && stack.thread != before.thread && note.tid == (uint32_t)getpid()
                  ? 0
                  : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

typedef void (*module_call_fn)(void (*)(void *), void *);

static void capture_into(void *ret)
{
    *(struct ttm_stack *)ret = capture();
}

static _Atomic bool shall_stop;

static void *capture_until_stopped(void *ret)
{
    _Atomic unsigned *count = ret;

    while (!shall_stop)
        *count += capture().native != 0;
    return NULL;
}

static void captures_go_on_while_libraries_come_and_go(void **state)
{
    static const char *const paths[] = {TTM_TEST_MODULE_A, TTM_TEST_MODULE_B};
    _Atomic unsigned counts[4] = {0};
    pthread_t threads[COUNT_OF(counts)];
    (void)state;

    shall_stop = false;
    for (unsigned i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, capture_until_stopped, &counts[i]), 0);
    for (unsigned i = 0; i < 100; i++) {
        void *library = dlopen(paths[i % 2], RTLD_NOW | RTLD_LOCAL);
        struct ttm_stack stack = {0};
        module_call_fn call;

        assert_non_null(library);
        *(void **)&call = dlsym(library, "module_call");
        call(capture_into, &stack);
        assert_int_not_equal(stack.native, 0);
        assert_int_equal(dlclose(library), 0);
        ttm_stack_unloaded();
    }
    for (unsigned i = 0; i < COUNT_OF(threads); i++) {
        while (counts[i] == 0) /* it may not have come to run yet */
            (void)sched_yield();
    }
    shall_stop = true;
    for (unsigned i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static sem_t is_loading, may_go_on;

static void hold_the_loader(void *unused)
{
    (void)unused;
    sem_post(&is_loading);
    sem_wait(&may_go_on);
}

static void *load(void *unused)
{
    void *library = dlopen(TTM_TEST_MODULE_A, RTLD_NOW | RTLD_LOCAL);
    (void)unused;

    if (library)
        (void)dlclose(library);
    return library;
}

static void a_capture_does_not_wait_for_a_thread_that_holds_the_loaders_lock(void **state)
{
    struct ttm_stack stack;
    pthread_t thread;
    void *loaded = NULL;
    char text[32];
    (void)state;

    assert_int_equal(sem_init(&is_loading, 0, 0), 0);
    assert_int_equal(sem_init(&may_go_on, 0, 0), 0);
    (void)snprintf(text, sizeof(text), "%llx", (unsigned long long)(uintptr_t)hold_the_loader);
    (void)setenv("TTM_TEST_AT_LOAD", text, 1);
    assert_int_equal(pthread_create(&thread, NULL, load, NULL), 0);
    assert_int_equal(sem_wait(&is_loading), 0);
    ttm_stack_forget(); /* so that everything is found out again */
    stack = capture();  /* would hang, and the test time out */
    assert_int_equal(sem_post(&may_go_on), 0);
    (void)unsetenv("TTM_TEST_AT_LOAD");
    assert_int_equal(pthread_join(thread, &loaded), 0);
    assert_non_null(loaded);
    assert_int_not_equal(stack.native, 0);
}

static int is_unwinder(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    (void)data;
    return info->dlpi_name && strstr(info->dlpi_name, "libunwind") != NULL;
}

static void no_second_unwinder_comes_into_the_process(void **state)
{
    (void)state;

    (void)capture();
    assert_int_equal(dl_iterate_phdr(is_unwinder, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_captured_before_the_start),
        cmocka_unit_test(a_thread_without_memory_has_no_stack),
        cmocka_unit_test(a_program_without_python_has_native_frames_and_a_thread),
        cmocka_unit_test(a_thread_has_its_own_name_or_its_number),
        cmocka_unit_test(threads_give_back_their_memory),
        cmocka_unit_test(a_signal_in_the_middle_of_a_capture_gets_nothing),
        cmocka_unit_test(numbers_are_asked_for_again_after_forgetting),
        cmocka_unit_test(an_origin_is_made_once_for_each_stack_and_context),
        cmocka_unit_test(an_origin_begins_where_it_is_told_to),
        cmocka_unit_test(an_origin_is_made_again_after_forgetting),
        cmocka_unit_test(a_thread_that_was_renamed_is_told_so_from_its_next_new_origin_on),
        cmocka_unit_test(a_thread_that_takes_over_a_memory_has_origins_of_its_own),
        cmocka_unit_test(a_forked_child_names_itself),
        cmocka_unit_test(captures_go_on_while_libraries_come_and_go),
        cmocka_unit_test(a_capture_does_not_wait_for_a_thread_that_holds_the_loaders_lock),
        cmocka_unit_test(no_second_unwinder_comes_into_the_process),
    };

    if (!dlsym(RTLD_DEFAULT, "_dl_find_object")) {
        print_message("skipped: needs a C library with _dl_find_object (glibc 2.35)\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
