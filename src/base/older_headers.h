/* SPDX-License-Identifier: Apache-2.0 */
/*
 * older_headers - what the headers of older systems lack, as those of Ubuntu 22.04 (glibc 2.35)
 * and Debian 11 (glibc 2.31, Linux 5.10).
 *
 * Meson asks the compiler for each of these and defines TTM_LACKS_… where the answer is no. The
 * numbers are the kernel's and never change; a kernel that is too old answers with an error, which
 * the callers handle in any case.
 */
#ifndef TTM_BASE_OLDER_HEADERS_H
#define TTM_BASE_OLDER_HEADERS_H

#include <malloc.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef TTM_LACKS_P_PIDFD
#define P_PIDFD ((idtype_t)3) /* Linux 5.4 */
#endif

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* Linux 5.3 */
#endif

#ifdef TTM_LACKS_MALLINFO2
#define mallinfo2 mallinfo /* the struct, too: its numbers are smaller */
#endif

#ifdef TTM_LACKS__FORK
#define _Fork() ((pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL))
#endif

#ifdef TTM_LACKS_EPOLL_PWAIT2
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441 /* Linux 5.11 */
#endif
static inline int epoll_pwait2(int fd, struct epoll_event *events, int count,
                               const struct timespec *timeout, const sigset_t *mask)
{
    return (int)syscall(SYS_epoll_pwait2, fd, events, count, timeout, mask, sizeof(uint64_t));
}
#endif

#ifdef TTM_LACKS_SIGABBREV_NP
/* "SEGV"; NULL for a signal that has no name. */
static inline const char *sigabbrev_np(int number)
{
    static const char *const names[] = {
        [SIGHUP] = "HUP",   [SIGINT] = "INT",       [SIGQUIT] = "QUIT", [SIGILL] = "ILL",
        [SIGTRAP] = "TRAP", [SIGABRT] = "ABRT",     [SIGBUS] = "BUS",   [SIGFPE] = "FPE",
        [SIGKILL] = "KILL", [SIGUSR1] = "USR1",     [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2",
        [SIGPIPE] = "PIPE", [SIGALRM] = "ALRM",     [SIGTERM] = "TERM", [SIGSTKFLT] = "STKFLT",
        [SIGCHLD] = "CHLD", [SIGCONT] = "CONT",     [SIGSTOP] = "STOP", [SIGTSTP] = "TSTP",
        [SIGTTIN] = "TTIN", [SIGTTOU] = "TTOU",     [SIGURG] = "URG",   [SIGXCPU] = "XCPU",
        [SIGXFSZ] = "XFSZ", [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF", [SIGWINCH] = "WINCH",
        [SIGIO] = "POLL",   [SIGPWR] = "PWR",       [SIGSYS] = "SYS",
    };

    const int count = (int)(sizeof(names) / sizeof(names[0]));

    if (number <= 0 || number >= count)
        return NULL;
    return names[number];
}
#endif

#endif /* TTM_BASE_OLDER_HEADERS_H */
