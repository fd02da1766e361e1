# SPDX-License-Identifier: Apache-2.0
"""What people see while a ttnn program runs: top, devices, ps and monitor tell the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Callable

from basics import wait_for
from clusters import T3K
from commands import run
from programs import Program, assert_exact, regions_of
from screens import Screen, needs_tmux
from tracked import row_of

Start = Callable[..., Program]

CHIPS = range(8)

# Memory of every kind that top tells apart, on all chips of a mesh.
JOB = """
    mesh = open_mesh(2, 4, l1_small_size=16384)
    weights = [tensor(mesh, 1024, 1024 * (i + 1)) for i in range(4)]
    activations = [tensor(mesh, 256, 256, memory=ttnn.L1_MEMORY_CONFIG) for _ in range(3)]
    x = tensor(mesh, 128, 128)
    y = ttnn.add(x, x)
    z = ttnn.multiply(x, x)
"""


def short(number: int) -> str:
    """As the dashboard writes bytes: "3.90G", "132K"."""
    value, unit = float(number), 0
    while value >= 999.5:
        value, unit = value / 1024, unit + 1
    if unit == 0:
        return str(number)
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}{' KMGT'[unit]}"


def env(server: Any) -> dict[str, str | None]:
    """A machine without cards, of this server alone."""
    return {
        "TTMEM_SOCKET": server.socket,
        "TTMEM_ROOT": str(server.folder / "root"),
        "XDG_CONFIG_HOME": str(server.folder / "config"),
    }


def document(server: Any, *args: str) -> dict[str, Any]:
    result = run(*args, "--json", env=env(server))
    assert result.status == 0 and result.err == "", result
    return result.json


def kinds(server: Any, program: Program, chip: int) -> dict[str, int]:
    """What the program takes on that chip, by the server's rows."""
    regions = regions_of(row_of(server, program.pid), chip)
    used = {name: row["remaining_footprint_bytes"] for name, row in regions.items()}
    if "CB" in regions:
        used["CB"] = regions["CB"]["resident_bytes"]
    return used


def chip_rows(text: str, chip: int) -> tuple[str, str]:
    """The two rows of a chip: DRAM and L1."""
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"{chip:2} "))
    return lines[at], lines[at + 1]


@needs_tmux
def test_eight_chips_on_a_small_and_a_wide_screen(start: Start, server: Any, folder: Path) -> None:
    program = start(T3K)
    program.do(JOB)
    assert_exact(server, program)
    pid = str(program.pid)
    with Screen(folder, "top", "-r", "200", "--view", "1", env=env(server)) as screen:
        used = kinds(server, program, 0)
        assert used["L1"] > 0 and used["CB"] > 0 and used["KERNEL"] > 0
        text = screen.wait_for("8 devices", "server ok", f"kern {short(used['KERNEL'])}")
        for chip in CHIPS:
            assert kinds(server, program, chip) == used  # a mesh has the same on each
            assert program.holds[chip, "DRAM"][1] == used["DRAM"]
            dram, l1 = chip_rows(text, chip)
            assert f"{short(used['DRAM'])}/12.0G" in dram, text
            assert f"█ L1 {short(used['L1'])} ▒ CB {short(used['CB'])} ▓ kern" in l1, text
            sum_l1 = used["L1"] + used["CB"] + used["KERNEL"] + used.get("L1_SMALL", 0)
            assert f"{short(sum_l1)}/" in l1, text
        row = next(line for line in text.splitlines() if pid in line)
        assert " 0-7 " in row and " tracked " in row and short(8 * used["DRAM"]) in row, text

        screen.resize(200, 50)
        screen.wait_for(
            f"▒ circular {short(used['CB'])}",
            "requested DRAM",
            "requested L1",
            "reserved L1",
            "KERNEL L1_SMALL TRACE",
        )

        screen.keys("3")
        screen.resize(80, 24)
        text = screen.wait_for("(empty) ←", "(add) ←", "12 banks, each 1.00G", "fragmented")
        rows = [line for line in text.splitlines() if pid in line and " 0-7 " in line]
        assert any(" DRAM " in r and re.search(r" 4 +\S+ +DRAM", r) for r in rows), text
        assert any(" L1 " in r for r in rows) and any(" CB " in r for r in rows), text
        assert any("█" in line and line.startswith("▕") for line in text.splitlines()), text
        assert "device 0 DRAM" in text, text
        screen.keys("Right")
        screen.wait_for("device 1 DRAM, 12 banks")
        screen.keys("Enter")
        screen.wait_for("4 allocations", "python", "native", "tt::tt_metal::", "PgDn: more")
        screen.keys("NPage")
        screen.wait_for("addresses", "0x", "MiB")
        screen.keys("Escape")
        before = program.holds[0, "DRAM"][1]
        program.do("late = tensor(mesh, 1024, 1024)")
        added = short(program.holds[0, "DRAM"][1] - before)
        screen.wait_until(
            lambda text: bool(re.search(rf" {added} +1 .* DRAM +0-7 +{pid} ", text)), "the late one"
        )
        screen.keys("2")
        screen.wait_for("0 n300 DRAM", "the last 1 min")
        screen.keys("1")
        screen.wait_for(pid)
        program.process.kill()
        program.process.wait()
        text = screen.wait_until(lambda text: pid not in text, "the program to go")
        assert "server ok" in text
        assert f"{short(used['DRAM'])}/" not in text
        screen.keys("q")
        screen.assert_usable(0)


