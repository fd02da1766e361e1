# SPDX-License-Identifier: Apache-2.0
"""What the integration and stress tests share.

Server        a real `tt-mem serve` on private sockets, watched for sanitizer reports
Original      a stand-in of the original client and monitor, in each of its three layouts
Native        a client of the native protocol, byte by byte
Worker        a client in a process of its own: can be killed, can be another user
run, run_json our own commands

Nothing here waits for time: waits are for events, or for a condition that is asked again and again
until a limit that is only there to end a test that hangs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import gc
import json
import multiprocessing.connection
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import traceback
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

TT_MEM = os.environ.get("TT_MEM", "tt-mem")
LONG = os.environ.get("TTM_LONG", "") not in ("", "0")
IS_ROOT = os.geteuid() == 0
NOBODY = 65534
SOMEBODY = 65533

needs_root = pytest.mark.skipif(not IS_ROOT, reason="needs root, to be several users")


def _is_sanitized() -> bool:
    with contextlib.suppress(OSError):
        binary = Path(shutil.which(TT_MEM) or TT_MEM).read_bytes()
        return b"__asan_init" in binary or b"__tsan_init" in binary or b"__ubsan_" in binary
    return False


IS_SANITIZED = _is_sanitized()
SLOWNESS = 10 if IS_SANITIZED else 1

# Ends a test that hangs; a passing test never gets near it.
PATIENCE_S = 30.0 * (4 if IS_SANITIZED else 1)

SANITIZER_WORDS = ("Sanitizer", "runtime error:", "Assertion")


def wait_for(
    condition: Callable[[], Any], what: str = "a condition", timeout_s: float = PATIENCE_S
) -> Any:
    """Asks until the answer is true and returns it."""
    until = time.monotonic() + timeout_s
    pause_s = 0.0005
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > until:
            pytest.fail(f"waited {timeout_s:.0f} s for {what}")
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.02)


# --- commands ----------------------------------------------------------------------------------


def clean_env(**extra: str | None) -> dict[str, str]:
    """The environment of a command: ours without what would point it to another server."""
    env = {
        k: v
        for k, v in os.environ.items()
        if k not in ("TTMEM_SOCKET", "NO_COLOR", "COLUMNS", "LINES", "NOTIFY_SOCKET", "LANG")
        and not k.startswith("LC_")
    }
    env["LC_ALL"] = "C.UTF-8"
    for key, value in extra.items():
        if value is None:
            env.pop(key, None)
        else:
            env[key] = value
    return env


def become(uid: int) -> None:
    """In a new process: be another user from here on."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def assert_no_sanitizer_report(text: str, who: str) -> None:
    for word in SANITIZER_WORDS:
        assert word not in text, f"{who} reported:\n{text}"


@dataclasses.dataclass
class Result:
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def complains(self, status: int) -> str:
        """It failed with that status and one line that says why; returns the line."""
        assert self.status == status, self
        assert self.out == "", self
        assert self.err.count("\n") == 1 and self.err.startswith("tt-mem"), self
        return self.err.strip()


_reachable: str | None = None


def tt_mem_for_all() -> str:
    """The program's path, or that of a copy where other users cannot reach the original."""
    global _reachable
    if _reachable is None:
        path = Path(shutil.which(TT_MEM) or TT_MEM).resolve()
        if all(parent.stat().st_mode & 0o001 for parent in path.parents):
            _reachable = str(path)
        else:
            folder = tempfile.mkdtemp(prefix="ttm-bin-", dir="/tmp")
            os.chmod(folder, 0o755)
            _reachable = shutil.copy(path, folder)
            import atexit

            atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return _reachable


def run(
    *args: str | os.PathLike[str],
    server: "Server | None" = None,
    uid: int | None = None,
    env: dict[str, str | None] | None = None,
    stdout: Any = subprocess.PIPE,
    timeout_s: float = 2 * PATIENCE_S,
) -> Result:
    """Runs a command to its end. With 'server' it talks to that one."""
    full_env = clean_env(**({"TTMEM_SOCKET": server.socket} if server else {}), **(env or {}))
    done = subprocess.run(
        [tt_mem_for_all() if uid is not None else TT_MEM, *map(str, args)],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=full_env,
        timeout=timeout_s,
        check=False,
        preexec_fn=(lambda: become(uid)) if uid is not None else None,
    )
    result = Result(
        done.returncode,
        (done.stdout or b"").decode("utf-8", "surrogateescape"),
        done.stderr.decode("utf-8", "surrogateescape"),
    )
    assert_no_sanitizer_report(result.err, f"tt-mem {' '.join(map(str, args))}")
    return result


