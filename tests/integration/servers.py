# SPDX-License-Identifier: Apache-2.0
"""A real `tt-mem serve` on private sockets, and the fixtures that start and stop it."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
from basics import PATIENCE_S, TT_MEM, wait_for
from commands import assert_no_sanitizer_report, become, clean_env, run_json, tt_mem_for_all
from original import Original
from workers import Worker


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
    ) -> Server:
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

    def stop(self, timeout_s: float = PATIENCE_S, has_crowd: bool = False) -> str:
        """Ends it as systemd would, and is strict about how it ends. Returns its stderr.

        One that knew a crowd leaves its lock file behind, with their number for the next one.
        """
        assert self.process
        process, self.process = self.process, None
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            status = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            pytest.fail(f"the server did not end {timeout_s:.0f} s after SIGTERM: {self.stderr}")
        assert_no_sanitizer_report(self.stderr, "the server")
        assert status == 0, f"the server ended with {status}: {self.stderr}"
        for path in (self.socket, self.legacy):
            assert not os.path.lexists(path), f"'{path}' was left behind"
            is_left = os.path.lexists(path + ".lock")
            assert is_left == (has_crowd and path == self.socket), f"'{path}.lock': {is_left}"
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

    def client(self, layout: int = 144, **options: Any) -> Original:
        return Original(self.legacy, layout, **options)

    def worker(self, layout: int = 144, uid: int | None = None) -> Worker:
        return Worker(self.legacy, layout, uid)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path that other users can look into, gone after the test."""
    path = Path(tempfile.mkdtemp(prefix="ttm-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


class SmallDisk:
    """A file system of its own that can be full."""

    def __init__(self, path: Path):
        self.path = path

    def fill(self) -> None:
        with open(self.path / "filler", "wb", buffering=0) as file:
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(4096))


@pytest.fixture
def small_disk(folder: Path) -> Iterator[SmallDisk]:
    path = folder / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(path)]
    if subprocess.run(mount, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        pytest.skip("needs the right to mount")
    yield SmallDisk(path)
    subprocess.run(["umount", "--lazy", str(path)], check=True)


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
