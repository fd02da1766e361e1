/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor_render - totals per device at one moment: a screen, JSON or CSV.
 */
#ifndef TTM_CLI_MONITOR_RENDER_H
#define TTM_CLI_MONITOR_RENDER_H

#include "base/text.h"
#include "cli/machine.h"
#include "cli/terminal.h"
#include "dashboard/origins.h"
#include "query/answer.h"
#include "wire/request.h"

/* What is shown of one moment. */
struct ttm_monitor_look {
    const struct ttm_answer *answer;
    const struct ttm_machine *machine; /* how the devices fare; NULL: they are simulated */
    const struct ttm_device_filter *devices;
    const struct ttm_origins *origins; /* who holds most; NULL: not known */
};

void ttm_monitor_text(const struct ttm_monitor_look *look, const struct ttm_terminal *terminal,
                      struct ttm_text *out);

/* One document, "tt-mem/monitor/1", on one line. */
void ttm_monitor_json(const struct ttm_monitor_look *look, struct ttm_text *out);

#define TTM_MONITOR_CSV_HEADER                                                                     \
    "time_ns,device,arch,region,bytes,footprint_bytes,count,capacity_bytes,runtime_bytes,"         \
    "temperature_c,power_w,aiclk_mhz,voltage_mv,current_a,fan_rpm\n"

/* A row for each device and region. What is not known is empty. */
void ttm_monitor_csv(const struct ttm_monitor_look *look, struct ttm_text *out);

#endif /* TTM_CLI_MONITOR_RENDER_H */
