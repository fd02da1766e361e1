# SPDX-License-Identifier: Apache-2.0
"""Text that a program chose itself goes through every output, and acts in none of them."""

import csv
import io
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Iterator

import pytest
from library import LIBRARY_WORKER, Library
from pages import data_of, export
from runs import WORKER_OPTIONS, Place
from support import Server, Tail, run, run_ok, wait_for

# What moves a cursor, ends a line of JavaScript, or turns text around.
ACTING = "\x01-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
EVIL = "\x1b]0;pwned\x07\x9b31m\u202egpj\u2066\u2028\u2029\u200f\u061c<b>\"'&\\,=1+1"


# Bytes that are not UTF-8, and more of them than any text may have.
RAW = "\udcff\udcc0\udcaf\udced\udca0\udc80</script>]]>\x1b[2J\x07\x9d\u2029\u202e"
LONG = "x\x1b[31m\u202e" * 90
WIDE = "x" + "ü;🜁" * 200  # no place to cut it at is between two characters for sure
# A command and a file may have any name. A line of it is no line of ours.
FILE = (EVIL + "\n\rtt-mem: forged\udcff").replace("/", "|")


def assert_plain(text: str) -> None:
    """It acts on no terminal, it is whole UTF-8, and no line of it was written by a program."""
    found = re.search(f"[{ACTING}\ud800-\udfff]|^tt-mem: forged", text, re.M)
    assert not found, (found, text[max(0, found.start() - 60) : found.end() + 60])


@pytest.fixture
def evil(server: Server) -> Iterator[Library]:
    """A program that names all it can name after EVIL."""
    with Library(server) as worker:
        worker.do(f"say {EVIL}/{EVIL}", f"open 0 {EVIL[:8]}", f"push {EVIL}", f"mark {EVIL}")
        worker.do("alloc 1 4096", f"name 1 {EVIL} {EVIL}", "fail 0 4096 64")
        worker.wait_for_ids(1)
        yield worker


@pytest.fixture
def raw(server: Server, folder: Path) -> Iterator[Library]:
    """The same with bytes that are no text, with texts that are too long, and an evil command."""
    path = folder / FILE
    shutil.copy(LIBRARY_WORKER, path)
    with Library(server, path=str(path)) as worker:
        for text in (RAW, LONG, WIDE):
            worker.do(f"say {text}/{text}", f"open 0 {text}", f"push {text}", f"mark {text}")
            worker.do("fail 0 4096 64")
        worker.do("alloc 1 4096", f"name 1 {RAW} {LONG}", "thread alloc 2 4096")
        worker.wait_for_ids(1, 2)
        yield worker


LIVE_VIEWS = [
    "dump",
    "dump --all",
    "monitor --once",
    "monitor --once --csv",
    "status --check",
    "ps",
    "devices",
    "top --snapshot --view 1",
    "top --snapshot --view 2",
    "top --snapshot --view 3",
]


@pytest.mark.parametrize("command", LIVE_VIEWS)
def test_a_live_view_shows_it_and_does_not_obey_it(evil: Library, command: str) -> None:
    assert_plain(run_ok(*command.split(), server=evil.server).out)


@pytest.mark.parametrize("command", LIVE_VIEWS)
def test_a_live_view_bears_bytes_that_are_no_text(raw: Library, command: str) -> None:
    assert_plain(run_ok(*command.split(), server=raw.server).out)


@pytest.mark.parametrize("command", ["dump", "monitor --once", "status", "ps", "devices"])
def test_json_of_bytes_that_are_no_text_is_json(raw: Library, command: str) -> None:
    out = run_ok(*command.split(), "--json", server=raw.server).out
    assert_plain(out)
    json.loads(out)


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_tail_bears_bytes_that_are_no_text(raw: Library, options: list[str]) -> None:
    with raw.server.client() as client, Tail(*options, server=raw.server, marker=client) as tail:
        raw.do(f"mark {RAW}", "fail 0 4096 64", "free 1")
        raw.wait_for_ids(2)
        lines = tail.lines_until_mark()
    assert lines
    for line in lines:
        assert_plain(line)
        if options:
            json.loads(line)


def assert_inert_csv(text: str) -> None:
    """
    Numbers and our own words in each field. Nothing that a program chose: nothing that could end a
    field or a row, or that a spreadsheet would take for a formula.
    """
    rows = list(csv.reader(io.StringIO(text)))
    assert len(rows) > 1 and len({len(row) for row in rows}) == 1
    for row in rows:
        for field in row:
            assert re.fullmatch(r"|\d+(\.\d+)?|[A-Za-z_][A-Za-z0-9_]*", field), row


