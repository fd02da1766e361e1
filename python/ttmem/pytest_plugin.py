# SPDX-License-Identifier: Apache-2.0
"""Tests that leave device memory behind fail, and say from which line and held by whom.

    @pytest.mark.ttmem(limit=0)            # bytes of footprint that the call may leave behind
    def test_decode(device): …

    pytest --ttmem-fail-on-leak            # every test, with a limit of 0
    pytest --ttmem                         # a table of what each test left behind

What counts is what the call of a test leaves, after its fixtures were made and before they are
undone. A test that fails by itself is not looked at: its traceback keeps its variables alive.
Without ttnn nothing is done at all.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any, Generator

import pytest

import ttmem

_STATE = pytest.StashKey["_State"]()
_LEAK = pytest.StashKey[str]()
_LEFT = "ttmem_left_bytes"

UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def parse_bytes(limit: Any) -> int:
    """1024, "1024", "10 MB", "2 KiB"."""
    if isinstance(limit, (int, float)):
        return int(limit)
    number, unit = str(limit).strip(), "B"
    for candidate in sorted(UNITS, key=len, reverse=True):
        if number.upper().endswith(candidate):
            number, unit = number[: -len(candidate)], candidate
            break
    try:
        return int(float(number) * UNITS[unit])
    except ValueError:
        raise pytest.UsageError(f"ttmem: {limit!r} is no number of bytes") from None


class _State:
    """Of one pytest process: whether tracking is on, begun when the first test needs it."""

    def __init__(self, is_checking_all: bool, is_showing: bool):
        self.is_checking_all = is_checking_all
        self.is_showing = is_showing
        self._is_tracking: bool | None = None
        self.trouble = ""

    def is_tracking(self) -> bool:
        if not _has_ttnn():
            return False
        if self._is_tracking is None:
            try:
                if not ttmem.is_active():
                    ttmem.start()
                self._is_tracking = True
            except ttmem.Inactive as reason:
                self.trouble = str(reason)
                self._is_tracking = False
        return self._is_tracking


def _has_ttnn() -> bool:
    if "ttnn" in sys.modules:
        return True
    try:
        return importlib.util.find_spec("ttnn") is not None
    except (ImportError, ValueError):
        return False


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ttmem", "memory of Tenstorrent devices")
    group.addoption("--ttmem", action="store_true", help="show what each test left on the devices")
    group.addoption(
        "--ttmem-fail-on-leak",
        action="store_true",
        help="tests that leave buffers on a device fail; pytest.mark.ttmem(limit=…) allows some",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before any conftest.py imports ttnn: what happens while it is imported is heard too."""
    options = early_config.known_args_namespace
    if getattr(options, "ttmem", False) or getattr(options, "ttmem_fail_on_leak", False):
        early_config.stash[_STATE] = _state(options)
        early_config.stash[_STATE].is_tracking()


def _state(options: Any) -> _State:
    return _State(
        is_checking_all=bool(getattr(options, "ttmem_fail_on_leak", False)),
        is_showing=bool(getattr(options, "ttmem", False)),
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "ttmem(limit=0): the test may leave so many bytes on a device, and no more"
    )
    config.addinivalue_line(
        "markers", "limit_leaks(limit): the same, as in pytest-memray: limit_leaks('10 MB')"
    )
    if _STATE not in config.stash:  # a worker of xdist has its options but no command line
        config.stash[_STATE] = _state(config.option)


def _limit(item: pytest.Item, state: _State) -> int | None:
    """Bytes that may be left; None: nobody asked."""
    mark = item.get_closest_marker("ttmem") or item.get_closest_marker("limit_leaks")
    if mark is None:
        return 0 if state.is_checking_all else None
    return parse_bytes(mark.kwargs.get("limit", mark.args[0] if mark.args else 0))


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    state = item.config.stash[_STATE]
    limit = _limit(item, state)
    if (limit is None and not state.is_showing) or not state.is_tracking():
        yield
        return
    before = ttmem.snapshot()
    outcome = yield
    if outcome.excinfo is None:
        _look_at(item, before, limit)


def _look_at(item: pytest.Item, before: ttmem.Snapshot, limit: int | None) -> None:
    from ttmem._snapshot import describe_leak, left_since

    left = left_since(before, -1 if limit is None else min(limit, 0))
    size = left.footprint_bytes if left else 0
    item.user_properties.append((_LEFT, size))
    if left is not None and limit is not None and size > limit:
        item.stash[_LEAK] = describe_leak(item.name, left)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    outcome = yield
    report = outcome.get_result()
    if report.when != "call" or not report.passed or _LEAK not in item.stash:
        return
    report.outcome = "failed"
    report.longrepr = "\n".join(f"E   {line}" for line in item.stash[_LEAK].splitlines())


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    state = config.stash[_STATE]
    if state.trouble:
        terminalreporter.write_line(f"ttmem: device memory was not tracked: {state.trouble}")
    if not state.is_showing:
        return
    from ttmem._snapshot import human

    rows = [
        (value, report.nodeid)
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, value in report.user_properties
        if name == _LEFT
    ]
    if rows:
        terminalreporter.section("device memory left behind")
        for size, name in sorted(rows, key=lambda row: (-row[0], row[1])):
            terminalreporter.write_line(f"{human(size):>10}  {name}")
