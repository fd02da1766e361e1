# SPDX-License-Identifier: Apache-2.0
"""Programs on libttmem: what the server says of them is what they say of themselves."""

import contextlib
import os
import random
import signal
import socket
import struct
import time
from pathlib import Path
from typing import Any

import pytest
from support import (
    ERROR,
    IS_SANITIZED,
    IS_THREAD_SANITIZED,
    PATIENCE_S,
    TELL,
    TOLD_END,
    Closed,
    Native,
    Server,
    Tracked,
    attach,
    client_of,
    frame,
    row_of,
    run,
    run_json,
    segment,
    segment_header,
    told,
    told_row,
    totals_in,
    wait_for,
    wait_until_exact,
)

STORM = 80_000 if IS_SANITIZED else 400_000
FLOOD = max(STORM, 200_000)  # four threads fill their rings and those that they may go on in


def wait_until_gone(server: Server, pid: int) -> None:
    wait_for(lambda: client_of(server, pid) is None, f"{pid} to be gone")
    assert row_of(server, pid) is None
    server.check()


# ---- allocations and frees ----


def test_what_is_allocated_and_freed_is_known_exactly(server: Server) -> None:
    with Tracked(server) as worker:
        for region in range(7):
            worker.do(f"alloc {region % 3} {region} {10 + region} {1000 * region + 1}")
            wait_until_exact(server, worker)
        for count in (1, 7, 30):
            worker.do(f"free {count}")
            wait_until_exact(server, worker)
        worker.do("free 1000")
        assert worker.truth == {}
        wait_until_exact(server, worker)
        status = server.status()
        assert status["allocs"] == status["frees"] == sum(10 + region for region in range(7))


def test_a_buffer_is_told_as_it_was_reported(server: Server) -> None:
    with Tracked(server) as worker:
        worker.do("alloc 3 1 1 5000")  # the id is 1, the size grows by id % 7
        wait_until_exact(server, worker)
        row = row_of(server, worker.pid)
        assert row and row["complete"] is True and row["lost_events"] == 0
        (buffer,) = row["buffers"]
        assert buffer["id"] == 1 and buffer["address"] == 65536
        assert buffer["bytes"] == 5001 and buffer["footprint_bytes"] == 3 * 2048
        assert buffer["device_ids"] == [3] and buffer["region"] == "L1"
        assert 0 < buffer["age_ns"] < PATIENCE_S * 1e9


def test_a_mesh_counts_once_on_each_of_its_devices(server: Server) -> None:
    with Tracked(server) as worker:
        worker.do("mesh 5 4096")
        wait_until_exact(server, worker)
        assert sorted(device for device, _ in worker.truth) == list(range(8))
        client = client_of(server, worker.pid)
        assert client and client["lives"] == 5
        worker.do("alloc 3 1 2 100")
        worker.do("mesh 3 100")
        worker.do("free 4")
        wait_until_exact(server, worker)


def test_a_key_that_is_born_again_replaces_the_first_and_is_counted(server: Server) -> None:
    with Tracked(server) as worker:
        worker.do("alloc 0 0 10 1000")
        worker.do("replace 4")
        wait_until_exact(server, worker)
        client = client_of(server, worker.pid)
        assert client and client["replaced"] == 4 and client["lives"] == 10
        worker.do("free 10")
        assert worker.truth == {}
        wait_until_exact(server, worker)


def test_processes_are_told_apart(server: Server) -> None:
    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(Tracked(server)) for _ in range(8)]
        for number, worker in enumerate(workers):
            worker.begin(f"storm 2 {STORM // 10} {number}")
        for worker in workers:
            worker.finish()
        for worker in workers:
            wait_until_exact(server, worker)
        for worker in workers[::2]:
            worker.kill()
            wait_until_gone(server, worker.pid)
        for worker in workers[1::2]:
            wait_until_exact(server, worker)


# ---- threads ----


@pytest.mark.parametrize("threads", [1, 4, 16])
def test_births_and_frees_on_different_threads(server: Server, threads: int) -> None:
    with Tracked(server) as worker:
        for seed in range(3):
            worker.do(f"storm {threads} {STORM} {seed}")
            wait_until_exact(server, worker)
        worker.do("free 1000000")
        assert worker.truth == {}
        wait_until_exact(server, worker)


