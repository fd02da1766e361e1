# SPDX-License-Identifier: Apache-2.0
"""
A hostile user of the same machine: whatever it does, others are served, and nothing of theirs is
refused, lost or wrong. To use processor time is the one thing that it may do to them.

The attacks are those of hostile.c. In the normal check all of them run at once for some seconds;
with TTM_LONG=1 for a minute, and each one by itself before that. What is measured is printed: run
it with -s, or with -k and the name of an attack.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import resource
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
from support import (
    IS_ROOT,
    IS_SANITIZED,
    LONG,
    NOBODY,
    SOMEBODY,
    Server,
    Tracked,
    Truth,
    Worker,
    needs_root,
    run_json,
    totals_in,
    wait_for,
)

HOSTILE = os.environ.get("HOSTILE", "hostile")
# NEIGHBOUR_S=5 in the environment: each attack by itself too, and every test for five seconds.
CHOSEN_S = os.environ.get("NEIGHBOUR_S")
ALL_S = float(CHOSEN_S or (60 if LONG else 10))
EACH_S = float(CHOSEN_S or 10)

# Each answer comes within that; a server that is stopped never gives one.
ANSWER_S = 10.0 * (6 if IS_SANITIZED else 1)

# A round of these takes long: a million allocations, a gigabyte.
SLOW_ROUNDS = {"big_fds", "events", "full_rings", "origins", "switches"}

# The server's limits in this test, so that the attackers can come up against them.
SERVER_FDS = 4096

# What the server may come to hold, and what may stay of it when the attackers have gone.
MEMORY_MOST = 1 << 30
MEMORY_LEFT = 96 << 20
FDS_LEFT = 8

# Of the processor, between two looks at who wants something: a query waits that long.
TURN_CPU_NS = 10_000_000


def list_attacks() -> dict[str, bool]:
    """The names of all attacks, and whether each needs FUSE."""
    done = subprocess.run([HOSTILE, "--list"], stdout=subprocess.PIPE, check=False, text=True)
    return {line.split()[0]: "fuse" in line.split() for line in done.stdout.splitlines()}


ATTACKS = list_attacks() if Path(HOSTILE).exists() else {}


class Attack:
    """Processes of another user that make one attack until they are stopped."""

    def __init__(self, name: str, server: Server, uid: int = NOBODY):
        self.name = name
        self._errors = tempfile.TemporaryFile()
        command = [HOSTILE, name, str(uid), str(server.folder), server.socket, server.legacy]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
        )

    def stop(self) -> int | None:
        """Ends all of its processes. Returns its rounds, None if it could not be made here."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        assert self.process.stdout and self.process.stdin
        try:
            out = self.process.communicate(timeout=ANSWER_S)[0].decode()
        except subprocess.TimeoutExpired:
            self.process.kill()
            pytest.fail(f"the attack '{self.name}' does not end")
        status = self.process.returncode
        self._errors.seek(0)
        errors = self._errors.read().decode()
        self._errors.close()
        assert errors == "", f"{self.name}: {errors}"
        if status == 77:
            print(f"{self.name}: {out.strip()}")
            return None
        assert status == 0
        return json.loads(out)["rounds"]


@dataclasses.dataclass
class Measured:
    """What was seen of the server and its answers."""

    took_s: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    memory: int = 0
    fds: int = 0

    def ask(self, *args: str, server: Server, uid: int | None) -> Any:
        """Asks by a command, which succeeds within the limit."""
        start = time.monotonic()
        try:
            answer = run_json(*args, server=server, uid=uid, timeout_s=ANSWER_S)
        except subprocess.TimeoutExpired:
            pytest.fail(f"no answer to {' '.join(args)} within {ANSWER_S:.0f} s")
        self.took_s.setdefault(args[0], []).append(time.monotonic() - start)
        return answer

    def look_at(self, server: Server) -> None:
        self.memory = max(self.memory, server.memory("RssAnon"))
        self.fds = max(self.fds, open_fds(server))

    def summary(self) -> str:
        cells = []
        for name, took_s in sorted(self.took_s.items()):
            median_s, longest_s = statistics.median(took_s), max(took_s)
            cells.append(
                f"{name} {median_s * 1e3:.0f} ms (longest {longest_s * 1e3:.0f}, {len(took_s)})"
            )
        return f"{', '.join(cells)}; {self.memory >> 20} MiB, {self.fds} fds"


