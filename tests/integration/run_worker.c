/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program on libttmem that does what TT-Metal programs do: opens a device, names
 * what it allocates, runs a program, fails to allocate, and closes the device with
 * buffers alive. It waits for a line of input before it fails, closes and ends, and
 * writes one after each step.
 */
#include <stdio.h>
#include <ttmem/ttmem.h>

static void step(const char *done)
{
    char line[16];

    printf("%s\n", done);
    (void)fflush(stdout);
    if (!fgets(line, sizeof(line), stdin))
        return;
}

static void allocate(uint64_t id, uint8_t region, uint64_t bytes, uint64_t program)
{
    const struct ttmem_allocation allocation = {
        .id = id,
        .address = 4096 * id,
        .bytes = bytes,
        .allocator = 0,
        .devices = 0,
        .region = region,
        .program = program,
    };

    ttmem_alloc(&allocation);
}

int main(void)
{
    const struct ttmem_device device = {
        .id = 0,
        .arch = 2,
        .core_count = 64,
        .bank_bytes = {[TTMEM_DRAM] = 1ull << 30, [TTMEM_L1] = 1 << 20},
        .bank_count = {[TTMEM_DRAM] = 12, [TTMEM_L1] = 64},
        .board = "n150",
    };
    const struct ttmem_failed_allocation failure = {
        .wanted_bytes = 32 << 20,
        .bank_wanted_bytes = 512 << 10,
        .bank_free_bytes = 640 << 10,
        .bank_largest_bytes = 320 << 10,
        .region = TTMEM_L1,
        .kind = TTMEM_OUT_OF_MEMORY,
    };

    ttmem_device_open(&device);
    ttmem_context_push("model_init");
    for (uint64_t id = 1; id <= 4; id++)
        allocate(id, TTMEM_DRAM, 2 << 20, 0);
    ttmem_context_pop();
    ttmem_name(0, TTMEM_DRAM, 4, "layer_0_weights", NULL);
    for (uint64_t id = 10; id < 90; id++)
        allocate(id, TTMEM_L1, 512 << 10, 0);
    for (uint64_t part = 0; part < 3; part++)
        allocate(part, TTMEM_CB, 4096, 77);
    step("allocated");
    ttmem_failure(&failure);
    step("failed");
    ttmem_free(0, TTMEM_L1, 10);
    ttmem_device_close(0);
    step("closed");
    return 0;
}
