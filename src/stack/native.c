/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walking. From a frame to its caller it takes the frame's unwind row: one
 * addition and two loads. Rows are read from .eh_frame once per call site and
 * kept in a table of the thread; so a walk costs what libunwind's fast path
 * (unw_backtrace) costs, which works the same way. We do not use that library in
 * somebody else's process, because there it
 *   - takes the loader's lock (dl_iterate_phdr) at each new call site, which this
 *     or another thread may hold, and blocks signals around its own;
 *   - keeps its rows after dlclose(): when another library comes to lie there, it
 *     follows the old rows to wherever they lead, and reads there unchecked;
 *   - opens a pipe to ask whether memory is readable, and exports a second
 *     _Unwind_* and backtrace() to whoever loads it carelessly.
 * Here every load is checked against the bounds of the stack, and the loader is
 * asked without a lock (modules.h). What a row cannot say (a frame address that
 * needs other registers: hand-written code in the main) ends the walk.
 *
 * Remembering. A walk also tells where on the stack each return address lies. When
 * the stack pointer is the same again and each of these places holds the same
 * return address, then it is the same stack: the innermost frame has the same
 * caller, which has the same frame, and so on. That takes one load per frame and
 * no table. What was in all the places is kept as one hash of 64 bits: between two
 * events the host drives what we keep out of the caches, and fifty addresses were
 * seven lines of them.
 * Where Python calls us and all of its frames are known to be the same, each at the same instruction,
 * the interpreter has come the same way from one to the next: of its own addresses only the innermost
 * is compared, and those of other modules, which may have called it. That was a third of the
 * places, and those that the caches were least likely to have.
 * A frame of variable size could in theory leave an old return address where it
 * once was; therefore each 256th time the stack is walked all the same and compared.
 */
#include "stack/native.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "stack/cfi.h"
#include "stack/modules.h"
#include "stack/probe.h"
#include "stack/python_runtime.h"
#include "wire/origin.h"

#define ROWS_BITS 12
#define KNOWN_BITS 10
#define SETS_BITS 6
#define WAYS 4u
#define CHECK_EVERY 256u
#define STEP 4u       /* return addresses that are compared in one go */
#define OWN_FRAMES 8u /* between the program's call and us */
#define PAGE ((uintptr_t)4096)
#define STACK_REACH ((uintptr_t)64 << 20)   /* a stack that is larger has its outer frames unseen */
#define FOREIGN_REACH ((uintptr_t)64 << 10) /* of a stack that the thread was not born with */

_Static_assert((TTM_NATIVE_FRAMES_MAX + OWN_FRAMES) % STEP == 0, "no room beyond the arrays");

/* In the kernel's ucontext, at which rsp points in a signal's frame. */
enum { UCONTEXT_RBP = 120, UCONTEXT_RSP = 160, UCONTEXT_RIP = 168 };

/* A stack whose addresses are known has a note already, wherever on the stack it lay. */
struct known {
    uint64_t hash;
    uint32_t note;
    uint32_t generation;
};

/*
 * Where the return addresses of a stack lie that are compared, in words above 'sp'. Behind the last
 * one the first is repeated, up to a whole number of steps.
 */
struct remembered {
    uint64_t key;  /* the stack pointer, or that and the Python frames; 0: empty */
    uint64_t hash; /* of these addresses, see hash_of() */
    uint32_t note; /* of the whole stack */
    uint32_t generation;
    uint16_t count;
    uint16_t hits;
    uint16_t reach;    /* the highest of the places */
    uint16_t places[]; /* 'room' of them */
};

struct ttm_native {
    unsigned frames; /* wanted */
    unsigned room;   /* with our own */
    size_t stride;   /* of a remembered stack */
    uintptr_t stack_end;
    uintptr_t low, high; /* bounds that the kernel has confirmed */
    uint32_t generation; /* what is known under another one is forgotten */
    uint32_t places_generation;
    struct ttm_native_counts counts; /* with what is above in one line of the cache */
    uint8_t next_way[1u << SETS_BITS];
    struct ttm_modules modules;
    uint64_t addresses[TTM_NATIVE_FRAMES_MAX + OWN_FRAMES];
    uint64_t places[TTM_NATIVE_FRAMES_MAX + OWN_FRAMES]; /* where each address lies */
    uint8_t is_exact[TTM_NATIVE_FRAMES_MAX + OWN_FRAMES];
    struct known known[1u << KNOWN_BITS];
    struct ttm_row rows[1u << ROWS_BITS];
    unsigned char stacks[];
};

