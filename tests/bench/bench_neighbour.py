# SPDX-License-Identifier: Apache-2.0
"""How long an honest user waits for answers, with and without a hostile neighbour, in one run.

usage: bench_neighbour.py TT_MEM HOSTILE [ROUNDS [SECONDS [ATTACK...]]]

Needs root, to be three users. Root's server is shared by an honest user, who reports through the
original protocol and asks 200 times a second, and by a hostile one with all attacks of
tests/stress/hostile.c, or those that are named. In each of the ROUNDS (3) the honest user asks for
SECONDS (10) alone and for SECONDS beside the attackers, who run at the lowest priority.

Prints a Markdown table of the wall time of answers: the original protocol's query and GET_STATUS on
connections that stay, and GET_TOTALS on a new one, as a command asks it. Judges nothing; a question
that waits for ten seconds ends the round and counts as ten.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, Iterator

if len(sys.argv) < 3:
    sys.exit(__doc__)
os.environ["TT_MEM"], HOSTILE = sys.argv[1:3]
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "integration"))
try:
    import pytest  # noqa: F401
except ImportError:
    print("skipped: needs pytest (Debian: python3-pytest)")
    sys.exit(77)
from support import (  # noqa: E402
    GET_STATUS,
    GET_TOTALS,
    IS_ROOT,
    NOBODY,
    SOMEBODY,
    Native,
    Original,
    Server,
    become,
)

ANSWER_S = 10.0
PAUSE_S = 0.005
SETTLE_S = 1.0
SERVER_FDS = 4096  # as in tests/stress/test_neighbour.py

# Wall times in seconds, by what was asked.
Times = dict[str, list[float]]


def measure(server: Server, seconds: float) -> Times:
    """In a process of the honest user: asks and reports for that long."""
    took_s: Times = {}

    def ask(name: str, question: Callable[[], object]) -> bool:
        start = time.monotonic()
        is_answered = True
        try:
            question()
        except OSError:  # TimeoutError is one
            is_answered = False
        spent_s = time.monotonic() - start if is_answered else ANSWER_S
        took_s.setdefault(name, []).append(spent_s)
        return is_answered

    def ask_as_command() -> None:
        with Native(server.socket) as native:
            native.ask(GET_TOTALS)

    original, native = Original(server.legacy), Native(server.socket)
    for stream in (original, native):
        stream.sock.settimeout(ANSWER_S)
    until = time.monotonic() + seconds
    ident = 0
    while time.monotonic() < until:
        ident += 1
        original.alloc(0, 1000, ident)
        original.free(0, ident)
        if not (
            ask("query", original.query)
            and ask("status", lambda: native.ask(GET_STATUS))
            and ask("totals on a new connection", ask_as_command)
        ):
            break
        time.sleep(PAUSE_S)
    return took_s


def measure_as(uid: int, server: Server, seconds: float) -> Times:
    """The same in a child, which is that user."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            become(uid)
            with os.fdopen(theirs, "w") as pipe:
                json.dump(measure(server, seconds), pipe)
            status = 0
        finally:
            os._exit(status)
    os.close(theirs)
    with os.fdopen(ours) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(text) if text else {}


@contextlib.contextmanager
def attackers(server: Server, names: list[str]) -> Iterator[None]:
    processes = [
        subprocess.Popen(
            [HOSTILE, name, str(NOBODY), str(server.folder), server.socket, server.legacy],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        for name in names
    ]
    try:
        time.sleep(SETTLE_S)
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.wait()


def percentile(times_s: list[float], per_cent: float) -> str:
    if not times_s:
        return "–"
    ordered = sorted(times_s)
    value_s = ordered[min(len(ordered) - 1, int(len(ordered) * per_cent / 100))]
    return f"{value_s * 1e3:.2f}"


def print_table(alone: Times, beside: Times) -> None:
    print("| ms of wall time | | p50 | p99 | longest | answers |")
    print("|---|---|---|---|---|---|")
    for name in alone:
        for who, times in (("alone", alone), ("beside the neighbour", beside)):
            values = times.get(name, [])
            cells = (percentile(values, p) for p in (50, 99, 100))
            print(f"| {name} | {who} | {' | '.join(cells)} | {len(values):,} |")


def main(rounds: int, seconds: float, names: list[str]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="ttm-bench-", dir="/tmp"))
    folder.chmod(0o755)
    server = Server(folder).start(
        prepare=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (SERVER_FDS, SERVER_FDS))
    )
    both: tuple[Times, Times] = {}, {}
    try:
        for _ in range(rounds):
            for times, chosen in zip(both, ([], names), strict=True):
                with attackers(server, chosen):
                    for name, values in measure_as(SOMEBODY, server, seconds).items():
                        times.setdefault(name, []).extend(values)
                time.sleep(SETTLE_S)
        print_table(*both)
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if not IS_ROOT:
        print("skipped: needs root, to be several users")
        sys.exit(77)
    listed = subprocess.run([HOSTILE, "--list"], stdout=subprocess.PIPE, check=True, text=True)
    main(
        int(sys.argv[3]) if len(sys.argv) > 3 else 3,
        float(sys.argv[4]) if len(sys.argv) > 4 else 10.0,
        sys.argv[5:] or [line.split()[0] for line in listed.stdout.splitlines()],
    )
