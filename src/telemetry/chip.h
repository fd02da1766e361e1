/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chip - what the driver tells of one chip with a PCI function.
 *
 * Class attributes, hwmon, PCIe link and counters, and who holds it. Never opens the
 * device: that would wake the chip and show up as a user of it. A read may take as
 * long as a reset of the chip; see telemetry.h for who waits.
 *
 * A chip is told by its PCI address. The driver's number is what stands behind
 * /dev/tenstorrent; the number that TT-Metal gives may differ.
 */
#ifndef TTM_TELEMETRY_CHIP_H
#define TTM_TELEMETRY_CHIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "telemetry/attribute.h"

#define TTM_CHIP_NAME_SIZE 32
#define TTM_CHIP_HOLDERS_MAX 256

/* With the unit in which the driver gives it. */
enum ttm_sensor {
    TTM_SENSOR_TEMPERATURE_MC,
    TTM_SENSOR_POWER_UW, /* of the chip's core, not of the board */
    TTM_SENSOR_VOLTAGE_MV,
    TTM_SENSOR_CURRENT_MA,
    TTM_SENSOR_FAN_RPM,
    TTM_SENSOR_AICLK_MHZ,
    TTM_SENSOR_AXICLK_MHZ,
    TTM_SENSOR_ARCCLK_MHZ,
    TTM_SENSOR_HEARTBEAT,
    TTM_SENSOR_THERMAL_TRIPS,
    TTM_SENSOR_COUNT
};

enum ttm_limit {
    TTM_LIMIT_TEMPERATURE_MC,
    TTM_LIMIT_POWER_UW,
    TTM_LIMIT_VOLTAGE_MV,
    TTM_LIMIT_CURRENT_MA,
    TTM_LIMIT_COUNT
};

/* PCIe counters: words that crossed the link since the last reset, modulo 2^32. */
enum ttm_counter_direction { TTM_INTO_CHIP, TTM_OUT_OF_CHIP };
#define TTM_LINK_COUNTERS 12
#define TTM_LINK_WORD_BYTES 32 /* by the driver's documentation */

struct ttm_link_counters {
    struct ttm_value words[TTM_LINK_COUNTERS];
    struct ttm_value heartbeat; /* at the same time; it falls when the chip is reset */
};

/* As the driver calls it: "mst_rd_data_word_received0". */
const char *ttm_link_counter_name(size_t counter);

enum ttm_chip_state {
    TTM_CHIP_OK,
    TTM_CHIP_RESET,   /* in reset: no sensor has a value at present */
    TTM_CHIP_REMOVED, /* it was there and has gone */
};

/* A process that has the chip open, by the driver's word. */
struct ttm_chip_holder {
    int32_t pid; /* the opener's; it may have ended and left the file to a child */
    uint32_t fd_count;
};

struct ttm_chip {
    char bdf[TTM_CHIP_NAME_SIZE]; /* "0000:41:00.0" */
    unsigned number;              /* of /dev/tenstorrent */
    enum ttm_chip_state state;
    bool is_identified; /* what does not change has been read since the last reset */
    bool is_too_hot;    /* the driver's temperatures of Wormhole are 2.4 % too high */

    const char *arch;                  /* "wormhole_b0"; "unknown" */
    char board[TTM_CHIP_NAME_SIZE];    /* "n300", "" when not known */
    char firmware[TTM_CHIP_NAME_SIZE]; /* of the bundle, "18.12.0.0"; "" */
    struct ttm_value asic_id;
    struct ttm_value board_id; /* the serial number */
    struct ttm_value limits[TTM_LIMIT_COUNT];

    struct ttm_value link_gen, link_gen_max; /* 1 to 7 */
    struct ttm_value link_width, link_width_max;
    struct ttm_value sensors[TTM_SENSOR_COUNT];
    struct ttm_link_counters counters;

