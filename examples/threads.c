/* SPDX-License-Identifier: Apache-2.0 */
/* Born on one thread, freed on another: nothing special to be done. */
#include <pthread.h>
#include <stdio.h>
#include <ttmem/ttmem.h>

#define BUFFERS 10000u

static void *allocate(void *arg)
{
    (void)arg;
    for (uint64_t id = 1; id <= BUFFERS; id++) {
        const struct ttmem_allocation a = {
            .id = id, .address = id % 4096 * 2048, .bytes = 2048, .region = TTMEM_L1};
        ttmem_alloc(&a);
    }
    return NULL;
}

static void *give_back(void *arg)
{
    (void)arg;
    for (uint64_t id = 1; id <= BUFFERS; id++) {
        if (id % 100 != 0)
            ttmem_free(0, TTMEM_L1, id);
    }
    return NULL;
}

static int run(void *(*work)(void *))
{
    pthread_t thread;

    return pthread_create(&thread, NULL, work, NULL) != 0 || pthread_join(thread, NULL) != 0;
}

int main(void)
{
    if (run(allocate) != 0 || run(give_back) != 0)
        return 1;
    printf("%u buffers remain of %u; press Enter to end\n", BUFFERS / 100, BUFFERS);
    (void)getchar();
    return 0;
}
