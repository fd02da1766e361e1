/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/keepers.h"

#include <errno.h>
#include <stdio.h>

static bool read_note(const struct ttm_noted *said, struct ttm_keepers_note *ret)
{
    return said->kind == TTM_NOTE_KEEPERS &&
           ttm_keepers_note_decode(said->bytes, said->length, ret) == 0;
}

int ttm_keepers_index_init(struct ttm_keepers_index *index, const struct ttm_notebook *notes,
                           uint64_t seed)
{
    struct ttm_keepers_note note;
    uint32_t known;

    index->notes = notes;
    ttm_u64_map_init(&index->places, seed);
    /* From the end: the last one holds, as it is the nearest to the end of the program. */
    for (uint32_t i = notes->count; i-- > 0;) {
        if (read_note(&notes->notes[i], &note) &&
            !ttm_u64_map_find(&index->places, note.origin, &known) &&
            ttm_u64_map_add(&index->places, note.origin, i) < 0)
            return -ENOMEM;
    }
    return 0;
}

void ttm_keepers_index_done(struct ttm_keepers_index *index)
{
    ttm_u64_map_done(&index->places);
}

void ttm_keepers_find(const struct ttm_keepers_index *index, uint32_t origin,
                      struct ttm_arena *arena, struct ttm_keepers *ret)
{
    struct ttm_keepers_note note;
    uint32_t place;

    if (!ttm_u64_map_find(&index->places, origin, &place) ||
        !read_note(&index->notes->notes[place], &note))
        return;
    const char **texts = ttm_arena_take(arena, note.count, sizeof(texts[0]));
    uint32_t *roots = ttm_arena_take(arena, note.count, sizeof(roots[0]));
    if (!texts || !roots)
        return;
    for (uint8_t i = 0; i < note.count; i++) {
        texts[i] = ttm_arena_text(arena, note.keepers[i].bytes, note.keepers[i].length);
        roots[i] = note.roots[i];
    }
    *ret = (struct ttm_keepers){
        .is_known = true,
        .is_unfinished = note.search != TTM_SEARCH_DONE,
        .cause = note.cause,
        .round = note.round,
        .count = note.count,
        .texts = texts,
        .roots = roots,
    };
}

const char *ttm_keepers_search_name(const struct ttm_keepers *keepers)
{
    if (!keepers->is_known)
        return "not_asked";
    return keepers->is_unfinished ? "unfinished" : "done";
}

void ttm_keepers_advise(const struct ttm_keepers *keepers, char advice[TTM_VERDICT_TEXT])
{
    static const char *const words[TTM_CAUSE_COUNT] = {
        [TTM_CAUSE_CONTAINER] = "what outlives the step keeps these tensors: bound it, or "
                                "ttnn.deallocate() the old ones",
        [TTM_CAUSE_CYCLE] = "objects that refer to each other wait for the collector: break the "
                            "cycle, or gc.collect() between steps",
        [TTM_CAUSE_TRACEBACK] = "an exception keeps the variables of where it was raised: let go "
                                "of it, or ttnn.deallocate() in a finally",
        [TTM_CAUSE_CLOSURE] = "a function keeps the variables it uses: drop the function, or pass "
                              "it the tensor as an argument",
        [TTM_CAUSE_FRAME] = "a function or generator that has not ended keeps its variables: end "
                            "it, or del them",
    };

    if (keepers->cause < TTM_CAUSE_COUNT && words[keepers->cause])
        (void)snprintf(advice, TTM_VERDICT_TEXT, "%s", words[keepers->cause]);
}
