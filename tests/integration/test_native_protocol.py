# SPDX-License-Identifier: Apache-2.0
"""The native protocol: hello, frames, and what happens to those who get it wrong."""

import os
import struct
import time

import pytest
from support import (
    CHECK,
    END,
    ERROR,
    F_CHECKED,
    F_DEVICE,
    F_EVENTS,
    F_LIVES,
    F_PROCESS,
    F_PROCESS_DEVICE,
    F_STATUS,
    F_TOTALS,
    GET_LIVES,
    GET_LIVES_OF,
    GET_SITES,
    GET_STATUS,
    GET_TOTALS,
    HELLO,
    LONG,
    SLOWNESS,
    SUBSCRIBE_EVENTS,
    SUBSCRIBE_TOTALS,
    Closed,
    Native,
    Server,
    frame,
    hello,
    lives_of,
    run_ok,
    totals_of,
    wait_for,
)


def expect_error(stream: Native) -> str:
    """The server says why in one frame and closes."""
    kind, payload = stream.read_frame()
    assert kind == ERROR
    assert stream.wait_until_closed() == b""
    return payload.decode()


def test_hello_is_answered_with_hello(server: Server) -> None:
    with Native(server.socket, greets=False) as stream:
        stream.send(hello())
        kind, payload = stream.read_frame()
        assert kind == HELLO
        magic, major, _, optional, required, pid = struct.unpack_from("<IHHQQi", payload)
        assert (magic, major, optional, required, pid) == (0x4D4D5454, 1, 1, 0, server.pid)
        version = payload[32:64].rstrip(b"\0").decode()
        assert run_ok("--version").out == f"tt-mem {version}\n"


def test_a_wrong_magic_is_told_and_closed(server: Server) -> None:
    with Native(server.socket, greets=False) as stream:
        stream.send(hello(magic=0x12345678))
        assert "no tt-mem client" in expect_error(stream)


def test_a_wrong_major_version_is_told_with_both_versions(server: Server) -> None:
    with Native(server.socket, greets=False) as stream:
        stream.send(hello(major=2, minor=7))
        why = expect_error(stream)
        assert "protocol 1.0" in why and "protocol 2.7" in why


def test_a_newer_minor_version_is_fine(server: Server) -> None:
    with Native(server.socket, greets=False) as stream:
        stream.send(hello(minor=99))
        assert stream.read_frame()[0] == HELLO


def test_an_unknown_required_feature_ends_the_talk(server: Server) -> None:
    with Native(server.socket, greets=False) as stream:
        stream.send(hello(required=1 << 40))
        assert "protocol" in expect_error(stream)


def test_an_unknown_optional_feature_is_ignored(server: Server) -> None:
    with Native(server.socket, greets=False) as stream:
        stream.send(hello(optional=2**64 - 1))
        assert stream.read_frame()[0] == HELLO
        assert stream.ask(GET_STATUS)


def test_a_longer_hello_of_a_newer_client_is_fine(server: Server) -> None:
    with Native(server.socket, greets=False) as stream:
        stream.send(frame(HELLO, hello()[8:] + b"more of it"))
        assert stream.read_frame()[0] == HELLO


@pytest.mark.parametrize("length", [0, 1, 4, 63])
def test_a_hello_that_is_too_short_is_told_and_closed(server: Server, length: int) -> None:
    with Native(server.socket, greets=False) as stream:
        stream.send(frame(HELLO, hello()[8 : 8 + length]))
        assert "no tt-mem client" in expect_error(stream)


@pytest.mark.parametrize("kind", [GET_STATUS, GET_LIVES, SUBSCRIBE_EVENTS, 0, 999])
def test_a_request_before_hello_is_told_and_closed(server: Server, kind: int) -> None:
    with Native(server.socket, greets=False) as stream:
        stream.send(frame(kind, b"\0" * 8))
        assert "no tt-mem client" in expect_error(stream)


@pytest.mark.parametrize("kind", [0, 4, 15, 24, 31, 32, 41, 200, 65535])
def test_an_unknown_frame_is_skipped_and_counted(server: Server, kind: int) -> None:
    with Native(server.socket) as stream:
        stream.send(frame(kind) + frame(kind, b"x" * 4096))
        assert [k for k, _ in stream.ask(GET_STATUS)] == [F_STATUS]
    assert server.status()["refused_type"] == 2


