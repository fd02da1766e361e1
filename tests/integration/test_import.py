# SPDX-License-Identifier: Apache-2.0
"""tt-mem import: old text logs become recordings, and every analysis works on them.

The screen of the document's numbers is compared with tests/data/logs. After a change that is meant
to be seen, run this file with TTM_GOLDEN=write and look at the difference.
"""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path

import pytest
from old_logs import (
    DESTRUCTOR,
    DebugLog,
    Life,
    ServerLog,
    Truth,
    debug_block,
    live_and_let_die,
    rows_of,
    seed_one,
)
from support import Result, Server, Tail, run, run_json, run_ok

DATA = Path(__file__).parent.parent / "data" / "logs"


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def import_text(text: str | bytes, name: str = "old.log") -> Result:
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    result = run("import", name, "-o", "old.ttmem")
    assert result.status == 0 and result.out == "", result
    return result


# ---- known lives ----


@pytest.mark.parametrize("is_hex", [True, False])
def test_a_server_log_of_known_lives_gives_their_numbers(is_hex: bool) -> None:
    log, truth = ServerLog(is_hex), Truth()
    # Each has devices of its own: the original does not tell processes of one device apart.
    both = zip(
        live_and_let_die(3, 2000, 42, range(3)), live_and_let_die(4, 2000, 43, range(3, 5))
    )
    for number, (event, life) in enumerate(itertools.chain.from_iterable(both)):
        getattr(log, event)(life)
        (truth.born if event == "alloc" else truth.freed)(life)
        if number % 500 == 0:
            log.statistics()
    result = import_text(log.text())
    assert "broken" not in result.err
    report = run_json("report", "old.ttmem")
    assert rows_of(report) == truth.rows()
    for process in report["processes"]:
        assert process["complete"] and process["history_complete"]
        assert (process["source"], process["imported"], process["timed"]) == ("original", True, False)
        assert process["command"] == "old.log (imported)"


def test_a_debug_log_of_known_lives_gives_their_numbers_and_stacks() -> None:
    log, truth = DebugLog(), Truth()
    lines = {}
    for event, life in live_and_let_die(4, 3000, pid=0):
        getattr(log, event)(life)
        (truth.born if event == "alloc" else truth.freed)(life)
        if event == "alloc":
            lines[life.line] = lines.get(life.line, 0) + 1
    result = import_text(log.text())
    assert "broken" not in result.err and "OTHER" in result.err
    report = run_json("report", "old.ttmem")
    assert rows_of(report) == truth.rows()
    (process,) = report["processes"]
    assert process["complete"] and process["timed"]
    found: dict[int, int] = {}
    for origin in process["origins"]:
        assert origin["native"][0] == "tt::tt_metal::Buffer::allocate_impl()"
        line = int(re.search(r"operation_(\d)", origin["native"][1])[1])
        found[line] = found.get(line, 0) + origin["allocs"]
    assert found == lines
    assert any(f["kind"] != "replaced" for f in process["findings"]) or not process["findings"]


