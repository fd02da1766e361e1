# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin, on files of tests with a stand-in of ttnn."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from commands import run_json

from scripts import run_pytest, run_script

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


def test_a_table_of_what_was_taken_and_left(folder: Path) -> None:
    status, out = run_pytest(folder, LEAKY, "--ttmem", "-k", "fine or leaky")
    assert status == 0, out
    table = out[out.index("peak DRAM") :].splitlines()
    assert table[0].split() == ["peak", "DRAM", "peak", "L1", "left", "test"]
    assert table[1] == "    2.0 KiB        0 B    2.0 KiB  test_it.py::test_leaky"
    assert table[2] == "    4.0 KiB        0 B        0 B  test_it.py::test_fine"


LIMITS = """
    import pytest, ttnn
    KEPT, CACHE = [], {}
    def use(size, region="DRAM"):
        tensors = [ttnn.zeros(size, region) for _ in range(3)]
        del tensors[1:]
    @pytest.fixture
    def before():
        return ttnn.zeros(1 << 20)
    @pytest.mark.device_memory(peak="12 KiB")
    def test_within(before):
        use(4096)
    @pytest.mark.device_memory(peak="10 KiB")
    def test_over(before):
        use(4096, "L1")
    @pytest.mark.limit_memory("10 KiB")
    def test_over_by_its_other_name():
        use(4096)
    @pytest.mark.device_memory(leaks="0 B", warmups=1)
    def test_fills_a_cache():
        if "weights" not in CACHE:
            CACHE["weights"] = ttnn.zeros()
    @pytest.mark.device_memory(leaks=0, warmups=2)
    def test_leaks_each_time(before):
        KEPT.append(ttnn.zeros())
    @pytest.mark.device_memory(leaks="0 B", peak="1 KiB")
    def test_both():
        KEPT.append(ttnn.zeros())
    @pytest.mark.device_memory(leaks="many")
    def test_nonsense():
        pass
    @pytest.mark.device_memory(leak=0)
    def test_misspelt():
        pass
    def test_unmarked():
        KEPT.append(ttnn.zeros())
"""


def test_limits_of_marks(folder: Path) -> None:
    status, out = run_pytest(folder, LIMITS)
    assert status == 1 and "6 failed, 3 passed" in out, out
    for line in (
        "E   device memory: test_over took 12.0 KiB of L1 on device 0, the limit is 10.0 KiB",
        "E   device memory: test_over_by_its_other_name took 12.0 KiB of DRAM on device 0, "
        "the limit is 10.0 KiB",
        "E   device memory: test_leaks_each_time left 1 buffer behind "
        "(4.0 KiB requested, 4.0 KiB on device 0)",
        "E   device memory: test_both took 4.0 KiB of DRAM on device 0, the limit is 1.0 KiB",
        "E   device memory: test_both left 1 buffer behind",
        "ttmem: 'many' is no number of bytes",
        "ttmem: pytest.mark.device_memory got an unexpected keyword argument 'leak'; "
        "it is device_memory(leaks=None, peak=None, warmups=0)",
    ):
        assert line in out, out
    assert "_device_memory" not in out and "During handling of" not in out, out


UNUSUAL = """
    import pytest, ttmem, ttnn, unittest
    KEPT, RUNS = [], {}
    def keep_first(name):
        RUNS[name] = RUNS.get(name, 0) + 1
        if RUNS[name] == 1:
            KEPT.append(ttnn.zeros())
    class TestUnit(unittest.TestCase):
        def setUp(self):
            self.name = "unit"
        @pytest.mark.device_memory(leaks=0, warmups=1)
        def test_unit(self):
            keep_first(self.name)
    class TestAsync(unittest.IsolatedAsyncioTestCase):
        @pytest.mark.device_memory(leaks=0, warmups=1)
        async def test_async(self):
            pass
    @pytest.mark.device_memory(leaks=0, warmups=1)
    async def test_coroutine():
        keep_first("coroutine")
    @pytest.mark.device_memory(leaks=0, warmups=2)
    def test_they_ran_twice():
        assert RUNS == {"unit": 2, "coroutine": 2}
    @pytest.mark.xfail(strict=True)
    @pytest.mark.device_memory(leaks=0)
    def test_known_to_leak():
        KEPT.append(ttnn.zeros())
    @pytest.mark.device_memory(leaks=0)
    def test_ends_tracking():
        ttmem.stop()
    @pytest.mark.device_memory(leaks=0)
    def test_leaky():
        KEPT.append(ttnn.zeros())
"""

