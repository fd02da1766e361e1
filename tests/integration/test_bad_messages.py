# SPDX-License-Identifier: Apache-2.0
"""Messages with values that no device has, half messages, and clients that die in between."""

import struct

import pytest
from support import (
    ALLOC,
    CB_ALLOC,
    CB_FREE,
    DEVICE_INFO_QUERY,
    DEVICE_INFO_RESPONSE,
    DUMP_KERNELS,
    DUMP_REMAINING,
    FREE,
    KERNEL_LOAD,
    KERNEL_UNLOAD,
    LAYOUTS,
    QUERY,
    Server,
    pack,
    pass_time_of_silence,
    wait_for,
)

layouts = pytest.mark.parametrize("layout", LAYOUTS)

BIRTHS = {"ALLOC": ALLOC, "CB_ALLOC": CB_ALLOC, "KERNEL_LOAD": KERNEL_LOAD}
ENDS = {"FREE": FREE, "CB_FREE": CB_FREE, "KERNEL_UNLOAD": KERNEL_UNLOAD}

BAD_DEVICES = (-1, 1024, 99999, -(2**31), 2**31 - 1)
BAD_SIZES = (0, 2**40 + 1, 2**63, 2**64 - 1)

def one_alloc(layout: int) -> bytes:
    return pack(layout, type=ALLOC, device_id=0, size=4096, process_id=1, buffer_id=0x999)


CASES = [
    *(
        (f"{name}-device-{device}", {"kind": kind, "device_id": device}, "refused_device")
        for name, kind in {**BIRTHS, **ENDS}.items()
        for device in BAD_DEVICES
    ),
    *(
        (f"{name}-size-{size}", {"kind": kind, "size": size}, "refused_size")
        for name, kind in BIRTHS.items()
        for size in BAD_SIZES
    ),
    *(
        (f"ALLOC-region-{region}", {"kind": ALLOC, "buffer_type": region}, "refused_region")
        for region in (5, 6, 9, 255)
    ),
    *(
        (f"KERNEL_LOAD-kind-{kind}", {"kind": KERNEL_LOAD, "buffer_type": kind}, "refused_region")
        for kind in (3, 7, 255)
    ),
]


@layouts
def test_a_value_out_of_range_is_refused_and_counted_and_nothing_else(
    server: Server, layout: int
) -> None:
    """Each case on a connection of its own, where it stands second, and where it stands first."""
    expected: dict[str, int] = {}
    for number, (name, case, counter) in enumerate(CASES):
        fields = {"device_id": 0, "size": 4096, "buffer_id": 0xBAD, **case}
        kind = fields.pop("kind")
        for is_first in (False, True):
            with server.client(layout) as client:
                if not is_first:
                    client.alloc(number, 1, 1)
                client.say(kind, **fields)
                client.alloc(number, 10, 2)
                answer = client.query(number)
                assert answer["dram_allocated"] == 10 + 1, (name, is_first)
            expected[counter] = expected.get(counter, 0) + 1
    status = server.check()
    assert {key: status[key] for key in expected} == expected
    assert status["lives"] == 2 * len(CASES)
    assert status["closed_garbage"] == status["unknown_frees"] == status["refused_type"] == 0
    (client_row,) = status["clients"]
    assert client_row["refused"] == sum(expected.values())
    ids = {b["id"] for p in server.dump()["processes"] for b in p["buffers"]}
    assert 0xBAD not in ids


@layouts
@pytest.mark.parametrize("kind", [0, 13, 100, 255])
def test_an_unknown_type_closes_that_client_and_is_counted(
    server: Server, layout: int, kind: int
) -> None:
    with server.client(layout) as good, server.client(layout) as bad:
        good.alloc(0, 1, 1)
        good.sync()
        bad.alloc(0, 100, 2)
        bad.sync()
        bad.say(kind, device_id=0, size=10, buffer_id=3)
        bad.wait_until_closed()
        assert good.query()["dram_allocated"] == 101  # what it said before stays
        status = server.check()
        assert status["closed_garbage"] == 1 and status["lives"] == 2


@pytest.mark.parametrize("kind", [0, 13, 255])
def test_an_unknown_type_as_the_very_first_byte_closes_the_client(
    server: Server, kind: int
) -> None:
    with server.client(72) as client:
        client.send(bytes([kind]))
        client.wait_until_closed()
        assert server.status()["closed_garbage"] == 1