static unsigned room_for(unsigned frames)
{
    const unsigned wanted = frames < TTM_NATIVE_FRAMES_MAX ? frames : TTM_NATIVE_FRAMES_MAX;

    return (wanted + OWN_FRAMES + STEP - 1) / STEP * STEP;
}

static size_t stride_for(unsigned room)
{
    const size_t size = sizeof(struct remembered) + room * sizeof(uint16_t);

    return (size + 63) / 64 * 64;
}

size_t ttm_native_size(unsigned frames)
{
    return sizeof(struct ttm_native) + (WAYS << SETS_BITS) * stride_for(room_for(frames));
}

void ttm_native_init(struct ttm_native *native, unsigned frames, uintptr_t stack_end)
{
    native->room = room_for(frames);
    native->frames = frames < TTM_NATIVE_FRAMES_MAX ? frames : TTM_NATIVE_FRAMES_MAX;
    native->stride = stride_for(native->room);
    native->stack_end = stack_end;
    native->generation = 1;
    native->places_generation = 1;
}

/* 'at' is in bytes. */
static inline struct remembered *stack_at(struct ttm_native *native, size_t at)
{
    return (struct remembered *)(native->stacks + at);
}

void ttm_native_hand_over(struct ttm_native *native, uintptr_t stack_end)
{
    /* Often a new thread gets the stack of one that has ended; what lay where still holds then. */
    if (native->stack_end != stack_end)
        native->places_generation++;
    native->stack_end = stack_end;
    native->low = native->high = 0;
}

void ttm_native_forget_places(struct ttm_native *native)
{
    native->places_generation++;
}

void ttm_native_forget_stacks(struct ttm_native *native)
{
    native->generation++;
    native->places_generation++;
}

void ttm_native_forget(struct ttm_native *native)
{
    memset(&native->modules, 0, sizeof(native->modules));
    memset(native->rows, 0, sizeof(native->rows));
    ttm_native_forget_stacks(native);
}

const struct ttm_native_counts *ttm_native_counts(const struct ttm_native *native)
{
    return &native->counts;
}

/*
 * Where the stack of 'sp' ends for certain; 0 when not even 'sp' can be read. The
 * thread's own stack is asked about once, and again when it has grown; it stays
 * as long as the thread. Another stack (sigaltstack, coroutines) may be gone the
 * next time, so of that nothing is kept.
 */
static uintptr_t confirm_end(struct ttm_native *native, uintptr_t sp)
{
    const uintptr_t page = sp / PAGE * PAGE;

    if (sp >= native->low && sp < native->high)
        return native->high;
    if (sp < native->stack_end && native->stack_end - sp < STACK_REACH) {
        const uintptr_t up_to = native->low > sp ? native->low : native->stack_end;

        if (ttm_probe(page, up_to - page)) {
            native->low = page;
            native->high = native->stack_end;
            return native->high;
        }
    }
    uintptr_t end = page;
    while (end - page < FOREIGN_REACH && ttm_probe(end, PAGE))
        end += PAGE;
    return end > sp ? end : 0;
}

static const struct ttm_row *read_row(struct ttm_native *native, uint64_t address,
                                      struct ttm_row *row)
{
    const struct ttm_module *module = ttm_modules_find(&native->modules, address);

    if (module)
        ttm_cfi_read_row(address, module->eh_frame_header, module->start, module->end, row);
    else
        *row = (struct ttm_row){.address = address, .is_known = 1};
    return row;
}

static inline const struct ttm_row *find_row(struct ttm_native *native, uint64_t address)
{
    struct ttm_row *row = &native->rows[address * 0x9e3779b97f4a7c15ull >> (64 - ROWS_BITS)];

    if (__builtin_expect(row->address == address && row->is_known, 1))
        return row;
    return read_row(native, address, row);
}

