# SPDX-License-Identifier: Apache-2.0
"""Finds Pythons that ttnn has wheels for, and keeps an environment with it for each of them.

The environments are in the user's cache folder: they take a minute and 700 MB to make. What tests
need besides, pytest for the plugin, is beside them and not inside.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Callable

import stand_in

# Older ones are tried by `./check --long`.
RELEASE = os.environ.get("TTM_TTNN_RELEASE") or "0.81.1"
PYTHONS = ("3.10", "3.12")
# Anything that is installed or done differently belongs in a new folder.
RECIPE = 1


class Unavailable(Exception):
    """There is no such environment here, for the reason given."""


def is_older_than(release: str) -> bool:
    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(".")]

    return numbers(RELEASE) < numbers(release)


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tt-mem"


def candidates(version: str) -> list[Path]:
    """What may be a Python of that version: those on PATH, and pyenv's own."""
    found = [
        Path(folder) / f"python{version}"
        for folder in os.environ.get("PATH", "").split(os.pathsep)
        if folder
    ]
    roots = [os.environ.get("PYENV_ROOT"), Path.home() / ".pyenv"]
    for root in dict.fromkeys(Path(root) for root in roots if root):
        found += sorted((root / "versions").glob(f"{version}.*/bin/python{version}"))
    return [path for path in found if os.access(path, os.X_OK)]


def really_is(python: Path, version: str) -> bool:
    """A pyenv shim may be there and start nothing, and a Debian Python may lack venv."""
    program = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run(
            [python, "-c", program], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.strip() == version


def find_python(version: str) -> Path:
    for python in candidates(version):
        if really_is(python, version):
            return python
    raise Unavailable(f"needs a Python {version}, on PATH or from pyenv")


def install(needed: str, *commands: list[str | Path]) -> None:
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            reason = (done.stderr.strip() or "no reason given").splitlines()[-1]
            raise Unavailable(f"needs {needed}, which cannot be installed: {reason}")


def make(folder: Path, version: str) -> None:
    python = find_python(version)
    install(
        f"ttnn {RELEASE}",
        [python, "-m", "venv", folder],
        [folder / "bin" / "pip", "install", "--quiet", f"ttnn=={RELEASE}"],
    )
    (ttnn,) = folder.glob("lib/python*/site-packages/ttnn")
    stand_in.install(ttnn)


def kept(name: str, file: str, make_it: Callable[[Path], None]) -> Path:
    """What is in a folder of the cache; made when it is not there yet."""
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    folder, done = cache / name, cache / f"{name}.done"
    with open(cache / f"{name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another test may be making it
        if not done.exists() or not (folder / file).exists():
            shutil.rmtree(folder, ignore_errors=True)
            make_it(folder)
            done.touch()
    return folder / file


def environment(version: str) -> Path:
    """The Python of an environment with ttnn."""
    name = f"ttnn-{RELEASE}-py{version}-{RECIPE}"
    return kept(name, "bin/python", lambda folder: make(folder, version))


def pytest_folder(python: str) -> Path:
    """A folder with pytest and xdist for the Python of such an environment."""
    pip = [python, "-m", "pip", "install", "--quiet", "--target"]
    tools = ["pytest", "pytest-xdist"]
    name = f"pytest-for-{Path(python).parents[1].name}"
    return kept(name, ".", lambda folder: install("pytest", [*pip, folder, *tools]))


if __name__ == "__main__":
    try:
        print(environment(sys.argv[1]))
    except Unavailable as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
