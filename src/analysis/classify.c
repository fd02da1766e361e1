/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The question is whether births go on, or would have.
 *
 * - The program must have come back to the code at least three times, from other
 *   lines: eight weights from one comprehension are one visit. A loop that is all
 *   the program does has no other lines, and is told by how much it keeps.
 * - Something else must happen beside it. A program that loads weights and ends looks like one
 *   that leaks its inputs and ends: that is unsure, and a mark where loading is over decides.
 * - The births of what remains must reach the end: weights that are loaded before a
 *   decode loop, and a warm-up that settles, do not. How far from the end the last
 *   one may lie follows from the gaps there were between them, and from whether the
 *   program worked meanwhile, which is to give something back: a phase in which all
 *   is kept is one that loads, and is over when anything else begins.
 * - What did not reach the end has settled, if the loop went on without it. If the loop
 *   is over as well, it was loaded or it leaked, and only the operations tell: loading
 *   makes tensors from data and brings them into another form, and who keeps a result
 *   of each of more rounds than a model has layers, leaks.
 * - A thread that ends takes its loop with it: its births must reach its own end.
 * - Where some were freed, what remains must be of all ages, and be more than there
 *   was before: the newest few, or always as many, are a working set (a pool,
 *   ping-pong buffers, a cache that evicts). The oldest few are what was kept.
 */
#include "analysis/classify.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "wire/region.h"

#define GROWING_LEAST 3         /* births */
#define SLOW_LEAST 10           /* births without visits that may still be a loop */
#define TIGHT_LEAST 20          /* the same, if they take no time */
#define ROUNDS_LEAST 128        /* no model has so many layers */
#define SETTLING_LEAST 10       /* births of which it can be said that they came early */
#define SECOND_NS 1000000000ull /* a log tells times no better */
#define MILLISECOND_NS 1000000ull
#define IDLE_NS 30000000000ull /* after which a program without births has changed what it does */

const char *ttm_class_name(enum ttm_class class)
{
    static const char *const names[TTM_CLASS_COUNT] = {
        [TTM_CLASS_UNSURE] = "unsure",
        [TTM_CLASS_SYSTEM] = "system",
        [TTM_CLASS_PROGRAM_CACHE] = "program_cache",
        [TTM_CLASS_CIRCULAR_BUFFER] = "circular_buffer",
        [TTM_CLASS_KERNEL] = "kernel",
        [TTM_CLASS_STEADY] = "steady",
        [TTM_CLASS_GROWING] = "growing",
        [TTM_CLASS_TEMPORARY] = "temporary",
    };

    return names[class];
}

/* What the course is asked of: what remains, or else what was kept up to the end. */
static uint64_t kept_by(const struct ttm_evidence *e)
{
    return e->remaining > 0 ? e->remaining : e->late;
}

enum course {
    COURSE_FEW,
    COURSE_AT_ONCE,
    COURSE_SETTLED,
    COURSE_OVER,
    COURSE_NEWEST,
    COURSE_BLENDED,
    COURSE_ALONE,
    COURSE_GROWING
};

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Some were given back while others were kept. */
static bool is_mixed(const struct ttm_evidence *e)
{
    return e->remaining > 0 && e->frees > e->late;
}

/* A loop that is all the program does, up to its end. Without any line it may be many lines. */
static bool is_lonely_loop(const struct ttm_evidence *e)
{
    if (e->visits == 0 || e->last_visit < e->all_visits || !e->has_origin)
        return false;
    const bool is_long = (e->last_ns - e->first_ns) >= (e->run_last_ns - e->run_first_ns) / 2;
    return kept_by(e) >= (is_long ? SLOW_LEAST : TIGHT_LEAST);
}

/* All at one moment and without a line, where others have one: told when tracking began. */
static bool is_of_one_moment(const struct ttm_evidence *e)
{
    return !e->has_origin && e->have_others &&
           (e->last_ns - e->first_ns) < (e->run_last_ns - e->run_first_ns) / 20;
}

