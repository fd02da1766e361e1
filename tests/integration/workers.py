# SPDX-License-Identifier: Apache-2.0
"""Clients in processes of their own, which can be killed and can be other users."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing.connection
import os
import signal
import socket
import subprocess
import sys
import traceback
from typing import TYPE_CHECKING, Any, Callable

import pytest
from basics import PATIENCE_S
from commands import become
from original import Original, QUERY, Stream

if TYPE_CHECKING:
    from servers import Server


class Worker:
    """
    A client in a process of its own. Its methods are those of Original, carried out over there;
    each returns when it is done. 'start' does not wait, 'finish' gets the result.
    """

    def __init__(self, path: str, layout: int = 144, uid: int | None = None):
        self._ours, theirs = multiprocessing.connection.Pipe()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                gc.disable()  # objects of the parent must not close fds that are ours by now
                _close_all_but(theirs.fileno())
                if uid is not None:
                    become(uid)
                _serve_worker(theirs, path, layout)
                status = 0
            except (EOFError, BrokenPipeError):
                status = 0
            except BaseException:  # noqa: BLE001
                traceback.print_exc()
            finally:
                os._exit(status)
        theirs.close()
        self.has_ended = False
        try:
            self.finish()  # it has connected
        except BaseException:
            self.kill()
            raise

    def start(self, method: str, *args: Any, **options: Any) -> None:
        self._ours.send((method, args, options))

    def finish(self) -> Any:
        if not self._ours.poll(2 * PATIENCE_S):
            pytest.fail("a worker hangs")
        is_error, value = self._ours.recv()
        if is_error:
            raise value
        return value

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method.startswith("_"):
            raise AttributeError(method)

        def call(*args: Any, **options: Any) -> Any:
            self.start(method, *args, **options)
            return self.finish()

        return call

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Ends it and waits until it is gone."""
        if self.has_ended:
            return
        self.has_ended = True
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)
        os.waitpid(self.pid, 0)
        self._ours.close()

    def leave(self) -> None:
        """Lets it end by itself."""
        if self.has_ended:
            return
        self.has_ended = True
        self._ours.close()
        os.waitpid(self.pid, 0)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def _close_all_but(*kept: int) -> None:
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd > 2 and fd not in kept:
            with contextlib.suppress(OSError):
                os.close(fd)


class _WorkerClient(Original):
    """What a worker can do besides talking."""

    def __init__(self, path: str, layout: int):
        self.path = path
        super().__init__(path, layout)

    def hang_up(self) -> None:
        self.sock.close()

    def reconnect(self) -> None:
        Stream.__init__(self, self.path)

    def say_and_hang_up(self, count: int) -> None:
        """Asks, says a lot in one piece, asks again and is gone."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        question = self.message(QUERY, device_id=0)
        events = b"".join(self.alloc_message(0, 1, ident) for ident in range(count))
        self.send(question * 2 + events + question)
        self.sock.close()

    def leave_child_with_connection(self) -> int:
        """Forks a child that keeps our connection and does nothing; returns its pid."""
        pid = os.fork()
        if pid == 0:
            _close_all_but(self.sock.fileno())
            while True:
                signal.pause()
        return pid

    def leave_child_that_talks(self, messages: int) -> int:
        """Forks a child that goes on allocating on our connection, then waits for its end."""
        pid = os.fork()
        if pid == 0:
            _close_all_but(self.sock.fileno())
            with contextlib.suppress(OSError):
                ident = 0x5000_0000
                while True:
                    self.burst(messages, first=ident)
                    ident += messages
            os._exit(0)
        return pid

    def churn(self, device: int, seed: int, rounds: int, kept: int = 64) -> int:
        """
        Allocates and frees at full speed, ids and sizes of its own; returns the bytes it holds in
        the end.
        """
        live: list[tuple[int, int]] = []
        ident = (os.getpid() << 32) + seed
        for _ in range(rounds):
            pieces = []
            for _ in range(32):
                ident += 1
                size = 1 + (ident * 2654435761 >> 7) % 100000
                pieces.append(self.alloc_message(device, size, ident, ident % 5))
                live.append((ident, size))
                if len(live) > kept:
                    old, _ = live.pop(0)
                    pieces.append(self.free_message(device, old))
            self.send(b"".join(pieces))
        self.sync()
        return sum(size for _, size in live)

    def reconnect_often(self, times: int) -> None:
        """One allocation on each of many connections."""
        for ident in range(times):
            self.alloc(0, 1, ident)
            if ident % 2:
                self.sync()
            self.sock.close()
            self.reconnect()
        self.sync()


def _serve_worker(pipe: Any, path: str, layout: int) -> None:
    client = _WorkerClient(path, layout)
    pipe.send((False, None))
    while True:
        method, args, options = pipe.recv()
        try:
            answer = (False, getattr(client, method)(*args, **options))
        except Exception as error:  # noqa: BLE001
            answer = (True, error)
        pipe.send(answer)


def start_named_client(server: Server, *argv: str) -> subprocess.Popen[bytes]:
    """
    A client with an argv of its own that holds 4096 bytes of DRAM on device 0 until its stdin is
    closed. Returns once the server knows of them.
    """
    program = server.folder / "c.py"  # a short name: the server keeps 255 bytes of a command line
    program.write_text(
        "import socket,struct,sys\n"
        f"s=socket.socket(socket.AF_UNIX); s.connect({server.legacy!r})\n"
        "m=lambda t: struct.pack('<B3xiQB3xiQQ4Q2Q2Q6I4I',t,0,4096,0,0,77,*[0]*19)\n"
        "s.sendall(m(1)+m(3)); s.recv(144,socket.MSG_WAITALL)\n"
        "sys.stdout.write('x'); sys.stdout.flush(); sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-IS", str(program), *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    assert process.stdout.read(1) == b"x"
    return process


def end_named_client(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin and process.stdout
    process.stdin.close()
    process.stdout.close()
    process.wait(PATIENCE_S)
