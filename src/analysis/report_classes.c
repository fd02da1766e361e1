/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The evidence for ttm_classify(). Cells of code that is alike (a kin: the same lines,
 * whatever the thread, name or context) are judged together, as a leak is one of the code;
 * but each session of a device for itself, as what one left is not there in the next.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report_making.h"
#include "wire/region.h"

/* What all cells of a kin have in common, summed up. */
struct kindred {
    struct ttm_evidence evidence;
    uint64_t spot_visit; /* of the first of a spot: the last visit of any */
    struct ttm_spread births;
    struct ttm_verdict verdict;
    bool is_known;
};

static bool is_creation(const char *operation)
{
    static const char *const words[] = {"from_torch", "to_device", "as_tensor", "zeros",  "ones",
                                        "full",       "empty",     "rand",      "arange", "tensor",
                                        "from_",      "load",      "allocate",  NULL};

    for (size_t i = 0; words[i]; i++) {
        if (strstr(operation, words[i]))
            return true;
    }
    return false;
}

/* By how its name begins: ttnn.to_layout, ttnn.typecast. */
static bool is_conversion(const char *operation)
{
    static const char *const words[] = {
        "to_",        "typecast", "tilize", "untilize",  "interleaved_to", "sharded_to", "reshard",
        "permute",    "reshape",  "pad",    "transpose", "squeeze",        "unsqueeze",  "concat",
        "split",      "chunk",    "slice",  "stack",     "repeat",         "clone",      "copy",
        "assign",     "move",     "fold",   "prepare",   "bitcast",        "expand",     "view",
        "reallocate", "narrow",   NULL};
    const char *dot = strrchr(operation, '.');
    const char *name = dot ? dot + 1 : operation;
    size_t i = 0;

    while (words[i] && strncmp(name, words[i], strlen(words[i])) != 0)
        i++;
    return words[i] != NULL;
}

static void begin_kindred(const struct making *making, const struct named *named,
                          struct kindred *kindred)
{
    const struct ttm_ledger *ledger = making->ledger;
    const struct ttm_kin *kin = &ledger->kins[named->cell->kin];
    const struct ttm_ledger_session *session = &ledger->sessions[kin->session];

    kindred->evidence = (struct ttm_evidence){
        .region = named->cell->region,
        .device_count = ledger->groups.sets[named->cell->set].device_count,
        .has_origin = kin->code != 0,
        .have_others = making->first_users_ns != UINT64_MAX,
        .is_creation = named->words.operation[0] != '\0' ? is_creation(named->words.operation)
                                                         : named->words.is_upload,
        .is_conversion = is_conversion(named->words.operation),
        .is_unknown = named->words.operation[0] == '\0' && !named->words.is_upload,
        .is_blended = session->is_blended,
        .is_logged = making->process->is_logged,
        .is_native = making->first_users_ns == UINT64_MAX && named->words.operation[0] == '\0' &&
                     !making->process->is_logged,
        .is_untimed = making->process->is_untimed,
        .is_l1_base = named->cell->region == TTM_REGION_L1,
        .births = session->births,
        .first_birth = kin->first_birth,
        .visits = kin->visits,
        .first_visit = kin->first_visit,
        .last_visit = kin->last_visit,
        .longest_gap = kin->longest_gap,
        .all_visits = session->visits,
        .work = kin->work,
        .since_most = kin->births - kin->most_birth - 1,
        .remaining_ranks = kin->remaining_ranks,
        .first_ns = UINT64_MAX,
        .run_first_ns = session->first_ns,
        .run_last_ns = session->last_ns,
    };
    kindred->is_known = true;
}

static void add_kindred(const struct making *making, const struct named *named,
                        struct kindred *kindred)
{
    const struct ttm_cell *cell = named->cell;
    const struct ttm_remaining *remaining = &cell->remaining;
    struct ttm_evidence *e = &kindred->evidence;

