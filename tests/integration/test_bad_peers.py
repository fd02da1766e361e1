# SPDX-License-Identifier: Apache-2.0
"""Peers that behave badly: garbage, floods, silence, early leaving. Nobody else may notice."""

import os
import random
import resource
import select
import signal
import socket
import time

import pytest
from support import (
    IS_SANITIZED,
    LAYOUTS,
    LONG,
    PATIENCE_S,
    QUERY,
    SLOWNESS,
    Closed,
    Native,
    Original,
    Server,
    frame,
    GET_TOTALS,
    hello,
    raise_fd_limit,
    run,
    wait_for,
)


def send_until_stuck(sock: socket.socket, data: bytes) -> int:
    """Sends until the server takes no more; returns how much it took."""
    sock.setblocking(False)
    sent = 0
    while True:
        try:
            sent += sock.send(data[sent % len(data) :])
        except BlockingIOError:
            # It is stuck when nothing moves although the server has had every chance to read.
            if not select.select([], [sock], [], 0.3)[1]:
                return sent


@pytest.mark.parametrize("seed", range(50 if LONG else 4))
def test_random_bytes_close_that_client_and_disturb_no_other(server: Server, seed: int) -> None:
    data = random.Random(seed).randbytes(5 << 20)
    with server.client() as good, server.worker() as bad:
        good.alloc(0, 1000, 1)
        bad.alloc(0, 50, 1)
        bad.sync()
        good.sync()
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            bad.send(data)
        for i in range(100):
            good.alloc(0, 1, 100 + i)
        assert good.query()["dram_allocated"] == 1000 + 50 + 100  # what it said before stays
        status = server.check()
        assert status["closed_garbage"] == 1
        bad.kill()
        wait_for(lambda: good.query()["dram_allocated"] == 1100)


@pytest.mark.parametrize("seed", range(50 if LONG else 4))
def test_random_bytes_as_the_first_thing_close_that_client(server: Server, seed: int) -> None:
    data = random.Random(1000 + seed).randbytes(5 << 20)
    with server.client() as good, server.client() as bad:
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            bad.send(data)
        good.alloc(0, 1, 1)
        assert good.query()["dram_allocated"] == 1
        assert server.check()["closed_garbage"] == 1


@pytest.mark.parametrize("seed", range(10 if LONG else 2))
def test_random_bytes_that_begin_like_a_message_close_that_client(
    server: Server, seed: int
) -> None:
    """The first byte is a type, so it is the later ones that give it away."""
    rng = random.Random(seed)
    for kind in range(1, 13):
        with server.client() as bad:
            with pytest.raises((BrokenPipeError, ConnectionResetError)):
                bad.send(bytes([kind]) + rng.randbytes(1 << 20))
    assert server.check()["closed_garbage"] == 12


def test_random_bytes_on_the_native_socket_close_that_client(server: Server) -> None:
    for seed in range(20):
        with Native(server.socket, greets=False) as bad:
            with pytest.raises((BrokenPipeError, ConnectionResetError)):
                bad.send(random.Random(seed).randbytes(5 << 20))
    server.check()


def test_two_thousand_connections(server: Server) -> None:
    raise_fd_limit(2100)
    clients = [server.client(LAYOUTS[i % 3]) for i in range(2000)]
    for number, client in enumerate(clients):
        client.alloc(number % 1024, 10, number)
    for number, client in enumerate(clients):
        client.say(QUERY, device_id=number % 1024)
    for client in clients:
        assert client.read_answer()["dram_allocated"] >= 10
    status = server.check()
    assert status["lives"] == 2000 and status["connections"] == 2001
    for client in clients:
        client.close()
    wait_for(lambda: server.status()["connections"] == 1)


def test_idle_connections_cost_no_cpu(server: Server) -> None:
    raise_fd_limit(1100)
    clients = [server.client(144) for _ in range(1000)]
    for client in clients:
        client.alloc(0, 1, 1)
    for client in clients:
        client.sync()
    before_s, start = server.cpu_s(), time.monotonic()
    with server.client() as clock:  # a second of the machine's time, told by the server's events
        while time.monotonic() - start < 0.5:
            clock.query()
            select.select([], [], [], 0.05)
    assert server.cpu_s() - before_s < 0.25 * SLOWNESS
    for client in clients:
        client.close()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_client_that_asks_and_never_reads_hurts_nobody(server: Server, layout: int) -> None:
    with server.client(layout) as deaf, server.client() as other:
        other.alloc(0, 7, 7)
        other.sync()
        before = server.memory()
        sent = send_until_stuck(deaf.sock, deaf.message(QUERY, device_id=0) * 100)
        assert sent > 100 * layout
        for _ in range(100):
            start = time.monotonic()
            assert other.query()["dram_allocated"] == 7
            assert time.monotonic() - start < 0.5 * SLOWNESS
        if not IS_SANITIZED:
            assert server.memory() - before < 8 << 20
        deaf.close()
        wait_for(lambda: server.status()["connections"] == 2)
        server.check()


