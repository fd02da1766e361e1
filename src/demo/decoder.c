/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/decoder.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "client/original_client.h"

#define KIB 1024ull
#define MIB (1024 * KIB)

#define LAYERS 16
#define WEIGHTS_PER_LAYER 4
#define PROGRAMS 6
#define CB_BYTES (KIB * 48 * 64)  /* 48 KiB on each of 64 cores */
#define SCRATCH_BYTES (132 * KIB) /* the one that is forgotten */

/* Addresses only grow here, which a real allocator's would not; nothing depends on it. */
struct decoder {
    struct ttm_original_client client;
    const struct ttm_decoder_options *options;
    uint64_t next_dram;
    uint64_t next_l1;
    int error; /* the first that happened */
};

static void note(struct decoder *decoder, int r)
{
    if (r < 0 && decoder->error == 0)
        decoder->error = r;
}

static uint64_t alloc_dram(struct decoder *decoder, uint64_t bytes)
{
    const uint64_t id = decoder->next_dram;

    decoder->next_dram += bytes;
    note(decoder, ttm_original_client_alloc(&decoder->client, decoder->options->device,
                                            TTM_REGION_DRAM, id, bytes));
    return id;
}

static uint64_t alloc_l1(struct decoder *decoder, uint64_t bytes)
{
    const uint64_t id = decoder->next_l1;

    decoder->next_l1 += bytes;
    note(decoder, ttm_original_client_alloc(&decoder->client, decoder->options->device,
                                            TTM_REGION_L1, id, bytes));
    return id;
}

static void free_buffer(struct decoder *decoder, uint64_t id)
{
    note(decoder, ttm_original_client_free(&decoder->client, decoder->options->device, id));
}

static void say(struct decoder *decoder, uint8_t type, uint8_t kind, uint64_t id, uint64_t bytes)
{
    const struct ttm_original_message msg = {
        .type = type,
        .device_id = decoder->options->device,
        .buffer_type = kind,
        .buffer_id = id,
        .size = bytes,
    };

    note(decoder, ttm_original_client_send(&decoder->client, &msg));
}

static void load_model(struct decoder *decoder, uint64_t weights[LAYERS * WEIGHTS_PER_LAYER],
                       uint64_t caches[LAYERS])
{
    for (uint64_t i = 0; i < LAYERS; i++) {
        for (uint64_t w = 0; w < WEIGHTS_PER_LAYER; w++)
            weights[i * WEIGHTS_PER_LAYER + w] = alloc_dram(decoder, (w + 1) * 8 * MIB);
        caches[i] = alloc_dram(decoder, 32 * MIB);
    }
}

/* The fabric's and the dispatcher's kernels are there from the start, each program brings its own. */
static void load_programs(struct decoder *decoder)
{
    say(decoder, TTM_ORIGINAL_KERNEL_LOAD, TTM_KERNEL_FABRIC, 0xfab0, 112 * KIB);
    say(decoder, TTM_ORIGINAL_KERNEL_LOAD, TTM_KERNEL_DISPATCH, 0xd150, 92 * KIB);
    for (uint64_t i = 0; i < PROGRAMS; i++) {
        say(decoder, TTM_ORIGINAL_KERNEL_LOAD, TTM_KERNEL_APPLICATION, 1 + i, (12 + i) * KIB);
        say(decoder, TTM_ORIGINAL_CB_ALLOC, 0, 0x18b20 + i * 64 * KIB, CB_BYTES);
    }
}

static void unload_programs(struct decoder *decoder)
{
    for (uint64_t i = 0; i < PROGRAMS; i++) {
        say(decoder, TTM_ORIGINAL_CB_FREE, 0, 0x18b20 + i * 64 * KIB, CB_BYTES);
        say(decoder, TTM_ORIGINAL_KERNEL_UNLOAD, TTM_KERNEL_APPLICATION, 1 + i, (12 + i) * KIB);
    }
}

static void decode_token(struct decoder *decoder)
{
    const uint32_t ms = decoder->options->token_ms;
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    uint64_t hidden = alloc_l1(decoder, 2 * MIB);

    for (int layer = 0; layer < LAYERS; layer++) {
        const uint64_t scores = alloc_l1(decoder, 6 * MIB);
        const uint64_t output = alloc_l1(decoder, 2 * MIB);
        free_buffer(decoder, scores);
        free_buffer(decoder, hidden);
        hidden = output;
        if (layer == LAYERS / 2)
            (void)nanosleep(&pause, NULL); /* so that a monitor sees a token half done */
    }
    free_buffer(decoder, hidden);
    if (decoder->options->is_leaky)
        (void)alloc_dram(decoder, SCRATCH_BYTES); /* the planted leak: nobody keeps the id */
}

/* Says that a stage is done and waits until the next may begin. */
static void await_word(void)
{
    char byte;

    if (write(STDOUT_FILENO, "\n", 1) == 1)
        (void)!read(STDIN_FILENO, &byte, 1);
}

int ttm_decoder_run(const struct ttm_decoder_options *options)
{
    struct decoder decoder = {.options = options, .next_dram = 0x100040, .next_l1 = 0x80000};
    uint64_t weights[LAYERS * WEIGHTS_PER_LAYER], caches[LAYERS];

    int r = ttm_original_client_open(&decoder.client, options->socket_path, TTM_ORIGINAL_V144);
    if (r < 0)
        return r;
    load_model(&decoder, weights, caches);
    load_programs(&decoder);
    for (uint32_t i = 0; i < options->tokens; i++)
        decode_token(&decoder);
    await_word();
    unload_programs(&decoder);
    for (int i = 0; i < LAYERS; i++)
        free_buffer(&decoder, caches[i]);
    for (int i = 0; i < LAYERS * WEIGHTS_PER_LAYER; i++)
        free_buffer(&decoder, weights[i]);
    await_word();
    ttm_original_client_close(&decoder.client);
    return decoder.error;
}
