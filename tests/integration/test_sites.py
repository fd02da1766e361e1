# SPDX-License-Identifier: Apache-2.0
"""What each site holds, told as sums; and the lives of one device or one origin."""

from __future__ import annotations

import os
import re
import socket
import struct
import threading
from pathlib import Path

import pytest
from screens import Screen, needs_tmux
from support import (
    DRAM,
    ERROR,
    F_LIVES,
    F_ORIGIN,
    F_PROCESS,
    F_PROCESS_DEVICE,
    F_SITE,
    F_SITE_SUM,
    GET_LIVES,
    GET_LIVES_OF,
    GET_SITES,
    HELLO,
    L1,
    NOBODY,
    SOMEBODY,
    Native,
    Server,
    Tracked,
    frame,
    left_out_of,
    lives_of,
    needs_root,
    run,
    sums_of,
    totals_of,
    wait_for,
    wait_until_exact,
)

class OlderServer:
    """A server as it was before it had sums: the real one, whose hello has no features."""

    def __init__(self, server: Server, folder: Path):
        self.path = str(folder / "older.sock")
        self.requests: list[int] = []
        self._target = server.socket
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                ours, _ = self._listener.accept()
            except OSError:
                return
            theirs = socket.socket(socket.AF_UNIX)
            theirs.connect(self._target)
            threading.Thread(target=self._pass_on, args=(ours, theirs, True), daemon=True).start()
            threading.Thread(target=self._pass_on, args=(theirs, ours, False), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, is_request: bool) -> None:
        with source, sink, source.makefile("rb") as frames:
            try:
                while head := frames.read(8):
                    kind, _, length = struct.unpack("<HHI", head)
                    payload = frames.read(length)
                    if is_request:
                        self.requests.append(kind)
                    elif kind == HELLO:
                        payload = payload[:8] + bytes(8) + payload[16:]
                    sink.sendall(head + payload)
            except OSError:
                pass  # one of them has hung up

    def close(self) -> None:
        self._listener.close()


SITES_MAX = 16384
LIVES_MAX = 65536
# So narrow that it shows no ages.
SCREEN = {"COLUMNS": "90", "LINES": "30", "LC_ALL": "C.UTF-8"}


def sites_request(lines: int = 0) -> bytes:
    return struct.pack("<II", lines, 0)


def lives_request(
    device: int = 0,
    region: int = DRAM,
    origin_region: int = DRAM,
    pid: int = 0,
    origin: int = 0,
    most: int = 0,
) -> bytes:
    return struct.pack("<IIHBBiII", most, 1, device, region, origin_region, pid, origin, 0)


def origin_numbers(frames: list[tuple[int, bytes]]) -> list[int]:
    return [struct.unpack_from("<I", payload, 8)[0] for kind, payload in frames if kind == F_ORIGIN]


def test_sums_are_those_of_the_lives(server: Server) -> None:
    with server.client() as client, Native(server.socket) as stream:
        client.burst(1000, 3)
        client.burst(500, 7, first=5000, device=1)
        client.alloc(0, 100, 9999, region=L1)
        for ident in range(1, 201):
            client.free(0, ident)
        client.alloc(0, 50, 300)  # the same id again: the older life is replaced
        client.sync()
        frames = stream.ask(GET_SITES, sites_request())
        assert sorted(sums_of(frames)) == [(0, 1, 100), (0, 500, 3500), (0, 800, 799 * 3 + 50)]
        assert totals_of(frames) == (1301, 100 + 3500 + 799 * 3 + 50)
        assert left_out_of(frames) == (0, 0, 0)
        kinds = [kind for kind, _ in frames]
        assert F_LIVES not in kinds
        assert kinds.count(F_SITE) == kinds.count(F_SITE_SUM) == 3
        client.send(b"".join(client.free_message(1, i) for i in range(5000, 5500)))
        client.sync()
        assert len(sums_of(stream.ask(GET_SITES, sites_request()))) == 2  # one holds nothing
    server.check()


