/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dashboard_testing - a machine, its processes and their lives, made up for tests of the dashboard.
 */
#ifndef TTM_TESTS_UNIT_DASHBOARD_TESTING_H
#define TTM_TESTS_UNIT_DASHBOARD_TESTING_H

#include "testing.h"

#include "base/clock.h"
#include "dashboard/view.h"

#define MIB (1024ull * 1024)
#define GIB (1024 * MIB)
#define DEVICES_MAX 32

static struct ttm_facts_device made_devices[DEVICES_MAX];
static struct ttm_facts_process made_processes[3];
static struct ttm_facts made_facts;

static inline struct ttm_value made_value(uint64_t number)
{
    return (struct ttm_value){TTM_VALID, number};
}

static inline struct ttm_facts_usage made_usage(uint64_t bytes)
{
    return (struct ttm_facts_usage){true, bytes, bytes - bytes / 16};
}

static inline void make_device(unsigned id)
{
    struct ttm_facts_device *device = &made_devices[id];

    *device = (struct ttm_facts_device){.id = id, .place = id % 2 ? "remote" : ""};
    (void)snprintf(device->name, sizeof(device->name), "n300 %c", id % 2 ? 'R' : 'L');
    if (id % 2 == 0) {
        device->temperature_mc = made_value(54312 + id * 1000);
        device->temperature_limit_mc = made_value(75000);
        device->power_uw = made_value(12000000);
        device->power_limit_uw = made_value(100000000);
        device->aiclk_mhz = made_value(500);
        device->link_in_bytes_per_s = made_value(1288490189);
        device->link_out_bytes_per_s = made_value(35 * MIB);
    }
    device->capacity_bytes[TTM_REGION_DRAM] = 12 * GIB;
    device->capacity_bytes[TTM_REGION_L1] = 85 * MIB;
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
        device->regions[r].is_known = true;
    device->regions[TTM_REGION_DRAM] = made_usage((id % 12 + 1) * GIB);
    device->regions[TTM_REGION_L1] = made_usage(42 * MIB);
    device->regions[TTM_REGION_CB] = made_usage(3 * MIB);
    device->regions[TTM_REGION_KERNEL] = made_usage(2 * MIB);
}

/* So many devices and three processes: tracked, of the runtime, and one that does not report. */
static inline void make_facts(size_t devices, uint64_t time_s)
{
    for (unsigned i = 0; i < devices; i++)
        make_device(i);
    made_processes[0] = (struct ttm_facts_process){
        .pid = 4242,
        .user = "user1",
        .devices = "0,1",
        .reports = "tracked",
        .command = "python decode.py --layers 32 --batch 8",
    };
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
        made_processes[0].regions[r].is_known = true;
    made_processes[0].regions[TTM_REGION_DRAM] = made_usage(4 * GIB);
    made_processes[0].regions[TTM_REGION_L1] = made_usage(45 * MIB);
    made_processes[0].regions[TTM_REGION_CB] = made_usage(3 * MIB);
    made_processes[1] = (struct ttm_facts_process){
        .pid = 4310,
        .user = "user2",
        .devices = "1",
        .reports = "runtime",
        .command = "python serve.py",
    };
    made_processes[1].regions[TTM_REGION_DRAM] = made_usage(512 * MIB);
    made_processes[2] = (struct ttm_facts_process){
        .pid = 4399, .user = "?", .devices = "0", .reports = "no", .command = "bench --device 0"};
    made_facts = (struct ttm_facts){
        .time_ns = time_s * TTM_NS_PER_S,
        .server = devices > 0 ? TTM_SERVER_OK : TTM_SERVER_NONE,
        .server_count = devices > 0,
        .devices = made_devices,
        .device_count = devices,
        .processes = made_processes,
        .process_count = devices > 0 ? 3 : 0,
    };
}

/* ---- lives ---- */

