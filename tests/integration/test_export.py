# SPDX-License-Identifier: Apache-2.0
"""tt-mem export: recordings for other tools."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support import TT_MEM, run, run_json, run_ok, wait_for


@pytest.fixture(autouse=True)
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    subprocess.run([os.environ["MAKE_STORY"], "leak", "leak.ttmem"], check=True)


def test_folded_stacks_sum_up_to_what_remains() -> None:
    lines = run_ok("export", "leak.ttmem", "--format", "folded", "-o", "-").lines
    stacks = {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in lines}
    leak = "pid 4242;DRAM;main (decode.py:61);cache_kv (decode.py:28);ttnn.zeros"
    (process,) = run_json("report", "leak.ttmem")["processes"]
    assert stacks[leak] == process["origins"][0]["remaining_footprint_bytes"]
    assert sum(stacks.values()) == sum(
        origin["remaining_footprint_bytes"] for origin in process["origins"]
    )
    counts = run_ok(
        "export", "leak.ttmem", "--format", "folded", "-o", "-", "--of", "allocated", "--by", "count"
    ).lines
    assert sum(int(line.rpartition(" ")[2]) for line in counts) == sum(
        origin["allocs"] for origin in process["origins"]
    )


@pytest.mark.parametrize("of", ["remaining", "peak", "allocated"])
@pytest.mark.parametrize("by", ["bytes", "count"])
def test_speedscope_files_are_what_its_schema_asks_for(of: str, by: str) -> None:
    run_ok(
        "export", "leak.ttmem", "--format", "speedscope", "-o", "out.json", "--of", of, "--by", by
    )
    file = json.loads(Path("out.json").read_text(encoding="utf-8"))
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = file["shared"]["frames"]
    assert len({json.dumps(frame) for frame in frames}) == len(frames)
    assert all(frame["name"] for frame in frames)
    assert 0 <= file["activeProfileIndex"] < len(file["profiles"])
    for profile in file["profiles"]:
        assert profile["type"] == "sampled"
        assert profile["unit"] == {"bytes": "bytes", "count": "none"}[by]
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])
        for sample in profile["samples"]:
            assert sample and all(0 <= number < len(frames) for number in sample)
    names = [profile["name"] for profile in file["profiles"]]
    assert names == [f"{region} of pid 4242" for region in ("DRAM", "L1", "CB", "KERNEL")]


def test_a_copy_of_a_recording_that_is_being_written_ends_in_good_order() -> None:
    with subprocess.Popen(
        [os.environ["MAKE_STORY"], "unfinished", "live.ttmem"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as writer:
        assert writer.stdout and writer.stdout.readline() == b"written\n"
        wait_for(lambda: run_json("report", "live.ttmem")["processes"])
        shutil.copy("live.ttmem", "torn.ttmem")
        run_ok("export", "live.ttmem", "--format", "ttmem", "-o", "copy.ttmem")
        live, torn, copy = (run_json("report", f"{name}.ttmem") for name in ("live", "torn", "copy"))
        writer.communicate()
    assert not torn["recording"]["complete"] and copy["recording"]["complete"]
    (live,), (torn,), (copy,) = (report["processes"] for report in (live, torn, copy))
    assert copy["origins"] == live["origins"] and copy["end"] == "running"
    assert (copy["complete"], torn["complete"]) == (True, False)
    result = run("export", "torn.ttmem", "--format", "ttmem", "-o", "none.ttmem")
    assert "it breaks off" in result.complains(1) and not Path("none.ttmem").exists()


def test_a_copy_of_a_recording_is_the_recording() -> None:
    run_ok("export", "leak.ttmem", "--format", "ttmem", "-o", "copy.ttmem")
    assert Path("copy.ttmem").read_bytes() == Path("leak.ttmem").read_bytes()


FORMATS = ["folded", "speedscope", "html", "debug-log"]


@pytest.mark.parametrize("form", [*FORMATS, "ttmem"])
def test_stdout_gets_what_a_file_gets(form: str) -> None:
    run_ok("export", "leak.ttmem", "--format", form, "-o", "out")
    command = [TT_MEM, "export", "leak.ttmem", "--format", form, "-o", "-"]
    printed = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    # A page has the moment it was made; the keys of blocks are as random as the original's.
    if form not in ("html", "debug-log"):
        assert printed == Path("out").read_bytes()
    assert abs(len(printed) - Path("out").stat().st_size) < 64


@pytest.mark.parametrize("form", [*FORMATS, "ttmem"])
def test_a_full_disk_and_a_closed_pipe_are_told_in_one_line(form: str) -> None:
    def printing(to: int) -> subprocess.CompletedProcess[str]:
        command = [TT_MEM, "export", "leak.ttmem", "--format", form, "-o", "-"]
        return subprocess.run(command, stdout=to, stderr=subprocess.PIPE, text=True)

    Path("full").symlink_to("/dev/full")
    result = run("export", "leak.ttmem", "--format", form, "-o", "full")
    assert result.complains(1) == "tt-mem: cannot write 'full': No space left on device"
    assert Path("full").is_symlink() and Path("/dev/full").is_char_device()
    with open("/dev/full", "wb") as full:
        done = printing(full.fileno())
    line = "tt-mem: cannot write the output: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, line)
    reader, writer = os.pipe()
    os.close(reader)
    done = printing(writer)
    os.close(writer)
    line = "tt-mem: cannot write the output: Broken pipe\n"
    assert (done.returncode, done.stderr) == (1, line)


@pytest.mark.parametrize("form", [*FORMATS, "ttmem"])
def test_a_recording_that_cannot_be_read_costs_nobody_an_earlier_export(form: str) -> None:
    whole = bytearray(Path("leak.ttmem").read_bytes())
    Path("flip.ttmem").write_bytes(whole[: len(whole) // 2] + bytes(len(whole) // 2))
    Path("text.ttmem").write_text("no recording at all\n", encoding="utf-8")
    Path("kept").write_text("of yesterday", encoding="utf-8")
    for name in ("flip.ttmem", "text.ttmem", "none.ttmem"):
        run("export", name, "--format", form, "-o", "kept").complains(1)
        assert Path("kept").read_text(encoding="utf-8") == "of yesterday"


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_missing_in_the_recording_is_said(form: str) -> None:
    whole = Path("leak.ttmem").read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 255
    Path("flip.ttmem").write_bytes(flipped)
    Path("torn.ttmem").write_bytes(whole[:-20])
    result = run("export", "flip.ttmem", "--format", form, "-o", "flip.out")
    assert "damaged in 1 place" in result.complains(1)
    result = run("export", "torn.ttmem", "--format", form, "-o", "torn.out")
    assert result.status == 0 and Path("torn.out").stat().st_size > 0
    if form == "html":  # the page itself says so
        assert result.err == "" and "it breaks off" in Path("torn.out").read_text(encoding="utf-8")
    else:
        assert result.err.count("\n") == 1
        assert "'torn.ttmem': the recording is not whole" in result.err
    assert run_ok("export", "leak.ttmem", "--format", form, "-o", "leak.out").err == ""


@pytest.mark.parametrize("form", FORMATS)
def test_the_recording_itself_is_not_written_over(form: str) -> None:
    whole = Path("leak.ttmem").read_bytes()
    Path("link.ttmem").symlink_to("leak.ttmem")
    for name in ("leak.ttmem", "link.ttmem"):
        result = run("export", "leak.ttmem", "--format", form, "-o", name)
        assert "it is the recording itself" in result.complains(1)
    assert Path("leak.ttmem").read_bytes() == whole


def test_wrong_usage_and_files() -> None:
    assert "which recording" in run("export", "--format", "folded", "-o", "-").complains(2)
    assert "which --format" in run("export", "leak.ttmem", "-o", "-").complains(2)
    assert "where to" in run("export", "leak.ttmem", "--format", "folded").complains(2)
    assert "no format" in run("export", "leak.ttmem", "--format", "pdf", "-o", "-").complains(2)
    assert "cannot write" in run(
        "export", "leak.ttmem", "--format", "folded", "-o", "no/such/folder"
    ).complains(1)
