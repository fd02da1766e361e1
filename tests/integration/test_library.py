# SPDX-License-Identifier: Apache-2.0
"""What programs say through libttmem is what our commands show; bad hosts come to no harm."""

import csv
import io
import json
import os
import platform
import signal
import socket as sockets
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import (
    ERROR,
    GET_STATUS,
    IS_SANITIZED,
    IS_THREAD_SANITIZED,
    NOBODY,
    PATIENCE_S,
    SWITCHED,
    TELL,
    TOLD_END,
    TT_MEM,
    Library,
    Native,
    Server,
    Tail,
    attach,
    clean_env,
    client_of,
    frame,
    hello,
    needs_root,
    row_of,
    run,
    run_json,
    run_ok,
    segment,
    segment_header,
    told,
    told_row,
    wait_for,
)

DISABLED = {"TT_ALLOC_TRACKING_ENABLED": "0"}
WHILE_OFF = "it allocated while tracking was off: what is left of that is not known"


# ---- programs ----


def test_a_view_is_listed_and_adds_nothing(server: Server) -> None:
    with Library(server) as worker:
        worker.do("alloc 1 4096", "alloc 2 4096 0 0 0 1", "alloc 3 4096 0 0 0 1")
        wait_for(lambda: worker.region("DRAM")["remaining"] == 1)
        (process,) = run_json("dump", "-s", server.socket)["processes"]
        assert [buffer.get("view", False) for buffer in process["buffers"]] == [False, True, True]
        own, views = process["origins"]
        assert (own["remaining"], own["remaining_bytes"], own["sizes"]) == (1, 4096, {"4096": 1})
        assert views["view"] and (views["remaining"], views["remaining_bytes"]) == (0, 0)
        assert views["sizes"] == {} and views["remaining_footprint_bytes"] == 0
        for buffer in process["buffers"]:
            assert process["origins"][buffer["origin"]].get("view") == buffer.get("view")
        lines = run_ok("dump", "-s", server.socket).lines
        assert sum("view, adds nothing" in line for line in lines) == 2
        assert sum(line.split()[:4] == ["4", "KB", "1", "buffer"] for line in lines) == 1


def test_circular_buffers_take_the_union_of_their_addresses_per_core(server: Server) -> None:
    with Library(server) as worker:
        worker.do("cb 1 0 1000 100 1 1", "cb 1 1 1100 50 1 1")  # four cores
        worker.do("cb 2 0 1000 120 1 1", "cb 3 0 1000 10 3 3")  # the same addresses; 16 cores
        wait_for(lambda: worker.region("CB")["remaining"] == 4)
        region = worker.region("CB")
        assert region["remaining_footprint_bytes"] == 4 * (100 + 50 + 120) + 16 * 10
        assert region["registered_bytes"] == 4 * 150 + 12 * 10
        assert region["resident_bytes"] == 0  # none was sent yet
        worker.do("dispatch 1 0")
        assert worker.region("CB")["resident_bytes"] == 4 * 150
        worker.do("dispatch 3 0")
        assert worker.region("CB")["resident_bytes"] == 16 * 10
        worker.do("dispatch 2 0")  # lies on the first four cores; program 3 on the others
        assert worker.region("CB")["resident_bytes"] == 4 * 120 + 12 * 10
        table = run_ok("monitor", "--once", "--csv", "-s", server.socket).out
        (row,) = [r for r in csv.DictReader(io.StringIO(table)) if r["region"] == "CB"]
        assert row["bytes"] == row["footprint_bytes"] == str(4 * 120 + 12 * 10)
        assert row["count"] == "4"
        server.check()
        worker.do("end_program 2", "end_program 1")
        wait_for(lambda: worker.region("CB")["remaining"] == 1)
        region = worker.region("CB")
        assert region["registered_bytes"] == region["resident_bytes"] == 16 * 10
        assert region["frees"] == 3
        worker.do("end_program 3")
        wait_for(lambda: worker.region("CB")["remaining"] == 0)
        assert worker.region("CB")["registered_bytes"] == 0
        assert worker.client()["unknown_ends"] == worker.client()["unknown_frees"] == 0
        server.check()


def test_kernels_are_counted_by_kind_and_end_with_their_program(server: Server) -> None:
    with Library(server) as worker:
        worker.do("kernel 1 0 100 0", "kernel 1 1 200 0", "kernel 2 0 30 1", "kernel 3 0 7 2")
        wait_for(lambda: worker.region("KERNEL")["remaining"] == 4)
        region = worker.region("KERNEL")
        assert region["application_bytes"] == 300
        assert region["fabric_bytes"] == 30
        assert region["dispatch_bytes"] == 7
        assert {b["program"] for b in worker.row()["buffers"]} == {1, 2, 3}
        worker.do("end_program 1")
        wait_for(lambda: worker.region("KERNEL")["remaining"] == 2)
        assert worker.region("KERNEL")["application_bytes"] == 0
        text = run_ok("dump", server=server).out
        assert "fabric kernel of program 2" in text and "dispatch kernel of program 3" in text


def test_a_program_whose_number_is_an_id_too_is_something_else(server: Server) -> None:
    with Library(server) as worker:
        worker.do("alloc 5 100 0 5", "cb 5 0 0 10 0 0")  # a circular buffer of no program
        wait_for(lambda: worker.region("CB")["remaining"] == 2)
        worker.do("end_program 5")
        wait_for(lambda: worker.region("CB")["remaining"] == 1)
        worker.do("free 5 5")
        wait_for(lambda: worker.region("CB")["remaining"] == 0)


# ---- devices ----


def device_of(server: Server, ident: int) -> dict:
    return next((d for d in server.monitor()["devices"] if d["id"] == ident), {})


def test_what_a_program_says_of_a_device_is_shown(server: Server) -> None:
    with Library(server) as worker:
        worker.do("open 3 n150", "alloc 1 1000 3")
        wait_for(lambda: device_of(server, 3).get("board") == "n150")
        device = device_of(server, 3)
        assert device["arch"] == "wormhole_b0"
        assert device["regions"]["DRAM"]["capacity_bytes"] == 12 << 20
        assert device["regions"]["L1"]["capacity_bytes"] == 56 << 10
        assert "device 3  n150  wormhole_b0" in run_ok("dump", server=server).out
        (row,) = [d for d in worker.row()["devices"] if d["id"] == 3]
        assert row["arch"] == "wormhole_b0"
    wait_for(lambda: not device_of(server, 3), "the device to go with its last program")


def test_a_device_that_is_closed_ends_all_on_it(server: Server) -> None:
    with Library(server) as worker:
        worker.do("open 3 n150", "alloc 1 1000 3", "alloc 2 50 3 1", "alloc 3 7 4")
        worker.wait_for_ids(1, 2, 3)
        worker.do("close 3")
        worker.wait_for_ids(3)
        row = worker.row()
        assert row["unknown_frees"] == 0
        assert worker.region("DRAM", 3)["frees"] == 0  # nobody freed them
        server.check()


def test_a_tail_has_the_time_of_the_event_and_not_when_it_was_read(server: Server) -> None:
    with server.client() as marker, Library(server) as worker:
        worker.do("alloc 1 100")  # the second like it goes another way
        worker.wait_for_ids(1)
        with Tail("--json", server=server, marker=marker) as tail:
            server.freeze()
            moments = []
            for line in ("alloc 2 100", "free 2", "alloc 3 100", "free 1"):
                worker.do(line)
                time.sleep(0.01)  # the server's wall clock and ours are not read at once
                moments.append(time.time_ns())
                time.sleep(0.01)
            server.thaw()
            worker.wait_for_ids(3)  # the marker comes another way, and may be faster
            told = [json.loads(line) for line in tail.lines_until_mark()]
    times = [event["time_ns"] for event in told if event["pid"] == worker.pid]
    assert len(times) == 4
    for event_ns, moment_ns, next_ns in zip(times, moments, [*times[1:], time.time_ns()]):
        assert event_ns < moment_ns < next_ns


