# SPDX-License-Identifier: Apache-2.0
"""Clients are killed at any moment while others watch: totals are those of the living."""

import contextlib
import random
import signal
import time

from support import (
    IS_SANITIZED,
    LAYOUTS,
    LONG,
    Command,
    Server,
    Worker,
    run_json,
    wait_for,
)

ROUNDS = 1000 if LONG else 30


def total_bytes(server: Server) -> int:
    """What the monitor shows over all devices and regions."""
    return sum(
        region["bytes"]
        for device in server.monitor()["devices"]
        for region in device["regions"].values()
    )


@contextlib.contextmanager
def onlookers(server: Server):
    """Monitors, tails and a reader that never reads, all through the test."""
    with contextlib.ExitStack() as stack:
        for arguments in (
            ("monitor", "-r", "10", "--json"),
            ("monitor", "-r", "50", "-d", "0"),
            ("tail",),
            ("tail", "--json", "-d", "1"),
        ):
            stack.enter_context(Command(*arguments, server=server))
        asleep = stack.enter_context(Command("tail", server=server))
        asleep.process.send_signal(signal.SIGSTOP)
        yield


def test_totals_are_those_of_the_clients_that_live(server: Server) -> None:
    rng = random.Random(2024)
    seed = 0
    with onlookers(server), server.client() as monitor:
        survivors: list[tuple[Worker, int]] = []
        for number in range(ROUNDS):
            workers = [server.worker(rng.choice(LAYOUTS)) for _ in range(4)]
            for worker in workers:
                seed += 100_000
                worker.start("churn", rng.randrange(4), seed, rng.randrange(1, 60), 200)
            # Some die in the middle of it, some finish; which is which is up to chance.
            doomed = rng.sample(workers, 2)
            for worker in doomed:
                spin_until = time.monotonic() + rng.random() * 0.004
                while time.monotonic() < spin_until:
                    monitor.query()
                worker.kill()
            if number % 3 == 0:
                run_json("dump", server=server)
            for worker in workers:
                if worker not in doomed:
                    survivors.append((worker, worker.finish()))
            while len(survivors) > 6:
                worker, _ = survivors.pop(rng.randrange(len(survivors)))
                worker.kill()
            alive = {worker.pid for worker, _ in survivors}
            wait_for(
                lambda alive=alive: {c["pid"] for c in server.status()["clients"]} == alive,
                "the dead to be gone",
            )
            status = server.check()
            assert status["lives"] == sum(c["lives"] for c in status["clients"])
            assert total_bytes(server) == sum(held for _, held in survivors), f"round {number}"
            assert status["unknown_frees"] == status["replaced"] == 0
        for worker, _ in survivors:
            worker.kill()
        wait_for(lambda: server.status()["processes"] == 0)
        assert total_bytes(server) == 0 and server.check()["lives"] == 0


def test_the_end_of_many_processes_at_once(server: Server) -> None:
    lives = 2_000 if IS_SANITIZED else 20_000
    for _ in range(20 if LONG else 3):
        workers = [server.worker(LAYOUTS[i % 3]) for i in range(16)]
        for number, worker in enumerate(workers):
            worker.start("burst", lives, number + 1, device=number)
        for worker in workers:
            worker.finish()
        for worker in workers:
            worker.start("sync")
        for worker in workers:
            worker.finish()
        assert server.status()["lives"] == 16 * lives
        for worker in workers:
            worker.kill()
        wait_for(lambda: server.status()["lives"] == 0)
        assert total_bytes(server) == 0
        server.check()


def test_memory_comes_back_after_many_processes(server: Server) -> None:
    """Processes come and go; what the server keeps of them does not grow."""

    def one_generation() -> None:
        with server.worker() as worker:
            worker.burst(20_000)
            worker.sync()
        wait_for(lambda: server.status()["processes"] == 0)

    for _ in range(3):
        one_generation()
    before = server.memory()
    for _ in range(300 if LONG else 20):
        one_generation()
    if not IS_SANITIZED:
        assert server.memory() - before < 4 << 20
    assert server.check()["life_bytes"] < 1 << 20


def test_commands_that_are_killed_at_any_moment(server: Server) -> None:
    rng = random.Random(7)
    with server.client() as client, server.worker() as busy:
        client.burst(20_000)
        client.sync()
        busy.start("churn", 0, 1, 4000 if LONG else 400, 300)
        for _ in range(300 if LONG else 30):
            arguments = rng.choice(
                (
                    ("dump", "--json"),
                    ("dump",),
                    ("monitor", "-r", "10"),
                    ("tail",),
                    ("status", "--check"),
                )
            )
            with Command(*arguments, server=server) as command:
                spin_until = time.monotonic() + rng.random() * 0.01
                while time.monotonic() < spin_until:
                    client.query()
                command.process.kill()
        busy.finish()
        wait_for(lambda: server.status()["connections"] == 3)
        server.check()
