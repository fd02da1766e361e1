# SPDX-License-Identifier: Apache-2.0
"""The original protocol, message by message, in each of its layouts."""

import pytest
from support import (
    APPLICATION,
    DEVICE_INFO_RESPONSE,
    DISPATCH,
    DRAM,
    FABRIC,
    L1,
    L1_SMALL,
    LAYOUTS,
    RESPONSE,
    SYSTEM_MEMORY,
    TRACE,
    Server,
)

layouts = pytest.mark.parametrize("layout", LAYOUTS)

REGION_FIELDS = {
    DRAM: "dram_allocated",
    L1: "l1_allocated",
    L1_SMALL: "l1_small_allocated",
    TRACE: "trace_allocated",
}


@layouts
def test_alloc_and_free_are_counted_per_device_and_region(server: Server, layout: int) -> None:
    with server.client(layout) as client:
        for device in (0, 3):
            for region in range(5):
                client.alloc(device, 1000 + 100 * device + region, 0x1000 + region, region)
        for device in (0, 3):
            answer = client.query(device)
            for region, field in REGION_FIELDS.items():
                assert answer[field] == 1000 + 100 * device + region
        client.free(3, 0x1000 + L1)
        assert client.query(3)["l1_allocated"] == 0
        assert client.query(3)["dram_allocated"] == 1300
        assert client.query(0)["l1_allocated"] == 1001
    assert server.bytes(0) == {
        "DRAM": 1000,
        "L1": 1001,
        "SYSTEM_MEMORY": 1002,
        "L1_SMALL": 1003,
        "TRACE": 1004,
    }
    server.check()


@layouts
def test_system_memory_is_a_region_of_its_own(server: Server, layout: int) -> None:
    with server.client(layout) as client:
        client.alloc(0, 4096, 1, SYSTEM_MEMORY)
        answer = client.query()
        assert [answer[field] for field in REGION_FIELDS.values()] == [0, 0, 0, 0]
        assert server.bytes() == {"SYSTEM_MEMORY": 4096}
        client.free(0, 1)
        client.sync()
        assert server.bytes() == {}


@layouts
def test_free_matches_any_buffer_region_and_no_other(server: Server, layout: int) -> None:
    with server.client(layout) as client:
        for region in range(5):
            client.alloc(0, 10, 0x40 + region, region)
        client.cb_alloc(0, 100, 0x50)
        client.kernel_load(0, 1000, 0x51)
        for region in range(5):
            client.free(0, 0x40 + region)
        client.free(0, 0x50)
        client.free(0, 0x51)
        client.sync()
        assert server.bytes() == {"CB": 100, "KERNEL": 1000}
        status = server.check()
        assert status["frees"] == 5
        assert status["unknown_frees"] == 2


@layouts
def test_a_free_that_fits_two_regions_ends_the_newest_and_is_counted(
    server: Server, layout: int
) -> None:
    with server.client(layout) as client:
        client.alloc(0, 100, 0x10, L1)
        client.alloc(0, 30, 0x10, DRAM)
        client.free(0, 0x10)
        client.sync()
        assert server.bytes() == {"L1": 100}
        assert server.status()["ambiguous_frees"] == 1
        client.free(0, 0x10)
        client.sync()
        assert server.bytes() == {}
        assert server.check()["ambiguous_frees"] == 1


@layouts
def test_an_address_allocated_again_replaces_and_is_a_finding(server: Server, layout: int) -> None:
    with server.client(layout) as client:
        client.alloc(0, 1000, 0x999)
        client.alloc(0, 9000, 0x999)
        assert client.query()["dram_allocated"] == 9000
        assert server.regions()["DRAM"]["count"] == 1
        client.free(0, 0x999)
        assert client.query()["dram_allocated"] == 0
        status = server.check()
        assert (status["replaced"], status["unknown_frees"]) == (1, 0)
        (process,) = server.dump()["processes"]
        assert [(f["kind"], f["count"]) for f in process["findings"]] == [("replaced", 1)]


@layouts
def test_frees_of_the_unknown_change_nothing_and_are_counted(server: Server, layout: int) -> None:
    with server.client(layout) as client:
        client.alloc(0, 10, 1)
        client.cb_alloc(0, 20, 2)
        client.kernel_load(0, 30, 3)
        before = (client.query(), server.bytes())
        client.free(0, 99)
        client.free(1, 1)  # the id of another device
        client.cb_free(0, 20, 99)
        client.cb_free(0, 10, 1)  # the id of a buffer
        client.kernel_unload(0, 30, 99)
        client.kernel_unload(0, 20, 2)
        after = client.query()
        before[0]["timestamp"] = after["timestamp"] = 0
        assert (after, server.bytes()) == before
        assert server.check()["unknown_frees"] == 6
        (process,) = server.dump()["processes"]
        assert process["unknown_frees"] == 6
        assert process["complete"] is False and process["why_incomplete"]


@layouts
def test_circular_buffers_are_counted_once_each(server: Server, layout: int) -> None:
    with server.client(layout) as client:
        client.cb_alloc(0, 5000, 0x18B20)
        client.cb_alloc(0, 5000, 0x18B20)  # again at the same address: not twice the bytes
        client.cb_alloc(0, 700, 0x20000)
        client.sync()
        assert server.bytes() == {"CB": 5700}
        if layout == 144:
            assert client.query()["cb_allocated"] == 5700
        client.cb_free(0, 0, 0x18B20)  # the size of the message means nothing
        client.cb_free(0, 2**62, 0x20000)
        client.sync()
        assert server.bytes() == {}
        client.cb_free(0, 5000, 0x18B20)
        if layout == 144:
            assert client.query()["cb_allocated"] == 0
        client.sync()
        assert server.check()["unknown_frees"] == 1


