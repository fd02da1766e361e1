# SPDX-License-Identifier: Apache-2.0
"""tt-mem ps: who holds a device, and whether they report."""

import os
import pwd

import pytest
from support import (
    IS_ROOT,
    NOBODY,
    Server,
    Tracked,
    Tree,
    needs_root,
    run_on_terminal,
    wait_for,
    wait_until_exact,
)

N300, P150A = "0000:41:00.0", "0000:01:00.0"
REGIONS = ["DRAM", "L1", "SYSTEM_MEMORY", "L1_SMALL", "TRACE", "CB", "KERNEL"]


@pytest.fixture
def busy(tree: Tree) -> Tree:
    """
    4242 holds both devices, one of them twice; 4310 holds one; one is in another namespace; 3999
    has ended; 5000 holds nothing.
    """
    tree.card(0, N300)
    tree.p150a(1, P150A)
    tree.process(4242, "python3 -m serve --model llama", holds=(0, 0, 1))
    tree.process(4310, "./ttnn_bench --device 1", uid=0, holds=(1,))
    tree.process(5000, "bash")
    tree.pids(0, 4242, 4242)
    tree.pids(1, 0, 3999, 4310, 4242)
    return tree


def test_json_has_the_keys_of_the_contract(busy: Tree) -> None:
    document = busy.json("ps")
    assert document["schema"] == "tt-mem/ps/1"
    assert document["foreign"] == 1
    assert [p["pid"] for p in document["processes"]] == [4242, 4310]
    first, second = document["processes"]
    assert first["command"] == "python3 -m serve --model llama"
    assert first["devices"] == [0, 1]
    assert first["reporting"] == "no" and first["regions"] == {}
    assert second["user"] == "root" and second["devices"] == [1]


def test_a_user_has_a_name_or_a_number(tree: Tree) -> None:
    tree.card(0, N300)
    unknown = next(uid for uid in range(54321, 65000) if not _has_name(uid))
    tree.process(10, uid=unknown)
    tree.process(11, uid=NOBODY)
    tree.pids(0, 10, 11)
    processes = tree.processes()
    assert processes[10]["user"] == str(unknown) and processes[10]["uid"] == unknown
    assert processes[11]["user"] == pwd.getpwuid(NOBODY).pw_name


