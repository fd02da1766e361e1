/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control - the switch of a process that has libttmem, for commands to find.
 *
 * A page in a memfd that the process keeps open from the time the library is
 * loaded. Commands find it among the files of the process in /proc, which only
 * its own user and root may look into. So a process in which tracking is off needs
 * neither a thread nor a connection, and can be seen and switched on all the same.
 *
 * Once tracking is on, a pipe of the process wakes its helper thread.
 */
#ifndef TTM_RING_CONTROL_H
#define TTM_RING_CONTROL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TTM_CONTROL_MAGIC 0x314c52544d4d5454ull /* "TTMMTRL1" */
#define TTM_CONTROL_NAME "tt-mem-control"

enum ttm_control_state {
    TTM_CONTROL_OFF = 0,
    TTM_CONTROL_ON = 1,
    TTM_CONTROL_SWITCHING = 2, /* on its way to one of these */
};

struct ttm_control {
    _Atomic uint64_t magic;     /* 0: the process has not used the library yet */
    uint32_t bytes;             /* of this struct, as its writer knows it */
    _Atomic uint32_t is_wanted; /* tracking is to be on; commands may write it */
    _Atomic uint32_t state;     /* enum ttm_control_state: what it is */
    _Atomic int32_t nudge_fd;   /* of the pipe, in the process; -1: no helper is there */
    _Atomic uint64_t nudge_inode;
};

/* ---- in the process itself ---- */

/*
 * Makes the page, of zeros but for what is wanted. Returns its fd or a negative errno. The fd is kept for others to
 * find; losing it does no harm once the page is mapped.
 */
int ttm_control_new(bool is_wanted);

/* Maps the page and fills it in. Returns 0 or a negative errno. */
int ttm_control_map(int fd, struct ttm_control **ret);

/* Whether tracking is wanted, of a page that is not mapped. */
bool ttm_control_read_wanted(int fd);

/* ---- in a command ---- */

struct ttm_control_view {
    struct ttm_control *control;
    pid_t pid;
};

/* Whether ttm_control_switch() is to be called. */
enum ttm_control_use { TTM_CONTROL_READ, TTM_CONTROL_SWITCH };

/*
 * Finds the switch of a process, under 'root' before /proc ("" for none). No file that
 * is not a memfd is opened, whatever the process calls it. Returns 0; -ESRCH when there
 * is no such process; -EACCES; -ENOENT when it has no libttmem; -EBADMSG.
 */
int ttm_control_open(const char *root, pid_t pid, enum ttm_control_use use,
                     struct ttm_control_view *ret);
void ttm_control_close(struct ttm_control_view *view);

/* Another's memory: any value, also one that no enum has. */
uint32_t ttm_control_state(const struct ttm_control_view *view);

/*
 * The processes in which tracking is off although it could be on, at most 'max' of
 * those that the caller may see. One that has never used the library, and was not switched
 * off either, is none of them: a shell that has the hook loaded for what it starts. Returns
 * how many.
 */
size_t ttm_control_list_off(const char *root, pid_t *ret_pids, size_t max);

/* Says what is wanted and wakes the helper, if there is one. Of a view opened for TTM_CONTROL_SWITCH. */
void ttm_control_switch(const struct ttm_control_view *view, const char *root, bool is_wanted);

#endif /* TTM_RING_CONTROL_H */
