# SPDX-License-Identifier: Apache-2.0
"""The hook in a host of our own, with a TT-Metal of our own: fit for sanitizers."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Iterator

import pytest
from basics import IS_SANITIZED, IS_THREAD_SANITIZED, LONG, PATIENCE_S, wait_for
from commands import assert_no_sanitizer_report, clean_env, run
from servers import Server
from tracked import REGIONS, client_of, row_of, sums_in, totals_in

HOST = os.environ.get("HOOK_HOST", "hook_host")
HOOK = os.environ.get("TTMEM_HOOK", "libttmem-hook.so")
METAL = os.environ.get("FAKE_METAL", "libtt_metal.so")
OLD_METAL = os.environ.get("FAKE_OLD_METAL", "libtt_metal_old.so")
NEW_METAL = os.environ.get("FAKE_NEW_METAL", "libtt_metal_new.so")
BUFFER_REGIONS = REGIONS[:5]
EVENTS = 20000 if LONG else 500 if IS_SANITIZED else 2000


class Host:
    """A hook_host. 'do' sends a line and waits until it is done."""

    def __init__(self, server: Server, *libraries: str, enabled: bool = True, hook: str = HOOK):
        self._errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [HOST, hook, *libraries],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=clean_env(
                TTMEM_SOCKET=server.socket,
                TT_ALLOC_TRACKING_ENABLED="1" if enabled else None,
                # What is alive when the host ends is its own business.
                ASAN_OPTIONS="detect_leaks=0",
                TSAN_OPTIONS="atexit_sleep_ms=20:die_after_fork=0",
            ),
        )
        self.holds: dict[str, tuple[int, int]] = {}
        self.child = 0  # the last that it has made

    @property
    def pid(self) -> int:
        return self.process.pid

    def do(self, *lines: str) -> None:
        assert self.process.stdin and self.process.stdout
        for line in lines:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
            if not answer:
                pytest.fail(f"the host ended with {self.process.wait()}: {self.errors()}")
            outcome = json.loads(answer)
            assert outcome["wrong"] == 0, line
            self.child = outcome["child"]
            self.holds = {REGIONS[r]: (count, size) for r, count, size in outcome["holds"]}

    def errors(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace")

    def end(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        assert self.process.wait(PATIENCE_S) == 0, self.errors()
        assert self.errors() == ""

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream and not stream.closed:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass
        assert_no_sanitizer_report(self.errors(), "the host")


@pytest.fixture
def hosts() -> Iterator[list[Host]]:
    """Those that are put here are killed at the end."""
    started: list[Host] = []
    yield started
    for host in started:
        host.kill()


def start(hosts: list[Host], server: Server, *libraries: str, enabled: bool = True) -> Host:
    hosts.append(Host(server, *(libraries or (METAL,)), enabled=enabled))
    return hosts[-1]


def told(server: Server, host: Host, chip: int = 0) -> dict[str, tuple[int, int]]:
    """Count and requested bytes in each region that allocators manage."""
    totals = totals_in(row_of(server, host.pid))
    return {
        region: (count, size)
        for (device, region), (count, size, _) in totals.items()
        if device == chip and region in BUFFER_REGIONS
    }


def trouble_of(server: Server, host: Host) -> str:
    def trouble() -> str:
        client = client_of(server, host.pid)
        return client["trouble"] if client else ""

    return wait_for(trouble, "the trouble to be told")


def regions(server: Server, host: Host, chip: int = 0) -> dict[str, Any]:
    row = row_of(server, host.pid)
    for device in row["devices"] if row else []:
        if device["id"] == chip:
            return device["regions"]
    return {}


def assert_exact(server: Server, host: Host, chips: int = 1) -> None:
    for chip in range(chips):
        wait_for(lambda: told(server, host, chip) == host.holds, f"{host.holds} on chip {chip}")
    row = row_of(server, host.pid)
    assert totals_in(row) == sums_in(row)
    assert server.check()["unknown_frees"] == 0


def test_buffers_of_every_region(server: Server, hosts: list[Host]) -> None:
    host = start(hosts, server)
    host.do("open 4")
    for region in range(5):
        host.do(f"alloc {region} 3 100")
    assert_exact(server, host, 4)
    # 100 bytes in 12 banks are 16 in each after aligning, and 32 are handed out.
    dram = regions(server, host)["DRAM"]
    assert dram["remaining_footprint_bytes"] == 3 * 12 * 32
    # Memory of the host has no banks: it takes what was asked for.
    assert regions(server, host)["SYSTEM_MEMORY"]["remaining_footprint_bytes"] == 300
    host.do("virtual 5", "free 7")
    assert_exact(server, host, 4)
    host.do("close")
    assert_exact(server, host, 4)
    host.do("open 2", "alloc 0 2 64")
    assert_exact(server, host, 2)
    host.end()


def test_a_storm_on_many_threads(server: Server, hosts: list[Host]) -> None:
    host = start(hosts, server)
    host.do("open 1")
    for _ in range(3):
        host.do(f"storm 8 {EVENTS}")
        assert_exact(server, host)
    host.end()


def test_switched_on_and_off_in_a_storm(server: Server, hosts: list[Host]) -> None:
    host = start(hosts, server, enabled=False)
    host.do("open 1", f"storm 4 {EVENTS}", "enable")
    assert_exact(server, host)
    host.do(f"storm 4 {EVENTS}")
    assert_exact(server, host)
    host.do("disable", f"storm 4 {EVENTS}", "enable")
    assert_exact(server, host)
    for _ in range(3):
        host.do(f"storm 4 {EVENTS} 10")
        assert_exact(server, host)
        client = client_of(server, host.pid)
        assert client and client["replaced"] == client["unknown_ends"] == 0
    host.end()


def test_what_is_resident_is_registered_however_short(server: Server, hosts: list[Host]) -> None:
    """The server first reads of a program when it is freed: its cores are never summed."""
    host = start(hosts, server)
    host.do("open 1", "alloc 0 1 64")
    assert_exact(server, host)
    server.freeze()
    host.do("work 1 2048 some_kernel 16", "run", "end")
    server.thaw()
    wait_for(lambda: regions(server, host)["CB"]["frees"] > 0, "the end of the program")
    cb = regions(server, host)["CB"]
    assert cb["remaining"] == cb["registered_bytes"] == 0
    assert cb["peak_registered_bytes"] == cb["peak_resident_bytes"] == 4 * 2048
    host.end()


def test_failures_are_told_and_passed_on(server: Server, hosts: list[Host]) -> None:
    host = start(hosts, server)
    host.do("open 1", "alloc 1 4 100", "fail 0", "fail 1")
    assert_exact(server, host)
    host.do("work 1 2048 some_kernel 16", "clash", "end")

    def failures() -> list[dict[str, Any]]:
        row = row_of(server, host.pid)
        return row["failures"] if row else []

    wait_for(lambda: len(failures()) == 3, "three failures")
    first, second, third = failures()
    assert (first["kind"], first["region"]) == ("out_of_memory", "DRAM")
    assert first["wanted_bytes"] == 1 << 38
    assert (second["region"], second["free_bytes"]) == ("L1", (1 << 20) - 4 * 32)
    assert second["largest_free_bytes"] == second["free_bytes"] // 2
    assert (third["kind"], third["wanted_bytes"]) == ("cb_clash", 4 * 2048)
    assert third["bank_wanted_bytes"] == 100000 + 2048
    host.end()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cq_dispatch", "dispatch"),
        ("cq_prefetch_hd", "dispatch"),
        ("fabric_erisc_router", "fabric"),
        ("tt_fabric_mux", "fabric"),
        ("reader_unary", "application"),
    ],
)
def test_kernels_by_kind(server: Server, hosts: list[Host], name: str, kind: str) -> None:
    host = start(hosts, server)
    host.do("open 1", f"work 1 2048 {name} 48")
    wait_for(lambda: regions(server, host).get("KERNEL", {}).get("remaining"), "a kernel")
    kernels = regions(server, host)["KERNEL"]
    assert kernels[f"{kind}_bytes"] == 48 and kernels["remaining_footprint_bytes"] == 2 * 48
    host.do("end")
    wait_for(lambda: regions(server, host)["KERNEL"]["remaining"] == 0, "its end")
    host.end()


def test_programs_for_single_chips(server: Server, hosts: list[Host]) -> None:
    host = start(hosts, server)
    host.do("open 4", "work 3 2048 some_kernel 16", "run")
    for chip, size in ((0, 4 * 2048), (1, 4 * 2048), (2, 4 * 2048), (3, 0)):
        wait_for(
            lambda: regions(server, host, chip).get("CB", {}).get("resident_bytes", 0) == size,
            f"{size} bytes resident on chip {chip}",
        )
        # The one on a buffer adds nothing.
        assert regions(server, host, chip).get("CB", {}).get("remaining", 0) == (size > 0)
    host.do("end")
    wait_for(lambda: regions(server, host)["CB"]["remaining"] == 0, "the end of the programs")
    host.end()


def test_a_child_leaves_its_parents_books_alone(server: Server, hosts: list[Host]) -> None:
    host = start(hosts, server)
    host.do("open 1", "alloc 0 5 64", "fork")
    assert_exact(server, host)
    host.do("free 2", "fork", "alloc 0 1 64")
    assert_exact(server, host)
    host.end()


def test_a_fork_lets_a_switch_finish(server: Server, hosts: list[Host]) -> None:
    """The thread that switches has the runtime's allocator locked, and is not there in the child."""
    host = start(hosts, server)
    host.do("open 1", "alloc 0 5 64", "fork_amid", "alloc 0 1 64")
    assert_exact(server, host)
    host.end()


