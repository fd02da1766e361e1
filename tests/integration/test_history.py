# SPDX-License-Identifier: Apache-2.0
"""tt-mem history: every life of one address."""

import os
import subprocess
from pathlib import Path

import pytest
from support import run, run_json, run_ok


@pytest.fixture(autouse=True)
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    subprocess.run([os.environ["MAKE_STORY"], "leak", "leak.ttmem"], check=True)


def test_lives_come_in_order_with_how_they_ended() -> None:
    history = run_json("history", "leak.ttmem", "--address", "0x18b20")
    assert (history["schema"], history["address"]) == ("tt-mem/history/1", 0x18B20)
    lives = history["lives"]
    births = [life["birth_ns"] for life in lives]
    assert births == sorted(births)
    at = [life for life in lives if life["address"] == 0x18B20]
    assert [life["region"] for life in at] == ["CB", "CB"]
    assert {life["end"] for life in at} == {"process_ended"}
    assert not any(life["overlap"] for life in lives)
    # What begins before the address and reaches over it.
    (weights,) = [life for life in lives if life["region"] == "DRAM"]
    assert weights["address"] < 0x18B20 < weights["address"] + weights["footprint_bytes"] // 12
    assert weights["python"] == ["decode.py:19:load_weights", "decode.py:55:main"]


def test_files_have_their_base_names() -> None:
    subprocess.run([os.environ["MAKE_STORY"], "folder", "folder.ttmem"], check=True)
    report = run_json("report", "folder.ttmem", "--full-paths")
    assert report["processes"][0]["origins"][0]["python"] == ["/srv/app/serve.py:7:load"]
    (life,) = run_json("history", "folder.ttmem", "--address", "0x10000")["lives"]
    assert life["python"] == ["serve.py:7:load"]


def test_filters_and_decimal_addresses() -> None:
    lives = run_json("history", "leak.ttmem", "--address", str(0x18B20), "--region", "CB")["lives"]
    assert [life["operation"] for life in lives] == ["ttnn.matmul", "ttnn.softmax"]
    assert run_json("history", "leak.ttmem", "--address", "7", "-d", "0")["lives"] == []
    assert "no device 5 in 'leak.ttmem'" in run(
        "history", "leak.ttmem", "--address", "7", "-d", "0,5"
    ).complains(1)


def test_text_says_the_same() -> None:
    lines = run_ok("history", "leak.ttmem", "--address", "0x18b20").lines
    assert lines[0] == "0x18b20 in leak.ttmem: 4 lives, 1 freed"
    assert len(lines) == 6
    assert lines[-1].endswith("decode.py:37 forward (ttnn.matmul) from 0x18400")
    part = ("--region", "L1", "-d", "0")
    assert run_ok("history", "leak.ttmem", "--address", "7", *part).lines == [
        "0x7 in L1 on device 0 in leak.ttmem: 0 lives, 0 freed"
    ]
    assert run_ok("history", "leak.ttmem", "--address", "7").lines == [
        "0x7 in leak.ttmem: 0 lives, 0 freed"
    ]


def test_wrong_usage() -> None:
    assert "which --address" in run("history", "leak.ttmem").complains(2)
    assert "which recording" in run("history", "--address", "1").complains(2)
    assert "no address" in run("history", "leak.ttmem", "--address", "zz").complains(2)
    assert "no region" in run(
        "history", "leak.ttmem", "--address", "1", "--region", "L9"
    ).complains(2)
    assert "No such file" in run("history", "no.ttmem", "--address", "1").complains(1)
