/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/vitals.h"

#include <inttypes.h>

static const struct ttm_value nothing = {.validity = TTM_ABSENT};

const struct ttm_chip *ttm_vitals_chip(const struct ttm_machine_device *device)
{
    return device && device->chip && !device->is_remote ? &device->chip->chip : NULL;
}

struct ttm_value ttm_vitals_sensor(const struct ttm_machine_device *device, enum ttm_sensor which)
{
    const struct ttm_chip *chip = ttm_vitals_chip(device);

    return chip && chip->state == TTM_CHIP_OK ? chip->sensors[which] : nothing;
}

struct ttm_value ttm_vitals_limit(const struct ttm_machine_device *device, enum ttm_limit which)
{
    const struct ttm_chip *chip = ttm_vitals_chip(device);

    return chip ? chip->limits[which] : nothing;
}

struct ttm_value ttm_vitals_traffic(const struct ttm_machine_device *device,
                                    enum ttm_counter_direction direction)
{
    const struct ttm_chip *chip = ttm_vitals_chip(device);

    if (!chip || chip->state != TTM_CHIP_OK || !ttm_vitals_does_answer(device))
        return nothing;
    return direction == TTM_INTO_CHIP ? device->chip->bytes_in_per_s
                                      : device->chip->bytes_out_per_s;
}

bool ttm_vitals_does_answer(const struct ttm_machine_device *device)
{
    return !device->chip || (device->chip->has_reading && !device->chip->is_stalled);
}

const char *ttm_vitals_state(const struct ttm_machine_device *device)
{
    if (!device->chip)
        return NULL;
    if (device->chip->chip.state == TTM_CHIP_REMOVED)
        return "removed";
    return device->chip->chip.state == TTM_CHIP_RESET || !ttm_vitals_does_answer(device) ? "reset"
                                                                                         : "ok";
}

const char *ttm_vitals_trouble(const struct ttm_machine_device *device)
{
    if (!device->chip)
        return "no card";
    if (device->chip->chip.state == TTM_CHIP_REMOVED)
        return "removed";
    if (device->is_remote)
        return "remote";
    if (device->chip->is_stalled)
        return "hangs";
    if (!device->chip->has_reading)
        return "reading";
    return device->chip->chip.state == TTM_CHIP_RESET ? "in reset" : "";
}

void ttm_vitals_put(struct ttm_text *out, struct ttm_value value, struct ttm_value limit,
                    uint64_t per_unit, const char *unit)
{
    if (value.validity != TTM_VALID)
        return;
    ttm_text_format(out, "%" PRIu64, (value.number + per_unit / 2) / per_unit);
    if (limit.validity == TTM_VALID)
        ttm_text_format(out, "/%" PRIu64, limit.number / per_unit);
    ttm_text_format(out, " %s", unit);
}

void ttm_vitals_json_value(struct ttm_json *json, const char *key, struct ttm_value value,
                           unsigned decimals)
{
    if (value.validity == TTM_VALID)
        ttm_json_put_decimal(json, key, value.number, decimals);
    else
        ttm_json_put_null(json, key);
}

void ttm_vitals_json(struct ttm_json *json, const struct ttm_machine_device *device)
{
    static const struct {
        const char *key;
        enum ttm_sensor sensor;
        unsigned decimals;
    } values[] = {
        {"temperature_c", TTM_SENSOR_TEMPERATURE_MC, 3}, {"power_w", TTM_SENSOR_POWER_UW, 6},
        {"aiclk_mhz", TTM_SENSOR_AICLK_MHZ, 0},          {"axiclk_mhz", TTM_SENSOR_AXICLK_MHZ, 0},
        {"arcclk_mhz", TTM_SENSOR_ARCCLK_MHZ, 0},        {"voltage_mv", TTM_SENSOR_VOLTAGE_MV, 0},
        {"current_a", TTM_SENSOR_CURRENT_MA, 3},         {"fan_rpm", TTM_SENSOR_FAN_RPM, 0},
        {"thermal_trips", TTM_SENSOR_THERMAL_TRIPS, 0},
    };
    const struct ttm_chip *chip = ttm_vitals_chip(device);
    const bool is_read = chip && device->chip->has_reading;

    ttm_json_key(json, "telemetry");
    ttm_json_object_begin(json);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        ttm_vitals_json_value(json, values[i].key, ttm_vitals_sensor(device, values[i].sensor),
                              values[i].decimals);
    if (!is_read || device->chip->heartbeat == TTM_HEARTBEAT_UNKNOWN)
        ttm_json_put_null(json, "heartbeat_ok");
    else
        ttm_json_put_bool(json, "heartbeat_ok", device->chip->heartbeat == TTM_HEARTBEAT_OK);
    ttm_json_object_end(json);
    if (is_read)
        ttm_json_put_u64(json, "telemetry_age_ns", device->chip->age_ns);
    else
        ttm_json_put_null(json, "telemetry_age_ns");
}
