/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages - zeroed memory straight from the kernel, and back to it.
 *
 * For blocks that come and go by the thousand: what is freed leaves the process
 * at once, whatever else was allocated in between, which malloc cannot promise.
 */
#ifndef TTM_BASE_PAGES_H
#define TTM_BASE_PAGES_H

#include <stddef.h>

/* 'size' is a multiple of 4096. Returns NULL when memory is short. */
void *ttm_pages_alloc(size_t size);

/* All of it will be written soon: has the kernel take the pages at once and not one at a time. */
void ttm_pages_take(void *pages, size_t size);

/*
 * All of it will be written soon: where the system has them, large pages may be used for it. What is
 * freed of such a page alone leaves the process, but not the page until all of it is free or memory short.
 */
void ttm_pages_join(void *pages, size_t size);

/* NULL is fine; 'size' is what it was allocated with. */
void ttm_pages_free(void *pages, size_t size);

#endif /* TTM_BASE_PAGES_H */