@layouts
def test_the_largest_values_that_are_allowed_are_taken(server: Server, layout: int) -> None:
    with server.client(layout) as client:
        client.alloc(1023, 2**40, 2**64 - 1)
        client.alloc(1023, 2**40, 0)
        client.alloc(0, 1, 2**63)
        assert client.query(1023)["dram_allocated"] == 2**41
        client.free(1023, 2**64 - 1)
        assert client.query(1023)["dram_allocated"] == 2**40
        status = server.check()
        assert status["unknown_frees"] == 0
        text = server.dump()
        assert {b["id"] for p in text["processes"] for b in p["buffers"]} == {0, 2**63}


@layouts
def test_requests_ignore_fields_that_they_do_not_have(server: Server, layout: int) -> None:
    junk = {"size": 2**64 - 1, "buffer_type": 6, "process_id": -5, "buffer_id": 2**64 - 1}
    with server.client(layout) as client:
        for kind in (QUERY, DEVICE_INFO_QUERY):
            client.say(kind, device_id=3, **junk)
            assert client.read_answer()["device_id"] == 3
        for kind in (DUMP_REMAINING, DUMP_KERNELS, DEVICE_INFO_RESPONSE):
            client.say(kind, device_id=-77, **junk)
        client.sync()
        status = server.check()
        assert status["lives"] == 0 and status["closed_garbage"] == 0


@pytest.mark.parametrize("layout", [112, 144])
def test_impossible_facts_about_a_device_are_not_believed(server: Server, layout: int) -> None:
    with server.client(layout) as client:
        client.alloc(0, 1, 1)
        client.alloc(
            0,
            1,
            2,
            total_dram_size=2**64 - 256,
            total_l1_size=2**63,
            arch_type=2**32 - 1,
            num_devices=2**32 - 1,
        )
        info = client.device_info(0)
        assert info["num_devices"] == 1
        assert info["total_dram_size"] == info["total_l1_size"] == info["arch_type"] == 0
        (device,) = server.monitor()["devices"]
        assert device["arch"] == "unknown"
        assert device["regions"]["DRAM"]["capacity_bytes"] is None


@pytest.mark.parametrize(
    "layout, size",
    [(la, size) for la in LAYOUTS for size in (3, 10, 40, 71, 100, 111, 143) if size < la],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_client_killed_inside_a_message_leaves_no_phantom(
    server: Server, layout: int, size: int, is_first: bool
) -> None:
    with server.worker(layout) as worker:
        if not is_first:
            worker.alloc(0, 100, 1)
            worker.alloc(0, 100, 2)
        worker.send(one_alloc(layout)[:size])
        worker.kill()
    wait_for(lambda: server.status()["connections"] == 1)  # that of the command that asks
    status = server.check()
    assert status["torn_messages"] == 1
    assert status["allocs"] == (0 if is_first else 2)
    assert status["lives"] == status["processes"] == 0
    assert server.bytes() == {}


@layouts
def test_half_a_message_and_a_hang_up_leave_no_phantom(server: Server, layout: int) -> None:
    with server.worker(layout) as worker:
        for count, size in enumerate((1, 39, 41, layout - 1), start=1):
            worker.send(one_alloc(layout) + one_alloc(layout)[:size])
            worker.hang_up()
            wait_for(lambda n=count: server.status()["torn_messages"] == n)
            assert server.bytes() == {"DRAM": 4096}
            worker.reconnect()
        server.check()


@layouts
def test_half_a_message_that_waits_hurts_nobody(server: Server, layout: int) -> None:
    with server.client(layout) as half, server.client() as other:
        half.send(one_alloc(layout)[:40])
        half.wait_until_read()
        pass_time_of_silence(server)
        other.alloc(0, 5, 5)
        assert other.query()["dram_allocated"] == 5
        half.send(one_alloc(layout)[40:])
        assert half.query()["dram_allocated"] == 4096 + 5


def test_messages_of_programs_that_never_worked_do_no_harm(server: Server) -> None:
    """What instrumented_helpers.hpp, realtime_monitor.py and trace_remaining_l1.py send."""
    with server.client() as good:
        good.alloc(0, 10, 1)
        good.sync()
        strangers = [
            struct.pack("<B3xiQQi4x", 8, 0, 4096, 0x1234, 42),
            struct.pack("<B3xIQQ", 2, 0, 0, 0),
            b"QUERY_ALL\n",
            b"GET / HTTP/1.1\r\n\r\n",
        ]
        for data in strangers:
            with server.client() as stranger:
                stranger.send(data)
        wait_for(lambda: server.status()["connections"] == 2)
        assert server.bytes() == {"DRAM": 10}
        status = server.check()
        assert status["closed_garbage"] + status["torn_messages"] == len(strangers)