/* A loop, as far as can be told from how often the program came back and left something. */
static bool is_loop(const struct ttm_evidence *e)
{
    if (is_of_one_moment(e))
        return false;
    return e->visits * kept_by(e) >= TTM_LOOP_VISITS * e->allocs || is_lonely_loop(e);
}

/* The share of what remains that was born in the first half of the own interval. */
static double older_half(const struct ttm_evidence *e)
{
    const uint64_t middle = e->first_birth + (e->births - e->first_birth) / 2;
    uint64_t older = 0, all = 0;

    for (uint32_t i = 0; i < TTM_SPREAD_BARS; i++) {
        all += e->remaining_births->bars[i];
        if ((uint64_t)i << e->remaining_births->shift < middle)
            older += e->remaining_births->bars[i];
    }
    return all > 0 ? (double)older / (double)all : 0;
}

/* By an operation that loads, as far as is known. */
static bool is_loaded(const struct ttm_evidence *e)
{
    return e->is_creation || e->is_conversion;
}

static bool is_result(const struct ttm_evidence *e)
{
    return !is_loaded(e) && !e->is_unknown;
}

/* Something was given back while these were born. */
static bool has_worked(const struct ttm_evidence *e)
{
    return e->work > e->visits / 4;
}

/* Nothing was given back, or only what a conversion began with. */
static bool is_loading(const struct ttm_evidence *e)
{
    return !has_worked(e) || (is_loaded(e) && !e->is_computing);
}

static bool has_stopped_keeping(const struct ttm_evidence *e)
{
    const double own = (double)(e->births - e->first_birth);
    const double tail = (double)(e->births - 1 - e->last_birth);

    /* Where they come by chance, one in fifty last gaps is four times as long as the others. */
    return tail > own * larger(4.0 / (double)e->remaining, 0.2);
}

static bool has_stopped_coming(const struct ttm_evidence *e)
{
    const uint64_t tail = e->all_visits - e->last_visit;
    const double own = (double)(e->all_visits - e->first_visit + 1);

    if (is_loading(e))
        return tail > e->longest_gap || e->has_successor;
    if (tail <= e->longest_gap)
        return false;
    if (e->is_followed && (double)tail > own / 20)
        return true;
    return tail > 2 * e->longest_gap && (double)tail > own * larger(1.5 / (double)kept_by(e), 0.15);
}

/* Most of them were born up to the end of a thread that worked meanwhile. */
static bool is_cut_short(const struct ttm_evidence *e)
{
    return !e->is_program && e->region < TTM_REGION_CB && e->remaining >= GROWING_LEAST &&
           e->kept_by_threads > e->remaining / 2 && has_worked(e);
}

/* The program has not allocated for most of the time. */
static bool is_idle(const struct ttm_evidence *e)
{
    const uint64_t idle_ns = e->run_last_ns - e->last_ns;

    return idle_ns >= IDLE_NS && idle_ns / 4 >= (e->run_last_ns - e->first_ns) / 5;
}

static bool has_stopped(const struct ttm_evidence *e)
{
    if (is_idle(e))
        return true;
    const bool is_early = has_stopped_coming(e) || (is_mixed(e) && has_stopped_keeping(e)) ||
                          (kept_by(e) >= SETTLING_LEAST && e->remaining > 0 && older_half(e) > 0.8);
    return is_early && !is_cut_short(e);
}

/* What stopped did so while its loop went on. */
static bool has_settled(const struct ttm_evidence *e)
{
    return e->has_returned || !(has_stopped_coming(e) || is_idle(e));
}

/*
 * How likely one of those that remain is younger than one that was given back: 1 for
 * the newest, 0 for the oldest, a half when age has nothing to do with it.
 */
