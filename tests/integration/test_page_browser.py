# SPDX-License-Identifier: Apache-2.0
"""The page of tt-mem export --format html in a real browser, driven as people do.

TTM_SCREENSHOTS=FOLDER keeps the pictures, for looking at them.
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Iterator

import pytest
from browser import Browser, find_browser
from pages import course_values, data_of, export
from support import run

SCREENSHOTS = os.environ.get("TTM_SCREENSHOTS", ".")


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_browser()
    if not program:
        pytest.skip("needs chromium (Debian: chromium)")
    with Browser(program, tmp_path_factory.mktemp("browser") / "profile") as started:
        yield started


@pytest.fixture(autouse=True)
def quiet(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever was done to a page: it said nothing on its console and asked for nothing."""
    yield
    if "browser" in request.fixturenames:
        seen = request.getfixturevalue("browser")
        assert seen.console == []
        assert [url for url in seen.requests if not url.startswith("file:")] == []
        assert len(seen.requests) == 1


def text(browser: Browser, selector: str) -> str:
    return str(browser.run(f"document.querySelector({json.dumps(selector)}).textContent"))


def texts(browser: Browser, selector: str) -> list[str]:
    found = browser.run(
        f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.textContent)"
    )
    assert isinstance(found, list)
    return found


def show(browser: Browser, story: str, width: int = 1440, scheme: str = "light") -> None:
    browser.resize(width, 900, width < 500)
    browser.prefer(scheme)
    browser.open(export(story).resolve())
    assert browser.run("document.documentElement.dataset.ready")


def test_the_head_says_what_ran_and_what_is_wrong(browser: Browser) -> None:
    show(browser, "leak")
    assert text(browser, "h1") == "python3 decode.py"
    facts = text(browser, "#facts")
    for words in ("exit 0", "1 device", "419 allocations", "nothing lost", "2 marks"):
        assert words in facts
    verdict = text(browser, "#verdict")
    assert verdict.startswith("2 suspects: 125 buffers that keep growing, 13.3\u00a0MiB")
    assert "decode.py:28 cache_kv" in verdict
    assert "fragmented" in text(browser, "#failure-list")
    browser.click("#verdict button")
    assert "none was freed" in text(browser, "#rows tr.detail")


def test_one_cause_of_several_origins_is_shown_once_and_leads_to_each(browser: Browser) -> None:
    show(browser, "crowd")
    shown = text(browser, "#causes").replace("\u00a0", " ")
    assert shown.startswith(
        "One cause for 5 origins, 100 buffers, 56.3 MiB: "
        "traceback of ValueError, held by list ERRORS in module crowd"
    )
    places = [f"crowd.py:{line}" for line in (13, 17, 21, 25, 29)]
    assert texts(browser, "#causes button") == [f"{place} step" for place in places]
    assert texts(browser, "#rows .place b")[:6] == [*places, "crowd.py:10"]
    browser.click("#causes button:nth-of-type(2)")
    detail = text(browser, "#rows tr.detail")
    assert "variable x17 of step (crowd.py:17), held by list ERRORS in module crowd" in detail
    show(browser, "leak")
    assert text(browser, "#causes") == ""


def test_what_grew_in_a_loop_that_is_over_does_not_keep_growing(browser: Browser) -> None:
    for story, words in (("over", "that kept growing"), ("over_and_on", "that keep or kept growing")):
        show(browser, story)
        assert words in text(browser, "#verdict")


def test_a_clash_is_told_by_its_address(browser: Browser) -> None:
    show(browser, "clash")
    told = text(browser, "#failure-list").replace("\u00a0", " ")
    assert "Circular buffers clash with L1 buffers on device 0, 2 times from " in told
    assert "Circular buffers would end at 0x254321 and take 64.0 MiB on all cores together" in told
    assert "; free 2.0 MiB a bank, largest block 128 KiB" in told
    assert "exhausted" not in told and "fragmented" not in told and "wanted" not in told


def test_failures_of_one_kind_and_place_are_told_once(browser: Browser) -> None:
    show(browser, "tries")
    heads = texts(browser, "#failure-list .failure > p:first-child")
    assert [re.sub(r".* device 0", "", head).replace("\u00a0", " ") for head in heads] == [
        ", 25 times from 10 ms to 130 ms, at tries.py:9 next (ttnn.zeros)",
        " after 5.0 ms at tries.py:7 first (ttnn.zeros)",
    ]
    assert "more failed" not in text(browser, "#failure-list")
    assert len(data_of(Path("tries.html"))["processes"][0]["failures"]) > 2  # all are drawn


def test_more_that_remains_than_the_peak_is_explained(browser: Browser) -> None:
    remark = "More remains than the peak"
    show(browser, "again")
    assert remark in text(browser, "#charts")
    show(browser, "leak")
    assert remark not in text(browser, "#charts")


