/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A C program that tells tt-mem what it allocates.
 *
 *   tt-mem serve &
 *   TT_ALLOC_TRACKING_ENABLED=1 ./track
 *   tt-mem dump                          (while it waits for Enter)
 */
#include <stdio.h>
#include <ttmem/ttmem.h>

int main(void)
{
    /* One tensor on eight chips is one allocation on a set of devices. */
    const uint16_t mesh[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const struct ttmem_allocation weights = {
        .id = 1,
        .address = 0x100040,
        .bytes = 32 << 20,
        .footprint_bytes = 33 << 20, /* what alignment to pages and banks makes of it */
        .devices = ttmem_devices(mesh, 8),
        .banks = 12,
        .allocator = 1,
        .region = TTMEM_DRAM,
    };
    ttmem_alloc(&weights);

    for (uint64_t step = 0; step < 100; step++) {
        const struct ttmem_allocation activation = {
            .id = 100 + step,
            .address = 0x19000,
            .bytes = 1 << 20,
            .devices = 0, /* a single device is its id */
            .region = TTMEM_L1,
        };
        ttmem_alloc(&activation);
        if (step % 10 != 0) /* every tenth is forgotten */
            ttmem_free(0, TTMEM_L1, activation.id);
    }
    printf("weights on 8 devices and 10 forgotten activations; press Enter to end\n");
    (void)getchar();
    ttmem_free(1, TTMEM_DRAM, weights.id);
    return 0;
}
