/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Origins that one object holds are joined by union and find. Two belong together when the search
 * saw the same object behind their first holders, or when the words that stand for the outermost
 * object are the same: a list of twenty exceptions is one place, whichever of them was looked at.
 */
#include "analysis/root_cause.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/seed.h"
#include "base/u64_map.h"

#define HELD_BY ", held by "

/* Beside the holder of an origin: which others it stands with. */
struct member {
    uint32_t origin;
    uint32_t parent; /* place among the members; its own: it stands for all of them */
};

struct finding {
    const struct ttm_report_process *process;
    struct member *members;
    uint32_t count;
    struct ttm_u64_map by_root; /* hash to a member */
    struct ttm_u64_map by_text;
};

/* ---- words ---- */

/* The outermost object, where it has a name that nothing else has; NULL: it has not. */
static const char *outermost(const char *text)
{
    const char *found = NULL;

    for (const char *at = strstr(text, HELD_BY); at; at = strstr(at + 1, HELD_BY))
        found = at;
    return found && !strstr(found, "…") ? found : NULL;
}

/* How much of it names the object itself, before the variable or the path to the tensor. */
static size_t head_length(const char *text)
{
    static const char *const marks[] = {": ", ", variable ", ", argument ", HELD_BY};
    size_t length = strlen(text);

    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        const char *mark = strstr(text, marks[i]);
        if (mark && (size_t)(mark - text) < length)
            length = (size_t)(mark - text);
    }
    return length;
}

/* "traceback of ValueError, held by list ERRORS in module m" */
static void put_root(const char *text, char ret[TTM_ROOT_CAUSE_TEXT])
{
    const char *tail = outermost(text);

    (void)snprintf(ret, TTM_ROOT_CAUSE_TEXT, "%.*s%s", (int)head_length(text), text,
                   tail ? tail : "");
}

/* Where one place holds several exceptions, of different kinds. */
static void put_several(uint8_t cause, const char *text, char ret[TTM_ROOT_CAUSE_TEXT])
{
    static const char *const words[TTM_CAUSE_COUNT] = {
        [TTM_CAUSE_TRACEBACK] = "tracebacks",
        [TTM_CAUSE_CLOSURE] = "closures",
        [TTM_CAUSE_FRAME] = "generators or coroutines",
    };
    const char *tail = outermost(text);

    if (tail && cause < TTM_CAUSE_COUNT && words[cause])
        (void)snprintf(ret, TTM_ROOT_CAUSE_TEXT, "%s %s", words[cause], tail + strlen(", "));
}

/* What tells the outermost object from all others; "": its words do not. */
static void put_identity(const char *text, char ret[TTM_ROOT_CAUSE_TEXT])
{
    const char *tail = outermost(text);
    const size_t length = head_length(text);

    (void)snprintf(ret, TTM_ROOT_CAUSE_TEXT, "%.*s", (int)length, text);
    if (tail)
        (void)snprintf(ret, TTM_ROOT_CAUSE_TEXT, "%s", tail);
    else if (!strstr(ret, " in module ") || strstr(ret, "…"))
        ret[0] = '\0';
}

/* ---- who stands with whom ---- */

static const struct ttm_report_origin *origin_of(const struct finding *finding, uint32_t member)
{
    return &finding->process->origins[finding->members[member].origin];
}

/* Nobody keeps an exception or a cycle for the tensors that it holds. */
static bool is_unasked(uint8_t cause)
{
    return cause == TTM_CAUSE_TRACEBACK || cause == TTM_CAUSE_CYCLE;
}

static bool is_candidate(const struct ttm_report_origin *origin)
{
    const struct ttm_keepers *keepers = &origin->keepers;

    return origin->remaining.count > 0 && keepers->count > 0 && keepers->cause != TTM_CAUSE_NONE &&
           !origin->is_suppressed && (origin->verdict.is_suspect || is_unasked(keepers->cause));
}

static uint32_t stands_for(const struct finding *finding, uint32_t member)
{
    while (finding->members[member].parent != member)
        member = finding->members[member].parent;
    return member;
}

/* With the first that had the key; what lies between both is joined too. */
static int join(struct finding *finding, struct ttm_u64_map *map, uint64_t key, uint32_t member)
{
    uint32_t other;

    if (!ttm_u64_map_find(map, key, &other))
        return ttm_u64_map_add(map, key, member);
    const uint32_t a = stands_for(finding, other), b = stands_for(finding, member);
    finding->members[a > b ? a : b].parent = a > b ? b : a;
    return 0;
}

