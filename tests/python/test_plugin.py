# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin, on files of tests with a stand-in of ttnn."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from scripts import run_pytest

LEAKY = """
    import pytest, ttnn
    KEPT = []
    def keep_it():
        KEPT.append(ttnn.zeros(2048))
    def test_fine():
        tensor = ttnn.zeros()
        assert tensor.buffer_address()
    def test_leaky():
        keep_it()
    @pytest.mark.ttmem(limit="4 KiB")
    def test_allowed():
        keep_it()
    @pytest.mark.limit_leaks(1000)
    def test_over_the_limit():
        keep_it()
    def test_raises():
        def fails():
            tensor = ttnn.zeros()
            raise ValueError
        with pytest.raises(ValueError) as caught:
            fails()
    def test_fails_by_itself():
        keep_it()
        assert False, "its own words"
"""


def test_a_leaky_test_fails_and_says_who_holds_what(folder: Path) -> None:
    status, out = run_pytest(folder, LEAKY, "--ttmem-fail-on-leak")
    assert status == 1, out
    assert "3 failed, 3 passed" in out, out
    for name in ("test_leaky", "test_over_the_limit"):
        sizes = "(2.0 KiB requested, 2.0 KiB on device 0)"
        assert f"E   device memory: {name} left 1 buffer behind {sizes}" in out, out
    assert "E     held by: list KEPT in module test_it" in out
    assert "its own words" in out and "test_fails_by_itself left" not in out


def test_marks_are_enough(folder: Path) -> None:
    status, out = run_pytest(folder, LEAKY)
    assert status == 1
    assert "test_over_the_limit left 1 buffer behind" in out
    assert "test_leaky left" not in out and "2 failed, 4 passed" in out, out


def test_a_table_of_what_was_left(folder: Path) -> None:
    status, out = run_pytest(folder, LEAKY, "--ttmem", "-k", "fine or leaky")
    assert status == 0, out
    assert "   2.0 KiB  test_it.py::test_leaky" in out
    assert "       0 B  test_it.py::test_fine" in out


@pytest.mark.skipif(not importlib.util.find_spec("xdist"), reason="needs pytest-xdist")
def test_the_same_with_xdist(folder: Path) -> None:
    status, out = run_pytest(folder, LEAKY, "--ttmem-fail-on-leak", "-n", "2")
    assert status == 1 and "3 failed, 3 passed" in out, out
    assert "E     held by: list KEPT in module test_it" in out


def test_without_ttnn_nothing_is_done(folder: Path) -> None:
    tests = """
        import sys
        def test_plain():
            maps = open("/proc/self/maps").read()
            assert "libttmem" not in maps
    """
    (folder / "sub").mkdir()
    status, out = run_pytest(folder, tests, "--ttmem-fail-on-leak", "--ttmem", "--co", "-q")
    (folder / "ttnn.py").unlink()
    status, out = run_plain(folder)
    assert status == 0 and "1 passed" in out, out


def run_plain(folder: Path) -> tuple[int, str]:
    import subprocess
    import sys

    from scripts import environment

    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "ttmem.pytest_plugin",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        [*command, "-q", "--ttmem-fail-on-leak", "--ttmem", "test_it.py"],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(folder),
        check=False,
    )
    return done.returncode, done.stdout + done.stderr
