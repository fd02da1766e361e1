# SPDX-License-Identifier: Apache-2.0
"""What TT-Metal alone counts, in monitor, dump and status: beside what is tracked, never in it."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import signal
from typing import Any

import pytest
from support import Command, Server, Tracked, Tree, run, run_on_terminal, wait_for, wait_until_exact

N300, P150A = "0000:41:00.0", "0000:01:00.0"
N300_BOARD, P150A_ASIC = 9956368527, 0xF5DDD9F78D7E0BEE
COUNTED = ["DRAM", "L1", "L1_SMALL", "TRACE", "CB"]
HINT = "runtime: by TT-Metal's own count, of one thread; tt-mem run counts all of it"
WHY = "TT-Metal's own count: one thread, requested bytes"


@pytest.fixture
def counted(tree: Tree) -> Tree:
    """4242 runs on two simulated devices and is counted by the runtime; 3999 was, and has ended."""
    tree.process(4242, "python3 serve.py")
    tree.shm(70, {4242: (3 << 20, 2 << 20, 7, 8, 9), 3999: (1 << 30,)}, device=0)
    tree.shm(71, {4242: (1 << 20,)}, device=1)
    return tree


def monitor(tree: Tree, **options: Any) -> dict[int, dict[str, Any]]:
    result = tree.run("monitor", "--once", "--json", **options)
    assert result.status == 0 and result.err == "", result
    return {device["id"]: device for device in result.json["devices"]}


def dumped(tree: Tree, *args: str, **options: Any) -> dict[int, dict[str, Any]]:
    result = tree.run("dump", "--json", *args, **options)
    assert result.status == 0 and result.err == "", result
    processes = {process["pid"]: process for process in result.json["processes"]}
    assert len(processes) == len(result.json["processes"])  # each is there once
    return processes


def held(process: dict[str, Any], key: str) -> dict[str, int]:
    """What a process holds on one device, by region; what holds nothing is left out."""
    return {name: region[key] for name, region in process["regions"].items() if region[key]}


# Without a server.


def test_monitor_shows_what_the_runtime_counts(counted: Tree) -> None:
    document = counted.run("monitor", "--once", "--json").json
    assert document["server"] is False
    devices = monitor(counted)
    assert list(devices) == [0, 1]
    for region in devices[0]["regions"].values():  # nothing is tracked
        assert region["bytes"] == region["footprint_bytes"] == region["count"] == 0
    assert held(devices[0], "runtime_bytes") == {
        "DRAM": 3 << 20,
        "L1": 2 << 20,
        "L1_SMALL": 7,
        "TRACE": 8,
        "CB": 9,
    }
    (process,) = devices[0]["processes"]
    assert process["pid"] == 4242 and process["source"] == "runtime"
    assert process["name"] == "python3 serve.py"
    assert list(process["regions"]) == COUNTED
    assert process["regions"]["DRAM"] == {
        "bytes": 3 << 20,
        "footprint_bytes": None,
        "count": None,
    }
    assert held(devices[1], "runtime_bytes") == {"DRAM": 1 << 20}


def test_monitor_says_how_it_knows_and_how_to_know_more(counted: Tree) -> None:
    result = counted.run("monitor", "--once")
    assert result.status == 0 and result.err == ""
    assert "no server is running" in result.lines[0] and result.lines[1] == HINT
    tracked, beside = (line for line in result.lines[4:6])
    # Any server of this machine may know what such a device has: then there are bars.
    assert re.match(r"  DRAM +(\[.*\])? +0 B .* 0$", tracked), result.out
    assert re.match(r"    \+ runtime +(\[.*\])? +3.0 MiB .* -$", beside), result.out
    assert "runtime: DRAM 3.0 MiB · L1 2.0 MiB · L1_SMALL 7 B" in result.out


def test_csv_has_it_in_a_column_of_its_own(counted: Tree) -> None:
    out = counted.run("monitor", "--once", "--csv").out
    rows = {(r["device"], r["region"]): r for r in csv.DictReader(io.StringIO(out))}
    assert rows["0", "DRAM"]["runtime_bytes"] == str(3 << 20)
    assert rows["0", "DRAM"]["bytes"] == rows["0", "DRAM"]["count"] == "0"
    assert rows["1", "L1"]["runtime_bytes"] == "0"


def test_dump_has_totals_and_nothing_else(counted: Tree) -> None:
    document = counted.run("dump", "--json").json
    assert document["schema"] == "tt-mem/dump/1" and document["server"] is False
    process = dumped(counted)[4242]
    assert process["source"] == "runtime" and process["command"] == "python3 serve.py"
    assert process["complete"] is process["history_complete"] is False
    assert process["why_incomplete"] == WHY
    assert process["origins"] == process["buffers"] == []
    assert [device["id"] for device in process["devices"]] == [0, 1]
    regions = process["devices"][0]["regions"]
    assert list(regions) == COUNTED
    assert regions["L1"] == {
        "allocs": None,
        "frees": None,
        "remaining": None,
        "remaining_bytes": 2 << 20,
        "remaining_footprint_bytes": None,
        "peak_bytes": None,
        "peak_footprint_bytes": None,
    }


def test_dump_as_text(counted: Tree) -> None:
    result = counted.run("dump")
    assert result.status == 0 and result.err == ""
    assert "1 process holds memory on 2 devices" in result.lines[0]
    assert "no server is running" in result.lines[0]
    (line,) = (line for line in result.lines if "TRACE" in line)
    assert line.split()[:2] == ["runtime", "4242"] and "DRAM 3.0 MiB · L1 2.0 MiB" in line
    (line,) = (line for line in result.lines if "serve.py" in line)
    assert line.split()[:5] == ["4242", "6.0", "MiB", "-", "runtime"]
    assert result.lines[-1] == HINT


def test_devices_and_processes_are_chosen(counted: Tree) -> None:
    counted.process(4300, "other")
    counted.shm(72, {4300: (5,)}, device=2)
    assert list(dumped(counted, "--pid", "4300")) == [4300]
    only = dumped(counted, "-d", "1")
    assert [device["id"] for device in only[4242]["devices"]] == [1]
    text = counted.run("dump", "--pid", "4300").out
    assert "4242" not in text and "DRAM 5 B" in text
    text = counted.run("dump", "--pid", "1").out
    assert "nothing remains of process 1: it does not report" in text
    out = counted.run("monitor", "--once", "-d", "2").out
    assert "device 2" in out and "device 0" not in out


@pytest.mark.parametrize("command", [("monitor", "--once"), ("dump",)])
def test_nothing_is_counted_and_there_is_no_server(tree: Tree, command: tuple[str, ...]) -> None:
    """The ended and the empty do not count."""
    tree.shm(70, {3999: (1 << 30,)})
    assert "none is running" in tree.run(*command).complains(1)
    assert "none is running" in tree.run(*command, "--json").complains(1)


@pytest.mark.parametrize("command", [("monitor", "--once"), ("dump",)])
def test_a_server_that_was_asked_for_has_to_be_there(
    counted: Tree, command: tuple[str, ...]
) -> None:
    path = str(counted.folder / "nobody")
    assert path in counted.run(*command, "--socket", path).complains(1)


def test_status_without_a_server_says_so(counted: Tree) -> None:
    assert "none is running" in counted.run("status").complains(1)


def dram_of(line: str, device_id: int) -> Any:
    """What monitor says of a device, None where it does not know it. Origins are asked for apart."""
    devices = {device["id"]: device for device in json.loads(line)["devices"]}
    return devices[device_id]["regions"]["DRAM"] if device_id in devices else None


def test_monitor_goes_over_to_a_server_that_comes(counted: Tree, make_server) -> None:
    server = make_server()
    env = {"TTMEM_ROOT": str(counted.root)}
    with Command("monitor", "--json", "-r", "10", server=server, env=env) as watching:
        assert json.loads(watching.read_line())["server"] is False
        counted.shm(71, {4242: (77,)}, device=1)
        watching.read_until(lambda line: '"runtime_bytes":77}' in line)
        server.start()
        with server.client() as client:
            client.alloc(0, 5, 1)
            client.sync()
            (line,) = watching.read_until(
                lambda line: '"server":true' in line and (dram_of(line, 0) or {}).get("bytes") == 5
            )[-1:]
        assert dram_of(line, 0)["runtime_bytes"] == 3 << 20
        assert watching.errors() == ""
        assert watching.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_monitor_alone_can_be_stopped(counted: Tree, make_server, number: int) -> None:
    env = {"TTMEM_ROOT": str(counted.root)}
    with Command("monitor", "-r", "3600000", server=make_server(), env=env) as watching:
        watching.read_until(lambda line: "no server is running" in line)
        assert watching.stop(number) == 0


def test_monitor_goes_on_when_the_last_program_has_ended(counted: Tree, make_server) -> None:
    env = {"TTMEM_ROOT": str(counted.root)}
    with Command("monitor", "--json", "-r", "10", server=make_server(), env=env) as watching:
        watching.read_until(lambda line: '"pid":4242' in line)
        shutil.rmtree(counted.root / "proc/4242")
        watching.read_until(lambda line: '"devices":[]' in line)
        counted.process(4300, "the next")
        counted.shm(70, {4300: (5,)})
        watching.read_until(lambda line: '"pid":4300' in line)
        assert watching.stop() == 0


# Beside a server.


def test_what_is_tracked_stays_what_it_is(counted: Tree, server: Server) -> None:
    with server.client() as client:
        client.alloc(0, 1000, 1)
        client.sync()
        devices = monitor(counted, server=server)
        assert devices[0]["regions"]["DRAM"]["bytes"] == 1000
        assert devices[0]["regions"]["DRAM"]["count"] == 1
        assert devices[0]["regions"]["DRAM"]["runtime_bytes"] == 3 << 20
        sources = {p["pid"]: p["source"] for p in devices[0]["processes"]}
        assert sources == {os.getpid(): "original", 4242: "runtime"}
        processes = dumped(counted, server=server)
        assert set(processes) == {os.getpid(), 4242}
        (device,) = processes[os.getpid()]["devices"]
        assert device["regions"]["DRAM"]["remaining_bytes"] == 1000
        text = counted.run("dump", server=server).out
        assert "2 processes hold memory on 2 devices · server up" in text
        (head,) = (line for line in text.splitlines() if line.startswith("  DRAM "))
        assert head.split()[1:5] == ["1", "buffer", "1000", "B,"]  # the tracked alone


@pytest.mark.parametrize("others", [{}, {4242: (5,)}])
def test_a_tracked_process_is_not_counted_twice(
    tree: Tree, server: Server, others: dict[int, tuple[int, ...]]
) -> None:
    tree.process(4242)
    tree.real_process(os.getpid())
    tree.shm(70, {os.getpid(): (999_999,), **others}, age_s=-1)
    beside = sum(held[0] for held in others.values())
    with server.client() as client:
        client.alloc(0, 1000, 1)
        client.sync()
        (device,) = monitor(tree, server=server).values()
        assert device["regions"]["DRAM"]["bytes"] == 1000
        assert device["regions"]["DRAM"]["runtime_bytes"] == beside
        expected = {os.getpid(): "original", **{pid: "runtime" for pid in others}}
        assert len(device["processes"]) == len(expected)
        assert {p["pid"]: p["source"] for p in device["processes"]} == expected
        processes = dumped(tree, server=server)
        assert {pid: p["source"] for pid, p in processes.items()} == expected
        listed = tree.json("status", server=server)["runtime"]
        assert [p["pid"] for p in listed] == list(others)
    # And it was there to be counted:
    assert monitor(tree)[0]["regions"]["DRAM"]["runtime_bytes"] == 999_999 + beside


def test_a_process_of_another_server_is_not_shown_as_untracked(
    tree: Tree, server: Server, make_server
) -> None:
    runtime = tree.folder / "runtime"
    runtime.mkdir(mode=0o700)
    other = make_server("other")
    other.socket = str(runtime / "tt-mem.run.1.sock")
    tree.real_process(os.getpid())
    tree.shm(70, {os.getpid(): (999_999,)}, age_s=-1)
    found = {"XDG_RUNTIME_DIR": str(runtime)}
    assert list(monitor(tree, server=server, env=found)) == [0]
    other.start()
    with other.client() as client:
        client.alloc(0, 1000, 1)
        client.sync()
        assert monitor(tree, server=server, env=found) == {}
        assert dumped(tree, server=server, env=found) == {}


def test_another_server_that_does_not_answer_holds_nobody_up_for_long(
    counted: Tree, server: Server, make_server
) -> None:
    """As that of a `tt-mem run` which was stopped with Ctrl-Z."""
    runtime = counted.folder / "runtime"
    runtime.mkdir(mode=0o700)
    other = make_server("other")
    other.socket = str(runtime / "tt-mem.run.1.sock")
    other.start()
    other.freeze()
    try:
        env = {"TTMEM_ROOT": str(counted.root), "XDG_RUNTIME_DIR": str(runtime)}
        with Command("monitor", "--json", "-r", "10", server=server, env=env) as watching:
            lines = [watching.read_line() or "" for _ in range(20)]  # it is waited for once
            assert all('"pid":4242' in line for line in lines)
            assert watching.stop() == 0 and watching.errors() == ""
    finally:
        other.thaw()


def test_switching_tracking_off_hands_over_to_the_runtime(tree: Tree, server: Server) -> None:
    with Tracked(server) as worker:
        worker.do("alloc 0 0 3 1000")
        wait_until_exact(server, worker)
        tree.real_process(worker.pid)
        tree.shm(70, {worker.pid: (77,)}, age_s=-60)
        assert dumped(tree, server=server)[worker.pid]["source"] == "tracked"
        worker.do("disable")
        wait_for(lambda: server.status()["clients"][0]["disabled"], "the server to hear of it")
        process = dumped(tree, server=server)[worker.pid]
        assert process["source"] == "runtime" and process["complete"] is False
        assert held(process["devices"][0], "remaining_bytes") == {"DRAM": 77}
        assert held(monitor(tree, server=server)[0], "runtime_bytes") == {"DRAM": 77}
        (client,) = tree.json("status", server=server)["clients"]
        assert client["pid"] == worker.pid and client["disabled"] is True
        worker.do("enable")
        wait_until_exact(server, worker)
        assert dumped(tree, server=server)[worker.pid]["source"] == "tracked"


def test_status_lists_it_outside_all_counters(counted: Tree, server: Server) -> None:
    document = counted.json("status", server=server)
    assert document["clients"] == [] and document["processes"] == document["lives"] == 0
    (process,) = document["runtime"]
    assert process["pid"] == 4242 and process["command"] == "python3 serve.py"
    assert process["source"] == "runtime" and process["uid"] == 1000
    checked = counted.run("status", "--check", "--json", server=server).json["check"]
    assert checked == {"ok": True, "lives": 0, "processes": 0, "mismatches": 0}
    lines = counted.text("status", server=server).splitlines()
    assert "  no program reports" in lines and lines[-1] == HINT
    assert lines[-2].split() == ["4242", "runtime", "-", "-", "python3", "serve.py"]


# Cards, and how it looks.


def test_capacities_and_numbers_are_those_of_the_cards(tree: Tree) -> None:
    tree.card(0, N300)
    tree.p150a(1, P150A)
    tree.process(4242, holds=(0, 1))
    tree.shm(N300_BOARD, {4242: (3 << 30,)}, device=1)
    tree.shm(P150A_ASIC, {4242: (1 << 20,)}, device=0)
    devices = monitor(tree)
    assert devices[0]["arch"] == "blackhole" and devices[1]["arch"] == "wormhole_b0"
    assert held(devices[1], "runtime_bytes") == {"DRAM": 3 << 30}
    assert devices[1]["regions"]["DRAM"]["capacity_bytes"] == 12 << 30
    text = tree.run("monitor", "--once", "-d", "1").out
    assert "3.00 GiB of  12.00 GiB   25.0 %         -" in text


@pytest.mark.parametrize("columns", [80, 120])
def test_it_fits_the_terminal(counted: Tree, server: Server, columns: int) -> None:
    counted.process(4300, "python3 " + "long " * 100)
    for device in range(40):
        counted.shm(100 + device, {4242: (3 << 30, 5 << 20, 1, 1, 1), 4300: (9,)}, device=device)
    env = {
        "TTMEM_ROOT": str(counted.root),
        "COLUMNS": str(columns),
        "LINES": "24",
        "NO_COLOR": "1",
    }
    once = ("monitor", "--once")
    for command in (once, (*once, "-d", "3"), ("dump",), ("status",)):
        status, text = run_on_terminal(*command, server=server, env=env)
        lines = text.replace("\r", "").splitlines()
        assert status == 0 and any("runtime" in line for line in lines)
        assert all(len(line) <= columns for line in lines), lines


def test_escapes_in_a_name_are_harmless(tree: Tree) -> None:
    folder = tree.process(4242, b"")
    (folder / "cmdline").write_bytes(b"")
    (folder / "comm").write_bytes(b"")
    tree.shm(70, {4242: (5,)}, name=b"\x1b[2Jx")
    for command in (("monitor", "--once"), ("dump",)):
        result = run(*command, env=tree.env())
        assert result.status == 0 and "\x1b" not in result.out, result
        assert "\\x1b[2Jx" in result.out
