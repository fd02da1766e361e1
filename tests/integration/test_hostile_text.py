# SPDX-License-Identifier: Apache-2.0
"""Text that a program chose itself goes through every output, and acts in none of them."""

import json
import re
from pathlib import Path
from typing import Iterator

import pytest
from library import Library
from pages import data_of, export
from support import Server, Tail, run, run_ok

# What moves a cursor, ends a line of JavaScript, or turns text around.
ACTING = "\x01-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
EVIL = "\x1b]0;pwned\x07\x9b31m\u202egpj\u2066\u2028\u2029\u200f\u061c<b>\"'&\\,=1+1"


def assert_plain(text: str) -> None:
    found = re.search(f"[{ACTING}]", text)
    assert not found, (found, text[max(0, found.start() - 60) : found.end() + 60])


@pytest.fixture
def evil(server: Server) -> Iterator[Library]:
    """A program that names all it can name after EVIL."""
    with Library(server) as worker:
        worker.do(f"say {EVIL}/{EVIL}", f"open 0 {EVIL[:8]}", f"push {EVIL}", f"mark {EVIL}")
        worker.do("alloc 1 4096", f"name 1 {EVIL} {EVIL}", "fail 0 4096 64")
        worker.wait_for_ids(1)
        yield worker


@pytest.mark.parametrize(
    "command",
    [
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
    ],
)
def test_a_live_view_shows_it_and_does_not_obey_it(evil: Library, command: str) -> None:
    assert_plain(run_ok(*command.split(), server=evil.server).out)


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