def test_a_tail_says_that_a_device_was_closed(server: Server) -> None:
    with server.client() as marker, Library(server) as worker:
        worker.do("open 3 n150", "alloc 17 1000 3", "cb 1 0 0 10 0 0")
        wait_for(lambda: len(worker.ids()) == 2)
        with Tail(server=server, marker=marker) as tail:
            worker.do("close 3", "close 0")
            wait_for(lambda: worker.ids() == [])
            lines = "".join(tail.lines_until_mark())
            assert "Freed buffer 0x11 on device 3 (1000 bytes, DEVICE CLOSED) of DRAM" in lines
            assert ", device closed" in lines  # of the circular buffer
        with Tail("--json", server=server, marker=marker) as tail:
            worker.do("alloc 18 1000 3", "close 3")
            wait_for(lambda: worker.ids() == [])
            assert any('"event":"device_closed"' in line for line in tail.lines_until_mark())


def test_an_allocator_that_is_closed_ends_its_own(server: Server) -> None:
    with Library(server) as worker:
        worker.do("alloc 1 10 0", "alloc 2 10 5", "alloc 3 10 5 1", "cb 9 5 0 10 0 0")
        worker.wait_for_ids(1, 2, 3, 9)
        worker.do("close_allocator 5")
        worker.wait_for_ids(1, 9)


# ---- what people say ----


def told_of(worker: Library) -> dict[int, tuple[str, str]]:
    row = row_of(worker.server, worker.pid)
    return {b["id"]: (b["name"], b["context"]) for b in row["buffers"]} if row else {}


def test_names_and_contexts_are_shown(server: Server) -> None:
    with Library(server) as worker:
        worker.do("alloc 1 100", "push init", "alloc 2 100", "push attention", "alloc 3 100")
        worker.do("pop", "alloc 4 100", "pop", "alloc 5 100", "pop", "alloc 6 100")
        worker.do("name 1 weights -", "name 3 kv -", "name 4 - decode", "name 99 nobody -")
        expected = {
            1: ("weights", ""),
            2: ("", "init"),
            3: ("kv", "init/attention"),
            4: ("", "decode"),
            5: ("", ""),
            6: ("", ""),
        }
        wait_for(lambda: told_of(worker) == expected)
        origins = {(o["name"], o["context"]): o for o in worker.row()["origins"]}
        assert set(origins) == set(expected.values())
        assert origins["", ""]["remaining"] == origins["", ""]["allocs"] == 2
        assert origins["weights", ""]["allocs"] == 1
        text = run_ok("dump", "--all", server=server).out
        assert '"weights"' in text and '"kv" in init/attention' in text and "in decode" in text
        for buffer in worker.row()["buffers"]:
            origin = worker.row()["origins"][buffer["origin"]]
            assert (origin["name"], origin["context"]) == expected[buffer["id"]]


def test_a_whole_context_takes_the_place_of_what_was_pushed(server: Server) -> None:
    with Library(server) as worker:
        worker.do("push a", "push b", "alloc 1 100", "context_set task/step", "alloc 2 100")
        worker.do("push inner", "alloc 3 100", "pop", "alloc 4 100", "context_set ", "alloc 5 100")
        worker.do("pop", "alloc 6 100")
        expected = {1: "a/b", 2: "task/step", 3: "task/step/inner", 4: "task/step", 5: "", 6: ""}
        wait_for(lambda: {k: c for k, (_, c) in told_of(worker).items()} == expected)


def test_names_by_address_find_the_right_allocation(server: Server) -> None:
    with Library(server) as worker:
        # A mesh of four and a submesh on two of its chips have handed out the same address.
        worker.do("alloc_in 7 1 4096 0 3", "alloc_in 9 2 4096 1 2", "alloc_in 7 3 8192 0 3")
        nobody = 2**64 - 1
        assert worker.do(f"name_at 3 4096 {nobody} mesh") == 1  # not on the submesh
        assert worker.do("name_at 1 4096 2 submesh") == 1
        assert worker.do(f"name_at 0 8192 {nobody} other") == 1
        assert worker.do(f"name_at 4 4096 {nobody} nobody") == 0
        assert worker.do("name_at 0 4097 1 nobody") == 0
        names = {1: "mesh", 2: "submesh", 3: "other"}
        wait_for(lambda: {k: n for k, (n, _) in told_of(worker).items()} == names)
        assert worker.do("name_at 1 4096 1 again", "disable", "name_at 1 4096 1 off") == 0


def test_the_context_of_a_thread_ends_with_it(server: Server) -> None:
    with Library(server) as worker:
        worker.do("thread push lost", "thread alloc 1 100", "push own", "thread alloc 2 100")
        worker.do("alloc 3 100")
        expected = {1: "", 2: "", 3: "own"}
        wait_for(lambda: {k: c for k, (_, c) in told_of(worker).items()} == expected)


def test_an_origin_that_lasts_is_asked_for_once_by_thread_and_context(server: Server) -> None:
    with Library(server) as worker:
        worker.do("lasting_guest", "alloc 1 100", "alloc 2 100", "thread alloc 3 100")
        worker.do("thread alloc 4 100", "alloc 5 100", "push a", "alloc 6 100", "alloc 7 100")
        worker.do("pop", "alloc 8 100")
        asked = {1: 1, 2: 1, 3: 2, 4: 3, 5: 1, 6: 4, 7: 4, 8: 5}
        wait_for(lambda: len(told_of(worker)) == len(asked))
        row = worker.row()
        operations = {b["id"]: row["origins"][b["origin"]]["operation"] for b in row["buffers"]}
        assert operations == {ident: f"asked-{number}" for ident, number in asked.items()}


def test_contexts_nest_deeply_and_texts_are_cut(server: Server) -> None:
    with Library(server) as worker:
        for _ in range(70):
            worker.do("push a")
        worker.do("alloc 1 100")
        for _ in range(70):
            worker.do("pop")
        worker.do("alloc 2 100", "alloc 3 100", f"name 3 {'x' * 300} {'y' * 256}")
        wait_for(lambda: len(told_of(worker)) == 3 and told_of(worker)[3][0])
        told = told_of(worker)
        assert told[1] == ("", "/".join("a" * 64))
        assert told[2] == ("", "")
        assert told[3] == ("x" * 255, "y" * 255)


def test_a_text_is_not_cut_within_a_character(server: Server) -> None:
    with Library(server) as worker:
        worker.do("alloc 1 100", f"name 1 {'x' * 254}é -", "alloc 2 100", f"name 2 {'x' * 253}é -")
        expected = {1: ("x" * 254, ""), 2: ("x" * 253 + "é", "")}
        wait_for(lambda: told_of(worker) == expected)


@pytest.mark.parametrize("env", [None, DISABLED], ids=["on", "off"])
def test_a_pointer_to_nothing_is_no_harm(server: Server, env: dict | None) -> None:
    with Library(server, env=env) as worker:
        worker.do("nulls", "alloc 1 100", "nulls")
        if env is None:
            worker.wait_for_ids(1)


def test_texts_that_are_no_text_hurt_nobody(server: Server) -> None:
    """JSON stays JSON, and the terminal gets no control characters."""
    with Library(server) as worker:
        worker.do("alloc 1 100")
        # A character of two bytes over the edge of 255, quotes, an escape.
        worker.do(f"name 1 {'x' * 254}é \x1b[2J\"\\")
        wait_for(lambda: told_of(worker)[1][0])
        name, context = told_of(worker)[1]
        assert name.startswith("x" * 254) and len(name) <= 255
        assert context == '\x1b[2J"\\'
        assert "\x1b[2J" not in run_ok("dump", server=server).out
        worker.do("mark \x1b]0;x\x07", "mark ")
        wait_for(lambda: len(worker.row()["marks"]) == 2)


def test_names_by_an_id_that_is_unique_need_no_more(server: Server) -> None:
    with Library(server) as worker:
        worker.do("alloc_in 7 1 4096 0 3", "alloc_in 9 2 4096 1 2", "alloc_in 7 3 8192 0 3")
        worker.do("alloc 4 100 0 1", "cb 4 0 0 10 0 0")  # in L1, and a part of a program beside it
        for number, name in ((2, "submesh"), (1, "mesh"), (3, "other")):
            address = 8192 if number == 3 else 4096
            assert worker.do(f"name_unique {number} {address} {name}") == 1
        address = next(b["address"] for b in worker.row()["buffers"] if b["id"] == 4)
        assert worker.do(f"name_unique 4 {address} small") == 1
        assert worker.do("name_unique 1 8192 nobody") == 0  # was given back, and the id with it
        assert worker.do("name_unique 5 4096 nobody") == 0
        names = {1: "mesh", 2: "submesh", 3: "other", 4: "small"}

        def told() -> dict[int, str]:
            buffers = [b for b in worker.row()["buffers"] if b["region"] != "CB"]
            return {b["id"]: b["name"] for b in buffers}

        wait_for(lambda: told() == names, f"{names}, and not {told()}")
        assert worker.do("disable", "name_unique 1 4096 off") == 0