def test_csv_has_no_text_of_a_program(evil: Library, folder: Path) -> None:
    log = folder / "log.csv"
    done = run_ok("monitor", "--once", "--csv", "--log", log, server=evil.server)
    assert_inert_csv(done.out)
    assert log.read_text(encoding="utf-8") == done.out
    assert_plain(run_ok("monitor", "--once", "--log", log, server=evil.server).out)
    assert_inert_csv(log.read_text(encoding="utf-8"))


@pytest.mark.parametrize("command", ["dump", "monitor --once", "status", "ps", "devices"])
def test_json_of_a_live_view_escapes_it_and_keeps_it_whole(evil: Library, command: str) -> None:
    out = run_ok(*command.split(), "--json", server=evil.server).out
    assert_plain(out)
    document = json.loads(out)
    if command == "dump":
        (process,) = document["processes"]
        assert process["buffers"][0]["name"] == EVIL
        assert [mark["name"] for mark in process["marks"]] == [EVIL]


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_tail_writes_harmless_lines(server: Server, options: list[str]) -> None:
    with Library(server) as worker, server.client() as client:
        with Tail(*options, server=server, marker=client) as tail:
            worker.do(f"push {EVIL}", "alloc 1 4096", f"name 1 {EVIL} {EVIL}", f"mark {EVIL}")
            worker.do("fail 0 4096 64", "free 1")
            worker.wait_for_ids()
            lines = tail.lines_until_mark()
    assert any("pwned" in line for line in lines), lines
    for line in lines:
        assert_plain(line)


@pytest.fixture
def recording(folder: Path) -> Path:
    export("evil")
    return Path("evil.ttmem")


@pytest.mark.parametrize(
    "command",
    [
        "report {}",
        "report {} --all",
        "report {} --all --full-paths",
        "report {} --at peak",
        "report {} --json",
        "diff {} {}",
        "diff {} {} --json",
        "history {} --address 0x0 --json",
    ],
)
def test_a_report_shows_it_and_does_not_obey_it(recording: Path, command: str) -> None:
    done = run(*command.format(recording, recording).split())
    assert done.status in (0, 1), done
    assert_plain(done.out + done.err)
    if command.endswith("--json") and done.status == 0:
        json.loads(done.out)


@pytest.mark.parametrize("kind", ["folded", "speedscope", "html", "debug-log"])
def test_an_export_holds_it_as_text(recording: Path, kind: str) -> None:
    run_ok("export", str(recording), "--format", kind, "-o", "out")
    text = Path("out").read_text(encoding="utf-8")
    assert_plain(text if kind != "debug-log" else text.replace("\t", ""))
    if kind == "speedscope":
        json.loads(text)
    if kind == "html":
        assert "<script>document.title" not in text
        assert "\u202e" in json.dumps(data_of(Path("out")), ensure_ascii=False)


# ---- a run ----


@pytest.fixture
def place(folder: Path) -> Place:
    return Place(folder)


def run_evil(place: Place, *options: str) -> str:
    """Runs a program that leaks, fails and names all it can. Returns what the run wrote of it."""
    program = place.work_folder / FILE
    shutil.copy(LIBRARY_WORKER, program)
    lines = [f"open 0 {EVIL[:8]}"]
    for i, text in enumerate((EVIL, RAW, LONG, WIDE)):
        lines += [f"say {text}/{text}", f"push {text}", f"mark {text}", "fail 0 4096 64"]
        lines += [f"alloc {100 * i + k} 4096" for k in range(40)]
    lines += [f"name 50 {EVIL} {EVIL}", "thread alloc 900 4096", "free 1"]
    done = place.run(
        *options,
        str(program),
        f"--argument={FILE}",
        stdin=("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"),
        env=dict(WORKER_OPTIONS),
    )
    return done.err


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["-o", f"{FILE}.ttmem"],
        ["--no-record"],
        ["--fail-on-leak"],
        ["--debug-log", f"{FILE}.log"],
        ["--after-mark", EVIL],
        ["--after-mark", FILE],
    ],
)
def test_the_summary_of_a_run_shows_it_and_does_not_obey_it(
    place: Place, options: list[str]
) -> None:
    err = run_evil(place, *options)
    assert "pwned" in err and "160 allocations" in err
    assert_plain(err)


