# SPDX-License-Identifier: Apache-2.0
"""Tests that take or leave too much device memory fail, and say from which line and held by whom.

    @pytest.mark.device_memory(leaks="0 B", peak="10 MB", warmups=1)
    def test_decode(device): …

    pytest --ttmem                         # a table: what each test took at most, and left behind
    pytest --ttmem-fail-on-leak            # no test may leave anything
    pytest --ttmem-count-program-cache     # what the program cache keeps counts too
    pytest --ttmem-baseline FILE           # no test may leave more than it is known to

What counts is the call of a test, after its fixtures were made and before they are undone. A test
that fails by itself is not looked at: its traceback keeps its variables alive. Without ttnn
nothing is done at all.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import unittest
from typing import Any, Generator

import pytest

import ttmem
from ttmem import _limits
from ttmem._limits import Limits
from ttmem._text import plain, plain_lines

_STATE = pytest.StashKey["_State"]()
_FAILURE = pytest.StashKey[str]()
_FOUND = pytest.StashKey[dict[str, Any]]()

_SHOWN_REGIONS = ("DRAM", "L1")


class _State:
    """Of one pytest process: what was asked for; tracking, begun when the first test needs it."""

    def __init__(self, config: pytest.Config, options: Any):
        def option(name: str) -> Any:
            return getattr(options, name, None)

        self.is_showing = bool(option("ttmem"))
        self.is_checking_all = bool(option("ttmem_fail_on_leak"))
        self.counts_program_cache = bool(option("ttmem_count_program_cache"))
        self.is_updating = bool(option("ttmem_update_baseline"))
        self.recordings = str(option("ttmem_recordings") or "")
        path = option("ttmem_baseline")
        self.baseline_path = os.path.join(config.invocation_params.dir, path) if path else ""
        self.baseline: dict[str, Any] = {}
        self.trouble = ""
        self._is_tracking: bool | None = None
        if self.baseline_path:
            self._read_baseline()
        elif self.is_updating:
            raise pytest.UsageError("--ttmem-update-baseline needs --ttmem-baseline FILE")

    @property
    def is_asked(self) -> bool:
        return self.is_showing or self.is_checking_all or bool(self.baseline_path)

    def _read_baseline(self) -> None:
        from ttmem import _baseline

        try:
            self.baseline = dict(_baseline.read(self.baseline_path))
        except FileNotFoundError:
            if not self.is_updating:
                raise pytest.UsageError(
                    f"cannot read the baseline {self.baseline_path!r}: there is none; "
                    "--ttmem-update-baseline makes one"
                ) from None
        except (OSError, ValueError) as reason:
            raise pytest.UsageError(
                f"cannot read the baseline {self.baseline_path!r}: {reason}"
            ) from None

    def is_tracking(self) -> bool:
        if not _has_ttnn():
            return False
        if self._is_tracking is None or (self._is_tracking and not ttmem.is_active()):
            try:
                self._begin()
                self._is_tracking = True
            except ttmem.Inactive as reason:
                self.trouble = f"device memory is not tracked: {reason}"
                self._is_tracking = False
        return self._is_tracking

    def _begin(self) -> None:
        from ttmem import _server

        if self.recordings:
            _server.record_own()
        if not ttmem.is_active():
            ttmem.start()

    def keep_recording(self, name: str, mark: str) -> str | None:
        """A copy of what was recorded up to that mark; None when nobody records for us."""
        from ttmem import _server

        file = re.sub(r"[^\w.-]+", "-", name)[-150:].strip("-") + ".ttmem"
        path = os.path.join(self.recordings, file)
        return path if self.recordings and _server.copy_recording(mark, path) else None


def _has_ttnn() -> bool:
    if "ttnn" in sys.modules:
        return True
    try:
        return importlib.util.find_spec("ttnn") is not None
    except (ImportError, ValueError):
        return False


# ---- options and marks ----


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ttmem", "memory of Tenstorrent devices")
    group.addoption(
        "--ttmem",
        action="store_true",
        help="show what each test took of the devices and left there",
    )
    group.addoption(
        "--ttmem-fail-on-leak",
        action="store_true",
        help="tests that leave buffers on a device fail, unless a mark allows it",
    )
    group.addoption(
        "--ttmem-count-program-cache",
        action="store_true",
        help="what programs in the program cache keep counts as left by the test that made them",
    )
    group.addoption(
        "--ttmem-baseline",
        metavar="FILE",
        help="tests that leave more of an origin than FILE knows of fail",
    )
    group.addoption(
        "--ttmem-update-baseline",
        action="store_true",
        help="write what the tests of this run leave into the baseline instead of comparing",
    )
    group.addoption(
        "--ttmem-recordings",
        metavar="DIR",
        default=".ttmem",
        help="where recordings of failed tests are kept, '' for nowhere; %(default)s",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before any conftest.py imports ttnn: what happens while it is imported is heard too."""
    state = _State(early_config, early_config.known_args_namespace)
    early_config.stash[_STATE] = state
    if state.is_asked:
        state.is_tracking()