def test_peaks_of_a_process_begin_anew(server: Server) -> None:
    def peaks(worker: Library) -> list[int]:
        regions = [r for d in worker.row()["devices"] for r in d["regions"].values()]
        return [r["peak_bytes"] for r in regions if r["allocs"] > 0]

    with Library(server) as worker:
        worker.do("alloc 1 100", "alloc 2 200", "free 2")
        worker.wait_for_ids(1)
        assert peaks(worker) == [300]
        worker.do("reset_peaks", "alloc 3 50", "free 3")
        wait_for(lambda: peaks(worker) == [150], "the peak since then")


def test_marks_and_failures_are_told(server: Server) -> None:
    with Library(server) as worker:
        began_ns = time.time_ns()
        marks = ["warm-up done", "m" * 39, "m" * 40, "m" * 41, "m" * 255]
        worker.do(*(f"mark {mark}" for mark in marks), f"mark {'n' * 300}")
        worker.do("push step", "fail 0 1000 400", "pop", "fail 1 1000 4000", "fail 0 1000 1600")
        worker.do("alloc 1 100")
        worker.wait_for_ids(1)
        row = worker.row()
        assert [m["name"] for m in row["marks"]] == [*marks, "n" * 255]
        times = [m["time_ns"] for m in row["marks"]]
        assert times == sorted(times) and times[0] >= began_ns - 10**9
        assert times[-1] <= time.time_ns() + 10**9
        first, second, third = row["failures"]
        assert first["kind"] == "out_of_memory" and second["kind"] == "cb_clash"
        assert first["device_id"] == 3 and first["region"] == "L1"
        assert first["wanted_bytes"] == 12000 and first["bank_wanted_bytes"] == 1000
        assert first["free_bytes"] == 400 and first["largest_free_bytes"] == 200
        # Of a clash the sizes are addresses: nothing can be said of pieces.
        verdicts = [failure["verdict"] for failure in row["failures"]]
        assert verdicts == ["exhausted", "exhausted", "fragmented"]
        assert third["free_bytes"] == 1600 and third["largest_free_bytes"] == 800
        assert first["context"] == "step" and second["context"] == ""
        assert row["complete"] is True and row["history_complete"] is True


def test_a_server_that_was_killed_is_told_everything_again(make_server) -> None:
    server: Server = make_server().start()
    with Library(server) as worker:
        worker.do("open 3 n150", "push init", "alloc 1 100", "pop", "alloc 2 100 3")
        worker.do("name 1 weights -", "cb 1 0 1000 100 1 1", "cb 2 0 1000 70 1 1", "dispatch 2 0")
        worker.do("kernel 1 0 100 1", "alloc 5 10", "name 5 - later")

        def seen() -> tuple:
            buffers = [
                (b["id"], b["name"], b["context"], b["bytes"], b["device_ids"], b["region"])
                for b in worker.row()["buffers"]
            ]
            cb = worker.region("CB")
            device = device_of(server, 3)
            return (
                sorted(buffers, key=str),
                cb["registered_bytes"],
                cb["resident_bytes"],
                worker.region("KERNEL")["fabric_bytes"],
                device.get("board"),
                device["regions"]["DRAM"]["capacity_bytes"],
            )

        wait_for(lambda: len(worker.ids()) == 6 and told_of(worker)[5][1] == "later")
        before = seen()
        assert before[1:] == (400, 280, 100, "n150", 12 << 20)
        assert worker.row()["history_complete"] is True
        for _ in range(3):
            server.kill()
            server.start()
            wait_for(lambda: len(worker.ids()) == 6)
            assert seen() == before
            row = worker.row()
            assert row["complete"] is True and row["history_complete"] is False
            assert row["why_incomplete"] and worker.client()["resyncs"] >= 1
            server.check()
        worker.do("end_program 1", "end_program 2", "close 3", "free 1", "free 5")
        wait_for(lambda: worker.ids() == [])
        assert worker.client()["unknown_frees"] == worker.client()["unknown_ends"] == 0


def test_banks_are_told_kept_and_recorded(make_server, folder: Path) -> None:
    (folder / "rec").mkdir()
    record = ("--record", str(folder / "rec"))
    server: Server = make_server().start(*record)
    with Library(server) as worker:
        mesh = worker.do("devices 0 1 5")
        worker.do("alloc 1 1200 3 0 12", f"alloc 2 640 {mesh} 1 64", "alloc 3 100")
        worker.do("alloc 4 100 0 0 1023", "alloc 5 100 0 0 1024")  # no device has so many

        def banks() -> dict[int, int | None]:
            row = row_of(server, worker.pid)
            return {b["id"]: b["banks"] for b in row["buffers"]} if row else {}

        def recorded(path: Path, ident: int) -> set[int | None]:
            lives = run_json("history", str(path), "--address", str(ident * 64))["lives"]
            return {life["banks"] for life in lives if life["id"] == ident}

        expected = {1: 12, 2: 64, 3: None, 4: 1023, 5: None}
        wait_for(lambda: banks() == expected)
        (first,) = (folder / "rec").glob("*.ttmem")
        wait_for(lambda: recorded(first, 5) == {None})  # a block is written now and then
        server.kill()  # from here on they are known from the live table alone
        server.start(*record)
        wait_for(lambda: banks() == expected)
        worker.do("name 4 weights -")
        wait_for(lambda: told_of(worker)[4] == ("weights", ""))
        assert banks() == expected
        assert worker.end() == 0
    server.stop()
    files = list((folder / "rec").glob("*.ttmem"))  # of the server that was killed, and of the next
    assert len(files) == 2
    for path in files:
        assert {ident: recorded(path, ident) for ident in expected} == {
            ident: {count} for ident, count in expected.items()
        }


# ---- the switch ----


def test_a_running_program_is_switched_off_and_on(server: Server) -> None:
    with Library(server) as worker:
        worker.do("open 0 n150", "alloc 1 100", "cb 1 0 0 10 1 1", "dispatch 1 0")
        wait_for(lambda: len(worker.ids()) == 2)
        for number in range(3):
            done = run_ok("disable", str(worker.pid), server=server)
            assert done.out == f"process {worker.pid}: tracking is off\n"
            assert worker.do("enabled") == 0
            wait_for(lambda: worker.client()["disabled"] is True)
            assert worker.ids() == [] and worker.region("CB")["registered_bytes"] == 0
            row = worker.row()
            assert row["complete"] is False and "switched off" in row["why_incomplete"]
            assert "disabled" in run_ok("status", server=server).out
            assert len(worker.threads()) == (2 if IS_THREAD_SANITIZED else 1)  # and none of ours
            worker.do("alloc 7 100", "free 7", f"alloc {100 + number} 100")
            assert worker.ids() == []
            done = run_ok("enable", str(worker.pid), server=server)
            assert done.out == f"process {worker.pid}: tracking goes on with its next allocation\n"
            assert worker.client()["disabled"] is True  # nobody in it could have seen the wish
            worker.do(f"alloc {number} 10")
            assert worker.do("enabled") == 1
            wait_for(lambda: worker.client()["disabled"] is False)
            worker.wait_for_ids(number)
            assert worker.row()["history_complete"] is False
            server.check()