def test_a_command_that_asks_and_never_reads_hurts_nobody(server: Server) -> None:
    with server.client() as other:
        for device in range(1024):  # so that each answer is large
            other.alloc(device, 7, device)
        other.sync()
        with Native(server.socket) as deaf:
            before = server.memory()
            send_until_stuck(deaf.sock, frame(GET_TOTALS) * 500)
            assert other.query()["dram_allocated"] == 7
            if not IS_SANITIZED:
                assert server.memory("VmHWM") - before < 32 << 20
            # It starts to read after all, and every question that was taken is answered in full.
            deaf.sock.setblocking(True)
            deaf.sock.settimeout(PATIENCE_S)
            for _ in range(20):
                kinds = [kind for kind, _ in deaf.read_answer()]
                assert len(kinds) == 1 + 1024 + 1 + 1024
        server.check()


def test_many_requests_in_one_piece_are_all_answered(server: Server) -> None:
    with server.client() as other:
        for device in range(300):
            other.alloc(device, 7, device)
        other.sync()
        with Native(server.socket) as client:
            client.sock.settimeout(PATIENCE_S)
            client.send(frame(GET_TOTALS) * 200)
            for _ in range(200):
                assert len(client.read_answer()) == 1 + 300 + 1 + 300


def test_what_a_client_said_counts_although_it_left_without_its_answers(server: Server) -> None:
    """The answers cannot be sent any more; the events behind the question must not be lost."""
    with server.worker() as worker:
        server.freeze()
        worker.start("say_and_hang_up", 1000)
        worker.finish()
        server.thaw()
        wait_for(lambda: server.status()["connections"] == 1)
        assert server.regions()["DRAM"]["count"] == 1000
        assert server.check()["torn_messages"] == 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_monitor_that_closes_before_its_answer_hurts_nobody(server: Server, layout: int) -> None:
    with server.client() as other:
        other.alloc(0, 7, 7)
        for _ in range(5000 if LONG else 300):
            with server.client(layout) as monitor:
                monitor.say(QUERY, device_id=0)
        assert other.query()["dram_allocated"] == 7
        server.check()


def test_a_monitor_that_shuts_its_sending_side_gets_its_answer(server: Server) -> None:
    for layout in LAYOUTS:
        with server.client(layout) as monitor:
            monitor.say(QUERY, device_id=0)
            monitor.sock.shutdown(socket.SHUT_WR)
            monitor.read_answer()
            with pytest.raises(Closed):
                monitor.receive(1)


def test_commands_that_are_killed_hurt_nobody(server: Server) -> None:
    with server.client() as client:
        client.burst(50000)
        client.sync()
        for kind in (GET_TOTALS, 18, 19, 20, 21):
            payload = b"" if kind < 18 or kind == 19 else b"\0" * (136 if kind == 21 else 8)
            for _ in range(20):
                with Native(server.socket) as native:
                    native.send(frame(kind, payload))
        assert client.query()["dram_allocated"] == 50000
        server.check()


def test_running_out_of_fds_is_survived_quietly(make_server) -> None:
    server = make_server()
    server.start(prepare=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
    first = server.client()
    first.alloc(0, 7, 7)
    first.sync()

    clients = [Original(server.legacy) for _ in range(100)]
    before_s, start = server.cpu_s(), time.monotonic()
    closed: set[int] = set()

    def count_closed() -> bool:
        poll = select.poll()
        for number, client in enumerate(clients):
            if number not in closed:
                poll.register(client.sock, select.POLLHUP)
        by_fd = {client.sock.fileno(): number for number, client in enumerate(clients)}
        closed.update(by_fd[fd] for fd, _ in poll.poll(50))
        return len(closed) >= 5

    wait_for(count_closed, "some connections to be turned away")
    taken_s = time.monotonic() - start
    assert server.cpu_s() - before_s < 0.3 * taken_s * SLOWNESS + 0.1
    assert len(server.stderr) < 10_000
    assert first.query()["dram_allocated"] == 7  # those who are in are served
    served = [client for number, client in enumerate(clients) if number not in closed][:10]
    for client in served:
        assert client.query()["dram_allocated"] == 7

    for client in clients:
        client.close()
    wait_for(lambda: run("status", server=server).status == 0, "the server to take connections")
    status = server.check()
    assert status["connections_refused"] >= 5
    with server.client() as late:
        late.alloc(0, 1, 1)
        assert late.query()["dram_allocated"] == 8
    first.close()


def test_connections_that_say_nothing_are_no_trouble(server: Server) -> None:
    silent = [Native(server.socket, greets=False) for _ in range(50)]
    silent += [server.client() for _ in range(50)]  # type: ignore[misc]
    assert server.status()["connections"] == 101
    for stream in silent:
        stream.close()
    wait_for(lambda: server.status()["connections"] == 1)


def test_a_hello_that_never_ends_is_no_trouble(server: Server) -> None:
    with Native(server.socket, greets=False) as slow:
        for byte in hello()[:-1]:
            slow.send(bytes([byte]))
        assert server.status()["connections"] == 2
        slow.send(hello()[-1:])
        assert slow.read_frame()[0] == 1


def test_the_server_survives_sigpipe_and_odd_signals(server: Server) -> None:
    for number in (signal.SIGPIPE, signal.SIGCONT, signal.SIGWINCH, signal.SIGCHLD):
        os.kill(server.pid, number)
    server.check()
