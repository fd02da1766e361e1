# SPDX-License-Identifier: Apache-2.0
"""
A server for which memory is short: the tracked program does not notice, and what the server does
not know it does not claim to know.
"""

from __future__ import annotations

import resource
from typing import Any, Callable

import pytest
from support import IS_SANITIZED, Server, Tracked, row_of, run_json, wait_for, wait_until_exact

pytestmark = pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer needs all the address space")

MANY = 100_000  # allocations; the server needs about 60 bytes for each


def limit(server: Server, more_bytes: int) -> None:
    """Leaves the server so much more address space than it has now."""
    most = server.memory("VmSize") + more_bytes
    resource.prlimit(server.pid, resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


def lift(server: Server) -> None:
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(server.pid, resource.RLIMIT_AS, unlimited)


def wait_for_doubt(server: Server, worker: Tracked) -> dict[str, Any]:
    """What the server says of it once it says that something is missing."""

    def doubtful() -> dict[str, Any] | None:
        row = row_of(server, worker.pid)
        return row if row and not row["complete"] else None

    return wait_for(doubtful, "the server to say that something is missing")


def test_a_program_whose_rings_do_not_fit_is_not_called_complete(server: Server) -> None:
    limit(server, 64 << 20)
    with Tracked(server) as worker:
        worker.do("alloc 0 0 100 1000")
        row = wait_for_doubt(server, worker)
        assert "the server has too little memory" in row["why_incomplete"]
        connections = server.status()["connections_total"]
        wait_for(lambda: server.status()["connections_total"] > connections + 3, "it to try again")
        assert server.stderr.count("memory") == 1  # said once, however often it tries
        lift(server)
        wait_until_exact(server, worker)
        row = row_of(server, worker.pid)
        assert row and row["complete"] and row["why_incomplete"] == ""
        assert worker.end("exit 7") == 7


def test_a_recording_of_such_a_program_is_not_called_complete(
    make_server: Callable[[], Server], folder: Any
) -> None:
    (folder / "rec").mkdir()
    server = make_server().start("--record", str(folder / "rec"))
    limit(server, 64 << 20)
    with Tracked(server) as worker:
        worker.do("alloc 0 0 100 1000")
        wait_for_doubt(server, worker)
    wait_for(lambda: not server.status()["clients"], "its end to be known")
    lift(server)
    server.stop()
    (file,) = (folder / "rec").glob("*.ttmem")
    (process,) = run_json("report", file)["processes"]
    assert not process["complete"] and process["why_incomplete"]


def test_a_server_without_memory_for_allocations_says_so_and_goes_on(
    make_server: Callable[[], Server],
) -> None:
    server = make_server().start()
    with Tracked(server) as worker:
        worker.do("alloc 0 0 1000 1000")
        wait_until_exact(server, worker)
        limit(server, 1 << 20)
        worker.do(f"alloc 0 0 {MANY} 1000")
        wait_for(lambda: server.status()["refused_memory"] > 0, "memory to be short")
        row = row_of(server, worker.pid)
        assert row and "the server has too little memory" in row["why_incomplete"]
        assert server.stderr.count("memory") == 1
        server.check()
        # The next one, which has enough, knows all.
        server.kill()
        server.start()
        wait_for(lambda: server.status()["lives"] == MANY + 1000, "all to be known")
        assert server.check()["refused_memory"] == 0
        assert worker.end("exit 7") == 7