static double youth(const struct ttm_evidence *e)
{
    const double kept = (double)e->remaining, gone = (double)(e->allocs - e->remaining);

    return ((double)e->remaining_ranks - kept * (kept - 1) / 2) / (kept * gone);
}

/*
 * The newest of many, or always as many. A leak that began late has the newest too, but
 * holds more with each of them.
 */
static bool is_working_set(const struct ttm_evidence *e)
{
    if (e->frees == 0)
        return false;
    if (youth(e) > 0.9)
        return e->remaining < GROWING_LEAST || e->since_most > e->remaining / 8;
    return is_mixed(e) && youth(e) > 0.6 && e->since_most > 3 &&
           (double)e->since_most > 2 * (double)e->allocs / (double)e->remaining;
}

static enum course course_of(const struct ttm_evidence *e)
{
    if (is_working_set(e))
        return COURSE_NEWEST;
    if (e->remaining < GROWING_LEAST)
        return e->visits < 2 || has_stopped(e) ? COURSE_AT_ONCE : COURSE_FEW;
    if (!is_loop(e))
        return COURSE_AT_ONCE;
    if (is_mixed(e) && youth(e) < 0.1)
        return COURSE_SETTLED;
    if (has_stopped(e))
        return has_settled(e) ? COURSE_SETTLED : COURSE_OVER;
    if (e->is_blended)
        return COURSE_BLENDED;
    return e->is_alone ? COURSE_ALONE : COURSE_GROWING;
}

static bool has_many_rounds(const struct ttm_evidence *e)
{
    return e->visits >= ROUNDS_LEAST && e->remaining >= ROUNDS_LEAST;
}

/* Of what a loop kept that is over. */
static enum ttm_class class_of_over(const struct ttm_evidence *e)
{
    if (e->is_unknown)
        return is_loading(e) ? TTM_CLASS_STEADY : TTM_CLASS_UNSURE;
    if (is_loaded(e))
        return has_many_rounds(e) && e->is_computing ? TTM_CLASS_UNSURE : TTM_CLASS_STEADY;
    return has_many_rounds(e) && (e->is_computing || !e->is_fed) ? TTM_CLASS_GROWING
                                                                 : TTM_CLASS_UNSURE;
}

/* Whether what did not grow to the end, and is not of a loop that is over, is told by nothing. */
static bool is_doubtful(const struct ttm_evidence *e, enum course course)
{
    /* A loop of one line, or one statement; a leak that ended, or a cache that is full. */
    return (course == COURSE_AT_ONCE && e->remaining >= TIGHT_LEAST && is_result(e)) ||
           (course == COURSE_SETTLED && has_many_rounds(e) && !is_loaded(e));
}

/* The program cache keeps it on purpose: nobody is suspected for that. */
static bool is_of_program(const struct ttm_evidence *e)
{
    return e->is_program || e->region == TTM_REGION_CB || e->region == TTM_REGION_KERNEL;
}

/*
 * A program that ends in good order frees what its globals hold. What came all through
 * the run and was freed by nobody before has grown, although nothing remains of it.
 */
static bool was_kept_to_the_end(const struct ttm_evidence *e)
{
    return !is_of_program(e) && e->remaining == 0 && e->late >= GROWING_LEAST &&
           e->late >= e->allocs - e->allocs / 10 && is_loop(e) && !has_stopped(e) &&
           !e->is_blended && !e->is_alone;
}