def test_the_page_of_an_old_log_explains_its_numbers(browser: Browser) -> None:
    birth = "✓ [PID 7] Allocated 4096 bytes of L1 on device 0 (buffer_id=0x18b20)\n"
    end = "✗ [PID 7] Freed buffer 0x18b20 on device 0 (4096 bytes, FINAL)\n"
    Path("old.log").write_text(176 * birth + end + "✓ [PID 7] Alloc\n", encoding="utf-8")
    run("import", "old.log", "-o", "old.ttmem")
    show(browser, "old")
    facts = text(browser, "#facts")
    assert facts.startswith("from a text log without times · 1 device · 176 allocations, 1 free")
    assert "started" not in facts and "nobody knows how" not in facts
    cautions = text(browser, "#cautions")
    assert "address 0x18b20: 175 of 176 were allocated again" in cautions
    assert "an accounting artefact of the log" in cautions
    assert "1 × places of the log that cannot be read" in cautions
    assert text(browser, "#verdict") == (
        "Nothing remains: all that was allocated was freed or replaced"
    )
    browser.hover("#charts canvas")
    assert "% of the log" in text(browser, "#tip")


def test_rows_open_sort_and_are_searched(browser: Browser) -> None:
    show(browser, "leak")
    places = texts(browser, "#rows .place b")
    assert places[0] == "decode.py:28" and len(places) == 9
    browser.click("#rows tr.row .place")
    detail = text(browser, "#rows tr.detail")
    assert "bound it, or ttnn.deallocate()" in detail and "decode.py:61" in detail
    assert "100 ×" in detail and "13,107,200 B" in detail and "2.02 s" in detail
    browser.click("#rows tr.row .place")
    assert texts(browser, "#rows tr.detail") == []

    browser.click("#titles .c-count button")
    counts = [int(count) for count in texts(browser, "#rows .c-count")]
    assert counts == sorted(counts, reverse=True) and len(counts) == 9
    browser.click("#titles .c-count button")
    assert [int(count) for count in texts(browser, "#rows .c-count")] == sorted(counts)
    sorted_by = "document.querySelector('[aria-sort]').getAttribute('aria-sort')"
    assert browser.run(sorted_by) == "ascending"

    browser.click("#search")
    for key in "softmax":
        browser.press(key)
    browser.run("new Promise((resolve) => setTimeout(resolve, 200))")
    assert texts(browser, "#rows .c-op") == ["ttnn.softmax", "ttnn.softmax"]
    assert "of it" in text(browser, "#flame-path")
    browser.run(
        "(() => { const s = document.getElementById('region'); s.value = 'CB';"
        " s.dispatchEvent(new Event('change')); })()"
    )
    assert len(texts(browser, "#rows .c-op")) == 1
    assert texts(browser, "#charts h3") == ["CB"]


def test_the_flame_graph_zooms_by_click_and_by_key(browser: Browser) -> None:
    show(browser, "leak")
    names = texts(browser, "#flame-graph button")
    assert names[0] == "all" and "cache_kv (decode.py:28)" in names
    wide = "#flame-graph button[aria-label^='cache_kv']"
    before = browser.run(f"document.querySelector({json.dumps(wide)}).offsetWidth")
    browser.click(wide)
    width = browser.run("document.getElementById('flame-graph').offsetWidth")
    assert before < 0.7 * width
    assert browser.run(f"document.querySelector({json.dumps(wide)}).offsetWidth") == width
    assert "12.5\u00a0MiB" in text(browser, "#flame-path")
    assert "scratch (decode.py:32)" not in texts(browser, "#flame-graph button")
    browser.press("Escape")
    assert texts(browser, "#flame-graph button") == names

    # all, the largest region, its largest line.
    browser.press("ArrowDown")
    browser.press("ArrowDown")
    browser.press("Enter")
    assert browser.run("document.activeElement.getAttribute('aria-label')").startswith("main")
    assert "zoom out" in text(browser, "#flame-path")
    browser.click("#flame-of [data-value=peak]")
    assert "at the peak" in text(browser, "#flame-path")


def test_exact_values_under_the_pointer_and_by_key(browser: Browser) -> None:
    show(browser, "leak")
    browser.hover("#charts canvas")
    tip, at = text(browser, "#tip"), browser.run("charts[0].cross")
    assert tip.startswith(f"DRAM at {at / 1e9:.2f} s")
    course = data_of(Path("leak.html"))["processes"][0]["devices"][0]["regions"]["DRAM"]["course"]
    told = [value for value in course_values(course) if value[0] * course["span"] <= at][-1]
    assert f"({told[3]:,} B)" in tip and "mark “half”" in tip
    browser.hover("#banks canvas")
    assert "buffers" in text(browser, "#tip") and "0x" in text(browser, "#tip")
    browser.run("document.querySelectorAll('#banks canvas')[1].focus()")
    browser.press("ArrowRight")
    browser.press("ArrowRight")
    assert text(browser, "#tip").startswith("free")
    browser.run("document.querySelector('#charts canvas').focus()")
    browser.press("Home")
    assert text(browser, "#tip").startswith("DRAM at 0")
    browser.press("Escape")
    assert browser.run("document.getElementById('tip').hidden")


