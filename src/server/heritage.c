/* SPDX-License-Identifier: Apache-2.0 */
#include "server/heritage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/pages.h"
#include "model/life_store.h"

#define TEXT_SIZE 12 /* "4194304    " and its end: all of it is written each time */
#define BLOCKS_PER_TURN 2
#define CROWD (2 * TTM_LIFE_BLOCK_LIVES)
#define KEPT_NS (UINT64_C(3) * TTM_NS_PER_S)
#define WRITE_NS (UINT64_C(100) * TTM_NS_PER_MS)

_Static_assert(TTM_AHEAD_BLOCK == TTM_LIFE_BLOCK_SIZE, "a block is for lives");

bool ttm_heritage_is_crowd(uint32_t lives)
{
    return lives >= CROWD;
}

/* 0 where there is nothing, or nothing that makes sense. */
static uint32_t read_lives(int lock_fd)
{
    char text[TEXT_SIZE] = "";
    char *end;

    if (lock_fd < 0 || pread(lock_fd, text, sizeof(text) - 1, 0) <= 0)
        return 0;
    const unsigned long lives = strtoul(text, &end, 10);
    return end > text && *end == ' ' && lives <= UINT32_MAX ? (uint32_t)lives : 0;
}

/* In a folder that others write to, a lock may be another name of a file that is none of ours. */
static bool is_own_file(int lock_fd)
{
    struct stat st;

    return lock_fd >= 0 && fstat(lock_fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink <= 1 &&
           st.st_uid == geteuid();
}

static void write_lives(struct ttm_heritage *heritage, int lock_fd, uint32_t lives)
{
    char text[TEXT_SIZE + 4];
    const int length = snprintf(text, sizeof(text), "%-10" PRIu32 " ", lives);

    heritage->written = lives;
    /* Where it cannot be written, the next server takes a little longer. */
    if (is_own_file(lock_fd))
        (void)!pwrite(lock_fd, text, (size_t)length, 0);
}

void ttm_heritage_begin(struct ttm_heritage *heritage, int lock_fd, uint64_t now_ns)
{
    const uint32_t lives = read_lives(lock_fd);
    const uint32_t blocks = lives / TTM_LIFE_BLOCK_LIVES;

    heritage->written = lives;
    heritage->written_ns = now_ns; /* its programs come first */
    if (!ttm_heritage_is_crowd(lives))
        return;
    ttm_pages_ahead_begin(&heritage->ahead, blocks < TTM_AHEAD_MOST ? blocks : TTM_AHEAD_MOST,
                          TTM_AHEAD_MOST);
    heritage->until_ns = now_ns + KEPT_NS;
}

void *ttm_heritage_take_block(struct ttm_heritage *heritage)
{
    return heritage->until_ns != 0 ? ttm_pages_ahead_take(&heritage->ahead) : NULL;
}

/* A few at a time, as others wait. Returns whether that was all. */
static bool give_back(struct ttm_heritage *heritage)
{
    void *block = NULL;

    for (uint32_t i = 0; i < BLOCKS_PER_TURN; i++) {
        block = ttm_pages_ahead_take(&heritage->ahead);
        if (!block)
            break;
        ttm_pages_free(block, TTM_AHEAD_BLOCK);
    }
    return !block;
}

/* By more than a quarter, and by a block. While the programs of the last server come, there are not fewer. */
static bool has_changed(const struct ttm_heritage *heritage, uint32_t lives)
{
    const uint32_t before = heritage->written;
    const uint32_t difference = lives > before ? lives - before : before - lives;

    return difference > TTM_LIFE_BLOCK_LIVES && difference > before / 4 &&
           (lives > before || heritage->until_ns == 0);
}

void ttm_heritage_tick(struct ttm_heritage *heritage, int lock_fd, uint32_t lives, uint64_t now_ns)
{
    if (heritage->until_ns != 0 && now_ns >= heritage->until_ns && give_back(heritage)) {
        ttm_pages_ahead_end(&heritage->ahead);
        heritage->until_ns = 0;
    }
    if (!has_changed(heritage, lives) || now_ns - heritage->written_ns < WRITE_NS)
        return;
    write_lives(heritage, lock_fd, lives);
    heritage->written_ns = now_ns;
}

uint64_t ttm_heritage_due_ns(const struct ttm_heritage *heritage, uint32_t lives)
{
    const uint64_t until_ns = heritage->until_ns != 0 ? heritage->until_ns : UINT64_MAX;
    const uint64_t write_ns =
        has_changed(heritage, lives) ? heritage->written_ns + WRITE_NS : UINT64_MAX;

    return until_ns < write_ns ? until_ns : write_ns;
}

bool ttm_heritage_end(struct ttm_heritage *heritage, int lock_fd, uint32_t lives)
{
    ttm_pages_ahead_end(&heritage->ahead);
    heritage->until_ns = 0;
    if (!ttm_heritage_is_crowd(lives) || lock_fd < 0)
        return false;
    write_lives(heritage, lock_fd, lives);
    return true;
}