static enum ttm_class class_of(const struct ttm_evidence *e, enum course course)
{
    if (e->region == TTM_REGION_CB)
        return TTM_CLASS_CIRCULAR_BUFFER;
    if (e->region == TTM_REGION_KERNEL)
        return TTM_CLASS_KERNEL;
    if (e->is_device_open)
        return TTM_CLASS_SYSTEM;
    if (e->replaced > 0 && e->replaced >= e->allocs / 2)
        return TTM_CLASS_UNSURE;
    if (was_kept_to_the_end(e))
        return TTM_CLASS_GROWING;
    if (e->remaining == 0)
        return e->frees > 0 ? TTM_CLASS_TEMPORARY : TTM_CLASS_UNSURE;
    if (e->is_program)
        return TTM_CLASS_PROGRAM_CACHE;
    if (course == COURSE_GROWING)
        return TTM_CLASS_GROWING;
    if (course == COURSE_FEW || course == COURSE_BLENDED || course == COURSE_ALONE ||
        !e->has_origin)
        return TTM_CLASS_UNSURE;
    if (course == COURSE_OVER)
        return class_of_over(e);
    return is_doubtful(e, course) ? TTM_CLASS_UNSURE : TTM_CLASS_STEADY;
}

/* ---- words ---- */

#define WHY(...) (void)snprintf(v->why, sizeof(v->why), __VA_ARGS__)
#define ADVICE(text) (void)snprintf(v->advice, sizeof(v->advice), "%s", text)

/* In words of a sentence: there is no "0 ms". */
static const char *span_text(uint64_t ns, char ret[TTM_NUMBER_SIZE])
{
    return ns < MILLISECOND_NS ? "less than 1 ms" : ttm_format_duration(ns, ret);
}

static void tell_growth(const struct ttm_evidence *e, enum course course, struct ttm_verdict *v)
{
    const char *until = course == COURSE_OVER ? "in a loop that is over" : "up to the end";
    char count[TTM_NUMBER_SIZE], freed[TTM_NUMBER_SIZE], all[TTM_NUMBER_SIZE];
    char number[TTM_NUMBER_SIZE];
    const uint64_t span_ns = e->last_ns - e->first_ns;
    const char *span = e->is_untimed                         ? "all of the log"
                       : e->is_logged && span_ns < SECOND_NS ? "less than 1 s"
                                                             : span_text(span_ns, number);

    if (e->remaining == 0)
        WHY("%s were born over %s, and freed only when nothing more was allocated",
            ttm_format_count(e->late, count), span);
    else if (e->frees == 0)
        WHY("%s were born over %s, %s, and none was freed", ttm_format_count(e->remaining, count),
            span, until);
    else
        WHY("%s of %s were never freed, born over %s %s; %s were",
            ttm_format_count(e->remaining, count), ttm_format_count(e->allocs, all), span, until,
            ttm_format_count(e->frees, freed));
}

static void advise_growth(const struct ttm_evidence *e, struct ttm_verdict *v)
{
    if (is_of_program(e))
        ADVICE("the program cache keeps these, and every new shape adds a program: pad to fewer "
               "shapes, or call device.clear_program_cache()");
    else if (e->is_native)
        ADVICE(e->frees > 0 && e->remaining > 0
                   ? "some paths free it and others do not: look for an exception or an early "
                     "return before the free"
                   : "what each step allocates is kept by something that outlives the step: "
                     "free it, or bound what keeps it");
    else if (e->frees > 0 && e->remaining > 0)
        ADVICE("some paths free it and others do not: look for an exception, an early return or "
               "a reference cycle before the free (gc.collect() tells)");
    else if (e->is_creation)
        ADVICE("a list, dict or attribute that outlives the step, or a reference cycle "
               "(gc.collect() tells), keeps these tensors: bound it, or ttnn.deallocate() the old "
               "ones");
    else
        ADVICE("a result of each step is kept by a list, a closure, a kept exception or a cycle: "
               "drop it, or ttnn.deallocate() it before the next step");
    if (e->device_count > 1 && !is_of_program(e))
        (void)snprintf(v->advice + strlen(v->advice), sizeof(v->advice) - strlen(v->advice),
                       "; one call frees it on all %u devices", e->device_count);
}

