# SPDX-License-Identifier: Apache-2.0
"""tt-mem top: the dashboard, on a terminal and as text."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Callable

import pytest
from screens import Screen, needs_tmux
from support import SLOWNESS, Server, Tracked, Tree, run, wait_until_exact

N300, P150A = "0000:41:00.0", "0000:01:00.0"
UTF8 = {"LC_ALL": "C.UTF-8"}


@pytest.fixture
def machine(tree: Tree) -> Tree:
    tree.card(0, N300)
    tree.p150a(1, P150A)
    tree.process(4242, "python3 -m serve --model llama", holds=(0, 1))
    tree.pids(0, 4242)
    tree.pids(1, 4242)
    return tree


def env(tree: Tree, server: Server | None = None, **more: str) -> dict[str, str | None]:
    return {
        "TTMEM_ROOT": str(tree.root),
        "TTMEM_SOCKET": server.socket if server else str(tree.folder / "no-server"),
        "XDG_CONFIG_HOME": str(tree.folder / "config"),
        **UTF8,
        **more,
    }


def snapshot(tree: Tree, *args: str, server: Server | None = None, **more: str) -> str:
    size = {"COLUMNS": "100", "LINES": "30"}
    result = run("top", "--snapshot", *args, env=env(tree, server, **{**size, **more}))
    assert result.status == 0 and result.err == "", result
    return result.out


def cpu_s(pid: int) -> float:
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(path.read_text().split()[0]) for path in tasks) / 1e9


# As text.


def test_a_snapshot_without_server_and_device_says_what_to_do(tree: Tree) -> None:
    text = snapshot(tree)
    assert "no server" in text and "tt-mem demo" in text and "tt-mem serve" in text
    assert len(text.splitlines()) == 30


def test_a_snapshot_has_the_size_that_was_asked_for(machine: Tree) -> None:
    for columns, rows in ((40, 12), (80, 24), (200, 60)):
        for view in "123":
            text = snapshot(machine, "--view", view, COLUMNS=str(columns), LINES=str(rows))
            lines = text.splitlines()
            assert len(lines) == rows, text
            assert max(map(len, lines)) <= columns, text


def test_sensors_of_cards_and_none_of_remote_chips(machine: Tree) -> None:
    text = snapshot(machine)
    assert "54 °C  12/100 W  500 MHz" in text
    assert "38 °C  16/150 W  800 MHz" in text
    assert "n300 R" in text and "remote" in text


def test_who_does_not_report_is_told_with_what_to_do(machine: Tree) -> None:
    text = snapshot(machine)
    assert "python3 -m serve" in text
    assert "4242 does not report" in text


def test_devices_can_be_chosen(machine: Tree) -> None:
    text = snapshot(machine, "-d", "1")
    assert "p150a" in text and "n300" not in text and "1 device " in text


def test_what_is_not_on_the_devices_chosen_may_be_elsewhere(tree: Tree) -> None:
    tree.p150a(0, N300)
    tree.p150a(1, P150A)
    tree.process(4242, holds=(0,))
    tree.pids(0, 4242)
    assert "no process holds a device chosen with -d" in snapshot(tree, "-d", "1")
    assert "no process holds" not in snapshot(tree, "-d", "0")


def test_without_utf8_it_is_ascii(machine: Tree) -> None:
    for view in "123":
        assert snapshot(machine, "--view", view, LC_ALL="C").isascii()


def test_a_pipe_gets_no_colours_and_no_control_characters(machine: Tree) -> None:
    machine.process(5151, b"evil\x1b[2J\x07 \xc2\x9b31m")
    machine.pids(0, 5151)
    text = snapshot(machine)
    assert "5151" in text
    assert all(c == "\n" or (c >= " " and not "\x7f" <= c < "\xa0") for c in text)


def test_a_chip_that_hangs_is_told_and_holds_nobody_up(machine: Tree) -> None:
    path = next(machine.root.glob("sys/devices/*/0000:41:00.0/hwmon/*/temp1_input"))
    path.unlink()
    os.mkfifo(path)  # nobody ever writes to it
    text = snapshot(machine)
    assert "hangs" in text and "38 °C" in text, text


def test_memory_of_a_tracked_process(tree: Tree, server: Server) -> None:
    with Tracked(server) as worker:
        worker.do("alloc 0 0 10 1048576")
        worker.do("alloc 3 1 4 65536")
        wait_until_exact(server, worker)
        assert worker.truth[3, "L1"][2] // 1024 == 262  # the footprint
        text = snapshot(tree, server=server)
        assert "server ok" in text and "2 devices" in text
        row = next(line for line in text.splitlines() if str(worker.pid) in line)
        assert "tracked" in row and "10.0M" in row and "262K" in row, row
        assert "0,3" in row, row
        origins = snapshot(tree, "--view", "3", server=server)
        rows = [line for line in origins.splitlines() if str(worker.pid) in line]
        assert len(rows) == 2 and "10.0M" in rows[0] and " 10 " in rows[0], origins
        assert "DRAM" in rows[0] and "L1" in rows[1], origins
        text = snapshot(tree, "--view", "1", "-d", "9", server=server)
        assert "No device chosen with -d is here." in text, text
        text = snapshot(tree, "--view", "3", "-d", "9", server=server)
        assert "nothing is allocated on devices chosen with -d" in text, text


def test_origins_are_on_the_devices_that_the_first_page_shows(machine: Tree, make_server) -> None:
    """Programs number chips by PCI address: their device 0 is the driver's 1."""
    server: Server = make_server().start(env={"TTMEM_ROOT": str(machine.root)})
    with Tracked(server) as worker:
        worker.do("alloc 0 0 10 1048576")
        wait_until_exact(server, worker)
        row = next(r for r in snapshot(machine, server=server).splitlines() if str(worker.pid) in r)
        assert row.split()[2] == "1", row
        for args in ((), ("-d", "1")):
            text = snapshot(machine, "--view", "3", *args, server=server)
            row = next(r for r in text.splitlines() if str(worker.pid) in r)
            assert " DRAM     1 " in row and "device 1 DRAM" in text, text
        assert str(worker.pid) not in snapshot(machine, "--view", "3", "-d", "0", server=server)