@pytest.mark.skipif(IS_THREAD_SANITIZED, reason="the thread sanitizer has to be told of a fork")
@pytest.mark.parametrize("how", [0, 1], ids=["_Fork", "clone"])
def test_a_child_that_nobody_was_told_of_is_not_tracked(
    server: Server, hosts: list[Host], how: int
) -> None:
    host = start(hosts, server)
    # The child runs the second program, which its parent does not.
    host.do("open 1", "alloc 0 5 64", "alloc 1 3 100", "work 1 2048 first 16", "run")
    host.do("work 1 4096 second 16")

    def resident() -> int:
        return regions(server, host).get("CB", {}).get("resident_bytes", 0)

    wait_for(lambda: resident() == 4 * 2048, "the first program to run")
    for _ in range(2):
        host.do(f"child {how}", "free 2", "alloc 0 3 64")
        assert_exact(server, host)
        assert resident() == 4 * 2048
        assert [client["pid"] for client in server.status()["clients"]] == [host.pid]
        assert row_of(server, host.child) is None
        os.kill(host.child, signal.SIGKILL)
    host.do("run", "free 1", "fork", f"storm 4 {EVENTS}")  # the parent goes on as ever
    assert_exact(server, host)
    wait_for(lambda: resident() == 4 * 4096, "the second program to run")
    client = client_of(server, host.pid)
    assert client and client["replaced"] == client["unknown_ends"] == 0
    host.end()


