# SPDX-License-Identifier: Apache-2.0
"""Leaks planted in programs with the real ttnn are found with their lines, and nothing else is."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from basics import PATIENCE_S, TT_MEM
from clusters import N150, T3K, Cluster
from programs import PYTHON, environment

PROGRAMS = Path(__file__).with_name("leak_programs.py")
PACKAGE = os.environ.get("TTMEM_PACKAGE", "")

# Steps of each program; a program that is not named runs with all of OTHERS.
STEPS = {
    "exception_sometimes": (15, 60),
    "thread_beside_main": (40,),
    "at_random": (20, 100),
    "starts_late": (5, 20),
    "slow": (3, 20),
    "long_init": (1, 5),
    "only_weights": (1,),
    "per_epoch": (4,),
    "recursion": (1,),
    "inputs_computed_in_place": (10,),
    "inputs_beside_others": (10,),
    "loaded_and_closed": (30,),
    "loaded_by_several_lines": (5,),
    "loaded_by_classes": (5,),
    "loaded_and_converted": (5,),
    "loaded_and_joined": (5,),
    "loaded_again_at_the_end": (5,),
}
OTHERS = (5, 30)
# Programs that a mesh does not change, or that want more cores than a mock chip of a mesh has.
ONE_CHIP = {
    "inputs_beside_others",
    "loaded_by_several_lines",
    "loaded_by_classes",
    "loaded_and_converted",
    "loaded_and_joined",
    "loaded_again_at_the_end",
    "reshapes",
    "reshapes_kept",
    "reshapes_of_one_shape",
}

# What shapes fill the program cache with.
CACHED = ("circular_buffer", "kernel", "program_cache")
# What nobody is accused of, and must be called so where a program says it.
HARMLESS = ("unsure", "steady", "program_cache")


@dataclasses.dataclass(frozen=True)
class Plant:
    """A line that leaks."""

    line: int
    kind: str
    count: str


def plants() -> dict[str, list[Plant]]:
    """Of each program, as its lines say."""
    found: dict[str, list[Plant]] = {}
    name = ""
    for number, line in enumerate(PROGRAMS.read_text().splitlines(), 1):
        if begin := re.match(r"def (\w+)\(dev", line):
            name = begin[1]
            found[name] = []
        for kind, count in re.findall(r"# (leak|shapes|unsure|steady|program_cache): ([^#]+)", line):
            found[name].append(Plant(number, kind, count))
    del found["zeros"]
    return found


def run_all(folder: Path, cluster: Cluster) -> list[tuple[str, int, dict[str, Any]]]:
    """Runs all programs under one `tt-mem run`; what the report tells of each."""
    chips = len(cluster.places)
    # On a mesh everything is the same but slower: one length is enough.
    lengths = slice(None) if chips == 1 else slice(-1, None)
    names = [name for name in plants() if chips == 1 or name not in ONE_CHIP]
    todo = [f"{name}:{n}" for name in names for n in STEPS.get(name, OTHERS)[lengths]]
    recording = folder / "run.ttmem"
    done = subprocess.run(
        [TT_MEM, "run", "-o", recording, PYTHON, PROGRAMS, str(chips), *todo],
        capture_output=True,
        text=True,
        env=environment(folder, cluster, PYTHONPATH=PACKAGE),
        timeout=3 * PATIENCE_S,
        cwd=folder,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = subprocess.run(
        [TT_MEM, "report", recording, "--json"], capture_output=True, check=True
    ).stdout
    processes = {row["pid"]: row for row in json.loads(report)["processes"]}
    ran = re.findall(r"^(\d+) (\w+) (\d+)$", done.stdout, re.M)
    assert len(ran) == len(todo)
    return [(name, int(steps), processes[int(pid)]) for pid, name, steps in ran]


def line_of(origin: dict[str, Any]) -> int:
    """The line of the program, and not that of the function that all of them share."""
    lines = [frame.split(":") for frame in origin["python"]]
    return next((int(line) for _, line, function in lines if function != "zeros"), 0)


def harmless(process: dict[str, Any]) -> dict[tuple[int, str], int]:
    """(line, class): how many remain of it."""
    sums: Counter[tuple[int, str]] = Counter()
    for origin in process["origins"]:
        if not origin["suspect"]:
            sums[line_of(origin), origin["class"]] += origin["remaining"]
    return sums


def accused(process: dict[str, Any]) -> dict[int, int]:
    """Of each line: how many remain of it."""
    sums: Counter[int] = Counter()
    for origin in process["origins"]:
        if origin["suspect"]:
            assert origin["class"] == "growing" and origin["why"] and origin["advice"], origin
            sums[line_of(origin)] += origin["remaining"]
    return dict(sums)


@dataclasses.dataclass
class Score:
    """What was accused, rightly and wrongly, and what was not; of a class besides, what is amiss."""

    found: int = 0
    missed: list[str] = dataclasses.field(default_factory=list)
    accused: list[str] = dataclasses.field(default_factory=list)
    misjudged: list[str] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        leaks, named = self.found + len(self.missed), self.found + len(self.accused)
        return (
            f"precision {self.found / max(1, named):.1%} of {named} accused, "
            f"recall {self.found / max(1, leaks):.1%} of {leaks} leaks"
        )


def judge(score: Score, name: str, steps: int, process: dict[str, Any], planted: list[Plant]) -> None:
    found = accused(process)
    for plant in planted:
        expected = eval(plant.count, {"steps": steps})
        where = f"{name}:{steps} line {plant.line}"
        if plant.kind in HARMLESS:
            count = harmless(process)[plant.line, plant.kind]
            if count != expected:
                score.misjudged.append(f"{where}, {count} of {expected} {plant.kind}")
            continue
        if plant.kind == "shapes":
            # A program has several parts: how many is not ours to say.
            count = sum(harmless(process)[plant.line, kind] for kind in CACHED)
            if count < expected:
                score.misjudged.append(f"{where}, {count} of {expected} in the cache")
            continue
        count = found.pop(plant.line, 0)
        if count == expected:
            score.found += 1
        else:
            score.missed.append(f"{where}, {count} of {expected}")
    score.accused += [f"{name}:{steps} line {line}, {n}" for line, n in found.items()]


@pytest.mark.parametrize("cluster", [N150, T3K], ids=["one chip", "eight chips"])
def test_every_leak_is_named_and_nobody_else(
    folder: Path, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    planted = plants()
    score = Score()
    for name, steps, process in run_all(folder, cluster):
        assert process["complete"] and process["history_complete"], name
        judge(score, name, steps, process, planted[name])
        for origin in process["origins"]:
            assert origin["device_ids"] == sorted(cluster.places), origin
    with capsys.disabled():  # a test that passes would say nothing
        print(f"\nchips {len(cluster.places)}: {score}")
    assert score.found >= len(planted) / 3
    assert not (score.missed or score.accused or score.misjudged)


# ---- the examples of docs/leaks.md ----

LEAKS = Path(__file__).parents[2] / "docs" / "leaks.md"
REPAIR = ("self.history.append(hidden)", "self.history = [hidden]")
ROW = re.compile(r"^ ?\d+ (\w+\.py):(\d+) .*? (DRAM|CB|KERNEL) +(\d+) +([\d.]+ \S+) .* (\S+)$", re.M)
Row = tuple[str, ...]


def example_programs() -> dict[str, str]:
    """The text of each by its name; that of the first is told in two forms."""
    blocks = re.findall(r"^```python\n(.*?)^```", LEAKS.read_text(encoding="utf-8"), re.M | re.S)
    found = {re.match(r".*# (\w+\.py)\n", block)[1]: block for block in blocks}
    assert REPAIR[0] in found["decode.py"]
    return {**found, "fixed.py": found["decode.py"].replace(*REPAIR)}


def example_rows(text: str) -> dict[str, set[Row]]:
    """(file, line, region, count, size, class) by file."""
    rows: dict[str, set[Row]] = {}
    for row in ROW.findall(text):
        rows.setdefault(row[0], set()).add(row)
    return rows


def test_the_examples_of_the_documentation_print_what_it_says(folder: Path) -> None:
    programs = example_programs()
    told = example_rows(LEAKS.read_text(encoding="utf-8"))
    assert set(told) == set(programs) and len(programs) == 9
    for name, text in programs.items():
        (folder / name).write_text(text, encoding="utf-8")
        done = subprocess.run(
            [TT_MEM, "run", "--fail-on-leak", "-o", folder / "run.ttmem", PYTHON, name],
            capture_output=True,
            text=True,
            env=environment(folder, T3K if name == "mesh.py" else N150),
            timeout=PATIENCE_S,
            cwd=folder,
        )
        is_innocent = name in ("fixed.py", "few.py", "load.py", "shapes.py")
        assert done.returncode == (0 if is_innocent else 3), done.stderr
        screen = subprocess.run(
            [TT_MEM, "report", "run.ttmem"],
            capture_output=True,
            text=True,
            check=True,
            env={"COLUMNS": "80", "LC_ALL": "C.UTF-8"},
            cwd=folder,
        ).stdout
        assert told[name] <= example_rows(screen)[name], screen


def fail_on_leak(
    folder: Path, program: str, limit: str, name: str, *options: str
) -> subprocess.CompletedProcess[str]:
    """Runs one of the programs with a limit, recorded under that name."""
    words = ["--fail-on-leak" + limit, *options]
    return subprocess.run(
        [TT_MEM, "run", *words, "-o", folder / name, PYTHON, PROGRAMS, "1", program],
        capture_output=True,
        text=True,
        env=environment(folder, N150, PYTHONPATH=PACKAGE),
        timeout=PATIENCE_S,
        cwd=folder,
    )


def test_what_is_unsure_is_told_beside_the_limit_and_does_not_count(folder: Path) -> None:
    done = fail_on_leak(folder, "parameters_of_a_test:5", "", "run.ttmem")
    assert done.returncode == 0
    assert re.search(
        r"no leaks over the limit: suspects take 0 B .* the limit is 0 B, 144 KiB unsure",
        done.stdout + done.stderr,
    )


# Programs without a leak: they load and end, load and compute, warm up, or run a clean loop.
INNOCENT = (
    "loaded_and_closed:30",
    "loaded_by_several_lines:20",
    "loaded_by_classes:10",
    "loaded_and_converted:10",
    "loaded_and_joined:10",
    "loaded_again_at_the_end:5",
    "one_forward:9",
    "warm_up:5",
    "kv_cache:5",
    "bounded_lru:20",
)


def test_programs_that_load_warm_up_or_run_clean_pass(folder: Path) -> None:
    done = subprocess.run(
        [TT_MEM, "run", "--no-record", "--fail-on-leak", PYTHON, PROGRAMS, "1", *INNOCENT],
        capture_output=True,
        text=True,
        env=environment(folder, N150, PYTHONPATH=PACKAGE),
        timeout=PATIENCE_S,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"no leaks over the limit: suspects take 0 B .* unsure$", done.stderr, re.M)


LOADS_AND_LEAKS = """
import sys, ttmem, ttnn

