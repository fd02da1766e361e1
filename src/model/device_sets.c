/* SPDX-License-Identifier: Apache-2.0 */
#include "model/device_sets.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define WORDS (TTM_DEVICE_COUNT / 64)
#define CHAINS 4096u /* a power of two; four sets each when the table is full */

struct ttm_device_set_slot {
    struct ttm_device_set set; /* count 0: not in use */
    uint64_t hash;
    uint32_t refs;
    uint32_t next; /* slot + 1, of the same chain or of the free ones; 0: the last */
};

void ttm_device_sets_init(struct ttm_device_sets *sets, uint64_t seed)
{
    *sets = (struct ttm_device_sets){.seed = seed};
    for (uint16_t i = 0; i < TTM_DEVICE_COUNT; i++)
        sets->single[i] = i;
}

void ttm_device_sets_done(struct ttm_device_sets *sets)
{
    for (uint32_t i = 0; i < sets->slot_count; i++)
        free((void *)sets->slots[i].set.devices);
    free(sets->slots);
    free(sets->index);
    ttm_device_sets_init(sets, sets->seed);
}

struct ttm_device_set ttm_device_sets_get(const struct ttm_device_sets *sets, uint32_t number)
{
    if (number < TTM_DEVICE_COUNT)
        return (struct ttm_device_set){.devices = &sets->single[number], .count = 1};
    if (number - TTM_DEVICE_COUNT < sets->slot_count)
        return sets->slots[number - TTM_DEVICE_COUNT].set;
    return (struct ttm_device_set){0};
}

/* Reads devices as a bit for each. Returns how many there are, or -EINVAL. */
static int read_devices(const uint16_t *devices, uint32_t count, uint64_t ret_bits[WORDS])
{
    int n = 0;

    memset(ret_bits, 0, WORDS * sizeof(ret_bits[0]));
    for (uint32_t i = 0; i < count; i++) {
        if (devices[i] >= TTM_DEVICE_COUNT)
            return -EINVAL;
        ret_bits[devices[i] / 64] |= UINT64_C(1) << (devices[i] % 64);
    }
    for (uint32_t i = 0; i < WORDS; i++)
        n += __builtin_popcountll(ret_bits[i]);
    return n > 0 ? n : -EINVAL;
}

static void write_devices(const uint64_t bits[WORDS], uint16_t *ret)
{
    for (uint32_t i = 0; i < WORDS; i++) {
        for (uint64_t word = bits[i]; word != 0; word &= word - 1)
            *ret++ = (uint16_t)(i * 64 + (uint32_t)__builtin_ctzll(word));
    }
}

static uint64_t hash_of(uint64_t seed, const uint64_t bits[WORDS])
{
    uint64_t hash = seed;

    for (uint32_t i = 0; i < WORDS; i++)
        hash = ttm_hash_u64(hash ^ bits[i]) + i;
    return hash;
}

/* The set of these devices, or NULL. */
static struct ttm_device_set_slot *find(const struct ttm_device_sets *sets, uint64_t hash,
                                        const uint16_t *devices, uint16_t count)
{
    uint32_t at = sets->index ? sets->index[hash % CHAINS] : 0;

    while (at != 0) {
        struct ttm_device_set_slot *slot = &sets->slots[at - 1];
        if (slot->hash == hash && slot->set.count == count &&
            memcmp(slot->set.devices, devices, count * sizeof(devices[0])) == 0)
            return slot;
        at = slot->next;
    }
    return NULL;
}

/* Makes sure that there is a free slot. Returns 0, -ENOSPC or -ENOMEM. */
static int make_room(struct ttm_device_sets *sets)
{
    if (sets->free_slot != 0)
        return 0;
    if (sets->slot_count == TTM_DEVICE_SETS_MAX)
        return -ENOSPC;
    if (!sets->index)
        sets->index = calloc(CHAINS, sizeof(sets->index[0]));
    if (!sets->index)
        return -ENOMEM;
    if (sets->slot_count == sets->slot_room) {
        const uint32_t room = sets->slot_room ? sets->slot_room * 2 : 16;
        struct ttm_device_set_slot *grown = realloc(sets->slots, room * sizeof(grown[0]));
        if (!grown)
            return -ENOMEM;
        sets->slots = grown;
        sets->slot_room = room;
    }
    sets->slots[sets->slot_count] = (struct ttm_device_set_slot){0};
    sets->free_slot = ++sets->slot_count;
    return 0;
}

/* Adds a set that is not there yet, with one reference. */
static int add(struct ttm_device_sets *sets, uint64_t hash, const uint16_t *devices, uint16_t count,
               uint32_t *ret_number)
{
    const int r = make_room(sets);
    if (r < 0)
        return r;
    uint16_t *copy = malloc(count * sizeof(copy[0]));
    if (!copy)
        return -ENOMEM;
    memcpy(copy, devices, count * sizeof(copy[0]));

    const uint32_t at = sets->free_slot;
    struct ttm_device_set_slot *slot = &sets->slots[at - 1];
    sets->free_slot = slot->next;
    *slot = (struct ttm_device_set_slot){
        .set = {.devices = copy, .count = count},
        .hash = hash,
        .refs = 1,
        .next = sets->index[hash % CHAINS],
    };
    sets->index[hash % CHAINS] = at;
    sets->count++;
    *ret_number = TTM_DEVICE_COUNT + at - 1;
    return 0;
}

int ttm_device_sets_intern(struct ttm_device_sets *sets, const uint16_t *devices, uint32_t count,
                           uint32_t *ret_number)
{
    uint64_t bits[WORDS];
    uint16_t sorted[TTM_DEVICE_COUNT];

    const int n = read_devices(devices, count, bits);
    if (n < 0)
        return n;
    write_devices(bits, sorted);
    if (n == 1) {
        *ret_number = sorted[0];
        return 0;
    }
    const uint64_t hash = hash_of(sets->seed, bits);
    struct ttm_device_set_slot *known = find(sets, hash, sorted, (uint16_t)n);
    if (!known)
        return add(sets, hash, sorted, (uint16_t)n, ret_number);
    known->refs++;
    *ret_number = TTM_DEVICE_COUNT + (uint32_t)(known - sets->slots);
    return 0;
}

void ttm_device_sets_unref(struct ttm_device_sets *sets, uint32_t number)
{
    if (number < TTM_DEVICE_COUNT)
        return;
    const uint32_t at = number - TTM_DEVICE_COUNT + 1;
    assert(at <= sets->slot_count && sets->slots[at - 1].refs > 0);
    struct ttm_device_set_slot *slot = &sets->slots[at - 1];
    if (--slot->refs > 0)
        return;

    uint32_t *link = &sets->index[slot->hash % CHAINS];
    while (*link != at)
        link = &sets->slots[*link - 1].next;
    *link = slot->next;
    free((void *)slot->set.devices);
    *slot = (struct ttm_device_set_slot){.next = sets->free_slot};
    sets->free_slot = at;
    sets->count--;
}