@pytest.mark.parametrize(
    "args", [["--view", "4"], ["--view", "x"], ["-r", "1"], ["-d", "x"], ["--nonsense"], ["word"]]
)
def test_wrong_usage(args: list[str]) -> None:
    result = run("top", *args)
    assert result.status == 2 and result.out == "" and "tt-mem" in result.err


# On a terminal.


@needs_tmux
def test_keys_lead_through_the_pages_and_out(machine: Tree, folder: Path) -> None:
    with Screen(folder, "top", env=env(machine)) as screen:
        screen.wait_for("3 devices", "54 °C", "REPORTS")
        screen.keys("2")
        screen.wait_for("the last 1 min")
        screen.keys("+")
        screen.wait_for("the last 2 min")
        screen.keys("3")
        screen.wait_for("BYTES", "no server is running")
        screen.keys("?")
        screen.wait_for("man tt-mem-top")
        screen.keys("x", "1")
        screen.wait_for("REPORTS")
        screen.keys("q")
        screen.assert_usable(0)


@needs_tmux
@pytest.mark.parametrize("size", [(40, 12), (80, 24), (120, 40), (200, 50)])
def test_the_terminal_shows_what_a_snapshot_draws(
    machine: Tree, folder: Path, size: tuple[int, int]
) -> None:
    """So the golden screens of the unit tests are those of the terminal as well."""

    def rows(text: str) -> list[str]:
        lines = [line.rstrip() for line in text.splitlines()]
        return [re.sub(r" +\d\d:\d\d:\d\d$", "", lines[0]), *lines[1:]]

    columns, lines = size
    with Screen(folder, "top", columns=columns, rows=lines, env=env(machine)) as screen:
        for view in "13":
            screen.keys(view)
            whole = snapshot(machine, "--view", view, COLUMNS=str(columns), LINES=str(lines))
            want = rows(whole)
            screen.wait_until(lambda text, want=want: rows(text) == want, f"view {view}")
        screen.resize(80, 24)  # for what is written in the end
        screen.keys("1", "q")
        screen.assert_usable(0)


@needs_tmux
def test_a_filter_and_the_choice_of_a_row(machine: Tree, folder: Path) -> None:
    machine.process(5151, "other program", holds=(0,))
    machine.pids(0, 4242, 5151)
    with Screen(folder, "top", env=env(machine)) as screen:
        screen.wait_for("4242", "5151")
        screen.keys("/", "o", "t", "h", "e", "r")
        screen.wait_until(lambda text: "5151" in text and " 4242 " not in text, "the filter")
        screen.keys("Escape")
        screen.wait_for("4242", "5151")
        screen.keys("q")
        screen.assert_usable(0)


