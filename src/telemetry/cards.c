/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/cards.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first line of a small file, without its newline. Returns its length, 0 when it cannot be read. */
static size_t read_line(int folder_fd, const char *name, char *ret, size_t size)
{
    const int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return 0;
    const ssize_t n = read(fd, ret, size - 1);
    (void)close(fd);
    ret[n > 0 ? n : 0] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
    return strlen(ret);
}

/* The last part of what the link points at: the card's PCI address. */
static void read_bdf(int folder_fd, char ret[TTM_CARD_NAME_SIZE])
{
    char target[512];
    const ssize_t n = readlinkat(folder_fd, "device", target, sizeof(target) - 1);

    ret[0] = '\0';
    if (n <= 0)
        return;
    target[n] = '\0';
    const char *slash = strrchr(target, '/');
    (void)snprintf(ret, TTM_CARD_NAME_SIZE, "%.31s", slash ? slash + 1 : target);
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct ttm_card *)a)->bdf, ((const struct ttm_card *)b)->bdf);
}

static size_t read_local(int class_fd, DIR *dir, struct ttm_card *cards, size_t max)
{
    const struct dirent *entry;
    size_t count = 0;

    /* cppcheck-suppress readdirCalled ; glibc's is safe on a DIR of one's own */
    while (count < max && (entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, "tenstorrent!", 12) != 0)
            continue;
        const int fd = openat(class_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            continue;
        struct ttm_card card;
        if (read_line(fd, "tt_card_type", card.board, sizeof(card.board)) == 0)
            (void)snprintf(card.board, sizeof(card.board), "unknown");
        read_bdf(fd, card.bdf);
        (void)close(fd);
        cards[count++] = card;
    }
    return count;
}

size_t ttm_cards_read(const char *root, struct ttm_card *cards, size_t max)
{
    char path[512];

    (void)snprintf(path, sizeof(path), "%s/sys/class/tenstorrent", root);
    DIR *dir = opendir(path);
    if (!dir)
        return 0;
    const size_t local = read_local(dirfd(dir), dir, cards, max);
    (void)closedir(dir);
    qsort(cards, local, sizeof(cards[0]), compare);
    size_t count = local;
    for (size_t i = 0; i < local && count < max; i++) {
        if (strcmp(cards[i].board, "n300") == 0)
            cards[count++] = cards[i];
    }
    return count;
}