    if (!kindred->is_known)
        begin_kindred(making, named, kindred);
    /* Before the first line of the user's own: the runtime's own doing, unless an operation's. */
    e->is_device_open |=
        named->words.is_device_open ||
        (named->words.python_count == 0 && !named->words.is_ttnns && e->has_origin &&
         making->first_users_ns != UINT64_MAX && cell->last_ns < making->first_users_ns);
    e->is_program |= cell->is_program || named->words.is_program ||
                     ttm_is_buffer_of_program(cell->region, cell->kind);
    e->is_l1_base &=
        cell->lowest_address == making->l1_base && cell->highest_address == making->l1_base;
    e->allocs += cell->allocs;
    e->frees += cell->frees;
    e->replaced += cell->replaced;
    e->lifetime_ns += cell->lifetime_ns;
    e->remaining += remaining->held.count;
    e->late += cell->late.held.count;
    if (remaining->held.count == 0)
        return;
    if (remaining->last_birth > e->last_birth)
        e->last_birth = remaining->last_birth;
    if (remaining->first_ns < e->first_ns)
        e->first_ns = remaining->first_ns;
    if (remaining->last_ns > e->last_ns)
        e->last_ns = remaining->last_ns;
    ttm_spread_merge(&kindred->births, &remaining->births);
}

/* Nothing remains: then the course is that of what was freed late. */
static void add_late(const struct ttm_cell *cell, struct ttm_evidence *e)
{
    if (e->remaining > 0 || cell->late.held.count == 0)
        return;
    if (cell->late.last_birth > e->last_birth)
        e->last_birth = cell->late.last_birth;
    if (cell->late.first_ns < e->first_ns)
        e->first_ns = cell->late.first_ns;
    if (cell->late.last_ns > e->last_ns)
        e->last_ns = cell->late.last_ns;
}

/* What one thread did in code of one kind, in births of that thread. */
struct stint {
    uint32_t kin;
    uint32_t thread;
    uint64_t first;
    uint64_t last;
    uint64_t remaining;
};

static int by_kin_and_thread(const void *a, const void *b)
{
    const struct stint *x = a, *y = b;
    const int order = compare_numbers(x->kin, y->kin);

    return order != 0 ? order : compare_numbers(x->thread, y->thread);
}

/* Cells of one kin and thread become one. */
static uint32_t join_stints(struct stint *stints, uint32_t count)
{
    uint32_t n = 0;

    qsort(stints, count, sizeof(stints[0]), by_kin_and_thread);
    for (uint32_t i = 0; i < count; i++) {
        struct stint *last = n > 0 ? &stints[n - 1] : NULL;
        if (!last || by_kin_and_thread(last, &stints[i]) != 0) {
            stints[n++] = stints[i];
            continue;
        }
        last->first = stints[i].first < last->first ? stints[i].first : last->first;
        last->last = stints[i].last > last->last ? stints[i].last : last->last;
        last->remaining += stints[i].remaining;
    }
    return n;
}

/*
 * Whether a thread kept these until it allocated no more. The first thread is the
 * program itself, and what that does at first is to load what it needs.
 */
static bool lasted_to_the_end(const struct ttm_ledger *ledger, const struct stint *stint)
{
    const uint64_t births = ledger->threads[stint->thread].births;
    const double natural = 1.5 / (double)(stint->remaining + 1);

    return stint->thread > 0 &&
           (double)(births - 1 - stint->last) <=
               (double)(births - stint->first) * (natural > 0.15 ? natural : 0.15);
}

static int add_threads(const struct making *making, uint32_t count, struct kindred *kindred)
{
    const struct ttm_ledger *ledger = making->ledger;

    if (ledger->thread_count < 2 || count == 0)
        return 0;
    struct stint *stints = malloc(count * sizeof(stints[0]));
    if (!stints)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        const struct ttm_cell *cell = making->named[i].cell;
        stints[i] = (struct stint){.kin = cell->kin,
                                   .thread = cell->thread,
                                   .first = cell->thread_first,
                                   .last = cell->thread_last,
                                   .remaining = cell->remaining.held.count};
    }
    const uint32_t n = join_stints(stints, count);
    for (uint32_t i = 0; i < n; i++) {
        if (lasted_to_the_end(ledger, &stints[i]))
            kindred[stints[i].kin].evidence.kept_by_threads += stints[i].remaining;
    }
    free(stints);
    return 0;
}

/* Code that the program had not come to before; in visits. */
struct beginning {
    uint64_t visit;
    uint64_t loop; /* the last one up to this of code that it comes back to */
};

static int by_visit(const void *a, const void *b)
{
    const struct beginning *x = a, *y = b;

    return compare_numbers(x->visit, y->visit);
}