/* One step outwards. Returns false at the end, or where the way on is not known. */
TTM_READS_FOREIGN static inline bool step(struct ttm_native *native, struct ttm_registers *at,
                                          uintptr_t end, bool *is_exact, uint64_t *ret_place)
{
    const struct ttm_row *row = find_row(native, at->ip - !*is_exact);
    uint64_t cfa;

    *is_exact = false;
    switch (row->kind) {
    case TTM_ROW_RSP:
        cfa = at->sp + (uint64_t)(int64_t)row->cfa_offset;
        break;
    case TTM_ROW_RBP:
        cfa = at->bp + (uint64_t)(int64_t)row->cfa_offset;
        break;
    case TTM_ROW_REALIGNED:
        cfa = at->bp + (uint64_t)(int64_t)row->cfa_offset;
        if (cfa < at->sp || cfa > end - 8 || at->bp < at->sp || at->bp > end - 8 || cfa % 8 != 0)
            return false;
        cfa = ttm_load_u64(cfa);
        break;
    case TTM_ROW_SIGNAL:
        if (end - at->sp < UCONTEXT_RIP + 8)
            return false;
        *is_exact = true;
        *ret_place = at->sp + UCONTEXT_RIP;
        at->ip = ttm_load_u64(*ret_place);
        at->bp = ttm_load_u64(at->sp + UCONTEXT_RBP);
        cfa = ttm_load_u64(at->sp + UCONTEXT_RSP);
        if (cfa <= at->sp || cfa > end - 8 || at->ip == 0) /* the signal had a stack of its own */
            return false;
        at->sp = cfa;
        return true;
    default:
        return false;
    }
    if (__builtin_expect(cfa <= at->sp || cfa > end || cfa % 8 != 0, 0))
        return false;

    if (row->kind == TTM_ROW_REALIGNED) {
        at->bp = ttm_load_u64(at->bp);
    } else if (row->rbp_offset != 0) {
        const uint64_t saved = cfa + (uint64_t)(int64_t)row->rbp_offset;
        if (saved < at->sp || saved > end - 8)
            return false;
        at->bp = ttm_load_u64(saved);
    }
    *ret_place = cfa - 8;
    at->ip = ttm_load_u64(cfa - 8);
    at->sp = cfa;
    return at->ip != 0;
}

/* The first address is that of 'registers'. 'end' is where the stack ends for certain. */
static unsigned walk(struct ttm_native *native, const struct ttm_registers *registers,
                     uintptr_t end, bool *ret_is_cut)
{
    struct ttm_registers at = *registers;
    unsigned count = 0;
    bool is_exact = false;

    *ret_is_cut = false;
    native->addresses[0] = at.ip;
    native->places[0] = at.sp - 8;
    native->is_exact[0] = 0;
    count = 1;
    while (step(native, &at, end, &is_exact, &native->places[count])) {
        native->addresses[count] = at.ip;
        native->is_exact[count] = is_exact;
        if (++count == native->room) {
            *ret_is_cut = true;
            break;
        }
    }
    native->counts.walked++;
    return count;
}

unsigned ttm_native_walk(struct ttm_native *native, const struct ttm_registers *registers,
                         const uint64_t **ret_addresses, bool *ret_is_cut)
{
    const uintptr_t end = confirm_end(native, registers->sp - 8);

    *ret_addresses = native->addresses;
    *ret_is_cut = false;
    return end > registers->sp ? walk(native, registers, end, ret_is_cut) : 0;
}

/*
 * A hash of return addresses, STEP at a time in lanes of their own, so that one multiplication need
 * not wait for the other. One address that differs makes another hash for certain.
 */
struct lanes {
    uint64_t a, b, c, d;
};

static inline uint64_t hash_on(uint64_t lane, uint64_t address)
{
    return (lane ^ address) * 0x9e3779b97f4a7c15ull;
}

static inline uint64_t hash_in_all(struct lanes lanes)
{
    return lanes.a ^ (lanes.b << 16 | lanes.b >> 48) ^ (lanes.c << 32 | lanes.c >> 32) ^
           (lanes.d << 48 | lanes.d >> 16);
}

/* Of the stack that was walked last, as it would be read from its places. */
static uint64_t hash_of(const uint64_t *addresses, unsigned count)
{
    struct lanes lanes = {0};

    for (unsigned i = 0; i < count; i += STEP) {
        lanes.a = hash_on(lanes.a, addresses[i]);
        lanes.b = hash_on(lanes.b, addresses[i + 1 < count ? i + 1 : 0]);
        lanes.c = hash_on(lanes.c, addresses[i + 2 < count ? i + 2 : 0]);
        lanes.d = hash_on(lanes.d, addresses[i + 3 < count ? i + 3 : 0]);
    }
    return hash_in_all(lanes);
}