def test_a_program_is_switched_while_its_threads_go_on(server: Server) -> None:
    with Library(server) as worker:
        # Under the thread sanitizer the server reads slower than two threads write.
        worker.do("alloc 1 100", "churn 1" if IS_THREAD_SANITIZED else "churn 4")
        for number in range(30):
            run_ok("disable" if number % 2 == 0 else "enable", str(worker.pid))
            if number % 3 == 0:  # or the next comes at once, before anybody has seen this one
                wanted = number % 2 == 1
                wait_for(lambda wanted=wanted: bool(worker.do("enabled")) == wanted)
        wait_for(lambda: worker.client()["disabled"] is False)
        worker.do("churn_stop", "alloc 2 100", "alloc 3 100", "free 2")
        # All that the threads held was freed, partly while nobody listened: nothing of it remains,
        # nor does the one from before the switch.
        worker.wait_for_ids(3)
        client = worker.client()
        assert client["unknown_frees"] == client["refused"] == client["untracked"] == 0
        row = worker.row()
        assert row["complete"] is row["history_complete"] is False  # it is live all the same
        assert row["why_incomplete"] == WHILE_OFF
        server.check()
        assert worker.end() == 0


def test_what_was_allocated_while_tracking_was_off_is_not_known(server: Server) -> None:
    with Library(server, DISABLED) as early, Library(server, DISABLED) as late:
        late.do("alloc 1 100")
        for worker in (early, late):
            run_ok("enable", str(worker.pid))
            worker.do("alloc 2 100")
            worker.wait_for_ids(2)
        assert early.row()["complete"] is early.row()["history_complete"] is True
        row = late.row()
        assert row["complete"] is row["history_complete"] is False
        assert row["why_incomplete"] == WHILE_OFF
        # It is switched off while it holds nothing, and then while it holds something.
        early.do("free 2")
        for number, is_exact in ((3, True), (4, False)):
            run_ok("disable", str(early.pid))
            assert early.do("enabled") == 0
            run_ok("enable", str(early.pid))
            early.do(f"alloc {number} 100")
            early.wait_for_ids(number)
            row = early.row()
            assert row["complete"] is is_exact and row["history_complete"] is False
        assert row["why_incomplete"] == WHILE_OFF


def test_a_guest_is_asked_what_is_live_and_where_it_comes_from(server: Server) -> None:
    with Library(server, DISABLED) as worker:  # with allocations that the guest tells of
        worker.do("guest")
        run_ok("enable", str(worker.pid))
        # It begins with the first event.
        worker.do("alloc 1 100 0 0 0 128", "alloc 2 100 0 0 0 128", "name 2 weights -")
        assert worker.do("guest_calls") == 100
        worker.wait_for_ids(1, 2, 901, 902)
        assert worker.row()["complete"] is True
        wait_for(lambda: told_of(worker)[2] == ("weights", ""))
        row = worker.row()
        operations = {
            buffer["id"]: row["origins"][buffer["origin"]]["operation"] for buffer in row["buffers"]
        }
        assert operations == dict.fromkeys((1, 2, 901, 902), "worker.step")
        worker.do("guest_close 1", "free 901")
        worker.wait_for_ids(2, 902)
        assert worker.region("DRAM")["frees"] == 1  # the other was not given back by its owner
        run_ok("disable", str(worker.pid))
        wait_for(lambda: worker.do("guest_calls") == 101)
        run_ok("enable", str(worker.pid))
        worker.do("alloc 3 100 0 0 0 128")
        worker.wait_for_ids(3, 901, 902)
        assert worker.do("guest_calls") == 201
        assert worker.client()["unknown_frees"] == 0
        assert worker.row()["complete"] is True  # the guest has said what was live
        assert worker.end() == 0


def in_background(*args: str) -> subprocess.Popen[bytes]:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([TT_MEM, *args], **quiet)


def test_a_word_that_comes_while_tracking_is_switched_counts(server: Server) -> None:
    with Library(server, DISABLED) as worker:
        worker.do("slow_guest 300", "enable", "alloc 1 100 0 0 0 128")
        assert worker.do("guest_done") == 100
        off = ("disable", str(worker.pid))
        on = ("enable", str(worker.pid))
        # The commands that are overruled may say either.
        with in_background(*off):
            wait_for(lambda: worker.do("guest_calls") == 101)
            assert run_ok(*on).out == f"process {worker.pid}: tracking is on\n"
            assert worker.do("guest_done") == 201  # it was off, and what is live has been told
        worker.do("alloc 2 100 0 0 0 128")
        worker.wait_for_ids(2, 901, 902)
        assert worker.row()["complete"] is True
        with in_background(*off):
            wait_for(lambda: worker.do("guest_calls") == 202)
            with in_background(*on):
                wait_for(lambda: worker.do("guest_calls") == 302)
                assert run_ok(*off).out == f"process {worker.pid}: tracking is off\n"
        assert worker.do("guest_done") == 303
        assert worker.do("enabled") == 0
        assert worker.end() == 0


def test_a_guest_does_not_know_what_the_program_itself_allocated(server: Server) -> None:
    with Library(server, DISABLED) as worker:
        worker.do("guest")
        run_ok("enable", str(worker.pid))
        worker.do("alloc 1 100")
        worker.wait_for_ids(1, 901, 902)
        assert worker.row()["complete"] is worker.row()["history_complete"] is True
        run_ok("disable", str(worker.pid))
        wait_for(lambda: worker.client()["disabled"])
        run_ok("enable", str(worker.pid))
        worker.do("alloc 2 100", "free 1")
        worker.wait_for_ids(2, 901, 902)
        row = worker.row()
        assert row["complete"] is row["history_complete"] is False
        assert row["why_incomplete"] == WHILE_OFF and row["unknown_frees"] == 0
        worker.do("say ttnn 0.81.1/")  # which has no trouble of its own
        wait_for(lambda: worker.client()["runtime"] == "ttnn 0.81.1")
        assert worker.client()["trouble"] == WHILE_OFF
        worker.do("say ttnn 0.81.1/no symbol x")
        wait_for(lambda: worker.client()["trouble"] == "no symbol x")


def test_what_a_process_says_of_itself_is_shown_and_survives_the_server(make_server) -> None:
    server: Server = make_server().start()
    with Library(server) as worker:
        worker.do("alloc 1 100", "say ttnn 0.81.1/no symbol x")
        wait_for(lambda: worker.client()["trouble"] == "no symbol x")
        for _ in range(2):
            client, row = worker.client(), worker.row()
            assert client["runtime"] == "ttnn 0.81.1" and row["complete"] is False
            assert row["why_incomplete"] == "no symbol x"
            assert "no symbol x" in run_ok("status", server=server).out
            server.kill()
            server.start()
            wait_for(lambda: (client_of(server, worker.pid) or {"trouble": ""})["trouble"])
        worker.do("say ttnn 0.81.1/")
        wait_for(lambda: worker.client()["trouble"] == "" and worker.row()["complete"] is True)
        assert worker.client()["runtime"] == "ttnn 0.81.1"
        assert worker.end() == 0


def test_a_program_that_was_never_on_needs_nothing_of_ours(server: Server) -> None:
    with Library(server, env=DISABLED) as worker, Library(server) as other:
        other.do("alloc 1 100")
        other.wait_for_ids(1)
        assert worker.do("alloc 1 100", "enabled") == 0
        assert len(worker.threads()) == 1
        links = [os.readlink(f"/proc/{worker.pid}/fd/{fd}") for fd in
                 os.listdir(f"/proc/{worker.pid}/fd")]  # fmt: skip
        assert not [link for link in links if link.startswith("socket:")]
        assert len([link for link in links if "memfd" in link]) == 1  # the switch
        status = server.status()
        assert [c["pid"] for c in status["clients"]] == [other.pid]
        assert worker.pid in status["disabled"] and other.pid not in status["disabled"]
        assert f"tt-mem enable {worker.pid}" in run_ok("status", server=server).out
        done = run_ok("enable", str(worker.pid), server=server)
        assert done.out == f"process {worker.pid}: tracking goes on with its next allocation\n"
        assert client_of(server, worker.pid) is None
        worker.do("alloc 2 100")
        worker.wait_for_ids(2)
        assert worker.pid not in server.status()["disabled"]
        assert worker.end() == 0


def test_a_program_is_switched_without_any_server(make_server) -> None:
    server: Server = make_server()
    with Library(server, env=DISABLED) as worker:
        run_ok("enable", str(worker.pid))
        worker.do("alloc 1 100")
        assert worker.do("enabled") == 1
        run_ok("disable", str(worker.pid))
        assert worker.do("enabled") == 0
        run_ok("enable", str(worker.pid))
        worker.do("alloc 2 100")
        server.start()
        worker.wait_for_ids(2)