@layouts
def test_kernels_are_counted_by_kind(server: Server, layout: int) -> None:
    with server.client(layout) as client:
        client.kernel_load(0, 100, 1, APPLICATION)
        client.kernel_load(0, 2000, 2, FABRIC)
        client.kernel_load(0, 30000, 3, DISPATCH)
        client.sync()
        if layout == 144:
            assert client.query()["kernel_allocated"] == 32100
        (process,) = server.dump()["processes"]
        kernels = process["devices"][0]["regions"]["KERNEL"]
        assert kernels["remaining_bytes"] == 32100
        assert kernels["application_bytes"] == 100
        assert kernels["fabric_bytes"] == 2000
        assert kernels["dispatch_bytes"] == 30000
        client.kernel_unload(0, 2000, 2)  # the original UNLOAD carried no kind
        client.sync()
        (process,) = server.dump()["processes"]
        kernels = process["devices"][0]["regions"]["KERNEL"]
        assert (kernels["fabric_bytes"], kernels["remaining_bytes"]) == (0, 30100)
        server.check()


@layouts
def test_a_query_for_a_device_nobody_uses_is_answered_with_zeros(
    server: Server, layout: int
) -> None:
    with server.client(layout) as client:
        for device in (0, 7, -1, 1024, 99999, -(2**31), 2**31 - 1):
            answer = client.query(device)
            assert all(answer[field] == 0 for field in REGION_FIELDS.values())
    assert server.monitor()["devices"] == []


@layouts
def test_device_info_tells_the_count_and_each_device(make_server, layout: int) -> None:
    server = make_server().start("--board", "0=n150", "--board", "1=p150a")
    with server.client(layout) as client:
        client.alloc(5, 1, 1)
        count = client.device_info(-1)
        infos = {device: client.device_info(device) for device in (0, 1, 4, 5, 6, 1024, -7)}
        if layout == 72:  # which has no fields for it, but an answer must come
            assert all(info["type"] == DEVICE_INFO_RESPONSE for info in infos.values())
            return
        assert (count["num_devices"], count["is_available"]) == (6, 1)
        assert {d: i["is_available"] for d, i in infos.items()} == {
            0: 1,
            1: 1,
            4: 0,
            5: 1,
            6: 0,
            1024: 0,
            -7: 0,
        }
        assert infos[0]["arch_type"] == 2
        assert infos[0]["total_dram_size"] == 12 << 30
        assert infos[0]["num_dram_channels"] == 12
        assert infos[0]["dram_size_per_channel"] == 1 << 30
        assert infos[0]["l1_size_per_core"] == 1464 << 10
        assert infos[0]["total_l1_size"] == 72 * (1464 << 10)
        assert infos[1]["arch_type"] == 3
        assert infos[1]["total_dram_size"] == 8 * 4278190080
        assert infos[1]["dram_size_per_channel"] == 4278190080
        assert infos[5]["arch_type"] == 0 and infos[5]["total_dram_size"] == 0


@layouts
def test_no_device_is_available_before_anybody_reports_one(server: Server, layout: int) -> None:
    with server.client(layout) as client:
        answer = client.device_info(-1)
        if layout != 72:
            assert (answer["num_devices"], answer["is_available"]) == (0, 0)


@pytest.mark.parametrize("layout", [112, 144])
@pytest.mark.parametrize("is_told_by_alloc", [True, False])
def test_what_a_client_says_of_its_device_is_believed(
    server: Server, layout: int, is_told_by_alloc: bool
) -> None:
    facts = {
        "arch_type": 3,
        "total_dram_size": 34225520640,
        "total_l1_size": 130 * 1572864,
        "num_dram_channels": 8,
        "dram_size_per_channel": 4278190080,
        "l1_size_per_core": 1572864,
    }
    with server.client(layout) as client:
        if is_told_by_alloc:
            client.alloc(2, 4096, 0x100, **facts)
        else:
            client.say(DEVICE_INFO_RESPONSE, device_id=2, **facts)
            client.alloc(2, 4096, 0x100)
        info = client.device_info(2)
        assert {name: info[name] for name in facts} == facts
        (device,) = server.monitor()["devices"]
        assert device["arch"] == "blackhole"
        assert device["regions"]["DRAM"]["capacity_bytes"] == 34225520640
        assert device["regions"]["L1"]["capacity_bytes"] == 130 * 1572864
        client.alloc(2, 4096, 0x200)  # a message without facts takes none back
        assert {n: client.device_info(2)[n] for n in facts} == facts


@layouts
def test_the_answer_carries_the_time_and_no_rubbish(server: Server, layout: int) -> None:
    with server.client(layout) as client:
        answer = client.query(0)
        assert answer.pop("type") == RESPONSE
        assert answer.pop("timestamp") > 1_600_000_000 * 10**9
        assert set(answer.values()) == {0}


def test_a_response_sent_to_the_server_is_refused_and_counted(server: Server) -> None:
    with server.client() as client:
        client.say(RESPONSE, device_id=0, size=5)
        client.sync()
        assert server.status()["refused_type"] == 1
        assert server.monitor()["devices"] == []


def test_all_devices_from_0_to_1023_can_be_used(server: Server) -> None:
    with server.client() as client:
        for device in range(1024):
            client.alloc(device, device + 1, device)
        assert client.query(1023)["dram_allocated"] == 1024
        assert client.device_info(-1)["num_devices"] == 1024
        devices = server.monitor()["devices"]
        assert [d["regions"]["DRAM"]["bytes"] for d in devices] == list(range(1, 1025))
        server.check()
