/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of the original protocol. An input is: 0 how many cuts n (modulo
 * 32) | 1 … n cuts | the stream. A cut's low seven bits are the length of a piece,
 * its high bit is silence after it; the cuts are used again and again.
 */
#include "fuzzing.h"

#include "wire/original.h"

#define MESSAGES_MAX 512

/* Messages are kept encoded, to be compared: a struct has bytes between its fields. */
struct outcome {
    uint8_t messages[MESSAGES_MAX][TTM_ORIGINAL_V144];
    size_t count;
    int error;
    uint16_t layout;
    size_t leftover;
};

static void drain(struct ttm_original_reader *reader, struct outcome *outcome)
{
    struct ttm_original_message msg;
    int r;

    while ((r = ttm_original_reader_next(reader, &msg)) > 0) {
        MUST(r == 1);
        MUST(msg.type >= 1 && msg.type <= 12);
        MUST(reader->layout == 72 || reader->layout == 112 || reader->layout == 144);
        if (outcome->count < MESSAGES_MAX)
            ttm_original_encode(&msg, TTM_ORIGINAL_V144, outcome->messages[outcome->count]);
        outcome->count++;
    }
    outcome->error = r;
    if (r == 0)
        ttm_original_reader_keep(reader);
}

static void feed(struct ttm_original_reader *reader, const uint8_t *data, size_t size,
                 struct outcome *outcome)
{
    uint8_t *piece = exact_copy(data, size);

    ttm_original_reader_push(reader, piece, size);
    drain(reader, outcome);
    free(piece);
}

static void run(const uint8_t *cuts, size_t cut_count, bool has_silence, const uint8_t *stream,
                size_t size, struct outcome *outcome)
{
    struct ttm_original_reader reader;
    size_t at = 0;

    memset(outcome, 0, sizeof(*outcome));
    ttm_original_reader_init(&reader);
    for (size_t i = 0; at < size && outcome->error == 0; i++) {
        const uint8_t cut = cut_count > 0 ? cuts[i % cut_count] : 0;
        size_t n = cut_count > 0 ? (size_t)(cut & 127) + 1 : size;
        if (n > size - at)
            n = size - at;
        feed(&reader, stream + at, n, outcome);
        at += n;
        if (has_silence && (cut & 128) && outcome->error == 0) {
            ttm_original_reader_silence(&reader);
            drain(&reader, outcome);
        }
        MUST(ttm_original_reader_leftover(&reader) <= TTM_ORIGINAL_STASH_SIZE);
    }
    MUST(outcome->count * 72 <= at); /* no byte is read as two messages */
    outcome->layout = reader.layout;
    outcome->leftover = ttm_original_reader_leftover(&reader);
}

static bool begins_with(const struct outcome *outcome, const struct outcome *beginning)
{
    const size_t n = beginning->count < MESSAGES_MAX ? beginning->count : MESSAGES_MAX;

    return outcome->count >= beginning->count &&
           memcmp(outcome->messages, beginning->messages, n * sizeof(outcome->messages[0])) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct outcome whole, pieces, silent;

    if (size < 1)
        return 0;
    size_t cut_count = data[0] % 32;
    if (cut_count > size - 1)
        cut_count = size - 1;
    const uint8_t *cuts = data + 1;
    const uint8_t *stream = cuts + cut_count;
    const size_t length = size - 1 - cut_count;

    run(NULL, 0, false, stream, length, &whole);
    run(cuts, cut_count, false, stream, length, &pieces);
    run(cuts, cut_count, true, stream, length, &silent);

    /* How a stream is cut says nothing, but garbage in a piece of its own comes later. */
    MUST(begins_with(&pieces, &whole));
    MUST(whole.error == pieces.error);
    if (whole.error == 0) {
        MUST(whole.count == pieces.count);
        MUST(whole.layout == pieces.layout);
        MUST(whole.leftover == pieces.leftover);
    }
    return 0;
}
