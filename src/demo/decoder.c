/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/decoder.h"

#include <stdlib.h>
#include <time.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

#include "client/switch.h"

#define KIB 1024ull
#define MIB (1024 * KIB)

#define LAYERS 16
#define WEIGHTS_PER_LAYER 4
#define PROGRAMS 6
#define CORES 64
#define DRAM_BANKS 12u
#define CB_BYTES (48 * KIB)       /* on each core */
#define SCRATCH_BYTES (132 * KIB) /* the one that is forgotten */

/* Programs of the fabric and the dispatcher are there from the start. */
enum { PROGRAM_FABRIC = 0xfab, PROGRAM_DISPATCH = 0xd15, PROGRAM_FIRST = 1 };

/*
 * An address is that in each bank, over all of which a buffer is spread, as TT-Metal has it. In DRAM
 * they only grow, which a real allocator's would not; in L1 they begin anew after a few layers, when
 * what lay there has long been freed.
 */
#define DRAM_FIRST 0x100040
#define L1_FIRST 0x80000
#define L1_LAST (L1_FIRST + 512 * KIB)
#define ALIGNMENT 64

struct decoder {
    const struct ttm_decoder_options *options;
    uint64_t next_id;
    uint64_t next_address[TTMEM_REGIONS];
};

/* An n300's chip as TT-Metal describes it. */
static void open_device(const struct decoder *decoder)
{
    const struct ttmem_device device = {
        .id = decoder->options->device,
        .arch = 2,
        .core_count = CORES,
        .bank_bytes = {[TTMEM_DRAM] = 1072693184, [TTMEM_L1] = 1393312},
        .bank_count = {[TTMEM_DRAM] = DRAM_BANKS, [TTMEM_L1] = CORES},
        .board = "n300",
    };

    ttmem_device_open(&device);
}

static uint64_t alloc_buffer(struct decoder *decoder, uint8_t region, uint64_t bytes)
{
    const uint16_t banks = region == TTMEM_DRAM ? DRAM_BANKS : CORES;
    const uint64_t bank_bytes = (bytes + banks - 1) / banks;
    const struct ttmem_allocation allocation = {
        .id = decoder->next_id++,
        .address = decoder->next_address[region],
        .bytes = bytes,
        .devices = decoder->options->device,
        .banks = banks,
        .region = region,
    };

    decoder->next_address[region] += (bank_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (region == TTMEM_L1 && decoder->next_address[region] >= L1_LAST)
        decoder->next_address[region] = L1_FIRST;
    ttmem_alloc(&allocation);
    return allocation.id;
}

static void load_kernel(const struct decoder *decoder, uint64_t program, uint8_t kind,
                        uint64_t bytes)
{
    const struct ttmem_allocation kernel = {
        .program = program,
        .bytes = bytes,
        .devices = decoder->options->device,
        .region = TTMEM_KERNEL,
        .kind = kind,
    };

    ttmem_alloc(&kernel);
}

/* Every program plans its circular buffer at the same place, as they run one after the other. */
static void load_program(const struct decoder *decoder, uint64_t program)
{
    const struct ttmem_core_range all = {.end_x = 7, .end_y = 7};
    const struct ttmem_allocation cb = {
        .program = program,
        .address = 0x18b20,
        .bytes = CB_BYTES * CORES,
        .devices = decoder->options->device,
        .cores = ttmem_cores(&all, 1),
        .region = TTMEM_CB,
    };

    load_kernel(decoder, program, TTMEM_KERNEL_APPLICATION, (11 + program) * KIB);
    ttmem_alloc(&cb);
}

static void load_model(struct decoder *decoder, uint64_t weights[LAYERS * WEIGHTS_PER_LAYER],
                       uint64_t caches[LAYERS])
{
    ttmem_context_push("load_model");
    for (uint64_t i = 0; i < LAYERS; i++) {
        for (uint64_t w = 0; w < WEIGHTS_PER_LAYER; w++)
            weights[i * WEIGHTS_PER_LAYER + w] =
                alloc_buffer(decoder, TTMEM_DRAM, (w + 1) * 8 * MIB);
        caches[i] = alloc_buffer(decoder, TTMEM_DRAM, 32 * MIB);
        ttmem_name(0, TTMEM_DRAM, caches[i], "kv_cache", NULL);
    }
    ttmem_context_pop();
    load_kernel(decoder, PROGRAM_FABRIC, TTMEM_KERNEL_FABRIC, 112 * KIB);
    load_kernel(decoder, PROGRAM_DISPATCH, TTMEM_KERNEL_DISPATCH, 92 * KIB);
    for (uint64_t i = 0; i < PROGRAMS; i++)
        load_program(decoder, PROGRAM_FIRST + i);
    ttmem_mark("model loaded");
}

static void decode_token(struct decoder *decoder)
{
    const uint32_t ms = decoder->options->token_ms;
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    uint64_t hidden = alloc_buffer(decoder, TTMEM_L1, 2 * MIB);

    for (uint64_t layer = 0; layer < LAYERS; layer++) {
        ttmem_program_dispatch(PROGRAM_FIRST + layer % PROGRAMS, decoder->options->device);
        const uint64_t scores = alloc_buffer(decoder, TTMEM_L1, 6 * MIB);
        const uint64_t output = alloc_buffer(decoder, TTMEM_L1, 2 * MIB);
        ttmem_free(0, TTMEM_L1, scores);
        ttmem_free(0, TTMEM_L1, hidden);
        hidden = output;
        if (layer == LAYERS / 2)
            (void)nanosleep(&pause, NULL); /* so that a monitor sees a token half done */
    }
    ttmem_free(0, TTMEM_L1, hidden);
    if (decoder->options->is_leaky)
        (void)alloc_buffer(decoder, TTMEM_DRAM, SCRATCH_BYTES); /* the leak: nobody keeps the id */
}

/* Says that a stage is done and waits until the next may begin. */
static void await_word(void)
{
    char byte;

    if (write(STDOUT_FILENO, "\n", 1) == 1)
        (void)!read(STDIN_FILENO, &byte, 1);
}

void ttm_decoder_run(const struct ttm_decoder_options *options)
{
    struct decoder decoder = {
        .options = options,
        .next_id = 1,
        .next_address = {[TTMEM_DRAM] = DRAM_FIRST, [TTMEM_L1] = L1_FIRST},
    };
    uint64_t weights[LAYERS * WEIGHTS_PER_LAYER], caches[LAYERS];

    ttm_switch_begin();
    (void)ttmem_enable();
    open_device(&decoder);
    load_model(&decoder, weights, caches);
    ttmem_context_push("decode");
    for (uint32_t i = 0; i < options->tokens; i++)
        decode_token(&decoder);
    ttmem_context_pop();
    await_word();
    for (uint64_t i = 0; i < PROGRAMS; i++)
        ttmem_program_end(PROGRAM_FIRST + i);
    for (int i = 0; i < LAYERS; i++)
        ttmem_free(0, TTMEM_DRAM, caches[i]);
    for (int i = 0; i < LAYERS * WEIGHTS_PER_LAYER; i++)
        ttmem_free(0, TTMEM_DRAM, weights[i]);
    await_word();
}