def _has_name(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def test_nobody_is_said_helpfully(tree: Tree) -> None:
    assert tree.json("ps") == {
        "schema": "tt-mem/ps/1",
        "processes": [],
        "foreign": 0,
        "hidden": 0,
        "server": False,
    }
    assert "no process holds a Tenstorrent device" in tree.text("ps")
    assert "tt-mem demo" in tree.text("ps")
    tree.card(0, N300)
    assert "tt-mem run" in tree.text("ps")


def test_who_does_not_report_is_told_what_to_do(busy: Tree) -> None:
    text = busy.text("ps")
    assert "4242 and 1 more do not report" in text
    assert "tt-mem run python3 -m serve --model llama" in text
    assert "1 more holds a device and cannot be seen from here" in text


def test_one_foreign_process_on_many_devices_is_one(tree: Tree) -> None:
    for number in range(8):
        tree.card(number, f"0000:{number + 1:02x}:00.0")
        tree.pids(number, 0)
    assert tree.json("ps")["foreign"] == 1
    assert tree.processes() == {}


def test_an_old_driver_does_not_tell_and_proc_does(busy: Tree) -> None:
    busy.old_driver()
    processes = busy.processes()
    assert {pid: p["devices"] for pid, p in processes.items()} == {4242: [0, 1], 4310: [1]}
    assert busy.json("ps")["foreign"] == 0  # which proc cannot tell


def test_a_child_that_was_left_the_device_is_found(tree: Tree) -> None:
    """The driver names the opener, which has ended."""
    tree.card(0, N300)
    tree.process(4000, holds=(0,))
    tree.pids(0, 3999)
    assert {pid: p["devices"] for pid, p in tree.processes().items()} == {4000: [0]}


@pytest.mark.parametrize("has_pids", [True, False])
def test_processes_that_may_not_be_looked_into(tree: Tree, has_pids: bool) -> None:
    """With 'pids' that is not needed; without, they are counted."""
    tree.card(0, N300)
    tree.process(4242, holds=(0,), uid=0)
    tree.pids(0, 4242)
    (tree.root / "proc/4242/fd").chmod(0)
    if not has_pids:
        tree.old_driver()
    options = {"uid": NOBODY} if IS_ROOT else {}
    document = tree.json("ps", **options)
    assert document["hidden"] == (0 if has_pids else 1)
    assert [p["pid"] for p in document["processes"]] == ([4242] if has_pids else [])
    if not has_pids:
        hint = "1 process of other users could not be looked into: sudo tt-mem "
        assert hint + "ps" in tree.text("ps", **options)
        assert hint + "top" in tree.text("top", "--snapshot", **options)


@needs_root
def test_a_process_of_another_user_is_listed_with_what_anybody_may_see(tree: Tree) -> None:
    tree.card(0, N300)
    tree.process(4242, uid=0)
    (tree.root / "proc/4242/maps").chmod(0)
    tree.pids(0, 4242)
    process = tree.processes(uid=NOBODY)[4242]
    assert process["user"] == "root" and process["command"] == "python3 serve.py"
    assert process["reporting"] == "no"


def test_the_runtimes_own_count_is_shown_as_such(busy: Tree) -> None:
    busy.shm(9956368527, {4242: (3 << 20, 2 << 20, 7, 8, 9)})
    busy.shm(0xF5DDD9F78D7E0BEE, {4242: (1 << 20,)})
    process = busy.processes()[4242]
    assert process["reporting"] == process["source"] == "runtime"
    assert process["devices"] == [0, 1]
    unknown = {"footprint_bytes": None, "count": None}
    assert process["regions"]["DRAM"] == {"bytes": 4 << 20, **unknown}
    assert process["regions"]["L1"] == {"bytes": 2 << 20, **unknown}
    assert process["regions"]["CB"]["bytes"] == 9
    assert "KERNEL" not in process["regions"]
    text = busy.text("ps")
    assert "4.0 MiB" in text and "runtime: by TT-Metal's own count" in text


def test_the_most_memory_comes_first(busy: Tree) -> None:
    busy.shm(9956368527, {4242: (1,), 4310: (1 << 20,), 5000: (5000,)})
    assert [p["pid"] for p in busy.json("ps")["processes"]] == [4310, 5000, 4242]


def test_a_process_of_a_simulated_run_is_listed(tree: Tree) -> None:
    """It holds no device, and the runtime counts it all the same."""
    tree.process(4242)
    tree.shm(9000000003, {4242: (1 << 20,)}, device=3)
    process = tree.processes()[4242]
    assert process["devices"] == [3] and process["reporting"] == "runtime"


def test_what_dead_processes_left_behind_is_not_shown(busy: Tree) -> None:
    busy.shm(9956368527, {3999: (10,), 4310: (20,)}, age_s=15000)  # before 4310 started
    assert {pid: p["reporting"] for pid, p in busy.processes().items()} == {
        4242: "no",
        4310: "no",
    }


def test_a_library_that_is_loaded_and_unknown_to_servers_is_disabled(busy: Tree) -> None:
    maps = "7f1000-7f2000 r-xp 0 08:01 7    /usr/lib/x86_64-linux-gnu/libttmem.so.0.1.0\n"
    busy.write("proc/4310/maps", maps)
    assert busy.processes()[4310]["reporting"] == "disabled"
    assert "4310 could report, and there is no server: tt-mem serve" in busy.text("ps")
    busy.shm(9956368527, {4310: (20,)})
    process = busy.processes()[4310]  # what is known is shown, and what to do
    assert process["reporting"] == "disabled" and process["source"] == "runtime"
    assert process["regions"]["DRAM"]["bytes"] == 20


def test_real_processes_tracked_and_disabled(tree: Tree, server: Server) -> None:
    tree.card(0, N300)
    with Tracked(server) as on, Tracked(server, {"TT_ALLOC_TRACKING_ENABLED": "0"}) as off:
        on.do("alloc 0 0 3 1000")
        wait_until_exact(server, on)
        off.do("alloc 0 0 3 1000")
        for worker in (on, off):
            tree.real_process(worker.pid)
        tree.pids(0, on.pid, off.pid)
        processes = tree.processes(server=server)
        assert set(processes) == {on.pid, off.pid}
        assert processes[on.pid]["reporting"] == processes[on.pid]["source"] == "tracked"
        regions = processes[on.pid]["regions"]
        assert list(regions) == REGIONS
        count, size, footprint = on.truth[(0, "DRAM")]
        assert regions["DRAM"] == {"bytes": size, "footprint_bytes": footprint, "count": count}
        assert processes[on.pid]["user"] == pwd.getpwuid(os.geteuid()).pw_name
        assert processes[off.pid]["reporting"] == "disabled"
        assert processes[off.pid]["regions"] == {}
        text = tree.text("ps", server=server)
        assert f"tt-mem enable {off.pid}" in text and "tt-mem dump" in text


def test_a_process_that_is_off_and_holds_no_device_is_listed_where_a_server_is(
    tree: Tree, server: Server
) -> None:
    with Tracked(server, {"TT_ALLOC_TRACKING_ENABLED": "0"}) as off:
        tree.real_process(off.pid)
        wait_for(lambda: off.pid in tree.processes(server=server), "its library to be loaded")
        assert tree.processes(server=server)[off.pid]["reporting"] == "disabled"
        assert f"tt-mem enable {off.pid}" in tree.text("ps", server=server)
        assert off.pid not in tree.processes()


def test_a_process_that_is_switched_off_is_counted_by_the_runtime(
    tree: Tree, server: Server
) -> None:
    tree.card(0, N300)
    with Tracked(server) as worker:
        worker.do("alloc 0 0 3 1000")
        wait_until_exact(server, worker)
        tree.real_process(worker.pid)
        tree.pids(0, worker.pid)
        tree.shm(9956368527, {worker.pid: (77,)}, age_s=-60)
        assert tree.processes(server=server)[worker.pid]["reporting"] == "tracked"
        worker.do("disable")
        wait_for(lambda: server.status()["clients"][0]["disabled"], "the server to hear of it")
        process = tree.processes(server=server)[worker.pid]
        assert process["reporting"] == "disabled"
        assert process["source"] == "runtime" and process["regions"]["DRAM"]["bytes"] == 77
        assert tree.devices(server=server)[N300]["regions"]["DRAM"]["bytes"] == 77
        assert f"tt-mem enable {worker.pid}" in tree.text("ps", server=server)


def test_a_tracked_process_that_holds_no_device_is_listed(tree: Tree, server: Server) -> None:
    with server.client() as client:
        client.alloc(3, 1000, 1)
        client.sync()
        process = tree.processes(server=server)[os.getpid()]
        assert process["reporting"] == "tracked" and process["source"] == "original"
        assert process["devices"] == [3] and process["regions"]["DRAM"]["bytes"] == 1000
        assert "python" in process["command"]  # by the server's word: the tree does not have it


def test_a_tracked_process_is_not_counted_from_the_runtime(tree: Tree, server: Server) -> None:
    tree.real_process(os.getpid())
    tree.shm(0, {os.getpid(): (999_999,)}, age_s=-1)
    with server.client() as client:
        client.alloc(0, 1000, 1)
        client.sync()
        process = tree.processes(server=server)[os.getpid()]
        assert process["regions"]["DRAM"]["bytes"] == 1000
    assert tree.processes()[os.getpid()]["regions"]["DRAM"]["bytes"] == 999_999


def test_programs_and_the_driver_number_devices_differently(busy: Tree, make_server) -> None:
    server = make_server().start(env={"TTMEM_ROOT": str(busy.root)})
    with server.client() as client:
        client.alloc(0, 1000, 1)  # the card with the lowest address, which the driver calls 1
        client.sync()
        assert busy.processes(server=server)[os.getpid()]["devices"] == [1]


def test_escapes_in_a_command_line_are_harmless(tree: Tree) -> None:
    tree.card(0, N300)
    tree.process(4242, b"python3 \x1b[2J\x1b]0;owned\x07 \xff\xfe")
    tree.pids(0, 4242)
    text = tree.text("ps")
    assert "\x1b" not in text and "\\x1b[2J" in text
    assert "\x1b[2J" in tree.processes()[4242]["command"]  # JSON has its own quoting


def test_it_fits_80_columns_on_a_terminal(busy: Tree, server: Server) -> None:
    busy.process(6000, "python3 " + "long " * 100)
    busy.pids(0, 4242, 6000)
    status, text = run_on_terminal(
        "ps", server=server, env={"TTMEM_ROOT": str(busy.root), "COLUMNS": "80", "NO_COLOR": "1"}
    )
    assert status == 0
    lines = text.replace("\r", "").splitlines()
    assert any("long long" in line for line in lines)
    assert all(len(line) <= 80 for line in lines), lines


def test_devices_are_told_as_ranges(tree: Tree) -> None:
    tree.process(4242)
    for number in range(32):
        tree.card(number, f"0000:{number + 1:02x}:00.0")
        if number not in (1, 30):
            tree.pids(number, 4242)
    assert "0,2-29…" in tree.text("ps")
    assert tree.processes()[4242]["devices"] == [n for n in range(32) if n not in (1, 30)]


def test_200_processes_are_listed(tree: Tree) -> None:
    tree.card(0, N300)
    pids = list(range(10_000, 10_200))
    for pid in pids:
        tree.process(pid)
    tree.pids(0, *pids)
    assert sorted(tree.processes()) == pids
    assert len(tree.text("ps").splitlines()) >= 201
