# SPDX-License-Identifier: Apache-2.0
"""Crashes, forks, servers that come and go, and tracking that begins late."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any, Callable

import programs
import pytest
from basics import PATIENCE_S, TT_MEM, wait_for
from programs import HOOK, PYTHON, Program, assert_exact, collect, tracked_holds
from tracked import row_of

Start = Callable[..., Program]

OFF = {"TT_ALLOC_TRACKING_ENABLED": None}
ENABLE = "result = ctypes.CDLL(None).ttmem_enable()"

# Threads that make and free tensors until they are told to stop.
CHURN = """
    device = open_device()
    kept = [tensor(device, 64, 64) for _ in range(50)]
    stop = threading.Event()
    rounds = [0] * 4

    def churn(number):
        own = []
        while not stop.is_set():
            own.append(tensor(device, 32, 32 * (rounds[number] % 5 + 1)))
            if len(own) > 6:
                del own[::2]
            rounds[number] += 1
        kept.extend(own)
    workers = [threading.Thread(target=churn, args=(n,)) for n in range(4)]
    for worker in workers:
        worker.start()
    while min(rounds) < 20:
        pass
"""
STOP = """
    stop.set()
    for worker in workers:
        worker.join()
"""


def is_gone(server: Any, pid: int) -> bool:
    return row_of(server, pid) is None


def test_kill_in_mid_run(start: Start, server: Any) -> None:
    program = start()
    program.do(CHURN)
    wait_for(lambda: row_of(server, program.pid), "the program to be known")
    program.process.kill()
    program.process.wait()
    wait_for(lambda: is_gone(server, program.pid), "the program to be gone")
    assert server.check()["unknown_frees"] == 0


def test_segmentation_fault(start: Start, server: Any) -> None:
    program = start()
    program.do(CHURN)
    wait_for(lambda: row_of(server, program.pid), "the program to be known")
    program.begin("ctypes.string_at(0)")
    assert program.process.wait(PATIENCE_S) == -signal.SIGSEGV
    wait_for(lambda: is_gone(server, program.pid), "the program to be gone")
    assert server.check()["unknown_frees"] == 0


def test_a_child_has_books_of_its_own(start: Start, server: Any) -> None:
    program = start()
    program.do("device = open_device(); kept = [tensor(device, 64, 64) for _ in range(4)]")
    assert_exact(server, program)
    child, rows = program.do("""
        import json, sys
        ours, theirs = os.pipe()
        wait, go_on = os.pipe()
        child = os.fork()
        if child == 0:
            del kept[0]
            more = [tensor(device, 128, 64) for _ in range(3)]
            os.write(theirs, json.dumps(sys.modules["__main__"].holds(device)).encode())
            os.read(wait, 1)
            os._exit(7)
        result = child, json.loads(os.read(ours, 65536))
    """)
    # What it got from its parent stays the parent's.
    in_child = collect(rows)
    assert in_child[0, "DRAM"] == (3 + 3, 3 * 24576 + 3 * 24576)
    own = {(0, "DRAM"): (3, 3 * 24576)}
    wait_for(lambda: tracked_holds(row_of(server, child)) == own, "the child to be exact")
    assert_exact(server, program)
    assert program.do("os.write(go_on, b'x'); result = os.waitpid(child, 0)[1]") == 7 << 8
    wait_for(lambda: is_gone(server, child), "the child to be gone")
    program.do("kept.pop()")
    assert_exact(server, program)


def test_a_child_that_does_nothing_says_nothing(start: Start, server: Any) -> None:
    program = start()
    program.do("device = open_device(); kept = [tensor(device, 64, 64) for _ in range(4)]")
    status = program.do("""
        child = os.fork()
        if child == 0:
            os._exit(3)
        result = os.waitpid(child, 0)[1]
    """)
    assert status == 3 << 8
    assert_exact(server, program)


def test_server_killed_and_restarted(start: Start, server: Any) -> None:
    program = start()
    program.do(CHURN)
    for _ in range(2):
        server.kill()
        program.do("kept.append(tensor(device, 64, 96)); kept.pop(0)")
        server.start()
        wait_for(lambda: row_of(server, program.pid), "the program to be known again")
    program.do(STOP)
    assert_exact(server, program)
    program.do("del kept[::2]")
    assert_exact(server, program)


def test_no_server_until_late(start: Start, server: Any) -> None:
    server.stop()
    program = start()
    program.do("device = open_device(); kept = [tensor(device, 64, 64) for _ in range(9)]")
    program.do("del kept[2:5]")
    server.start()
    assert_exact(server, program)


def test_enabled_in_mid_run(start: Start, server: Any) -> None:
    program = start(env=OFF)
    program.do(CHURN)
    assert row_of(server, program.pid) is None
    assert program.do(ENABLE) == 0
    program.do("before = list(rounds)\nwhile min(b - a for a, b in zip(before, rounds)) < 20: pass")
    program.do(STOP)
    assert_exact(server, program)
    program.do("del kept[::3]")
    assert_exact(server, program)


def test_off_and_on_again(start: Start, server: Any) -> None:
    program = start()
    program.do("device = open_device(); kept = [tensor(device, 64, 64) for _ in range(5)]")
    assert_exact(server, program)
    for _ in range(3):
        program.do("ctypes.CDLL(None).ttmem_disable()")
        program.do("kept[1:3] = [tensor(device, 64, 32) for _ in range(4)]")
        assert program.do(ENABLE) == 0
        assert_exact(server, program)


def test_what_is_live_is_counted_once_when_tracking_goes_on_by_command(
    start: Start, server: Any
) -> None:
    program = start()
    program.do("device = open_device(); kept = [tensor(device, 64, 64) for _ in range(5)]")
    program.do("last = ttnn.add(kept[0], kept[1])")
    row = assert_exact(server, program)
    cb_peak = row["devices"][0]["regions"]["CB"]["peak_resident_bytes"]
    allocs = row["devices"][0]["regions"]["DRAM"]["allocs"]
    assert allocs == 6 and cb_peak > 0
    for _ in range(3):
        subprocess.run([TT_MEM, "disable", str(program.pid)], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([TT_MEM, "enable", str(program.pid)], check=True, stdout=subprocess.DEVNULL)
        program.do("kept.append(tensor(device, 64, 64)); del kept[0]")
        regions = assert_exact(server, program)["devices"][0]["regions"]
        allocs += 6 + 1  # what is there, and one more
        assert regions["DRAM"]["allocs"] == allocs
        assert regions["CB"]["peak_resident_bytes"] == cb_peak


def test_variable_set_after_the_import(start: Start, server: Any) -> None:
    program = start(env=OFF)
    program.do("""
        os.environ["TT_ALLOC_TRACKING_ENABLED"] = "1"
        device = open_device()
        kept = [tensor(device, 64, 64) for _ in range(5)]
    """)
    assert_exact(server, program)


def run_plainly(
    folder: Path, env: dict[str, str | None], *command: str
) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=programs.environment(folder, programs.N150, **env),
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_programs_without_ttnn_are_left_alone(folder: Path, server: Any) -> None:
    hooked = programs.hooked(server)
    closing = "import os, threading; os.closerange(3, 4096); print(threading.active_count())"
    commands = [
        ("/bin/sh", "-c", "echo out; echo err >&2; exit 5"),
        ("/bin/sh", "-c", "kill -9 $$"),
        (PYTHON, "-c", closing),
        # Programs that have no standard input, output or error.
        ("/bin/sh", "-c", "exec <&-; cat; echo $?"),
        ("/bin/sh", "-c", "(exec >&-; exec /bin/echo lost); echo $?"),
        ("/bin/sh", "-c", "(exec <&- >&- 2>&-; exec /bin/ls nowhere); echo $?"),
    ]
    for command in commands:
        assert run_plainly(folder, hooked, *command) == run_plainly(folder, {}, *command)
    assert server.status()["clients"] == []


RANK = """
import os, sys, ttnn
device = ttnn.open_device(device_id=0)
rank = int(os.environ["RANK"])
kept = [ttnn.empty((64, 64), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
        for _ in range(rank + 1)]
print("rank", rank, sys.stdin.readline().strip())
sys.exit(rank)
"""

LAUNCHER = """
import os, subprocess, sys
ranks = [subprocess.Popen([sys.executable, "rank.py"], env={**os.environ, "RANK": str(n)},
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) for n in range(3)]
said = [rank.communicate(b"go\\n")[0].decode() for rank in ranks]
print("".join(said), end="")
sys.exit(10 + sum(rank.returncode for rank in ranks))
"""

POOL = """
import multiprocessing

def work(count):
    import ttnn
    device = ttnn.open_device(device_id=0)
    kept = [ttnn.empty((64, 64), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
            for _ in range(count)]
    kept.clear()
    ttnn.close_device(device)
    return count

if __name__ == "__main__":
    for method in ("spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(pool.map(work, [2, 3]))
"""


def run_under_us(folder: Path, *args: str, **extra: str | None) -> tuple[int, str, str]:
    """`tt-mem run` on a Python program."""
    env = programs.environment(folder, programs.N150, XDG_RUNTIME_DIR=str(folder), **extra)
    done = subprocess.run(
        [TT_MEM, "run", "--no-record", PYTHON, *args],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_launcher_and_its_ranks(folder: Path) -> None:
    (folder / "rank.py").write_text(RANK)
    (folder / "launcher.py").write_text(LAUNCHER)
    status, out, err = run_under_us(folder, "launcher.py")
    assert (status, out) == (13, "rank 0 go\nrank 1 go\nrank 2 go\n"), err
    assert "tracked on 1 device · 6 allocations, 0 frees, nothing lost" in err
    assert "6 allocations remain" in err and "device 0  n150 wormhole_b0" in err
    rows = re.findall(r"^ +\d+  python rank.py +(\d+) +(\d+) +(\d+) ", err, re.M)
    assert rows == [("3", "0", "3"), ("2", "0", "2"), ("1", "0", "1")], err


def test_workers_of_a_pool(folder: Path) -> None:
    (folder / "pool.py").write_text(POOL)
    status, out, err = run_under_us(folder, "pool.py")
    assert (status, out) == (0, "[2, 3]\n[2, 3]\n"), err
    assert "tracked on 1 device · 10 allocations, 10 frees, nothing lost" in err, err
    assert "device 0  n150 wormhole_b0" in err and "nothing remains" in err, err


OPENING = "import sys, ttnn; ttnn.open_device(device_id=int(sys.argv[1]))"
NO_CLUSTER = {"TT_METAL_MOCK_CLUSTER_DESC_PATH": "/not/there.yaml"}


@pytest.mark.parametrize(
    ("program", "env", "status", "said"),
    [
        (["-c", "import ttnn"], {}, 0, " was loaded, but no device was opened"),
        (["-c", OPENING, "5"], {}, 1, r": opening a device failed \(.*chip 5 not found\)"),
        (["-c", OPENING, "0"], NO_CLUSTER, 1, r": finding devices failed \(.*/not/there.yaml\)"),
    ],
)
def test_what_came_of_a_program_without_a_device_is_said(
    folder: Path, program: list[str], env: dict[str, str | None], status: int, said: str
) -> None:
    ended, _, err = run_under_us(folder, *program, **env)
    last = err.splitlines()[-1]
    assert ended == status and "libttmem" not in err, err
    assert re.search(rf"; ttnn [\d.]+{said}, so nothing was tracked$", last), last


def test_the_hook_needs_no_cxx_library() -> None:
    """A program that brings a newer libstdc++ would get the system's instead."""
    script = "print(open('/proc/self/maps').read().count('libstdc++'))"
    done = subprocess.run(
        [PYTHON, "-S", "-c", script],
        env={**os.environ, "LD_PRELOAD": HOOK},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == 0