def test_threads_that_come_and_go(server: Server) -> None:
    with Tracked(server) as worker:
        worker.do(f"threads {1000 if IS_SANITIZED else 10_000} 1")
        wait_until_exact(server, worker)
        worker.do("threads 1000 50")
        wait_until_exact(server, worker)


def test_signal_handlers_that_report_while_a_thread_does(server: Server) -> None:
    with Tracked(server) as worker:
        worker.do("alloc 0 0 1 1")
        # A handler takes milliseconds under the thread sanitizer, and the next must not be due by then.
        worker.do(f"signals 2 {STORM} {20_000 if IS_THREAD_SANITIZED else 500}")
        assert worker.truth[15, "DRAM"][0] > 0
        wait_until_exact(server, worker)
        assert client_of(server, worker.pid)["untracked"] == 0


# ---- losses ----


def test_a_full_ring_costs_history_and_never_the_truth(server: Server) -> None:
    """While the server stands, rings fill; when it goes on, it is told what is live."""
    with Tracked(server) as worker:
        worker.do("alloc 0 0 100 1000")
        wait_until_exact(server, worker)
        for number in range(3):
            server.freeze()
            worker.do(f"storm 4 {FLOOD} {number}")
            server.thaw()
            wait_until_exact(server, worker)
            client = client_of(server, worker.pid)
            assert client and client["lost_events"] > 0
        worker.do("free 1000000")
        wait_until_exact(server, worker)


def sums_of(process: dict[str, Any]) -> dict[tuple[int, str], tuple[int, int, int]]:
    return {
        (device["id"], name): (region["allocs"], region["frees"], region["peak_bytes"])
        for device in process["devices"]
        for name, region in device["regions"].items()
        if region["allocs"] > 0
    }


@pytest.mark.parametrize("is_told", [False, True])
def test_the_recording_knows_whether_a_loss_was_made_good(
    make_server, tmp_path: Path, is_told: bool
) -> None:
    """A program that ends before it was asked leaves what nobody can call exact."""
    server: Server = make_server().start("--record", str(tmp_path))
    with Tracked(server) as worker:
        worker.do("alloc 0 0 60000 1000")
        wait_until_exact(server, worker)
        server.freeze()
        worker.do(f"storm 4 {FLOOD} 1")
        worker.do("free 1000000")  # some of these are lost too
        if not is_told:
            worker.kill()
        server.thaw()
        if is_told:
            wait_until_exact(server, worker)
            row = row_of(server, worker.pid)
            assert row
            worker.kill()
        wait_until_gone(server, worker.pid)
    server.stop()
    (recording,) = tmp_path.glob("*.ttmem")
    (process,) = run_json("report", str(recording))["processes"]
    assert process["lost_events"] > 0
    assert process["complete"] is is_told and process["history_complete"] is False
    assert ("ended before that was made good" in process["why_incomplete"]) is not is_told
    assert ("not exact:" in run("report", str(recording)).out) is not is_told
    if is_told:
        assert sums_of(process) == sums_of(row)  # allocations, frees and peaks


def test_a_server_that_stands_does_not_hold_up_the_program(server: Server) -> None:
    with Tracked(server) as worker:
        worker.do("alloc 0 0 1 1")
        wait_until_exact(server, worker)
        worker.begin(f"storm 2 {STORM} 1")
        server.freeze()
        worker.finish()
        worker.do(f"storm 2 {STORM} 2")  # all of it while the server stands
        worker.do("threads 100 10")
        assert server.stat()[0] == "T"
        server.thaw()
        wait_until_exact(server, worker)


def test_a_loss_is_made_good_while_the_storm_goes_on(server: Server) -> None:
    """Tellings happen against running threads."""
    with Tracked(server) as worker:
        worker.begin(f"storm 4 {4 * STORM} 1")
        wait_for(lambda: (client_of(server, worker.pid) or {"lives": 0})["lives"] > 0)
        for _ in range(5):
            server.freeze()
            server.thaw()
            server.check()
        worker.finish()
        wait_until_exact(server, worker)


# ---- the server comes and goes ----


