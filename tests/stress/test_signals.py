# SPDX-License-Identifier: Apache-2.0
"""The server is stopped, continued and ended while it has its hands full."""

import random
import time

import pytest
from support import LAYOUTS, LONG, PATIENCE_S, SLOWNESS, Closed, Command, Server, wait_for


def test_a_server_that_stands_still_for_a_while_loses_nothing(server: Server) -> None:
    rng = random.Random(3)
    workers = [server.worker(layout) for layout in LAYOUTS]
    rounds = 4000 if LONG else 400
    with Command("monitor", "-r", "10", "--json", server=server):
        for number, worker in enumerate(workers):
            worker.start("churn", number, number, rounds, 100)
        for _ in range(100 if LONG else 10):
            server.freeze()
            until = time.monotonic() + rng.random() * 0.02
            wait_for(lambda until=until: time.monotonic() > until)
            server.thaw()
            server.status()
        held = [worker.finish() for worker in workers]
    for number, expected in enumerate(held):
        assert sum(server.bytes(number).values()) == expected
    status = server.check()
    assert status["unknown_frees"] == status["torn_messages"] == status["closed_garbage"] == 0
    for worker in workers:
        worker.kill()


def test_processes_that_die_while_the_server_stands_still(server: Server) -> None:
    for _ in range(50 if LONG else 5):
        with server.worker() as steady:
            steady.alloc(0, 5, 5)
            steady.sync()
            doomed = [server.worker(LAYOUTS[i % 3]) for i in range(8)]
            server.freeze()
            for i, worker in enumerate(doomed):
                worker.burst(20 * i + 1)
                worker.kill()
            server.thaw()
            wait_for(lambda: server.status()["processes"] == 1)
            assert server.bytes() == {"DRAM": 5}
            server.check()
        wait_for(lambda: server.status()["processes"] == 0)


@pytest.mark.parametrize("number", range(20 if LONG else 3))
def test_sigterm_under_load_ends_it_soon_and_cleanly(make_server, number: int) -> None:
    server: Server = make_server().start()
    workers = [server.worker(LAYOUTS[i % 3]) for i in range(6)]
    for i, worker in enumerate(workers):
        worker.start("churn", i, i, 10**9, 1000)  # until the server goes
    with Command("monitor", "-r", "10", "--json", server=server), Command("tail", server=server):
        wait_for(lambda: server.status()["allocs"] > 10_000 + 5000 * number)
        with Command("dump", "--json", server=server):
            start = time.monotonic()
            stderr = server.stop(timeout_s=PATIENCE_S)
            assert time.monotonic() - start < 2 * SLOWNESS
            assert "stopped after" in stderr.splitlines()[-1]
        for worker in workers:
            with pytest.raises((OSError, Closed)):
                worker.finish()
            worker.kill()


def test_a_server_that_is_killed_under_load_is_replaced_at_once(make_server) -> None:
    server: Server = make_server()
    for _ in range(20 if LONG else 3):
        server.start()
        workers = [server.worker(LAYOUTS[i % 3]) for i in range(3)]
        for i, worker in enumerate(workers):
            worker.start("churn", i, i, 10**9, 100)
        wait_for(lambda: server.status()["allocs"] > 1000)
        server.kill()
        for worker in workers:
            worker.kill()
    server.start()
    server.check()