def test_a_wish_that_is_taken_back_before_it_is_seen(server: Server) -> None:
    with Library(server, env=DISABLED) as worker:
        assert worker.do("enabled") == 0  # it has loaded the library by now
        run_ok("enable", str(worker.pid))
        run_ok("disable", str(worker.pid))
        assert worker.do("alloc 1 100", "enabled") == 0
        assert len(worker.threads()) == 1


def test_several_processes_and_wrong_ones(server: Server) -> None:
    with Library(server) as one, Library(server) as two:
        one.do("alloc 1 1")
        two.do("alloc 1 1")
        done = run("disable", str(one.pid), str(os.getpid()), str(two.pid), server=server)
        assert done.status == 1
        assert f"process {os.getpid()} has not loaded libttmem" in done.err
        assert one.do("enabled") == two.do("enabled") == 0  # the others were switched
    gone = run("enable", str(one.pid), server=server)
    assert f"there is no process {one.pid}" in gone.complains(1)
    for wrong in ("0", "-1", "x", "1x", "", "99999999999999999999"):
        for command in ("enable", "disable"):
            done = run(command, "--", wrong)
            assert done.status == 2 and done.out == "", done
    assert run("enable").status == run("disable").status == 2


@needs_root
def test_the_process_of_another_user_is_not_switched(server: Server) -> None:
    with Library(server) as worker:
        worker.do("alloc 1 1")
        for command in ("disable", "enable"):
            done = run(command, str(worker.pid), uid=NOBODY)
            assert "belongs to another user" in done.complains(1)
        assert worker.do("enabled") == 1


# ---- hosts that behave badly ----

FDS_OF_HOSTS = ["file", "pipe", "socket", "seqpacket", "eventfd"]


@pytest.mark.skipif(IS_THREAD_SANITIZED, reason="the thread sanitizer has files of its own")
@pytest.mark.parametrize("kind", FDS_OF_HOSTS)
def test_a_host_that_takes_all_fds_for_its_own(make_server, kind: str) -> None:
    server: Server = make_server().start()
    with Library(server) as worker:
        worker.do("alloc 1 100")
        worker.wait_for_ids(1)
        worker.do(f"swap_fds {kind}")
        worker.do("alloc 2 100", "free 1", "alloc 3 100")
        worker.wait_for_ids(2, 3)  # nobody can wake the server any more, but it looks
        assert worker.do("touched") == 0
        worker.do("cb 1 0 0 10 1 1", "name 2 weights -")
        wait_for(lambda: told_of(worker).get(2) == ("weights", ""))
        run("disable", str(worker.pid), server=server)  # cannot be found: its page is closed
        server.kill()  # the helper hears of that, if of anything
        worker.do("alloc 4 100", "free 2", "mark late")
        server.start()
        assert worker.do("touched") == 0
        assert worker.end() == 0


@pytest.mark.skipif(IS_THREAD_SANITIZED, reason="the thread sanitizer has files of its own")
def test_a_host_that_closes_all_fds_before_it_uses_the_library(server: Server) -> None:
    with Library(server) as worker:
        worker.do("swap_fds file")
        worker.do("alloc 1 100")
        worker.wait_for_ids(1)
        assert worker.do("touched") == 0
        run_ok("disable", str(worker.pid), server=server)  # another page was made
        wait_for(lambda: worker.do("enabled") == 0)
        assert worker.end() == 0


@pytest.mark.parametrize("kind", FDS_OF_HOSTS)
def test_a_host_that_has_closed_what_wakes_the_server_is_read_all_the_same(
    server: Server, kind: str
) -> None:
    with server.client() as marker, Library(server) as worker:
        worker.do("alloc 1 100")
        worker.wait_for_ids(1)
        with Tail("--json", server=server, marker=marker) as tail:
            worker.do(f"swap_wakes {kind}")
            for ident in range(2, 6):
                time.sleep(0.15)  # rings that are quiet for so long are not looked at any more
                worker.do(f"alloc {ident} 100")
                # Nobody asks: it is shown because the server has looked by itself.
                tail.read_until(lambda line, wanted=f'"id":{ident},': wanted in line)
            assert worker.do("touched") == 0
        worker.do("free 1")
        worker.wait_for_ids(2, 3, 4, 5)
        assert worker.end() == 0


@pytest.mark.skipif(IS_THREAD_SANITIZED, reason="the thread sanitizer has a thread of its own")
@pytest.mark.parametrize("verb", ["pthread_exit", "late_worker"])
def test_a_process_whose_main_thread_has_left_ends_with_its_last_thread(
    make_server, verb: str
) -> None:
    for is_running in (True, False):
        server: Server = make_server(f"{verb}{is_running}")
        if is_running:
            server.start()
        env = DISABLED if verb == "late_worker" else None
        with Library(server, env=env) as worker:
            worker.do("alloc 1 100")
            worker.begin(f"{verb} 100")
            assert worker.process.wait(PATIENCE_S) == 0
            if is_running:
                wait_for(lambda w=worker: client_of(server, w.pid) is None)


def test_children_by_the_hundred(server: Server) -> None:
    with Library(server) as worker:
        worker.do("alloc 1 100")
        worker.wait_for_ids(1)  # nobody else allocates at a fork, see Tracked
        assert worker.do(f"forks {80 if IS_SANITIZED else 400}") == 0
        worker.wait_for_ids(1)
        wait_for(lambda: server.status()["processes"] == 1)
        assert device_of(server, 7).get("regions", {}).get("DRAM", {"count": 0})["count"] == 0
        status = server.check()
        assert status["unknown_frees"] == 0


def ids_of(server: Server, pid: int) -> set[int]:
    row = row_of(server, pid)
    return {buffer["id"] for buffer in row["buffers"]} if row else set()


@pytest.mark.parametrize("how", ["fork", "_Fork", "clone", "thread"])
def test_a_child_is_its_own_process_however_it_was_made(server: Server, how: str) -> None:
    if how != "fork" and IS_THREAD_SANITIZED:
        pytest.skip("the thread sanitizer has to be told of a fork")
    with Library(server) as worker:
        # Its number of the spell of tracking is not the first.
        worker.do("disable", "enable", "push parent", "alloc 1 1", "alloc 2 2", "cb 8 0 0 10 3 3")
        worker.wait_for_ids(1, 2, 8)
        for first in ("alloc 50 5", "push child", "open 3 n150", "free 1", "mark begun"):
            child = worker.do(f"child {how} {first}/alloc 7 70/push inner/alloc 9 90/free 7")
            wanted = {9, 50} if first == "alloc 50 5" else {9}
            wait_for(lambda: ids_of(server, child) == wanted)
            contexts = [origin["context"] for origin in row_of(server, child)["origins"]]
            assert "parent" not in contexts
            worker.do("alloc 3 100", "free 1", "alloc 1 100")
            worker.wait_for_ids(1, 2, 3, 8)
            assert worker.client()["unknown_frees"] == worker.client()["lost_events"] == 0
            server.check()
            os.kill(child, signal.SIGKILL)
            wait_for(lambda: client_of(server, child) is None)
        worker.wait_for_ids(1, 2, 3, 8)


@pytest.mark.parametrize("how", ["fork", "_Fork", "clone"])
def test_the_switch_of_a_child_is_its_own(server: Server, how: str) -> None:
    if how != "fork" and IS_THREAD_SANITIZED:
        pytest.skip("the thread sanitizer has to be told of a fork")
    with Library(server, DISABLED) as worker:
        worker.do("alloc 1 100")
        run_ok("enable", str(worker.pid))
        child = worker.do(f"child {how} alloc 2 100")  # the parent has not seen the wish yet
        wait_for(lambda: client_of(server, child))
        assert client_of(server, worker.pid) is None
        assert "tracking is off" in run_ok("disable", str(child)).out
        worker.do("alloc 3 100")
        worker.wait_for_ids(3)
        assert worker.do("enabled") == 1


