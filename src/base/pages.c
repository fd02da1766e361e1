/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pages.h"

#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

void *ttm_pages_alloc(size_t size)
{
    void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return mem == MAP_FAILED ? NULL : mem; /* cppcheck-suppress memleak ; the caller has it */
}

void ttm_pages_take(void *pages, size_t size)
{
    /* Linux before 5.14 does not know it: then they come one at a time. */
    (void)madvise(pages, size, MADV_POPULATE_WRITE);
}

void ttm_pages_join(void *pages, size_t size)
{
    (void)madvise(pages, size, MADV_HUGEPAGE);
}

void ttm_pages_free(void *pages, size_t size)
{
    if (pages)
        (void)munmap(pages, size);
}