@needs_tmux
def test_settings_are_remembered(machine: Tree, folder: Path) -> None:
    with Screen(folder, "top", env=env(machine)) as screen:
        screen.wait_for("REPORTS")
        screen.keys("2", "-", "q")
        screen.assert_usable(0)
    with Screen(folder, "top", env=env(machine)) as screen:
        screen.wait_for("the last 30 s")
        screen.keys("q")
        screen.assert_usable(0)
    assert "REPORTS" in snapshot(machine)  # a script is not to know what somebody looked at
    assert "the last" in snapshot(machine, "--view", "2")
    (machine.folder / "config/tt-mem/top.conf").write_bytes(b"\xff\x00view = 77\n[[[")
    assert "54 °C" in snapshot(machine)


@needs_tmux
def test_the_screen_follows_the_size_of_the_terminal(machine: Tree, folder: Path) -> None:
    with Screen(folder, "top", env=env(machine)) as screen:
        screen.wait_for("REPORTS")
        screen.resize(140, 50)
        screen.wait_for("by memory", "TRACE")
        screen.resize(40, 12)
        screen.wait_until(lambda text: "REPORTS" not in text and "COMMAND" in text, "less of it")
        screen.resize(20, 5)
        screen.wait_for("tt-mem needs 40")
        screen.resize(80, 24)
        screen.wait_for("REPORTS")
        screen.keys("q")
        screen.assert_usable(0)