def test_a_server_that_starts_late_is_told_all(make_server) -> None:
    server: Server = make_server()
    with Tracked(server) as worker:
        worker.do(f"storm 4 {STORM} 1")
        worker.do("mesh 5 100")
        started = time.monotonic()
        wait_for(lambda: time.monotonic() - started > 1.0)  # the helper has looked in vain
        server.start()
        took_s = wait_until_exact(server, worker)
        print(f"exact {took_s * 1000:.0f} ms after the server was there")


def anonymous_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0])


def test_a_crowd_is_told_to_a_new_server(make_server) -> None:
    """Memory for so many is taken ahead by blocks of 2 MiB, and goes back with them."""
    server: Server = make_server()
    crowd = 120_000 if IS_SANITIZED else 300_000
    with Tracked(server) as worker:
        worker.do(f"alloc 0 0 {crowd} 1000")
        server.start()
        wait_for(lambda: (client_of(server, worker.pid) or {"lives": 0})["lives"] == crowd)
        wait_until_exact(server, worker)
        assert IS_SANITIZED or anonymous_kib(server.pid) > crowd * 56 // 1024
        worker.do("free 1000000")
        assert worker.truth == {}
        wait_until_exact(server, worker)
        if not IS_SANITIZED:
            wait_for(lambda: anonymous_kib(server.pid) < 2048)


def test_a_server_has_memory_for_the_crowd_of_the_last_one(make_server) -> None:
    """However that one ended. When nobody comes for it, it goes back."""
    server: Server = make_server()
    lock = Path(server.socket + ".lock")
    crowd = 120_000
    server.start()
    with Tracked(server) as worker:
        worker.do(f"alloc 0 0 {crowd} 1000")
        wait_until_exact(server, worker)
        # Written when it has changed by a quarter, so it may be a little behind.
        wait_for(lambda: crowd * 3 // 4 <= int(lock.read_text() or 0) <= crowd)
        server.kill()
        server.start()
        wait_until_exact(server, worker)
        server.stop(has_crowd=True)
    assert lock.read_text().split() == [str(crowd)]
    server.start()
    if not IS_SANITIZED:
        wait_for(lambda: anonymous_kib(server.pid) > crowd * 48 // 1024)
        wait_for(lambda: anonymous_kib(server.pid) < 2048)
    wait_for(lambda: lock.read_text().split() == ["0"])
    server.stop()


def test_an_idle_program_is_found_again_by_each_new_server(make_server) -> None:
    server: Server = make_server()
    with Tracked(server) as worker:
        worker.do("alloc 0 0 1000 1000")
        worker.do("mesh 5 100")
        took_s = []
        for number in range(5):
            server.start()
            took_s.append(wait_until_exact(server, worker))
            if number % 2:
                server.stop()
            else:
                server.kill()
        print("exact after", [f"{s * 1000:.0f} ms" for s in took_s])


def test_a_server_that_is_killed_in_the_middle_of_a_storm(make_server) -> None:
    server: Server = make_server()
    server.start()
    with Tracked(server) as worker:
        for number in range(5):
            worker.begin(f"storm 4 {2 * STORM} {number}")
            wait_for(lambda: (client_of(server, worker.pid) or {"events": 0})["events"] > 1000)
            server.kill()
            server.start()
            wait_for(lambda: client_of(server, worker.pid), "the worker to come back")
            server.kill()
            server.start()
            worker.finish()
            wait_until_exact(server, worker)


def test_many_lives_are_told_to_a_new_server(make_server) -> None:
    count = 20_000 if IS_SANITIZED else 300_000
    server: Server = make_server()
    with Tracked(server) as worker:
        worker.do(f"alloc 1 0 {count} 1000")
        server.start()
        wait_until_exact(server, worker)
        server.kill()
        worker.begin(f"free {count // 2}")  # while the new one is told
        server.start()
        worker.finish()
        wait_until_exact(server, worker)


def test_without_a_server_a_program_is_the_same(make_server) -> None:
    server: Server = make_server()  # never started
    with Tracked(server) as worker:
        worker.do("alloc 0 0 100 1000")
        worker.do(f"storm 4 {STORM} 1")
        worker.do("mesh 5 100")
        worker.do("threads 100 10")
        worker.do("fork 3 10")
        assert worker.do("reap")["value"] == 0
        assert worker.do("spawn")["value"] == 0
        assert worker.end("exit 42") == 42  # and not a byte on stdout or stderr


def test_a_server_that_hangs_does_no_harm_and_a_real_one_is_found_later(make_server) -> None:
    """Somebody listens there, accepts, and never reads; then the real one takes the place."""
    server: Server = make_server()
    with socket.socket(socket.AF_UNIX) as fake:
        fake.bind(server.socket)
        fake.listen()
        fake.settimeout(PATIENCE_S)
        with Tracked(server) as worker:
            worker.do("alloc 0 0 100 1000")
            deaf, _ = fake.accept()
            worker.do(f"storm 4 {STORM} 1")
            worker.do("threads 100 10")
            deaf.close()
            fake.close()
            os.unlink(server.socket)
            server.start()
            wait_until_exact(server, worker)


def test_a_server_that_talks_nonsense_does_no_harm(make_server) -> None:
    server: Server = make_server()
    with socket.socket(socket.AF_UNIX) as fake:
        fake.bind(server.socket)
        fake.listen()
        fake.settimeout(PATIENCE_S)
        with Tracked(server) as worker:
            worker.do("alloc 0 0 100 1000")
            for data in (b"\xff" * 4096, os.urandom(65536), b"\x50\0\0\0\0\0\0\0", b""):
                liar, _ = fake.accept()
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    liar.sendall(data)
                worker.do(f"storm 1 {STORM // 10} 1")
                liar.close()
            fake.close()
            os.unlink(server.socket)
            server.start()
            wait_until_exact(server, worker)


# ---- how a program ends ----


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("exit 0", 0),
        ("exit 7", 7),
        ("_exit 8", 8),
        ("quick_exit 9", 9),
        ("return 10", 10),
        ("segv", -signal.SIGSEGV),
    ],
)
def test_the_end_of_a_program_is_its_own_and_takes_its_totals(
    server: Server, line: str, status: int
) -> None:
    with Tracked(server) as stays, Tracked(server) as worker:
        stays.do("alloc 0 0 10 1000")
        worker.do(f"storm 2 {STORM // 10} 1")
        wait_until_exact(server, worker)
        assert worker.end(line) == status
        wait_until_gone(server, worker.pid)
        wait_until_exact(server, stays)


