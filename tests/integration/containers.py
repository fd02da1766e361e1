# SPDX-License-Identifier: Apache-2.0
"""Namespaces that stand in for a container: a root, processes, network and /dev/shm of their own.

What `docker run -v OUTSIDE:INSIDE -e NAME=VALUE` does is done with unshare(1) and bind mounts; the
programs of this machine serve as the image.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from basics import PATIENCE_S, TT_MEM, wait_for
from commands import become, clean_env
from runs import HARMLESS_HOOK, HOOK_NAME, WORKER_OPTIONS
from tracked import TRACKED_WORKER, Tracked

# $1 is the root, the words up to "--" are OUTSIDE:INSIDE, and the rest is what to run.
ENTER = r"""
set -e
root=$1
shift
mount -t tmpfs -o mode=755 image "$root"
for name in bin sbin lib lib32 lib64 libx32 usr etc; do
    if [ -L "/$name" ]; then
        cp -P "/$name" "$root/"
    elif [ -d "/$name" ]; then
        mkdir "$root/$name"
        mount --rbind "/$name" "$root/$name"
    fi
done
mkdir -p "$root/proc" "$root/dev" "$root/run" "$root/root"
mkdir -m 1777 "$root/tmp"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs shm "$root/dev/shm"
while [ "$1" != -- ]; do
    mkdir -p "$root/${1#*:}"
    mount --bind "${1%%:*}" "$root/${1#*:}"
    shift
done
shift
exec chroot "$root" "$@"
"""

NAMESPACES = ("--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child")
AS_ROOT_OF_ITS_OWN = ("--user", "--map-root-user")
INSTALLED = "/opt/tt-mem"  # where a container of ours finds tt-mem


class Host:
    """Outside: what is handed into containers, and how they are started."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        own = Path(shutil.which(TT_MEM) or TT_MEM).resolve()
        shutil.copy(own, self.bin / "tt-mem")
        shutil.copy(own.with_name("libttmem.so.0"), self.bin)
        shutil.copy(TRACKED_WORKER, self.bin / "worker")
        shutil.copy(HARMLESS_HOOK, self.bin / HOOK_NAME)
        self.sockets = folder / "sockets"  # the host's /run/tt-mem
        self.sockets.mkdir()
        self._roots = 0

    def command(
        self, *command: str, mounts: dict[Path, str] | None = None, more: tuple[str, ...] = ()
    ) -> list[str]:
        """What starts 'command' in a new container."""
        root = self.folder / f"root-{self._roots}"
        self._roots += 1
        root.mkdir()
        binds = {self.bin: INSTALLED, **(mounts or {})}
        pairs = [f"{outside}:{inside}" for outside, inside in binds.items()]
        enter = ["/bin/sh", "-c", ENTER, "enter", str(root), *pairs, "--"]
        return ["unshare", *more, *NAMESPACES, *enter, *command]

    def run(self, *command: str, **options: Any) -> subprocess.CompletedProcess[str]:
        mounts, more = options.pop("mounts", None), options.pop("more", ())
        return subprocess.run(
            self.command(*command, mounts=mounts, more=more),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=environment(**options),
            timeout=2 * PATIENCE_S,
            check=False,
        )


def environment(**extra: str | None) -> dict[str, str]:
    """Of a container: nothing that points to a folder of the host."""
    own = {
        "HOME": "/root",
        "LD_LIBRARY_PATH": INSTALLED,
        "TTMEM_ROOT": None,
        "XDG_RUNTIME_DIR": None,
    }
    return clean_env(**{**WORKER_OPTIONS, **own, **extra})


class Contained(Tracked):
    """A worker in a container; 'pid' is that by which the outside knows it."""

    def __init__(
        self,
        host: Host,
        *command: str,
        mounts: dict[Path, str],
        more: tuple[str, ...] = (),
        uid: int | None = None,
        env: dict[str, str | None] | None = None,
    ):
        self._errors = open(host.folder / f"contained-{id(self)}.err", "w+b")  # noqa: SIM115
        self.process = subprocess.Popen(
            host.command(*command, mounts=mounts, more=more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment(**(env or {})),
            preexec_fn=(lambda: become(uid)) if uid is not None else None,
        )
        self.truth = {}
        self.last = {}

    @property
    def pid(self) -> int:
        return child_of(self.process.pid)


def child_of(pid: int) -> int:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return int(wait_for(lambda: path.read_text().split(), "the container to start")[0])


def why_no_namespaces(more: tuple[str, ...] = (), uid: int | None = None) -> str:
    """Why such namespaces cannot be made here, "" when they can."""
    mount = "mount -t tmpfs none /mnt && mount -t proc proc /proc"
    done = subprocess.run(
        ["unshare", *more, *NAMESPACES, "sh", "-c", mount],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=(lambda: become(uid)) if uid is not None else None,
    )
    if done.returncode == 0:
        return ""
    return f"needs to make namespaces: {(done.stderr or 'unshare failed').strip()}"