def zeros():
    return ttnn.zeros((64, 64), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)

device = ttnn.open_device(device_id=0)
weights = [zeros() for _ in range(48)]
ttmem.mark("warm")
inputs = []
for _ in range(int(sys.argv[1])):
    inputs.append(zeros())
ttnn.close_device(device)
"""


@pytest.mark.parametrize("leaks, status", [(0, 0), (48, 3)])
def test_a_mark_tells_what_is_loaded_from_what_leaks(folder: Path, leaks: int, status: int) -> None:
    (folder / "model.py").write_text(LOADS_AND_LEAKS, encoding="utf-8")
    words = (TT_MEM, "run", "--fail-on-leak", "--after-mark", "warm", "-o", folder / "run.ttmem")
    done = subprocess.run(
        [*words, PYTHON, "model.py", str(leaks)],
        capture_output=True,
        text=True,
        env=environment(folder, N150, PYTHONPATH=PACKAGE),
        timeout=PATIENCE_S,
        cwd=folder,
    )
    assert done.returncode == status, done.stderr
    assert ("1 suspect: 48 buffers that keep growing" in done.stderr) is (leaks > 0)


@pytest.mark.parametrize("option", ["--python-frames=8", "--no-stacks"])
def test_what_the_program_cache_keeps_is_a_leak_only_if_asked_for(folder: Path, option: str) -> None:
    done = fail_on_leak(folder, "reshapes:12", "", "run.ttmem", option)
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"besides \d+ circular buffers and kernels of cached programs, and 12 tensors that they keep",
        done.stdout + done.stderr,
    )
    counted = ("--count-program-cache", option)
    done = fail_on_leak(folder, "reshapes:12", "", "run.ttmem", *counted)
    assert done.returncode == 3
    assert re.search(
        r"leaks found: suspects and the growing program cache take [\d.]+ KiB of a device",
        done.stdout + done.stderr,
    )


def test_circular_buffers_that_share_addresses_take_no_more_than_there_were(folder: Path) -> None:
    def tell(*words: Any) -> str:
        return subprocess.run(
            [TT_MEM, *words], capture_output=True, text=True, check=True, cwd=folder
        ).stdout

    counted = "--count-program-cache"
    assert fail_on_leak(folder, "shapes:4", "", "few.ttmem").returncode == 0
    assert fail_on_leak(folder, "shapes:4", "", "few.ttmem", counted).returncode == 3
    assert fail_on_leak(folder, "shapes:40", "=1M", "many.ttmem", counted).returncode == 0
    recording = folder / "many.ttmem"
    process = json.loads(tell("report", recording, "--json"))["processes"][-1]
    cbs = [row for row in process["origins"] if row["region"] == "CB"]
    assert sum(row["remaining_footprint_bytes"] for row in cbs) > 2**20
    assert process["devices"][0]["regions"]["CB"]["peak_resident_bytes"] < 2**19
    assert not any(row["suspect"] for row in process["origins"])
    assert re.search(r"no suspects: \d+ circular buffers and kernels of cached", tell("report", recording))
    assert re.search(r": \+[\d.]+ KiB$", tell("diff", folder / "few.ttmem", recording), re.M)
