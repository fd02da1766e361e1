# SPDX-License-Identifier: Apache-2.0
"""tt-mem dump: every allocation that is there, as text and as JSON."""

import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from contract import ORIGIN_KEYS, PROCESS_KEYS, REGION_KEYS, REGIONS
from support import (
    DISPATCH,
    FABRIC,
    IS_SANITIZED,
    L1,
    LONG,
    L1_SMALL,
    SYSTEM_MEMORY,
    TRACE,
    TRACKED_WORKER,
    TT_MEM,
    WORKER_OPTIONS,
    Command,
    Library,
    Place,
    Server,
    run,
    run_json,
    run_ok,
    wait_for,
)

BUFFER_KEYS = {
    "id",
    "device_ids",
    "region",
    "address",
    "bytes",
    "footprint_bytes",
    "banks",
    "age_ns",
    "origin",
    "name",
    "context",
}


def assert_consistent(document: dict[str, Any]) -> int:
    """Every sum in the document is the sum of its parts. Returns the number of buffers."""
    buffers = 0
    for process in document["processes"]:
        sums: dict[tuple[int, str], list[int]] = {}
        by_origin = [[0, 0, {}] for _ in process["origins"]]
        for buffer in process["buffers"]:
            for device in buffer["device_ids"]:
                found = sums.setdefault((device, buffer["region"]), [0, 0, 0])
                found[0] += 1
                found[1] += buffer["bytes"]
                found[2] += buffer["footprint_bytes"]
            origin = process["origins"][buffer["origin"]]
            assert origin["region"] == buffer["region"]
            assert origin["device_ids"] == buffer["device_ids"]
            own = by_origin[buffer["origin"]]
            own[0] += 1
            own[1] += buffer["bytes"]
            own[2][str(buffer["bytes"])] = own[2].get(str(buffer["bytes"]), 0) + 1
        buffers += len(process["buffers"])
        for device in process["devices"]:
            for name, region in device["regions"].items():
                assert [
                    region["remaining"],
                    region["remaining_bytes"],
                    region["remaining_footprint_bytes"],
                ] == sums.pop((device["id"], name), [0, 0, 0])
                assert region["allocs"] - region["frees"] >= region["remaining"]
                assert region["peak_bytes"] >= region["remaining_bytes"]
        assert sums == {}
        for origin, own in zip(process["origins"], by_origin):
            assert [origin["remaining"], origin["remaining_bytes"], origin["sizes"]] == own
            assert origin["first_ns"] <= origin["last_ns"] <= document["time_ns"]
        order = [origin["remaining_footprint_bytes"] for origin in process["origins"]]
        assert order == sorted(order, reverse=True)
    return buffers


def fill(server: Server):
    """One of everything on device 0, a buffer on device 3. Returns the client."""
    client = server.client()
    for region, size in ((0, 1000), (L1, 2000), (SYSTEM_MEMORY, 3000), (L1_SMALL, 4000)):
        client.alloc(0, size, 0x1000 * size, region)
    client.alloc(0, 5000, 0x5555, TRACE)
    client.cb_alloc(0, 6000, 0x18B20)
    client.kernel_load(0, 700, 0x71)
    client.kernel_load(0, 80, 0x72, FABRIC)
    client.kernel_load(0, 9, 0x73, DISPATCH)
    client.alloc(3, 123456, 0xABCDEF)
    client.sync()
    return client


