# SPDX-License-Identifier: Apache-2.0
"""What fails in TT-Metal fails in the same way when it is tracked, and the books stay right."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from pathlib import Path
from typing import Any, Callable

import pytest
from basics import PATIENCE_S, TT_MEM, wait_for
from clusters import N150
from programs import PYTHON, Failure, Program, assert_exact, environment
from tracked import row_of

Start = Callable[..., Program]

FILL_L1 = """
    kept = []
    while True:
        kept.append(tensor(device, 1024, 1024, memory=ttnn.L1_MEMORY_CONFIG))
"""
TOO_LARGE = "huge = tensor(device, 1 << 16, 1 << 17)"


# Two callers fill L1 through one helper. What a third one tries is caught; a moment later the last fails.
HELPER = """
import ttnn
device = ttnn.open_device(device_id=0)
def alloc(mib): return ttnn.empty((mib * 512, 1024), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device,
                                  memory_config=ttnn.L1_MEMORY_CONFIG)
def weights(): return [alloc(8) for _ in range(4)]
def cache(): return [alloc(8) for _ in range(6)]
def probe():
    for mib in 64, 32, 16:
        try:
            return alloc(mib)
        except RuntimeError:
            pass
def scratch(): return alloc(16)
kept = weights(), cache(), probe()
scratch()
"""


def without_addresses(text: str) -> str:
    """Those in its backtrace are of one run."""
    assert "backtrace:" in text and "libttmem" not in text
    return re.sub(r"\[0x[0-9a-f]+\]", "[]", text)


def runtimes_frames(row: dict[str, Any]) -> tuple[str, ...]:
    """Those inside of what Python calls."""
    return tuple(itertools.takewhile(lambda frame: "nanobind" not in frame, row["native"]))


def told_failures(server: Any, program: Program, count: int) -> list[dict[str, Any]]:
    """What the server has heard of failed allocations, once there are as many."""

    def failures() -> list[dict[str, Any]]:
        row = row_of(server, program.pid)
        return row["failures"] if row else []

    wait_for(lambda: len(failures()) >= count, f"{count} failures")
    assert len(failures()) == count
    return failures()


def failure_of(program: Program, code: str) -> Failure:
    with pytest.raises(Failure) as caught:
        program.do(code)
    return caught.value


@pytest.mark.parametrize("code", [FILL_L1, TOO_LARGE], ids=["l1", "dram"])
def test_out_of_memory(start: Start, server: Any, folder: Path, code: str) -> None:
    program = start()
    program.do("device = open_device(); first = tensor(device, 64, 64)")
    failure = failure_of(program, code)
    assert failure.kind == "RuntimeError" and "Out of Memory" in failure.text
    row = assert_exact(server, program)
    again = failure_of(program, TOO_LARGE)
    assert_exact(server, program)

    region = "L1" if code == FILL_L1 else "DRAM"
    view = program.do(f"""
        view = ttnn.get_memory_view(device, ttnn.BufferType.{region})
        result = view.total_bytes_free_per_bank, view.largest_contiguous_bytes_free_per_bank
    """)
    first = told_failures(server, program, 2)[0]
    assert (first["kind"], first["region"]) == ("out_of_memory", region)
    assert [first["free_bytes"], first["largest_free_bytes"]] == view
    assert first["bank_wanted_bytes"] > first["largest_free_bytes"]
    assert row["failures"][0]["wanted_bytes"] == (1 << 21 if region == "L1" else 1 << 34)

    (folder / "untracked").mkdir()
    with Program(folder / "untracked") as untracked:
        untracked.do("device = open_device(); first = tensor(device, 64, 64)")
        same = failure_of(untracked, code)
        assert untracked.holds == program.holds
        assert (same.kind, without_addresses(same.text)) == (
            failure.kind,
            without_addresses(failure.text),
        )
        same = failure_of(untracked, TOO_LARGE)
        assert without_addresses(same.text) == without_addresses(again.text)

    program.do("kept = None")
    assert_exact(server, program)
    program.do("kept = [tensor(device, 64, 64)]")
    assert_exact(server, program)


def clash_in(program: Program) -> Failure:
    program.do("device = open_device(); x = tensor(device, 1024, 1024)")
    failure_of(program, FILL_L1)
    return failure_of(program, "y = ttnn.softmax(x, dim=-1)")


def test_circular_buffers_that_do_not_fit(start: Start, server: Any, folder: Path) -> None:
    program = start()
    clash = clash_in(program)
    assert "clash" in clash.text, clash.text
    assert_exact(server, program)
    (folder / "untracked").mkdir()
    with Program(folder / "untracked") as untracked:
        same = clash_in(untracked)
        assert (same.kind, without_addresses(same.text)) == (
            clash.kind,
            without_addresses(clash.text),
        )
    told = told_failures(server, program, 2)[-1]
    assert told["kind"] == "cb_clash"
    # The runtime says up to which address they would have grown.
    assert str(told["bank_wanted_bytes"]) in clash.text, (told, clash.text)
    program.do("kept = None; y = ttnn.softmax(x, dim=-1)")
    assert_exact(server, program)


def test_operations_that_refuse_their_arguments(start: Start, server: Any) -> None:
    program = start()
    program.do("device = open_device(); a = tensor(device, 64, 96); b = tensor(device, 64, 64)")
    for _ in range(3):
        failure_of(program, "c = ttnn.matmul(a, b)")
        assert assert_exact(server, program)["failures"] == []


def test_an_open_that_fails_changes_nothing(start: Start, server: Any) -> None:
    program = start()
    program.do("device = open_device(); kept = tensor(device, 64, 64)")
    failure_of(program, "ttnn.open_device(device_id=5)")
    assert {device["id"] for device in assert_exact(server, program)["devices"]} == {0}


def run_helper(folder: Path, *options: str | Path) -> str:
    """What `tt-mem run` says on stderr of it."""
    (folder / "helper.py").write_text(HELPER)
    done = subprocess.run(
        [TT_MEM, "run", *options, PYTHON, "helper.py"],
        capture_output=True,
        text=True,
        env=environment(folder, N150, COLUMNS="80"),
        timeout=PATIENCE_S,
        cwd=folder,
    )
    assert done.returncode == 1 and "4 allocations failed" in done.stderr, done.stderr
    return done.stderr


def test_with_connect_callers_are_told_too(server: Any, folder: Path) -> None:
    stderr = run_helper(folder, "--connect", server.socket)
    head = r"^tt-mem: out of memory in L1 of device 0 at helper.py:4 ← (\w+) \(ttnn.empty\)\n(.*)$"
    told = dict(re.findall(head, stderr, re.M))
    assert told["scratch"] == "  16.0 MiB wanted, 256 KiB in each of 64 banks", stderr
    held = re.findall(r"([\d.]+ MiB) +(\d+) buffers  helper.py:4 ← (\w+) ", stderr)
    assert held[:2] == [("48.0 MiB", "6", "cache"), ("32.0 MiB", "4", "weights")], stderr


def test_run_and_report_tell_of_the_failure_that_ended_it_and_of_callers(folder: Path) -> None:
    stderr = run_helper(folder, "-o", "x.ttmem")
    head = r"^tt-mem: out of memory in L1 of device 0 at helper.py:4 ← (\w+) \(ttnn.empty\)$"
    told = re.findall(head, stderr, re.M)
    assert told[0] == "probe" and told.count("scratch") == 1, stderr
    last = stderr[[found.start() for found in re.finditer(head, stderr, re.M)][told.index("scratch")] :]
    held = re.findall(r"([\d.]+ MiB) +(\d+) buffers  helper.py:4 ← (\w+) ", last)
    assert held[:2] == [("48.0 MiB", "6", "cache"), ("32.0 MiB", "4", "weights")], last

    report = subprocess.run(
        [TT_MEM, "report", "x.ttmem"], capture_output=True, text=True, check=True, cwd=folder
    ).stdout
    heads = re.findall(r"^  out of memory in L1 of device 0(.*) at helper.py:4 ← (\w+)", report, re.M)
    assert [name for _, name in heads] == ["scratch", "probe"], report
    assert ", 3 times from " in heads[1][0] and " times" not in heads[0][0], report

    # A failure is heard of inside the unwinder. Its frames are those of an allocation all the same, with
    # the runtime's function that has asked for memory and, where all goes well, asks another to announce it.
    (process,) = json.loads(
        subprocess.run(
            [TT_MEM, "report", "--json", "x.ttmem"],
            capture_output=True,
            text=True,
            check=True,
            cwd=folder,
        ).stdout
    )["processes"]
    (born,) = {runtimes_frames(origin) for origin in process["origins"]}
    for failure in process["failures"]:
        assert runtimes_frames(failure) in (born, ("tt::tt_metal::BufferImpl::allocate_impl", *born))