def test_a_close_that_throws_closes_nothing(server: Server, hosts: list[Host]) -> None:
    host = start(hosts, server)
    host.do("open 2", "alloc 0 3 100", "alloc 1 2 64", "work 2 2048 some_kernel 16", "run")
    assert_exact(server, host, 2)

    def parts() -> list[tuple[int, int, int]]:
        both = [regions(server, host, chip) for chip in range(2)]
        return [
            (r["CB"]["remaining"], r["CB"]["resident_bytes"], r["KERNEL"]["remaining"])
            for r in both
        ]

    wait_for(lambda: all(cb and kernel for cb, _, kernel in parts()), "the programs' parts")
    before = parts()
    host.do("unclosed", "alloc 0 1 100")  # what comes after it is told after it
    assert_exact(server, host, 2)
    assert parts() == before
    host.do("free 2", "close")
    assert_exact(server, host, 2)
    host.end()


def test_a_library_that_is_too_old(server: Server, hosts: list[Host]) -> None:
    host = start(hosts, server, OLD_METAL)
    host.do("open 1", "alloc 0 5 64", "free 2", "work 1 2048 some_kernel 16", "run", "end", "close")
    assert "which the hook knows" in trouble_of(server, host)
    assert client_of(server, host.pid)["lives"] == 0
    host.end()


def test_without_frees_nothing_is_tracked(server: Server, hosts: list[Host]) -> None:
    """A release to come, in which a function has another name: all would look like a leak."""
    host = start(hosts, server, NEW_METAL)
    host.do("open 1", "alloc 0 5 64", "free 2", "work 1 2048 some_kernel 16", "run", "end", "close")
    assert "is not tracked" in trouble_of(server, host)
    assert client_of(server, host.pid)["lives"] == 0
    host.end()


