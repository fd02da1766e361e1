# SPDX-License-Identifier: Apache-2.0
"""What the dashboard costs on a large machine: 32 chips, 200 processes, a million allocations.

usage: bench_top.py TT_MEM TRACKED_WORKER [SECONDS [PROCESSES [ALLOCATIONS]]]

Prints a Markdown table; judges nothing. The server, the programs and the dashboard are real, the
chips are a folder of files. Every page is shown on a terminal for so many seconds, refreshed every
500 ms; the CPU time is what the kernel counted for all threads. Last, the origins are shown while
each half second something begins on every bank, so that no answer can be kept.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

if len(sys.argv) < 3:
    sys.exit(__doc__)
os.environ["TT_MEM"], os.environ["TRACKED_WORKER"] = sys.argv[1:3]
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "integration"))
try:
    import pytest  # noqa: F401
except ImportError:
    print("skipped: needs pytest (Debian: python3-pytest)")
    sys.exit(77)
from support import TT_MEM, Server, Tracked, Tree, clean_env, raise_fd_limit  # noqa: E402

CHIPS = 32
REFRESH_MS = 500
WARM_UP_S = 4.0
SIZES = ((80, 24), (200, 50))


def cpu_ns(pid: int) -> int:
    """What all its threads took of a processor."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(path.read_text().split()[0]) for path in tasks)


def resident_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


class Dashboard:
    """A `tt-mem top` on a terminal of that size; what it draws is read and thrown away."""

    def __init__(self, columns: int, rows: int, page: str, env: dict[str, str]):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._fd = ours
        self.written = 0
        self.process = subprocess.Popen(
            [TT_MEM, "top", "-r", str(REFRESH_MS), "--view", page],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**env, "TERM": "xterm-256color"},
            start_new_session=True,
        )
        os.close(theirs)

    def run_for(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left_s := until - time.monotonic()) > 0:
            if select.select([self._fd], [], [], left_s)[0]:
                self.written += len(os.read(self._fd, 65536))

    def close(self) -> None:
        os.write(self._fd, b"q")
        try:
            self.run_for(0.5)
        except OSError:  # it has closed its end
            pass
        status = self.process.wait(10)
        os.close(self._fd)
        if status != 0:
            sys.exit(f"the dashboard ended with {status}")


def make_machine(folder: Path, workers: list[Tracked]) -> Tree:
    tree = Tree(folder)
    held: dict[int, list[int]] = {chip: [] for chip in range(CHIPS)}
    for number, worker in enumerate(workers):
        tree.real_process(worker.pid)
        held[number % CHIPS].append(worker.pid)
    for chip, pids in held.items():
        tree.card(chip, f"0000:{chip + 1:02x}:00.0", tt_card_type="galaxy-wormhole")
        tree.pids(chip, *pids)
    return tree


def start_workers(server: Server, count: int, allocations: int) -> list[Tracked]:
    each = allocations // count
    workers = [Tracked(server) for _ in range(count)]
    for number, worker in enumerate(workers):
        worker.begin(f"within {number % 16}")
        worker.finish()
        worker.begin(f"alloc {number % CHIPS} {number // CHIPS % 2} {each} 2048")
    for worker in workers:
        worker.finish()
    return workers


def main() -> None:
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 10
    processes = int(sys.argv[4]) if len(sys.argv) > 4 else 200
    allocations = int(sys.argv[5]) if len(sys.argv) > 5 else 1_000_000
    raise_fd_limit(4096)
    folder = Path(tempfile.mkdtemp(prefix="tt-mem-bench-"))
    server = Server(folder).start()
    workers: list[Tracked] = []
    try:
        workers = start_workers(server, processes, allocations)
        tree = make_machine(folder, workers)
        server.check()
        print(
            f"{CHIPS} chips, {processes} processes, {server.status()['lives']} live "
            f"allocations, a look every {REFRESH_MS} ms\n"
        )
        measure_idle(server, seconds)
        measure_pages(server, tree, workers, seconds)
    finally:
        for worker in workers:
            worker.kill()
        server.kill()
        shutil.rmtree(folder)


def measure_idle(server: Server, seconds: float) -> None:
    before = cpu_ns(server.pid)
    time.sleep(seconds / 2)
    share = (cpu_ns(server.pid) - before) / (seconds / 2) / 1e9
    print(f"the server without a dashboard: {100 * share:.2f} % of a core\n")


def change_all_banks(workers: list[Tracked]) -> None:
    """One allocation more on each bank that has any."""
    for number, worker in enumerate(workers[: CHIPS * 2]):
        worker.begin(f"alloc {number % CHIPS} {number // CHIPS % 2} 1 2048")
    for worker in workers[: CHIPS * 2]:
        worker.finish()


def run_and_compare(dashboard: Dashboard, seconds: float, changing: list[Tracked]) -> int:
    """Returns the most CPU time, in ns, that was spent from one refresh to the next."""
    dearest, before = 0, cpu_ns(dashboard.process.pid)
    for _ in range(max(1, round(seconds * 1000 / REFRESH_MS))):
        change_all_banks(changing)
        dashboard.run_for(REFRESH_MS / 1000)
        now = cpu_ns(dashboard.process.pid)
        dearest, before = max(dearest, now - before), now
    return dearest


def measure_pages(server: Server, tree: Tree, workers: list[Tracked], seconds: float) -> None:
    env = clean_env(
        TTMEM_ROOT=str(tree.root),
        TTMEM_SOCKET=server.socket,
        XDG_CONFIG_HOME=str(tree.folder / "config"),
    )
    print(
        "| page | screen | ms CPU a look | the dearest | dashboard | server "
        "| resident, before and after |"
    )
    print("|---|---|---|---|---|---|---|")
    for page, name, changing in (
        ("1", "devices", []),
        ("2", "charts", []),
        ("3", "origins", []),
        ("3", "origins that change", workers),
    ):
        for columns, rows in SIZES:
            dashboard = Dashboard(columns, rows, page, env)
            dashboard.run_for(WARM_UP_S)
            pid = dashboard.process.pid
            before, server_before = cpu_ns(pid), cpu_ns(server.pid)
            began, kib = time.monotonic(), resident_kib(pid)
            dearest = run_and_compare(dashboard, 3 * seconds if page == "3" else seconds, changing)
            spent_s = time.monotonic() - began
            own = (cpu_ns(pid) - before) / 1e9
            servers = (cpu_ns(server.pid) - server_before) / 1e9
            looks = spent_s * 1000 / REFRESH_MS
            print(
                f"| {name} | {columns}x{rows} | {own / looks * 1000:.2f} | {dearest / 1e6:.2f} | "
                f"{100 * own / spent_s:.2f} % | {100 * servers / spent_s:.2f} % | "
                f"{kib / 1024:.1f}, {resident_kib(pid) / 1024:.1f} MiB |",
                flush=True,
            )
            dashboard.close()


main()