static int join_member(struct finding *finding, uint32_t member)
{
    const struct ttm_keepers *keepers = &origin_of(finding, member)->keepers;
    const uint32_t root = keepers->roots ? keepers->roots[0] : 0;
    char identity[TTM_ROOT_CAUSE_TEXT];
    int r = 0;

    put_identity(keepers->texts[0], identity);
    if (root != 0)
        r = join(finding, &finding->by_root, ttm_hash_u64((uint64_t)keepers->round << 32 | root),
                 member);
    if (r == 0 && identity[0] != '\0')
        r = join(finding, &finding->by_text, ttm_hash_text(keepers->cause, identity), member);
    return r;
}

/* ---- causes ---- */

static bool is_same_code(const struct ttm_origin_words *a, const struct ttm_origin_words *b)
{
    const struct ttm_stack_words x = ttm_origin_users_stack(a), y = ttm_origin_users_stack(b);
    bool is_same = x.count == y.count && strcmp(a->operation, b->operation) == 0;

    for (uint32_t i = 0; is_same && i < x.count; i++)
        is_same = x.frames[i].line == y.frames[i].line &&
                  strcmp(x.frames[i].file, y.frames[i].file) == 0 &&
                  strcmp(x.frames[i].function, y.frames[i].function) == 0;
    return is_same;
}

/* Those that 'leader' stands for become a cause, if they are of several lines. */
static void add_cause(const struct finding *finding, uint32_t leader, uint32_t *used,
                      struct ttm_root_causes *ret)
{
    const struct ttm_report_origin *first = origin_of(finding, leader);
    struct ttm_root_cause *cause = &ret->list[ret->count];
    char text[TTM_ROOT_CAUSE_TEXT];
    bool is_one_line = true;

    *cause = (struct ttm_root_cause){.cause = first->keepers.cause, .first = *used};
    ttm_keepers_advise(&first->keepers, cause->advice);
    put_root(first->keepers.texts[0], cause->text);
    for (uint32_t i = leader; i < finding->count; i++) {
        const struct ttm_report_origin *origin = origin_of(finding, i);
        if (stands_for(finding, i) != leader)
            continue;
        put_root(origin->keepers.texts[0], text);
        if (strcmp(text, cause->text) != 0)
            put_several(cause->cause, origin->keepers.texts[0], cause->text);
        is_one_line &= is_same_code(&first->words, &origin->words);
        ret->origins[cause->first + cause->count++] = finding->members[i].origin;
        ttm_held_add(&cause->held, &origin->remaining);
    }
    if (is_one_line)
        return;
    *used += cause->count;
    ret->count++;
}

static int by_size(const void *a, const void *b)
{
    const struct ttm_root_cause *x = a, *y = b;

    if (x->held.footprint_bytes != y->held.footprint_bytes)
        return x->held.footprint_bytes > y->held.footprint_bytes ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static void add_causes(const struct finding *finding, struct ttm_root_causes *ret)
{
    uint32_t used = 0;

    for (uint32_t i = 0; i < finding->count; i++) {
        if (finding->members[i].parent == i)
            add_cause(finding, i, &used, ret);
    }
    qsort(ret->list, ret->count, sizeof(ret->list[0]), by_size);
    for (uint32_t i = 0; i < ret->count; i++) {
        for (uint32_t k = 0; k < ret->list[i].count; k++)
            ret->of_origin[ret->origins[ret->list[i].first + k]] = i + 1;
    }
}

int ttm_root_causes_find(const struct ttm_report_process *process, ttm_report_choose_fn choose,
                         const void *arg, struct ttm_root_causes *ret)
{
    const size_t room = (size_t)process->origin_count + 1;
    struct finding finding = {.process = process,
                              .members = malloc(room * sizeof(finding.members[0]))};
    int r;

    *ret = (struct ttm_root_causes){.list = calloc(room, sizeof(ret->list[0])),
                                    .origins = calloc(room, sizeof(ret->origins[0])),
                                    .of_origin = calloc(room, sizeof(ret->of_origin[0]))};
    ttm_u64_map_init(&finding.by_root, ttm_seed_random());
    ttm_u64_map_init(&finding.by_text, ttm_seed_random());
    r = finding.members && ret->list && ret->origins && ret->of_origin ? 0 : -ENOMEM;
    for (uint32_t i = 0; r == 0 && i < process->origin_count; i++) {
        const struct ttm_report_origin *origin = &process->origins[i];
        if (!is_candidate(origin) || (choose && !choose(arg, origin)))
            continue;
        finding.members[finding.count] = (struct member){.origin = i, .parent = finding.count};
        r = join_member(&finding, finding.count++);
    }
    if (r == 0)
        add_causes(&finding, ret);
    ttm_u64_map_done(&finding.by_text);
    ttm_u64_map_done(&finding.by_root);
    free(finding.members);
    return r;
}

void ttm_root_causes_done(struct ttm_root_causes *causes)
{
    free(causes->list);
    free(causes->origins);
    free(causes->of_origin);
    *causes = (struct ttm_root_causes){0};
}
