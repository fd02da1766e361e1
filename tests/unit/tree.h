/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree - a temporary folder that stands in for /, to be filled with /sys, /proc and /dev.
 */
#ifndef TTM_TESTS_UNIT_TREE_H
#define TTM_TESTS_UNIT_TREE_H

#include "testing.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static inline int tree_set_up(void **state)
{
    (void)state;
    (void)snprintf(root, sizeof(root), "/tmp/ttm-test-tree.XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static inline int tree_remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static inline int tree_tear_down(void **state)
{
    (void)state;
    return nftw(root, tree_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* The path below the root, with the folders on the way made. Good until the next call. */
static inline const char *tree_path(const char *path)
{
    static char whole[512];

    (void)snprintf(whole, sizeof(whole), "%s%s", root, path);
    for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        (void)mkdir(whole, 0700);
        *at = '/';
    }
    return whole;
}

static inline void tree_folder(const char *path)
{
    assert_int_equal(mkdir(tree_path(path), 0700), 0);
}

static inline void tree_bytes(const char *path, const void *data, size_t length)
{
    const int fd = open(tree_path(path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, length), length);
    assert_int_equal(close(fd), 0);
}

static inline void tree_text(const char *path, const char *text)
{
    tree_bytes(path, text, strlen(text));
}

static inline void tree_link(const char *path, const char *target)
{
    assert_int_equal(symlink(target, tree_path(path)), 0);
}

static inline void tree_remove(const char *path)
{
    assert_int_equal(nftw(tree_path(path), tree_remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

#define TREE_TEST(name) cmocka_unit_test_setup_teardown(name, tree_set_up, tree_tear_down)

#endif /* TTM_TESTS_UNIT_TREE_H */