@pytest.mark.parametrize(
    ("version", "library", "said"),
    [
        ("0.78.2", OLD_METAL, "ttnn 0.78.2 is not tracked: it is too old, "),
        ("0.95.0", NEW_METAL, "ttnn 0.95.0 is not tracked: it is too new, "),
        ("1.0.0rc1", NEW_METAL, "ttnn 1.0.0rc1 is not tracked: it is too new, "),
        ("0.82.0", METAL, "ttnn 0.82.0 is tracked in part, without: dataflow buffers, "),
    ],
)
def test_the_release_is_named(
    server: Server, hosts: list[Host], folder: Path, version: str, library: str, said: str
) -> None:
    """A wheel's library lies beside a folder that has its version."""
    inside = folder / "site" / "ttnn" / "build" / "lib"
    inside.mkdir(parents=True)
    (folder / "site" / f"ttnn-{version}.dist-info").mkdir()
    host = start(hosts, server, shutil.copy(library, inside / "libtt_metal.so"))
    host.do("open 1", "alloc 0 5 64")
    assert trouble_of(server, host).startswith(said)
    assert client_of(server, host.pid)["lives"] == (5 if library == METAL else 0)
    host.end()


def test_two_libraries_in_one_process(server: Server, hosts: list[Host]) -> None:
    host = start(hosts, server, METAL, OLD_METAL)
    host.do("open 1", "alloc 0 3 64")
    assert_exact(server, host)
    # Some functions are called by the second alone, and so by it first.
    host.do("library 1", "open 1", "alloc 0 4 64")
    for _ in range(2):
        host.do("work 1 2048 some_kernel 16", "run", "end")
    wait_for(lambda: "twice" in client_of(server, host.pid)["trouble"], "the trouble to be told")
    host.do("library 0", "alloc 1 1 64")  # what comes after it is told after it
    host.holds = {"DRAM": (3, 3 * 64), "L1": (1, 64)}  # only the first is tracked
    assert_exact(server, host)
    told_of = regions(server, host)
    assert [told_of[region]["allocs"] for region in ("CB", "KERNEL")] == [0, 0]
    host.do("work 1 2048 some_kernel 16")
    wait_for(lambda: regions(server, host).get("CB", {}).get("remaining"), "those of the first")
    host.do("end", "close", "library 1", "close")
    host.end()


def test_no_library_at_all(server: Server, hosts: list[Host]) -> None:
    host = Host(server)
    hosts.append(host)
    host.do("nothing")
    assert server.status()["clients"] == []
    host.end()


def test_a_process_that_has_the_runtime_already(hosts: list[Host], server: Server) -> None:
    host = Host(server, METAL, enabled=False, hook=f"-{HOOK}")
    hosts.append(host)
    host.do("open 2", "alloc 0 5 1000", f"storm 4 {EVENTS}", "install", "enable")
    assert_exact(server, host, chips=2)
    host.do(f"storm 4 {EVENTS}", "free 3")
    assert_exact(server, host, chips=2)
    host.do("disable", f"storm 4 {EVENTS}", "enable")
    assert_exact(server, host, chips=2)
    host.do("close", "open 1", "alloc 1 3 500")
    assert_exact(server, host)
    client = client_of(server, host.pid)
    assert client and client["replaced"] == client["unknown_ends"] == 0
    host.end()


def test_where_there_is_no_python_the_programs_own_frame_says_where(
    make_server: Any, hosts: list[Host], tmp_path: Path
) -> None:
    server = make_server().start("--record", str(tmp_path))
    host = start(hosts, server)
    host.do("open 1", "alloc 0 3 100")
    assert_exact(server, host, 1)
    (row,) = {
        line.split("id ")[1].split()[1]
        for line in run("dump", server=server).out.splitlines()
        if " id " in line
    }
    assert re.match(r"host\.c:\d+$|hook_host\+0x", row)  # by its line, where it was built with lines
    server.stop()
    (recording,) = tmp_path.glob("*.ttmem")
    (origin,) = (
        line
        for line in run("report", str(recording), env={"COLUMNS": "120"}).out.splitlines()
        if " DRAM " in line and " steady" in line
    )
    assert re.match(r" 1 (host\.c:\d+ |hook_host\+0x)", origin)
    host.end()


def test_a_failure_and_a_birth_come_from_the_same_function(
    make_server: Any, hosts: list[Host], tmp_path: Path
) -> None:
    """A failure is heard of inside the unwinder, of which nothing is to be seen."""
    server = make_server().start("--record", str(tmp_path))
    host = start(hosts, server)
    host.do("open 1", "alloc 1 1 100", "fail 1")
    assert_exact(server, host)
    host.end()
    server.stop()
    (recording,) = tmp_path.glob("*.ttmem")
    (process,) = json.loads(run("report", "--json", str(recording)).out)["processes"]
    (origin,), (failure,) = process["origins"], process["failures"]
    for frames in origin["native"], failure["native"]:
        assert re.search(r"\bfake_alloc\b", frames[0]), frames
        assert re.search(r"\ballocate\b|\bhook_host\b", frames[1]), frames