def pytest_configure(config: pytest.Config) -> None:
    for line in _limits.MARKS.values():
        config.addinivalue_line("markers", line)
    if _STATE not in config.stash:  # the plugin was loaded late
        config.stash[_STATE] = _State(config, config.option)
    config.pluginmanager.register(_Summary(config.stash[_STATE]), "ttmem-summary")


def _limits_of(item: pytest.Item, state: _State) -> Limits:
    is_memray = item.config.pluginmanager.hasplugin("memray")
    found = []
    for mark in item.iter_markers():
        if mark.name not in _limits.MARKS:
            continue
        # Where pytest-memray reads them too, they are meant for us only if somebody says so.
        if mark.name in _limits.ALIASES and is_memray and not state.is_asked:
            continue
        wrong = ""
        try:
            found.append(_limits.read_mark(mark.name, mark.args, mark.kwargs))
        except ValueError as reason:
            wrong = str(reason)
        if wrong:  # said here, where no other exception is being handled that would be told as well
            pytest.fail(f"ttmem: {wrong}", pytrace=False)
    limits = _limits.combine(found)
    if limits.leaks is None and state.is_checking_all and not state.baseline_path:
        limits = limits._replace(leaks=0)
    return limits


# ---- a test ----


def _warm_up(item: pytest.Item, times: int) -> None:
    """Runs the body as it is run otherwise, by whatever plugin does that."""
    is_once = isinstance(getattr(item, "instance", None), unittest.IsolatedAsyncioTestCase)
    if times > 0 and is_once:  # says unittest
        pytest.fail(f"ttmem: {item.nodeid} cannot be run for warm-up", pytrace=False)
    for _ in range(times):
        item.runtest()


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    state = item.config.stash[_STATE]
    limits = _limits_of(item, state)
    if not (limits.are_any or state.is_asked) or not state.is_tracking():
        yield
        return
    _warm_up(item, limits.warmups)
    ttmem.mark(f"{item.nodeid} begins")
    ttmem.reset_peaks()
    before = ttmem.snapshot()
    outcome = yield
    if outcome.excinfo is None:
        _look_at(item, before, limits)
    ttmem.mark(f"{item.nodeid} ends")


