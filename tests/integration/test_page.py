# SPDX-License-Identifier: Apache-2.0
"""tt-mem export --format html: what is in the page. test_page_browser.py looks at it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from pages import course_values, data_of, export
from runs import WORKER_OPTIONS
from support import run, run_json, run_ok


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("story", ["leak", "clean", "mesh8", "two", "many"])
def test_the_page_has_the_numbers_of_the_report(story: str) -> None:
    page = data_of(export(story))
    report = run_json("report", f"{story}.ttmem")
    assert len(page["processes"]) == len(report["processes"])
    for told, truth in zip(page["processes"], report["processes"]):
        assert (told["pid"], told["command"]) == (truth["pid"], truth["command"])
        assert (told["complete"], told["lost"]) == (truth["complete"], truth["lost_events"])
        assert len(told["origins"]) == len(truth["origins"])
        assert sorted(origin["remaining"] for origin in told["origins"]) == sorted(
            [origin["remaining"], origin["remaining_bytes"], origin["remaining_footprint_bytes"]]
            for origin in truth["origins"]
        )
        assert {o["why"] for o in told["origins"]} == {o["why"] for o in truth["origins"]}
        assert len(told["marks"]) == 2 * len(truth["marks"])
        assert len(told["failures"]) == len(truth["failures"])
        by_id = {device["id"]: device for device in told["devices"]}
        for device in truth["devices"]:
            like = by_id[by_id[device["id"]].get("like", device["id"])]
            for name, region in like["regions"].items():
                counts = device["regions"][name]
                assert region["allocs"] == counts["allocs"]
                assert region["remaining"][0] == counts["remaining"]
                if name == "CB":  # gone with the device
                    assert region["now"] == (counts["resident_bytes"] if not truth["end_ns"] else 0)
                    continue
                assert region["now"] == counts["remaining_footprint_bytes"]
                values = course_values(region["course"])
                assert max(most for _, _, most, _ in values) == counts["peak_footprint_bytes"]
                assert region["peak"] == counts["peak_footprint_bytes"]
                if "bank" in region:
                    bank = region["bank"]
                    assert bank["held"] * bank["banks"] == counts["remaining_footprint_bytes"]
                    assert bank["held"] == sum(bank["runs"][2::6])
                    assert bank["end"] - bank["start"] == sum(bank["runs"][0::6]) + sum(
                        bank["runs"][1::6]
                    )


def test_a_program_without_python() -> None:
    run("run", "-o", "decoder.ttmem", os.environ["DECODER"], env=WORKER_OPTIONS)
    page = data_of(export("decoder"))
    (process,) = page["processes"]
    assert process["complete"] and process["marks"][1] == "weights loaded"
    worst = process["origins"][0]
    assert worst["suspect"] and worst["context"] == "decode"
    advice = " ".join(origin["advice"] for origin in process["origins"])
    assert "outlives the step" in advice and not any(
        word in advice for word in ("ttnn", "gc.collect", "tensor", "list")
    )
    if len(worst["stack"]) > 1:  # where call stacks can be read
        assert worst["lines"]
        assert "cache_scores" in page["frames"][worst["stack"][-1]][0]
    names = {origin["name"] for origin in process["origins"]}
    assert {"layer_0_weights", "layer_15_weights"} <= names
    assert process["devices"][0]["regions"]["DRAM"]["bank"]["count"] == 76


def test_suspects_come_first_and_frames_are_said_once() -> None:
    page = data_of(export("leak"))
    (process,) = page["processes"]
    first = process["origins"][0]
    assert first["suspect"] and first["class"] == "growing" and first["advice"]
    names = [page["frames"][number][0] for number in first["stack"]]
    assert names == ["main (decode.py:61)", "cache_kv (decode.py:28)", "ttnn.zeros"]
    assert len({json.dumps(frame) for frame in page["frames"]}) == len(page["frames"])
    assert [origin["stack"] for origin in data_of(export("moved"))["processes"][0]["origins"]]


def test_source_lines_are_in_the_page_unless_the_file_was_changed_since() -> None:
    lines = [f"line_{i}()" for i in range(1, 70)]
    Path("decode.py").write_text("\n".join(lines), encoding="utf-8")
    os.utime("decode.py", (1600000000, 1600000000))
    frames = {frame[0]: frame for frame in data_of(export("leak"))["frames"]}
    assert frames["cache_kv (decode.py:28)"][3] == "line_28()"
    os.utime("decode.py")
    frames = {frame[0]: frame for frame in data_of(export("leak"))["frames"]}
    assert len(frames["cache_kv (decode.py:28)"]) == 3


def test_what_is_missing_is_said() -> None:
    export("leak")
    whole = Path("leak.ttmem").read_bytes()
    Path("torn.ttmem").write_bytes(whole[: len(whole) - 20])
    assert "breaks off" in data_of(export("torn"))["flaws"]
    assert data_of(export("leak"))["flaws"] == ""
    for length in range(0, len(whole), 97):
        Path("torn.ttmem").write_bytes(whole[:length])
        result = run("export", "torn.ttmem", "--format", "html", "-o", "torn.html")
        assert result.status == 1 or data_of(Path("torn.html"))["flaws"]


def test_a_recording_that_is_still_being_written() -> None:
    with subprocess.Popen(
        [os.environ["MAKE_STORY"], "unfinished", "unfinished.ttmem"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as writer:
        assert writer.stdout and writer.stdout.readline() == b"written\n"
        deadline = time.monotonic() + 20
        page: Any = {"processes": []}
        while not page["processes"] and time.monotonic() < deadline:
            page = data_of(export("unfinished"))
        writer.communicate()
    assert page["flaws"] == "the recording is still being written"
    assert page["processes"][0]["end"] == "still running"
    assert page["processes"][0]["origins"]


def test_a_million_events_are_a_small_page() -> None:
    page = export("million")
    assert page.stat().st_size < 2_000_000
    assert data_of(page)["records"] > 1_000_000


def test_the_page_goes_to_stdout_as_well() -> None:
    export("empty")
    out = run_ok("export", "empty.ttmem", "--format", "html", "-o", "-").out
    assert out == Path("empty.html").read_text(encoding="utf-8")