@pytest.mark.parametrize("kind", [ServerLog, DebugLog])
def test_a_log_that_breaks_off_is_read_up_to_there(kind: type) -> None:
    log = kind()
    for event, life in live_and_let_die(5, 60):
        getattr(log, event)(life)
    whole = log.text().encode()
    for cut in range(len(whole) // 2, len(whole), max(37, len(whole) // 60)):
        text = whole[:cut]
        err = import_text(text).err
        assert err.count("broken") <= 1
        if "broken" in err:
            line = int(re.search(r"1 broken place left out: line (\d+)", err)[1])
            # The last line, or the one that begins the last block.
            assert text.count(b"\n") + 1 - 14 <= line <= text.count(b"\n") + 1
        report = run_json("report", "old.ttmem")
        assert all(p["unknown_frees"] == 0 for p in report["processes"])


def test_double_births_are_found_and_the_newest_lives() -> None:
    log = DebugLog()
    first = Life(0, 0, "L1", 0x1000, 100, pointer=0xA0)
    again = Life(0, 0, "L1", 0x2000, 200, pointer=0xA0)  # the same object
    above = Life(0, 0, "L1", 0x2000, 400, pointer=0xB0)  # the same address
    for life in (first, again, above):
        log.alloc(life)
    import_text(log.text())
    report = run_json("report", "old.ttmem")
    assert rows_of(report) == {(0, 0, "L1"): (3, 0, 1, 400)}
    assert [(f["kind"], f["count"]) for f in report["processes"][0]["findings"]] == [("replaced", 2)]


# ---- the document's numbers ----


def test_the_headline_leak_is_explained_and_not_called_one() -> None:
    result = import_text(seed_one(), "debug.log")
    assert "broken" not in result.err
    (process,) = run_json("report", "old.ttmem")["processes"]
    by_name = {tuple(o["native"]): o for o in process["origins"] if o["native"]}
    for address, allocs in (("0x18b20", 176), ("0x18815e0", 188), ("0x1885800", 124)):
        origin = by_name[f"address {address}",]
        assert origin["allocs"] == allocs and origin["remaining"] <= 1
        assert origin["frees"] > 0
        assert origin["class"] == "unsure" and not origin["suspect"]
        assert "accounting artefact of the log" in origin["why"]
        assert "leak" in origin["advice"]
    assert "circular buffers" in by_name["address 0x18b20",]["why"]
    assert process["complete"]
    lives = run_json("history", "old.ttmem", "--address", "0x18b20")["lives"]
    assert len(lives) == 176
    screen = run_ok("report", "old.ttmem", "--all", env={"COLUMNS": "80"}).out
    golden = DATA / "seed-one.txt"
    if os.environ.get("TTM_GOLDEN") == "write":
        golden.write_text(screen, encoding="utf-8")
    assert screen == golden.read_text(encoding="utf-8")


def test_the_screen_explains_an_artefact_of_which_nothing_remains() -> None:
    birth = "✓ [PID 7] Allocated 4096 bytes of L1 on device 0 (buffer_id=0x18b20)\n"
    end = "✗ [PID 7] Freed buffer 0x18b20 on device 0 (4096 bytes, FINAL)\n"
    unknown = (
        "⚠ [PID 7] Deallocation for unknown buffer 0x55 on device 0 "
        "(allocated before tracking started)\n"
    )
    err = import_text(176 * birth + end + unknown).err
    assert "1 free of what it has no allocation of" in err and "176 allocations, 1 free;" in err
    for args in ((), ("--all",)):
        screen = " ".join(run_ok("report", "old.ttmem", *args, env={"COLUMNS": "80"}).out.split())
        assert "nothing remains: all that was allocated was freed or replaced" in screen
        assert "0x18b20: 175 of 176 were allocated again at the same address" in screen
        assert "an accounting artefact of the log, as circular buffers at the base" in screen
        assert "1 free of something unknown" in screen


def test_the_same_from_blocks() -> None:
    blocks = [
        debug_block(
            "BUFFER ALLOCATED",
            Life(0, 0, "L1", 0x18B20, (32768, 4096, 12288)[n % 3], pointer=0x1000 + 16 * n),
            n,
            "    libtt_metal.so: tt::tt_metal::Program::allocate_circular_buffers()\n",
        )
        for n in range(176)
    ]
    blocks.append(debug_block("BUFFER DEALLOCATED", Life(0, 0, "L1", 0x18B20, 4096, 0x1000), 200))
    import_text("".join(blocks))
    (process,) = run_json("report", "old.ttmem")["processes"]
    (origin,) = process["origins"]
    assert (origin["allocs"], origin["remaining"]) == (176, 1)
    assert origin["class"] == "unsure" and not origin["suspect"]
    assert "accounting artefact of the log" in origin["why"]


# ---- what is in a log besides ----


def test_circular_buffers_kernels_deaths_and_unknown_frees() -> None:
    import_text(
        "✓ [CB_ALLOC] Device 0: +0.25 MB (Total: 0.25 MB)\n"
        "✓ [KERNEL_LOAD] Fabric kernel on Device 0: +0.0625 MB (Total: 0.0625 MB)\n"
        "✓ [KERNEL_LOAD] Device 1: +2.1 MB (Total: 2.1 MB)\n"
        "✗ [CB_FREE] Device 0: -0.25 MB (Total: 0 MB)\n"
        "✓ [PID 7] Allocated 64 bytes of TRACE on device 0 (buffer_id=5)\n"
        "⚠ [PID 7] Deallocation for unknown buffer 0x55 on device 0 (allocated before tracking "
        "started)\n"
        "   PID 7 is dead, removing its buffers...\n"
        "   ✓ Removed 1 buffers (0 MB) from PID 7\n"
    )
    report = run_json("report", "old.ttmem")
    assert rows_of(report) == {
        (0, 0, "CB"): (1, 1, 0, 0),
        (0, 0, "KERNEL"): (1, 0, 1, 65536),
        (0, 1, "KERNEL"): (1, 0, 1, 2202010),
        (7, 0, "TRACE"): (1, 0, 1, 64),
    }
    seven = next(p for p in report["processes"] if p["pid"] == 7)
    assert seven["unknown_frees"] == 1 and not seven["complete"]
    assert seven["why_incomplete"] == "it freed what its log has no allocation of"
    none = next(p for p in report["processes"] if p["pid"] == 0)
    assert none["devices"][0]["regions"]["KERNEL"]["fabric_bytes"] == 65536


def test_views_that_are_kept_are_no_leak() -> None:
    own = Life(0, 0, "DRAM", 0x1000, 4096, pointer=1)
    blocks = [debug_block("BUFFER ALLOCATED", own, 0, "    m.so: load()\n")]
    step = Life(0, 0, "L1", 0x9000, 512, pointer=2)
    for n in range(50):
        view = Life(0, 0, "DRAM", 0x1000, 4096, pointer=100 + n)
        blocks.append(debug_block("BUFFER ALLOCATED", view, n, "    m.so: view()\n", owns="no"))
        blocks.append(debug_block("BUFFER ALLOCATED", step, n, "    m.so: step()\n"))
        blocks.append(debug_block("BUFFER DEALLOCATED", step, n))
    blocks.append(debug_block("BUFFER DEALLOCATED", view, n))
    import_text("".join(blocks))
    report = run_json("report", "old.ttmem")
    assert rows_of(report) == {(0, 0, "DRAM"): (1, 0, 1, 4096), (0, 0, "L1"): (50, 50, 0, 0)}
    (process,) = report["processes"]
    assert sum(origin["remaining_bytes"] for origin in process["origins"]) == 4096
    assert not any(origin["suspect"] for origin in process["origins"])
    assert process["complete"]
    assert "the 1 buffer left looks intended" in run_ok("report", "old.ttmem").out


def test_a_destructor_without_its_free_is_not_freed() -> None:
    life = Life(0, 0, "DRAM", 0x1000, 100, pointer=1)
    import_text(debug_block("BUFFER ALLOCATED", life) + debug_block(DESTRUCTOR, life))
    assert rows_of(run_json("report", "old.ttmem")) == {(0, 0, "DRAM"): (1, 0, 1, 100)}
    (only,) = run_json("history", "old.ttmem", "--address", "0x1000")["lives"]
    assert only["end"] == "device_closed"


def test_broken_lines_are_counted_with_their_numbers() -> None:
    good = "✓ [PID 7] Allocated 64 bytes of L1 on device 0 (buffer_id=5)\n"
    err = import_text(good + "✓ [PID 7] Alloc\n\nnonsense\n" + good.replace("=5", "=6")).err
    assert "tt-mem: 'old.log': 2 broken places left out: lines 2, 4\n" in err
    (process,) = run_json("report", "old.ttmem")["processes"]
    assert process["devices"][0]["regions"]["L1"]["allocs"] == 2
    assert not process["complete"] and "cannot be read" in process["why_incomplete"]
    err = import_text(good + "nonsense\n" * 100).err
    assert "100 broken places left out: lines 2, 3, 4, 5, 6, 7, 8, 9, …" in err


def test_a_log_of_many_windows_is_read_whole() -> None:
    log = DebugLog()
    life = Life(0, 0, "L1", 0x1000, 100, pointer=1)
    log.alloc(life)
    log.free(life)
    count = (10 << 20) // len(log.text().encode())
    import_text(log.text() * count)
    assert rows_of(run_json("report", "old.ttmem")) == {(0, 0, "L1"): (count, count, 0, 0)}


# ---- what can be done with it ----


def test_all_analyses_work_on_it() -> None:
    log = DebugLog()
    for event, life in live_and_let_die(6, 500):
        getattr(log, event)(life)
    import_text(log.text())
    Path("one.ttmem").write_bytes(Path("old.ttmem").read_bytes())
    for event, life in live_and_let_die(7, 500):
        getattr(log, event)(life)
    import_text(log.text())
    assert "by origin" in run_ok("report", "old.ttmem").out
    assert run_ok("report", "old.ttmem", "--at", "peak").out
    assert run_json("diff", "one.ttmem", "old.ttmem")
    stacks = run_ok("export", "old.ttmem", "--format", "folded", "-o", "-").lines
    assert any("ttnn::operation_" in line for line in stacks)
    run_ok("export", "old.ttmem", "--format", "speedscope", "-o", "out.json")


def test_what_it_exports_again_is_the_log_that_was_imported() -> None:
    log = DebugLog()
    for event, life in live_and_let_die(8, 300):
        if life.region != "TRACE":
            getattr(log, event)(life)
    text = log.text()
    import_text(text)
    run_ok("export", "old.ttmem", "--format", "debug-log", "-o", "again.log")
    # The destructors that a free followed are one end of a life.
    without = re.sub(rf"{'═' * 59}\n{re.escape(DESTRUCTOR)}\n.*?\n\n", "", text, flags=re.S)
    assert Path("again.log").read_text(encoding="utf-8") == without


def test_lines_of_our_own_tail_are_such_a_log(server: Server) -> None:
    with server.client() as marker, server.client() as client:
        with Tail(server=server, marker=marker) as tail:
            client.alloc(0, 4096, 0x1000, region=1)
            client.alloc(0, 8192, 0x1000, region=0)
            client.alloc(1, 64, 0x2000, region=1)
            client.free(1, 0x2000)
            client.sync()
            lines = tail.lines_until_mark()
    import_text("".join(lines))
    pid = os.getpid()
    assert rows_of(run_json("report", "old.ttmem")) == {
        (pid, 0, "L1"): (1, 0, 1, 4096),
        (pid, 0, "DRAM"): (1, 0, 1, 8192),
        (pid, 1, "L1"): (1, 1, 0, 0),
    }


def test_lines_that_our_tail_lost_are_not_forgotten() -> None:
    alloc = "✓ [PID {}] Allocated 64 bytes of L1 on device 0 (buffer_id={:#x}) Total: 0.000061 MB\n"
    result = import_text(
        alloc.format(7, 1)
        + "✗ [PID 7] Ended, 1 allocations went with it (0.000061 MB)\n"
        + alloc.format(8, 2)
        + "⚠ 9463 lines lost: this reader is too slow\n"
        + alloc.format(8, 3)
        + "⚠ 1 line lost: this reader is too slow\n"
    )
    assert "'old.log': 9,464 lines lost" in result.err and "broken" not in result.err
    before, there = run_json("report", "old.ttmem")["processes"]
    assert (before["pid"], before["lost_events"], before["complete"]) == (7, 0, True)
    assert (there["pid"], there["lost_events"], there["complete"]) == (8, 9464, False)
    assert there["why_incomplete"] == "some of its events were lost; peaks may have been higher"
    assert not there["history_complete"]


# ---- files ----


def test_an_existing_file_is_replaced_only_by_a_whole_one() -> None:
    Path("old.ttmem").write_text("precious")
    Path("none.log").write_text("hello\nworld\n")
    assert "neither blocks" in run("import", "none.log", "-o", "old.ttmem").complains(1)
    assert Path("old.ttmem").read_text() == "precious"
    import_text(ServerLog().text() + "   PID 7 is dead, removing its buffers...\n")
    assert run_json("report", "old.ttmem")["processes"][0]["pid"] == 7
    assert sorted(p.name for p in Path().iterdir()) == ["none.log", "old.log", "old.ttmem"]


def test_wrong_usage_and_files() -> None:
    log = "✓ [PID 7] Allocated 64 bytes of L1 on device 0 (buffer_id=5)\n"
    Path("old.log").write_text(log)
    Path("empty.log").write_text("")
    assert "which log" in run("import", "-o", "x.ttmem").complains(2)
    assert "one log" in run("import", "a", "b", "-o", "x.ttmem").complains(2)
    assert "where to" in run("import", "old.log").complains(2)
    assert "No such file" in run("import", "no.log", "-o", "x.ttmem").complains(1)
    assert "Is a directory" in run("import", ".", "-o", "x.ttmem").complains(1)
    assert "neither blocks" in run("import", "empty.log", "-o", "x.ttmem").complains(1)
    assert "cannot write" in run("import", "old.log", "-o", "no/such/x.ttmem").complains(1)
    assert "No space left" in run("import", "old.log", "-o", "/dev/full").complains(1)
    assert "the log itself" in run("import", "old.log", "-o", "old.log").complains(1)
    assert Path("old.log").read_text() == log
    assert not Path("x.ttmem").exists()