def test_a_program_that_execs_another_begins_anew(server: Server) -> None:
    """The same process, other notes under the same numbers."""
    with Library(server) as worker:
        worker.do("push old-context", "alloc 1 100", "name 1 old-name -", "cb 8 0 0 10 3 3")
        wait_for(lambda: told_of(worker).get(1) == ("old-name", "old-context"))
        worker.do("exec")
        worker.do("push new", "alloc 2 200", "name 2 fresh -", "cb 9 0 0 10 1 1")
        wait_for(lambda: set(told_of(worker)) == {2, 9}, "the old program's lives to go")
        wait_for(lambda: told_of(worker)[2] == ("fresh", "new"), f"{told_of(worker)}")
        assert worker.region("CB")["registered_bytes"] == 4 * 10
        server.check()


def test_what_a_program_reported_before_it_execs_another_is_recorded(
    make_server, folder: Path
) -> None:
    """Also what is in its rings when the other program attaches: they are two processes."""
    (folder / "rec").mkdir()
    server: Server = make_server().start("--record", str(folder / "rec"))
    with Library(server) as worker:
        worker.do("alloc 1 100")
        worker.wait_for_ids(1)
        server.freeze()
        worker.do(*(f"alloc {ident} 100" for ident in range(2, 102)), "free 50")
        worker.do("exec")
        worker.do("alloc 1000 7")
        server.thaw()
        worker.wait_for_ids(1000)
        pid = worker.pid
        assert worker.end() == 0
    wait_for(lambda: server.status()["processes"] == 0)
    server.stop()
    (path,) = (folder / "rec").glob("*.ttmem")
    processes = [p for p in run_json("report", str(path))["processes"] if p["pid"] == pid]
    counts = [
        (region["allocs"], region["frees"], region["remaining"])
        for process in processes
        for region in [process["devices"][0]["regions"]["DRAM"]]
    ]
    assert counts == [(101, 1, 100), (1, 0, 1)]


SYSTEM_CALLS = {
    "x86_64": {"socket": 41, "memfd_create": 319, "socketpair": 53, "pipe2": 293, "clone3": 435},
    "aarch64": {"socket": 198, "memfd_create": 279, "socketpair": 199, "pipe2": 59, "clone3": 435},
}.get(platform.machine(), {})


@pytest.mark.skipif(not SYSTEM_CALLS, reason="the numbers of system calls are not known here")
@pytest.mark.parametrize("denied", ["socket", "memfd_create", "socketpair", "pipe2"])
def test_a_host_under_seccomp_is_unharmed(server: Server, denied: str) -> None:
    number = SYSTEM_CALLS[denied]
    with Library(server) as worker:  # tracking begins with its first event, under the filter
        worker.do(f"deny {number}", "alloc 1 100", "free 1", "mark x", "push a", "pop", "alloc 2 1")
        assert client_of(server, worker.pid) is None
        assert worker.end() == 0
    with Library(server) as worker:  # the filter comes while it is tracked
        worker.do("alloc 1 100")
        worker.wait_for_ids(1)
        worker.do(f"deny {number}", "alloc 2 100", "mark x")
        worker.wait_for_ids(1, 2)
        assert worker.end() == 0


@needs_root
def test_a_host_that_goes_into_a_chroot_stays_tracked(
    make_server, folder: Path
) -> None:
    server: Server = make_server().start()
    jail = folder / "jail"
    jail.mkdir()
    with Library(server) as worker:
        worker.do("alloc 1 100")
        worker.wait_for_ids(1)
        assert worker.do(f"chroot {jail}") == 0
        worker.do("alloc 2 100", "name 2 inside -")
        wait_for(lambda: told_of(worker).get(2) == ("inside", ""))
        server.kill()
        worker.do("alloc 3 100", "free 1")
        server.start()  # where the worker itself does not see it
        worker.wait_for_ids(2, 3)
        assert told_of(worker)[2] == ("inside", "")
        assert "tracking is off" in run_ok("disable", str(worker.pid)).out
        run_ok("enable", str(worker.pid))
        worker.do("alloc 4 100", "mark x")  # there is no way to the server now, and no harm
        assert worker.end() == 0


# ---- older and newer ones ----


def record(op: int, serial: int = 1, ident: int = 1, size: int = 100) -> bytes:
    return struct.pack("<QQQQQQIIIBBBB", 1, serial, ident, 64, size, size, 0, 0, 0, op, 0, 0, 0)


def one_ring_contents(header_bytes: int, *records: bytes, slots: int = 64) -> bytes:
    """A segment with one ring of these records."""
    notes = header_bytes + 128 + 64 * slots
    contents = bytearray(notes + 4096)
    header = segment_header(rings=1, slots=slots, used=1, header_bytes=header_bytes,
                            notes_offset=notes, segment_bytes=len(contents))  # fmt: skip
    contents[: len(header)] = header
    struct.pack_into("<Q", contents, header_bytes, len(records))
    for i, raw in enumerate(records):
        at = header_bytes + 128 + 64 * i
        contents[at : at + 64] = raw
    return bytes(contents)


def one_ring(header_bytes: int, *records: bytes) -> int:
    contents = one_ring_contents(header_bytes, *records)
    return segment(contents, size=len(contents))


def test_what_was_not_told_after_a_loss_raises_no_peak_and_is_no_free(server: Server) -> None:
    """Its end was lost, and with it how much was held at once."""
    contents = bytearray(one_ring_contents(65792, record(1, 1, 11), record(1, 2, 12)))
    struct.pack_into("<Q", contents, 65792 + 8, 1)  # lost
    with Native(server.socket) as native:
        attach(native, segment(bytes(contents), size=len(contents)), os.eventfd(0))
        kind, payload = native.read_frame()
        assert kind == TELL
        (epoch,) = struct.unpack_from("<I", payload)

        def region() -> tuple[int, int, int, int]:
            row = row_of(server, os.getpid())
            assert row
            dram = row["devices"][0]["regions"]["DRAM"]
            return dram["allocs"], dram["frees"], dram["remaining_bytes"], dram["peak_bytes"]

        assert region() == (2, 0, 200, 0)
        native.send(told(epoch, told_row(2, ident=12)))
        native.send(frame(TOLD_END, struct.pack("<II", epoch, 0)))
        native.ask(GET_STATUS)
        assert region() == (2, 0, 100, 100)


def test_ends_that_are_in_a_ring_when_all_was_told_are_frees(server: Server) -> None:
    """More of them than are read at a time; none was lost."""
    lives, at_ring = 1500, 65792
    births = [record(1, serial, serial) for serial in range(1, lives + 1)]
    contents = one_ring_contents(at_ring, *births, slots=4096)
    fd = segment(contents, size=len(contents))
    with Native(server.socket) as native:
        attach(native, os.dup(fd), os.eventfd(0))
        kind, payload = native.read_frame()
        assert kind == TELL
        (epoch,) = struct.unpack_from("<I", payload)
        ends = b"".join(record(2, serial, serial) for serial in range(1, lives + 1))
        os.pwrite(fd, ends, at_ring + 128 + 64 * lives)
        os.pwrite(fd, struct.pack("<Q", 2 * lives), at_ring)
        native.send(frame(TOLD_END, struct.pack("<II", epoch, 0)))
        native.ask(GET_STATUS)
        wait_for(lambda: (client_of(server, os.getpid()) or {}).get("resync_ns"), "the end of it")
        row = row_of(server, os.getpid())
        assert row
        dram = row["devices"][0]["regions"]["DRAM"]
        assert (dram["allocs"], dram["frees"], dram["remaining_bytes"]) == (lives, lives, 0)
        assert row["buffers"] == []
    os.close(fd)


def test_a_switch_that_is_heard_after_the_next_connection_is_a_gap(server: Server) -> None:
    """Off by one connection and on by the next: nobody says which of them is read first."""
    contents = one_ring_contents(65792, record(1, 1, 11), record(2, 1, 11))
    fd = segment(contents, size=len(contents))

    def attach_and_tell(native: Native) -> None:
        attach(native, os.dup(fd), os.eventfd(0))
        kind, payload = native.read_frame()
        assert kind == TELL
        native.send(frame(TOLD_END, payload[:4] + bytes(4)))
        native.ask(GET_STATUS)

    with Native(server.socket) as before, Native(server.socket) as after:
        attach_and_tell(before)
        attach_and_tell(after)
        row = row_of(server, os.getpid())
        assert row and row["complete"] is row["history_complete"] is True
        before.send(frame(SWITCHED, struct.pack("<II", 0, 0)))
        before.ask(GET_STATUS)
        row = row_of(server, os.getpid())
        assert row and row["complete"] is True and row["history_complete"] is False
        client = client_of(server, os.getpid())
        assert client and client["disabled"] is False
    os.close(fd)


