/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread remembers lies in pages of its own, taken at its first capture and
 * given back by the destructor of a pthread key. The memories of the last few
 * threads are kept for those that come after them: in a program that makes a thread
 * for each task, the next one knows what the last one has learned. Threads that
 * outlive the program leave theirs to the kernel.
 *
 * A signal handler may allocate on the device while the thread it interrupted is
 * in here: the thread is 'busy' then, and the inner capture gets nothing. A
 * longjmp() out of that handler would leave it busy for good, which costs stacks
 * and nothing else.
 */
#include "stack/stack.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/hot_code.h"
#include "base/pages.h"
#include "stack/hot.h"
#include "stack/modules.h"
#include "stack/native.h"
#include "stack/probe.h"
#include "stack/python.h"
#include "stack/python_runtime.h"
#include "stack/python_slot.h"
#include "wire/origin.h"

#define COMM_SIZE 16
#define PAGE 4096u
#define SPARES 8u
#define ORIGINS 256u                 /* a power of two */
#define NAME_NS (10 * TTM_NS_PER_MS) /* between two looks at a thread's name */

/* An origin that the thread has had. */
struct origin {
    struct ttm_stack stack;
    uint32_t context;
    uint32_t number; /* 0: none yet */
};

/* What one thread remembers; ttm_python and ttm_native follow. */
struct memory {
    size_t size;
    unsigned epoch;
    unsigned unloads;
    uint32_t thread_note;
    bool has_thread_note;
    bool was_python;   /* when the thread was named */
    uint64_t named_ns; /* then */
    bool has_python;
    bool has_native;
    struct ttm_kept kept; /* of stacks without Python */
    struct origin origins[ORIGINS];
    alignas(16) uint8_t scratch[TTM_STACK_SCRATCH_SIZE];
};

#define HEAD_SIZE ((sizeof(struct memory) + 63) / 64 * 64)

struct ttm_stack_hot ttm_stack_hot;

/* Written by ttm_stack_start() alone, but for the spares. */
static struct {
    struct ttm_stack_options options;
    pthread_key_t key;
    _Atomic bool is_started;
    bool has_native;
    uintptr_t main_stack_end;
    char main_comm[COMM_SIZE + 1];           /* with the file's newline, at first */
    _Atomic(struct memory *) spares[SPARES]; /* of threads that have ended */
} process;

/* Why nothing can be captured now, or not from where the thread is. */
enum { BUSY = 1, SILENT = 2, ELSEWHERE = 4 };

/* Small, and there from the start: a thread-local that has to be allocated would call malloc. */
static _Thread_local struct {
    struct memory *memory; /* NULL: none yet, or none any more */
    uint8_t hindrances;
    bool is_gone;
    const struct ttm_registers *frame; /* where to begin instead: see ttm_stack_set_frame() */
} own __attribute__((tls_model("initial-exec")));

/*
 * Where the parts of a memory lie is known without a look at it: each look would have to wait until
 * the one before has come into the cache.
 */
static inline struct ttm_python *python_of(struct memory *memory)
{
    return (struct ttm_python *)((unsigned char *)memory + HEAD_SIZE);
}

static inline struct ttm_native *native_of(struct memory *memory)
{
    return (struct ttm_native *)((unsigned char *)memory + HEAD_SIZE +
                                 (ttm_python_size() + 63) / 64 * 64);
}

static void release(void *memory)
{
    own.is_gone = true; /* other destructors may still allocate on the device */
    own.memory = NULL;
    ttm_python_hand_over(python_of(memory));
    for (unsigned i = 0; i < SPARES; i++) {
        struct memory *none = NULL;
        /* release: pairs with the acquire in take_spare(). relaxed: a place that is taken is left. */
        if (atomic_compare_exchange_strong_explicit(&process.spares[i], &none, memory,
                                                    memory_order_release, memory_order_relaxed))
            return;
    }
    ttm_pages_free(memory, ((struct memory *)memory)->size);
}

/* A memory that a thread has left behind, NULL for none. */
static struct memory *take_spare(void)
{
    for (unsigned i = 0; i < SPARES; i++) {
        /* acquire: pairs with the release in release(). */
        struct memory *memory =
            atomic_exchange_explicit(&process.spares[i], NULL, memory_order_acquire);
        if (memory)
            return memory;
    }
    return NULL;
}

static void read_main_comm(void)
{
    const int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    const ssize_t n = read(fd, process.main_comm, COMM_SIZE);
    (void)close(fd);
    process.main_comm[n > 0 ? n - 1 : 0] = '\0';
}