def test_failures_are_shown_at_once_and_harmlessly(place: Place) -> None:
    with place.start(LIBRARY_WORKER, env=dict(WORKER_OPTIONS)) as it:
        for line in (f"say {EVIL}/{EVIL}", f"push {EVIL}", "alloc 1 4096", "fail 0 4096 64"):
            it.do(line)
        wait_for(lambda: "out of memory" in it.errors(), "the report")
        assert_plain(it.errors())
        assert_plain(it.end().err)


@pytest.mark.parametrize("kind", ["folded", "speedscope", "html", "debug-log"])
def test_what_a_run_has_recorded_is_exported_as_text(place: Place, kind: str) -> None:
    run_evil(place, "-o", "evil.ttmem", "--debug-log", "debug.log")
    recording, out = str(place.work_folder / "evil.ttmem"), place.work_folder / "out"
    run_ok("export", recording, "--format", kind, "-o", out)
    text = out.read_text(encoding="utf-8")
    assert_plain(text.replace("\t", "") if kind == "debug-log" else text)
    log = (place.work_folder / "debug.log").read_text(encoding="utf-8")
    assert_plain(log.replace("\t", ""))
    if kind == "speedscope":
        json.loads(text)
    if kind == "folded":
        for line in text.splitlines():
            stack, _, weight = line.rpartition(" ")
            assert weight.isdigit() and stack.startswith("pid "), line
            assert stack.count(";") <= 2, line  # process, region, operation: none made up
    for options in (
        *([], ["--all"], ["--json"], ["--by", "stack"], ["--by", "frees"], ["--at", "peak"]),
        *(["--at", EVIL], ["--after-mark", EVIL], ["--at", EVIL, "--json"]),
    ):
        assert_plain(run_ok("report", recording, *options).out)
    assert_plain(run("diff", recording, recording, "--from", EVIL, "--to", LONG).out)


def test_the_name_of_a_file_is_written_harmlessly(place: Place) -> None:
    """A recording that lies in a folder may be somebody else's, and have any name."""
    run_evil(place, "-o", "good.ttmem", "--debug-log", "good.log")
    here = place.work_folder
    recording, torn, bad = (here / f"{kind}{FILE}.ttmem" for kind in ("good", "torn", "bad"))
    log, known, folder, out = (
        here / f"{FILE}.log",
        here / f"{FILE}.leaks",
        here / FILE,
        here / "out",
    )
    recording.write_bytes((here / "good.ttmem").read_bytes())
    torn.write_bytes(recording.read_bytes()[:-100])
    bad.write_bytes(b"nothing" * 100)
    log.write_bytes((here / "good.log").read_bytes())
    known.write_text(f"leak:*\nnonsense {EVIL}\n", encoding="utf-8")
    commands: list[list[str | Path]] = [
        ["report", recording],
        ["report", torn],
        ["report", bad],
        ["report", recording, "--at", FILE],
        ["report", recording, "--after-mark", FILE],
        ["report", recording, "--by", FILE],
        ["report", recording, "--suppressions", known],
        ["report", recording, FILE],
        ["report", f"--{FILE}"],
        ["diff", recording, torn],
        ["diff", recording, "--from", FILE, "--to", FILE],
        ["diff", recording, "--from", EVIL, "--to", EVIL],
        ["history", torn, "--address", "0x0"],
        ["history", torn, "--address", FILE],
        ["export", torn, "--format", "folded", "-o", out],
        ["export", torn, "--format", FILE, "-o", out],
        ["export", torn, "--format", "html", "-o", folder / "no"],
        ["import", log, "-o", here / f"imported{FILE}.ttmem"],
        ["import", bad, "-o", out],
        ["import", log, "-o", folder / "no"],
        ["run", "-o", folder, "true"],
        ["run", "--suppressions", known, "true"],
        ["run", here / f"no{FILE}"],
        ["serve", "--socket", folder / "s", "--no-legacy"],
        ["status", "--socket", folder],
        ["monitor", "--once", "--log", folder / "no", "--socket", folder],
        ["enable", FILE],
        [FILE],
    ]
    for command in commands:
        done = run(*command, env={"XDG_RUNTIME_DIR": str(place.runtime)})
        assert_plain(done.out + done.err)
    (here / "good.ttmem").unlink()
    bad.unlink()
    for command in (["report"], ["report", "--at", "nowhere"]):
        newest = subprocess.run(
            [place.tt_mem, *command], cwd=here, capture_output=True, check=False
        )
        text = (newest.stdout + newest.stderr).decode("utf-8", "surrogateescape")
        assert "forged" in text
        assert_plain(text)
