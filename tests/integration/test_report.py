# SPDX-License-Identifier: Apache-2.0
"""tt-mem report: what recordings of made-up programs show, as text and as JSON.

The screens are compared with those in tests/data/report. After a change that is meant to be seen, run
this file with UPDATE_SCREENS=1 in the environment and look at the difference.
"""

import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path
from typing import Any

import pytest
from contract import ORIGIN_KEYS, PROCESS_KEYS, REGION_KEYS, REGIONS
from pages import data_of
from support import TT_MEM, WORKER_OPTIONS, Result, clean_env, run, run_json, run_ok

SCREENS = Path(__file__).parent.parent / "data" / "report"
FAILURE_KEYS = {
    "kind",
    "time_ns",
    "device_id",
    "region",
    "wanted_bytes",
    "free_bytes",
    "largest_free_bytes",
    "verdict",
    "owners",
}
LEAK_LINE = "LEAKED.append(zeros(dev, (1, 8, 128, 64), DRAM))"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tell(story: str, name: str = "") -> str:
    file = name or f"{story}.ttmem"
    subprocess.run([os.environ["MAKE_STORY"], story, file], check=True)
    return file


def write_source(age_ns: int) -> None:
    """The program of the stories, changed last at that time since the epoch."""
    lines = [f"# line {n}" for n in range(1, 70)]
    lines[27] = f"    {LEAK_LINE}"
    Path("decode.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    os.utime("decode.py", ns=(age_ns, age_ns))


def origin_at(process: dict[str, Any], line: str, region: str) -> dict[str, Any]:
    found = [o for o in process["origins"] if o["python"][:1] == [line] and o["region"] == region]
    assert len(found) == 1, (line, region, found)
    return found[0]


@pytest.mark.parametrize("story", ["leak", "clean", "mesh8", "two"])
@pytest.mark.parametrize("look", ["", "--at peak", "--all"])
def test_screens_are_as_they_were(story: str, look: str) -> None:
    file = tell(story)
    write_source(1_600_000_000 * 10**9)
    screen = run_ok("report", file, *look.split()).out
    golden = SCREENS / f"{story}{look.replace('--', '-').replace(' ', '-')}.txt"
    if os.environ.get("UPDATE_SCREENS"):
        SCREENS.mkdir(exist_ok=True)
        golden.write_text(screen, encoding="utf-8")
    assert screen == golden.read_text(encoding="utf-8")


def test_json_has_every_key() -> None:
    report = run_json("report", tell("leak"))
    assert report["schema"] == "tt-mem/report/1"
    (process,) = report["processes"]
    assert PROCESS_KEYS <= set(process)
    assert (process["pid"], process["end"], process["exit_code"]) == (4242, "exited", 0)
    assert process["complete"] and process["history_complete"]
    (device,) = process["devices"]
    assert list(device["regions"]) == REGIONS
    for region in device["regions"].values():
        assert REGION_KEYS <= set(region)
    assert {"resident_bytes", "registered_bytes"} <= set(device["regions"]["CB"])
    assert {"application_bytes", "fabric_bytes", "dispatch_bytes"} <= set(
        device["regions"]["KERNEL"]
    )
    for origin in process["origins"]:
        assert ORIGIN_KEYS <= set(origin)
    footprints = [o["remaining_footprint_bytes"] for o in process["origins"]]
    assert footprints == sorted(footprints, reverse=True)
    assert [mark["name"] for mark in process["marks"]] == ["warm", "half"]
    (failure,) = process["failures"]
    assert FAILURE_KEYS <= set(failure)
    assert failure["verdict"] == "fragmented"
    assert process["origins"][failure["owners"][0]["origin"]]["python"][0] == "decode.py:32:scratch"


def test_a_leak_is_named_with_its_line_and_nobody_else_is_accused() -> None:
    (process,) = run_json("report", tell("leak"))["processes"]
    leak = origin_at(process, "decode.py:28:cache_kv", "DRAM")
    assert leak["python"] == ["decode.py:28:cache_kv", "decode.py:61:main"]
    assert (leak["operation"], leak["thread"], leak["device_ids"]) == ("ttnn.zeros", "MainThread", [0])
    assert (leak["allocs"], leak["frees"], leak["remaining"]) == (100, 0, 100)
    assert leak["sizes"] == {"131072": 100}
    assert leak["remaining_bytes"] == 100 * 131072
    assert leak["class"] == "growing" and leak["suspect"]
    assert sum(leak["births"]) == 100
    suspects = {o["python"][0] for o in process["origins"] if o["suspect"]}
    assert suspects == {"decode.py:28:cache_kv", "decode.py:32:scratch"}
    assert origin_at(process, "decode.py:19:load_weights", "DRAM")["class"] == "steady"
    assert origin_at(process, "decode.py:12:main", "DRAM")["class"] == "system"
    assert origin_at(process, "decode.py:37:forward", "L1")["class"] == "temporary"
    assert origin_at(process, "decode.py:37:forward", "CB")["class"] == "circular_buffer"
    assert origin_at(process, "decode.py:37:forward", "KERNEL")["class"] == "kernel"


def test_nobody_is_accused_in_a_clean_program() -> None:
    (process,) = run_json("report", tell("clean"))["processes"]
    assert not [o for o in process["origins"] if o["suspect"]]
    assert "no suspects" in run_ok("report", "clean.ttmem").out


def test_on_a_mesh_bytes_are_those_of_each_device() -> None:
    (one,) = run_json("report", tell("leak"))["processes"]
    (mesh,) = run_json("report", tell("mesh8"))["processes"]
    assert [device["id"] for device in mesh["devices"]] == list(range(8))
    for device in mesh["devices"]:
        assert device["regions"] == one["devices"][0]["regions"]
    leak = origin_at(mesh, "decode.py:28:cache_kv", "DRAM")
    assert leak["device_ids"] == list(range(8))
    assert leak["remaining_bytes"] == origin_at(one, "decode.py:28:cache_kv", "DRAM")["remaining_bytes"]


def test_circular_buffers_of_cached_programs_share_their_memory() -> None:
    (process,) = run_json("report", tell("clean"))["processes"]
    cb = process["devices"][0]["regions"]["CB"]
    assert cb["remaining"] == 6
    assert cb["remaining_bytes"] == 2 * cb["registered_bytes"]
    assert cb["resident_bytes"] == cb["registered_bytes"] == cb["peak_resident_bytes"]


def test_circular_buffers_go_with_the_device_that_is_closed() -> None:
    def shown(*args: str) -> str:
        found = re.search(r"^    CB +(\S+(?: \w+)?) +1.5 MiB ", run_ok("report", *args).out, re.M)
        assert found, args
        return found[1]

    file = tell("two")
    assert shown(file, "--pid", "4242") == "0"  # it was killed
    assert shown(file, "--pid", "4243") == "1.5 MiB"  # it runs on
    assert shown(tell("again")) == "0"
    # In JSON it is what was there until then.
    for process in run_json("report", file)["processes"]:
        assert process["devices"][0]["regions"]["CB"]["resident_bytes"] == 3 * 512 * 1024


def test_the_peak_is_the_sum_of_what_origins_held_then() -> None:
    (process,) = run_json("report", tell("leak"), "--at", "peak")["processes"]
    for name, region in process["devices"][0]["regions"].items():
        held = sum(share["footprint_bytes"] for share in region["peak_origins"])
        assert held == region["peak_footprint_bytes"], name
        listed = [o for o in process["origins"] if o["region"] == name]
        assert sum(o["remaining_footprint_bytes"] for o in listed) == held


def test_what_was_live_at_a_mark() -> None:
    file = tell("leak")
    (process,) = run_json("report", file, "--at", "warm")["processes"]
    assert origin_at(process, "decode.py:28:cache_kv", "DRAM")["remaining"] == 0
    assert origin_at(process, "decode.py:19:load_weights", "DRAM")["remaining"] == 8
    (process,) = run_json("report", file, "--at", "half")["processes"]
    assert origin_at(process, "decode.py:28:cache_kv", "DRAM")["remaining"] == 51
    assert "no mark 'nowhere'" in run("report", file, "--at", "nowhere").complains(1)


def test_only_what_grows_after_a_mark_is_a_suspect() -> None:
    def suspects(*args: str) -> dict[str, int]:
        (process,) = run_json("report", tell("leak"), *args)["processes"]
        return {o["python"][0]: o["remaining"] for o in process["origins"] if o["suspect"]}

    assert suspects("--after-mark", "warm") == suspects() != {}
    assert suspects("--after-mark", "half") == suspects()
    assert suspects("--warmup", "0") == suspects()
    assert "no mark 'nowhere'" in run("report", tell("leak"), "--after-mark", "nowhere").complains(1)
    late = run("report", tell("leak"), "--warmup", "86400")
    assert "no process in 'leak.ttmem' ran for more than 1 d 00 h" in late.complains(1)
    both = run("report", tell("leak"), "--warmup", "1", "--after-mark", "warm")
    assert "--after-mark and --warmup exclude each other" in both.complains(2)


def test_the_table_has_what_devices_held_at_a_mark() -> None:
    def table(file: str, *args: str) -> dict[str, str]:
        screen = run_ok("report", file, *args).out
        assert re.search(r"^  device 0 n150 wormhole_b0    at mark       peak ", screen, re.M)
        return dict(re.findall(r"^    ([A-Z1]+) +(\d+(?:\.\d)?(?: \w+)?) ", screen, re.M))

    file = tell("leak")
    late = {"DRAM": "12.5 MiB", "L1": "416 KiB", "CB": "1.5 MiB", "KERNEL": "24.0 KiB"}
    assert table(file, "--at", "warm") == {**late, "DRAM": "6.1 MiB", "L1": "0"}
    assert table(file, "--at", "half") == late
    # The last mark of that name, also where all was closed behind it, and nothing adds up.
    file = tell("again")
    assert table(file, "--at", "full") == {"DRAM": "672 KiB", "CB": "1.5 MiB", "KERNEL": "12.0 KiB"}
    assert "than the peak" not in run_ok("report", file, "--at", "full").out


@pytest.mark.parametrize("story", ["leak", "again", "mesh8"])
def test_in_json_devices_hold_at_a_mark_what_their_origins_do(story: str) -> None:
    file = tell(story)
    last = run_json("report", file)["processes"][0]["marks"][0]["name"]
    (process,) = run_json("report", file, "--at", last)["processes"]
    for device in process["devices"]:
        for name, region in device["regions"].items():
            origins = [o for o in process["origins"] if o["region"] == name]
            for key in ("remaining", "remaining_bytes", "remaining_footprint_bytes"):
                assert region[key] == sum(origin[key] for origin in origins), (name, key)
        kernel = device["regions"]["KERNEL"]
        assert kernel["application_bytes"] == kernel["remaining_bytes"] > 0
        assert device["regions"]["CB"]["resident_bytes"] == 3 * 512 * 1024
    (end,) = run_json("report", file)["processes"]
    assert end["devices"][0]["regions"]["DRAM"] != process["devices"][0]["regions"]["DRAM"]


def test_in_json_devices_have_the_region_that_was_chosen_alone() -> None:
    (process,) = run_json("report", tell("leak"), "--region", "L1")["processes"]
    assert [list(device["regions"]) for device in process["devices"]] == [["L1"]]


def test_a_process_without_the_mark_is_not_one_that_held_nothing() -> None:
    file = tell("bare")
    assert " (pid 4243)" in run_ok("report", file, "--at", "here").lines[0]
    screen = run_ok("report", file, "--at", "here", "--all").out
    assert "  this process has no mark 'here'\n" in screen and "nothing was allocated\n" in screen


def test_the_address_used_most_is_one_of_the_part_that_was_chosen() -> None:
    file = tell("halves")

    def most(*args: str) -> list[str]:
        return re.findall(r"address used most: (.*)$", run_ok("report", file, *args).out, re.M)

    dram = ["0x1010000 in DRAM, 2 allocations, 2 frees"]
    assert most() == ["0x10000 in L1, 3 allocations, 3 frees"] == most("-d", "4")
    assert most("--region", "DRAM") == dram == most("-d", "7")
    assert most("--region", "CB") == []
    (process,) = run_json("report", file, "--region", "DRAM")["processes"]
    assert [a["address"] for a in process["reused_addresses"]] == [0x1010000]
    (process,) = run_json("report", file)["processes"]
    assert len(process["reused_addresses"]) == 16


def test_filters() -> None:
    file = tell("two")
    report = run_json("report", file, "--pid", "4243", "--region", "dram".upper())
    (process,) = report["processes"]
    assert (process["pid"], process["end"], process["end_ns"]) == (4243, "running", None)
    assert {o["region"] for o in process["origins"]} == {"DRAM"}
    (process, _) = run_json("report", file, "--min-bytes", "4000000")["processes"]
    assert [o["python"][0] for o in process["origins"]] == [
        "decode.py:28:cache_kv",
        "decode.py:19:load_weights",
    ]
    (process, _) = run_json("report", file, "--top", "1")["processes"]
    assert len(process["origins"]) == 1
    assert "no process 99" in run("report", file, "--pid", "99").complains(1)
    assert "'L3' is no region" in run("report", file, "--region", "L3").complains(2)


def verdict(file: str, *args: str) -> list[str]:
    """What is said of the part that was chosen, until the table begins."""
    lines = [line.strip() for line in run_ok("report", file, *args).lines]
    start = next(
        i for i, line in enumerate(lines) if re.match(r"nothing|no suspects|\d+ suspects?", line)
    )
    return [line for line in lines[start : start + 2] if re.match(r"nothing|.*suspects?", line)]


def test_a_verdict_on_a_part_says_which_and_what_it_leaves_out() -> None:
    file = tell("leak")
    hidden = "2 suspects are not shown by this filter"
    assert verdict(file) == ["2 suspects: 125 buffers that keep growing, 13.3 MiB"]
    assert verdict(file, "--region", "TRACE") == ["nothing was allocated in TRACE", hidden]
    assert verdict(file, "--region", "L1") == [
        "1 suspect in L1: 25 buffers that keep growing, 800 KiB",
        "1 suspect is not shown by this filter",
    ]
    assert verdict(file, "--min-bytes", "1G") == ["nothing of 1.00 GiB or more remains", hidden]
    assert verdict(file, "--region", "CB", "-d", "0") == [
        "no suspects in CB on device 0: 6 circular buffers and kernels of cached programs",
        hidden,
    ]
    assert verdict(file, "--by", "frees", "--min-bytes", "1G") == [
        "nothing of 1.00 GiB or more remains",
        hidden,
    ]
    assert verdict(file, "--at", "warm", "--region", "L1") == ["nothing in L1 was live then"]
    clean = tell("clean")
    assert verdict(clean) == ["no suspects: the 11 buffers left look intended"]
    assert verdict(clean, "--region", "L1") == [
        "nothing in L1 remains: all that was allocated there was freed"
    ]


def test_what_grew_in_a_loop_that_is_over_does_not_keep_growing() -> None:
    assert verdict(tell("over")) == ["1 suspect: 200 buffers that kept growing, 18.8 MiB"]
    assert verdict(tell("over_and_on")) == [
        "2 suspects: 400 buffers that keep or kept growing, 37.5 MiB"
    ]


def lines_on_terminal(file: str, columns: int) -> list[str]:
    """Of a terminal with 24 rows."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = clean_env(TERM="xterm", NO_COLOR="1")
    with subprocess.Popen([TT_MEM, "report", file], stdout=theirs, env=env) as process:
        os.close(theirs)
        written = b""
        with contextlib.suppress(OSError):  # EIO: it has ended
            while piece := os.read(ours, 65536):
                written += piece
        assert process.wait() == 0
    os.close(ours)
    return written.decode().splitlines()


def test_a_place_that_does_not_fit_is_cut_and_what_comes_behind_it_is_not() -> None:
    (line,) = (line for line in lines_on_terminal(tell("leak"), 70) if "temporary:" in line)
    assert re.search(r", most at decode\.py\S*… \(100, < 1 ms each\)$", line), line


def test_what_to_type_next_is_shorter_rather_than_cut() -> None:
    last = lines_on_terminal(tell("leak"), 80)[-1]
    assert last == "  next: tt-mem report leak.ttmem --at peak · --all for stacks and sizes"
    last = lines_on_terminal(tell("leak", "a-recording-with-a-long-name.ttmem"), 80)[-1]
    assert last.endswith("long-name.ttmem --at peak · --all") and len(last) <= 80


def test_a_low_terminal_has_the_advice() -> None:
    lines = lines_on_terminal(tell("over"), 80)
    assert len(lines) < 24
    assert "drop it, or ttnn.deallocate() it before the next step" in " ".join(
        " ".join(lines).split()
    )


def test_of_several_processes_the_worst_of_the_chosen_part_is_shown() -> None:
    file = tell("apart")
    assert run_ok("report", file).lines[0].startswith("python3 decode.py (pid 4242)")
    assert run_ok("report", file, "-d", "1").lines[0].startswith("python3 small.py (pid 4243)")
    assert verdict(file, "-d", "1") == [
        "1 suspect on device 1 in 1 of 2 processes: 20 buffers that keep growing, 1.9 MiB"
    ]
    screen = run_ok("report", file, "--pid", "4243").out
    assert "\n  1 suspect of other processes is not shown\n" in screen
    assert "of other processes" not in run_ok("report", file).out


def test_a_device_that_is_not_there_is_refused() -> None:
    file = tell("apart")
    assert "no device 5 in 'apart.ttmem'" in run("report", file, "-d", "0,5").complains(1)
    assert "no device 5 in" in run("report", file, "-d", "5", "--json").complains(1)
    file = tell("two")
    assert "no device 1 of process 4243 in" in run(
        "report", file, "--pid", "4243", "-d", "1"
    ).complains(1)


def test_the_table_has_the_devices_that_were_chosen() -> None:
    file = tell("halves")

    def table(*args: str) -> dict[str, str]:
        screen = run_ok("report", file, *args).out
        return dict(re.findall(r"^  (devices? \S+) .*\n    DRAM +(\S+ \w+)", screen, re.M))

    assert table() == {"devices 0-1,4-5": "2.0 MiB", "devices 2-3,6-7": "96.0 KiB"}
    for device in (0, 1, 4, 5):
        assert table("-d", str(device)) == {f"device {device}": "2.0 MiB"}
    assert table("-d", "7") == {"device 7": "96.0 KiB"}
    assert table("-d", "0,7") == {"device 0": "2.0 MiB", "device 7": "96.0 KiB"}
    assert table("-d", "1", "-d", "4,5,6") == {
        "devices 1,4-5": "2.0 MiB",
        "device 6": "96.0 KiB",
    }
    # Devices without a row have no place in the table.
    assert "device 7" not in run_ok("report", file, "--region", "L1", "-d", "7,0").out


def test_what_was_left_at_several_times_is_not_compared_with_the_peak() -> None:
    note = "  more remains than the peak: it was left at several times, never all at once"
    lines = run_ok("report", tell("again")).lines
    assert re.match(r"    DRAM +1.7 MiB +672 KiB ", lines[3]), lines[3]
    assert note in lines
    assert note not in run_ok("report", "again.ttmem", "--region", "CB").lines
    assert note not in run_ok("report", tell("leak")).lines


def test_missing_frees_come_with_what_was_allocated_and_freed() -> None:
    file = tell("leak")
    screen = run_ok("report", file, "--by", "frees").out
    rows = re.findall(
        r"^  (\S+) \S+ +(\w+) +([\d,]+) +([\d,]+) +([\d,]+) +[\d.]+ \w+$", screen, re.M
    )
    (process,) = run_ok("report", file, "--json").json["processes"]
    left = [o for o in process["origins"] if o["remaining"]]
    assert len(rows) == len(left)
    assert rows[0][0] == "decode.py:28" and rows[0][3:] == ("0", "100")
    missing = [int(row[4].replace(",", "")) for row in rows]
    assert missing == sorted((o["remaining"] for o in left), reverse=True)


def test_call_stacks_begin_with_what_the_runtime_did() -> None:
    screen = run_ok("report", tell("leak"), "--by", "stack", "--top", "1").out
    assert re.search(r"^  100 buffers, [\d.]+ MiB in DRAM · ttnn.zeros$", screen, re.M)
    assert re.search(r"^     from decode.py:28 cache_kv", screen, re.M)
    assert re.search(r"^   … \d+ more: --all$", screen, re.M)
    assert run("report", "--by", "colour").status == 2


def test_known_suspects_are_counted_and_are_none() -> None:
    file = tell("leak")
    Path("known").write_text("# ours\nleak:cache_kv\n", encoding="utf-8")
    before = run_ok("report", file, "--json").json["processes"][0]["origins"]
    after = run_ok("report", file, "--json", "--suppressions", "known").json
    assert [o["suspect"] for o in before].count(True) == 2
    suspects = [o for o in after["processes"][0]["origins"] if o["suspect"]]
    assert len(suspects) == 1 and "cache_kv" not in suspects[0]["python"][0]
    known = [o for o in after["processes"][0]["origins"] if o.get("suppressed")]
    assert [o["python"][0] for o in known] == ["decode.py:28:cache_kv"]
    assert known[0]["class"] == "growing"
    assert "1 known and suppressed" in run_ok("report", file, "--suppressions", "known").out
    Path("known").write_text("leak:*\n", encoding="utf-8")
    assert verdict(file, "--suppressions", "known") == [
        "no suspects: the 136 buffers left look intended or are known · 2 known and suppressed"
    ]
    assert run("report", file, "--suppressions", "nowhere").status == 1


def test_the_source_line_is_shown_unless_the_file_was_changed_since() -> None:
    file = tell("leak")
    write_source(1_600_000_000 * 10**9)
    assert LEAK_LINE in run_ok("report", file).out
    write_source(1_800_000_000 * 10**9)
    assert LEAK_LINE not in run_ok("report", file).out
    os.unlink("decode.py")
    assert "decode.py:28 cache_kv" in run_ok("report", file).out


def test_the_newest_recording_is_taken_when_none_is_named() -> None:
    assert "there is no recording" in run("report").complains(1)
    tell("clean", "a.ttmem")
    tell("leak", "b.ttmem")
    os.utime("a.ttmem", (2_000_000_000, 2_000_000_000))
    assert "no suspects" in run_ok("report").out
    os.utime("b.ttmem", (2_100_000_000, 2_100_000_000))
    assert "2 suspects" in run_ok("report").out
    assert "one file too many" in run("report", "a.ttmem", "b.ttmem").complains(2)


def test_what_is_no_recording_is_refused_in_one_line() -> None:
    Path("x.ttmem").write_text("hello\n" * 100, encoding="utf-8")
    assert "no recording of tt-mem" in run("report", "x.ttmem").complains(1)
    assert "No such file" in run("report", "y.ttmem").complains(1)


def test_a_torn_recording_says_what_is_missing_and_claims_nothing() -> None:
    whole = Path(tell("leak")).read_bytes()
    (truth,) = run_json("report", "leak.ttmem")["processes"]
    for length in range(len(whole) - 1, 0, -37):
        Path("torn.ttmem").write_bytes(whole[:length])
        result = run("report", "torn.ttmem", "--json")
        if result.status != 0:
            assert result.status == 1
            continue
        for process in result.json["processes"]:
            # Without the index at its end, all that happened can still be there.
            assert process == truth or not process["history_complete"]
            assert process["history_complete"] == (process["why_incomplete"] == "")
    Path("torn.ttmem").write_bytes(whole[: len(whole) - 20])
    assert "breaks off" in run_ok("report", "torn.ttmem").out


def test_a_clash_is_told_by_its_address() -> None:
    file = tell("clash")
    text = run_ok("report", file).out
    assert "circular buffers clash with L1 buffers on device 0, 2 times from " in text
    assert (
        "    circular buffers would end at 0x254321 and take 64.0 MiB on all cores together\n"
        "    free 2.0 MiB a bank, largest block 128 KiB\n"
    ) in text
    assert "fragmented" not in text and "exhausted" not in text and "wanted" not in text
    (process,) = run_json("report", file)["processes"]
    told = [(failure["kind"], failure["verdict"]) for failure in process["failures"]]
    assert told == [("cb_clash", "exhausted")] * 2


def test_a_recording_of_which_nothing_is_left_is_no_empty_one() -> None:
    whole = Path(tell("leak")).read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 255
    Path("flip.ttmem").write_bytes(flipped)
    Path("cut.ttmem").write_bytes(whole[: len(whole) // 2])
    Path("begun.ttmem").write_bytes(whole[:32])
    for args in ([], ["--json"]):
        assert "damaged in 1 place" in run("report", "flip.ttmem", *args).complains(1)
        assert "breaks off in the middle" in run("report", "cut.ttmem", *args).complains(1)
    # Its writer was killed before anybody reported: nothing is known to be missing.
    first, second = run_ok("report", "begun.ttmem").lines
    assert first == "no program is in the recording" and "it breaks off" in second


def test_numbers_of_text_and_json_agree() -> None:
    file = tell("mesh8")
    (process,) = run_json("report", file)["processes"]
    screen = run_ok("report", file).out
    devices = process["devices"]
    total = sum(o["allocs"] for o in process["origins"])
    assert f"{total} allocations" in screen and f"{len(devices)} devices" in screen
    assert json.dumps(process)  # a document of its own


# ---- many suspects ----

ERRORS = "traceback of ValueError, held by list ERRORS in module crowd"
CAUGHT_LINES = [13, 17, 21, 25, 29]
OTHER_LINES = [line for line in range(10, 30) if line not in CAUGHT_LINES]


def assert_a_line_for_each(rows: list[str]) -> None:
    """Those of one cause first; all in the order of their sizes."""
    found = [re.match(r" ?(\d+) crowd\.py:(\d+) step .* growing$", row) for row in rows]
    numbered = [(int(row[1]), int(row[2])) for row in found if row]
    assert numbered == list(enumerate([*CAUGHT_LINES, *OTHER_LINES], 1))


@pytest.mark.parametrize("columns", [0, 80, 130])
def test_every_suspect_has_a_line_however_many_there_are(columns: int) -> None:
    file = tell("crowd")
    rows = lines_on_terminal(file, columns) if columns else run_ok("report", file).lines
    assert_a_line_for_each(rows)
    assert not any("more origin" in row for row in rows)
    first = run_ok("report", file, "--top", "3").lines
    assert sum("growing" in row and "crowd.py" in row for row in first) == 3


def test_one_cause_of_several_origins_comes_first_with_their_sum() -> None:
    file = tell("crowd")
    rows = run_ok("report", file).lines
    at = next(n for n, row in enumerate(rows) if "one cause" in row)
    assert "20 suspects" in rows[at - 1]
    text = " ".join(" ".join(rows[at : at + 4]).split())
    assert text.startswith(f"one cause for 5 origins (1-5), 100 buffers, 56.3 MiB: {ERRORS} ")
    assert "an exception keeps the variables" in text
    (process,) = run_json("report", file)["processes"]
    (cause,) = process["root_causes"]
    origins = [process["origins"][place] for place in cause["origins"]]
    lines = [int(origin["python"][0].split(":")[1]) for origin in origins]
    assert (cause["cause"], cause["text"], lines) == ("traceback", ERRORS, CAUGHT_LINES)
    for key in ("remaining", "remaining_bytes", "remaining_footprint_bytes"):
        assert cause[key] == sum(origin[key] for origin in origins), key
    assert round(cause["remaining_footprint_bytes"] / 2**20, 1) == 56.3
    # A part that is chosen has the sum of that part; at other moments there is none.
    (process,) = run_json("report", file, "--top", "8")["processes"]
    (cause,) = process["root_causes"]
    assert len(cause["origins"]) == 2 and cause["remaining"] == 40
    for look in (("--at", "peak"), ("--region", "L1")):
        assert run_json("report", file, *look)["processes"][0]["root_causes"] == []


def test_suspects_that_are_known_have_no_cause() -> None:
    file = tell("crowd")
    Path("known").write_text("leak:crowd.py*\n", encoding="utf-8")
    assert "one cause" in run_ok("report", file).out
    screen = run_ok("report", file, "--suppressions", "known").out
    assert "one cause" not in screen and "known and suppressed" in screen


def test_the_suspects_of_other_processes_have_a_line_each() -> None:
    screen = run_ok("report", tell("apart")).out
    assert "\n + in process 4243: small.py:9 step, DRAM, 20 buffers, 1.9 MiB\n" in screen
    assert "small.py" not in run_ok("report", "apart.ttmem", "--pid", "4242").out


# ---- programs in C++ ----

MODEL_WORKER = os.environ.get("MODEL_WORKER", "")
MODEL_SOURCE = Path(__file__).parent / "model.cpp"
needs_cpp = pytest.mark.skipif(not MODEL_WORKER, reason="needs a C++ compiler")


def model_line(comment: str) -> tuple[int, str]:
    """The line that ends with the comment, and its text."""
    lines = MODEL_SOURCE.read_text(encoding="utf-8").splitlines()
    ((number, text),) = [(n, t) for n, t in enumerate(lines, 1) if t.endswith(f"// the {comment}")]
    return number, text.strip()


def run_model(file: str) -> Result:
    """Records the C++ program, with the hook that reads call stacks."""
    result = run("run", "-o", file, MODEL_WORKER, env=WORKER_OPTIONS)
    if not run_json("report", file)["processes"][0]["origins"][0]["native"]:
        pytest.skip("call stacks of native programs cannot be read here")
    return result


@needs_cpp
def test_a_helper_in_cpp_that_leaks_and_loads_has_its_callers_beside_it() -> None:
    result = run_model("m.ttmem")
    report = run("report", "m.ttmem").out
    at, text = model_line("line of all")
    leak_at, leak_text = model_line("leak")
    loop_at, loop_text = model_line("loop")
    for screen in (result.err, report):
        rows = screen.splitlines()
        first = next(n for n, row in enumerate(rows) if row.startswith(" 1 "))
        assert re.match(rf" 1 model\.cpp:{at} ← step:{leak_at} +DRAM .* growing$", rows[first])
        assert rows[first + 1] == f"     {text}"
        assert re.fullmatch(
            rf"     from model\.cpp:{leak_at} nn::Model::step +{re.escape(leak_text)}",
            rows[first + 2],
        )
        assert re.fullmatch(
            rf"     from model\.cpp:{loop_at} main +{re.escape(loop_text)}", rows[first + 3]
        )
        assert re.search(rf"^ 2 model\.cpp:{at} ← Model +DRAM .* steady$", screen, re.M)


@needs_cpp
def test_json_and_pages_have_the_lines_of_a_cpp_program() -> None:
    run_model("m.ttmem")
    at, text = model_line("line of all")
    leak_at, leak_text = model_line("leak")
    loop_at, loop_text = model_line("loop")
    (process,) = run_json("report", "m.ttmem")["processes"]
    (suspect,) = [origin for origin in process["origins"] if origin["suspect"]]
    assert suspect["python"] == []
    assert suspect["user_frames"] == [
        f"model.cpp:{at}:make",
        f"model.cpp:{leak_at}:nn::Model::step",
        f"model.cpp:{loop_at}:main",
    ]
    # What a step frees comes from another line of the same function.
    assert (suspect["allocs"], suspect["frees"]) == (40, 0)
    assert run("export", "m.ttmem", "--format", "html", "-o", "m.html").status == 0
    data = data_of(Path("m.html"))
    (shown,) = [o for o in data["processes"][0]["origins"] if o.get("suspect")]
    frames = [data["frames"][number] for number in reversed(shown["stack"])]
    assert [frame[0] for frame in frames] == [
        f"make (model.cpp:{at})",
        f"nn::Model::step (model.cpp:{leak_at})",
        f"main (model.cpp:{loop_at})",
    ]
    assert [frame[3] for frame in frames] == [text, leak_text, loop_text]