def test_a_program_that_is_killed_takes_its_totals_with_it(server: Server) -> None:
    with Tracked(server) as stays:
        stays.do("alloc 0 0 10 1000")
        for number in range(5):
            with Tracked(server) as worker:
                worker.begin(f"storm 4 {4 * STORM} {number}")
                wait_for(lambda w=worker: client_of(server, w.pid))
                worker.kill()
                wait_until_gone(server, worker.pid)
            wait_until_exact(server, stays)


def test_a_program_that_ends_before_the_server_looks(server: Server) -> None:
    """What it said is read from its memory after its end."""
    with Tracked(server) as worker:
        worker.do("alloc 0 0 10 1000")
        wait_until_exact(server, worker)
        server.freeze()
        worker.do("alloc 0 0 1000 1000")
        worker.do("free 500")
        assert worker.end("_exit 3") == 3
        server.thaw()
        wait_until_gone(server, worker.pid)
        assert server.status()["allocs"] == 1010


# ---- children ----


def test_a_child_is_a_process_of_its_own(server: Server) -> None:
    with Tracked(server) as worker:
        worker.do("alloc 0 0 10 1000")
        worker.do("mesh 2 100")
        for _ in range(3):
            wait_until_exact(server, worker)  # see Tracked: nobody else allocates at a fork
            child = worker.do("fork 5 20")["child"]
            wait_until_exact(server, worker)
            wait_for(lambda child=child: (client_of(server, child) or {"lives": 0})["lives"] == 10)
            row = row_of(server, child)
            assert row and row["unknown_frees"] == 0
            assert {device for device, _ in totals_in(row)} == {5}
            worker.do("alloc 1 1 5 100")
            wait_until_exact(server, worker)
            assert worker.do("reap")["value"] == 0
            wait_until_gone(server, child)
            wait_until_exact(server, worker)