/* All of them, in order, in 'ret', which has room for as many as there are kin. */
static uint32_t list_beginnings(const struct making *making, const struct kindred *kindred,
                                struct beginning *ret)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < making->ledger->kin_count; i++) {
        const struct ttm_evidence *e = &kindred[i].evidence;
        const bool is_loop = e->visits >= TTM_LOOP_VISITS;
        if (!kindred[i].is_known || e->region >= TTM_REGION_CB || e->is_program || e->visits == 0)
            continue;
        ret[n++] =
            (struct beginning){.visit = e->first_visit, .loop = is_loop ? e->first_visit : 0};
    }
    qsort(ret, n, sizeof(ret[0]), by_visit);
    for (uint32_t i = 1; i < n; i++) {
        if (ret[i].loop == 0)
            ret[i].loop = ret[i - 1].loop;
    }
    return n;
}

/* The last one up to a visit. */
static struct beginning last_beginning(const struct beginning *list, uint32_t count, uint64_t visit)
{
    uint32_t low = 0, high = count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (list[middle].visit <= visit)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? list[low - 1] : (struct beginning){0};
}

/* What the session had besides, while this code came and then. */
static void add_others(const struct beginning *list, uint32_t count, struct ttm_evidence *e)
{
    const struct beginning last = last_beginning(list, count, e->all_visits);

    e->has_successor = e->last_visit < last.visit;
    e->is_followed = e->last_visit < last.loop;
}

/*
 * The last visit of the code beside 'kin' in its loop; if both are of one function, whoever
 * called it, as long as that did not make the like of 'kin' again.
 */
static uint64_t last_visit_of(const struct ttm_ledger *ledger, const struct kindred *kindred,
                              uint32_t kin, uint32_t other)
{
    const struct ttm_kin *x = &ledger->kins[kin], *y = &ledger->kins[other];
    const uint64_t own = kindred[kin].evidence.last_visit + kindred[kin].evidence.longest_gap;

    if (x->function != 0 && x->function == y->function && kindred[x->spot].spot_visit <= own)
        return kindred[y->spot].spot_visit;
    return kindred[other].evidence.last_visit;
}

/*
 * What else the last round of its loop did, from its end back, until it meets code that went on
 * when this one came no more. If nothing gave back in between, or nothing new began after it, that
 * is the same loop, which needed this code no longer, as when a cache is full. Else it may be what
 * many loops have in common, as a fixture of tests.
 */
static void add_round(const struct ttm_ledger *ledger, struct kindred *kindred, uint32_t kin)
{
    struct ttm_evidence *e = &kindred[kin].evidence;
    uint32_t at = ledger->kins[kin].before;
    bool has_worked = false;

    for (uint32_t i = 0; i < ledger->kin_count && at != 0 && at != kin + 1; i++) {
        const struct ttm_evidence *other = &kindred[at - 1].evidence;
        if (!kindred[at - 1].is_known || other->last_visit + e->longest_gap < e->last_visit)
            return;
        if (last_visit_of(ledger, kindred, kin, at - 1) > e->last_visit + e->longest_gap) {
            e->has_returned = !has_worked || !e->has_successor;
            return;
        }
        has_worked |= other->frees > other->remaining;
        e->is_fed |= other->is_creation;
        e->is_computing |= !other->is_creation && !other->is_conversion;
        at = ledger->kins[at - 1].before;
    }
}

/* ---- what happens beside ---- */

/* Code of one kind, by its first visit; 'last' is the last visit of any up to this one. */
struct span {
    uint64_t first;
    uint64_t last;
};

struct spans {
    struct span *list;
    uint32_t count;
};

/* What code may do beside other code that loads. */
struct doings {
    struct spans computes;
    struct spans converts;
    struct spans frees;
};

/* By an operation, or by a program of one that is not known: nobody needs one to load. */
static bool computes(const struct ttm_evidence *e)
{
    const bool is_part = e->is_program || e->region >= TTM_REGION_CB;

    return !e->is_device_open && !e->is_creation && !e->is_conversion &&
           (is_part || !e->is_unknown);
}

/* On the device: to_device brings data there, and frees nothing. */
static bool converts(const struct ttm_evidence *e)
{
    return e->is_conversion && !e->is_creation && e->region < TTM_REGION_CB;
}

/*
 * It was given back again and again, and much more often than kept: an operation that makes a
 * tensor in a few steps frees what it made on the way.
 */
static bool comes_and_goes(const struct ttm_evidence *e)
{
    const uint64_t frees = e->frees - e->late;

    return e->region < TTM_REGION_CB && frees >= TTM_LOOP_VISITS && frees > 3 * e->remaining;
}