def test_json_has_the_keys_of_the_contract(server: Server) -> None:
    with fill(server) as client:
        client.free(0, 0x5555)
        client.sync()
        document = server.dump()
        assert document["schema"] == "tt-mem/dump/1"
        (process,) = document["processes"]
        assert PROCESS_KEYS | {"buffers"} <= set(process)
        assert process["source"] == "original" and process["end"] == "running"
        assert process["end_ns"] is process["exit_code"] is process["signal"] is None
        assert process["complete"] is True and process["why_incomplete"] == ""
        assert process["marks"] == process["findings"] == process["failures"] == []
        assert [device["id"] for device in process["devices"]] == [0, 3]
        for device in process["devices"]:
            assert list(device["regions"]) == REGIONS
            for name, region in device["regions"].items():
                extra = {
                    "CB": {
                        "resident_bytes",
                        "registered_bytes",
                        "peak_resident_bytes",
                        "peak_registered_bytes",
                    },
                    "KERNEL": {"application_bytes", "fabric_bytes", "dispatch_bytes"},
                }.get(name, set())
                assert set(region) == REGION_KEYS | extra
        regions = process["devices"][0]["regions"]
        assert regions["TRACE"] == {
            "allocs": 1,
            "frees": 1,
            "remaining": 0,
            "remaining_bytes": 0,
            "remaining_footprint_bytes": 0,
            "peak_bytes": 5000,
            "peak_footprint_bytes": 5000,
        }
        assert regions["CB"]["resident_bytes"] == 6000
        assert regions["KERNEL"]["fabric_bytes"] == 80
        for origin in process["origins"]:
            assert ORIGIN_KEYS <= set(origin)
            assert origin["suspect"] is False and origin["cause"] is None
        classes = {o["region"]: o["class"] for o in process["origins"]}
        assert classes["CB"] == "circular_buffer" and classes["KERNEL"] == "kernel"
        for origin in process["origins"]:  # what was not looked into is not told as a finding
            is_unsure = origin["class"] == "unsure"
            assert is_unsure == (origin["region"] not in ("CB", "KERNEL"))
            assert ("one moment" in origin["why"]) == ("report" in origin["advice"]) == is_unsure
        for buffer in process["buffers"]:
            assert set(buffer) == BUFFER_KEYS
            assert buffer["address"] == buffer["id"]
            assert 0 <= buffer["age_ns"] < 600 * 10**9
        assert assert_consistent(document) == 9


def test_json_can_be_narrowed_to_devices_and_processes(server: Server) -> None:
    with fill(server), server.worker() as other:
        other.alloc(3, 7, 7)
        other.sync()
        document = server.dump("-d", "3")
        assert len(document["processes"]) == 2
        assert assert_consistent(document) == 2
        document = server.dump("--pid", str(other.pid))
        assert [p["pid"] for p in document["processes"]] == [other.pid]
        document = server.dump("--pid", str(os.getpid()), "-d", "0")
        assert assert_consistent(document) == 9
        assert server.dump("--pid", "1")["processes"] == []


def test_ages_grow(server: Server) -> None:
    with server.client() as client:
        client.alloc(0, 1, 1)
        client.sync()
        born = time.time_ns()
        first = server.dump()
        client.alloc(0, 2, 2)
        client.sync()
        second = server.dump()
        ages = {b["id"]: b["age_ns"] for b in second["processes"][0]["buffers"]}
        assert ages[1] > ages[2]
        assert ages[1] > first["processes"][0]["buffers"][0]["age_ns"]
        assert abs(second["time_ns"] - ages[1] - born) < 5 * 10**9


def test_every_dump_is_of_one_moment_while_all_changes(server: Server) -> None:
    workers = [server.worker(layout) for layout in (72, 112, 144, 144)]
    rounds = (3000 if not IS_SANITIZED else 300) * (10 if LONG else 1)
    for number, worker in enumerate(workers):
        worker.start("churn", number % 2, number, rounds, 500)
    largest = 0
    for _ in range(200 if LONG else 25):
        largest = max(largest, assert_consistent(server.dump()))
    assert largest > 0
    held = sum(worker.finish() for worker in workers)
    document = server.dump()
    assert_consistent(document)
    assert sum(b["bytes"] for p in document["processes"] for b in p["buffers"]) == held
    assert all(not p["findings"] for p in document["processes"])
    server.check()
    for worker in workers:
        worker.kill()


def test_a_million_bytes_of_text_come_whole(server: Server) -> None:
    with server.client() as client:
        client.burst(20_000, 4096)
        client.sync()
        text = run_ok("dump", "--all", server=server).out
        assert len(re.findall(rf"^ +{os.getpid()} .* 0x[0-9a-f]+$", text, re.M)) == 20_000


def test_text_says_plainly_that_nothing_remains(server: Server) -> None:
    assert run_ok("dump", server=server).out.startswith("nothing remains")
    with server.client() as client:
        client.alloc(0, 1, 1)
        client.free(0, 1)
        client.sync()
        assert run_ok("dump", server=server).out.startswith("nothing remains")
        client.alloc(5, 1, 1)
        client.sync()
        assert run_ok("dump", "-d", "4", server=server).out.startswith("nothing remains")
        assert "device 5" in run_ok("dump", "-d", "5", server=server).out