@pytest.mark.skipif(IS_THREAD_SANITIZED, reason="the thread sanitizer has no threads in a child")
def test_a_child_of_a_thread_ends_as_any_other(server: Server) -> None:
    with Tracked(server) as worker:
        worker.do("alloc 0 0 10 1000")
        for _ in range(5):
            wait_until_exact(server, worker)  # see Tracked: nobody else allocates at a fork
            assert worker.do("fork_in_thread")["value"] == 0
        wait_until_exact(server, worker)
        wait_for(lambda: server.status()["processes"] == 1)


def test_a_program_that_starts_others(server: Server) -> None:
    with Tracked(server) as worker:
        worker.do("alloc 0 0 10 1000")
        for _ in range(20):
            assert worker.do("spawn")["value"] == 0
        wait_until_exact(server, worker)
        assert server.status()["processes"] == 1


# ---- on and off ----


def test_nothing_is_tracked_unless_wanted(server: Server) -> None:
    with Tracked(server, env={"TT_ALLOC_TRACKING_ENABLED": None}) as worker:
        assert worker.do("alloc 0 0 10 1000")["is_enabled"] == 0
        assert "tt-mem" not in worker.threads()
        assert server.status()["processes"] == 0
        assert worker.end("exit 5") == 5


def test_tracking_that_is_switched_on_later(server: Server) -> None:
    with Tracked(server, env={"TT_ALLOC_TRACKING_ENABLED": None}) as worker:
        assert worker.do("enable")["value"] == 0
        worker.do("alloc 0 0 10 1000")
        wait_until_exact(server, worker)


def test_a_wish_from_before_the_library_was_used_is_seen_by_a_child_too(server: Server) -> None:
    with Tracked(server, env={"TT_ALLOC_TRACKING_ENABLED": None}) as worker:
        # It is found as soon as the library is loaded.
        wait_for(lambda: run("enable", str(worker.pid), server=server).status == 0)
        child = worker.do("fork 5 20")["child"]  # the first that it does
        wait_for(lambda: (client_of(server, child) or {"lives": 0})["lives"] == 10)
        assert worker.do("reap")["value"] == 0
        worker.do("alloc 0 0 10 1000")
        wait_until_exact(server, worker)


def test_tracking_that_is_switched_off_and_on_again(server: Server) -> None:
    with Tracked(server) as worker:
        worker.do("alloc 0 0 10 1000")
        for _ in range(5):
            wait_until_exact(server, worker)
            assert worker.do("disable")["is_enabled"] == 0
            assert "tt-mem" not in worker.threads()
            assert worker.do("enable")["value"] == 0
            assert "tt-mem" in worker.threads()
            worker.do("alloc 1 1 5 100")
            worker.do("free 2")
        wait_until_exact(server, worker)


def test_frees_of_what_was_allocated_while_off_are_no_unknown_frees(server: Server) -> None:
    with Tracked(server, env={"TT_ALLOC_TRACKING_ENABLED": None}) as worker:
        worker.do("alloc 0 0 10 1000")
        worker.do("enable")
        worker.do("free 10")
        worker.do("alloc 0 0 3 1000")
        wait_until_exact(server, worker)


# ---- liars ----


@pytest.fixture
def steady(server: Server):
    """An honest program beside the liar, and a server that must not mind."""
    with Tracked(server) as worker:
        worker.do("alloc 0 0 10 1000")
        worker.do("mesh 2 100")
        wait_until_exact(server, worker)
        yield worker
        worker.do(f"storm 2 {STORM // 10} 1")
        wait_until_exact(server, worker)
        used = server.cpu_s()
        until = time.monotonic() + 0.3
        wait_for(lambda: time.monotonic() > until)
        assert server.cpu_s() - used < 0.2  # nothing keeps it busy


def wait_until_refused(native: Native) -> None:
    with contextlib.suppress(Closed):
        while True:
            kind, _ = native.read_frame()
            if kind == ERROR:
                break
    native.wait_until_closed()