def test_sums_follow_a_tracked_process(server: Server) -> None:
    with Tracked(server) as worker, Native(server.socket) as stream:
        for part in range(3):
            worker.do(f"within {part}")
            worker.do(f"alloc {part} 0 100 2048")
        worker.do("free 50")
        wait_until_exact(server, worker)
        frames = stream.ask(GET_SITES, sites_request(2))
        live, size = totals_of(frames)
        assert live == sum(live for _, live, _ in sums_of(frames)) == 250
        assert size == sum(size for _, _, size in sums_of(frames))
        assert len(origin_numbers(frames)) == len(set(origin_numbers(frames))) == 3
        worker.kill()
        wait_for(lambda: server.status()["processes"] == 0)
        assert sums_of(stream.ask(GET_SITES, sites_request())) == []
    server.check()


def test_many_questions_at_once_are_answered_one_by_one(server: Server) -> None:
    with server.client() as client, Native(server.socket) as stream:
        client.burst(10, 3)
        client.sync()
        stream.send(frame(GET_SITES, sites_request()) * 500)
        for _ in range(500):
            assert sums_of(stream.read_answer()) == [(0, 10, 30)]
        assert sums_of(stream.ask(GET_SITES, sites_request())) == [(0, 10, 30)]


def test_too_many_sites_leave_the_smallest_out_and_say_so(server: Server) -> None:
    """Each process has a site for each of 1024 devices and five regions."""
    per_process = 1024 * 5
    with (
        server.worker() as a,
        server.worker() as b,
        server.worker() as c,
        server.worker() as large,
        Native(server.socket) as stream,
    ):
        for size, worker in ((16, a), (16, b), (16, c), (4096, large)):
            for region in range(5):
                worker.alloc_everywhere(region, size)
            worker.sync()
        frames = stream.ask(GET_SITES, sites_request())
        sums = sums_of(frames)
        beyond = 4 * per_process - SITES_MAX
        assert len(sums) == SITES_MAX
        assert left_out_of(frames) == (beyond, beyond, beyond * 16)
        assert sum(1 for _, _, size in sums if size == 4096) == per_process


def test_lives_of_a_device_and_of_an_origin_are_picked(server: Server) -> None:
    with server.client() as client, server.worker() as other, Native(server.socket) as stream:
        client.burst(1000, 3)
        client.burst(400, 5, first=5000, device=1)
        client.alloc(0, 100, 1, region=L1)
        client.sync()
        other.burst(30, 9)
        other.sync()
        frames = stream.ask(GET_LIVES_OF, lives_request(device=0, region=DRAM, pid=-1))
        assert sorted(size for _, size in lives_of(frames)) == [3] * 1000 + [9] * 30
        assert left_out_of(frames) == (0, 0, 0)
        kinds = [kind for kind, _ in frames]
        assert kinds.count(F_PROCESS) == 2 and F_PROCESS_DEVICE not in kinds
        # Those of an origin come wherever they lie: nothing is known of these, which is origin 0.
        frames = stream.ask(GET_LIVES_OF, lives_request(0, L1, DRAM, other.pid, 0))
        assert sorted(size for _, size in lives_of(frames)) == [9] * 30 + [100]
        # What others do not need of the room, the origin has; and the other way round.
        frames = stream.ask(GET_LIVES_OF, lives_request(pid=os.getpid(), most=100))
        sizes = [size for _, size in lives_of(frames)]
        assert len(sizes) == 100 and sizes.count(9) == 30
        assert left_out_of(frames) == (0, 1430 - 100, 0)
        frames = stream.ask(GET_LIVES_OF, lives_request(pid=other.pid, most=100))
        sizes = [size for _, size in lives_of(frames)]
        assert len(sizes) == 100 and sizes.count(9) == 30


def test_so_many_lives_are_cut_and_half_of_them_are_of_the_origin(server: Server) -> None:
    with server.client() as client, server.worker() as other, Native(server.socket) as stream:
        client.burst(100_000, 3)
        client.sync()
        other.burst(70_000, 9)
        other.sync()
        frames = stream.ask(GET_LIVES_OF, lives_request(pid=other.pid))
        sizes = [size for _, size in lives_of(frames)]
        assert sizes.count(3) == sizes.count(9) == LIVES_MAX // 2
        assert left_out_of(frames) == (0, 170_000 - LIVES_MAX, 0)
        frames = stream.ask(GET_LIVES_OF, lives_request(pid=other.pid, most=10))
        assert len(lives_of(frames)) == 10
        assert left_out_of(frames) == (0, 169_990, 0)
        frames = stream.ask(GET_LIVES_OF, lives_request(pid=other.pid, most=2**32 - 1))
        assert len(lives_of(frames)) == LIVES_MAX
        assert len(lives_of(stream.ask(GET_LIVES, b"\0" * 8))) == 170_000
    server.check()


