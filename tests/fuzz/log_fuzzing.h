/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_fuzzing - what the fuzzers of both importers share: the import itself, and a reader
 * of what it made.
 */
#ifndef TTM_TESTS_FUZZ_LOG_FUZZING_H
#define TTM_TESTS_FUZZ_LOG_FUZZING_H

#include "fuzzing.h"

#include "logs/import.h"
#include "recording/block.h"
#include "recording/encoder.h"

static inline struct ttm_block *drop_block(void *arg, struct ttm_block *full)
{
    (void)arg;
    ttm_block_clear(full);
    return full;
}

/* Feeds the first 'cut' bytes, then all of the rest. */
static inline struct ttm_import_result import_log(const char *text, size_t length, size_t cut,
                                                  enum ttm_log_format format)
{
    struct ttm_block block;
    MUST(ttm_block_init(&block) == 0);
    const struct ttm_encoder_options encoding = {.pass = drop_block, .block = &block, .seed = 5};
    struct ttm_encoder *encoder = ttm_encoder_new(&encoding);
    MUST(encoder);
    const struct ttm_import_options options = {.format = format,
                                               .name = "fuzz.log",
                                               .written_wall_ns = 1700000000000000000,
                                               .seed = 7,
                                               .encoder = encoder};
    struct ttm_import_result result;
    struct ttm_import *import = ttm_import_new(&options);
    size_t taken = 0;

    MUST(import);
    if (cut < length)
        MUST(ttm_import_feed(import, text, cut, false, &taken) == 0);
    MUST(taken <= cut);
    MUST(ttm_import_feed(import, text + taken, length - taken, true, &taken) == 0);
    MUST(ttm_import_finish(import, &result) == 0);
    ttm_import_free(import);
    ttm_encoder_finish(encoder);
    (void)ttm_encoder_free(encoder);
    ttm_block_done(&block);
    return result;
}

static inline void try_import(const char *text, size_t length, uint8_t where,
                              enum ttm_log_format format)
{
    (void)ttm_log_recognise(text, length);
    const struct ttm_import_result whole = import_log(text, length, length, format);
    const struct ttm_import_result parts = import_log(text, length, length * where / 256, format);

    MUST(whole.frees + whole.replaced <= whole.births);
    MUST(whole.births + whole.frees <= whole.events);
    MUST(memcmp(&whole, &parts, sizeof(whole)) == 0);
}

#endif /* TTM_TESTS_FUZZ_LOG_FUZZING_H */
