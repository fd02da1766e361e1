/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stepped_clock - the wall clock of one program, for tests that set it.
 *
 * Preloaded. The file in CLOCK_STEP holds one i64: the seconds that are added to
 * CLOCK_REALTIME from then on. The other clocks stay as they are.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic int64_t *step;

__attribute__((constructor)) static void map_step(void)
{
    const char *path = getenv("CLOCK_STEP");
    const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0)
        return;
    void *mem = mmap(NULL, sizeof(*step), PROT_READ, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (mem != MAP_FAILED)
        step = mem;
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *ret)
{
    const int r = (int)syscall(SYS_clock_gettime, id, ret);

    if (r == 0 && id == CLOCK_REALTIME && step)
        ret->tv_sec += (time_t)atomic_load(step);
    return r;
}