static void advise_steady(const struct ttm_evidence *e, struct ttm_verdict *v)
{
    if (e->is_native)
        ADVICE("meant to stay, as weights and caches are? then nothing; else free it after its "
               "last use");
    else if (e->device_count > 1)
        ADVICE("meant to stay, as weights and caches are? then nothing; else one "
               "ttnn.deallocate() frees it on all devices of the mesh");
    else
        ADVICE("meant to stay, as weights and caches are? then nothing; else ttnn.deallocate() it "
               "after its last use");
}

static void tell_steady(const struct ttm_evidence *e, enum course course, struct ttm_verdict *v)
{
    char count[TTM_NUMBER_SIZE], all[TTM_NUMBER_SIZE], later[TTM_NUMBER_SIZE];

    (void)ttm_format_count(e->remaining, count);
    if (course == COURSE_NEWEST)
        WHY("the newest %s of %s, the older ones were freed: a working set", count,
            ttm_format_count(e->allocs, all));
    else if (course == COURSE_OVER)
        WHY("%s were loaded in a phase that is over, and kept", count);
    else if (course == COURSE_SETTLED)
        WHY("%s were kept, and then no more while %s others were born: it has settled", count,
            ttm_format_count(e->births - 1 - e->last_birth, later));
    else if (e->frees > 0)
        WHY("%s%s of %s kept, the others were freed",
            youth(e) > 0.9   ? "the newest "
            : youth(e) < 0.1 ? "the oldest "
                             : "",
            count, ttm_format_count(e->allocs, all));
    else if (e->remaining == 1)
        WHY("born once and kept");
    else if (e->visits < 2)
        WHY("%s born one after the other and kept", count);
    else
        WHY("%s born in %s goes and kept", count, ttm_format_count(e->visits, later));
    advise_steady(e, v);
}

static void tell_replaced(const struct ttm_evidence *e, struct ttm_verdict *v)
{
    char replaced[TTM_NUMBER_SIZE], all[TTM_NUMBER_SIZE];

    WHY("%s of %s were allocated again at the same address with no free between, so at most %s can "
        "be live: an accounting artefact of %s%s",
        ttm_format_count(e->replaced, replaced), ttm_format_count(e->allocs, all),
        e->remaining == 1 ? "one" : "the last", e->is_logged ? "the log" : "how it was reported",
        e->is_l1_base                ? ", as circular buffers at the base of L1 came without frees"
        : e->region == TTM_REGION_L1 ? ", as of circular buffers that come as L1"
                                     : ", as of views that came as buffers");
    ADVICE("do not count these as leaks; track the program with tt-mem run to see which they are");
}

static void advise_mark(const struct ttm_evidence *e, struct ttm_verdict *v)
{
    ADVICE(e->is_native ? "call ttmem_mark(\"warm\") where loading is over, and use --after-mark "
                          "warm: only what grows after it counts"
                        : "call ttmem.mark(\"warm\") where loading is over, and use --after-mark "
                          "warm: only what grows after it counts");
}

static void tell_unsure(const struct ttm_evidence *e, enum course course, struct ttm_verdict *v)
{
    char count[TTM_NUMBER_SIZE], later[TTM_NUMBER_SIZE];

    if (e->replaced > 0 && e->replaced >= e->allocs / 2) {
        tell_replaced(e, v);
        return;
    }
    (void)ttm_format_count(e->remaining, count);
    if (e->remaining == 0)
        WHY("its end was not heard");
    else if (course == COURSE_FEW)
        WHY("%s born at different times: too few to tell growth from intent", count);
    else if (!e->has_origin)
        WHY("%s remain and nothing is known of where they come from", count);
    else if (course == COURSE_ALONE)
        WHY("%s were allocated and kept up to the end, and nothing else happened beside them: "
            "loading and leaking look the same",
            count);
    else if (course == COURSE_BLENDED)
        WHY("%s remain of sessions of the device that are too many to be told apart", count);
    else if (course == COURSE_OVER)
        WHY("%s were kept by a loop that is over: a leak of each round, or meant to stay", count);
    else if (course == COURSE_SETTLED)
        WHY("%s were kept, and then no more while %s others were born: a leak that ended, or a "
            "cache that is full",
            count, ttm_format_count(e->births - 1 - e->last_birth, later));
    else
        WHY("%s results were kept one after the other: a leak of each, or meant to stay", count);
    if (e->has_origin && course == COURSE_ALONE) {
        advise_mark(e, v);
        return;
    }
    if (e->has_origin && e->remaining > 0 && course != COURSE_FEW) {
        advise_steady(e, v);
        return;
    }
    ADVICE(e->has_origin ? "run it longer, or set marks with ttmem.mark() around a step"
                         : "track it with call stacks to see the lines");
}

