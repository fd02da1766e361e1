# SPDX-License-Identifier: Apache-2.0
"""The debug log: blocks of text, written by the server while a program runs."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from pathlib import Path
from typing import Iterator

import pytest
from old_logs import rows_of
from support import (
    RUN_WORKER,
    WORKER_OPTIONS,
    Place,
    Result,
    clean_env,
    needs_root,
    run,
    run_json,
    run_ok,
    wait_for,
)

STRANGER = 65000 + os.getpid() % 500  # a user that no other test is
RULE = "═" * 59
FIELDS = r"""Time: \d\d:\d\d:\d\d
Device: \d+
Address: 0x(?P<hex>[0-9a-f]+) \((?P<address>\d+)\)
Size: (?P<bytes>\d+) bytes \((?P<kib>[\d.e+]+) KB\)
Type: (?P<type>DRAM|L1|L1_SMALL|OTHER)
Buffer\*: 0x(?P<pointer>[0-9a-f]+)
"""
OWNER = "Owns Data: (?:yes|no)\nHooked: (?:yes|no)\n"
STACK = r"Call Stack:\n(?P<stack>(?:    [^\n]+: [^\n]+\n){0,8})\n"
ALLOCATED = re.compile(f"{RULE}\nBUFFER ALLOCATED\n{FIELDS}{OWNER}{STACK}")
ENDED = re.compile(
    f"{RULE}\n(?P<title>BUFFER DEALLOCATED|"
    rf"BUFFER DESTRUCTOR \(still ALLOCATED - will deallocate\))\n{FIELDS}{STACK}"
)


@pytest.fixture
def place(folder: Path) -> Iterator[Place]:
    made = Place(folder)
    yield made
    assert not list(made.runtime.iterdir()), "a socket or lock was left behind"


def blocks_of(text: str) -> tuple[list[re.Match[str]], list[re.Match[str]]]:
    """Births and ends; every byte of the text is of a whole block."""
    births, ends, at = [], [], 0
    while at < len(text):
        birth, end = ALLOCATED.match(text, at), ENDED.match(text, at)
        assert birth or end, text[at : at + 900]
        (births if birth else ends).append(birth or end)
        at = (birth or end).end()
    for match in births + ends:
        assert int(match["hex"], 16) == int(match["address"])
        assert match["kib"] == f"{int(match['bytes']) / 1024:.6g}"
    return births, ends


def work(place: Place, *args: str, env: dict[str, str | None] | None = None) -> Result:
    """A worker that allocates 84 buffers, frees one and closes its device."""
    with place.start(*args, RUN_WORKER, env={**WORKER_OPTIONS, **(env or {})}) as it:
        assert it.read() == "allocated"
        it.send("")
        assert it.read() == "failed"
        it.send("")
        assert it.read() == "closed"
        return it.end()


def test_each_buffer_has_its_blocks_and_they_are_exact(place: Place, folder: Path) -> None:
    log = folder / "debug.log"
    result = work(place, "-o", str(folder / "run.ttmem"), "--debug-log", str(log))
    assert result.status == 0
    births, ends = blocks_of(log.read_text(encoding="utf-8"))
    assert len(births) == 84
    assert [match["title"] for match in ends].count("BUFFER DEALLOCATED") == 1
    assert len(ends) == 84  # the others were there when the device was closed
    assert {(m["type"], int(m["bytes"])) for m in births} == {("DRAM", 2 << 20), ("L1", 512 << 10)}
    assert len({m["pointer"] for m in births}) == 84
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    again = folder / "again.log"
    run_ok("export", folder / "run.ttmem", "--format", "debug-log", "-o", again)
    assert again.read_bytes() == log.read_bytes()
    shown = run_ok("export", folder / "run.ttmem", "--format", "debug-log", "-o", "-")
    assert shown.out == log.read_text(encoding="utf-8")


def test_what_is_imported_from_it_has_the_same_numbers(place: Place, folder: Path) -> None:
    log, first, second = (folder / name for name in ("debug.log", "run.ttmem", "log.ttmem"))
    work(place, "-o", str(first), env={"TT_BUFFER_DEBUG_LOG": str(log)})
    assert run("import", log, "-o", second).status == 0
    ours, theirs = run_json("report", first), run_json("report", second)
    expected = {
        (0, device, region): row
        for (_, device, region), row in rows_of(ours).items()
        if region != "CB"
    }
    assert rows_of(theirs) == expected
    assert theirs["processes"][0]["complete"]


def test_it_is_written_while_the_program_runs(place: Place, folder: Path) -> None:
    log = folder / "debug.log"
    with place.start("--debug-log", str(log), RUN_WORKER, env=dict(WORKER_OPTIONS)) as it:
        assert it.read() == "allocated"
        wait_for(lambda: log.read_text().count("BUFFER ALLOCATED\n") == 84, "the births")
        blocks_of(log.read_text(encoding="utf-8"))
        it.send("")
        assert it.read() == "failed"
        it.send("")
        assert it.read() == "closed"
        it.end()
    assert log.read_text().count("BUFFER DE") == 84


def test_a_log_goes_on_where_it_ended(place: Place, folder: Path) -> None:
    log = folder / "debug.log"
    for _ in range(2):
        work(place, "--no-record", "--debug-log", str(log))
    births, _ = blocks_of(log.read_text(encoding="utf-8"))
    assert len({m["pointer"] for m in births}) == 168  # two processes, no pointer in common
    assert not list(place.work_folder.glob("*.ttmem"))
    assert run("import", log, "-o", folder / "log.ttmem").status == 0
    report = run_json("report", folder / "log.ttmem")
    assert rows_of(report)[0, 0, "L1"][:2] == (160, 2)


def test_a_program_that_is_killed_has_all_its_events(place: Place, folder: Path) -> None:
    log = folder / "debug.log"
    with place.start("--debug-log", str(log), RUN_WORKER, env=dict(WORKER_OPTIONS)) as it:
        assert it.read() == "allocated"
        os.kill(it.child(), 9)
        assert it.end().status == 128 + 9
    births, ends = blocks_of(log.read_text(encoding="utf-8"))
    assert (len(births), len(ends)) == (84, 0)


@pytest.mark.parametrize("value", ["0", "", None])
def test_no_log_is_written_unless_one_is_wanted(
    place: Place, folder: Path, value: str | None
) -> None:
    result = work(place, env={"TT_BUFFER_DEBUG_LOG": value})
    assert "debug log" not in result.err
    assert sorted(p.name for p in place.work_folder.iterdir() if p.suffix != ".ttmem") == []


# ---- where it may be written ----


def refused(place: Place, path: Path, why: str) -> None:
    """One line says so, and the program runs as ever."""
    result = place.run("--debug-log", str(path), "sh", "-c", "echo fine; exit 7")
    assert (result.status, result.out) == (7, "fine\n")
    (line,) = [line for line in result.err.splitlines() if "debug log" in line]
    assert line == f"tt-mem: cannot write the debug log '{path}': {why}; going on without it"


def test_a_place_that_cannot_be_written_harms_nobody(place: Place, folder: Path) -> None:
    refused(place, folder / "no" / "such" / "log", "No such file or directory")
    refused(place, folder, "Is a directory")
    os.mkfifo(folder / "fifo")
    refused(place, folder / "fifo", "No such device or address")
    refused(place, Path("/dev/full"), "it is no plain file")


def test_links_are_not_followed(place: Place, folder: Path) -> None:
    victim = folder / "victim"
    victim.write_text("precious")
    (folder / "link").symlink_to(victim)
    refused(place, folder / "link", "it is a symbolic link")
    (folder / "dangling").symlink_to(folder / "made")
    refused(place, folder / "dangling", "it is a symbolic link")
    assert not (folder / "made").exists()
    os.link(victim, folder / "second")
    refused(place, folder / "second", "it has a second name")
    assert victim.read_text() == "precious"


@needs_root
def test_another_users_file_is_not_written_to(place: Place, folder: Path) -> None:
    theirs = folder / "theirs"
    theirs.write_text("precious")
    os.chown(theirs, STRANGER, STRANGER)
    theirs.chmod(0o666)
    refused(place, theirs, "it is another user's or not for writing")
    assert theirs.read_text() == "precious"


def test_it_is_for_a_server_of_its_own(place: Place, make_server) -> None:
    server = make_server().start()
    line = run("run", "--connect", server.socket, "--debug-log", "x", "true").complains(2)
    assert "--debug-log and --connect exclude each other" in line
    result = place.run("--connect", server.socket, "true", env={"TT_BUFFER_DEBUG_LOG": "x"})
    assert result.status == 0
    assert f"no debug log: that is for the server at '{server.socket}' to write" in result.err
    assert not (place.work_folder / "x").exists()


# ---- a server's ----


@pytest.mark.parametrize("is_recording", [False, True])
def test_a_server_writes_the_log_that_its_own_environment_asks_for(
    make_server, folder: Path, is_recording: bool
) -> None:
    log, records = folder / "debug.log", folder / "records"
    records.mkdir()
    args = ("--record", str(records)) if is_recording else ()
    server = make_server().start(*args, env={"TT_BUFFER_DEBUG_LOG": str(log)})
    with server.client() as client:
        for ident in range(1, 41):
            client.alloc(0, 4096, ident * 64, region=1)
        for ident in range(1, 11):
            client.free(0, ident * 64)
        client.alloc(0, 100, 20 * 64, region=0)  # the same number in DRAM
        client.sync()
        wait_for(lambda: log.read_text().count("BUFFER DEALLOCATED") == 10, "the frees")
    server.stop()
    births, ends = blocks_of(log.read_text(encoding="utf-8"))
    assert (len(births), len(ends)) == (41, 10)
    assert len(list(records.iterdir())) == is_recording
    assert run("import", log, "-o", folder / "log.ttmem").status == 0
    assert rows_of(run_json("report", folder / "log.ttmem")) == {
        (0, 0, "L1"): (40, 10, 30, 30 * 4096),
        (0, 0, "DRAM"): (1, 0, 1, 100),
    }


def test_a_program_cannot_choose_where_a_server_writes(make_server, folder: Path) -> None:
    server = make_server().start()
    chosen = folder / "chosen.log"
    env = {
        "TTMEM_SOCKET": server.socket,
        "TT_ALLOC_TRACKING_ENABLED": "1",
        "TT_BUFFER_DEBUG_LOG": str(chosen),
    }
    subprocess.run(
        [RUN_WORKER], input=b"\n\n\n", env=clean_env(**WORKER_OPTIONS, **env),
        stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    server.stop()
    assert not chosen.exists()