@pytest.mark.parametrize("length", [4097, 1 << 20, 1 << 31, 2**32 - 1])
def test_a_frame_that_claims_too_much_closes_that_client(server: Server, length: int) -> None:
    with Native(server.socket) as stream, Native(server.socket) as other:
        stream.send(struct.pack("<HHI", GET_STATUS, 0, length))
        stream.wait_until_closed()
        assert other.ask(GET_STATUS)
    assert server.status()["closed_garbage"] == 1


@pytest.mark.parametrize(
    "kind, length",
    [
        (GET_LIVES, 0),
        (GET_LIVES, 7),
        (SUBSCRIBE_TOTALS, 3),
        (SUBSCRIBE_EVENTS, 135),
        (GET_SITES, 7),
        (GET_LIVES_OF, 23),
    ],
)
def test_a_request_that_is_too_short_is_told_and_closed(
    server: Server, kind: int, length: int
) -> None:
    with Native(server.socket) as stream:
        stream.send(frame(kind, b"\0" * length))
        assert "too short" in expect_error(stream)


def test_requests_longer_than_known_are_fine(server: Server) -> None:
    with Native(server.socket) as stream:
        assert stream.ask(GET_STATUS, b"future")
        assert stream.ask(GET_LIVES, b"\0" * 64)
        assert stream.ask(CHECK, b"\0" * 64)


def test_frames_may_be_split_at_every_byte(server: Server) -> None:
    data = hello() + frame(200, b"abc") + frame(GET_STATUS)
    for cut in range(1, len(data)):
        with Native(server.socket, greets=False) as stream:
            stream.send(data[:cut])
            stream.wait_until_read()
            stream.send(data[cut:])
            assert stream.read_frame()[0] == HELLO
            assert [k for k, _ in stream.read_answer()] == [F_STATUS]


def test_requests_in_one_piece_are_answered_in_order(server: Server) -> None:
    with Native(server.socket) as stream:
        stream.send((frame(GET_STATUS) + frame(GET_TOTALS)) * 50)
        for _ in range(50):
            assert stream.read_answer()[0][0] == F_STATUS
            assert stream.read_answer()[0][0] == F_TOTALS


def test_totals_tell_devices_then_processes(server: Server) -> None:
    with server.client() as client, Native(server.socket) as stream:
        client.alloc(3, 10, 1)
        client.alloc(9, 10, 1)
        client.sync()
        kinds = [kind for kind, _ in stream.ask(GET_TOTALS)]
        assert kinds == [F_TOTALS, F_DEVICE, F_DEVICE, F_PROCESS, *[F_PROCESS_DEVICE] * 2]


def test_a_subscription_to_totals_goes_on(server: Server) -> None:
    with server.client() as client, Native(server.socket) as stream:
        stream.send(frame(SUBSCRIBE_TOTALS, struct.pack("<II", 10, 0)))
        seen = [totals_of(stream.read_answer())[1]]
        client.alloc(0, 5, 1)
        while seen[-1] != 5:
            seen.append(totals_of(stream.read_answer())[1])
        client.free(0, 1)
        while seen[-1] != 0:
            seen.append(totals_of(stream.read_answer())[1])


def test_a_subscriber_that_does_not_read_skips_moments(server: Server) -> None:
    with server.client() as client, Native(server.socket) as stream:
        for device in range(1024):
            client.alloc(device, 1, 1)
        client.sync()
        before = server.memory()
        stream.send(frame(SUBSCRIBE_TOTALS, struct.pack("<II", 10, 0)))
        stream.receive(100)  # it has begun
        start = time.monotonic()
        while time.monotonic() - start < 0.3:
            client.sync()
        assert server.memory() - before < (16 << 20) * SLOWNESS


def test_an_invalid_ticket_is_told(server: Server) -> None:
    with Native(server.socket) as stream:
        stream.send(frame(GET_LIVES, struct.pack("<II", 12345, 0)))
        assert "ticket" in expect_error(stream)


def test_a_second_dump_on_a_busy_connection_is_told(server: Server) -> None:
    with server.client() as client, Native(server.socket) as stream:
        client.burst(100_000)
        client.sync()
        stream.send(frame(GET_LIVES, b"\0" * 8) * 2)
        while True:
            kind, payload = stream.read_frame()
            if kind == ERROR:
                assert b"under way" in payload
                break