static void tell_program(const struct ttm_evidence *e, enum course course, struct ttm_verdict *v)
{
    char count[TTM_NUMBER_SIZE];

    if (e->remaining == 0) {
        WHY("given back with its program");
        ADVICE("nothing to do");
    } else if (course == COURSE_GROWING) {
        WHY("%s kept by programs in the program cache, which grew up to the end",
            ttm_format_count(e->remaining, count));
        advise_growth(e, v);
    } else {
        WHY("%s kept by programs in the program cache", ttm_format_count(e->remaining, count));
        ADVICE("meant to stay while the programs are used again; device.clear_program_cache() "
               "gives it back");
    }
}

static void tell_temporary(const struct ttm_evidence *e, struct ttm_verdict *v)
{
    char count[TTM_NUMBER_SIZE], mean[TTM_NUMBER_SIZE];

    if (e->is_untimed || (e->is_logged && e->lifetime_ns / e->frees < SECOND_NS))
        WHY("all %s were freed", ttm_format_count(e->frees, count));
    else
        WHY("all %s were freed, after %s on average", ttm_format_count(e->frees, count),
            span_text(e->lifetime_ns / e->frees, mean));
    ADVICE("nothing to do");
}

void ttm_classify(const struct ttm_evidence *e, struct ttm_verdict *v)
{
    const enum course course = e->remaining > 0 ? course_of(e) : COURSE_FEW;

    *v = (struct ttm_verdict){.class = class_of(e, course)};
    switch (v->class) {
    case TTM_CLASS_GROWING:
        tell_growth(e, course, v);
        advise_growth(e, v);
        v->is_suspect = e->remaining > 0;
        v->is_over = course == COURSE_OVER;
        break;
    case TTM_CLASS_STEADY:
        tell_steady(e, course, v);
        break;
    case TTM_CLASS_TEMPORARY:
        tell_temporary(e, v);
        break;
    case TTM_CLASS_SYSTEM:
        WHY("allocated by opening the device");
        ADVICE("nothing to do: closing the device gives it back");
        break;
    case TTM_CLASS_CIRCULAR_BUFFER:
    case TTM_CLASS_KERNEL:
    case TTM_CLASS_PROGRAM_CACHE:
        tell_program(e, course, v);
        v->is_growing_cache = e->remaining > 0 && course == COURSE_GROWING;
        break;
    case TTM_CLASS_UNSURE:
    case TTM_CLASS_COUNT:
        tell_unsure(e, course, v);
        break;
    }
}

void ttm_verdict_clear(const struct ttm_evidence *e, struct ttm_verdict *v)
{
    char count[TTM_NUMBER_SIZE];

    if (e->remaining == 0 || !(v->is_suspect || v->class == TTM_CLASS_UNSURE))
        return;
    v->is_suspect = v->is_over = false;
    if (v->class != TTM_CLASS_UNSURE && v->class != TTM_CLASS_GROWING) {
        tell_program(e, COURSE_SETTLED, v);
        return;
    }
    v->class = TTM_CLASS_STEADY;
    WHY("%s allocated before the leak check began", ttm_format_count(e->remaining, count));
    advise_steady(e, v);
}
