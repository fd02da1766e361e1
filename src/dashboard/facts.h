/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facts - what the dashboard is told of one moment: plain data.
 *
 * Whoever feeds it owns all of it; the dashboard copies what it keeps.
 */
#ifndef TTM_DASHBOARD_FACTS_H
#define TTM_DASHBOARD_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "telemetry/attribute.h"
#include "wire/region.h"

#define TTM_FACTS_NAME_SIZE 32
#define TTM_FACTS_COMMAND_SIZE 256

/* Of one region, of a device or of a process. */
struct ttm_facts_usage {
    bool is_known;
    uint64_t used_bytes;      /* what is taken of it; where that is not known, what was asked for */
    uint64_t requested_bytes; /* what programs asked for */
};

struct ttm_facts_device {
    unsigned id;
    char name[TTM_FACTS_NAME_SIZE]; /* "n300 L"; "" when not known */
    const char *place; /* "remote", "removed", "in reset", "hangs", "no card"; "": fine */
    struct ttm_value temperature_mc, temperature_limit_mc;
    struct ttm_value power_uw, power_limit_uw;
    struct ttm_value aiclk_mhz;
    struct ttm_value link_in_bytes_per_s, link_out_bytes_per_s; /* of PCIe, seen from the chip */
    uint64_t age_ns; /* of these, where they are old because the chip hangs; else 0 */
    uint64_t capacity_bytes[TTM_REGION_COUNT]; /* 0: not known */
    uint64_t l1_reserved_bytes;                /* what no program gets of L1; 0: not known */
    uint64_t cb_registered_bytes;              /* circular buffers of all programs at hand */
    struct ttm_facts_usage regions[TTM_REGION_COUNT];
};

struct ttm_facts_process {
    int32_t pid;                       /* 0: not visible from here */
    char user[TTM_FACTS_NAME_SIZE];    /* "?" when not known */
    char devices[TTM_FACTS_NAME_SIZE]; /* "0,2,4-7" */
    struct ttm_facts_usage regions[TTM_REGION_COUNT];
    const char *reports; /* "tracked", "disabled", "runtime", "no" */
    char command[TTM_FACTS_COMMAND_SIZE];
};

enum ttm_server_state {
    TTM_SERVER_NONE,    /* none is running */
    TTM_SERVER_OK,      /* all that were found answer */
    TTM_SERVER_SILENT,  /* there is one, and it does not answer */
    TTM_SERVER_GONE,    /* there was one, and it has gone */
    TTM_SERVER_REFUSED, /* it does not want us, for the reason in 'server_text' */
};

struct ttm_facts {
    uint64_t time_ns;      /* by the monotonic clock */
    uint64_t wall_time_ns; /* 0: not shown */
    enum ttm_server_state server;
    size_t server_count;
    char server_text[128];
    uint64_t lost_events;                   /* of the processes that report */
    const struct ttm_facts_device *devices; /* by id */
    size_t device_count;
    bool is_narrowed; /* to some devices */
    const struct ttm_facts_process *processes;
    size_t process_count;
    size_t foreign_count; /* holders that cannot be seen from here */
    size_t hidden_count;  /* processes that may hold a device and may not be looked into */
};

/* What takes room in a core's L1; TRACE lives in DRAM. */
static inline uint64_t ttm_facts_l1_bytes(const struct ttm_facts_device *device)
{
    return device->regions[TTM_REGION_L1].used_bytes +
           device->regions[TTM_REGION_L1_SMALL].used_bytes +
           device->regions[TTM_REGION_CB].used_bytes +
           device->regions[TTM_REGION_KERNEL].used_bytes;
}

static inline uint64_t ttm_facts_dram_bytes(const struct ttm_facts_device *device)
{
    return device->regions[TTM_REGION_DRAM].used_bytes +
           device->regions[TTM_REGION_TRACE].used_bytes;
}

#endif /* TTM_DASHBOARD_FACTS_H */