def test_nothing_of_a_part_is_not_said_of_all(server: Server) -> None:
    with server.client() as client:
        client.alloc(5, 1, 1)
        client.alloc(4, 1, 1)
        client.free(4, 1)
        client.sync()
        lines = run_ok("dump", "-d", "4", server=server).lines
        assert lines[0].startswith("nothing remains on device 4 · server up ")
        assert lines[1] == "1 process holds memory elsewhere: tt-mem dump"
        line = run_ok("dump", "-d", "8,9", server=server).lines[0]
        assert line.startswith("nothing remains on devices 8-9: nobody has reported that device")
        lines = run_ok("dump", "--pid", "1", server=server).lines
        assert lines[0].startswith("nothing remains of process 1: it does not report · server up ")
        assert lines[1] == "1 process holds memory elsewhere: tt-mem dump"


def test_text_shows_each_allocation_by_device_and_region(server: Server) -> None:
    with fill(server):
        text = run_ok("dump", server=server).out
        pid = os.getpid()
        assert text.index("device 0") < text.index("device 3")
        for name in REGIONS:
            assert re.search(rf"^  {name} +\d+ (buffers?|kernels?) ", text, re.M), name
        assert re.search(rf"{pid} +\d+ ms +121 KiB +0xabcdef$", text, re.M)
        assert re.search(rf"{pid} .* 5.9 KiB +0x18b20$", text, re.M)
        assert re.search(r"80 B +0x72  fabric kernel$", text, re.M)
        assert re.search(r"application 700 B.*fabric 80 B.*dispatch 9 B", text)
        assert re.search(rf"Per process\n +{pid} .* 10 allocations +\S*python", text)


def test_text_can_be_narrowed(server: Server) -> None:
    with fill(server), server.worker() as other:
        other.alloc(0, 4096, 0xF00D)
        other.sync()
        text = run_ok("dump", "--pid", str(other.pid), server=server).out
        assert "0xf00d" in text and "0xabcdef" not in text and "device 3" not in text
        text = run_ok("dump", "-d", "3", server=server).out
        assert "0xabcdef" in text and "device 0" not in text and "0xf00d" not in text


def test_long_lists_are_folded_largest_first(server: Server) -> None:
    with server.client() as client:
        for i in range(1, 101):
            client.alloc(0, i * 1024, i)
        client.sync()
        text = run_ok("dump", server=server).out
        rows = re.findall(r"([\d.]+) KiB +0x([0-9a-f]+)$", text, re.M)
        assert rows[0] == ("100", "64") and len(rows) < 20
        folded = re.search(r"(\d+) more: tt-mem dump --all", text)
        assert folded and int(folded[1]) + len(rows) == 100
        text = run_ok("dump", "--all", server=server).out
        assert len(re.findall(r"KiB +0x[0-9a-f]+$", text, re.M)) == 100
        assert "more:" not in text


def test_most_common_sizes_are_rounded_to_kb_as_in_the_seeds(server: Server) -> None:
    with server.client() as client:
        ident = 0
        expected = {"32": 5, "256": 12, "2,048": 2, "< 1": 3, "1": 2}
        for size, count in (
            (32 * 1024, 3),
            (32 * 1024 - 512, 1),  # (bytes + 512) / 1024
            (32 * 1024 + 511, 1),
            (256 * 1024, 12),
            (2048 * 1024, 2),
            (511, 3),
            (512, 1),
            (1535, 1),
        ):
            for _ in range(count):
                ident += 1
                client.alloc(0, size, ident)
        client.sync()
        text = run_ok("dump", server=server).out
        assert "Most Common Buffer Sizes" in text
        rows = re.findall(r"^ +([<\d, ]+) KB +([\d,]+) buffers?.* (\d+) %", text, re.M)
        assert {kb.strip(): int(count) for kb, count, _ in rows} == expected
        assert [int(count) for _, count, _ in rows] == sorted(expected.values(), reverse=True)
        assert [share for kb, _, share in rows if kb.strip() == "2,048"] == ["56"]
        assert re.search(r"Ages.*\n.*< 1 s +24$", text, re.M) or re.search(r"< 10 s", text)