def run_ok(*args: str | os.PathLike[str], **options: Any) -> Result:
    result = run(*args, **options)
    assert result.status == 0, result
    assert result.err == "", result
    return result


def run_json(*args: str | os.PathLike[str], **options: Any) -> Any:
    return run_ok(*args, "--json", **options).json


def run_on_terminal(
    *args: str, server: "Server", env: dict[str, str | None] | None = None
) -> tuple[int, str]:
    """Runs a command whose stdout is a terminal; returns its status and what it wrote there."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [TT_MEM, *args],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        env=clean_env(**{"TTMEM_SOCKET": server.socket, "TERM": "xterm", **(env or {})}),
    )
    os.close(theirs)
    written = b""
    with contextlib.suppress(OSError):  # EIO: the other side has closed
        while piece := os.read(ours, 65536):
            written += piece
    os.close(ours)
    return process.wait(PATIENCE_S), written.decode("utf-8")


class Command:
    """A command that goes on: its lines are read as they come."""

    def __init__(
        self,
        *args: str,
        server: "Server",
        env: dict[str, str | None] | None = None,
        uid: int | None = None,
    ):
        self._buffer = b""
        self._errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [tt_mem_for_all() if uid is not None else TT_MEM, *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=clean_env(TTMEM_SOCKET=server.socket, **(env or {})),
            preexec_fn=(lambda: become(uid)) if uid is not None else None,
        )
        assert self.process.stdout
        self._fd = self.process.stdout.fileno()
        os.set_blocking(self._fd, False)

    def read_line(self, timeout_s: float = PATIENCE_S) -> str | None:
        """The next line, None when there is none in time, "" at the end."""
        until = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            left_s = until - time.monotonic()
            if not select.select([self._fd], [], [], max(left_s, 0))[0]:
                return None
            piece = os.read(self._fd, 1 << 20)
            if not piece:
                rest, self._buffer = self._buffer, b""
                return rest.decode()
            self._buffer += piece
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line.decode() + "\n"

    def read_until(self, condition: Callable[[str], bool]) -> list[str]:
        """Lines up to and with the first that is meant."""
        lines = []
        while True:
            line = self.read_line()
            assert line, f"no such line, and {self.errors()!r} after {''.join(lines[-20:])}"
            lines.append(line)
            if condition(line):
                return lines

    def errors(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace")

    def stop(self, with_signal: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(with_signal)
        status = self.process.wait(PATIENCE_S)
        assert_no_sanitizer_report(self.errors(), "a command")
        if self.process.stdout:
            self.process.stdout.close()
        return status

    def __enter__(self) -> "Command":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.stop()


class Tail(Command):
    """`tt-mem tail`, used once its first line has come."""

    MARK = 0x7A11_0000

    def __init__(self, *args: str, server: "Server", marker: "Original", **options: Any):
        super().__init__("tail", *args, server=server, **options)
        self._marker = marker
        self._mark = self.MARK
        # It says nothing when it has subscribed, so events are made until it shows one.
        until = time.monotonic() + PATIENCE_S
        while True:
            self.make_mark()
            if self.read_line(0.02):
                break
            assert time.monotonic() < until and self.process.poll() is None, self.errors()
        self.lines_until_mark()

    def make_mark(self) -> str:
        """One allocation with an id of its own; returns how the id is written."""
        self._mark += 1
        self._marker.alloc(0, 1, self._mark)
        self._marker.free(0, self._mark)
        self._marker.sync()
        return f"0x{self._mark:x}"

    def lines_until_mark(self) -> list[str]:
        """All lines that are due, without those of marks."""
        mark = self.make_mark()
        shown = (mark, f'"id":{self._mark},')
        lines = self.read_until(lambda line: any(s in line for s in shown) and "free" in line.lower())
        marks = range(self.MARK, self._mark + 1)
        return [
            line
            for line in lines
            if not any(
                int(found, 0) in marks for found in re.findall(r'(?:0x[0-9a-f]+)|(?<="id":)\d+', line)
            )
        ]


# --- the server --------------------------------------------------------------------------------


class Server:
    """A `tt-mem serve` with a folder of its own."""

    def __init__(self, folder: Path, name: str = "s"):
        self.folder = folder
        self.socket = str(folder / f"{name}.sock")
        self.legacy = str(folder / f"{name}.old")
        self.stdout_path = folder / f"{name}.out"
        self.stderr_path = folder / f"{name}.err"
        self._notify_path = str(folder / f"{name}.ntf")
        self.process: subprocess.Popen[bytes] | None = None
        self.notifications: list[str] = []

    def start(
        self,
        *args: str,
        uid: int | None = None,
        stdout: Any = None,
        prepare: Callable[[], None] | None = None,
        env: dict[str, str | None] | None = None,
        has_legacy: bool = True,
    ) -> "Server":
        """Returns once it listens."""
        assert self.process is None

        def in_child() -> None:
            if prepare:
                prepare()
            if uid is not None:
                become(uid)

        machine = self.folder / "root"  # one without cards, whatever this one has
        machine.mkdir(exist_ok=True)
        with contextlib.suppress(FileExistsError):
            (machine / "proc").symlink_to("/proc")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._notify_path)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.bind(self._notify_path)
            os.chmod(self._notify_path, 0o666)
            with open(self.stderr_path, "ab") as err, open(self.stdout_path, "ab") as out:
                self.process = subprocess.Popen(
                    [
                        tt_mem_for_all() if uid is not None else TT_MEM,
                        "serve",
                        "--socket",
                        self.socket,
                        *(["--legacy-socket", self.legacy] if has_legacy else ["--no-legacy"]),
                        *args,
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=out if stdout is None else stdout,
                    stderr=err,
                    env=clean_env(
                        **{
                            "NOTIFY_SOCKET": self._notify_path,
                            "TTMEM_ROOT": str(machine),
                            **(env or {}),
                        }
                    ),
                    preexec_fn=in_child,
                )
            pidfd = os.pidfd_open(self.process.pid)
            try:
                ready = select.select([notify, pidfd], [], [], PATIENCE_S)[0]
            finally:
                os.close(pidfd)
            if notify not in ready:
                self.process.kill()
                self.process.wait()
                self.process = None
                pytest.fail(f"the server did not start: {self.stderr}")
            self.notifications.append(notify.recv(4096).decode())
        assert self.notifications[-1] == "READY=1"
        return self

    @property
    def pid(self) -> int:
        assert self.process
        return self.process.pid

    @property
    def stderr(self) -> str:
        return self.stderr_path.read_text("utf-8", "replace")

    @property
    def stdout(self) -> str:
        return self.stdout_path.read_text("utf-8", "replace")

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self, timeout_s: float = PATIENCE_S) -> str:
        """Ends it as systemd would, and is strict about how it ends. Returns its stderr."""
        assert self.process
        process, self.process = self.process, None
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            status = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            pytest.fail(f"the server did not end within {timeout_s:.0f} s of SIGTERM: {self.stderr}")
        assert_no_sanitizer_report(self.stderr, "the server")
        assert status == 0, f"the server ended with {status}: {self.stderr}"
        for path in (self.socket, self.legacy):
            assert not os.path.lexists(path), f"'{path}' was left behind"
            assert not os.path.lexists(path + ".lock"), f"'{path}.lock' was left behind"
        return self.stderr

    def kill(self) -> None:
        """Ends it as the kernel would when memory runs out."""
        assert self.process
        self.process.kill()
        self.process.wait()
        self.process = None
        assert_no_sanitizer_report(self.stderr, "the server")

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def freeze(self) -> None:
        """Stops it where it is; returns once it stands."""
        self.signal(signal.SIGSTOP)
        wait_for(lambda: self.stat()[0] == "T", "the server to stand")

    def thaw(self) -> None:
        self.signal(signal.SIGCONT)

    def stat(self) -> list[str]:
        """The fields of /proc/PID/stat behind the name: [0] is the state."""
        return Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()

    def cpu_s(self) -> float:
        fields = self.stat()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self, field: str = "VmRSS") -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(rf"^{field}:\s+(\d+) kB", status, re.MULTILINE)
        assert found
        return int(found[1]) * 1024

    # What our commands say of it.

    def status(self, *args: str) -> dict[str, Any]:
        return run_json("status", *args, server=self)

    def check(self) -> dict[str, Any]:
        """Totals are the sums of their lives; returns the status."""
        status = self.status("--check")
        assert status["check"]["ok"] is True and status["check"]["mismatches"] == 0, status
        return status

    def dump(self, *args: str, **options: Any) -> dict[str, Any]:
        return run_json("dump", *args, server=self, **options)

    def monitor(self, *args: str) -> dict[str, Any]:
        return run_json("monitor", "--once", *args, server=self)

    def regions(self, device: int = 0) -> dict[str, dict[str, Any]]:
        """Totals of one device by region; those that hold nothing are left out."""
        for row in self.monitor()["devices"]:
            if row["id"] == device:
                return {name: r for name, r in row["regions"].items() if r["count"] > 0}
        return {}

    def bytes(self, device: int = 0) -> dict[str, int]:
        return {name: r["bytes"] for name, r in self.regions(device).items()}

    def client(self, layout: int = 144, **options: Any) -> "Original":
        return Original(self.legacy, layout, **options)

    def worker(self, layout: int = 144, uid: int | None = None) -> "Worker":
        return Worker(self.legacy, layout, uid)


# --- the original protocol ---------------------------------------------------------------------

ALLOC, FREE, QUERY, RESPONSE = 1, 2, 3, 4
DUMP_REMAINING, DEVICE_INFO_QUERY, DEVICE_INFO_RESPONSE = 5, 6, 7
CB_ALLOC, CB_FREE, KERNEL_LOAD, KERNEL_UNLOAD, DUMP_KERNELS = 8, 9, 10, 11, 12

DRAM, L1, SYSTEM_MEMORY, L1_SMALL, TRACE = 0, 1, 2, 3, 4
APPLICATION, FABRIC, DISPATCH = 0, 1, 2

LAYOUTS = (72, 112, 144)

_CORE = (
    "type device_id size buffer_type process_id buffer_id timestamp "
    "dram_allocated l1_allocated l1_small_allocated trace_allocated"
).split()
_PROGRAM = "cb_allocated kernel_allocated".split()
_INFO = (
    "total_dram_size total_l1_size arch_type num_dram_channels dram_size_per_channel "
    "l1_size_per_core is_available num_devices"
).split()
_RING = "ringbuffer_total_size ringbuffer_used_bytes ringbuffer_num_programs pad3".split()

# As the C structs were: packed, with their explicit padding, in the byte order of the machine.
STRUCTS = {
    72: (struct.Struct("<B3xiQB3xiQQ4Q"), _CORE),
    112: (struct.Struct("<B3xiQB3xiQQ4Q2Q6I"), _CORE + _INFO),
    144: (struct.Struct("<B3xiQB3xiQQ4Q2Q2Q6I4I"), _CORE + _PROGRAM + _INFO + _RING),
}
for _size, (_struct, _names) in STRUCTS.items():
    assert _struct.size == _size


def pack(layout: int, **fields: int) -> bytes:
    """One message; what is not named is zero, what the layout does not have is refused."""
    form, names = STRUCTS[layout]
    unknown = set(fields) - set(names)
    assert not unknown, f"the {layout}-byte layout has no {unknown}"
    return form.pack(*(fields.get(name, 0) for name in names))


def unpack(layout: int, data: bytes) -> dict[str, int]:
    form, names = STRUCTS[layout]
    return dict(zip(names, form.unpack(data)))


class Closed(Exception):
    """The server has closed the connection."""


SIOCOUTQ = termios.TIOCOUTQ


class Stream:
    """A connection, with what tests want to know of it."""

    def __init__(self, path: str):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(path)  # waits where the queue is full
        self.sock.settimeout(PATIENCE_S)

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                piece = self.sock.recv(size - len(data))
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise Closed(f"after {len(data)} of {size} bytes")
            data += piece
        return data

    def unread_bytes(self) -> int:
        """What we sent and the server has not yet taken (with the kernel's own overhead)."""
        answer = fcntl.ioctl(self.sock, SIOCOUTQ, struct.pack("i", 0))
        return struct.unpack("i", answer)[0]

    def wait_until_read(self) -> None:
        wait_for(lambda: self.unread_bytes() == 0, "the server to read")

    def wait_until_closed(self) -> bytes:
        """Returns what still came before the end."""
        data = b""
        while True:
            try:
                piece = self.sock.recv(65536)
            except ConnectionResetError:
                return data
            if not piece:
                return data
            data += piece

    def close(self) -> None:
        self.sock.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Original(Stream):
    """The original client and monitor, as they were."""

    def __init__(self, path: str, layout: int = 144, claimed_pid: int | None = None):
        super().__init__(path)
        self.layout = layout
        self.claimed_pid = os.getpid() if claimed_pid is None else claimed_pid

    def message(self, kind: int, **fields: int) -> bytes:
        return pack(self.layout, type=kind, **fields)

    def say(self, kind: int, **fields: int) -> None:
        self.send(self.message(kind, **fields))

    def alloc_message(
        self, device: int, size: int, ident: int, region: int = DRAM, **info: int
    ) -> bytes:
        return self.message(
            ALLOC,
            device_id=device,
            size=size,
            buffer_type=region,
            process_id=self.claimed_pid,
            buffer_id=ident,
            timestamp=time.time_ns(),
            **info,
        )

    def free_message(self, device: int, ident: int) -> bytes:
        return self.message(FREE, device_id=device, process_id=self.claimed_pid, buffer_id=ident)

    def alloc(self, device: int, size: int, ident: int, region: int = DRAM, **info: int) -> None:
        self.send(self.alloc_message(device, size, ident, region, **info))

    def free(self, device: int, ident: int) -> None:
        self.send(self.free_message(device, ident))

    def _program(self, kind: int, device: int, size: int, ident: int, flavour: int = 0) -> None:
        is_birth = kind in (CB_ALLOC, KERNEL_LOAD)
        self.say(
            kind,
            device_id=device,
            size=size,
            buffer_type=flavour,
            process_id=self.claimed_pid,
            buffer_id=ident,
            timestamp=time.time_ns() if is_birth else 0,
        )

    def cb_alloc(self, device: int, size: int, ident: int) -> None:
        self._program(CB_ALLOC, device, size, ident)

    def cb_free(self, device: int, size: int, ident: int) -> None:
        self._program(CB_FREE, device, size, ident)

    def kernel_load(self, device: int, size: int, ident: int, kind: int = APPLICATION) -> None:
        self._program(KERNEL_LOAD, device, size, ident, kind)

    def kernel_unload(self, device: int, size: int, ident: int, kind: int = APPLICATION) -> None:
        self._program(KERNEL_UNLOAD, device, size, ident, kind)

    def read_answer(self) -> dict[str, int]:
        return unpack(self.layout, self.receive(self.layout))

    def query(self, device: int = 0) -> dict[str, int]:
        self.say(QUERY, device_id=device)
        answer = self.read_answer()
        assert answer["type"] == RESPONSE and answer["device_id"] == device, answer
        return answer

    def device_info(self, device: int = -1) -> dict[str, int]:
        self.say(DEVICE_INFO_QUERY, device_id=device)
        answer = self.read_answer()
        assert answer["type"] == DEVICE_INFO_RESPONSE and answer["device_id"] == device, answer
        return answer

    def sync(self) -> None:
        """Returns when the server has applied all that was said on this connection."""
        self.query()

    def dump_remaining(self) -> None:
        self.say(DUMP_REMAINING)

    def dump_kernels(self) -> None:
        self.say(DUMP_KERNELS)

    def burst(self, count: int, size: int = 1, first: int = 1, device: int = 0) -> None:
        """That many allocations in few writes."""
        step = 1000
        for start in range(first, first + count, step):
            self.send(
                b"".join(
                    self.alloc_message(device, size, ident)
                    for ident in range(start, min(start + step, first + count))
                )
            )


def pass_time_of_silence(server: Server) -> None:
    """
    Returns when every connection that was silent before the call has been silent for the 20 ms
    after which the server settles a doubt: deadlines are kept in order, and ours is the last.
    """
    with server.client(72) as clock:
        clock.query()


# --- the native protocol -----------------------------------------------------------------------

HELLO, ERROR, END = 1, 2, 3
GET_STATUS, GET_TOTALS, GET_LIVES, CHECK, SUBSCRIBE_TOTALS, SUBSCRIBE_EVENTS = range(16, 22)
F_STATUS, F_TOTALS, F_DEVICE, F_PROCESS, F_PROCESS_DEVICE, F_SITE, F_LIVES, F_EVENTS = range(32, 40)
F_LOST, F_CHECKED = 40, 41
MAGIC = 0x4D4D5454


def frame(kind: int, payload: bytes = b"") -> bytes:
    return struct.pack("<HHI", kind, 0, len(payload)) + payload


def hello(
    magic: int = MAGIC, major: int = 1, minor: int = 0, optional: int = 0, required: int = 0
) -> bytes:
    body = struct.pack("<IHHQQiI32s", magic, major, minor, optional, required, os.getpid(), 0, b"t")
    return frame(HELLO, body)


class Native(Stream):
    def __init__(self, path: str, greets: bool = True):
        super().__init__(path)
        if greets:
            self.send(hello())
            kind, payload = self.read_frame()
            assert kind == HELLO and struct.unpack_from("<IH", payload) == (MAGIC, 1)

    def read_frame(self) -> tuple[int, bytes]:
        kind, _, length = struct.unpack("<HHI", self.receive(8))
        return kind, self.receive(length)

    def read_answer(self) -> list[tuple[int, bytes]]:
        """Frames up to the end of one answer."""
        frames = []
        while True:
            kind, payload = self.read_frame()
            assert kind != ERROR, payload
            if kind == END:
                return frames
            frames.append((kind, payload))

    def ask(self, kind: int, payload: bytes = b"") -> list[tuple[int, bytes]]:
        self.send(frame(kind, payload))
        return self.read_answer()


def lives_of(frames: list[tuple[int, bytes]]) -> list[tuple[int, int]]:
    """(id, bytes) of every life in an answer."""
    found = []
    for kind, payload in frames:
        if kind == F_LIVES:
            _, count = struct.unpack_from("<II", payload)
            for i in range(count):
                ident, _, size = struct.unpack_from("<QQQ", payload, 8 + 48 * i)
                found.append((ident, size))
    return found


def totals_of(frames: list[tuple[int, bytes]]) -> tuple[int, int]:
    """(count, bytes) over all processes, devices and regions of an answer."""
    count = size = 0
    for kind, payload in frames:
        if kind == F_PROCESS_DEVICE:
            for region in range(7):
                n, s = struct.unpack_from("<QQ", payload, 8 + 56 * region)
                count, size = count + n, size + s
    return count, size


# --- processes ---------------------------------------------------------------------------------


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

    def __enter__(self) -> "Worker":
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


# --- fixtures, for conftest.py -----------------------------------------------------------------


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path that other users can look into, gone after the test."""
    path = Path(tempfile.mkdtemp(prefix="ttm-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def make_server(folder: Path) -> Iterator[Callable[[str], Server]]:
    """Makes servers that are not started; those that run at the end of the test are stopped."""
    servers: list[Server] = []

    def make(name: str = "s") -> Server:
        servers.append(Server(folder, name))
        return servers[-1]

    yield make
    try:
        for server in servers:
            if server.process is not None:
                server.stop()
    finally:
        for server in servers:
            if server.process is not None and server.process.poll() is None:
                server.process.kill()
                server.process.wait()


@pytest.fixture
def server(make_server: Callable[[], Server]) -> Server:
    """A server that runs, and that must end well after the test."""
    return make_server().start()


def raise_fd_limit(wanted: int) -> None:
    """Skips the test where that many fds cannot be had."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= wanted:
        return
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"needs {wanted} file descriptors, the limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