RUNS_COROUTINES = """
import asyncio, inspect, pytest

@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if inspect.iscoroutinefunction(pyfuncitem.obj):
        asyncio.run(pyfuncitem.obj())
        return True
"""


def test_tests_of_other_kinds(folder: Path) -> None:
    (folder / "conftest.py").write_text(RUNS_COROUTINES)
    status, out = run_pytest(folder, UNUSUAL)
    assert status == 1 and "2 failed, 4 passed, 1 xfailed" in out, out
    assert "ttmem: test_it.py::TestAsync::test_async cannot be run for warm-up" in out
    assert "E   device memory: test_leaky left 1 buffer behind" in out


RUNS_TWICE = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    runtestprotocol(item, nextitem=nextitem, log=False)
    for report in runtestprotocol(item, nextitem=nextitem, log=False):
        item.ihook.pytest_runtest_logreport(report=report)
    return True
"""


def test_a_test_that_is_run_again_is_judged_again(folder: Path) -> None:
    tests = """
        import ttnn
        KEPT = []
        def test_leaks_once():
            if not KEPT:
                KEPT.append(ttnn.zeros())
    """
    (folder / "conftest.py").write_text(RUNS_TWICE)
    status, out = run_pytest(folder, tests, "--ttmem-fail-on-leak")
    assert status == 0, out


GROWING = """
    import os, ttnn
    KEPT = []
    def keep():
        KEPT.append(ttnn.zeros(2048))
    def test_known():
        for _ in range(int(os.environ.get("TIMES", "1"))):
            keep()
    def test_fine():
        ttnn.zeros()