void ttm_stack_start(const struct ttm_stack_options *options, ttm_stack_note_fn note)
{
    unsigned ours = 0;

    /* relaxed: one thread starts. */
    if (atomic_load_explicit(&process.is_started, memory_order_relaxed) ||
        pthread_key_create(&process.key, release) != 0)
        return;
    process.options = *options;
    ttm_stack_hot.note = note;
    while (ours < TTM_STACK_OURS_MAX && options->ours[ours])
        ours++;
    process.has_native = ttm_modules_start(options->ours, ours) == 0;
    void **stack_end = dlsym(RTLD_DEFAULT, "__libc_stack_end");
    process.main_stack_end = stack_end ? (uintptr_t)*stack_end : 0;
    read_main_comm();
    ttm_python_runtime_find();
    /* release: pairs with the acquire in is_started(). */
    atomic_store_explicit(&process.is_started, true, memory_order_release);
}

static bool is_started(void)
{
    /* acquire: pairs with the release in ttm_stack_start(). */
    return atomic_load_explicit(&process.is_started, memory_order_acquire);
}

void ttm_stack_find_python(void)
{
    ttm_python_runtime_find();
}

void ttm_stack_use_gil(void)
{
    if (is_started())
        ttm_python_door_open_here();
}

void ttm_stack_forget(void)
{
    /* relaxed: whoever changes the notes orders that against events itself. */
    atomic_fetch_add_explicit(&ttm_stack_hot.epoch, 1, memory_order_relaxed);
    ttm_python_slot_forget();
}

void ttm_stack_unloaded(void)
{
    /* relaxed: threads that run in what was unloaded do not exist. */
    atomic_fetch_add_explicit(&ttm_stack_hot.unloads, 1, memory_order_relaxed);
}

const char *ttm_stack_trouble(void)
{
    const char *trouble = ttm_python_runtime_trouble();

    if (trouble[0] == '\0' && is_started() && !process.has_native &&
        process.options.native_frames > 0)
        return "no native frames: this C library has no _dl_find_object (glibc 2.35)";
    return trouble;
}

static pid_t thread_id(void)
{
    return (pid_t)syscall(SYS_gettid);
}

/*
 * Above every frame of this thread. The C library puts a thread's descriptor at the
 * top of its stack, except the main thread's. In a child that another thread has
 * forked this is wrong, and its stacks are walked as foreign ones are.
 */
static uintptr_t stack_end(void)
{
    if (thread_id() == getpid())
        return process.main_stack_end;
    return (uintptr_t)pthread_self();
}

static struct memory *make_memory(void)
{
    const bool has_native = process.has_native && process.options.native_frames > 0;
    const size_t python = (ttm_python_size() + 63) / 64 * 64;
    const size_t native = has_native ? ttm_native_size(process.options.native_frames) : 0;
    const size_t size = (HEAD_SIZE + python + native + PAGE - 1) / PAGE * PAGE;
    unsigned char *pages = ttm_pages_alloc(size);

    if (!pages)
        return NULL;
    struct memory *memory = (struct memory *)pages;
    memory->size = size;
    memory->epoch = atomic_load_explicit(&ttm_stack_hot.epoch, memory_order_relaxed);
    memory->unloads = atomic_load_explicit(&ttm_stack_hot.unloads, memory_order_relaxed);
    ttm_python_init(python_of(memory), process.options.python_frames);
    memory->has_python = process.options.python_frames > 0;
    if (has_native) {
        memory->has_native = true;
        ttm_native_init(native_of(memory), process.options.native_frames, stack_end());
    }
    return memory;
}

static struct memory *get_memory(void)
{
    struct memory *memory = take_spare();

    if (memory) {
        memory->has_thread_note = false;
        if (memory->has_native)
            ttm_native_hand_over(native_of(memory), stack_end());
    } else {
        memory = make_memory();
    }
    if (memory && pthread_setspecific(process.key, memory) != 0) {
        ttm_pages_free(memory, memory->size);
        memory = NULL;
    }
    return memory;
}

/* The memory of this thread, which has none yet. NULL when there is none to be had. */
__attribute__((noinline, cold)) static struct memory *begin_thread(void)
{
    if (!is_started() || own.is_gone || own.hindrances != 0)
        return NULL;
    const int saved_errno = errno;
    own.hindrances = BUSY;
    /* A signal handler on this thread sees the flag before anything else of ours. */
    atomic_signal_fence(memory_order_seq_cst);
    own.memory = get_memory();
    atomic_signal_fence(memory_order_seq_cst);
    own.hindrances = 0;
    errno = saved_errno;
    return own.memory;
}

