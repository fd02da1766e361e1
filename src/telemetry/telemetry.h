/* SPDX-License-Identifier: Apache-2.0 */
/*
 * telemetry - the chips of this machine, read again and again without making anybody wait.
 *
 * A chip that is being reset holds up whoever reads of it. So each chip has a thread
 * that does nothing but read it; who looks gets what was last read and how old it
 * is. A thread that hangs in the driver is left behind when the object is freed, and
 * ends by itself. Listing the chips does not ask the driver; it is done by the one
 * who looks.
 *
 * One caller at a time. Chips come and go: one that was seen stays listed, as removed.
 */
#ifndef TTM_TELEMETRY_TELEMETRY_H
#define TTM_TELEMETRY_TELEMETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "telemetry/chip.h"

#define TTM_TELEMETRY_CHIPS_MAX 256

struct ttm_telemetry;

struct ttm_telemetry_chip {
    struct ttm_chip chip;
    int metal_id;     /* what TT-Metal calls it: its place by PCI address; -1 when removed */
    bool has_reading; /* else 'chip' has address and number alone */
    bool is_stalled;  /* a read takes long: the chip is being reset, or hangs */
    uint64_t age_ns;  /* of the reading */
    enum ttm_heartbeat_state heartbeat;
    struct ttm_value bytes_in_per_s, bytes_out_per_s; /* over the link, see ttm_link_rate() */
};

/* Sorted by the driver's number. */
struct ttm_telemetry_view {
    char driver[TTM_CHIP_NAME_SIZE]; /* its version, "2.10.0"; "" when it is not loaded */
    struct ttm_telemetry_chip *chips;
    size_t count;
};

/*
 * Begins to read every 'interval_ms', or once where that is 0. 'root' is put before
 * /sys and /proc ("" for the machine itself). Returns 0 or -ENOMEM.
 */
int ttm_telemetry_new(const char *root, unsigned interval_ms, struct ttm_telemetry **ret);

/* Never waits. NULL is fine. */
void ttm_telemetry_free(struct ttm_telemetry *telemetry);

/*
 * Waits until every chip that is listed now has been read at least once, at most
 * 'timeout_ms'. Returns whether that is so.
 */
bool ttm_telemetry_wait(struct ttm_telemetry *telemetry, unsigned timeout_ms);

/* Copies what is known now. Returns 0 or -ENOMEM; release it with ttm_telemetry_view_done(). */
int ttm_telemetry_look(struct ttm_telemetry *telemetry, struct ttm_telemetry_view *ret);
void ttm_telemetry_view_done(struct ttm_telemetry_view *view);

/* How many Tenstorrent functions PCI lists, with or without a driver. */
size_t ttm_telemetry_count_pci(const char *root);

#endif /* TTM_TELEMETRY_TELEMETRY_H */