static unsigned set_of(uint64_t key)
{
    return (unsigned)(ttm_hash_u64(key) >> (64 - SETS_BITS));
}

/* Is 'stack' the one that lies there now? */
TTM_READS_FOREIGN static inline bool is_there(const struct ttm_native *native,
                                              struct remembered *stack, uint64_t key, uint64_t sp)
{
    if (__builtin_expect(stack->key != key, 0) ||
        __builtin_expect(stack->generation != native->places_generation, 0))
        return false;
    if (__builtin_expect((native->high - sp) / 8 < stack->reach, 0)) /* beyond what can be read */
        return false;
    const uint16_t *places = stack->places, *end = places + stack->count;
    const uint64_t *words = (const uint64_t *)sp - 1;
    struct lanes lanes = {0};

    do { /* there is at least one */

        lanes.a = hash_on(lanes.a, words[places[0]]);
        lanes.b = hash_on(lanes.b, words[places[1]]);
        lanes.c = hash_on(lanes.c, words[places[2]]);
        lanes.d = hash_on(lanes.d, words[places[3]]);
        places += STEP;
    } while (places < end);
    return hash_in_all(lanes) == stack->hash;
}

static struct remembered *recall(struct ttm_native *native, uint64_t key, uint64_t sp)
{
    const unsigned set = set_of(key);

    for (unsigned i = 0; i < WAYS; i++) {
        struct remembered *stack = stack_at(native, (set * WAYS + i) * native->stride);
        if (is_there(native, stack, key, sp))
            return stack;
    }
    return NULL;
}

/*
 * Of the stack that was walked last. Places are counted from the word below 'sp', from 1.
 * Returns NULL when it cannot be kept.
 */
static struct remembered *remember(struct ttm_native *native, uint64_t key, uint64_t sp,
                                   unsigned count, uint32_t note)
{
    const unsigned set = set_of(key);
    uint8_t *next = &native->next_way[set];
    struct remembered *stack = stack_at(native, (set * WAYS + *next) * native->stride);
    unsigned i;

    stack->key = 0;
    stack->reach = 0;
    for (i = 0; i < count; i++) {
        const uint64_t words = (native->places[i] + 8 - sp) / 8;

        if (words > UINT16_MAX) /* a large frame, or a place below 'sp' */
            return NULL;
        stack->places[i] = (uint16_t)words;
        if (words > stack->reach)
            stack->reach = (uint16_t)words;
    }
    for (; i % STEP != 0; i++)
        stack->places[i] = stack->places[0];
    stack->hash = hash_of(native->addresses, count);
    stack->note = note;
    stack->generation = native->places_generation;
    stack->hits = 0;
    stack->count = (uint16_t)count;
    stack->key = key;
    *next = (uint8_t)((*next + 1) % WAYS);
    return stack;
}

/* Makes the note, from the first frame on that is not our own. */
static uint32_t make_note(struct ttm_native *native, unsigned count, bool is_cut,
                          ttm_stack_note_fn note, uint8_t *scratch)
{
    struct ttm_native_stack_note *content = (struct ttm_native_stack_note *)scratch;
    uint8_t *bytes = scratch + sizeof(*content);
    struct ttm_module *module = NULL;
    unsigned i = 0;

    content->count = 0;
    for (; i < count && content->count < native->frames; i++) {
        const uint64_t address = native->addresses[i] - !native->is_exact[i];
        struct ttm_native_frame *frame = &content->frames[content->count];

        /* Mostly the module of the frame before. */
        if (!module || address - module->start >= module->end - module->start)
            module = ttm_modules_find(&native->modules, address);
        if (module && module->is_ours && content->count == 0)
            continue;
        frame->module = module ? ttm_module_note(module, note, bytes) : 0;
        frame->address = native->addresses[i] - (frame->module ? module->bias : 0);
        frame->is_exact = native->is_exact[i];
        content->count++;
    }
    content->is_cut = is_cut || i < count;
    if (content->count == 0)
        return 0;
    const size_t size = ttm_native_stack_note_encode(content, bytes);
    return note(TTM_NOTE_NATIVE_STACK, bytes, (uint32_t)size);
}