"""


def test_what_a_baseline_knows_of_may_stay_but_not_grow(folder: Path) -> None:
    baseline = folder / "baseline.json"
    compare = ("--ttmem-baseline", "baseline.json")
    status, out = run_pytest(folder, GROWING, *compare)
    assert status == 4 and "--ttmem-update-baseline makes one" in out, out
    status, out = run_pytest(folder, GROWING, "--ttmem-update-baseline")
    assert status == 4 and "needs --ttmem-baseline FILE" in out, out

    status, out = run_pytest(folder, GROWING, *compare, "--ttmem-update-baseline")
    assert status == 0, out
    assert json.loads(baseline.read_text())["tests"] == {
        "test_it.py::test_known": {"ttnn.py:__init__ DRAM": {"count": 1, "footprint_bytes": 2048}}
    }
    status, out = run_pytest(folder, GROWING, *compare, "--ttmem-fail-on-leak")
    assert status == 0 and "2 passed" in out, out

    status, out = run_pytest(folder, GROWING, *compare, TIMES="3")
    assert status == 1 and "1 failed, 1 passed" in out, out
    assert "E   device memory: test_known left more behind than its baseline knows of" in out
    assert "E     +4.0 KiB: 3 buffers, 6.0 KiB, and not 1, 2.0 KiB" in out, out
    assert "E     held by: list KEPT in module test_it" in out

    status, out = run_pytest(folder, GROWING, *compare, "--ttmem-update-baseline", TIMES="3")
    status, out = run_pytest(folder, GROWING, *compare, TIMES="3")
    assert status == 0, out
    for nonsense in ("[]", "{", '{"schema": "ttmem/baseline/1", "tests": {"x": 1}}'):
        baseline.write_text(nonsense)
        status, out = run_pytest(folder, GROWING, *compare)
        assert status == 4 and "ERROR: cannot read the baseline" in out, out


def test_a_baseline_is_the_same_with_all_versions_of_python(folder: Path) -> None:
    tests = """
        import ttnn, ttmem
        class TestModel:
            def test_method(self):
                [ttmem.allocate_with_context(0, 2048, "DRAM", n) for n in (1, 2)]
    """
    compare = ("--ttmem-baseline", "baseline.json", "--ttmem-update-baseline")
    status, out = run_pytest(folder, tests, *compare)
    assert status == 0, out
    (left,) = json.loads((folder / "baseline.json").read_text())["tests"].values()
    assert left == {"test_it.py:test_method DRAM": {"count": 2, "footprint_bytes": 4096}}


def test_failed_tests_leave_a_recording_and_properties(folder: Path) -> None:
    args = ("--ttmem-fail-on-leak", "--junitxml", "report.xml", "-k", "fine or leaky or itself")
    status, out = run_pytest(folder, LEAKY, *args)
    assert status == 1, out
    kept = sorted(path.name for path in (folder / ".ttmem").iterdir())
    assert kept == ["test_it.py-test_fails_by_itself.ttmem", "test_it.py-test_leaky.ttmem"]
    assert "tt-mem report .ttmem/test_it.py-test_leaky.ttmem" in out, out
    recording = folder / ".ttmem" / kept[1]
    report = run_json("report", recording, "--json")
    (process,) = report["processes"]
    assert report["recording"]["complete"] and process["complete"], process["why_incomplete"]
    assert (process["end"], process["why_incomplete"]) == ("running", "")
    names = [mark["name"] for mark in process["marks"]]
    assert names[-2:] == ["test_it.py::test_leaky begins", "test_it.py::test_leaky ends"]
    change = run_json("diff", recording, "--from", names[-2], "--to", names[-1], "--json")
    assert "2048" in json.dumps(change)
    cases = {
        case.get("name"): {p.get("name"): p.get("value") for p in case.iter("property")}
        for case in ElementTree.parse(folder / "report.xml").iter("testcase")
    }
    assert cases["test_fine"] == {"ttmem_peak_bytes": "4096", "ttmem_left_bytes": "0"}
    leaky = cases["test_leaky"]
    assert (leaky["ttmem_peak_bytes"], leaky["ttmem_left_bytes"]) == ("2048", "2048")
    assert leaky["ttmem_recording"] == ".ttmem/test_it.py-test_leaky.ttmem"


def test_recordings_are_kept_where_they_are_wanted_or_not_at_all(folder: Path) -> None:
    args = ("--ttmem-fail-on-leak", "-k", "leaky")
    run_pytest(folder, LEAKY, *args, "--ttmem-recordings", "made/here")
    assert (folder / "made" / "here" / "test_it.py-test_leaky.ttmem").exists()
    run_pytest(folder, LEAKY, *args, "--ttmem-recordings=")
    assert not (folder / ".ttmem").exists()


@pytest.mark.skipif(not importlib.util.find_spec("xdist"), reason="needs pytest-xdist")
def test_the_same_with_xdist(folder: Path) -> None:
    args = ("--ttmem", "--ttmem-fail-on-leak", "-n", "2")
    status, out = run_pytest(folder, LEAKY, *args)
    assert status == 1 and "3 failed, 3 passed" in out, out
    assert "E     held by: list KEPT in module test_it" in out
    assert "    2.0 KiB        0 B    2.0 KiB  test_it.py::test_leaky" in out, out
    assert (folder / ".ttmem" / "test_it.py-test_leaky.ttmem").exists()

    compare = ("--ttmem-baseline", "baseline.json", "-n", "2")
    status, out = run_pytest(folder, GROWING, *compare, "--ttmem-update-baseline")
    assert status == 0 and "test_known" in (folder / "baseline.json").read_text(), out
    status, out = run_pytest(folder, GROWING, *compare)
    assert status == 0, out
    status, out = run_pytest(folder, GROWING, *compare, TIMES="2")
    assert status == 1 and "+2.0 KiB: 2 buffers" in out, out


def test_without_ttnn_nothing_is_done(folder: Path) -> None:
    tests = """
        import sys
        def test_plain():
            maps = open("/proc/self/maps").read()
            assert "libttmem" not in maps
    """
    status, out = run_pytest(folder, tests, "--ttmem-fail-on-leak", "--ttmem", has_ttnn=False)
    assert status == 0 and "1 passed" in out, out


# ---- text that a test or a program chose itself ----

ACTING = "[\x01-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
HOSTILE = """
    # -*- coding: utf-8 -*-
    import linecache, pytest, ttmem, ttnn
    EVIL = ("\\x1b]0;pwned\\x07\\x9b31m\\u202egpj\\u2066\\u2028\\u2029\\u061c]]>&<b>\\"'"
            "\\nE   forged\\r\\ufffe")
    KEPT = {}
    def leak(size=4096):
        with ttmem.context(EVIL):
            number = next(ttnn._numbers)
            tensor = ttnn.zeros(size)
            ttmem.track_buffer(tensor, name=EVIL)
            KEPT[EVIL + str(number)] = tensor
    # A function and a file of any name, with a line of source that acts.
    SOURCE = "def f" + "():\\n    leak() # \\x1b[2J \\u202e " + "x" * 4000 + "\\n"
    PATH = "/nowhere/ev\\x1bil\\n\\u202e.py"
    linecache.cache[PATH] = len(SOURCE), None, SOURCE.splitlines(True), PATH
    SPACE = {"leak": leak}
    exec(compile(SOURCE, PATH, "exec"), SPACE)
    SPACE["f"].__code__ = SPACE["f"].__code__.replace(co_name="ev\\x1bil\\n")
    @pytest.mark.parametrize("text", [EVIL, EVIL * 20])
    def test_leaks(text):
        SPACE["f"]()
    def test_limit():
        with ttmem.no_leaks():
            SPACE["f"]()
    def test_shows():
        SPACE["f"]()
        print(ttmem.report())
        print(ttmem.snapshot())
        for change in ttmem.snapshot().origins[:3]:
            print(*map(str, ttmem.who_holds(change.buffers[0].address)), sep="\\n")
        assert False
    @pytest.mark.device_memory(peak="1 KiB")
    def test_peak():
        ttnn.zeros(4096)
