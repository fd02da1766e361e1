# SPDX-License-Identifier: Apache-2.0
"""Tracked programs and their server are killed at any moment; what lives is known exactly."""

import contextlib
import random
import time

from support import (
    IS_SANITIZED,
    LONG,
    Command,
    Server,
    Tracked,
    client_of,
    wait_for,
    wait_until_exact,
)

# Two of the three tests kill the server, two a program: 1000 times each with --long, 120 without.
ROUNDS = (100 if IS_SANITIZED else 500) if LONG else (20 if IS_SANITIZED else 60)
EVENTS = 10_000 if IS_SANITIZED else 60_000


def spin(server: Server, rng: random.Random, longest_s: float) -> None:
    """Lets some time pass that nobody chose."""
    until = time.monotonic() + rng.random() * longest_s
    while time.monotonic() < until:
        if rng.random() < 0.3:
            server.status()


def test_the_server_is_killed_at_any_moment(make_server) -> None:
    rng = random.Random(11)
    server: Server = make_server()
    server.start()
    took_s = []
    with Tracked(server) as worker, Tracked(server) as idle:
        idle.do("alloc 7 0 500 1000")
        idle.do("mesh 3 100")
        for number in range(ROUNDS):
            worker.begin(f"storm {rng.randrange(1, 5)} {EVENTS} {number}")
            spin(server, rng, 0.05)
            server.kill()
            server.start()
            worker.finish()
            took_s.append(wait_until_exact(server, worker))
            wait_until_exact(server, idle)
            if number % 10 == 9:
                worker.do("free 1000000")
    took_s.sort()
    print(f"exact again after {took_s[ROUNDS // 2] * 1e3:.0f} ms, at most {took_s[-1] * 1e3:.0f}")


def test_programs_are_killed_at_any_moment(server: Server) -> None:
    rng = random.Random(12)
    with contextlib.ExitStack() as stack:
        stack.enter_context(Command("monitor", "-r", "10", "--json", server=server))
        stack.enter_context(Command("tail", server=server))
        survivors: list[Tracked] = []
        for number in range(ROUNDS):
            workers = [stack.enter_context(Tracked(server)) for _ in range(2)]
            for worker in workers:
                worker.begin(f"storm {rng.randrange(1, 4)} {EVENTS} {number}")
            spin(server, rng, 0.05)
            workers[0].kill()
            workers[1].finish()
            survivors.append(workers[1])
            while len(survivors) > 3:
                survivors.pop(rng.randrange(len(survivors))).kill()
            alive = {worker.pid for worker in survivors}
            wait_for(
                lambda alive=alive: {c["pid"] for c in server.status()["clients"]} == alive,
                "the dead to be gone",
            )
            for worker in survivors:
                wait_until_exact(server, worker)


def test_both_are_killed_and_stopped_at_any_moment(make_server) -> None:
    rng = random.Random(13)
    server: Server = make_server()
    server.start()
    with Tracked(server) as steady:
        for number in range(ROUNDS):
            steady.begin(f"storm 2 {EVENTS} {number}")
            with Tracked(server) as doomed:
                doomed.begin(f"storm 2 {EVENTS} {number}")
                for what in rng.sample(("server", "program", "stop"), 3):
                    spin(server, rng, 0.02)
                    if what == "server":
                        server.kill()
                        server.start()
                    elif what == "program":
                        doomed.kill()
                    else:
                        server.freeze()
                        until = time.monotonic() + rng.random() * 0.02
                        wait_for(lambda until=until: time.monotonic() > until)
                        server.thaw()
                steady.finish()
                wait_until_exact(server, steady)
                wait_for(lambda d=doomed: client_of(server, d.pid) is None, "it to be gone")
            if number % 10 == 9:
                steady.do("free 1000000")