def test_charts_are_drawn_and_follow_the_theme(browser: Browser) -> None:
    pixel = (
        "(() => { const c = document.querySelector('#charts canvas');"
        " return [...c.getContext('2d').getImageData(c.width / 2, c.height - 3, 1, 1).data]; })()"
    )
    show(browser, "leak")
    light = browser.run(pixel)
    assert light[3] == 255
    browser.prefer("dark")
    browser.run("new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 50)))")
    dark = browser.run(pixel)
    assert sum(dark[:3]) < sum(light[:3])
    browser.click("#theme")  # from auto to light
    assert browser.run(pixel) == light
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    browser.click("#theme")
    assert browser.run(pixel) == dark
    browser.console.clear()  # a hint that reading pixels is slow, which only this test does


def test_hostile_names_do_nothing(browser: Browser) -> None:
    show(browser, "evil")
    browser.click("#rows tr.row .place")
    assert browser.run("document.title").startswith("tt-mem: python3 </script>")
    assert text(browser, "h1") == "python3 </script><script>document.title='hurt'</script>"
    assert browser.run("document.querySelectorAll('script').length") == 2
    assert browser.run("document.querySelectorAll('img, b[onclick]').length") == 0
    assert "</script>" in text(browser, "#rows tr.detail")
    assert "\u202e" not in text(browser, "main")


def test_the_policy_lets_no_other_script_run(browser: Browser) -> None:
    """Were text ever to become an element, it would still not run."""
    show(browser, "leak")
    browser.run(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.hurt = 1';"
        " document.body.append(s);"
        " const d = document.createElement('div'); document.body.append(d);"
        " d.setAttribute('onclick', 'window.hurt = 1'); d.click(); })()"
    )
    assert browser.run("window.hurt") is None
    assert any("Content Security Policy" in line for line in browser.console)
    browser.console.clear()


def test_devices_with_histories_of_their_own(browser: Browser) -> None:
    show(browser, "many")
    tiles = texts(browser, "#tiles button")
    assert len(tiles) == 8 and tiles[0].startswith("device 0")
    # The worst comes first.
    assert "device 16" in text(browser, "#timeline-title")
    browser.click("#tiles button:nth-child(3)")
    assert "devices 2–3" in text(browser, "#timeline-title")
    assert texts(browser, "#rows .c-op") == ["ttnn.from_torch"]


def test_several_processes(browser: Browser) -> None:
    show(browser, "two")
    assert "killed by SIGKILL" in text(browser, "#facts")
    assert len(texts(browser, "#process option")) == 2
    browser.run(
        "(() => { const s = document.getElementById('process'); s.value = '1';"
        " s.dispatchEvent(new Event('change')); })()"
    )
    assert text(browser, "h1") == "python3 worker.py --all"
    assert "No suspects" in text(browser, "#verdict")


def test_little_is_known(browser: Browser) -> None:
    show(browser, "bare")
    assert texts(browser, "#rows .place b") == ["(origin not known)"]
    assert "running on" in text(browser, "#facts")
    assert browser.run("document.getElementById('bank').hidden")
    browser.click("#rows tr.row .place")
    assert "MainThread" not in text(browser, "#rows tr.detail")
    browser.run(
        "(() => { const s = document.getElementById('process'); s.value = '1';"
        " s.dispatchEvent(new Event('change')); })()"
    )
    assert text(browser, "h1") == "pid 4243"
    assert text(browser, "#verdict") == "Nothing was allocated"
    assert text(browser, "#charts") == "Nothing was allocated."


def test_nothing_and_torn(browser: Browser) -> None:
    show(browser, "empty")
    assert text(browser, "h1") == "Nothing was recorded"
    export("leak")
    whole = Path("leak.ttmem").read_bytes()
    Path("torn.ttmem").write_bytes(whole[: len(whole) - 20])
    show(browser, "torn")
    assert "breaks off" in text(browser, "#cautions")


def test_a_million_events_are_there_within_a_second(browser: Browser) -> None:
    times = []
    for _ in range(3):  # others may be at work on this machine
        show(browser, "million")
        times.append(int(browser.run("document.documentElement.dataset.ready")))
    assert min(times) < 1000
    assert browser.run("document.querySelectorAll('*').length") < 3000
    start = time.monotonic()
    browser.hover("#charts canvas")
    browser.click("#origins-of [data-value=allocated]")
    browser.click("#more")
    browser.click("#flame-of [data-value=allocated]")
    assert time.monotonic() - start < 2
    assert len(texts(browser, "#rows tr.row")) == 260


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("story", ["leak", "many", "evil"])
def test_it_fits_on_a_screen_and_on_a_phone(
    browser: Browser, story: str, scheme: str, width: int
) -> None:
    show(browser, story, width, scheme)
    browser.run("document.querySelector('#rows .place').click()")
    assert browser.run("document.documentElement.scrollWidth") <= width
    shot = Path(SCREENSHOTS) / f"{story}-{scheme}-{width}.png"
    browser.screenshot(shot)
    assert shot.read_bytes().startswith(b"\x89PNG") and shot.stat().st_size > 10_000


def test_it_prints(browser: Browser) -> None:
    show(browser, "leak", scheme="dark")
    pdf = browser.pdf()
    assert pdf.startswith(b"%PDF") and len(pdf) > 20_000