def test_what_a_new_spell_begins_with_counts_although_the_switch_is_heard_later(
    server: Server,
) -> None:
    """Tracking is on in the program first, and then the server is told."""
    contents = one_ring_contents(65792, record(1, 1, 11))
    fd = segment(contents, size=len(contents))
    with Native(server.socket) as native:
        attach(native, os.dup(fd), os.eventfd(0))
        for is_on in (False, True):
            kind, payload = native.read_frame()
            assert kind == TELL
            native.send(frame(TOLD_END, payload[:4] + bytes(4)))
            if is_on:
                break
            native.send(frame(SWITCHED, struct.pack("<II", 0, 0)))
            native.ask(GET_STATUS)
            client = client_of(server, os.getpid())
            assert client and client["disabled"] is True and client["lives"] == 0
            os.pwrite(fd, record(1, 2, 12) + record(2, 2, 12), 65792 + 128 + 64)
            os.pwrite(fd, struct.pack("<Q", 3), 65792)
            assert not row_of(server, os.getpid())["buffers"]
            native.send(frame(SWITCHED, struct.pack("<II", 1, 0)))
        native.ask(GET_STATUS)
        row = row_of(server, os.getpid())
        dram = row["devices"][0]["regions"]["DRAM"]
        assert (dram["allocs"], dram["frees"], row["buffers"]) == (2, 1, [])
        assert row["complete"] is True and row["history_complete"] is False
    os.close(fd)


def test_it_is_said_when_a_process_has_still_to_tell_what_it_holds(server: Server) -> None:
    """Exact as soon as it has told all; nothing on the way there waits for a time to pass."""
    lives = 3000
    contents = bytearray(one_ring_contents(65792, record(1, 1, 11)))
    struct.pack_into("<Q", contents, 65792 + 64, 1)  # another server has read what it wrote
    with Native(server.socket) as native:
        attach(native, segment(bytes(contents), size=len(contents)), os.eventfd(0))
        kind, payload = native.read_frame()  # it is asked before anything else happens
        assert kind == TELL
        (epoch,) = struct.unpack_from("<I", payload)
        for answered in (0, 1200, lives):
            rows = [told_row(serial, ident=serial) for serial in range(1, answered + 1)]
            for at in range(0, len(rows), 60):
                native.send(told(epoch, *rows[at : at + 60]))
            row = row_of(server, os.getpid())
            assert row and row["complete"] is False and "still to tell" in row["why_incomplete"]
            assert len(row["buffers"]) == answered
            client = client_of(server, os.getpid())
            assert client and client["catching_up"] is True and client["resync_ns"] == 0
        native.send(frame(TOLD_END, struct.pack("<II", epoch, 0)))
        native.ask(GET_STATUS)  # behind it on the same connection; the turn it was read in is over
        row = row_of(server, os.getpid())
        assert row and row["complete"] is True and row["history_complete"] is False
        assert len(row["buffers"]) == lives
        client = client_of(server, os.getpid())
        assert client and client["catching_up"] is False and client["resyncs"] == 1
        assert client["resync_ns"] > 0
        server.check()


@pytest.mark.parametrize("header_bytes", [192, 256, 4096, 65792, 1 << 17])
def test_a_segment_of_another_version_is_read(server: Server, header_bytes: int) -> None:
    """The oldest header has nothing but rings and notes; a newer one is longer than ours."""
    with Native(server.socket) as native:
        attach(native, one_ring(header_bytes, record(1, 1, 11), record(1, 2, 12), record(2, 2)),
               os.eventfd(0))  # fmt: skip
        wait_for(lambda: (client_of(server, os.getpid()) or {"events": 0})["events"] == 3)
        client = client_of(server, os.getpid())
        assert client and client["refused"] == 0 and client["lives"] == 1
        assert client["untracked"] == client["unknown_ends"] == 0 and client["runtime"] == ""
        server.check()


def test_records_of_a_newer_version_are_counted_and_do_nothing_else(server: Server) -> None:
    with Native(server.socket) as native:
        records = [record(op, op) for op in (0, 76, 77, 255)]
        attach(native, one_ring(65792, record(1, 1, 11), *records), os.eventfd(0))
        wait_for(lambda: (client_of(server, os.getpid()) or {"events": 0})["events"] == 5)
        client = client_of(server, os.getpid())
        assert client and client["refused"] == 4 and client["lives"] == 1
        assert server.check()["refused_type"] == 4
        row = row_of(server, os.getpid())
        assert row and row["complete"] is False


def test_a_program_of_an_older_minor_version_is_served(server: Server) -> None:
    with Native(server.socket, greets=False) as native:
        native.send(hello(minor=0))
        native.read_frame()
        attach(native, one_ring(192, record(1)), os.eventfd(0))
        kind, _ = native.read_frame()
        assert kind == TELL
        native.send(frame(12345, b"of a newer client"))
        wait_for(lambda: (client_of(server, os.getpid()) or {"lives": 0})["lives"] == 1)


def test_a_newer_major_version_is_refused_in_words(server: Server) -> None:
    with Native(server.socket, greets=False) as native:
        native.send(hello(major=2))
        kind, text = native.read_frame()
        while kind != ERROR:
            kind, text = native.read_frame()
        assert b"2" in text and b"1" in text and b"version" in text, text
        native.wait_until_closed()


def test_a_program_that_is_refused_goes_on_unharmed(make_server) -> None:
    """A server of another major version stands there: it says ERROR and closes."""
    server: Server = make_server()
    with sockets.socket(sockets.AF_UNIX) as fake:
        fake.bind(server.socket)
        fake.listen()
        fake.settimeout(PATIENCE_S)
        with Library(server) as worker:
            worker.do("alloc 1 100")
            for _ in range(3):
                stranger, _ = fake.accept()
                stranger.sendall(hello(major=2) + frame(ERROR, b"this server speaks version 2"))
                worker.do("alloc 2 100", "free 2")
                stranger.close()
            fake.close()
            os.unlink(server.socket)
            server.start()
            worker.wait_for_ids(1)
            assert worker.end() == 0


# ---- notes that lie ----


def rings_segment(notes: bytes, *rings: list[bytes], cell: bytes = b"") -> int:
    """A segment with these rings, notes (the first has number 1024) and device 0's place."""
    header_bytes, slots = 65792, 64
    stride = 128 + 64 * slots
    at_notes = header_bytes + stride * len(rings)
    contents = bytearray(at_notes + 65536)
    header = segment_header(rings=len(rings), slots=slots, used=len(rings),
                            header_bytes=header_bytes, notes_offset=at_notes,
                            segment_bytes=len(contents), notes_bytes=65536)  # fmt: skip
    contents[: len(header)] = header
    contents[256 : 256 + len(cell)] = cell
    contents[at_notes : at_notes + len(notes)] = notes
    for number, records in enumerate(rings):
        at_ring = header_bytes + stride * number
        struct.pack_into("<Q", contents, at_ring, len(records))
        for i, raw in enumerate(records):
            at = at_ring + 128 + 64 * i
            contents[at : at + 64] = raw
    return segment(bytes(contents), size=len(contents))


def notes_segment(notes: bytes, *records: bytes, cell: bytes = b"") -> int:
    """The same with one ring."""
    return rings_segment(notes, list(records), cell=cell)


def note(kind: int, raw: bytes) -> bytes:
    padded = struct.pack("<II", kind, len(raw)) + raw
    return padded + bytes(-len(padded) % 8)