static int by_first(const void *a, const void *b)
{
    return compare_numbers(((const struct span *)a)->first, ((const struct span *)b)->first);
}

/* Returns 0 or -ENOMEM; 'ret' is to be freed in either case. */
static int find_spans(const struct kindred *kindred, uint32_t count,
                      bool (*does)(const struct ttm_evidence *e), struct spans *ret)
{
    *ret = (struct spans){.list = malloc((count + 1) * sizeof(ret->list[0]))};
    if (!ret->list)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        const struct ttm_evidence *e = &kindred[i].evidence;
        if (kindred[i].is_known && e->visits > 0 && does(e))
            ret->list[ret->count++] = (struct span){e->first_visit, e->last_visit};
    }
    qsort(ret->list, ret->count, sizeof(ret->list[0]), by_first);
    for (uint32_t i = 1; i < ret->count; i++) {
        if (ret->list[i].last < ret->list[i - 1].last)
            ret->list[i].last = ret->list[i - 1].last;
    }
    return 0;
}

/* Whether any of them was visited between the first visit of this code and its last. */
static bool is_any_beside(const struct spans *spans, const struct ttm_evidence *e)
{
    uint32_t low = 0, high = spans->count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (spans->list[middle].first < e->last_visit)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && spans->list[low - 1].last > e->first_visit;
}

/* Something was given back meanwhile that is not what a conversion began with. */
static bool is_freed_beside(const struct doings *doings, const struct ttm_evidence *e)
{
    /* Without operations nothing is made on the way to something else. */
    if (e->is_unknown && (e->work >= TTM_LOOP_VISITS || e->frees - e->late >= TTM_LOOP_VISITS))
        return true;
    if (converts(e) || is_any_beside(&doings->converts, e))
        return false;
    return comes_and_goes(e) || is_any_beside(&doings->frees, e);
}

/*
 * Whether the program did nothing but load while this code came: no computation, nothing that
 * came and went, no marks or contexts that tell rounds apart. After a mark where loading is over
 * it is never so.
 */
static bool is_alone(const struct ttm_ledger *ledger, const struct doings *doings,
                     const struct kindred *kindred, uint32_t kin)
{
    const struct ttm_evidence *e = &kindred[kin].evidence;

    if (ledger->is_judging || computes(e) || e->is_program || e->region >= TTM_REGION_CB)
        return false;
    return ledger->kins[kin].separated + 1 < TTM_LOOP_VISITS &&
           !is_any_beside(&doings->computes, e) && !is_freed_beside(doings, e);
}

static void free_doings(const struct doings *doings)
{
    free(doings->computes.list);
    free(doings->converts.list);
    free(doings->frees.list);
}

/* Returns 0 or -ENOMEM. */
static int add_company(const struct making *making, struct kindred *kindred)
{
    const uint32_t count = making->ledger->kin_count;
    struct doings doings = {0};
    int r = find_spans(kindred, count, computes, &doings.computes);

    if (r == 0)
        r = find_spans(kindred, count, converts, &doings.converts);
    if (r == 0)
        r = find_spans(kindred, count, comes_and_goes, &doings.frees);
    for (uint32_t i = 0; r == 0 && i < count; i++)
        kindred[i].evidence.is_alone = is_alone(making->ledger, &doings, kindred, i);
    free_doings(&doings);
    return r;
}

/* ---- verdicts ---- */

static bool is_early(const struct making *making, uint32_t kin)
{
    const struct ttm_ledger *ledger = making->ledger;

    return making->process->is_unjudged || ledger->sessions[ledger->kins[kin].session].is_early;
}

static void judge_kindred(const struct making *making, const struct beginning *beginnings,
                          uint32_t beginning_count, struct kindred *kindred)
{
    const uint32_t kin_count = making->ledger->kin_count;

    for (uint32_t i = 0; i < kin_count; i++) {
        struct kindred *spot = &kindred[making->ledger->kins[i].spot];
        if (kindred[i].evidence.last_visit > spot->spot_visit)
            spot->spot_visit = kindred[i].evidence.last_visit;
    }
    for (uint32_t i = 0; i < kin_count; i++) {
        kindred[i].evidence.remaining_births = &kindred[i].births;
        add_others(beginnings, beginning_count, &kindred[i].evidence);
        add_round(making->ledger, kindred, i);
        if (!kindred[i].is_known)
            continue;
        ttm_classify(&kindred[i].evidence, &kindred[i].verdict);
        if (is_early(making, i))
            ttm_verdict_clear(&kindred[i].evidence, &kindred[i].verdict);
    }
}