BAD_HEADERS = {
    "magic": {"magic": 1},
    "version": {"version": 2},
    "no rings": {"ring_count": 0},
    "too many rings": {"ring_count": 4097},
    "more rings than there is room": {"ring_count": 4096},
    "no slots": {"ring_slots": 0},
    "slots that are no power of two": {"ring_slots": 63},
    "many slots": {"ring_slots": 1 << 31},
    "rings that overlap": {"ring_stride": 64},
    "a stride that overflows": {"ring_stride": 1 << 63},
    "rings in the header": {"header_bytes": 0},
    "a header behind the end": {"header_bytes": 0xFFFFFFC0},
    "notes in the rings": {"notes_offset": 4096},
    "notes behind the end": {"notes_offset": 1 << 40},
    "notes that reach over the end": {"notes_bytes": 1 << 31},
}


@pytest.mark.parametrize("what", BAD_HEADERS)
def test_a_segment_whose_header_lies_is_refused(server: Server, steady: Tracked, what: str) -> None:
    with Native(server.socket) as native:
        attach(native, segment(segment_header(**BAD_HEADERS[what])), os.eventfd(0))
        wait_until_refused(native)


def test_an_attachment_needs_two_fds_and_a_sealed_segment(server: Server, steady: Tracked) -> None:
    def plain_file() -> int:
        return os.open(server.folder / "file", os.O_RDWR | os.O_CREAT)

    good = segment_header()
    for fds in (
        [],
        [segment(good)],
        [plain_file(), os.eventfd(0)],
        [os.eventfd(0), segment(good)],
        [os.open("/dev/null", os.O_RDWR), os.eventfd(0)],
        [segment(good, seals=0), os.eventfd(0)],
        [segment(b"", size=0), os.eventfd(0)],
        [segment(good, size=100), os.eventfd(0)],
        [segment(good), plain_file()],
    ):
        with Native(server.socket) as native:
            attach(native, *fds)
            wait_until_refused(native)
    with Native(server.socket) as native:  # one that is good, and another on top of it
        attach(native, segment(good), os.eventfd(0))
        attach(native, segment(good), os.eventfd(0))
        wait_until_refused(native)


def test_fds_that_nobody_asked_for_are_closed(server: Server, steady: Tracked) -> None:
    path = f"/proc/{server.pid}/fd"
    before = len(os.listdir(path))
    for _ in range(50):
        with Native(server.socket) as native:
            null = os.open("/dev/null", os.O_RDWR)
            for data in (frame(99), frame(16), frame(99)):
                socket.send_fds(native.sock, [data], [null] * 20)
            os.close(null)
            native.wait_until_read()
    wait_for(lambda: len(os.listdir(path)) <= before, "the fds to be closed")


def test_an_eventfd_that_is_something_else_neither_stops_nor_busies_the_server(
    server: Server, steady: Tracked
) -> None:
    """Ready for ever, or ready and then not: the server must not wait for it, nor spin."""
    natives = []
    readers, writers = os.pipe()
    os.close(writers)  # hangs up for ever
    one, other = socket.socketpair()
    other.send(b"x")
    ready = os.eventfd(1)  # blocks who reads it twice
    for fd in (readers, os.dup(one.fileno()), os.dup(ready)):
        native = Native(server.socket)
        natives.append(native)
        attach(native, segment(segment_header()), fd)
        server.check()
    assert os.eventfd_read(ready) == 1  # the server has not
    for native in natives:
        native.close()
    for end in (one, other):
        end.close()
    os.close(ready)


def test_random_rings_hurt_nobody_else(server: Server, steady: Tracked) -> None:
    rng = random.Random(4)
    for number in range(20 if IS_SANITIZED else 100):
        with Native(server.socket) as native:
            contents = bytearray(rng.randbytes(1 << 17))
            header = segment_header(used=rng.choice((0, 3, 4, 5, 0xFFFFFFFF)))
            contents[: len(header)] = header
            if number % 2:  # tails that make sense, of records that do not
                for ring in range(4):
                    at = 4096 + ring * (128 + 64 * 64)
                    contents[at : at + 128] = bytes(128)
                    struct.pack_into("<Q", contents, at, rng.randrange(65))
                    for slot in range(64):
                        op = at + 128 + 64 * slot + 60
                        contents[op : op + 4] = bytes((rng.randrange(1, 4), rng.randrange(8), 0, 0))
            attach(native, segment(bytes(contents)), os.eventfd(0))
            native.wait_until_read()
            server.check()