    enum ttm_validity holders_validity; /* TTM_ABSENT: the driver is older than 2.5 */
    struct ttm_chip_holder holders[TTM_CHIP_HOLDERS_MAX];
    size_t holder_count;
    size_t foreign_fd_count; /* open files of processes outside our pid namespace */
};

/* What is told of a chip before the driver was asked: what PCI knows of it, which never waits. */
void ttm_chip_init(const char *root, struct ttm_chip *chip, const char *bdf, unsigned number);

/*
 * Reads anew what can change; after a reset all of it. 'bdf' and 'number' stay. A chip that is not there any more
 * is TTM_CHIP_REMOVED with everything else as it was last.
 */
void ttm_chip_read(const char *root, struct ttm_chip *chip);

/* ---- between two readings ---- */

/* Files of a chip that are kept open for the next glance. One thread. */
struct ttm_chip_files {
    uint64_t node; /* which class folder they are below: its inode; 0: none is open */
    int class_fd;
    int sensor_fds[TTM_SENSOR_COUNT]; /* -1: not kept */
    int pids_fd;                      /* -1: the driver is older than 2.5 */
};

/* To begin with, and after ttm_chip_files_close(). */
#define TTM_CHIP_FILES_NONE ((struct ttm_chip_files){0})

/* Opens them anew, after a reading; where that fails there is no glance. */
void ttm_chip_files_open(struct ttm_chip_files *files, const char *root,
                         const struct ttm_chip *chip);
void ttm_chip_files_close(struct ttm_chip_files *files);

/*
 * Reads anew what changes all the time: temperature, power, clock, heartbeat and
 * who holds the chip. Opens nothing; a whole reading opens fifty files. Returns false when
 * that is not enough: the chip has gone, came back, is in reset, or no files are open.
 */
bool ttm_chip_glance(const struct ttm_chip_files *files, const char *root, struct ttm_chip *chip);

/* Reads the counters of the link anew, and nothing else. 'files' are open. */
void ttm_chip_count(const struct ttm_chip_files *files, struct ttm_chip *chip);

/* What the link can carry one way, in bytes per second; 0 when that is not known. */
uint64_t ttm_link_capacity(const struct ttm_chip *chip);

/*
 * For how long a counter cannot have wrapped twice, whatever crosses the link; 0 when
 * that is not known.
 */
uint64_t ttm_link_unambiguous_ns(const struct ttm_chip *chip);

/*
 * What crossed the link since 'before' was read, in bytes per second. Absent where that
 * cannot be told or true: too much time has passed, the chip was reset in between, or it is more
 * than the link can carry.
 */
struct ttm_value ttm_link_rate(const struct ttm_link_counters *before, const struct ttm_chip *chip,
                               uint64_t elapsed_ns, enum ttm_counter_direction direction);

/*
 * The same in words of the driver's counters, whatever it is. Counters that are not
 * valid in both are left out. Returns TTM_VALID when any was.
 */
struct ttm_value ttm_link_traffic(const struct ttm_link_counters *before,
                                  const struct ttm_link_counters *after,
                                  enum ttm_counter_direction direction);

/* Whether the firmware is alive. */
enum ttm_heartbeat_state { TTM_HEARTBEAT_UNKNOWN, TTM_HEARTBEAT_OK, TTM_HEARTBEAT_DEAD };

/* Zero-initialised. */
struct ttm_heartbeat {
    bool has_value;
    uint64_t value;
    uint64_t first_ns;   /* when it was first seen */
    uint64_t changed_ns; /* when it was last seen to change */
};

/*
 * Takes a reading at 'now_ns', by a clock that never goes back. Unknown until two
 * readings lie more than 2 s apart; dead once it did not change for that long.
 */
enum ttm_heartbeat_state ttm_heartbeat_take(struct ttm_heartbeat *heartbeat, struct ttm_value value,
                                            uint64_t now_ns);

#endif /* TTM_TELEMETRY_CHIP_H */