/* Those in which something remained of an origin, but for what was there before the judgement. */
static uint32_t count_sessions(const struct ttm_ledger *ledger, const struct named *first,
                               uint32_t count)
{
    uint32_t sessions = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct ttm_cell *cell = first[i].cell;
        uint32_t k = 0;
        if (ledger->sessions[cell->session].is_early)
            continue;
        while (k < i && first[k].cell->session != cell->session)
            k++;
        sessions += k == i && cell->remaining.held.count > 0; /* the largest first */
    }
    return sessions;
}

/* The evidence is that of one session; the others may have been the like. */
static void tell_session(uint32_t sessions, bool are_alike, struct ttm_verdict *verdict)
{
    const size_t length = strlen(verdict->why);

    if (sessions > 1)
        (void)snprintf(verdict->why + length, sizeof(verdict->why) - length,
                       are_alike ? "; the like in all %u sessions of the device"
                                 : ", in one of %u sessions of the device",
                       sessions);
}

/*
 * The verdict of an origin from those of its cells, largest first: a leak of one session is one,
 * and else the largest has the word. 'stays' has room for each.
 */
static void give_verdict(const struct ttm_ledger *ledger, const struct kindred *kindred,
                         const struct named *first, uint32_t count, struct ttm_report_stay *stays,
                         struct ttm_report_origin *origin)
{
    const struct ttm_verdict *word = &kindred[first->cell->kin].verdict;

    for (uint32_t i = 0; i < count; i++) {
        const struct ttm_verdict *verdict = &kindred[first[i].cell->kin].verdict;
        if (!word->is_suspect && verdict->is_suspect && first[i].cell->remaining.held.count > 0)
            word = verdict;
    }
    bool are_alike = true;
    origin->verdict = *word;
    origin->stays = stays;
    for (uint32_t i = 0; i < count; i++) {
        const struct ttm_verdict *verdict = &kindred[first[i].cell->kin].verdict;
        if (first[i].cell->remaining.held.count == 0)
            continue;
        if (verdict->class != word->class || verdict->is_suspect != word->is_suspect) {
            are_alike = false;
            continue;
        }
        const struct ttm_held *held = &first[i].cell->remaining.held;
        stays[origin->stay_count++] =
            (struct ttm_report_stay){.session = first[i].cell->session, .held = *held};
        ttm_held_add(&origin->judged, held);
    }
    /* Nobody is suspected for what is not there. */
    if (origin->remaining.count == 0)
        origin->verdict.is_suspect = false;
    if (origin->verdict.is_suspect)
        ttm_keepers_advise(&origin->keepers, origin->verdict.advice);
    tell_session(count_sessions(ledger, first, count), are_alike, &origin->verdict);
}

static int give_verdicts(const struct making *making, const struct kindred *kindred, uint32_t count)
{
    struct ttm_report_stay *stays = ttm_arena_take(&making->report->arena, count, sizeof(stays[0]));

    if (!stays)
        return -ENOMEM;
    for (uint32_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && making->named[next].origin == making->named[i].origin;)
            next++;
        give_verdict(making->ledger, kindred, &making->named[i], next - i, stays + i,
                     &making->process->origins[making->named[i].origin]);
    }
    return 0;
}

int ttm_report_classify(struct making *making, uint32_t count)
{
    const uint32_t kin_count = making->ledger->kin_count;
    struct kindred *kindred = calloc(kin_count + 1, sizeof(kindred[0]));
    struct beginning *beginnings = malloc((kin_count + 1) * sizeof(beginnings[0]));
    int r = kindred && beginnings ? 0 : -ENOMEM;

    for (uint32_t i = 0; r == 0 && i < count; i++)
        add_kindred(making, &making->named[i], &kindred[making->named[i].cell->kin]);
    for (uint32_t i = 0; r == 0 && i < count; i++)
        add_late(making->named[i].cell, &kindred[making->named[i].cell->kin].evidence);
    if (r == 0)
        r = add_threads(making, count, kindred);
    if (r == 0)
        r = add_company(making, kindred);
    if (r == 0) {
        const uint32_t n = list_beginnings(making, kindred, beginnings);
        judge_kindred(making, beginnings, n, kindred);
        r = give_verdicts(making, kindred, count);
    }
    free(beginnings);
    free(kindred);
    return r;
}