def open_fds(server: Server) -> int:
    return len(os.listdir(f"/proc/{server.pid}/fd"))


def is_at_rest(server: Server) -> bool:
    """Whether it takes less than a fifth of a processor while nobody wants anything."""
    before_s, start = server.cpu_s(), time.monotonic()
    time.sleep(0.25)
    return server.cpu_s() - before_s < 0.2 * (time.monotonic() - start)


class Honest:
    """A user with a tracked process and one of the original protocol, who knows what they hold."""

    def __init__(self, server: Server, uid: int | None, measured: Measured):
        self.server = server
        self.uid = uid
        self.measured = measured
        self.tracked: Tracked | None = None
        self.original: Worker | None = None
        self._original_lives: dict[int, int] = {}
        self._next_id = 1
        self._mesh = 0

    def connect_anew(self) -> None:
        """Processes that begin with nothing, in place of those of before."""
        self.end()
        self.tracked = Tracked(self.server, uid=self.uid)
        self.original = self.server.worker(uid=self.uid)
        self._original_lives = {}
        self._mesh = (self._mesh + 1) % 25  # its first device: each time another set of devices

    def allocate(self, rounds: int) -> None:
        """On one device and on a mesh of eight, in both protocols; a part is freed again."""
        assert self.tracked and self.original
        self.tracked.do(f"alloc 0 0 40 {1000 + rounds}")
        self.tracked.do(f"mesh 5 {2000 + rounds} {self._mesh}")
        self.tracked.do("free 30")
        for _ in range(10):
            self.original.alloc(0, 100 + rounds, self._next_id)
            self._original_lives[self._next_id] = 100 + rounds
            self._next_id += 1
        while len(self._original_lives) > 20:
            ident = next(iter(self._original_lives))
            del self._original_lives[ident]
            self.original.free(0, ident)
        self.original.sync()

    def check(self) -> None:
        """All that the server says of these processes is right, and complete."""
        assert self.tracked and self.original
        held = list(self._original_lives.values())
        truth: Truth = {(0, "DRAM"): (len(held), sum(held), sum(held))} if held else {}
        for pid, known in ((self.tracked.pid, self.tracked.truth), (self.original.pid, truth)):
            wait_for(
                lambda pid=pid, known=known: totals_in(self.row_of(pid)) == known,
                f"what process {pid} holds",
            )
            row = self.row_of(pid)
            assert row and row["complete"] is True, row
            assert row["unknown_frees"] == row["lost_events"] == 0

    def row_of(self, pid: int) -> dict[str, Any] | None:
        answer = self.measured.ask("dump", "--pid", str(pid), server=self.server, uid=self.uid)
        for row in answer["processes"]:
            if row["pid"] == pid:
                return row
        return None

    def ask(self) -> dict[str, Any]:
        """Totals and status; returns the latter."""
        assert self.tracked and self.original
        self.measured.ask("monitor", "--once", server=self.server, uid=self.uid)
        status = self.measured.ask("status", "--check", server=self.server, uid=self.uid)
        assert status["check"]["ok"] is True
        clients = {client["pid"]: client for client in status["clients"]}
        for pid in (self.tracked.pid, self.original.pid):
            counters = ("refused", "lost_events", "unknown_frees", "ambiguous_frees", "replaced")
            assert [clients[pid][name] for name in counters] == [0] * len(counters), clients[pid]
            assert clients[pid]["trouble"] == ""
        return status

    def end(self) -> None:
        if self.tracked:
            self.tracked.kill()
        if self.original:
            self.original.kill()
        self.tracked = self.original = None


