# SPDX-License-Identifier: Apache-2.0
"""Storms of connections, of questions and of garbage."""

import random
import socket

from support import (
    GET_LIVES,
    GET_STATUS,
    LAYOUTS,
    LONG,
    QUERY,
    Native,
    Server,
    frame,
    hello,
    pack,
    raise_fd_limit,
    wait_for,
)

ROUNDS = 200 if LONG else 5


def test_connections_that_come_and_go(server: Server) -> None:
    with server.client() as steady:
        steady.alloc(0, 7, 7)
        steady.sync()
        for number in range(ROUNDS):
            clients = [server.client(LAYOUTS[i % 3]) for i in range(200)]
            for i, client in enumerate(clients):
                if i % 4 == 0:
                    client.alloc(1, 1, number * 1000 + i)
                elif i % 4 == 1:
                    client.say(QUERY, device_id=0)
                elif i % 4 == 2:
                    client.send(pack(client.layout, type=1)[: 1 + i % 70])
            for client in clients:
                client.close()
            assert steady.query()["dram_allocated"] == 7
        wait_for(lambda: server.status()["connections"] == 2)
        status = server.check()
        assert status["connections_total"] >= ROUNDS * 200
        assert status["torn_messages"] == ROUNDS * 50
        assert steady.query(1)["dram_allocated"] == ROUNDS * 50


def test_processes_that_connect_again_and_again(server: Server) -> None:
    workers = [server.worker(layout) for layout in LAYOUTS]
    for worker in workers:
        worker.start("reconnect_often", 2000 if LONG else 200)
    for worker in workers:
        worker.finish()
    status = server.check()
    assert status["processes"] == 3
    assert status["lives"] == 3 * (2000 if LONG else 200)
    assert status["unknown_frees"] == status["torn_messages"] == 0
    for worker in workers:
        worker.kill()


def test_native_clients_that_leave_at_any_byte(server: Server) -> None:
    rng = random.Random(5)
    with server.client() as client:
        client.burst(5000)
        client.sync()
        data = hello() + frame(GET_STATUS) + frame(GET_LIVES, b"\0" * 8) + frame(GET_STATUS) * 20
        for _ in range(3000 if LONG else 300):
            with Native(server.socket, greets=False) as native:
                native.send(data[: rng.randrange(len(data) + 1)])
                if rng.random() < 0.3:
                    native.sock.setblocking(False)
                    try:
                        native.sock.recv(rng.randrange(1, 5000))
                    except BlockingIOError:
                        pass
        assert client.query()["dram_allocated"] == 5000
        wait_for(lambda: server.status()["connections"] == 2)
        server.check()


def test_mutated_messages(server: Server) -> None:
    """Valid streams with a few wrong bytes: refused, closed or taken, and never out of balance."""
    rng = random.Random(99)
    rounds = 2000 if LONG else 150
    for number in range(rounds):
        with server.client(rng.choice(LAYOUTS)) as client:
            data = bytearray(
                b"".join(
                    client.alloc_message(rng.randrange(4), rng.randrange(1, 9999), i)
                    if rng.random() < 0.6
                    else client.free_message(rng.randrange(4), i)
                    for i in range(40)
                )
            )
            for _ in range(rng.randrange(1, 6)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            try:
                client.send(bytes(data))
            except (BrokenPipeError, ConnectionResetError):
                pass
        if number % 50 == 0:
            server.check()
    wait_for(lambda: server.status()["connections"] == 1)
    server.check()


def test_a_full_house_is_served_in_turn(server: Server) -> None:
    """Busy producers do not keep a monitor waiting."""
    raise_fd_limit(1024)
    producers = [server.worker(LAYOUTS[i % 3]) for i in range(8)]
    for number, producer in enumerate(producers):
        producer.start("churn", number, number, 5000 if LONG else 500, 100)
    monitors = [server.client(72) for _ in range(50)]
    for _ in range(20):
        for monitor in monitors:
            monitor.say(QUERY, device_id=0)
        for monitor in monitors:
            monitor.read_answer()
    for producer in producers:
        producer.finish()
    server.check()
    for producer in producers:
        producer.kill()
    for monitor in monitors:
        monitor.sock.shutdown(socket.SHUT_RDWR)
        monitor.close()