def test_a_slow_reader_of_a_large_dump_gets_one_moment_and_slows_nobody(server: Server) -> None:
    lives = 200_000
    with server.client() as client, server.worker(112) as other, Native(server.socket) as stream:
        client.burst(lives, 3)
        client.sync()
        stream.send(frame(GET_LIVES, b"\0" * 8))
        frames = [stream.read_frame() for _ in range(4)]
        # While it dawdles, most of what it is being told of goes away and others come.
        client.send(b"".join(client.free_message(0, i) for i in range(1, lives, 2)))
        other.burst(20_000, 5)
        other.sync()
        client.sync()
        start = time.monotonic()
        for _ in range(50):
            frames.append(stream.read_frame())
            client.query()
        assert time.monotonic() - start < 5 * SLOWNESS
        while True:
            kind, payload = stream.read_frame()
            if kind == END:
                break
            frames.append((kind, payload))
        found = lives_of(frames)
        assert len(found) == len({ident for ident, _ in found}) == lives
        assert totals_of(frames) == (lives, 3 * lives)
    server.check()


def test_a_reader_that_leaves_amid_a_large_dump_hurts_nobody(server: Server) -> None:
    with server.client() as client:
        client.burst(200_000)
        client.sync()
        for _ in range(10):
            with Native(server.socket) as stream:
                stream.send(frame(GET_LIVES, b"\0" * 8))
                stream.receive(100)
        client.send(b"".join(client.free_message(0, i) for i in range(1, 200_001)))
        assert client.query()["dram_allocated"] == 0
        wait_for(lambda: server.status()["connections"] == 2)
        server.check()


def test_a_dump_outlives_the_process_it_tells_of(server: Server) -> None:
    with Native(server.socket) as stream, server.worker() as worker:
        worker.burst(100_000, 7)
        worker.sync()
        stream.send(frame(GET_LIVES, b"\0" * 8))
        frames = [stream.read_frame()]
        worker.kill()
        wait_for(lambda: server.status()["processes"] == 0)
        frames += stream.read_answer()
        assert len(lives_of(frames)) == 100_000
        assert totals_of(frames) == (100_000, 700_000)


def test_many_checks_and_dumps_at_once(server: Server) -> None:
    with server.client() as client:
        client.burst(50_000)
        client.sync()
        streams = [Native(server.socket) for _ in range(20)]
        for number, stream in enumerate(streams):
            stream.send(frame(CHECK) if number % 2 else frame(GET_LIVES, b"\0" * 8))
        for number, stream in enumerate(streams):
            frames = stream.read_answer()
            if number % 2:
                ((kind, payload),) = frames
                assert kind == F_CHECKED
                assert struct.unpack("<QQQ", payload) == (50_000, 1, 0)
            else:
                assert len(lives_of(frames)) == 50_000
            stream.close()


def test_events_are_filtered_by_device_and_process(server: Server) -> None:
    def subscription(pid: int, devices: set[int] | None) -> bytes:
        bits = bytearray(128)
        for device in devices or ():
            bits[device // 8] |= 1 << device % 8
        flags = 1 if devices is None else 0
        return frame(SUBSCRIBE_EVENTS, struct.pack("<iI", pid, flags) + bytes(bits))

    with server.client() as client, server.worker() as other, Native(server.socket) as stream:
        stream.send(subscription(os.getpid(), {1023}))
        stream.ask(GET_STATUS)  # it has taken effect
        other.alloc(1023, 1, 1)
        other.sync()
        client.alloc(0, 1, 1)
        client.alloc(1023, 42, 2)
        client.sync()
        kind, payload = stream.read_frame()
        assert kind == F_EVENTS
        assert struct.unpack_from("<QQQQ", payload, 0)[1:4] == (2, 2, 42)


@pytest.mark.skipif(not LONG, reason="takes half a minute (TTM_LONG)")
def test_a_reader_that_takes_nothing_for_long_is_let_go(server: Server) -> None:
    with server.client() as client, Native(server.socket) as stream:
        client.burst(200_000)
        client.sync()
        stream.send(frame(GET_LIVES, b"\0" * 8))
        wait_for(lambda: server.status()["closed_slow"] == 1, "the slow one to go", 120)
        with pytest.raises(Closed):
            stream.read_answer()


def test_the_frame_of_an_answer_holds_no_lives_of_nobody(server: Server) -> None:
    with Native(server.socket) as stream:
        assert [kind for kind, _ in stream.ask(GET_LIVES, b"\0" * 8)] == [F_TOTALS]
        assert F_LIVES not in [kind for kind, _ in stream.ask(GET_TOTALS)]