def test_two_programs_on_chips_of_their_own(start: Start, server: Any) -> None:
    first, second = start(T3K), start(T3K)
    first.do("mesh = open_mesh(1, 2); a = [tensor(mesh, 256, 256) for _ in range(3)]")
    second.do("mesh = open_mesh(2, 4); b = tensor(mesh, 512, 512)")
    assert_exact(server, first)
    assert_exact(server, second)
    ids = sorted({chip for chip, _ in first.holds})
    assert len(ids) == 2
    held = {
        p["pid"]: p for p in document(server, "ps")["processes"] if p["reporting"] == "tracked"
    }
    assert held[first.pid]["devices"] == ids
    assert held[second.pid]["devices"] == list(CHIPS)
    for device in document(server, "devices")["devices"]:
        want = sum(p.holds.get((device["id"], "DRAM"), (0, 0))[1] for p in (first, second))
        assert device["regions"]["DRAM"]["footprint_bytes"] == want


def listed(server: Any, pid: int) -> list[dict[str, Any]]:
    """Its row of ps, which has those of other programs, too, that are switched off."""
    return [p for p in document(server, "ps")["processes"] if p["pid"] == pid]


def test_all_commands_tell_the_same_of_circular_buffers(start: Start, server: Any) -> None:
    program = start(T3K)
    program.do(JOB)
    assert_exact(server, program)
    cb = regions_of(row_of(server, program.pid), 0)["CB"]
    assert 0 < cb["resident_bytes"] <= cb["registered_bytes"] < cb["remaining_footprint_bytes"]

    def both(region: dict[str, Any]) -> tuple[int, int]:
        return region["resident_bytes"], region["registered_bytes"]

    want = cb["resident_bytes"], cb["registered_bytes"]
    (process,) = listed(server, program.pid)
    assert both(process["regions"]["CB"]) == (8 * want[0], 8 * want[1])
    for command in (("devices",), ("monitor", "--once")):
        for device in document(server, *command)["devices"]:
            assert both(device["regions"]["CB"]) == want
    wide = {**env(server), "COLUMNS": "200", "LINES": "50"}
    dumped = next(r for r in run("dump", env=wide).out.splitlines() if r.split()[:1] == ["CB"])
    assert re.search(rf"resident +{want[0] / 1024:.0f} KiB", dumped), dumped
    assert f"circular {short(want[0])} " in run("top", "--snapshot", env=wide).out
    row = next(r for r in run("ps", env=wide).out.splitlines() if str(program.pid) in r)
    assert f"{8 * want[0] / 1024:.0f} KiB" in row or f"{8 * want[0] / 2**20:.1f} MiB" in row, row


def test_a_program_that_ends_leaves_nothing_behind(start: Start, server: Any) -> None:
    program = start(T3K)
    program.do(JOB)
    wait_for(lambda: listed(server, program.pid), "it to be listed")
    program.process.kill()
    program.process.wait()
    wait_for(lambda: not listed(server, program.pid), "it to go")
    for device in document(server, "devices")["devices"]:
        assert {region["bytes"] for region in device["regions"].values()} <= {0, None}
