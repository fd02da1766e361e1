/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/extents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void ttm_extents_init(struct ttm_extents *extents)
{
    *extents = (struct ttm_extents){0};
}

void ttm_extents_done(struct ttm_extents *extents)
{
    for (uint32_t i = 0; i < extents->count; i++)
        free(extents->leaves[i]);
    free(extents->leaves);
    free(extents->firsts);
    *extents = (struct ttm_extents){0};
}

/*
 * Both searches halve without a branch on what they find: addresses come in no order
 * that a processor could foresee, and a wrong guess costs more than the whole step.
 */

/* The leaf in which 'start' belongs: the last that begins at or before it, or the first. */
static uint32_t leaf_of(const struct ttm_extents *extents, uint64_t start)
{
    uint32_t low = 0;

    for (uint32_t n = extents->count; n > 1; n -= n / 2)
        low += n / 2 & (0u - (extents->firsts[low + n / 2] <= start));
    return low;
}

/* The first place in the leaf whose extent begins at or after 'start'. */
static uint32_t place_of(const struct ttm_extents_leaf *leaf, uint64_t start)
{
    uint32_t low = 0, n = leaf->count;

    if (n == 0)
        return 0;
    for (; n > 1; n -= n / 2)
        low += n / 2 & (0u - (leaf->extents[low + n / 2 - 1].start < start));
    return low + (leaf->extents[low].start < start);
}

static int make_room(struct ttm_extents *extents)
{
    if (extents->count < extents->room)
        return 0;
    const uint32_t room = extents->room ? extents->room * 2 : 8;
    struct ttm_extents_leaf **leaves = realloc(extents->leaves, room * sizeof(void *));
    if (!leaves)
        return -ENOMEM;
    extents->leaves = leaves;
    uint64_t *firsts = realloc(extents->firsts, room * sizeof(firsts[0]));
    if (!firsts)
        return -ENOMEM;
    extents->firsts = firsts;
    extents->room = room;
    return 0;
}

static int insert_leaf(struct ttm_extents *extents, uint32_t at)
{
    struct ttm_extents_leaf *leaf = make_room(extents) < 0 ? NULL : calloc(1, sizeof(*leaf));

    if (!leaf)
        return -ENOMEM;
    memmove(extents->leaves + at + 1, extents->leaves + at, (extents->count - at) * sizeof(void *));
    memmove(extents->firsts + at + 1, extents->firsts + at,
            (extents->count - at) * sizeof(extents->firsts[0]));
    extents->leaves[at] = leaf;
    extents->count++;
    return 0;
}

static void remove_leaf(struct ttm_extents *extents, uint32_t at)
{
    free(extents->leaves[at]);
    extents->count--;
    memmove(extents->leaves + at, extents->leaves + at + 1, (extents->count - at) * sizeof(void *));
    memmove(extents->firsts + at, extents->firsts + at + 1,
            (extents->count - at) * sizeof(extents->firsts[0]));
}

static int split_leaf(struct ttm_extents *extents, uint32_t at)
{
    const int r = insert_leaf(extents, at + 1);

    if (r < 0)
        return r;
    struct ttm_extents_leaf *low = extents->leaves[at], *high = extents->leaves[at + 1];
    high->count = low->count / 2;
    low->count -= high->count;
    memcpy(high->extents, low->extents + low->count, high->count * sizeof(high->extents[0]));
    extents->firsts[at + 1] = high->extents[0].start;
    return 0;
}

/* The neighbours of a place: as none overlap, only they can lie on what comes between them. */
static const struct ttm_extent *find_overlap(const struct ttm_extents *extents, uint32_t at,
                                             uint32_t place, uint64_t start, uint64_t end)
{
    const struct ttm_extents_leaf *leaf = extents->leaves[at];
    const struct ttm_extent *before = place > 0 ? &leaf->extents[place - 1] : NULL;
    const struct ttm_extent *after = place < leaf->count ? &leaf->extents[place] : NULL;

    if (!before && at > 0)
        before = &extents->leaves[at - 1]->extents[extents->leaves[at - 1]->count - 1];
    if (!after && at + 1 < extents->count)
        after = &extents->leaves[at + 1]->extents[0];
    return before && before->end > start ? before : after && after->start < end ? after : NULL;
}

int ttm_extents_add(struct ttm_extents *extents, uint64_t start, uint64_t end,
                    struct ttm_extent *ret_other)
{
    if (extents->count == 0 && insert_leaf(extents, 0) < 0)
        return -ENOMEM;
    uint32_t at = leaf_of(extents, start);
    uint32_t place = place_of(extents->leaves[at], start);
    const struct ttm_extent *other = find_overlap(extents, at, place, start, end);
    if (other) {
        *ret_other = *other;
        return 1;
    }
    if (extents->leaves[at]->count == TTM_EXTENTS_LEAF) {
        if (split_leaf(extents, at) < 0)
            return -ENOMEM;
        at = leaf_of(extents, start);
        place = place_of(extents->leaves[at], start);
    }
    struct ttm_extents_leaf *leaf = extents->leaves[at];
    memmove(leaf->extents + place + 1, leaf->extents + place,
            (leaf->count - place) * sizeof(leaf->extents[0]));
    leaf->extents[place] = (struct ttm_extent){start, end};
    leaf->count++;
    extents->firsts[at] = leaf->extents[0].start;
    return 0;
}

bool ttm_extents_remove(struct ttm_extents *extents, uint64_t start, uint64_t end)
{
    if (extents->count == 0)
        return false;
    const uint32_t at = leaf_of(extents, start);
    struct ttm_extents_leaf *leaf = extents->leaves[at];
    const uint32_t place = place_of(leaf, start);
    if (place == leaf->count || leaf->extents[place].start != start ||
        leaf->extents[place].end != end)
        return false;
    leaf->count--;
    memmove(leaf->extents + place, leaf->extents + place + 1,
            (leaf->count - place) * sizeof(leaf->extents[0]));
    if (leaf->count == 0)
        remove_leaf(extents, at);
    else
        extents->firsts[at] = leaf->extents[0].start;
    return true;
}