def test_tellings_that_lie_hurt_nobody_else(server: Server, steady: Tracked) -> None:
    rng = random.Random(5)
    with Native(server.socket) as native:  # before any attachment: nobody was asked
        native.send(told(1, told_row(1)) + frame(TOLD_END, struct.pack("<II", 1, 0)))
        native.wait_until_read()
    with Native(server.socket) as native:  # more rows than there are
        attach(native, segment(segment_header()), os.eventfd(0))
        native.send(told(1, told_row(1), count=0xFFFFFFFF))
        wait_until_refused(native)
    for _ in range(20):
        with Native(server.socket) as native:
            attach(native, segment(segment_header()), os.eventfd(0))
            kind, payload = native.read_frame()
            assert kind == TELL
            (epoch,) = struct.unpack_from("<I", payload)
            for _ in range(50):
                rows = [
                    told_row(
                        rng.choice((0, 1, 2, rng.getrandbits(64))),
                        rng.getrandbits(64),
                        rng.choice((0, 1, 1 << 40, rng.getrandbits(64))),
                        rng.choice((0, 1, 1023, 1024, rng.getrandbits(32))),
                        rng.randrange(9),
                    )
                    for _ in range(rng.randrange(20))
                ]
                native.send(told(rng.choice((epoch, epoch + 1, 0, rng.getrandbits(32))), *rows))
            if rng.random() < 0.5:
                native.send(frame(TOLD_END, struct.pack("<II", epoch, 0)))
                native.send(frame(TOLD_END, struct.pack("<II", epoch, 0)))
            native.send(told(epoch, told_row(7)))
            native.wait_until_read()
            server.check()


def test_a_device_that_is_closed_at_once_is_known(server: Server) -> None:
    """By when the server looks, it is open no more."""
    with Tracked(server) as worker:
        worker.do("truth")
        wait_until_exact(server, worker)
        server.freeze()
        for line in ("open 5", "alloc 5 0 3 1000", "free 3", "close 5"):
            worker.do(line)
        server.thaw()
        wait_for(lambda: totals_of_device(server, 5), "the device to be known")
        assert totals_of_device(server, 5)["arch"] == "wormhole_b0"


def totals_of_device(server: Server, number: int) -> dict[str, Any]:
    devices = run_json("monitor", "-a", "--once", server=server)["devices"]
    return next((device for device in devices if device["id"] == number), {})


def test_what_a_telling_says_is_taken_and_swept(server: Server, steady: Tracked) -> None:
    """The honest way through the same door, so that the tests above knock at the right one."""
    with Native(server.socket) as native:
        attach(native, segment(segment_header(used=0)), os.eventfd(0))
        kind, payload = native.read_frame()
        assert kind == TELL
        (epoch,) = struct.unpack_from("<I", payload)
        native.send(told(epoch, told_row(1, 11, 100), told_row(2, 12, 200, devices=3)))
        native.send(frame(TOLD_END, struct.pack("<II", epoch, 0)))
        wait_for(lambda: (client_of(server, os.getpid()) or {"lives": 0})["lives"] == 2)
        assert totals_in(row_of(server, os.getpid())) == {
            (0, "DRAM"): (1, 100, 100),
            (3, "DRAM"): (1, 200, 200),
        }
        server.check()


# ---- the environment ----


@pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer reads the environment in any thread")
def test_no_thread_of_ours_reads_the_environment_of_a_program(make_server) -> None:
    """A program that sets a variable meanwhile would have it read memory that was freed."""
    server = make_server()
    with Tracked(server, {"LD_PRELOAD": os.environ["MAIN_GETENV"]}) as worker:
        worker.do("alloc 0 0 10 1000")
        for _ in range(2):  # our thread looks for a server until it finds one
            server.start()
            wait_until_exact(server, worker)
            server.stop()
        worker.do("disable")
        worker.do("enable")
        worker.do("fork 1 10")
        worker.do("reap")
        assert worker.end("exit 7") == 7
