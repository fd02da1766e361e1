# SPDX-License-Identifier: Apache-2.0
"""Who a client is comes from the kernel, and what it holds ends with it."""

import os
import signal
import time

import pytest
from support import LAYOUTS, SLOWNESS, Original, Server, wait_for

layouts = pytest.mark.parametrize("layout", LAYOUTS)


def wait_for_dram(monitor: Original, expected: int, limit_s: float = 2.0) -> float:
    """Polls until the total is that; returns after how many seconds."""
    start = time.monotonic()
    while True:
        found = monitor.query()["dram_allocated"]
        taken_s = time.monotonic() - start
        if found == expected:
            return taken_s
        assert taken_s < limit_s * SLOWNESS, f"DRAM is {found}, not {expected}"


@layouts
def test_the_claimed_process_id_is_ignored(server: Server, layout: int) -> None:
    with server.client(layout, claimed_pid=1) as client:
        client.alloc(0, 10, 1)
        client.sync()
        (process,) = server.dump()["processes"]
        assert process["pid"] == os.getpid()
        assert "python" in process["command"]
        assert process["start_ns"] < time.time_ns()
        assert time.time_ns() - process["start_ns"] < 3600 * 10**9


def test_two_processes_with_the_same_ids_do_not_touch_each_other(server: Server) -> None:
    with server.worker() as a, server.worker(72) as b, server.client() as monitor:
        for worker, size in ((a, 100), (b, 7)):
            worker.alloc(0, size, 0x1000)
            worker.cb_alloc(0, size, 0x1000)
            worker.kernel_load(0, size, 0x1000)
            worker.sync()
        assert server.bytes() == {"DRAM": 107, "CB": 107, "KERNEL": 107}
        b.free(0, 0x1000)
        b.free(0, 0x1000)
        b.cb_free(0, 7, 0x1000)
        b.kernel_unload(0, 7, 0x1000)
        b.sync()
        assert server.bytes() == {"DRAM": 100, "CB": 100, "KERNEL": 100}
        clients = {c["pid"]: c for c in server.check()["clients"]}
        assert clients[a.pid]["unknown_frees"] == 0
        assert clients[b.pid]["unknown_frees"] == 1
        assert clients[a.pid]["replaced"] == clients[b.pid]["replaced"] == 0
        assert monitor.query()["cb_allocated"] == 100


def test_a_claim_to_be_another_process_frees_nothing_of_it(server: Server) -> None:
    with server.worker() as victim:
        victim.alloc(0, 5000, 0x42)
        victim.sync()
        with server.client(claimed_pid=victim.pid) as forger:
            forger.free(0, 0x42)
            forger.sync()
            assert server.bytes() == {"DRAM": 5000}


@pytest.mark.parametrize("lives", [1, 1000, 100_000])
def test_totals_are_gone_soon_after_a_kill(
    server: Server, lives: int, record_property: pytest.FixtureRequest
) -> None:
    with server.client() as monitor, server.worker() as worker, server.worker(112) as other:
        other.alloc(0, 11, 1)
        other.sync()
        worker.burst(lives, 3)
        worker.sync()
        assert monitor.query()["dram_allocated"] == 3 * lives + 11
        worker.kill()
        taken_s = wait_for_dram(monitor, 11)
        record_property("totals_gone_after_s", taken_s)  # type: ignore[operator]
        assert taken_s < 1.0 * SLOWNESS
        status = server.check()
        assert status["processes_ended"] == 1 and status["lives"] == 1


@layouts
@pytest.mark.parametrize("how", ["exit", "SIGTERM", "SIGSEGV"])
def test_totals_go_with_the_process_however_it_ends(
    server: Server, layout: int, how: str
) -> None:
    with server.client() as monitor, server.worker(layout) as worker:
        worker.alloc(0, 100, 1)
        worker.sync()
        if how == "exit":
            worker.leave()
        else:
            worker.kill(getattr(signal, how))
        wait_for_dram(monitor, 0)


def test_all_that_a_process_said_counts_even_if_it_is_gone_before_it_is_heard(
    server: Server,
) -> None:
    worker = server.worker()
    server.freeze()
    worker.burst(500)
    worker.kill()
    server.thaw()
    wait_for(lambda: server.status()["processes_ended"] == 1)
    status = server.check()
    assert (status["allocs"], status["lives"], status["torn_messages"]) == (500, 0, 0)


def test_a_process_that_reconnects_keeps_what_it_holds(server: Server) -> None:
    with server.client() as monitor, server.worker() as worker:
        worker.alloc(0, 1000, 0x10)
        worker.alloc(0, 50, 0x20)
        worker.sync()
        worker.hang_up()
        wait_for(lambda: server.status()["clients"][0]["connections"] == 0)
        assert monitor.query()["dram_allocated"] == 1050
        worker.reconnect()
        worker.free(0, 0x10)
        worker.alloc(0, 7, 0x30)
        worker.sync()
        assert monitor.query()["dram_allocated"] == 57
        (client,) = server.check()["clients"]
        assert client["connections"] == 1 and client["unknown_frees"] == 0
        worker.hang_up()
        worker.kill()
        wait_for_dram(monitor, 0)


def test_two_connections_of_one_process_are_one_process(server: Server) -> None:
    with server.client(72) as one, server.client(144) as two:
        one.alloc(0, 10, 1)
        one.sync()
        two.free(0, 1)
        two.sync()
        (client,) = server.status()["clients"]
        assert (client["connections"], client["lives"], client["unknown_frees"]) == (2, 0, 0)


def test_a_child_that_holds_the_connection_does_not_hold_the_parents_memory(
    server: Server,
) -> None:
    with server.client() as monitor, server.worker() as worker:
        worker.alloc(0, 1000, 1)
        worker.sync()
        child = worker.leave_child_with_connection()
        try:
            worker.kill()
            taken_s = wait_for_dram(monitor, 0)
            assert taken_s < 1.0 * SLOWNESS
            assert server.check()["processes"] == 0
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_child_that_goes_on_talking_does_not_bring_the_parent_back(server: Server) -> None:
    with server.client() as monitor, server.worker() as worker:
        worker.alloc(0, 1000, 1)
        worker.sync()
        worker.leave_child_that_talks(50)
        wait_for(lambda: monitor.query()["dram_allocated"] > 2000)
        worker.kill()
        # The connection is closed, so the child cannot send and ends by itself.
        wait_for(lambda: server.status()["processes"] == 0)
        wait_for_dram(monitor, 0)
        server.check()


def test_monitors_are_not_processes_that_report(server: Server) -> None:
    with server.client(72) as monitor:
        monitor.query()
        monitor.device_info()
        status = server.status()
        assert status["clients"] == [] and status["processes"] == 0


def test_the_end_of_a_process_leaves_others_undisturbed(server: Server) -> None:
    survivors = [server.worker(layout) for layout in LAYOUTS]
    for number, worker in enumerate(survivors):
        worker.burst(1000, number + 1)
        worker.sync()
    for _ in range(10):
        with server.worker() as worker:
            worker.burst(2000, 100)
            worker.sync()
    with server.client() as monitor:
        wait_for_dram(monitor, 1000 * (1 + 2 + 3))
    status = server.check()
    assert status["processes"] == 3 and status["processes_ended"] == 10
    for worker in survivors:
        worker.kill()
