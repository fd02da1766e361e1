/* SPDX-License-Identifier: Apache-2.0 */
#include "faults.h"

#include <stdatomic.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_ttm_pages_alloc(size_t size);
void __real_ttm_pages_free(void *pages, size_t size);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_ttm_pages_alloc(size_t size);
void __wrap_ttm_pages_free(void *pages, size_t size);

static bool is_armed;
static bool has_failed;
static unsigned grants_left;
static _Atomic size_t pages_out; /* threads of a test have pages of their own */

void faults_begin(unsigned grants)
{
    is_armed = true;
    has_failed = false;
    grants_left = grants;
}

bool faults_end(void)
{
    is_armed = false;
    return has_failed;
}

size_t faults_pages_out(void)
{
    return pages_out;
}

static bool is_granted(void)
{
    if (!is_armed)
        return true;
    if (grants_left > 0) {
        grants_left--;
        return true;
    }
    has_failed = true;
    return false;
}

void *__wrap_malloc(size_t size)
{
    return is_granted() ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return is_granted() ? __real_calloc(count, size) : NULL;
}

void *__wrap_realloc(void *memory, size_t size)
{
    return is_granted() ? __real_realloc(memory, size) : NULL;
}

void *__wrap_ttm_pages_alloc(size_t size)
{
    void *pages = is_granted() ? __real_ttm_pages_alloc(size) : NULL;

    if (pages)
        pages_out += size;
    return pages;
}

void __wrap_ttm_pages_free(void *pages, size_t size)
{
    if (pages)
        pages_out -= size;
    __real_ttm_pages_free(pages, size);
}
