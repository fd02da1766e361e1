# SPDX-License-Identifier: Apache-2.0
"""TT-Metal's own count in /dev/shm beside ours.

What it shows of programs that are not tracked, and what it misses of those that are.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
from basics import wait_for
from clusters import N150, N300, Cluster
from commands import run
from programs import Program, assert_exact
from tracked import row_of

Start = Callable[..., Program]

REAL = {"TTMEM_ROOT": ""}  # this very machine, on which other programs may be counted too
TILES = 64 * 64 * 2  # bytes of the tensors below
TOTAL_DRAM, FIRST_ENTRY, ENTRY_SIZE, ENTRIES = 48, 856, 120, 64  # the layout of a file
PID_LIMIT = 4_000_000  # few machines get so far, and no process of these tests


@pytest.fixture
def own() -> Iterator[Callable[[Cluster], Cluster]]:
    """
    Clusters whose chips no other program of this machine has, so that the files about them are
    ours; and those are removed.
    """
    made: list[Cluster] = []

    def make(cluster: Cluster) -> Cluster:
        first = 8_000_000_000 + (os.getpid() * 10 + len(made)) * 100
        made.append(dataclasses.replace(cluster, first_asic_id=first))
        return made[-1]

    yield make
    for cluster in made:
        for path in files_of(cluster):
            path.unlink(missing_ok=True)


def files_of(cluster: Cluster) -> list[Path]:
    return [Path(f"/dev/shm/tt_device_{cluster.asic_id(chip)}_memory") for chip in cluster.places]


def rows(folder: Path, server: Any, pid: int) -> list[dict[str, Any]]:
    """The rows of that process in a dump; without 'server', of what is known without any."""
    socket = server.socket if server else str(folder / "nobody")
    env = {**REAL, "TTMEM_SOCKET": socket, "XDG_RUNTIME_DIR": str(folder)}
    result = run("dump", "--json", "--pid", str(pid), env=env)
    return result.json["processes"] if result.status == 0 else []


def counted(folder: Path, program: Program) -> dict[tuple[int, str], int]:
    """Bytes by chip and region as TT-Metal counts them."""
    found = rows(folder, None, program.pid)
    assert [row["source"] for row in found] in ([], ["runtime"])
    return bytes_in(found[0]) if found else {}


def bytes_in(row: dict[str, Any] | None) -> dict[tuple[int, str], int]:
    return {
        (device["id"], name): region["remaining_bytes"]
        for device in (row["devices"] if row else [])
        for name, region in device["regions"].items()
        if region["remaining_bytes"]
    }


def test_a_program_that_was_not_started_under_us(folder: Path, server: Any, own: Any) -> None:
    with Program(folder, own(N150)) as program:
        program.do("""
            device = open_device()
            kept = [tensor(device, 64, 64) for _ in range(4)]
            small = tensor(device, 32, 32, memory=ttnn.L1_MEMORY_CONFIG)
        """)
        for asked in (None, server):
            (row,) = rows(folder, asked, program.pid)
            assert row["source"] == "runtime" and row["complete"] is False
            assert row["buffers"] == row["origins"] == []
            assert bytes_in(row) == {(0, "DRAM"): 4 * TILES, (0, "L1"): 2048}
        env = {**REAL, "TTMEM_SOCKET": server.socket}
        (device,) = run("monitor", "--once", "--json", "-d", "0", env=env).json["devices"]
        assert device["regions"]["DRAM"]["bytes"] == 0  # nothing is tracked
        assert device["regions"]["DRAM"]["runtime_bytes"] >= 4 * TILES  # others may run as well
        (process,) = (p for p in device["processes"] if p["pid"] == program.pid)
        assert process["source"] == "runtime"
        assert process["regions"]["DRAM"] == {
            "bytes": 4 * TILES,
            "footprint_bytes": None,
            "count": None,
        }
        status = server.status("--check")
        assert status["clients"] == [] and status["check"]["processes"] == 0
        assert program.pid in [p["pid"] for p in status["runtime"]]
        program.do("kept.clear()")
        assert counted(folder, program) == {(0, "L1"): 2048}
        assert program.end() == 0
    assert rows(folder, server, program.pid) == []


def test_two_chips(folder: Path, own: Any) -> None:
    with Program(folder, own(N300)) as program:
        program.do("mesh = open_mesh(1, 2); kept = [tensor(mesh, 64, 64) for _ in range(3)]")
        assert counted(folder, program) == {(0, "DRAM"): 3 * TILES, (1, "DRAM"): 3 * TILES}


def test_a_tracked_program_is_never_counted_twice(
    folder: Path, server: Any, start: Start, own: Any
) -> None:
    program = start(own(N150))
    program.do("device = open_device(); kept = [tensor(device, 64, 64) for _ in range(4)]")
    assert_exact(server, program)
    assert counted(folder, program)  # TT-Metal counts it all the same
    with Program(folder, own(N150)) as other:  # and there is one to be shown by that count
        other.do("device = open_device(); kept = tensor(device, 64, 64)")
        follow_tracked(folder, server, program)
        assert [row["source"] for row in rows(folder, server, other.pid)] == ["runtime"]


def follow_tracked(folder: Path, server: Any, program: Program) -> None:
    env = {**REAL, "TTMEM_SOCKET": server.socket}

    def sources() -> set[str]:
        (device,) = run("monitor", "--once", "--json", "-d", "0", env=env).json["devices"]
        return {p["source"] for p in device["processes"] if p["pid"] == program.pid}

    for step in range(5):
        program.do(f"kept.append(tensor(device, 64, {32 * (step + 1)}))")
        assert [row["source"] for row in rows(folder, server, program.pid)] == ["tracked"]
        assert sources() == {"tracked"}
        assert program.pid not in [p["pid"] for p in server.status()["runtime"]]
    program.do("ctypes.CDLL(None).ttmem_disable()")
    wait_for(lambda: sources() == {"runtime"}, "the runtime's count to be taken instead")
    assert program.do("result = ctypes.CDLL(None).ttmem_enable()") == 0
    wait_for(lambda: sources() == {"tracked"}, "the program to be tracked again")
    assert_exact(server, program)


# What is done, and how many tensors TT-Metal's count then is off.
STEPS = [
    ("4 tensors, by the thread that opened the device", "a = [make() for _ in range(4)]", 0),
    ("3 tensors, by three other threads", "b = []; in_threads(3, lambda n: b.append(make()))", -3),
    ("one of the 4 freed by the first thread", "a.pop()", -3),
    ("one of the 3 freed by the first thread", "b.pop()", -3),
    ("one of the 4 freed by another thread", "in_threads(1, lambda n: a.pop())", -2),
    ("the other 2 of the 4 freed by the first thread", "a.clear()", -2),
    ("the other 2 of the 3 freed by another thread", "in_threads(1, lambda n: b.clear())", 0),
    ("2 tensors, by the first thread", "a = [make() for _ in range(2)]", 0),
    ("both freed by another thread", "in_threads(1, lambda n: a.clear())", 2),
]


def test_what_it_misses(
    folder: Path, server: Any, start: Start, own: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    program = start(own(N150))
    program.do("device = open_device(); make = lambda: tensor(device, 64, 64)")
    table = []
    for what, code, difference in STEPS:
        program.do(code)
        row = assert_exact(server, program)
        blocks, footprint = program.holds.get((0, "DRAM"), (0, 0))
        tracked = bytes_in(row).get((0, "DRAM"), 0)
        upstream = counted(folder, program).get((0, "DRAM"), 0)
        table.append((what, blocks, footprint, tracked, upstream))
        assert tracked == blocks * TILES, table
        assert upstream - tracked == difference * TILES, table
    with capsys.disabled():
        print_table(table)


def print_table(table: list[tuple[str, int, int, int, int]]) -> None:
    head = ("step", "allocator: blocks", "footprint", "tt-mem: bytes", "/dev/shm: bytes")
    print("\n| " + " | ".join(head) + " |\n|---|---|---|---|---|")
    for row in table:
        cells = (f"{cell:,}" if isinstance(cell, int) else cell for cell in row)
        print("| " + " | ".join(cells) + " |")


def test_what_a_killed_program_leaves_is_known_for_what_it_is(
    folder: Path, server: Any, own: Any
) -> None:
    cluster = own(N150)
    with Program(folder, cluster) as program:
        program.do("device = open_device(); kept = [tensor(device, 64, 64) for _ in range(4)]")
        assert counted(folder, program) == {(0, "DRAM"): 4 * TILES}
        program.process.kill()
        program.process.wait()
    (path,) = files_of(cluster)
    assert program.pid.to_bytes(4, "little") in path.read_bytes()  # it is still counted there
    assert rows(folder, None, program.pid) == rows(folder, server, program.pid) == []
    place = folder / "next"
    place.mkdir()
    with Program(place, cluster) as following:
        following.do("device = open_device(); kept = tensor(device, 64, 64)")
        assert counted(folder, following) == {(0, "DRAM"): TILES}
        assert rows(folder, server, program.pid) == []


def test_a_file_that_is_full_of_the_dead(folder: Path, server: Any, own: Any) -> None:
    """TT-Metal does not clear their places: the next program is counted for the chip alone."""
    cluster = own(N150)
    with Program(folder, cluster) as program:
        program.do("device = open_device(); kept = tensor(device, 64, 64)")
        program.process.kill()
        program.process.wait()
    (path,) = files_of(cluster)
    with path.open("r+b") as file:
        contents = file.read()
        entry = contents[FIRST_ENTRY + 4 : FIRST_ENTRY + ENTRY_SIZE]
        file.seek(FIRST_ENTRY)
        for number in range(ENTRIES):
            file.write((PID_LIMIT + number).to_bytes(4, "little") + entry)
    place = folder / "next"
    place.mkdir()
    with Program(place, cluster) as following:
        following.do("device = open_device(); kept = tensor(device, 64, 64)")
        total = int.from_bytes(path.read_bytes()[TOTAL_DRAM : TOTAL_DRAM + 8], "little")
        assert total == 2 * TILES
        assert counted(folder, following) == {}  # nobody's, and nothing is made up
        assert following.pid not in [p["pid"] for p in server.status()["runtime"]]


def test_a_program_that_lets_nothing_be_counted(folder: Path, server: Any, own: Any) -> None:
    env: dict[str, str | None] = {"TT_METAL_SHM_TRACKING_DISABLED": "1"}
    with Program(folder, own(N150), env=env) as program:
        program.do("device = open_device(); kept = tensor(device, 64, 64)")
        assert counted(folder, program) == {}
        assert row_of(server, program.pid) is None