def _look_at(item: pytest.Item, before: ttmem.Snapshot, limits: Limits) -> None:
    from ttmem import _baseline, _snapshot

    state = item.config.stash[_STATE]
    after = ttmem.snapshot()
    taken = _snapshot.taken_since(before, after)
    left = _snapshot.left_since(before, 0, after, state.counts_program_cache)
    size = left.footprint_bytes if left else 0
    changes = left.new_buffers if left else []
    peak = max(taken.values(), default=0)
    item.user_properties += [("ttmem_peak_bytes", peak), ("ttmem_left_bytes", size)]
    item.stash[_FOUND] = {
        "peaks": {
            region: max((n for (_, r), n in taken.items() if r == region), default=0)
            for region in _SHOWN_REGIONS
        },
        "left_bytes": size,
        "left": {key: list(row) for key, row in _baseline.left_of(changes).items()},
    }
    failures = []
    if limits.peak is not None and peak > limits.peak:
        failures.append(_snapshot.describe_peak(item.name, taken, limits.peak))
    if left is not None and limits.leaks is not None and size > limits.leaks:
        failures.append(_snapshot.describe_leak(item.name, left, limits.leaks))
    elif left is not None and state.baseline_path and not state.is_updating:
        known = state.baseline.get(item.nodeid, {})
        grown = _baseline.grown(known, changes)
        if grown:
            failures.append(_snapshot.describe_growth(item.name, left, known, grown))
            failures.append("to accept it, run again with --ttmem-update-baseline")
    item.stash[_FAILURE] = "\n".join(failures)


def _failed(text: str) -> pytest.ExceptionInfo[BaseException]:
    try:
        pytest.fail(text, pytrace=False)
    except pytest.fail.Exception:
        return pytest.ExceptionInfo.from_current()


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    is_ours = call.when == "call" and call.excinfo is None and bool(item.stash.get(_FAILURE, ""))
    if is_ours:  # before others look at it: the test may be expected to fail
        call.excinfo = _failed(item.stash[_FAILURE])
    outcome = yield
    report = outcome.get_result()
    if report.when != "call":
        return
    if is_ours and report.failed:
        report.longrepr = "\n".join(f"E   {line}" for line in item.stash[_FAILURE].splitlines())
    if _FOUND in item.stash:
        report.ttmem = item.stash[_FOUND]  # passed on by xdist as it is
    state = item.config.stash[_STATE]
    if report.failed and state._is_tracking:
        path = state.keep_recording(item.nodeid, f"{item.nodeid} ends")
        if path is not None:
            item.user_properties.append(
                ("ttmem_recording", plain(path))
            )  # JUnit takes those of the end
            report.sections.append(("device memory", _how_to_look(path, item.nodeid)))


def _how_to_look(path: str, test: str) -> str:
    return plain_lines(
        [
            f"recorded in {path}",
            f"tt-mem report {path}",
            f"tt-mem diff {path} --from '{test} begins' --to '{test} ends'",
        ]
    )


# ---- the end ----


class _Summary:
    """What all tests were found to take and leave; on xdist's controller those of its workers."""

    def __init__(self, state: _State):
        self._state = state
        self._found: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = getattr(report, "ttmem", None)
        if found is not None:
            self._found[report.nodeid] = found

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        state = self._state
        if not state.is_updating or hasattr(session.config, "workerinput"):
            return
        from ttmem import _baseline

        for test, found in self._found.items():
            state.baseline[test] = {key: (row[0], row[1]) for key, row in found["left"].items()}
        try:
            _baseline.write(state.baseline_path, state.baseline)
        except OSError as reason:
            state.trouble = f"cannot write the baseline {state.baseline_path!r}: {reason.strerror}"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._state.trouble:
            terminalreporter.write_line(plain(f"ttmem: {self._state.trouble}"))
        if self._state.is_showing and self._found:
            self._show(terminalreporter)

    def _show(self, terminal: Any) -> None:
        from ttmem._snapshot import human

        terminal.section("device memory")
        heads = [*(f"peak {region}" for region in _SHOWN_REGIONS), "left"]
        terminal.write_line("".join(f"{head:>11}" for head in heads) + "  test")
        rows = sorted(self._found.items(), key=lambda row: (-row[1]["left_bytes"], row[0]))
        for test, found in rows:
            sizes = [*found["peaks"].values(), found["left_bytes"]]
            terminal.write_line(
                "".join(f"{human(size):>11}" for size in sizes) + f"  {plain(test)}"
            )
