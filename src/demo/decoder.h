/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decoder - a program like any user's, with nothing behind it but its reports.
 *
 * Acts out the memory of a language model's decode loop on one device: weights
 * and KV cache stay, activations come and go, programs bring circular buffers
 * and kernels, and one of the decoders forgets a buffer with every token.
 */
#ifndef TTM_DEMO_DECODER_H
#define TTM_DEMO_DECODER_H

#include <stdbool.h>
#include <stdint.h>

struct ttm_decoder_options {
    uint16_t device;
    uint32_t tokens;
    uint32_t token_ms; /* pause after each */
    bool is_leaky;
};

/*
 * Two stages: loads and decodes; gives back what it means to. After each it
 * writes a byte to stdout and waits for one on stdin. It reports through libttmem,
 * to the server that the environment names.
 */
void ttm_decoder_run(const struct ttm_decoder_options *options);

#endif /* TTM_DEMO_DECODER_H */