/* The note of the stack that was walked last. */
static uint32_t note_of(struct ttm_native *native, unsigned count, bool is_cut,
                        ttm_stack_note_fn note, uint8_t *scratch)
{
    const uint64_t hash = ttm_hash_u64(hash_of(native->addresses, count) + count);
    struct known *known = &native->known[hash >> (64 - KNOWN_BITS)];

    if (known->generation != native->generation || known->hash != hash) {
        known->note = make_note(native, count, is_cut, note, scratch);
        known->hash = hash;
        known->generation = native->generation;
    }
    return known->note;
}

static bool is_of_interpreter(struct ttm_native *native, unsigned i)
{
    /* Of its module, the one that runs Python. */
    const uintptr_t interpreter = ttm_python_runtime.view.types.code;
    const struct ttm_module *module =
        ttm_modules_find(&native->modules, native->addresses[i] - !native->is_exact[i]);

    return module && interpreter - module->start < module->end - module->start;
}

/*
 * Keeps those of the addresses that were walked last, and their places, that have to be compared; see
 * the top. Returns how many.
 */
static unsigned keep_compared(struct ttm_native *native, unsigned count, uint64_t python)
{
    unsigned kept = 0;
    bool has_interpreter = false;

    if (python == 0)
        return count;
    for (unsigned i = 0; i < count; i++) {
        const bool is_interpreter = is_of_interpreter(native, i);
        if (is_interpreter && has_interpreter)
            continue;
        has_interpreter |= is_interpreter;
        native->addresses[kept] = native->addresses[i];
        native->places[kept++] = native->places[i];
    }
    return kept;
}

static uint32_t find_stack(struct ttm_native *native, const struct ttm_registers *registers,
                           uint64_t python, ttm_stack_note_fn note, uint8_t *scratch,
                           uint32_t *hint)
{
    const uint64_t sp = registers->sp, key = python != 0 ? python : sp;
    const uintptr_t end = confirm_end(native, sp - 8);
    bool is_cut;

    if (end <= sp || sp % 8 != 0)
        return 0;
    struct remembered *stack = end == native->high ? recall(native, key, sp) : NULL;
    if (stack)
        *hint = (uint32_t)((unsigned char *)stack - native->stacks);
    if (stack && ++stack->hits % CHECK_EVERY != 0) {
        native->counts.remembered++;
        return stack->note;
    }
    if (stack && !ttm_modules_are_current(&native->modules)) {
        ttm_native_forget(native);
        stack = NULL;
    }

    const unsigned count = walk(native, registers, end, &is_cut);
    const uint32_t number = note_of(native, count, is_cut, note, scratch);
    if (stack && stack->note == number)
        return number;
    if (stack) {
        native->counts.surprises++;
        stack->key = 0;
    }
    stack = end == native->high
                ? remember(native, key, sp, keep_compared(native, count, python), number)
                : NULL;
    if (stack)
        *hint = (uint32_t)((unsigned char *)stack - native->stacks);
    return number;
}

/* For a stack that is not where the hint says, or is to be walked again. */
__attribute__((noinline)) static uint32_t find_stack_quietly(struct ttm_native *native,
                                                             const struct ttm_registers *registers,
                                                             uint64_t python,
                                                             ttm_stack_note_fn note,
                                                             uint8_t *scratch, uint32_t *hint)
{
    const int saved_errno = errno;
    const uint32_t number = find_stack(native, registers, python, note, scratch, hint);

    errno = saved_errno;
    return number;
}

__attribute__((hot)) uint32_t ttm_native_stack(struct ttm_native *native,
                                               const struct ttm_registers *registers,
                                               uint64_t python, ttm_stack_note_fn note,
                                               uint8_t *scratch, uint32_t *hint)
{
    const uint64_t sp = registers->sp;
    struct remembered *stack = stack_at(native, *hint);

    /* The last of CHECK_EVERY is left to find_stack(). */
    if (__builtin_expect(sp > native->low, 1) && __builtin_expect(sp < native->high, 1) &&
        __builtin_expect((stack->hits + 1u) % CHECK_EVERY != 0, 1) &&
        __builtin_expect(is_there(native, stack, python != 0 ? python : sp, sp), 1)) {
        stack->hits++;
        native->counts.remembered++;
        return stack->note;
    }
    return find_stack_quietly(native, registers, python, note, scratch, hint);
}