@pytest.mark.parametrize("wrong", [{"device": 1024}, {"region": 7}, {"origin_region": 255}])
def test_lives_of_what_is_none_are_refused(server: Server, wrong: dict[str, int]) -> None:
    with Native(server.socket) as stream:
        stream.send(frame(GET_LIVES_OF, lives_request(**wrong)))
        kind, payload = stream.read_frame()
        assert kind == ERROR and b"no device or region" in payload


def test_a_reader_that_leaves_amid_chosen_lives_hurts_nobody(server: Server) -> None:
    with server.client() as client:
        client.burst(60_000)
        client.sync()
        for _ in range(10):
            with Native(server.socket) as stream:
                stream.send(frame(GET_LIVES_OF, lives_request()))
                stream.receive(100)
        client.send(b"".join(client.free_message(0, i) for i in range(1, 60_001)))
        assert client.query()["dram_allocated"] == 0
        server.check()


@needs_root
def test_a_foreign_user_sees_no_sites_of_others(server: Server) -> None:
    with server.worker() as roots, server.worker(uid=NOBODY) as nobodys:
        roots.burst(5, 1000)
        roots.sync()
        nobodys.burst(3, 200)
        nobodys.sync()
        for uid, shown in ((0, "5  3"), (NOBODY, "3"), (SOMEBODY, "")):
            text = run("top", "--snapshot", "--view", "3", server=server, uid=uid).out
            counts = [line.split()[1] for line in text.splitlines() if "original protocol" in line]
            assert sorted(counts, reverse=True) == shown.split()
            assert ("only other users have memory" in text) == (uid == SOMEBODY)


def test_an_older_server_is_asked_for_lives_and_looks_the_same(
    server: Server, folder: Path
) -> None:
    def top(path: str) -> list[str]:
        text = run("top", "--snapshot", "--view", "3", "--socket", path, env=SCREEN).out
        return re.sub(r"\d\d:\d\d:\d\d", "", text).splitlines()

    older = OlderServer(server, folder)
    with Tracked(server) as worker:
        for part in range(3):
            worker.do(f"within {part}")
            worker.do(f"alloc {part} {part % 2} 100 2048")
        worker.do("free 50")
        wait_until_exact(server, worker)
        lines = top(server.socket)
        assert sum(f" {worker.pid} " in line for line in lines) == 3, lines
        assert any(line.startswith("device 1 L1: the banks") for line in lines), lines
        assert top(older.path) == lines
        assert GET_LIVES in older.requests
        assert not {GET_SITES, GET_LIVES_OF} & set(older.requests)
    older.close()


@needs_tmux
def test_the_selected_origin_is_looked_at_closer(server: Server, folder: Path) -> None:
    env = {"TTMEM_SOCKET": server.socket, "XDG_CONFIG_HOME": str(folder / "config")}
    with Tracked(server) as worker:
        for part, region in ((0, 0), (1, 1)):
            worker.do(f"within {part}")
            worker.do(f"alloc {part} {region} {100 - part} 65536")
        wait_until_exact(server, worker)
        with Screen(folder, "top", "--view", "3", "-r", "100", env=env) as screen:
            screen.wait_for("in part_0", "in part_1", "selected")
            assert "asking" not in screen.wait_for("device 0 DRAM")
            screen.keys("Down")
            screen.wait_until(
                lambda text: "device 1 L1" in text and "asking" not in text, "the other bank"
            )
            screen.keys("Enter")
            screen.wait_for("99 allocations", "ages", "addresses, the youngest first", "part_1")
            screen.keys("Up")
            screen.wait_for("100 allocations", "device 0 DRAM", "addresses, the youngest first")
            worker.do("free 30")
            screen.wait_until(
                lambda text: re.search(r"\b(7\d|8\d|9\d) allocations", text) is not None,
                "what was freed to go",
            )