@contextlib.contextmanager
def attacked_by(names: list[str], server: Server) -> Iterator[None]:
    """Each attack takes place, unless it cannot be made here; no process of it is left."""
    attacks = [Attack(name, server) for name in names]
    rounds: dict[str, int | None] = {}
    try:
        yield
    finally:
        for attack in attacks:
            attack.process.send_signal(signal.SIGTERM)
        for attack in attacks:
            rounds[attack.name] = attack.stop()
    print("rounds:", ", ".join(f"{name} {n}" for name, n in rounds.items() if n is not None))
    skipped = [name for name, n in rounds.items() if n is None]
    if len(skipped) == len(names):
        pytest.skip(f"{', '.join(names)}: cannot be made on this machine")
    # Beside all others an attack that needs much of the server, or of a processor, may not get far.
    alone = len(names) == 1
    assert all(rounds[name] != 0 for name in names if alone or name not in SLOW_ROUNDS), rounds


def serve_beside(server: Server, names: list[str], duration_s: float) -> Measured:
    """Honest users at work beside attackers; then all that the attackers had is given back."""
    measured = Measured()
    users = [Honest(server, uid, measured) for uid in (SOMEBODY, None)]
    try:
        for user in users:
            user.connect_anew()
            user.allocate(0)
            user.check()
        fds = open_fds(server)
        memory = server.memory("RssAnon")
        with attacked_by(names, server):
            until = time.monotonic() + duration_s
            rounds = 0
            while time.monotonic() < until:
                rounds += 1
                for user in users:
                    if rounds % 4 == 0:
                        user.connect_anew()
                    user.allocate(rounds)
                    user.ask()
                    user.check()
                    measured.look_at(server)
        wait_for(lambda: open_fds(server) <= fds + FDS_LEFT, "the attackers' fds to be closed")
        wait_for(lambda: is_at_rest(server), "the server to come to rest")
        for user in users:
            user.connect_anew()
            user.allocate(rounds)
            status = user.ask()
            user.check()
        print(f"{rounds} rounds of honest users: {measured.summary()}")
        print(
            f"longest turn {status['longest_turn_cpu_ns'] / 1e6:.2f} ms of CPU,"
            f" {status['longest_turn_ns'] / 1e6:.2f} ms;"
            f" {server.memory('RssAnon') >> 20} MiB in the end, {memory >> 20} before"
        )
        if not IS_SANITIZED:
            assert status["longest_turn_cpu_ns"] < TURN_CPU_NS
            assert measured.memory < MEMORY_MOST
            wait_for(
                lambda: server.memory("RssAnon") < memory + MEMORY_LEFT, "memory to be given back"
            )
        assert measured.fds < SERVER_FDS
    finally:
        for user in users:
            user.end()
    return measured


@pytest.fixture
def shared_server(make_server: Callable[[], Server]) -> Server:
    """Root's server, which all users of the machine share."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (SERVER_FDS, SERVER_FDS))

    return make_server().start(prepare=limit)


@needs_root
@pytest.mark.skipif(not LONG and not CHOSEN_S, reason="needs TTM_LONG=1")
@pytest.mark.parametrize("attack", ATTACKS)
def test_one_attack_hurts_nobody(shared_server: Server, attack: str) -> None:
    serve_beside(shared_server, [attack], EACH_S)


@needs_root
@pytest.mark.skipif(not ATTACKS, reason="the attacks are not built")
def test_a_process_whose_command_line_cannot_be_read_is_tracked_by_its_name(
    shared_server: Server,
) -> None:
    """
    Its memory map is locked, and reading /proc/PID/cmdline waits for that lock. The server waits a
    second, in a thread for that user, and takes the bare name.
    """
    measured = Measured()

    def are_known() -> bool:
        status = measured.ask("status", server=shared_server, uid=None)
        names = {(client["command"], client["source"]) for client in status["clients"]}
        return names >= {("hostile", "tracked"), ("hostile", "original")}

    with attacked_by(["map_locks"], shared_server):
        wait_for(are_known, "a process of either protocol to be tracked")
    if not IS_SANITIZED:
        assert max(measured.took_s["status"]) < 1


@needs_root
def test_all_attacks_at_once_hurt_nobody(shared_server: Server) -> None:
    assert ATTACKS, f"{HOSTILE} is not built"
    serve_beside(shared_server, list(ATTACKS), ALL_S)


def test_the_list_of_attacks_is_known() -> None:
    assert len(ATTACKS) >= 20 and sum(ATTACKS.values()) == 3
    assert IS_ROOT or ATTACKS
