# SPDX-License-Identifier: Apache-2.0
"""scripts/lib.sh: a Meson that is new enough, on systems that have an older one or none."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
TOOLS = ["awk", "cat", "chmod", "mkdir", "mktemp", "rm", "sh"]

# Stands in for 'python3 -m venv FOLDER': its pip brings the Meson, unless there is no network.
PYTHON = """#!/bin/sh
[ "$1 $2" = "-m venv" ] || exit 9
mkdir -p "$3/bin"
printf '%s\\n' '#!/bin/sh' 'PIP' >"$3/bin/pip"
chmod +x "$3/bin/pip"
"""
PIP = """for word; do case $word in meson*) printf "#!/bin/sh\\necho 1.9.0\\n" >"${0%/*}/meson" && \
chmod +x "${0%/*}/meson" ;; ninja) printf "#!/bin/sh\\n" >"${0%/*}/ninja" && \
chmod +x "${0%/*}/ninja" ;; esac; done"""


class Machine:
    """A PATH with little more than the programs that were put there."""

    def __init__(self, folder: Path):
        self.bin = folder / "bin"
        self.cache = folder / "cache"
        self.bin.mkdir()
        for name in TOOLS:
            (self.bin / name).symlink_to(str(shutil.which(name)))

    def put(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)

    def find(self) -> subprocess.CompletedProcess[str]:
        script = ". scripts/lib.sh; find_build_tools && command -v meson && command -v ninja"
        return subprocess.run(
            ["sh", "-eu", "-c", script, "run"],
            cwd=TOP,
            env={"PATH": str(self.bin), "XDG_CACHE_HOME": str(self.cache), "HOME": "/nowhere"},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def machine(folder: Path) -> Machine:
    made = Machine(folder)
    made.put("ninja", "#!/bin/sh\n")
    made.put("python3", PYTHON.replace("PIP", PIP))
    return made


@pytest.mark.parametrize("version", ["1.0.0", "1.10.0.rc1", "2.0"])
def test_a_meson_that_is_new_enough_is_taken_as_it_is(machine: Machine, version: str) -> None:
    machine.put("meson", f"#!/bin/sh\necho {version}\n")
    done = machine.find()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == str(machine.bin / "meson")
    assert not machine.cache.exists()


@pytest.mark.parametrize("version", ["0.56.2", "0.61.2", None])
def test_a_newer_one_is_put_into_a_folder_of_our_own(
    machine: Machine, version: str | None
) -> None:
    if version:
        machine.put("meson", f"#!/bin/sh\necho {version}\n")
    done = machine.find()
    meson, ninja = done.stdout.splitlines()
    assert done.returncode == 0 and done.stderr.count("\n") == 1, done
    assert meson.startswith(f"{machine.cache}{os.sep}") and ninja == str(machine.bin / "ninja")
    again = machine.find()
    assert (again.returncode, again.stdout, again.stderr) == (0, done.stdout, "")


def test_a_ninja_that_is_missing_comes_with_it(machine: Machine) -> None:
    machine.put("meson", "#!/bin/sh\necho 1.2.0\n")
    (machine.bin / "ninja").unlink()
    done = machine.find()
    meson, ninja = done.stdout.splitlines()
    assert meson == str(machine.bin / "meson") and ninja.startswith(str(machine.cache)), done


def test_without_a_network_it_is_said_what_is_needed(machine: Machine) -> None:
    machine.put("meson", "#!/bin/sh\necho 0.61.2\n")
    machine.put("python3", PYTHON.replace("PIP", "echo no network; exit 1"))
    done = machine.find()
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "needs Meson 1.0 or newer and found 0.61.2" in last and "no network" in done.stderr
