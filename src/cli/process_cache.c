/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process_cache.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/turn.h"

#define FRESH_NS (5 * TTM_NS_PER_S)
#define PLACES 10 /* so many parts of those that came together are looked at one by one */
#define SCAN_NS (10 * TTM_NS_PER_S)

void ttm_process_cache_turn(struct ttm_process_cache *cache, uint64_t now_ns)
{
    size_t kept = 0;

    for (size_t i = 0; i < cache->count; i++) {
        if (cache->processes[i].wanted_ns == cache->now_ns)
            cache->processes[kept++] = cache->processes[i];
    }
    cache->count = kept;
    cache->now_ns = now_ns;
}

void ttm_process_cache_done(struct ttm_process_cache *cache)
{
    free(cache->processes);
    free(cache->holders);
    *cache = (struct ttm_process_cache){0};
}

/* They are mostly asked for in the order of the last time. */
static struct ttm_cached_process *find(struct ttm_process_cache *cache, int32_t pid)
{
    for (size_t i = 0; i < cache->count; i++) {
        const size_t at = (cache->next + i) % cache->count;
        if (cache->processes[at].process.pid == pid) {
            cache->next = at + 1;
            return &cache->processes[at];
        }
    }
    return NULL;
}

static struct ttm_cached_process *add(struct ttm_process_cache *cache)
{
    if (cache->count == cache->room) {
        const size_t room = cache->room ? cache->room * 2 : 16;
        void *grown = realloc(cache->processes, room * sizeof(cache->processes[0]));
        if (!grown)
            return NULL;
        cache->processes = grown;
        cache->room = room;
    }
    return &cache->processes[cache->count++];
}

/* Whether the process of that number is still the one that was read. */
static bool is_same(const struct ttm_cached_process *cached, const char *root)
{
    uint64_t start_ns;

    return cached->process.start_ns != 0 &&
           ttm_process_start_ns(root, cached->process.pid, &start_ns) == 0 &&
           start_ns == cached->process.start_ns;
}

int ttm_process_cache_read(struct ttm_process_cache *cache, const char *root, int32_t pid,
                           struct ttm_process *ret)
{
    struct ttm_cached_process *cached = cache ? find(cache, pid) : NULL;

    if (cached && (cache->now_ns < cached->due_ns || is_same(cached, root))) {
        if (cache->now_ns >= cached->due_ns)
            cached->due_ns = ttm_turn_next(cached->due_ns, FRESH_NS, cache->now_ns);
        cached->wanted_ns = cache->now_ns;
        *ret = cached->process;
        return cached->result;
    }
    const int r = ttm_process_read(root, pid, ret);
    if (r == -ESRCH || !cache)
        return r;
    if (!cached)
        cached = add(cache);
    if (cached) /* without memory it is read again the next time */
        *cached = (struct ttm_cached_process){
            .process = *ret,
            .result = r,
            .due_ns = ttm_turn_first(cache->now_ns, FRESH_NS, cache->added++, PLACES),
            .wanted_ns = cache->now_ns,
        };
    return r;
}

static void keep_holder(void *context, int32_t pid, unsigned number)
{
    struct ttm_process_cache *cache = context;

    if (cache->holder_count == cache->holder_room) {
        const size_t room = cache->holder_room ? cache->holder_room * 2 : 16;
        void *grown = realloc(cache->holders, room * sizeof(cache->holders[0]));
        if (!grown)
            return;
        cache->holders = grown;
        cache->holder_room = room;
    }
    cache->holders[cache->holder_count++] = (struct ttm_cached_holder){pid, number};
}

size_t ttm_process_cache_scan(struct ttm_process_cache *cache, const char *root, ttm_holder_fn fn,
                              void *context)
{
    if (!cache)
        return ttm_process_scan(root, fn, context);
    if (cache->scan_ns == 0 || cache->now_ns - cache->scan_ns >= SCAN_NS) {
        cache->holder_count = 0;
        cache->hidden_count = ttm_process_scan(root, keep_holder, cache);
        cache->scan_ns = cache->now_ns;
    }
    for (size_t i = 0; i < cache->holder_count; i++)
        fn(context, cache->holders[i].pid, cache->holders[i].number);
    return cache->hidden_count;
}