@needs_tmux
@pytest.mark.parametrize("refresh", ["100", "3600000"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_leaves_a_usable_terminal(
    machine: Tree, folder: Path, number: int, refresh: str
) -> None:
    with Screen(folder, "top", "-r", refresh, env=env(machine)) as screen:
        screen.wait_for("REPORTS")
        os.kill(screen.pid, number)
        screen.assert_usable(0)


@needs_tmux
def test_a_chip_that_hangs_shows_what_it_last_told_and_since_when(
    machine: Tree, folder: Path
) -> None:
    path = next(machine.root.glob("sys/devices/*/0000:41:00.0/hwmon/*/temp1_input"))
    with Screen(folder, "top", "-r", "100", env=env(machine)) as screen:
        screen.wait_for("54 °C", "38 °C")
        os.mkfifo(folder / "fifo")
        os.rename(folder / "fifo", path)  # nobody writes to it
        text = screen.wait_for("hangs for ", "was 54 °C")
        assert "38 °C" in text
        screen.wait_until(lambda text: re.search("hangs for [3-9] s", text) is not None, "its age")
        clocks = {screen.wait_for(":")[70:80]}
        screen.wait_until(lambda text: text[70:80] not in clocks, "the clock to go on")
        screen.keys("2")
        screen.wait_for("the last 1 min")
        screen.keys("1")
        fd = os.open(path, os.O_WRONLY)  # from here on it reads, and nobody opens it again
        (folder / "file").write_text("62000\n")
        os.rename(folder / "file", path)
        os.write(fd, b"61000\n")
        os.close(fd)
        screen.wait_for("62 °C")
        screen.keys("q")
        screen.assert_usable(0)


@needs_tmux
def test_an_origin_follows_what_happens_and_grows_older_while_nothing_does(
    tree: Tree, server: Server, folder: Path
) -> None:
    tree.card(0, N300, tt_card_type="n150")

    def ages(text: str) -> str:
        found = re.search(r"ages +(.+)", text)
        return found[1] if found else ""

    def addresses(text: str) -> list[str]:
        return re.findall(r"0x\w+ +[0-9.]+ [KM]iB", text)

    with Tracked(server) as worker:
        worker.do("alloc 0 0 10 1048569")
        with Screen(folder, "top", "-r", "100", "--view", "3", env=env(tree, server)) as screen:
            screen.wait_for("BYTES", str(worker.pid))
            screen.keys("Enter")
            before = ages(screen.wait_for("10 allocations", "1.0 MiB", "0x"))
            for _ in range(2):
                screen.wait_until(lambda text: ages(text) not in ("", before), "it to grow older")
                before = ages(screen.wait_for("10 allocations"))
            worker.do("alloc 0 0 5 4089")
            screen.wait_for("15 allocations", "4.0 KiB")
            worker.do("free 12")
            screen.wait_until(
                lambda text: " 3 allocations" in text and len(addresses(text)) == 3,
                "them to be gone",
            )
            screen.keys("q", "q")
            screen.assert_usable(0)


@needs_tmux
def test_what_crosses_the_link_is_shown(tree: Tree, folder: Path) -> None:
    card = tree.card(0, N300, tt_card_type="n150")
    counter = card.node / "pcie_perf_counters" / "mst_posted_wr_data_word_sent0"
    with Screen(folder, "top", "-r", "100", env=env(tree)) as screen:
        screen.wait_for("PCIe in 0 out 0/s")
        counter.write_text("1123456\n")
        screen.wait_until(
            lambda text: re.search(r"PCIe in 0 out [0-9.]+[KMG]/s", text) is not None, "the rate"
        )
        screen.wait_for("PCIe in 0 out 0/s")
        screen.keys("q")
        screen.assert_usable(0)


@needs_tmux
def test_chips_come_and_go(tree: Tree, folder: Path) -> None:
    card = tree.card(0, N300, tt_card_type="n150")
    with Screen(folder, "top", "-r", "100", env=env(tree)) as screen:
        screen.wait_for("54 °C", "1 device ")
        tree.unplug(card)
        screen.wait_for("removed")
        tree.p150a(1, P150A)
        screen.wait_for("2 devices", "38 °C", "removed")
        (tree.root / "sys/class/tenstorrent/tenstorrent!0").symlink_to(
            os.path.relpath(card.node, tree.root / "sys/class/tenstorrent")
        )
        screen.wait_until(lambda text: "removed" not in text and "54 °C" in text, "it to be back")
        card.reset()
        screen.wait_for("in reset", "38 °C")
        screen.keys("q")
        screen.assert_usable(0)


@needs_tmux
def test_paused_the_picture_stands(machine: Tree, folder: Path) -> None:
    hwmon = next(machine.root.glob("sys/devices/*/0000:41:00.0/hwmon/*"))
    with Screen(folder, "top", "-r", "100", env=env(machine)) as screen:
        screen.wait_for("54 °C")
        screen.keys("p")
        still = screen.wait_for("PAUSED")
        (hwmon / "temp1_input").write_text("60000\n")
        screen.keys("2")
        screen.wait_for("PAUSED", "the last")
        screen.keys("1")
        assert screen.wait_for("PAUSED", "REPORTS") == still
        screen.keys("p")
        screen.wait_until(lambda text: "60 °C" in text and "PAUSED" not in text, "it to go on")
        screen.keys("q")
        screen.assert_usable(0)


@needs_tmux
def test_processes_are_sorted_as_it_is_asked(machine: Tree, folder: Path) -> None:
    machine.process(17, "zz last", uid=0)
    machine.process(5151, "aa first", uid=0)
    machine.pids(0, 17, 4242, 5151)

    def order(text: str) -> list[int]:
        rows = text.split("REPORTS", 1)[-1].splitlines()
        return [int(pid) for row in rows for pid in re.findall(r"^ +(17|4242|5151) ", row)]

    def wait_for_order(screen: Screen, *wanted: int) -> None:
        screen.wait_until(lambda text: order(text) == list(wanted), f"the order {wanted}")

    with Screen(folder, "top", "-r", "100", columns=120, env=env(machine)) as screen:
        screen.wait_for("by memory")
        screen.keys("s", "s")
        screen.wait_for("by pid")
        wait_for_order(screen, 17, 4242, 5151)
        screen.keys("r")
        screen.wait_for("by pid, reversed")
        wait_for_order(screen, 5151, 4242, 17)
        screen.keys("r", "s", "s")
        screen.wait_for("by command")
        wait_for_order(screen, 5151, 4242, 17)
        screen.keys("q")
        screen.assert_usable(0)


@needs_tmux
def test_a_command_line_cannot_write_to_the_terminal(machine: Tree, folder: Path) -> None:
    machine.process(5151, b"evil\x1b]0;owned\x07\x1b[2J\x1b[31m\xc2\x9b31m\xff\xfe\x0e\x9b")
    machine.pids(0, 5151)
    with Screen(folder, "top", columns=120, env=env(machine)) as screen:
        # The screen is whole.
        screen.wait_for("5151", r"evil\x1b]0;owned\x07\x1b[2J", "54 °C", "q quit")
        screen.keys("q")
        screen.assert_usable(0)


@needs_tmux
def test_without_utf8_the_terminal_gets_ascii(machine: Tree, folder: Path) -> None:
    with Screen(folder, "top", env=env(machine, LC_ALL="C")) as screen:
        text = screen.wait_for("54 C", "REPORTS")
        assert text.isascii()
        for page in "23":
            screen.keys(page)
            assert screen.wait_for("the last" if page == "2" else "BYTES").isascii()
        screen.keys("1", "q")
        screen.assert_usable(0)


@needs_tmux
def test_a_galaxy_fits(tree: Tree, folder: Path) -> None:
    for number in range(32):
        tree.card(number, f"0000:{number + 1:02x}:00.0", tt_card_type="galaxy-wormhole")
    with Screen(folder, "top", env=env(tree)) as screen:
        text = screen.wait_until(lambda text: text.count("54 °C") == 32, "all chips")
        assert "32 devices" in text and "REPORTS" in text
        screen.keys("q")
        screen.assert_usable(0)


@needs_tmux
def test_a_server_that_goes_is_told_and_found_again(
    tree: Tree, folder: Path, make_server: Callable[[str], Server]
) -> None:
    server = make_server("s")
    with Screen(folder, "top", "-r", "200", env=env(tree, server)) as screen:
        screen.wait_for("no server")
        server.start()
        screen.wait_for("server ok")
        server.stop()
        screen.wait_for("server gone")
        server.start()
        screen.wait_for("server ok")
        server.kill()
        screen.wait_for("server gone")
        server.start()
        screen.wait_for("server ok")
        screen.keys("q")
        screen.assert_usable(0)


@needs_tmux
def test_a_server_that_stands_does_not_hold_up_the_screen(
    tree: Tree, folder: Path, server: Server
) -> None:
    with Screen(folder, "top", "-r", "200", env=env(tree, server)) as screen:
        screen.wait_for("server ok")
        server.freeze()
        screen.wait_for("server does not answer")
        screen.keys("?")
        screen.wait_for("man tt-mem-top")
        server.thaw()
        screen.keys("x")
        screen.wait_for("server ok")
        screen.keys("q")
        screen.assert_usable(0)


@needs_tmux
def test_what_is_allocated_appears_and_goes_with_its_process(
    tree: Tree, folder: Path, server: Server
) -> None:
    with Tracked(server) as worker, Screen(folder, "top", "-r", "200", env=env(tree, server)) as screen:
        screen.wait_for("server ok")
        worker.do("alloc 0 0 10 1048576")
        screen.wait_for(str(worker.pid), "10.0M", "tracked")
        screen.keys("3")
        screen.wait_for("BYTES", str(worker.pid), "10.0M")
        screen.keys("Enter")
        screen.wait_for("10 allocations", "addresses", "Esc back")
        screen.keys("Escape")
        screen.wait_for("BYTES")
        screen.keys("1")
        worker.kill()
        screen.wait_until(lambda text: str(worker.pid) not in text, "the process to go")
        screen.keys("q")
        screen.assert_usable(0)


@needs_tmux
def test_colours_only_where_they_are_wanted(machine: Tree, folder: Path) -> None:
    with Screen(folder, "top", env=env(machine)) as screen:
        screen.wait_for("REPORTS")
        assert "\x1b[1m\x1b[36m" in screen.coloured()  # the keys of the last line
        screen.keys("q")
        screen.assert_usable(0)
    with Screen(folder, "top", env=env(machine, NO_COLOR="1")) as screen:
        screen.wait_for("REPORTS")
        assert "\x1b[36m" not in screen.coloured()
        screen.keys("q")
        screen.assert_usable(0)


@needs_tmux
def test_without_a_keyboard_it_goes_on_and_takes_little(machine: Tree, folder: Path) -> None:
    with Screen(folder, "top", "-r", "100", env=env(machine), stdin="/dev/null") as screen:
        first = screen.wait_for("REPORTS", "54 °C")[70:80]
        before = cpu_s(screen.pid)
        screen.wait_until(lambda text: text[70:80] != first, "the clock to go on")
        assert cpu_s(screen.pid) - before < 0.3 * SLOWNESS  # a loop would take a second
        os.kill(screen.pid, signal.SIGTERM)
        screen.assert_usable(0)


@needs_tmux
def test_a_dumb_terminal_gets_one_frame_below_the_other(machine: Tree, folder: Path) -> None:
    with Screen(folder, "top", "-r", "100", env=env(machine), term="dumb") as screen:
        lines = screen.wait_for("54 °C", "q quit", " tt-mem ").splitlines()
        assert lines[0].startswith(" tt-mem "), lines  # a whole frame fits
        os.kill(screen.pid, signal.SIGTERM)
        screen.assert_usable(0)


@needs_tmux
def test_a_terminal_that_nobody_knows_gets_text_alone(machine: Tree, folder: Path) -> None:
    with Screen(folder, "top", "-r", "100", env=env(machine), term="no-such-terminal") as screen:
        screen.wait_for("54 °C", "q quit")
        assert "\x1b" not in screen.coloured()
        os.kill(screen.pid, signal.SIGTERM)
        screen.assert_usable(0)
