/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash - mixing of integers for our own tables.
 *
 * Inputs may be chosen by a hostile client, so a table that lives in the server
 * mixes in a seed that the client does not know.
 */
#ifndef TTM_BASE_HASH_H
#define TTM_BASE_HASH_H

#include <stdint.h>

/* A multiply-xorshift finaliser (the constants are splitmix64's): all input bits reach the low ones. */
static inline uint64_t ttm_hash_u64(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebull;
    x ^= x >> 31;
    return x;
}

/* Of two words, of which the first has a seed mixed in, by one multiplication to twice the length. */
static inline uint64_t ttm_hash_pair(uint64_t a, uint64_t b)
{
    __extension__ const unsigned __int128 product =
        (unsigned __int128)a * (b ^ 0xbf58476d1ce4e5b9ull);

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Continues a hash with a text (FNV-1a, as names are short; mixed once at its end). */
static inline uint64_t ttm_hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3ull;
    return ttm_hash_u64(hash);
}

#endif /* TTM_BASE_HASH_H */
