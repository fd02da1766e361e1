# SPDX-License-Identifier: Apache-2.0
"""Allocations that fail under tt-mem run: told at once, with who holds the memory."""

from __future__ import annotations

import os
import re
import struct
import subprocess
from pathlib import Path
from typing import Iterator

import pytest
from native import (
    F_EVENTS,
    F_FAILURE,
    F_LOST,
    F_PROCESS,
    GET_STATUS,
    SUBSCRIBE_EVENTS,
    Native,
    frame,
)
from pages import data_of
from support import (
    PATIENCE_S,
    TRACKED_WORKER,
    WORKER_OPTIONS,
    Place,
    Server,
    Tracked,
    needs_root,
    run,
    run_ok,
    wait_for,
)


@pytest.fixture
def place(folder: Path) -> Iterator[Place]:
    made = Place(folder)
    yield made
    assert not list(made.runtime.iterdir()), "a socket or lock was left behind"


def owners_of(report: str) -> list[tuple[str, str, str]]:
    """Who holds the region: bytes, buffers and origin of each line."""
    return re.findall(r"^(?:  who holds \w+| {14}) +([\d.]+ \w+) +(\d+) buffers? +(.+)$", report, re.M)


def test_a_failure_is_told_at_once_with_who_holds_the_region(place: Place) -> None:
    with place.start(TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as it:
        it.do("open 0")
        it.do("within 1")
        it.do("alloc 0 1 2 4000")
        it.do("alloc 0 0 9 999999")  # another region
        it.do("within 2")
        it.do("alloc 0 1 5 400000")
        it.do("within 3")
        it.do("fail 0 1 524288 655360 327680")
        wait_for(lambda: "  bank " in it.errors(), "the report")
        assert it.process.poll() is None  # the program has not ended: it waits for us
        report = it.errors()
        dump = run("dump", "--json", env={"TTMEM_SOCKET": it.socket}).json["processes"][0]
        it.do("free 16")
        after = run("dump", "--json", env={"TTMEM_SOCKET": it.socket}).json["processes"][0]
        text = it.end().err
    assert report.splitlines()[:3] == [
        "tt-mem: out of memory in L1 of device 0 in part_3",
        "  2.0 MiB wanted, 512 KiB in each of 4 banks",
        "  free 640 KiB a bank, largest block 320 KiB → fragmented, not exhausted",
    ]
    assert owners_of(report) == [("1.9 MiB", "5", "in part_2"), ("8.0 KiB", "2", "in part_1")]
    assert re.search(r"^  bank ▕[▒█].*░.*█▏ 0x10000 … 0x\w+ of 8.0 MiB ", report, re.M)
    assert "  1 allocation failed\n" in text[len(report) :]

    (failure,) = dump["failures"]
    assert failure["verdict"] == "fragmented" and failure["region"] == "L1"
    assert failure["context"] == "part_3" and failure["python"] == []
    assert [owner["count"] for owner in failure["owners"]] == [5, 2]
    named = [dump["origins"][owner["origin"]] for owner in failure["owners"]]
    assert [origin["context"] for origin in named] == ["part_2", "part_1"]
    for owner, origin in zip(failure["owners"], named, strict=True):
        assert origin["region"] == "L1"
        assert owner["bytes"] == origin["remaining_bytes"]
        assert owner["footprint_bytes"] == origin["remaining_footprint_bytes"]
    # They have given back all since: there is nothing to point to, but what they held is known.
    assert after["origins"] == []
    expected = [{**owner, "origin": None} for owner in failure["owners"]]
    assert after["failures"][0]["owners"] == expected


def test_a_clash_names_both_sides(place: Place) -> None:
    with place.start(TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as it:
        for line in ("open 2", "within 7", "alloc 2 1 4 4000", "alloc 2 5 3 4000"):
            it.do(line)
        it.do("clash 2 131072")
        wait_for(lambda: "who holds" in it.errors(), "the report")
        report = it.errors()
        it.end()
    assert "circular buffers clash with L1 buffers on device 2 in part_7\n" in report
    assert "  circular buffers would end at 0x20000 " in report
    assert re.findall(r"^(?:  lowest L1 buffers|  +) +(0x\w+) +4.0 KiB  in part_7$", report, re.M) == [
        "0x10000",
        "0x20000",
        "0x30000",
    ]
    assert owners_of(report) == [("16.0 KiB", "4", "in part_7")]
    assert re.search(r"^ +12.0 KiB  circular buffers", report, re.M)


def test_a_failure_that_differs_is_told_at_once_and_the_last_in_any_case(place: Place) -> None:
    with place.start(TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as it:
        for line in ("open 0", "within 1", "alloc 0 1 2 4000", "fail 0 1 4096 100 100", "fail 0 1 8192 100 100"):
            it.do(line)
        it.do("fail 0 0 4096 100 100")  # another region,
        it.do("fail 0 1 4096 5000 100")  # another verdict,
        it.do("within 2")
        it.do("fail 0 1 4096 100 100")  # another place
        wait_for(lambda: "in part_2" in it.errors(), "the last report")
        told = it.errors()
        it.do("free 2")
        it.do("fail 0 1 12288 100 100")  # the same, which may be held back
        text = it.end().err
    heads = re.findall(r"^tt-mem: (out of memory in \w+) of device 0 (in part_\d)", told, re.M)
    assert [head for head in heads if heads.count(head) == 1] == [
        ("out of memory in DRAM", "in part_1"),
        ("out of memory in L1", "in part_2"),
    ]
    assert told.count("fragmented") == 1
    assert "12.0 KiB in each of 4 banks" not in told
    assert text.count("12.0 KiB in each of 4 banks") == 1
    assert text.index("12.0 KiB in each") < text.index(" ended after ")
    assert "  6 allocations failed\n" in text


def verdicts_in(text: str) -> list[str]:
    return re.findall(r"(?:→|:) (fragmented|exhausted)", text)


@pytest.mark.parametrize(
    "failure, verdict",
    [
        ("fail 0 1 4096 5000 100", "fragmented"),
        ("fail 0 1 4096 4096 4095", "fragmented"),
        ("fail 0 1 4096 4095 4095", "exhausted"),
        ("fail 0 1 4096 0 0", "exhausted"),
        ("fail 0 1 4096 9000 4096", None),  # a block is large enough: it failed for another reason
        ("fail 0 1 0 0 0", None),  # not known
        ("clash 0 131072", None),  # an address, which nothing is compared with
    ],
)
def test_every_view_has_the_same_verdict(place: Place, failure: str, verdict: str | None) -> None:
    """JSON has two words: what is not fragmented is exhausted. Elsewhere nothing is said instead."""
    worker = ("-o", "run.ttmem", TRACKED_WORKER)
    with place.start(*worker, env=dict(WORKER_OPTIONS)) as it:
        for line in ("open 0", "alloc 0 1 2 4000", failure):
            it.do(line)
        wait_for(lambda: "  bank " in it.errors(), "the report")
        live = it.errors()
        dump = run("dump", "--json", env={"TTMEM_SOCKET": it.socket}).json
        it.end()
    recording, page = place.work_folder / "run.ttmem", place.work_folder / "page.html"
    report = run("report", str(recording), "--json").json
    run_ok("export", str(recording), "--format", "html", "-o", str(page))
    (told,) = data_of(page)["processes"][0]["failures"]
    assert told.get("verdict") == verdict
    words = [verdict] if verdict else []
    assert verdicts_in(live) == words
    assert verdicts_in(run("report", str(recording)).out) == words
    for document in (dump, report):
        (row,) = document["processes"][0]["failures"]
        assert row["verdict"] == (verdict or "exhausted")


def test_the_report_has_the_last_failure_first_and_those_alike_once(place: Place) -> None:
    lines = "open 0\nalloc 0 1 2 4000\nfail 0 0 4096 100 100\nfail_often 0 200\nfail 0 1 4096 5000 100\n"
    place.run("-o", "run.ttmem", TRACKED_WORKER, stdin=lines.encode(), env=dict(WORKER_OPTIONS))
    recording = str(place.work_folder / "run.ttmem")
    kinds = [r"in L1 of device 0 after [\d.]+ m?s", r"in L1 of device 0, 200 times from [\d.]+ m?s to [\d.]+ m?s,"]
    kinds.append(r"in DRAM of device 0 after [\d.]+ m?s")
    for options in ([], ["--all"]):
        text = run("report", recording, *options).out
        heads = re.findall(r"^  out of memory (.*) at ", text, re.M)
        assert len(heads) == 3
        assert all(re.fullmatch(kind, head) for kind, head in zip(kinds, heads, strict=True)), heads
        assert text.index("fragmented") < text.index("exhausted")
        assert "more failed" not in text
    assert len(run("report", recording, "--json").json["processes"][0]["failures"]) == 64


def test_a_storm_of_failures_does_not_flood(place: Place) -> None:
    with place.start(TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as it:
        it.do("alloc 0 1 10 4000")
        wait_for(lambda: it.knows(it.child()))
        it.do("fail_often 0 5000")
        text = it.end().err
    # How many depends on how long it took; not more than so many, and the last, in any case.
    assert 2 <= text.count("out of memory in L1 of device 0") <= 21
    failed = re.search(r"^  .*?([\d,]+) allocations failed$", text, re.M)
    lost = re.search(r"([\d,]+) events lost", text)
    counted = int(failed[1].replace(",", "")) if failed else 0
    assert counted + (int(lost[1].replace(",", "")) if lost else 0) == 5000


def test_who_does_not_read_stderr_holds_nobody_up(place: Place) -> None:
    ours, theirs = os.pipe()
    filler = os.open(f"/proc/self/fd/{theirs}", os.O_WRONLY | os.O_NONBLOCK)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(filler, b"x" * 4096)
    it = subprocess.Popen(
        [place.tt_mem, "run", "--no-record", TRACKED_WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=place.env(**WORKER_OPTIONS),
        text=True,
    )
    socket = str(place.runtime / f"tt-mem.run.{it.pid}.sock")
    try:
        assert it.stdin and it.stdout
        for line in ("alloc 0 1 10 4000", "fail 0 1 4096 0 0", "alloc 0 1 1 4000"):
            it.stdin.write(line + "\n")
            it.stdin.flush()
            assert it.stdout.readline()

        def has_heard_all() -> bool:
            dump = run("dump", "--json", env={"TTMEM_SOCKET": socket}).json
            return any(p["failures"] and len(p["buffers"]) == 11 for p in dump["processes"])

        wait_for(has_heard_all, "the server to go on")
        os.close(theirs)
        os.close(filler)
        it.stdin.close()
        with os.fdopen(ours, "rb") as reader:
            text = reader.read().lstrip(b"x").decode()
        assert it.wait(PATIENCE_S) == 0
    finally:
        if it.poll() is None:
            it.kill()
        it.wait()
        it.stdout.close()
    assert text.count("out of memory in L1") == 1
    assert "11 allocations remain" in text


# ---- a server that runs already ----

SEVERAL = """\
open 0
within 1
alloc 0 1 2 4000
alloc 0 0 9 999999
within 2
alloc 0 1 5 400000
within 3
fail 0 1 524288 655360 327680
fail 0 0 4096 100 100
free 3
within 2
fail 0 1 4096 100 100
clash 0 131072
fail 0 1 8192 100 100
"""


def told(text: str) -> list[str]:
    """What was said of failures, without what a server elsewhere does not tell."""
    lines = text[: text.index(" ended after ")].splitlines()
    beyond = r"  bank |  lowest L1 buffers |  .* circular buffers of| {18} +0x\w+ "
    return [line for line in lines[:-1] if not re.match(beyond, line)]


def test_with_connect_the_same_is_told(place: Place, server: Server) -> None:
    env = dict(WORKER_OPTIONS)
    alone = place.run("--no-record", TRACKED_WORKER, stdin=SEVERAL.encode(), env=env).err
    other = place.run("--connect", server.socket, TRACKED_WORKER, stdin=SEVERAL.encode(), env=env)
    assert told(other.err) == told(alone)
    assert "  bank " in alone and "  bank " not in other.err
    assert len(owners_of(other.err)) >= 6
    assert "8.0 KiB in each of 4 banks" in other.err  # held back, as it is like one before it
    for text in (alone, other.err):
        assert "  5 allocations failed\n" in text


def test_with_connect_a_failure_is_told_at_once(place: Place, server: Server) -> None:
    with place.start("--connect", server.socket, TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as it:
        for line in ("open 0", "within 1", "alloc 0 1 5 4000", "within 2", "fail 0 1 4096 100 100"):
            it.do(line)
        wait_for(lambda: "who holds" in it.errors(), "the report")
        assert it.process.poll() is None  # the program has not ended: it waits for us
        report = it.errors()
        it.end()
    assert report.splitlines()[:2] == [
        "tt-mem: out of memory in L1 of device 0 in part_2",
        "  16.0 KiB wanted, 4.0 KiB in each of 4 banks",
    ]
    assert owners_of(report) == [("20.0 KiB", "5", "in part_1")]


def test_with_connect_failures_of_others_are_not_told(place: Place, server: Server) -> None:
    args = ("--connect", server.socket, TRACKED_WORKER)
    with (
        place.start(*args, env=dict(WORKER_OPTIONS)) as one,
        place.start(*args, env=dict(WORKER_OPTIONS)) as two,
        Tracked(server) as three,
    ):
        for it in (one, two, three):
            it.do("alloc 0 1 5 4000")
        three.do("fail 0 1 4096 100 100")
        two.do("fail 0 1 8192 100 100")
        wait_for(lambda: "out of memory" in two.errors(), "the report")
        first, second = one.end().err, two.end().err
    assert "out of memory" not in first and "failed" not in first
    assert second.count("out of memory") == 1 and ", 8.0 KiB a bank\n" in second
    assert " in process " not in second  # of its run there is one
    assert "  1 allocation failed\n" in second


def test_with_connect_a_storm_of_failures_does_not_flood(place: Place, server: Server) -> None:
    with place.start("--connect", server.socket, TRACKED_WORKER, env=dict(WORKER_OPTIONS)) as it:
        it.do("alloc 0 1 10 4000")
        wait_for(lambda: server.status()["clients"], "the server to know it")
        it.do("fail_often 0 20000")
        it.do("fail 0 1 12288 100 100")
        text = it.end().err
    heads = text.count("out of memory in L1 of device 0")
    assert 2 <= heads <= 21
    failed = re.search(r"^  .*?([\d,]+) allocations failed$", text, re.M)
    lost = re.search(r"([\d,]+) events lost", text)
    assert failed
    counted = int(failed[1].replace(",", ""))
    assert counted + (int(lost[1].replace(",", "")) if lost else 0) == 20001
    # Those that were left out on the way are counted as those that were held back.
    more = re.findall(r"^tt-mem: ([\d,]+) more failures? since(, the last of them)?", text, re.M)
    behind = sum(int(number.replace(",", "")) - bool(last) for number, last in more)
    assert heads + behind == counted
    assert ", 12.0 KiB a bank\n" in text or lost
    assert "10 allocations remained" in text


def last_words() -> bytes:
    return frame(SUBSCRIBE_EVENTS, struct.pack("<iI", 0, 2) + bytes(128))


def test_a_watcher_that_does_not_read_loses_failures_and_no_end(server: Server) -> None:
    with Native(server.socket) as slow:
        slow.send(last_words())
        slow.ask(GET_STATUS)  # it has taken effect
        with Tracked(server) as it:
            it.do("alloc 0 1 5 4000")
            for _ in range(20):
                it.do("fail_often 0 1000")
                it.do("alloc 0 1 1 4000")
                server.status()  # before which it reads what was reported
            it.do("fail 0 1 12288 100 100")
            it.end()
        wait_for(lambda: not server.status()["clients"], "the end")
        frames = [slow.read_frame()]
        while frames[-1][0] != F_EVENTS:
            frames.append(slow.read_frame())
    kinds = [kind for kind, _ in frames]
    assert F_LOST not in kinds and kinds.count(F_EVENTS) == 1
    failures = [payload for kind, payload in frames if kind == F_FAILURE]
    assert 1 < len(failures) < 5000
    assert struct.unpack_from("<Q", failures[-1], 24) == (12288,)  # which is the last, in any case
    rows = [payload for kind, payload in frames if kind == F_PROCESS]
    assert len(rows) == len(failures)
    numbers = [struct.unpack_from("<Q", row, 136)[0] for row in rows]
    assert numbers == sorted(numbers) and numbers[0] == 1 and numbers[-1] > len(failures)


@needs_root
def test_failures_are_told_to_who_may_see_the_process(server: Server) -> None:
    os.seteuid(65534)
    try:
        stranger = Native(server.socket)
    finally:
        os.seteuid(0)
    with Native(server.socket) as own, stranger, Tracked(server) as it:
        for stream in (own, stranger):
            stream.send(last_words())
            stream.ask(GET_STATUS)  # it has taken effect
        it.do("alloc 0 1 5 4000")
        it.do("fail 0 1 4096 100 100")
        wait_for(lambda: server.dump()["processes"][0]["failures"], "the failure")
        assert F_FAILURE in [kind for kind, _ in own.ask(GET_STATUS)]
        assert F_FAILURE not in [kind for kind, _ in stranger.ask(GET_STATUS)]
