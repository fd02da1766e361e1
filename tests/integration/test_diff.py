# SPDX-License-Identifier: Apache-2.0
"""tt-mem diff: what grew between two recordings or two marks."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support import run, run_json, run_ok


@pytest.fixture(autouse=True)
def recordings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for story in ("leak", "clean", "moved"):
        subprocess.run([os.environ["MAKE_STORY"], story, f"{story}.ttmem"], check=True)


def by_function(diff: dict[str, Any], region: str = "DRAM") -> dict[str, dict[str, Any]]:
    rows = [row for row in diff["origins"] if row["region"] == region]
    return {row["python"][0].split(":")[2]: row for row in rows}


def test_what_grew_between_two_marks() -> None:
    diff = run_json("diff", "leak.ttmem", "--from", "warm", "--to", "half")
    assert (diff["schema"], diff["from"], diff["to"]) == ("tt-mem/diff/1", "warm", "half")
    rows = by_function(diff)
    leak = rows["cache_kv"]
    assert (leak["from_count"], leak["to_count"], leak["growth_count"]) == (0, 51, 51)
    assert leak["growth_footprint_bytes"] == leak["to_footprint_bytes"]
    assert rows["load_weights"]["growth_count"] == 0
    growth = [row["growth_footprint_bytes"] for row in diff["origins"]]
    assert growth == sorted(growth, reverse=True)
    assert diff["origins"][0]["python"][0] == "decode.py:28:cache_kv"



@pytest.mark.parametrize(
    ("start", "end", "counts"),
    [
        ("begin", "end", (3, 7)),  # the fourth round begins behind the last end
        ("end", "last", (7, 15)),
        ("begin", "begin", (3, 7)),
        ("end", "end", (3, 7)),
        ("last", "last", (15, 15)),
        ("last", "begin", (15, 7)),
    ],
)
def test_of_marks_that_come_often_it_is_the_last_pair_in_this_order(
    start: str, end: str, counts: tuple[int, int]
) -> None:
    subprocess.run([os.environ["MAKE_STORY"], "rounds", "rounds.ttmem"], check=True)
    args = ("diff", "rounds.ttmem", "--from", start, "--to", end)
    (row,) = run_json(*args)["origins"]
    assert (row["from_count"], row["to_count"]) == counts
    assert ("backwards" in run_ok(*args).out) == (counts[0] > counts[1])


def test_what_grew_between_two_recordings_and_what_shrank() -> None:
    rows = by_function(run_json("diff", "clean.ttmem", "leak.ttmem"))
    assert rows["cache_kv"]["growth_count"] == 100
    back = by_function(run_json("diff", "leak.ttmem", "clean.ttmem"))
    assert back["cache_kv"]["growth_count"] == -100
    assert back["cache_kv"]["growth_footprint_bytes"] == -rows["cache_kv"]["growth_footprint_bytes"]


def test_lines_may_have_moved() -> None:
    rows = by_function(run_json("diff", "leak.ttmem", "moved.ttmem"))
    assert rows["cache_kv"]["growth_count"] == 0
    assert rows["cache_kv"]["python"][0] == "decode.py:128:cache_kv"


def test_the_program_may_have_another_name() -> None:
    for story in ("first", "second"):
        subprocess.run([os.environ["MAKE_STORY"], story, f"{story}.ttmem"], check=True)
    diff = run_json("diff", "first.ttmem", "second.ttmem")
    assert {row["python"][0]: row["growth_count"] for row in diff["origins"]} == {
        "run_v2.py:9:step": 0,
        "layer.py:3:load": 0,
        "new.py:5:help": 1,
        "old.py:5:help": -1,
    }


def test_versions_of_python_name_one_function_differently() -> None:
    for story in ("py310", "py312"):
        subprocess.run([os.environ["MAKE_STORY"], story, f"{story}.ttmem"], check=True)
    diff = run_json("diff", "py310.ttmem", "py312.ttmem")
    changed = {
        row["python"][0]: row["growth_count"] for row in diff["origins"] if row["growth_count"]
    }
    # The other class is one more, and has the name of the first as far as 3.10 can tell.
    assert changed == {"model.py:8:Model.step": 1}
    assert len(diff["origins"]) == 4
    # With the same Python both are told apart.
    rows = by_function(run_json("diff", "py312.ttmem", "py312.ttmem"))
    assert {"Model.step", "Other.step", "make.<locals>.cb", "load", "main"} == set(rows)


def test_text() -> None:
    lines = run_ok("diff", "clean.ttmem", "leak.ttmem").lines
    assert lines[0] == "from clean.ttmem to leak.ttmem: +13.3 MiB"
    assert "decode.py:28 cache_kv" in lines[1] and "0 → 100   +12.5 MiB" in lines[1]
    assert run_ok("diff", "leak.ttmem", "clean.ttmem").lines[0].endswith("clean.ttmem: -13.3 MiB")
    same = run_ok("diff", "leak.ttmem", "leak.ttmem").lines
    assert same[0] == "from leak.ttmem to leak.ttmem: as much as before"
    assert lines[-1].strip() == "7 did not change"
    lines = run_ok("diff", "clean.ttmem", "leak.ttmem", "--all").lines
    assert all(line == line.rstrip() for line in lines)
    assert len(run_ok("diff", "clean.ttmem", "leak.ttmem", "--all").lines) == 1 + 2 + 7


def test_what_is_missing_in_a_recording_is_said_and_is_no_gain() -> None:
    whole = Path("leak.ttmem").read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 255
    Path("flip.ttmem").write_bytes(flipped)
    Path("torn.ttmem").write_bytes(whole[:-20])
    assert "damaged in 1 place" in run("diff", "leak.ttmem", "flip.ttmem").complains(1)
    lines = run_ok("diff", "leak.ttmem", "torn.ttmem").lines
    assert lines[1].startswith("  torn.ttmem: the recording is not whole: it breaks off")
    found = run_json("diff", "leak.ttmem", "torn.ttmem")
    assert found["from_recording"]["complete"] and not found["to_recording"]["complete"]
    found = run_json("diff", "torn.ttmem", "--from", "warm", "--to", "half")
    assert not found["from_recording"]["finished"]
    assert found["from_recording"] == found["to_recording"]


def test_wrong_usage() -> None:
    assert "two recordings" in run("diff", "leak.ttmem").complains(2)
    assert "two recordings" in run("diff", "leak.ttmem", "--from", "warm").complains(2)
    assert "two recordings" in run("diff", "a", "b", "--from", "x", "--to", "y").complains(2)
    assert "no mark 'x'" in run("diff", "leak.ttmem", "--from", "x", "--to", "half").complains(1)
    assert "cannot read 'no.ttmem'" in run("diff", "no.ttmem", "leak.ttmem").complains(1)