static struct ttm_device_row made_rows[2];
static struct ttm_answer_origin made_origins[2];
static struct ttm_answer_site made_sites[4];
static uint16_t made_on_both[] = {0, 1}, made_on_first[] = {0};
static struct ttm_life_row made_lives[16];
static struct ttm_answer_process made_process;
static struct ttm_answer made_answer;

static inline void make_life(uint32_t site, uint64_t address, uint64_t footprint, uint64_t age_s)
{
    made_lives[made_process.live_count++] = (struct ttm_life_row){
        .id = made_process.live_count + 1,
        .address = address,
        .bytes = footprint - 24,
        .footprint_bytes = footprint,
        .age_ns = age_s * TTM_NS_PER_S,
        .site = site,
    };
}

/*
 * Banks of 1 MiB: 4 of L1, 2 of DRAM. cache_kv has three buffers in L1 of both devices, weights one
 * in DRAM of the first, and something of which nothing is known another in L1.
 */
static inline struct ttm_origins_source make_lives(void)
{
    made_origins[0] = (struct ttm_answer_origin){
        .number = 7,
        .context = (char *)"decode",
        .name = (char *)"",
        .thread = (char *)"MainThread",
        .operation = (char *)"ttnn.zeros",
        .python = (char *)"decode.py:28:cache_kv\ndecode.py:61:main",
        .native = (char *)"ttnn::zeros\ntt::tt_metal::Buffer::create",
    };
    made_origins[1] = (struct ttm_answer_origin){
        .number = 9,
        .context = (char *)"",
        .name = (char *)"weights",
        .thread = (char *)"",
        .operation = (char *)"",
        .python = (char *)"",
        .native = (char *)"",
    };
    made_sites[0] = (struct ttm_answer_site){
        .origin = 1, .region = TTM_REGION_L1, .device_count = 2, .devices = made_on_both};
    made_sites[1] = (struct ttm_answer_site){
        .origin = 2, .region = TTM_REGION_DRAM, .device_count = 1, .devices = made_on_first};
    made_sites[2] = (struct ttm_answer_site){
        .origin = 0, .region = TTM_REGION_L1, .device_count = 1, .devices = made_on_first};
    made_sites[3] = (struct ttm_answer_site){.origin = 1,
                                             .region = TTM_REGION_L1,
                                             .flags = TTM_SITE_ALIAS,
                                             .device_count = 1,
                                             .devices = made_on_first};
    made_process = (struct ttm_answer_process){
        .row = {.pid = 4242, .start_ns = 1, .has_lives = true, .source = TTM_SOURCE_TRACKED},
        .origins = made_origins,
        .origin_count = 2,
        .sites = made_sites,
        .site_count = 4,
        .lives = made_lives,
    };
    make_life(0, 0x100000, 4 * 0x10000, 90); /* 64 KiB a bank */
    make_life(0, 0x120000, 4 * 0x10000, 60);
    make_life(0, 0x140000, 4 * 0x20000, 30);
    make_life(1, 0x400, 2 * 0x40000, 100);
    make_life(2, 0x180000, 4 * 0x8000, 10);
    make_life(3, 0x100000, 4 * 0x10000, 5); /* a view of the first: adds nothing */
    for (unsigned i = 0; i < 2; i++) {
        made_rows[i] = (struct ttm_device_row){.id = (uint16_t)i};
        made_rows[i].capacity_bytes[TTM_REGION_L1] = 4 * MIB;
        made_rows[i].bank_count[TTM_REGION_L1] = 4;
        made_rows[i].capacity_bytes[TTM_REGION_DRAM] = 2 * MIB;
        made_rows[i].bank_count[TTM_REGION_DRAM] = 2;
    }
    made_answer = (struct ttm_answer){
        .devices = made_rows, .device_count = 2, .processes = &made_process, .process_count = 1};
    return (struct ttm_origins_source){.answers = &made_answer,
                                       .answer_count = 1,
                                       .lives = &made_answer,
                                       .lives_count = 1,
                                       .devices.is_all = true};
}

#endif /* TTM_TESTS_UNIT_DASHBOARD_TESTING_H */
