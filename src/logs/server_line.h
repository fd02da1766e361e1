/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_line - one line of the original server's standard output.
 *
 *   ✓ [PID 42] Allocated 4096 bytes of L1 on device 0 (buffer_id=0x18b20, ref_count=2)
 *   ✗ [PID 42] Freed buffer 0x18b20 on device 0 (4096 bytes, ref_count=1 remaining)
 *   ✗ [PID 42] Freed buffer 0x18b20 on device 0 (4096 bytes, FINAL)
 *   ⚠ [PID 42] Deallocation for unknown buffer 0x18b20 on device 0 (allocated before …)
 *   ✓ [CB_ALLOC] Device 0: +0.25 MB (Total: 0.25 MB)
 *   ✗ [KERNEL_UNLOAD] Fabric kernel on Device 0: -0.05 MB (Total: 0.1 MB)
 *      PID 42 is dead, removing its buffers...
 *   ⚠ 12 lines lost: this reader is too slow                    ('tt-mem tail' alone)
 *
 * Ids are decimal in older logs. 'tt-mem tail' prints the same lines with more at their
 * end, which is read too. Pure: no memory is taken, nothing is kept.
 */
#ifndef TTM_LOGS_SERVER_LINE_H
#define TTM_LOGS_SERVER_LINE_H

#include <stddef.h>
#include <stdint.h>

enum ttm_server_event {
    TTM_LINE_ALLOCATED,
    TTM_LINE_FREED,
    TTM_LINE_UNKNOWN_FREE, /* of what the server did not know */
    TTM_LINE_PROCESS_END,
    TTM_LINE_LOST, /* lines that are not in the log, of whichever process */
};

/* What a line says of the references that are left, which it does not always. */
enum ttm_server_left {
    TTM_LEFT_UNSAID,
    TTM_LEFT_SOME,
    TTM_LEFT_NONE,     /* FINAL */
    TTM_LEFT_REPLACED, /* 'tt-mem tail' alone: its id was born again */
    TTM_LEFT_CLOSED,   /* likewise: its device was closed */
};

struct ttm_server_line {
    enum ttm_server_event event;
    int32_t pid;     /* 0: the line does not say */
    uint16_t device; /* not of the end of a process, nor of lost lines */
    int region;      /* enum ttm_region, -1: the line does not say */
    uint8_t kind;    /* enum ttm_kernel_kind */
    enum ttm_server_left left;
    uint64_t id;    /* 0: the line does not say, as of circular buffers in old logs */
    uint64_t bytes; /* of circular buffers and kernels from megabytes, cut to a few digits */
    uint64_t lost;  /* lines */
};

/*
 * 'line' without its end. Returns 1 with an event; 0 for a line that tells of none, as
 * statistics and frames around them; -EBADMSG for one that is broken.
 */
int ttm_server_line_decode(const char *line, size_t length, struct ttm_server_line *ret);

#endif /* TTM_LOGS_SERVER_LINE_H */