/* What others have said since this thread was here. */
__attribute__((noinline, cold)) static void catch_up(struct memory *memory, unsigned epoch,
                                                     unsigned unloads)
{
    if (memory->epoch != epoch) {
        memory->has_thread_note = false;
        memory->kept.origin = 0;
        memset(memory->origins, 0, sizeof(memory->origins));
        ttm_python_forget(python_of(memory));
    }
    if (memory->has_native)
        ttm_native_forget(native_of(memory));
    memory->epoch = epoch;
    memory->unloads = unloads;
}

/*
 * The thread's name: threading's ("MainThread", "worker-1") where Python knows the
 * thread; else the kernel's, if it was given one of its own; else "Thread-<id>".
 * Until 3.14 Python does not tell the kernel. A thread that is renamed later is found
 * to be so at its next new origin, see learn_origin(): to look at each event would cost
 * more than the rest of it.
 */
__attribute__((noinline, cold)) static void name_thread(struct memory *memory, bool is_python)
{
    const int saved_errno = errno;
    char name[TTM_THREAD_NAME_MAX + 1] = "";
    const pid_t tid = thread_id();
    struct ttm_thread_note content = {.tid = (uint32_t)tid, .name = {name, 0}};
    size_t length = 0;

    if (is_python)
        length = tid == getpid()
                     ? (size_t)snprintf(name, sizeof(name), "MainThread")
                     : ttm_python_thread_name(python_of(memory), name, TTM_THREAD_NAME_MAX);
    if (length == 0 && prctl(PR_GET_NAME, name) == 0 &&
        (tid == getpid() || strcmp(name, process.main_comm) != 0))
        length = strnlen(name, COMM_SIZE);
    if (length == 0)
        length = (size_t)snprintf(name, sizeof(name), "Thread-%d", (int)tid);

    content.name.length = (uint16_t)length;
    const size_t size = ttm_thread_note_encode(&content, memory->scratch);
    memory->thread_note = ttm_stack_hot.note(TTM_NOTE_THREAD, memory->scratch, (uint32_t)size);
    memory->has_thread_note = true;
    memory->was_python = is_python;
    memory->named_ns = ttm_clock_read_ns(CLOCK_MONOTONIC_COARSE);
    errno = saved_errno;
}

/* Looks whether the thread has another name by now, if the last look was a while ago. */
__attribute__((noinline, cold)) static bool has_other_name(struct memory *memory)
{
    const uint32_t before = memory->thread_note;

    if (ttm_clock_read_ns(CLOCK_MONOTONIC_COARSE) - memory->named_ns < NAME_NS)
        return false;
    name_thread(memory, memory->was_python);
    return memory->thread_note != before;
}

/*
 * Returns what is kept of this stack, and in 'ret_native' its native part, which may be another
 * than the one that is kept.
 */
static inline struct ttm_kept *capture(struct memory *memory, const struct ttm_registers *registers,
                                       uint32_t *ret_native)
{
    /* relaxed: see the writers. */
    const unsigned epoch = atomic_load_explicit(&ttm_stack_hot.epoch, memory_order_relaxed);
    const unsigned unloads = atomic_load_explicit(&ttm_stack_hot.unloads, memory_order_relaxed);
    struct ttm_kept *kept = NULL;
    uint64_t python = 0;

    if (__builtin_expect(memory->epoch != epoch || memory->unloads != unloads, 0))
        catch_up(memory, epoch, unloads);
    if (__builtin_expect(memory->has_python, 1))
        kept = ttm_python_stack(python_of(memory), registers->sp, ttm_stack_hot.note,
                                memory->scratch, &python);
    const bool is_python = kept != NULL;
    if (__builtin_expect(!is_python, 0))
        kept = &memory->kept;
    *ret_native = 0;
    if (__builtin_expect(memory->has_native, 1))
        *ret_native = ttm_native_stack(native_of(memory), registers, python, ttm_stack_hot.note,
                                       memory->scratch, &kept->native_hint);
    /* A thread that was named by the kernel may get to Python later. */
    if (__builtin_expect(!memory->has_thread_note || memory->was_python < is_python, 0))
        name_thread(memory, is_python);
    return kept;
}

static struct ttm_stack stack_of(const struct memory *memory, const struct ttm_kept *kept,
                                 uint32_t native)
{
    return (struct ttm_stack){
        .thread = memory->thread_note,
        .operation = kept->operation,
        .python = kept->python,
        .native = native,
    };
}

