/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine - the devices of this machine, and what is known of their memory from all sides.
 *
 * The driver tells which chips there are and how they fare, servers tell what the
 * programs that report have allocated, and the runtime's shared memory tells of
 * those that do not. A process that a server knows is never counted from the
 * runtime as well.
 *
 * A device's id is the driver's number, as in /dev/tenstorrent. TT-Metal numbers
 * chips by their PCI address instead, and that is what programs report; both are
 * kept, and they differ only where the driver found the cards in another order.
 */
#ifndef TTM_CLI_MACHINE_H
#define TTM_CLI_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "query/answer.h"
#include "query/locate.h"
#include "telemetry/telemetry.h"
#include "telemetry/upstream.h"
#include "wire/region.h"

/* Of one region, on a device or of a process. */
struct ttm_usage {
    bool is_known;
    bool has_footprint; /* the runtime tells neither footprint nor count */
    uint64_t bytes;     /* what was asked for */
    uint64_t
        footprint_bytes; /* of all allocations; of circular buffers that is no use: they share */
    uint64_t count;
    uint64_t runtime_bytes; /* the part of 'bytes' that the runtime alone counts */
    uint64_t used_bytes;    /* what is taken, see ttm_device_used(), with what the runtime counts */
    uint64_t registered_bytes; /* of circular buffers: what all programs at hand have, the union */
};

struct ttm_machine_device {
    unsigned id;
    int metal_id;                          /* -1: it is removed */
    bool is_remote;                        /* reached through 'chip', which is another device's */
    const struct ttm_telemetry_chip *chip; /* NULL: known by programs alone */
    const char *arch;                      /* "unknown" */
    char board[TTM_CHIP_NAME_SIZE];        /* "" when not known */
    uint64_t capacity_bytes[TTM_REGION_COUNT]; /* 0 when not known */
    uint64_t l1_reserved_bytes; /* of firmware and the like; 0 when no program has told its banks */
    struct ttm_usage regions[TTM_REGION_COUNT];
};

#define TTM_MACHINE_SERVERS_MAX 64
#define TTM_MACHINE_SILENT_MAX 8

/* Fill the first three members, and ttm_machine_join() makes the devices of them. */
struct ttm_machine {
    struct ttm_telemetry_view telemetry;
    struct ttm_upstream upstream;
    struct ttm_answer answers[TTM_MACHINE_SERVERS_MAX]; /* totals, one of each server */
    size_t answer_count;

    struct ttm_machine_device *devices; /* sorted by id */
    size_t device_count;

    /* Servers that did not answer in time, and are not asked again by ttm_machine_renew(). */
    char silent_paths[TTM_MACHINE_SILENT_MAX][TTM_SOCKET_PATH_SIZE];
    size_t silent_count;
};

/*
 * Reads below 'root', for at most a second, and asks the server at 'socket_path', or
 * where that is NULL all that are found. Returns TTM_EXIT_OK, or says what is wrong
 * and returns what to exit with. Release it in any case.
 */
int ttm_machine_read(const char *root, const char *socket_path, struct ttm_machine *ret);
void ttm_machine_done(struct ttm_machine *machine);

/*
 * For who looks again and again: asks every server there is, says nothing of those that
 * do not answer, and joins anew. The runtime's files are those that the caller has put
 * into 'upstream'; chips are read once and kept. Returns 0 or a negative errno.
 */
int ttm_machine_renew(const char *root, struct ttm_machine *machine);

/* Returns 0 or -ENOMEM. */
int ttm_machine_join(struct ttm_machine *machine);

/* TTMEM_ROOT, or "". */
const char *ttm_machine_root(void);

/* The server's row of that process, or NULL; one in which tracking is off is not tracked. */
const struct ttm_answer_process *ttm_machine_tracked(const struct ttm_machine *machine,
                                                     int32_t pid);

/* The device that programs call so, or NULL. */
struct ttm_machine_device *ttm_machine_by_metal_id(const struct ttm_machine *machine, int metal_id);

/*
 * Whether the server means another chip than the one that has this number now: TT-Metal
 * counts anew when a card has gone, and the server still has the old one.
 */
bool ttm_machine_is_other(const struct ttm_machine_device *device,
                          const struct ttm_device_row *row);

/* The device of the driver's number, or NULL. */
struct ttm_machine_device *ttm_machine_by_id(const struct ttm_machine *machine, unsigned id);

/* The device that a file of the runtime is about, or NULL when that cannot be told. */
struct ttm_machine_device *ttm_machine_of_file(const struct ttm_machine *machine,
                                               const struct ttm_upstream_file *file);

/* The region of the runtime's. */
enum ttm_region ttm_machine_region(enum ttm_upstream_region region);

void ttm_usage_add_totals(struct ttm_usage *usage, const struct ttm_device_totals *totals,
                          enum ttm_region region);
void ttm_usage_add_runtime(struct ttm_usage *usage, uint64_t bytes);

/* Of circular buffers: "resident_bytes" and "registered_bytes"; null when the runtime is the source. */
void ttm_usage_put_cb_json(struct ttm_json *json, const struct ttm_usage *usage);

#endif /* TTM_CLI_MACHINE_H */