def test_a_name_that_is_read_before_the_birth_is_given_all_the_same(server: Server) -> None:
    """Another thread named it, and the ring of that thread is read first."""
    string = note(2, b"weights")
    origin_number = 1024 + len(string) // 8
    notes = string + note(5, struct.pack("<6I", 0, 1024, 0, 0, 0, 0))
    named = bytearray(record(5, 7, 11))
    struct.pack_into("<I", named, 56, origin_number)
    with Native(server.socket) as native:
        attach(native, rings_segment(notes, [bytes(named)], [record(1, 7, 11)]), os.eventfd(0))
        wait_for(lambda: (client_of(server, os.getpid()) or {"events": 0})["events"] == 2)
        row = row_of(server, os.getpid())
        assert row and [(b["id"], b["name"]) for b in row["buffers"]] == [(11, "weights")]


def test_an_origin_of_a_newer_program_is_longer_and_says_the_same(server: Server) -> None:
    name = note(2, b"weights")
    numbers = (0, 1024, 0, 0, 0, 0, 4711, 4712)  # two more than we know
    origin = note(5, struct.pack("<8I", *numbers))
    birth = struct.pack("<QQQQQQIIIBBBB", 1, 1, 1, 64, 9, 9, 0, 0, 1024 + len(name) // 8, 1, 0, 0, 0)
    with Native(server.socket) as native:
        attach(native, notes_segment(name + origin, birth), os.eventfd(0))
        wait_for(lambda: (client_of(server, os.getpid()) or {"lives": 0})["lives"] == 1)
        row = row_of(server, os.getpid())
        assert row and [b["name"] for b in row["buffers"]] == ["weights"]


def test_notes_that_lie_spoil_nothing_but_themselves(server: Server) -> None:
    notes = b"".join(
        (
            note(3, bytes((0, 0, 255, 255))),  # cores that no chip has
            note(3, b""),
            note(4, b"short"),
            note(5, struct.pack("<6I", *[1024] * 6)),  # an origin whose texts are no strings
            struct.pack("<II", 2, 0xFFFFFFFF),
        )
    )
    births = [
        struct.pack("<QQQQQQIIIBBBB", 1, i + 1, i, 64, 1024 + i, 4096, 0, 0, 1024 + i, 1, 5, 0, 2)
        for i in range(12)
    ]
    others = [
        struct.pack("<QQQQQQIIIBBBB", 1, 1, 1, 1, 1, 1, 0, d, n, op, 0, 0, 0)
        for op in (5, 6, 7, 8)
        for d, n in ((0, 1024), (1024, 1030), (0xFFFFFFFF, 0xFFFFFFFF))
    ]
    cell = struct.pack("<II7Q", 1026, 0xFFFFFFFF, *range(7))
    with Native(server.socket) as native:
        attach(native, notes_segment(notes, *births, *others, cell=cell), os.eventfd(0))
        wait_for(lambda: (client_of(server, os.getpid()) or {"events": 0})["events"] == 24)
        server.check()
        row = row_of(server, os.getpid())
        assert row and len(row["buffers"]) == 12
        assert all(b["name"] == "" and b["context"] == "" for b in row["buffers"])


# ---- what is not sound ----


def test_what_makes_no_sense_is_counted_by_the_program_itself(server: Server) -> None:
    with Library(server) as worker:
        worker.do("alloc 1 0", f"alloc 2 {1 << 41}", "alloc 3 5 0 7", "alloc 4 5 0 250")
        worker.do("free 9", "free 9 200", "fail 77 1 1", "alloc 5 10")
        worker.wait_for_ids(5)
        client = worker.client()
        assert client["refused"] == 5 and client["untracked"] == 0
        assert client["unknown_ends"] == client["unknown_frees"] == 2
        worker.do("free 5")
        worker.wait_for_ids()
        row = worker.row()
        assert row["complete"] is False and row["unknown_frees"] == 2
        found = {finding["kind"]: finding["count"] for finding in row["findings"]}
        assert found == {"unknown_free": 2, "refused": 5}
        assert server.check()["unknown_frees"] == 2


def test_what_is_refused_is_not_said_to_have_found_no_room(server: Server) -> None:
    with Library(server) as worker:
        worker.do("alloc 1 0", "alloc 2 10")
        worker.wait_for_ids(2)
        assert worker.row()["why_incomplete"] == "some of its messages made no sense"


def test_a_free_of_what_was_not_told_of_is_no_mistake(server: Server) -> None:
    """It was allocated while tracking was off, or by the parent, or ended with its device."""
    with Library(server, DISABLED) as worker:
        worker.do("alloc 1 100")
        run_ok("enable", str(worker.pid))
        worker.do("alloc 2 100", "free 1")
        worker.wait_for_ids(2)
        assert worker.client()["unknown_ends"] == 1
        assert worker.row()["unknown_frees"] == 0
    with Library(server) as worker:
        worker.do("open 0 n150", "alloc 2 100", "alloc 3 100 1")
        worker.do("close 0", "free 2")
        worker.wait_for_ids(3)
        assert worker.client()["unknown_ends"] == 1
        row = worker.row()
        assert row["unknown_frees"] == 0 and row["complete"]
    with Library(server) as worker:
        worker.do("alloc 2 100")
        worker.wait_for_ids(2)
        child = worker.do("child fork alloc 3 100/free 2")
        wait_for(lambda: (client_of(server, child) or {}).get("unknown_ends") == 1)
        row = row_of(server, child)
        assert row and row["unknown_frees"] == 0 and row["complete"]
        os.kill(child, signal.SIGKILL)


def test_names_that_found_no_room_are_said_to_be_missing(server: Server) -> None:
    with Library(server) as worker:
        worker.do("push early", "alloc 1 100", "pop", "fill_notes")
        worker.do("push late", "alloc 2 100", "pop")
        worker.wait_for_ids(1, 2)
        assert told_of(worker) == {1: ("", "early"), 2: ("", "")}
        row = worker.row()
        assert row["complete"] is row["history_complete"] is True
        (finding,) = row["findings"]
        assert finding["kind"] == "notes_left_out" and finding["count"] > 2
        assert worker.client()["notes_left_out"] == finding["count"]
        said = "no room for more names and contexts: later ones are missing"
        assert said in run_ok("status", "-s", server.socket).out
        assert "had no room: later ones are missing" in run_ok("dump", "-s", server.socket).out


def test_a_set_of_devices_has_one_number_however_it_is_told(server: Server) -> None:
    with Library(server) as worker:
        mesh = worker.do("devices 0 1 5")
        assert mesh >= 1024
        assert worker.do("devices 5 1 0") == worker.do("devices 1 0 5 1 0") == mesh
        assert worker.do("devices 0 1") != mesh
        assert worker.do("devices 7") == worker.do("devices 7 7") == 7
        assert worker.do("devices 1024") == worker.do("devices 0 1024") == 0


def test_a_region_that_is_none_ends_nothing(server: Server) -> None:
    with Library(server) as worker:
        worker.do("cb 1 0 4096 4096 0 0", "alloc 2 100")
        worker.wait_for_ids(1, 2)
        worker.do("free 1 133", "free 1 255")  # 133 is CB with a bit that tells programs apart
        worker.wait_for_ids(1, 2)
        assert worker.client()["unknown_ends"] == 2


CLOSER = """
import _ctypes, ctypes, sys, threading
library = ctypes.CDLL("libttmem.so.0")
allocation = (ctypes.c_uint64 * 9)(7, 4096, 100)  # id, address, bytes; DRAM of device 0
library.ttmem_alloc(allocation)
thread = threading.Thread(target=library.ttmem_alloc, args=((ctypes.c_uint64 * 9)(8, 8192, 50),))
thread.start()
thread.join()
_ctypes.dlclose(library._handle)
print("closed", flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(IS_SANITIZED, reason="a sanitized library does not load into this Python")
def test_a_host_that_closes_the_library_is_tracked_and_ends_well(server: Server) -> None:
    host = subprocess.Popen(
        [sys.executable, "-c", CLOSER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_env(TTMEM_SOCKET=server.socket, TT_ALLOC_TRACKING_ENABLED="1"),
        text=True,
    )
    assert host.stdout and host.stdout.readline() == "closed\n"
    wait_for(
        lambda: sorted(b["id"] for p in server.dump()["processes"] for b in p["buffers"]) == [7, 8],
        "both allocations to be known",
    )
    out, err = host.communicate("\n", timeout=PATIENCE_S)
    assert (host.returncode, out, err) == (0, "", "")

