# SPDX-License-Identifier: Apache-2.0
"""tt-mem tail: events as they happen, in the lines of the original server's output."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from screens import Screen, needs_tmux
from support import (
    DISPATCH,
    FABRIC,
    L1,
    LAYOUTS,
    PATIENCE_S,
    SLOWNESS,
    Server,
    Tail,
    Tracked,
    run,
    wait_for,
)
from tracked import wait_until_exact

PID = os.getpid()


def test_the_lines_are_those_of_the_original_server(server: Server) -> None:
    """Each begins as the reference shows it, so that scripts written for them go on working."""
    with server.client() as client, Tail(server=server, marker=client) as tail:
        client.alloc(0, 1024, 0xABC)
        client.alloc(2, 2048, 0xDEF, L1)
        client.free(0, 0xABC)
        client.free(0, 0x999)
        client.alloc(2, 4096, 0xDEF, L1)
        client.cb_alloc(0, 262144, 0x18B20)
        client.cb_alloc(0, 1 << 20, 0x20000)
        client.cb_free(0, 262144, 0x18B20)
        client.kernel_load(1, 1 << 20, 1)
        client.kernel_load(1, 1 << 19, 2, FABRIC)
        client.kernel_load(1, 1 << 18, 3, DISPATCH)
        client.kernel_unload(1, 1 << 19, 2, FABRIC)
        lines = tail.lines_until_mark()
        expected = [
            f"✓ [PID {PID}] Allocated 1024 bytes of DRAM on device 0 (buffer_id=0xabc)",
            f"✓ [PID {PID}] Allocated 2048 bytes of L1 on device 2 (buffer_id=0xdef)",
            f"✗ [PID {PID}] Freed buffer 0xabc on device 0 (1024 bytes, FINAL)",
            f"⚠ [PID {PID}] Deallocation for unknown buffer 0x999 on device 0 "
            "(allocated before tracking started)",
            f"✗ [PID {PID}] Freed buffer 0xdef on device 2 (2048 bytes, REPLACED)",
            f"✓ [PID {PID}] Allocated 4096 bytes of L1 on device 2 (buffer_id=0xdef)",
            "✓ [CB_ALLOC] Device 0: +0.25 MB (Total: 0.25 MB)",
            "✓ [CB_ALLOC] Device 0: +1 MB (Total: 1.25 MB)",
            "✗ [CB_FREE] Device 0: -0.25 MB (Total: 1 MB)",
            "✓ [KERNEL_LOAD] Application kernel on Device 1: +1 MB (Total: 1 MB)",
            "✓ [KERNEL_LOAD] Fabric kernel on Device 1: +0.5 MB (Total: 1.5 MB)",
            "✓ [KERNEL_LOAD] Dispatch kernel on Device 1: +0.25 MB (Total: 1.75 MB)",
            "✗ [KERNEL_UNLOAD] Fabric kernel on Device 1: -0.5 MB (Total: 1.25 MB)",
        ]
        assert len(lines) == len(expected)
        for line, start in zip(lines, expected):
            assert line.startswith(start), line


@needs_tmux
@pytest.mark.parametrize("locale, marks", [("C", "+-!"), ("C.UTF-8", "✓✗⚠")])
def test_a_terminal_gets_what_it_can_show(
    server: Server, folder: Path, locale: str, marks: str
) -> None:
    env = {"TTMEM_SOCKET": server.socket, "LC_ALL": locale}
    birth, end, odd = marks
    wanted = (
        f"{birth} [PID {PID}] Allocated",
        f"{end} [PID {PID}] Freed",
        f"{odd} [PID {PID}] Deallocation",
        f"{birth} [CB_ALLOC] Device 0",
    )
    with Screen(folder, "tail", env=env, columns=120) as screen, server.client() as client:

        def has_all(text: str) -> bool:
            """It says nothing when it has subscribed, so events are made until they are shown."""
            if all(line in text for line in wanted):
                return True
            client.alloc(0, 1024, 0xABC)
            client.free(0, 0xABC)
            client.free(0, 0x999)
            client.cb_alloc(0, 262144, 0x18B20)
            client.sync()
            return False

        screen.wait_until(has_all, "all marks")


def test_the_seeds_way_of_counting_works(server: Server) -> None:
    """grep CB_ALLOC | grep -o 'Device [0-9]*' | sort | uniq -c"""
    with server.client() as client, Tail(server=server, marker=client) as tail:
        for device, count in ((0, 3), (1, 5), (7, 2)):
            for i in range(count):
                client.cb_alloc(device, 4096, i)
        text = "".join(tail.lines_until_mark())
        script = "grep CB_ALLOC | grep -o 'Device [0-9]*' | sort | uniq -c"
        counted = subprocess.run(
            ["sh", "-c", script], input=text, capture_output=True, text=True, check=True
        ).stdout
        assert re.findall(r"(\d+) Device (\d+)", counted) == [("3", "0"), ("5", "1"), ("2", "7")]


def test_it_says_where_what_is_born_comes_from(server: Server) -> None:
    with server.client() as client, Tail(server=server, marker=client) as tail:
        for part in (3, 4):  # one process after the other: numbers of origins begin anew
            with Tracked(server) as worker:
                worker.do(f"within {part}")
                worker.do(f"alloc 0 0 2 2048")
                worker.do("free 1")
                wait_until_exact(server, worker)
                lines = tail.lines_until_mark()
                births = [line for line in lines if "Allocated" in line]
                assert len(births) == 2
                assert all(f" MB, in part_{part}" in line for line in births), births
                (end,) = (line for line in lines if "FINAL" in line)
                assert "part_" not in end
                worker.kill()
            wait_for(lambda: server.status()["processes"] == 1)


def test_json_has_the_origin_of_births_and_ends(server: Server) -> None:
    with server.client() as client, Tail("--json", server=server, marker=client) as tail:
        with Tracked(server) as worker:
            worker.do("within 5")
            worker.do("alloc 0 0 1 2048")
            worker.do("free 1")
            wait_until_exact(server, worker)
            events = [json.loads(line) for line in tail.lines_until_mark()]
        told = [(event["event"], event["context"]) for event in events]
        assert told == [("alloc", "part_5"), ("free", "part_5")]


def test_the_end_of_a_process_is_told(server: Server) -> None:
    with server.client() as client, Tail(server=server, marker=client) as tail:
        with server.worker() as worker:
            worker.burst(10, 1 << 20)
            worker.sync()
        wait_for(lambda: server.status()["processes"] == 1)
        line = tail.lines_until_mark()[-1]
        assert f"[PID {worker.pid}]" in line and "10 allocations" in line and "(10 MB)" in line


def test_lines_can_be_chosen_by_device_and_process(server: Server) -> None:
    with server.client() as client, server.worker() as other:
        with Tail("-d", "0,3", server=server, marker=client) as tail:
            for device in range(5):
                client.alloc(device, 10, 0x100 + device)
            lines = tail.lines_until_mark()
            assert [re.search(r"on device (\d)", line)[1] for line in lines] == ["0", "3"]
        with Tail("--pid", str(PID), server=server, marker=client) as tail:
            other.alloc(0, 10, 1)
            other.sync()
            client.alloc(0, 10, 1)
            (line,) = tail.lines_until_mark()
            assert f"[PID {PID}]" in line


def test_json_is_one_object_a_line(server: Server) -> None:
    with server.client() as client, Tail("--json", server=server, marker=client) as tail:
        client.alloc(4, 1000, 7)
        client.alloc(4, 2000, 7)
        client.free(4, 7)
        client.free(4, 7)
        client.kernel_load(4, 10, 8, FABRIC)
        with server.worker() as worker:
            worker.alloc(0, 5, 1)
            worker.sync()
        wait_for(lambda: server.status()["processes"] == 1)
        events = [json.loads(line) for line in tail.lines_until_mark()]
        names = [event["event"] for event in events]
        assert names == [
            "alloc",
            "replaced",
            "alloc",
            "free",
            "unknown_free",
            "alloc",
            "alloc",
            "process_end",
        ]
        for event in events:
            assert abs(event["time_ns"] - time.time_ns()) < 60 * 10**9
        first = {k: v for k, v in events[0].items() if k != "time_ns"}
        assert first == {
            "event": "alloc",
            "pid": PID,
            "device": 4,
            "region": "DRAM",
            "id": 7,
            "address": 7,
            "bytes": 1000,
            "footprint_bytes": 1000,
            "total_bytes": 1000,
        }
        assert events[2]["total_bytes"] == 2000 and events[3]["total_bytes"] == 0
        assert events[5]["kind"] == "fabric"
        assert (events[7]["count"], events[7]["bytes"]) == (1, 5)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_slow_reader_loses_counted_lines_and_slows_nobody(server: Server, layout: int) -> None:
    """Every event is either a line or among those said to be lost."""
    sent = 40_000
    with server.client(layout) as client:
        with Tail("--json", server=server, marker=client) as tail:
            tail.process.send_signal(signal.SIGSTOP)
            before = server.memory()
            start = time.monotonic()
            client.burst(sent, device=1)
            client.sync()
            assert time.monotonic() - start < 10 * SLOWNESS
            assert server.memory() - before < (32 << 20) * SLOWNESS
            status = server.check()
            assert status["lives"] == sent
            assert status["lost_tail_events"] > 0
            tail.process.send_signal(signal.SIGCONT)
            # The loss is told without another event: there may never be one.
            lines = tail.read_until(lambda line: '"lost"' in line)
            lines += tail.lines_until_mark()
            events = [json.loads(line) for line in lines]
            lost = sum(e["count"] for e in events if e["event"] == "lost")
            shown = sum(e["event"] == "alloc" for e in events)
            assert lost + shown == sent
            assert server.status()["lost_tail_events"] == lost


def test_lost_lines_are_told_to_people(server: Server) -> None:
    with server.client() as client, Tail(server=server, marker=client) as tail:
        tail.process.send_signal(signal.SIGSTOP)
        client.burst(40_000, device=1)
        client.sync()
        tail.process.send_signal(signal.SIGCONT)
        (line,) = tail.read_until(lambda line: "lines lost" in line)[-1:]
        assert re.match(r"⚠ \d+ lines lost", line)


def test_it_says_so_when_the_server_goes(make_server) -> None:
    server = make_server().start()
    with server.client() as client, Tail(server=server, marker=client) as tail:
        server.stop()
        assert tail.process.wait(PATIENCE_S) == 1
        assert tail.errors() == "tt-mem: the server has gone\n"


def test_a_reader_of_its_lines_that_leaves_ends_it(server: Server) -> None:
    with server.client() as client, Tail(server=server, marker=client) as tail:
        assert tail.process.stdout
        tail.process.stdout.close()

        def talk() -> bool:
            client.alloc(0, 1, 1)
            client.sync()
            return tail.process.poll() is not None

        wait_for(talk, "tail to end")
        tail.process.stdout = None


@pytest.mark.parametrize("arguments", [["--pid", "0"], ["--pid", ""], ["-d", "9999"], ["word"]])
def test_wrong_options_are_told_in_one_line(arguments: list[str]) -> None:
    assert "--help" in run("tail", *arguments).complains(2)