/* An origin that is not the one that is kept for its stack. */
__attribute__((noinline)) static uint32_t learn_origin(struct memory *memory, struct ttm_kept *kept,
                                                       uint32_t native, uint32_t context)
{
    const struct ttm_stack stack = stack_of(memory, kept, native);
    const uint64_t stacks = (uint64_t)stack.python << 32 | stack.native;
    const uint64_t rest = (uint64_t)stack.operation << 32 | context;
    struct origin *known = &memory->origins[ttm_hash_u64(stacks ^ rest * 3) % ORIGINS];

    if (known->number == 0 || known->context != context ||
        memcmp(&known->stack, &stack, sizeof(stack)) != 0) {
        if (has_other_name(memory)) /* the next time it is not looked for */
            return learn_origin(memory, kept, native, context);
        const int saved_errno = errno;
        const uint32_t number = process.options.origin(&stack, context);
        *known = (struct origin){.stack = stack, .context = context, .number = number};
        errno = saved_errno;
    }
    kept->origin = known->number;
    kept->native = native;
    kept->thread = stack.thread;
    kept->context = context;
    return known->number;
}

/* The thread's memory, which must be left with leave(). NULL: there is none, or it is in use. */
static inline struct memory *enter(void)
{
    struct memory *memory = own.memory;

    if (__builtin_expect(!memory, 0))
        memory = begin_thread();
    if (__builtin_expect(!memory || own.hindrances != 0, 0))
        return NULL;
    own.hindrances = BUSY;
    /* A signal handler on this thread sees the flag before anything else of ours. */
    atomic_signal_fence(memory_order_seq_cst);
    return memory;
}

static inline void leave(void)
{
    atomic_signal_fence(memory_order_seq_cst);
    own.hindrances = 0; /* as enter() has found it: whoever adds to it meanwhile takes it away */
}

void ttm_stack_set_silent(bool is_silent)
{
    if (is_silent)
        own.hindrances |= SILENT;
    else
        own.hindrances &= (uint8_t)~SILENT;
}

/*
 * The registers of who has called a function that is not inlined and has a frame of the old kind
 * (which __builtin_frame_address(0) asks for): saved rbp, and above it the return address. So no
 * assembly is needed. What may change errno keeps it itself.
 */
#define REGISTERS_OF_CALLER()                                                                      \
    {                                                                                              \
        .ip = (uint64_t)__builtin_return_address(0),                                               \
        .sp = (uintptr_t)__builtin_frame_address(0) + 16,                                          \
        .bp = ttm_load_u64((uintptr_t)__builtin_frame_address(0)),                                 \
    }

__attribute__((noinline)) TTM_READS_FOREIGN void ttm_stack_capture(struct ttm_stack *ret)
{
    struct memory *memory = enter();
    uint32_t native;

    *ret = (struct ttm_stack){0};
    if (!memory)
        return;
    const struct ttm_registers registers = REGISTERS_OF_CALLER();
    const struct ttm_kept *kept = capture(memory, &registers, &native);
    *ret = stack_of(memory, kept, native);
    leave();
}

void ttm_stack_set_frame(const struct ttm_registers *frame)
{
    own.frame = frame;
    if (frame)
        own.hindrances |= ELSEWHERE;
    else
        own.hindrances &= (uint8_t)~ELSEWHERE;
}

/* As enter(), for who could not, if it is to begin elsewhere and nothing else hinders it. */
__attribute__((noinline, cold)) static struct memory *enter_elsewhere(void)
{
    if (own.hindrances != ELSEWHERE)
        return NULL;
    own.hindrances = 0; /* once */
    return enter();
}

/* One way for all: with two of them the compiler would make calls of what is a part of this. */
TTM_HOT_FIRST __attribute__((noinline)) TTM_READS_FOREIGN uint32_t
ttm_stack_origin(uint32_t context)
{
    struct memory *memory = enter();
    struct ttm_registers registers = REGISTERS_OF_CALLER();
    uint32_t native;

    if (__builtin_expect(!memory, 0)) {
        memory = enter_elsewhere();
        if (!memory)
            return 0;
        registers = *own.frame;
    }
    struct ttm_kept *kept = capture(memory, &registers, &native);
    uint32_t origin = kept->origin;
    if (__builtin_expect(origin == 0 || kept->native != native ||
                             kept->thread != memory->thread_note || kept->context != context,
                         0))
        origin = learn_origin(memory, kept, native, context);
    leave();
    return origin;
}

bool ttm_stack_is_waited_for(void)
{
    struct memory *memory = enter();

    if (!memory)
        return false;
    const int saved_errno = errno;
    const bool is_waited_for = memory->has_python && ttm_python_is_waited_for(python_of(memory));
    errno = saved_errno;
    leave();
    return is_waited_for;
}
