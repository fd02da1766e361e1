# SPDX-License-Identifier: Apache-2.0
"""
Servers that behave badly: garbage, silence, floods, early leaving, scribbling. The program that
talks to one goes on as if there were none, and a real server that comes afterwards is exact.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import re
import select
import socket
import struct
import threading
from pathlib import Path
from typing import Callable, Iterator

import pytest
from support import (
    IS_SANITIZED,
    TELL,
    Server,
    Tracked,
    frame,
    hello,
    wait_for,
    wait_until_exact,
)

STORM = 10_000 if IS_SANITIZED else 50_000

Behaviour = Callable[["Hostile", socket.socket, list[int]], None]


class Hostile:
    """Listens where a server would. Each connection is given to 'behave', in a thread of its own."""

    def __init__(self, path: str, behave: Behaviour):
        self._path = path
        self._behave = behave
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(8)
        self._threads = [threading.Thread(target=self._accept)]
        self.is_over = threading.Event()
        self.visits = 0
        self.bytes_sent = 0
        self._threads[0].start()

    def _accept(self) -> None:
        while not self.is_over.is_set():
            if not select.select([self._listener], [], [], 0.02)[0]:
                continue
            peer, _ = self._listener.accept()
            thread = threading.Thread(target=self._serve, args=(peer,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, peer: socket.socket) -> None:
        fds: list[int] = []
        with peer, contextlib.suppress(OSError):
            peer.settimeout(0.2)
            fds += socket.recv_fds(peer, 4096, 4)[1]
            self.visits += 1
            self._behave(self, peer, fds)
        for fd in fds:
            os.close(fd)

    def send(self, peer: socket.socket, data: bytes) -> None:
        """As much as the peer takes until the test is over."""
        at = 0
        while at < len(data) and not self.is_over.is_set():
            with contextlib.suppress(TimeoutError):
                sent = peer.send(data[at:])
                at += sent
                self.bytes_sent += sent

    def hold(self, peer: socket.socket, reads: bool = False) -> None:
        """Keeps the connection until the peer leaves it or the test is over."""
        peer.setblocking(False)
        while not self.is_over.wait(0.02):
            with contextlib.suppress(BlockingIOError):
                if not peer.recv(1 << 20, 0 if reads else socket.MSG_PEEK):
                    return

    def stop(self) -> None:
        self.is_over.set()
        for thread in self._threads:
            thread.join()
        self._listener.close()
        os.unlink(self._path)


@contextlib.contextmanager
def hostile(path: str, behave: Behaviour) -> Iterator[Hostile]:
    server = Hostile(path, behave)
    try:
        yield server
    finally:
        server.stop()


# ---- what such a server does; it has read hello and attach, and has their two fds ----


def closes_at_once(server: Hostile, peer: socket.socket, fds: list[int]) -> None:
    pass


def closes_after_half_a_hello(server: Hostile, peer: socket.socket, fds: list[int]) -> None:
    server.send(peer, hello()[:30])


def closes_after_half_a_question(server: Hostile, peer: socket.socket, fds: list[int]) -> None:
    server.send(peer, hello() + ask(1)[:-3])


def closes_in_the_middle_of_an_answer(server: Hostile, peer: socket.socket, fds: list[int]) -> None:
    server.send(peer, hello() + ask(1))
    with contextlib.suppress(TimeoutError):
        peer.recv(100)


def never_answers(server: Hostile, peer: socket.socket, fds: list[int]) -> None:
    server.hold(peer)


def sends_garbage(server: Hostile, peer: socket.socket, fds: list[int]) -> None:
    server.send(peer, random.Random(server.visits).randbytes(1 << 16))
    server.hold(peer)


def announces_a_huge_frame(server: Hostile, peer: socket.socket, fds: list[int]) -> None:
    server.send(peer, struct.pack("<HHI", TELL, 0, 0xFFFFFFFF) + bytes(1 << 16))
    server.hold(peer)


def sends_the_largest_frame_byte_by_byte(
    server: Hostile, peer: socket.socket, fds: list[int]
) -> None:
    for byte in frame(99, bytes(4096)):
        server.send(peer, bytes([byte]))
    server.hold(peer)


def floods_with_unknown_frames(server: Hostile, peer: socket.socket, fds: list[int]) -> None:
    server.send(peer, hello() + frame(99, bytes(1000)) * 20_000)
    server.hold(peer)


def asks_with_wrong_lengths(server: Hostile, peer: socket.socket, fds: list[int]) -> None:
    server.send(peer, hello() + frame(TELL, b"\1") + frame(TELL, struct.pack("<II", 1, 0xFFFFFFFF)))
    server.hold(peer)


def asks_again_and_again_and_never_reads(
    server: Hostile, peer: socket.socket, fds: list[int]
) -> None:
    server.send(peer, hello() + ask(1) * 5000)
    server.hold(peer)


def asks_again_and_again_and_reads(server: Hostile, peer: socket.socket, fds: list[int]) -> None:
    def send() -> None:
        with contextlib.suppress(OSError):
            server.send(peer, hello() + ask(1) * 5000)

    sender = threading.Thread(target=send)
    sender.start()
    server.hold(peer, reads=True)
    sender.join()


def sends_fds(server: Hostile, peer: socket.socket, fds: list[int]) -> None:
    with open("/dev/null", "rb") as null:
        for _ in range(50):
            socket.send_fds(peer, [hello()], [null.fileno()] * 200)
    server.hold(peer)


def sends_back_what_it_got(server: Hostile, peer: socket.socket, fds: list[int]) -> None:
    for _ in range(50):
        socket.send_fds(peer, [ask(1)], fds)
    server.hold(peer, reads=True)


def sends_an_error(server: Hostile, peer: socket.socket, fds: list[int]) -> None:
    server.send(peer, frame(2, b"no %s%n\n" * 100))
    server.hold(peer)


def fills_the_socket_that_wakes(server: Hostile, peer: socket.socket, fds: list[int]) -> None:
    with socket.socket(fileno=os.dup(fds[1])) as wake:
        wake.setblocking(False)
        with contextlib.suppress(OSError):
            while not server.is_over.is_set():
                wake.send(b"x" * 1000)
    server.hold(peer)


def shuts_the_socket_that_wakes(server: Hostile, peer: socket.socket, fds: list[int]) -> None:
    with socket.socket(fileno=os.dup(fds[1])) as wake:
        wake.shutdown(socket.SHUT_RDWR)
    server.hold(peer)


def tries_to_shrink_the_segment(server: Hostile, peer: socket.socket, fds: list[int]) -> None:
    with pytest.raises(PermissionError):
        os.ftruncate(fds[0], 0)
    server.hold(peer)


BEHAVIOURS = [
    closes_at_once,
    closes_after_half_a_hello,
    closes_after_half_a_question,
    closes_in_the_middle_of_an_answer,
    never_answers,
    sends_garbage,
    announces_a_huge_frame,
    sends_the_largest_frame_byte_by_byte,
    floods_with_unknown_frames,
    asks_with_wrong_lengths,
    asks_again_and_again_and_never_reads,
    asks_again_and_again_and_reads,
    sends_fds,
    sends_back_what_it_got,
    sends_an_error,
    fills_the_socket_that_wakes,
    shuts_the_socket_that_wakes,
    tries_to_shrink_the_segment,
]
# How often the program comes: once where it has no reason to leave, and where leaving takes 2 s.
VISITS = {
    never_answers: 1,
    sends_the_largest_frame_byte_by_byte: 1,
    floods_with_unknown_frames: 1,
    asks_again_and_again_and_never_reads: 1,
    asks_again_and_again_and_reads: 1,
    sends_fds: 1,
    sends_back_what_it_got: 1,
    fills_the_socket_that_wakes: 1,
    shuts_the_socket_that_wakes: 1,
    tries_to_shrink_the_segment: 1,
}


def ask(epoch: int) -> bytes:
    return frame(TELL, struct.pack("<II", epoch, 0))


def fds_of(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def resident_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
    assert found
    return int(found[1]) * 1024


def switch_and_fork_and_end(worker: Tracked) -> None:
    worker.do("alloc 0 0 20000 1000")
    for _ in range(2):
        worker.do("disable")
        worker.do("enable")
    worker.do("fork 1 1000")
    worker.do("reap")
    assert worker.end("exit 7") == 7  # and nothing was printed


@pytest.mark.parametrize("behave", BEHAVIOURS, ids=lambda behave: behave.__name__)
def test_a_program_goes_on_whatever_its_server_does(
    make_server: Callable[[], Server], behave: Behaviour
) -> None:
    real = make_server()
    with Tracked(real) as worker:
        worker.do(f"storm 2 {STORM} 0")  # without any server
        fds, resident = fds_of(worker.pid), resident_bytes(worker.pid)
        with hostile(real.socket, behave) as bad:
            wait_for(lambda: bad.visits >= VISITS.get(behave, 2), "the program to come")
            worker.do(f"storm 2 {STORM} 1")
            worker.do("threads 100 4")
            assert fds_of(worker.pid) <= fds + 1
            if not IS_SANITIZED:
                assert resident_bytes(worker.pid) < resident + (16 << 20)
            with Tracked(real) as other:
                switch_and_fork_and_end(other)
        real.start()
        wait_until_exact(real, worker)
        assert worker.end("exit 7") == 7


def scribbles(server: Hostile, peer: socket.socket, fds: list[int]) -> None:
    """Writes over all that a reader of the segment can write to: the heads of its rings above all."""
    rng = random.Random(server.visits)
    with mmap.mmap(fds[0], os.fstat(fds[0]).st_size) as memory:
        (header_bytes,) = struct.unpack_from("<I", memory, 12)
        (stride,) = struct.unpack_from("<Q", memory, 32)
        while not server.is_over.is_set():
            for number in range(40):
                at = header_bytes + number * stride
                memory[at : at + 128] = rng.choice((bytes(128), b"\xff" * 128, rng.randbytes(128)))
            for _ in range(200):
                at = rng.randrange(64, len(memory) - 8)
                memory[at : at + 8] = rng.choice((bytes(8), b"\xff" * 8, rng.randbytes(8)))
            memory[64:72] = bytes(8)  # how many rings and notes there are


def clears_owners(server: Hostile, peer: socket.socket, fds: list[int]) -> None:
    """Says of each ring that no thread has it."""
    with mmap.mmap(fds[0], os.fstat(fds[0]).st_size) as memory:
        (header_bytes,) = struct.unpack_from("<I", memory, 12)
        (stride,) = struct.unpack_from("<Q", memory, 32)
        while not server.is_over.is_set():
            memory[64:72] = bytes(8)
            for number in range(40):
                at = header_bytes + number * stride + 16
                memory[at : at + 4] = bytes(4)


@pytest.mark.parametrize("behave", [scribbles, clears_owners], ids=lambda behave: behave.__name__)
def test_a_program_outlives_a_server_that_writes_over_the_shared_memory(
    make_server: Callable[[], Server], behave: Behaviour
) -> None:
    """What is lost is what is in there; no thread of the program comes to harm."""
    real = make_server()
    with hostile(real.socket, behave) as bad, Tracked(real) as worker:
        worker.do("alloc 0 0 1000 1000")
        wait_for(lambda: bad.visits >= 1, "the program to come")
        for seed in range(6):
            worker.do(f"storm 8 {STORM} {seed}")
            worker.do("threads 100 16")
        switch_and_fork_and_end(worker)
