/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job control. The program shares our process group, so the terminal's ^C, ^\ and
 * ^Z reach it without us. We do not act on ours: ^C is the program's to answer, and
 * we still have a summary to print. When the program stops by ^Z, we stop too, or the
 * shell would wait for us; whoever continues us continues the program.
 *
 * Signals of the terminal are told from those that somebody sent to us by their
 * code, SI_KERNEL. One that was sent to the whole group by kill(2) cannot be told
 * from one that was sent to us alone, and reaches the program twice.
 */
#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

/* Besides those of real time. Faults are our own, SIGTTIN and SIGTTOU stop us as anybody. */
static const int forwarded[] = {SIGHUP,  SIGINT,   SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM,
                                SIGTERM, SIGWINCH, SIGURG,  SIGIO,   SIGPWR,  SIGTSTP, SIGCONT};

static void (*too_large_before)(int) = SIG_DFL;

void ttm_child_ignore_limits(void)
{
    too_large_before = signal(SIGXFSZ, SIG_IGN);
}

void ttm_child_init(struct ttm_child *child)
{
    struct sigaction action;

    *child = (struct ttm_child){0};
    (void)getrlimit(RLIMIT_NOFILE, &child->fds);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &child->mask);
    (void)sigaction(SIGCHLD, NULL, &action);
    child->ignored_sigchld = action.sa_handler == SIG_IGN;
    sigemptyset(&child->taken);
    sigaddset(&child->taken, SIGCHLD);
    for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
        sigaddset(&child->taken, forwarded[i]);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        sigaddset(&child->taken, number);
}

/* In the new process: back to what the command was given, and on to the program. Never returns. */
static void become(const struct ttm_child *child, char *const argv[], char *const envp[],
                   int error_fd)
{
    (void)setrlimit(RLIMIT_NOFILE, &child->fds);
    if (child->ignored_sigchld)
        (void)signal(SIGCHLD, SIG_IGN);
    (void)signal(SIGXFSZ, too_large_before);
    (void)sigprocmask(SIG_SETMASK, &child->mask, NULL);
    (void)execvpe(argv[0], argv, envp);
    const int error = errno;
    if (error_fd >= 0)
        (void)!write(error_fd, &error, sizeof(error));
    else
        ttm_log("cannot run '%s': %s", argv[0], strerror(error));
    _exit(ttm_child_cannot_run_status(error));
}

/* What the new process says before it becomes the program: nothing, when all went well. */
static int read_error(int fd)
{
    int error = 0;
    ssize_t n;

    do
        n = read(fd, &error, sizeof(error));
    while (n < 0 && errno == EINTR);
    return n == sizeof(error) ? -error : 0;
}

int ttm_child_cannot_run_status(int error)
{
    return error == ENOENT ? 127 : 126;
}

int ttm_child_start(struct ttm_child *child, char *const argv[], char *const envp[])
{
    int error_pipe[2] = {-1, -1};

    /* Where no more files may be open, the new process says by itself what is wrong. */
    if (pipe2(error_pipe, O_CLOEXEC) < 0 && errno != EMFILE && errno != ENFILE)
        return -errno;
    (void)signal(SIGCHLD, SIG_DFL); /* who ignores it has no children to wait for */
    (void)pthread_sigmask(SIG_BLOCK, &child->taken, NULL);
    child->pid = fork();
    if (child->pid == 0)
        become(child, argv, envp, error_pipe[1]);
    int r = child->pid < 0 ? -errno : 0;
    if (error_pipe[0] >= 0) {
        (void)close(error_pipe[1]);
        if (r == 0)
            r = read_error(error_pipe[0]);
        (void)close(error_pipe[0]);
    }
    if (r == 0)
        return 0;
    if (child->pid > 0)
        ttm_child_reap(child);
    (void)pthread_sigmask(SIG_SETMASK, &child->mask, NULL);
    return r;
}

/* ---- signals ---- */

static bool was_sent_by_others(const siginfo_t *info)
{
    /* A write of ours to a closed pipe gives us SIGPIPE in our own name. */
    return info->si_code != SI_KERNEL && info->si_pid != getpid();
}

static void pass_on(struct ttm_child *child, const siginfo_t *info)
{
    if (info->si_signo == SIGCONT) { /* the kernel has woken us; the program may still stand */
        if (child->is_stopped)
            (void)kill(child->pid, SIGCONT);
    } else if (was_sent_by_others(info)) {
        (void)kill(child->pid, info->si_signo);
    }
}

/* Stands until somebody continues us; where nobody could, the kernel does not let us stop. */
static void stop_too(void)
{
    sigset_t stop;

    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    (void)raise(SIGTSTP);
    (void)pthread_sigmask(SIG_UNBLOCK, &stop, NULL);
    (void)pthread_sigmask(SIG_BLOCK, &stop, NULL);
}

static void look_whether_it_stands(struct ttm_child *child)
{
    siginfo_t info = {0};

    if (waitid(P_PID, (id_t)child->pid, &info, WSTOPPED | WCONTINUED | WNOHANG) < 0 ||
        info.si_pid == 0)
        return;
    child->is_stopped = info.si_code == CLD_STOPPED;
    /* Whoever stops the program with SIGSTOP, or has it in another group, does not mean us. */
    if (child->is_stopped && info.si_status != SIGSTOP && getpgid(child->pid) == getpgrp())
        stop_too();
}

static bool has_ended(const struct ttm_child *child, struct ttm_child_end *ret)
{
    siginfo_t info = {0};

    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
        return false;
    if (info.si_code == CLD_EXITED)
        ret->exit_code = info.si_status;
    else
        ret->signal = info.si_status;
    ret->has_dumped_core = info.si_code == CLD_DUMPED;
    return true;
}

void ttm_child_wait(struct ttm_child *child, struct ttm_child_end *ret)
{
    const uint64_t start_ns = ttm_clock_monotonic_ns();
    siginfo_t info;

    *ret = (struct ttm_child_end){0};
    while (true) {
        const int number = sigwaitinfo(&child->taken, &info);
        if (number < 0)
            continue; /* interrupted, as by being continued */
        if (number != SIGCHLD)
            pass_on(child, &info);
        else if (has_ended(child, ret))
            break;
        else
            look_whether_it_stands(child);
    }
    ret->duration_ns = ttm_clock_monotonic_ns() - start_ns;
}

void ttm_child_reap(struct ttm_child *child)
{
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    child->pid = 0;
}

int ttm_child_status(const struct ttm_child_end *end)
{
    return end->signal > 0 ? 128 + end->signal : end->exit_code;
}