"""


@pytest.mark.parametrize(
    "options",
    [
        ["--ttmem-fail-on-leak", "--ttmem"],
        ["--ttmem-baseline", "base.json", "--ttmem", "-rA"],
        ["--ttmem-fail-on-leak", "-v", "--ttmem-recordings", "ev\x1bil\u202e\n"],
    ],
)
def test_hostile_text_acts_neither_on_the_terminal_nor_in_xml(
    folder: Path, options: list[str]
) -> None:
    (folder / "base.json").write_text('{"schema": "ttmem/baseline/1", "tests": {}}')
    status, out = run_pytest(folder, HOSTILE, *options, "--junitxml=junit.xml")
    assert status == 1, out
    assert "5 failed" in out and "left" in out, out
    assert "pwned" in out
    found = re.search(ACTING + "|^E   forged", out, re.M)
    assert not found, (found, out[max(0, found.start() - 200) : found.end() + 60])
    xml = (folder / "junit.xml").read_text(encoding="utf-8")
    assert not re.search(ACTING, xml.replace("\t", "")), re.search(ACTING, xml)
    cases = ElementTree.fromstring(xml).iter("testcase")
    assert sum(len(case.findall("failure")) for case in cases) == 5


def test_hostile_text_is_harmless_without_pytest(folder: Path) -> None:
    texts = run_script(
        folder,
        """
        import ttmem, ttnn
        EVIL = "\\x1b[2J\\u202e\\n\\udcff\\x9b"
        KEPT = {}
        ttmem.start()
        text = ""
        try:
            with ttmem.no_leaks():
                with ttmem.context("ev\\x1b[2J\\u202e\\n\\x9b"):
                    KEPT[EVIL] = ttnn.zeros()
        except ttmem.LeakError as leak:
            text = str(leak)
        now = ttmem.snapshot()
        held = ttmem.who_holds(now.buffers[0].address)
        difference = ttmem.diff(ttmem.Snapshot(()), now)
        result = [text, ttmem.report(), str(now), str(difference), *map(str, held)]
        """,
    )
    assert len(texts) >= 5 and "held by: dict KEPT" in texts[0]
    for text in texts:
        assert not re.search(ACTING, text), text
