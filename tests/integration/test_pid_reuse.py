# SPDX-License-Identifier: Apache-2.0
"""
A process ends and another gets its number, as it happens on a machine that is up for weeks. The
tests run in a pid namespace, where the next number can be chosen and nobody else takes it.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import traceback
from pathlib import Path
from typing import Callable

import pytest
from containers import why_no_namespaces
from support import (
    IS_ROOT,
    Server,
    Tracked,
    Worker,
    row_of,
    run_json,
    wait_for,
    wait_until_exact,
)

CLONE_NEWNS, CLONE_NEWPID = 0x00020000, 0x20000000

obstacle = "needs root, to make namespaces" if not IS_ROOT else why_no_namespaces()
pytestmark = pytest.mark.skipif(obstacle != "", reason=obstacle)


def _be_first_process(body: Callable[[], None]) -> None:
    """In a new process: carries it out in a child that has the number 1."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWPID | CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    pid = os.fork()
    if pid == 0:
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run(["mount", "-t", "proc", "proc", "/proc"], check=True)
        body()
        return
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def in_pid_namespace(body: Callable[[], None]) -> None:
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            _be_first_process(body)
            status = 0
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, "see above"


def start_as(pid: int, server: Server) -> Tracked:
    """A worker that has this number."""
    Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
    worker = Tracked(server)
    assert worker.pid == pid
    return worker


NUMBER = 3000  # what is started beside the workers gets smaller ones, or larger


def test_what_the_first_one_held_is_not_the_second_ones(folder: Path) -> None:
    def body() -> None:
        server = Server(folder).start()
        for count in (7, 5, 3):
            with start_as(NUMBER, server) as worker:
                worker.do(f"alloc {count} 0 {count} 1000")
                wait_until_exact(server, worker)
                assert [c["pid"] for c in server.status()["clients"]] == [NUMBER]
        wait_for(lambda: not server.status()["clients"], "the last to be gone")
        assert server.check()["lives"] == 0
        server.stop()

    in_pid_namespace(body)


def test_two_that_come_at_once_are_kept_apart(folder: Path) -> None:
    """The end of the first and the arrival of the second wait for the server together."""

    def body() -> None:
        server = Server(folder).start()
        first = start_as(NUMBER, server)
        first.do("alloc 0 0 10 1000")
        wait_until_exact(server, first)
        for count in (5, 3):
            server.freeze()
            first.do("alloc 1 0 100 1000")  # said, and not yet heard
            first.kill()
            second = start_as(NUMBER, server)
            second.do(f"alloc 2 0 {count} 500")
            server.thaw()
            wait_until_exact(server, second)
            row = row_of(server, NUMBER)
            assert row and [device["id"] for device in row["devices"]] == [2]
            first = second
        first.kill()
        server.stop()

    in_pid_namespace(body)


def test_in_a_recording_they_are_two(folder: Path) -> None:
    def body() -> None:
        (folder / "rec").mkdir()
        server = Server(folder).start("--record", str(folder / "rec"))
        for count in (7, 5):
            with start_as(NUMBER, server) as worker:
                worker.do(f"alloc 0 0 {count} 1000")
                worker.do("free 1")
                wait_until_exact(server, worker)
        wait_for(lambda: not server.status()["clients"], "both to be gone")
        server.stop()
        (file,) = (folder / "rec").glob("*.ttmem")
        processes = run_json("report", file)["processes"]
        assert [process["pid"] for process in processes] == [NUMBER, NUMBER]
        dram = [process["devices"][0]["regions"]["DRAM"] for process in processes]
        assert sorted((d["allocs"], d["remaining"]) for d in dram) == [(5, 4), (7, 6)]
        assert all(process["complete"] for process in processes)

    in_pid_namespace(body)


def test_a_client_of_the_original_protocol_does_not_inherit_either(folder: Path) -> None:
    def body() -> None:
        server = Server(folder).start()

        def start() -> Worker:
            Path("/proc/sys/kernel/ns_last_pid").write_text(str(NUMBER - 1))
            worker = server.worker()
            assert worker.pid == NUMBER
            return worker

        first = start()
        first.alloc(0, 1000, 1)
        first.sync()
        server.freeze()
        first.alloc(0, 1000, 2)
        first.kill()
        second = start()
        second.start("alloc", 1, 50, 1)
        second.finish()
        server.thaw()
        second.sync()
        wait_for(lambda: server.bytes(0) == {}, "what the first held to be gone")
        assert server.bytes(1) == {"DRAM": 50}
        second.kill()
        wait_for(lambda: server.bytes(1) == {}, "all to be gone")
        server.stop()

    in_pid_namespace(body)
