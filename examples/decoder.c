/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A decode loop, acted out: weights and caches stay, activations come and go, and
 * one line forgets a buffer with every token. There is no device behind it.
 *
 *   tt-mem run ./decoder
 *   tt-mem report
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <ttmem/ttmem.h>

#define KIB 1024ull
#define MIB (1024 * KIB)
#define LAYERS 16
#define TOKENS 60
#define TOKEN_MS 25

static const uint32_t banks[] = {[TTMEM_DRAM] = 12, [TTMEM_L1] = 64};
static uint64_t next_address[] = {[TTMEM_DRAM] = 0x100040, [TTMEM_L1] = 0x1a000};
static uint64_t next_id = 1;

/* What an allocator would hand out, if there was a device: the same address in each bank. */
static struct ttmem_allocation place(uint8_t region, uint64_t bytes)
{
    const struct ttmem_allocation allocation = {
        .id = next_id++,
        .address = next_address[region],
        .bytes = bytes,
        .banks = banks[region],
        .region = region,
    };

    if (region == TTMEM_DRAM) /* in L1 there is but one at a time */
        next_address[region] += bytes / banks[region];
    return allocation;
}

static void open_device(void)
{
    struct ttmem_device device = {.arch = 2, .core_count = 64, .board = "n150"};

    device.bank_bytes[TTMEM_DRAM] = 1072693184;
    device.bank_count[TTMEM_DRAM] = 12;
    device.bank_bytes[TTMEM_L1] = 1393312;
    device.bank_count[TTMEM_L1] = 64;
    ttmem_device_open(&device);
}

static void load_weights(void)
{
    ttmem_context_push("load");
    for (int layer = 0; layer < LAYERS; layer++) {
        char name[32];
        const struct ttmem_allocation weights = place(TTMEM_DRAM, 24 * MIB);
        (void)snprintf(name, sizeof(name), "layer_%d_weights", layer);
        ttmem_alloc(&weights);
        ttmem_name(0, TTMEM_DRAM, weights.id, name, NULL);
    }
    ttmem_context_pop();
    ttmem_mark("weights loaded");
}

static void cache_scores(void)
{
    const struct ttmem_allocation scores = place(TTMEM_DRAM, 132 * KIB);

    ttmem_alloc(&scores); /* nobody keeps its id: it can never be freed */
}

static void decode_token(void)
{
    const struct timespec pause = {.tv_nsec = TOKEN_MS * 1000000L};

    for (int layer = 0; layer < LAYERS; layer++) {
        const struct ttmem_allocation hidden = place(TTMEM_L1, 2 * MIB);
        ttmem_alloc(&hidden);
        ttmem_free(0, TTMEM_L1, hidden.id);
    }
    cache_scores();
    (void)nanosleep(&pause, NULL);
}

int main(void)
{
    open_device();
    load_weights();
    ttmem_context_push("decode");
    for (int token = 0; token < TOKENS; token++)
        decode_token();
    ttmem_context_pop();
    return 0;
}
