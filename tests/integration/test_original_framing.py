# SPDX-License-Identifier: Apache-2.0
"""The original protocol has no framing: which layout a connection speaks shows in what arrives."""

import random

import pytest
from support import ALLOC, LAYOUTS, LONG, QUERY, Original, Server, pack, pass_time_of_silence

layouts = pytest.mark.parametrize("layout", LAYOUTS)


def three_messages(client: Original, device: int) -> bytes:
    return (
        client.alloc_message(device, 1000, 0x10)
        + client.alloc_message(device, 200, 0x20, 1)
        + client.message(QUERY, device_id=device)
    )


def assert_counted(answer: dict[str, int], device: int) -> None:
    assert answer["device_id"] == device
    assert (answer["dram_allocated"], answer["l1_allocated"]) == (1000, 200)


@layouts
def test_messages_may_be_split_at_every_byte(server: Server, layout: int) -> None:
    for cut in range(1, 3 * layout):
        with server.client(layout) as client:
            device = cut % 1024
            data = three_messages(client, device)
            client.send(data[:cut])
            client.wait_until_read()
            client.send(data[cut:])
            assert_counted(client.read_answer(), device)
    status = server.check()
    assert status["events"] == 3 * (3 * layout - 1)
    assert status["closed_garbage"] == status["torn_messages"] == 0


@layouts
def test_messages_may_be_split_at_every_byte_with_a_long_pause(server: Server, layout: int) -> None:
    clients = {}
    for cut in range(1, 3 * layout):
        client = clients[cut] = server.client(layout)
        client.send(three_messages(client, cut)[:cut])
    for client in clients.values():
        client.wait_until_read()
    pass_time_of_silence(server)
    for cut, client in clients.items():
        client.send(three_messages(client, cut)[cut:])
    for cut, client in clients.items():
        assert_counted(client.read_answer(), cut)
        client.close()
    status = server.check()
    assert status["closed_garbage"] == 0
    assert status["lives"] == 2 * (3 * layout - 1)
    assert status["replaced"] == status["unknown_frees"] == 0


@layouts
def test_messages_may_arrive_one_byte_at_a_time(server: Server, layout: int) -> None:
    with server.client(layout) as client:
        for byte in three_messages(client, 4):
            client.send(bytes([byte]))
            client.wait_until_read()
        assert_counted(client.read_answer(), 4)
        assert_counted(client.query(4), 4)


@layouts
def test_messages_may_arrive_in_any_pieces(server: Server, layout: int) -> None:
    for seed in range(300 if LONG else 20):
        rng = random.Random(seed)
        with server.client(layout) as client:
            data = b"".join(client.alloc_message(seed, i, i) for i in range(1, 51))
            data += client.message(QUERY, device_id=seed)
            while data:
                size = rng.choice((1, 7, 40, 71, 72, 73, 111, 112, 113, 143, 144, 145, 500))
                client.send(data[:size])
                if rng.random() < 0.5:
                    client.wait_until_read()
                data = data[size:]
            assert client.read_answer()["dram_allocated"] == 50 * 51 // 2
    server.check()


@layouts
def test_a_query_may_be_the_very_first_thing(server: Server, layout: int) -> None:
    with server.client(layout) as client, server.client(layout) as reporter:
        reporter.alloc(0, 77, 1)
        reporter.sync()
        assert client.query()["dram_allocated"] == 77
        # Had the first answer been in another layout, this one would be out of step.
        assert client.query()["dram_allocated"] == 77
        assert client.device_info(0)["device_id"] == 0


@layouts
def test_a_device_query_may_be_the_very_first_thing(server: Server, layout: int) -> None:
    with server.client(layout) as client:
        client.device_info(-1)
        client.query(3)


@layouts
@pytest.mark.parametrize("count", [2, 3, 5])
def test_queries_in_one_piece_are_all_answered_in_order(
    server: Server, layout: int, count: int
) -> None:
    with server.client(layout) as client:
        client.send(b"".join(client.message(QUERY, device_id=i) for i in range(count)))
        assert [client.read_answer()["device_id"] for _ in range(count)] == list(range(count))


def test_each_connection_has_the_layout_it_speaks(server: Server) -> None:
    clients = [server.client(layout) for layout in LAYOUTS * 3]
    for turn in range(1, 6):
        for number, client in enumerate(clients):
            client.alloc(number, 10 * turn, turn)
        for number, client in enumerate(clients):
            expected = sum(10 * t for t in range(1, turn + 1))
            assert client.query(number)["dram_allocated"] == expected
    for client in clients:
        client.close()
    server.check()


@pytest.mark.parametrize("cut", [72, 112])
def test_a_layout_taken_for_a_shorter_one_widens_and_nothing_is_read_twice(
    server: Server, cut: int
) -> None:
    with server.client(144) as client:
        first = client.alloc_message(0, 1000, 0x10)
        client.send(first[:cut])
        client.wait_until_read()
        pass_time_of_silence(server)
        assert server.bytes() == {"DRAM": 1000}  # it looks whole, so it counts
        client.send(first[cut:] + client.alloc_message(0, 500, 0x20))
        assert client.query()["dram_allocated"] == 1500
        status = server.check()
        assert status["allocs"] == 2 and status["closed_garbage"] == 0


def test_a_message_whole_in_one_layout_widens_from_72_to_112(server: Server) -> None:
    with server.client(112) as client:
        first = client.alloc_message(0, 1000, 0x10)
        client.send(first[:72])
        client.wait_until_read()
        pass_time_of_silence(server)
        client.send(first[72:])
        client.wait_until_read()
        assert client.query()["dram_allocated"] == 1000
        assert server.check()["allocs"] == 1


def test_a_single_message_counts_even_if_nothing_follows(server: Server) -> None:
    for layout in LAYOUTS:
        with server.client(layout) as client:
            client.alloc(layout, 5, 5)
            client.wait_until_read()
            pass_time_of_silence(server)
            assert server.bytes(layout) == {"DRAM": 5}


def test_a_single_message_counts_even_if_its_client_hangs_up_at_once(server: Server) -> None:
    for layout in LAYOUTS:
        with server.worker(layout) as worker:
            worker.alloc(layout, 5, 5)
            worker.hang_up()
            with server.client() as monitor:
                while monitor.query(layout)["dram_allocated"] != 5:
                    pass
    assert server.status()["torn_messages"] == 0


def test_the_smallest_bytes_decide_and_not_the_largest(server: Server) -> None:
    """72-byte messages whose fields look like nothing special, 2 of them, are 144 bytes in all."""
    with server.client(72) as client:
        client.send(
            pack(72, type=ALLOC, device_id=0, size=1, buffer_id=1)
            + pack(72, type=ALLOC, device_id=0, size=2, buffer_id=2)
        )
        client.wait_until_read()
        assert client.query()["dram_allocated"] == 3