def test_only_the_ten_most_common_sizes_are_shown(server: Server) -> None:
    with server.client() as client:
        ident = 0
        for kb in range(1, 31):
            for _ in range(kb):
                ident += 1
                client.alloc(0, kb * 1024, ident)
        client.sync()
        text = run_ok("dump", server=server).out
        rows = re.findall(r"^ +(\d+) KB +(\d+) buffers", text, re.M)
        assert rows == [(str(kb), str(kb)) for kb in range(30, 20, -1)]


def test_findings_are_told(server: Server) -> None:
    with server.client() as client:
        client.alloc(0, 10, 1)
        client.alloc(0, 20, 1)
        client.alloc(0, 30, 1, L1)
        client.free(0, 1)
        client.free(0, 99)
        client.alloc(-1, 10, 1)
        client.sync()
        text = run_ok("dump", server=server).out
        for word in ("replaced", "several regions", "unknown", "refused"):
            assert word in text
        kinds = {f["kind"]: f["count"] for f in server.dump()["processes"][0]["findings"]}
        assert kinds == {"replaced": 1, "ambiguous_free": 1, "unknown_free": 1, "refused": 1}


def test_a_full_disk_is_told(server: Server) -> None:
    with open("/dev/full", "wb") as full:
        result = run("dump", server=server, stdout=full)
    assert "No space left" in result.complains(1)


def test_a_server_that_goes_away_is_told(make_server) -> None:
    server = make_server().start()
    with server.client() as client:
        client.alloc(0, 1, 1)
        client.sync()
    server.freeze()
    with Command("dump", server=server) as command:
        wait_for(lambda: os.path.exists(f"/proc/{command.process.pid}"))
        server.kill()
        assert command.process.wait() == 1
        assert command.errors().count("\n") == 1


@pytest.mark.parametrize("arguments", [["--pid", "0"], ["--pid", "x"], ["-d", "x"], ["x"], ["-q"]])
def test_wrong_options_are_told_in_one_line(arguments: list[str]) -> None:
    assert "--help" in run("dump", *arguments).complains(2)


def test_what_has_no_address_shows_none(server: Server) -> None:
    with Library(server) as worker:
        worker.do("kernel 7 2 64 0")
        wait_for(lambda: "1 kernel" in run_ok("dump", server=server).out)
        text = run_ok("dump", server=server).out
    assert re.search(r" 64 B {13}-  application kernel of program 7\b", text), text


def test_native_places_have_names_while_the_file_is_that_of_the_process(folder: Path) -> None:
    """As a report names them; a program that was built anew meanwhile is another one."""
    place = Place(folder)
    place.tt_mem = shutil.which(TT_MEM) or TT_MEM  # beside the real hook
    worker = folder / "worker"
    shutil.copy(TRACKED_WORKER, worker)
    env = {**WORKER_OPTIONS, "LD_LIBRARY_PATH": str(Path(place.tt_mem).parent)}
    with place.start("--no-record", str(worker), env=env) as it:
        it.do("alloc 0 0 3 1000")
        server = {"TTMEM_SOCKET": it.socket, "LC_ALL": "C"}
        wait_for(lambda: "3 buffers" in run_ok("dump", env=server).out)
        text = run_ok("dump", env=server).out
        if " id 1\n" in text:
            pytest.skip("needs call stacks")
        named = r"tracked_worker\.c:\d+ tell_birth"
        assert len(re.findall(rf" id \d {named}$", text, re.M)) == 3, text
        monitor = run_ok("monitor", "--once", env=server).out
        assert re.search(rf"^  from +6\.0 KiB  DRAM +3  {named}$", monitor, re.M), monitor
        top = run_ok("top", "--snapshot", "--view", "3", env=server).out
        assert re.search(rf"DRAM +0 +\d+ {named}", top), top
        with Command("tail", server=it, env=server) as tail:
            while not (line := tail.read_line(0.02)):
                it.do("alloc 0 0 1 1000")
            assert re.search(rf", {named}$", line), line
        (process,) = run_json("dump", env=server)["processes"]
        assert process["origins"][0]["native"][0] == "tell_birth"

        shutil.copy(TRACKED_WORKER, folder / "anew")
        os.replace(folder / "anew", worker)
        (process,) = run_json("dump", env=server)["processes"]
        for told in (run_ok("dump", env=server).out, process["origins"][0]["native"][0]):
            assert re.search(r"\bworker\+0x[0-9a-f]+", told) and "tell_birth" not in told, told
