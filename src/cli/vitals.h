/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vitals - how a device fares, as all commands tell it: state, sensors, limits.
 *
 * Reads what a machine knows already; never a file.
 */
#ifndef TTM_CLI_VITALS_H
#define TTM_CLI_VITALS_H

#include <stdbool.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/machine.h"

/* The chip behind the device; NULL without a card, and of a remote chip: it is read through another. */
const struct ttm_chip *ttm_vitals_chip(const struct ttm_machine_device *device);

/* Absent unless the chip is fine; 'device' may be NULL. */
struct ttm_value ttm_vitals_sensor(const struct ttm_machine_device *device, enum ttm_sensor which);
struct ttm_value ttm_vitals_limit(const struct ttm_machine_device *device, enum ttm_limit which);

/* What crosses its PCIe link, in bytes per second; absent likewise. */
struct ttm_value ttm_vitals_traffic(const struct ttm_machine_device *device,
                                    enum ttm_counter_direction direction);

/* A chip that is not read in time is most likely being reset. */
bool ttm_vitals_does_answer(const struct ttm_machine_device *device);

/* "ok", "reset", "removed"; NULL without a card. */
const char *ttm_vitals_state(const struct ttm_machine_device *device);

/* In the place of sensors: "remote", "removed", "in reset", "hangs", "reading", "no card"; "": fine. */
const char *ttm_vitals_trouble(const struct ttm_machine_device *device);

/* "12/100 W": value, limit where there is one, and unit; nothing when the value is not valid. */
void ttm_vitals_put(struct ttm_text *out, struct ttm_value value, struct ttm_value limit,
                    uint64_t per_unit, const char *unit);

/* "telemetry": { … } and its age, with null for what is not known. 'device' may be NULL. */
void ttm_vitals_json(struct ttm_json *json, const struct ttm_machine_device *device);

/* A number with so many decimals, or null. */
void ttm_vitals_json_value(struct ttm_json *json, const char *key, struct ttm_value value,
                           unsigned decimals);

#endif /* TTM_CLI_VITALS_H */
