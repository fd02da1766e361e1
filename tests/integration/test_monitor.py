# SPDX-License-Identifier: Apache-2.0
"""tt-mem monitor: totals per device, once and again."""

import csv
import fcntl
import io
import json
import os
import re
import signal
import sys
import termios
import time
from pathlib import Path

import pytest
from screens import Screen, needs_tmux
from support import (
    FABRIC,
    L1,
    L1_SMALL,
    SYSTEM_MEMORY,
    TRACE,
    Command,
    Server,
    Tracked,
    Tree,
    run,
    run_ok,
    wait_for,
    wait_until_exact,
)

REGIONS = ["DRAM", "L1", "SYSTEM_MEMORY", "L1_SMALL", "TRACE", "CB", "KERNEL"]
CSV_HEADER = (
    "time_ns,device,arch,region,bytes,footprint_bytes,count,capacity_bytes,runtime_bytes,"
    "temperature_c,power_w,aiclk_mhz,voltage_mv,current_a,fan_rpm"
)


@pytest.fixture
def board_server(make_server) -> Server:
    return make_server().start("--board", "0=n300", "--board", "2=p150a")


def test_json_has_the_keys_of_the_contract(board_server: Server) -> None:
    server = board_server
    with server.client() as client:
        client.alloc(0, 1000, 1)
        client.alloc(0, 24, 2)
        client.kernel_load(5, 77, 3, FABRIC)
        client.sync()
        before = time.time_ns()
        document = server.monitor()
        assert list(document) == ["schema", "time_ns", "devices", "server"]
        assert document["server"] is True
        assert document["schema"] == "tt-mem/monitor/1"
        assert abs(document["time_ns"] - before) < 60 * 10**9
        assert [d["id"] for d in document["devices"]] == [0, 2, 5]
        for device in document["devices"]:
            assert {"id", "arch", "regions", "processes", "telemetry"} <= set(device)
            assert set(device["telemetry"].values()) == {None}  # there is no card
            assert list(device["regions"]) == REGIONS
            for name, region in device["regions"].items():
                extra = {"resident_bytes", "registered_bytes"} if name == "CB" else set()
                assert set(region) == {
                    "bytes",
                    "footprint_bytes",
                    "count",
                    "capacity_bytes",
                    "runtime_bytes",
                    *extra,
                }
            for process in device["processes"]:
                assert set(process) == {"pid", "name", "source", "regions"}
                assert list(process["regions"]) == REGIONS
                for region in process["regions"].values():
                    assert {"bytes", "footprint_bytes", "count"} <= set(region)
        first, second, third = document["devices"]
        assert first["arch"] == "wormhole_b0" and second["arch"] == "blackhole"
        assert third["arch"] == "unknown"
        assert first["regions"]["DRAM"] == {
            "bytes": 1024,
            "footprint_bytes": 1024,
            "count": 2,
            "capacity_bytes": 12 << 30,
            "runtime_bytes": 0,
        }
        assert third["regions"]["KERNEL"]["bytes"] == 77
        assert third["regions"]["DRAM"]["capacity_bytes"] is None  # not known is not zero
        (process,) = first["processes"]
        assert process["pid"] == os.getpid()
        assert process["regions"]["DRAM"]["bytes"] == 1024
        assert second["processes"] == []


def test_json_without_anything_is_still_a_document(server: Server) -> None:
    assert server.monitor()["devices"] == []


def test_once_shows_bars_counts_and_processes(board_server: Server) -> None:
    server = board_server
    with server.client() as client:
        client.alloc(0, 6 << 30, 1)
        client.alloc(0, 45 << 20, 2, L1)
        client.alloc(0, 1 << 20, 3, L1_SMALL)
        client.alloc(0, 1 << 20, 4, TRACE)
        client.cb_alloc(0, 1 << 20, 5)
        client.kernel_load(0, 1 << 20, 6)
        client.sync()
        text = run_ok("monitor", "--once", "-d", "0", server=server).out
        lines = {line.split()[0]: line for line in text.splitlines() if line.startswith("  ")}
        assert re.search(r"█.*6\.00 GiB of +12\.00 GiB +50\.0 %", lines["DRAM"])
        assert "45.0 MiB" in lines["L1"] and "49." in lines["L1"]
        assert "48.0 MiB" in lines["Total"]  # buffers, small, circular buffers and kernels
        assert re.search(rf"pid {os.getpid()}.*DRAM 6\.00 GiB.*TRACE 1\.0 MiB", text)
        assert "SYSTEM_MEMORY" not in text  # host memory, where there is none
        client.alloc(0, 4096, 7, SYSTEM_MEMORY)
        client.sync()
        assert "SYSTEM_MEMORY" in run_ok("monitor", "--once", server=server).out


def test_d_chooses_devices(server: Server) -> None:
    with server.client() as client:
        for device in range(5):
            client.alloc(device, 100, 1)
        client.sync()

        def shown(*args: str) -> list[int]:
            return [d["id"] for d in server.monitor(*args)["devices"]]

        assert shown() == shown("-a") == [0, 1, 2, 3, 4]
        assert shown("-d", "0") == [0]
        assert shown("-d", "3,1") == [1, 3]
        assert shown("-d", "1", "-d", "4") == [1, 4]
        assert shown("--device", "2") == [2]
        assert shown("-d", "99") == []
        text = run_ok("monitor", "--once", "-d", "2", server=server).out
        assert "device 2" in text and "device 1" not in text
        assert "-d" in run_ok("monitor", "--once", "-d", "77", server=server).out


@pytest.mark.parametrize(
    "arguments",
    [
        ["-d", "x"],
        ["-d", "1024"],
        ["-d", "-1"],
        ["-d", ""],
        ["-d", "1,"],
        ["-d", "1,,2"],
        ["-r", "0"],
        ["-r", "x"],
        ["-r", "5x"],
        ["-r", "99999999999"],
        ["-r"],
        ["--nonsense"],
        ["word"],
    ],
)
def test_wrong_options_are_told_in_one_line(arguments: list[str]) -> None:
    assert "--help" in run("monitor", *arguments).complains(2)


def test_csv_has_a_header_and_a_row_per_device_and_region(board_server: Server) -> None:
    server = board_server
    with server.client() as client:
        client.alloc(0, 1000, 1)
        client.sync()
        out = run_ok("monitor", "--once", "--csv", server=server).out
        assert out.splitlines()[0] == CSV_HEADER
        rows = list(csv.DictReader(io.StringIO(out)))
        assert [(r["device"], r["region"]) for r in rows] == [
            (d, r) for d in ("0", "2") for r in REGIONS
        ]
        assert (rows[0]["bytes"], rows[0]["count"]) == ("1000", "1")
        assert rows[0]["capacity_bytes"] == str(12 << 30)
        assert rows[4]["capacity_bytes"] == ""  # not known


def test_csv_goes_on_without_repeating_its_header(server: Server) -> None:
    with server.client() as client, Command("monitor", "--csv", "-r", "10", server=server) as m:
        client.alloc(0, 5, 1)
        lines = m.read_until(lambda line: ",0,unknown,DRAM,5," in line)
        client.alloc(0, 6, 2)
        lines += m.read_until(lambda line: ",0,unknown,DRAM,11," in line)
        assert [line.strip() for line in lines].count(CSV_HEADER) == 1
        assert lines[0].strip() == CSV_HEADER


def test_log_appends_rows_to_a_file(server: Server, folder: Path) -> None:
    path = folder / "log.csv"
    with server.client() as client:
        client.alloc(0, 5, 1)
        client.sync()
        for _ in range(2):
            text = run_ok("monitor", "--once", "--log", path, server=server).out
            assert "device 0" in text
    lines = path.read_text().splitlines()
    assert lines[0] == CSV_HEADER and lines.count(CSV_HEADER) == 1
    assert len(lines) == 1 + 2 * len(REGIONS)


def test_a_log_that_cannot_be_written_is_told(server: Server, folder: Path) -> None:
    result = run("monitor", "--once", "--log", folder / "no" / "log", server=server)
    assert "No such file" in result.complains(1)
    with server.client() as client:
        client.alloc(0, 1, 1)
        client.sync()
        result = run("monitor", "--once", "--log", "/dev/full", server=server)
        assert "device 0" in result.out  # the screen goes on
        assert "No space left" in result.err and result.err.count("\n") == 1


def test_a_log_with_other_columns_is_left_alone(server: Server, folder: Path) -> None:
    path = folder / "log.csv"
    path.write_text("something else\n")
    result = run("monitor", "--once", "--log", path, server=server)
    assert "columns" in result.complains(1)
    assert path.read_text() == "something else\n"


# Sensors.


@pytest.fixture
def cards(tree: Tree) -> Tree:
    tree.card(0, "0000:41:00.0")
    tree.p150a(1, "0000:61:00.0")
    return tree


def test_json_tells_how_the_devices_fare(cards: Tree, server: Server) -> None:
    with server.client() as client:
        client.alloc(0, 1000, 1)
        client.sync()
        document = cards.run("monitor", "--once", "--json", server=server).json
    devices = {d["id"]: d for d in document["devices"]}
    assert list(devices) == [0, 1, 2]  # cards that no program has told of, and the remote chip
    telemetry = devices[0]["telemetry"]
    assert telemetry["temperature_c"] == 54.312
    assert (telemetry["power_w"], telemetry["aiclk_mhz"]) == (12, 500)
    assert (telemetry["voltage_mv"], telemetry["current_a"]) == (795, 16)
    assert telemetry["fan_rpm"] is None
    assert 0 <= devices[0]["telemetry_age_ns"] < 60 * 10**9
    assert devices[0]["regions"]["DRAM"]["bytes"] == 1000
    assert devices[1]["telemetry"]["fan_rpm"] == 1882
    assert devices[1]["regions"]["DRAM"] | {"capacity_bytes": 0} == {
        "bytes": 0,
        "footprint_bytes": 0,
        "count": 0,
        "capacity_bytes": 0,
        "runtime_bytes": 0,
    }
    assert set(devices[2]["telemetry"].values()) == {None}  # the sensors are its neighbour's


def test_text_csv_and_log_have_sensors(cards: Tree, server: Server, folder: Path) -> None:
    path = folder / "log.csv"
    text = cards.run("monitor", "--once", "--log", path, server=server).out
    assert "device 0  n300  wormhole_b0  54/75 °C  12/100 W  500 MHz" in text.splitlines()
    assert "device 2  n300  wormhole_b0  remote" in text.splitlines()
    out = cards.run("monitor", "--once", "--csv", server=server).out
    for rows in (list(csv.DictReader(io.StringIO(out))), list(csv.DictReader(path.open()))):
        first = rows[0]
        assert (first["temperature_c"], first["power_w"], first["aiclk_mhz"]) == (
            *("54.312", "12", "500"),
        )
        assert (first["voltage_mv"], first["current_a"], first["fan_rpm"]) == ("795", "16", "")
        assert rows[len(REGIONS)]["fan_rpm"] == "1882"
        assert rows[-1]["temperature_c"] == ""


def test_sensors_are_read_again(cards: Tree, server: Server) -> None:
    hwmon = next(cards.root.glob("sys/devices/*/0000:41:00.0/hwmon/*"))
    env: dict[str, str | None] = {"TTMEM_ROOT": str(cards.root)}
    with Command("monitor", "--csv", "-r", "100", server=server, env=env) as monitor:
        monitor.read_until(lambda line: ",54.312,12,500," in line)
        (hwmon / "temp1_input").write_text("71500\n")
        monitor.read_until(lambda line: ",71.5,12,500," in line)
        assert monitor.stop() == 0


def test_sensors_are_those_of_the_chip_that_is_named(tree: Tree, make_server) -> None:
    """The server keeps what it was told of a card that has gone; its number is another's then."""
    first = tree.p150a(0, "0000:01:00.0")
    tree.card(1, "0000:41:00.0", tt_card_type="n150")
    server = make_server().start("--board", "0=p150a", "--board", "1=n150")

    def sensors() -> list[tuple[str, float | None]]:
        document = tree.run("monitor", "--once", "--json", server=server).json
        return [(d["board"], d["telemetry"]["temperature_c"]) for d in document["devices"]]

    assert sensors() == [("p150a", 38.036), ("n150", 54.312)]
    tree.unplug(first)
    assert sensors() == [("p150a", None), ("n150", None)]


def test_a_chip_that_hangs_holds_up_no_other(cards: Tree, server: Server) -> None:
    path = next(cards.root.glob("sys/devices/*/0000:41:00.0/hwmon/*/temp1_input"))
    path.unlink()
    os.mkfifo(path)  # nobody ever writes to it
    text = cards.run("monitor", "--once", server=server).out
    assert "wormhole_b0  hangs" in text or "wormhole_b0  reading" in text, text
    assert "38/90 °C" in text


@pytest.mark.parametrize("form", [[], ["--json"], ["--csv"]])
@pytest.mark.parametrize("often", [[], ["--once"]])
def test_output_that_cannot_be_written_is_told(
    server: Server, form: list[str], often: list[str]
) -> None:
    with open("/dev/full", "wb") as full:
        result = run("monitor", *form, *often, server=server, stdout=full)
    assert "No space left" in result.complains(1)


def test_the_refresh_shows_changes(server: Server) -> None:
    def dram(line: str) -> int:
        devices = json.loads(line)["devices"]
        return devices[0]["regions"]["DRAM"]["bytes"] if devices else 0

    with server.client() as client:
        with Command("monitor", "-a", "-r", "10", "--json", server=server) as monitor:
            for ident in range(1, 6):
                client.alloc(0, ident, ident)
                want = client.query()["dram_allocated"]
                monitor.read_until(lambda line, want=want: dram(line) == want)
            assert monitor.stop(signal.SIGTERM) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_well_when_the_user_stops_it(server: Server, number: int) -> None:
    with Command("monitor", "-r", "3600000", server=server) as monitor:
        monitor.read_until(lambda line: "server up" in line)
        assert monitor.stop(number) == 0
        assert monitor.errors() == ""


@needs_tmux
def test_on_a_dumb_terminal_looks_follow_one_another(server: Server, folder: Path) -> None:
    env = {"TTMEM_SOCKET": server.socket}
    with Screen(folder, "monitor", "-r", "100", env=env, term="dumb") as screen:
        screen.wait_until(lambda text: text.count("server up") > 2, "some looks")
        os.kill(screen.pid, signal.SIGTERM)
        screen.assert_usable(0)


def test_it_survives_a_restart_of_the_server(make_server) -> None:
    server = make_server().start()
    with server.client() as client:
        client.alloc(0, 5, 1)
        client.sync()
        with Command("monitor", "-r", "10", "--json", server=server) as monitor:
            monitor.read_until(lambda line: '"bytes":5,' in line)
            server.stop()
            server.start()
            with server.client() as second:
                second.alloc(0, 77, 1)
                second.sync()
                monitor.read_until(lambda line: '"bytes":77,' in line)
            assert "waiting" in monitor.errors()
            assert monitor.errors().count("\n") == 1
            assert monitor.stop() == 0


def test_it_can_be_stopped_while_it_waits_for_a_server(make_server) -> None:
    server = make_server().start()
    with Command("monitor", "-r", "10", server=server) as monitor:
        monitor.read_line()
        server.stop()
        wait_for(lambda: "waiting" in monitor.errors())
        assert monitor.stop() == 0


def test_one_device_of_a_thousand_is_found(server: Server) -> None:
    with server.client() as client:
        client.alloc(1023, 9, 9)
        client.sync()
        (device,) = server.monitor("-d", "1023")["devices"]
        assert device["regions"]["DRAM"]["bytes"] == 9


@pytest.mark.parametrize("form", [[], ["--json"], ["--csv", "-a"]])
def test_it_can_be_ended_while_nobody_reads_what_it_writes(server: Server, form: list[str]) -> None:
    with server.client() as client:
        for device in range(32):
            client.alloc(device, 5, device + 1)
        client.sync()
        with Command("monitor", "-r", "10", *form, server=server) as monitor:
            assert monitor.process.stdout
            fcntl.fcntl(monitor.process.stdout, fcntl.F_SETPIPE_SZ, 4096)

            def has_stopped() -> bool:
                lengths = []
                for _ in range(2):
                    raw = fcntl.ioctl(monitor.process.stdout, termios.FIONREAD, bytes(4))
                    lengths.append(int.from_bytes(raw, sys.byteorder))
                    time.sleep(0.2)
                return 0 < lengths[0] == lengths[1]

            wait_for(has_stopped, "the pipe to be full")
            assert monitor.stop() == 0


def test_many_monitors_at_once(server: Server) -> None:
    with server.client() as client:
        client.alloc(0, 5, 1)
        client.sync()
        monitors = [Command("monitor", "-r", "10", "--json", server=server) for _ in range(10)]
        try:
            for monitor in monitors:
                monitor.read_until(lambda line: '"bytes":5,' in line)
            client.alloc(0, 6, 2)
            for monitor in monitors:
                monitor.read_until(lambda line: '"bytes":11,' in line)
        finally:
            for monitor in monitors:
                assert monitor.stop() == 0


def test_it_says_where_most_of_a_devices_memory_comes_from(server: Server) -> None:
    with Tracked(server) as worker:
        for part, count in enumerate((10, 40, 20, 30)):
            worker.do(f"within {part}")
            worker.do(f"alloc 0 0 {count} 4096")
        worker.do("within 9")
        worker.do("alloc 1 0 5 4096")
        wait_until_exact(server, worker)
        text = run_ok("monitor", "--once", server=server).out
        told = re.findall(r"(from)? +\S+ KiB +DRAM +(\d+)  in part_(\d)", text)
        assert told == [
            ("from", "40", "1"),
            ("", "30", "3"),
            ("", "20", "2"),
            ("from", "5", "9"),
        ], text
        zero, one = run_ok("monitor", "--once", "--json", server=server).json["devices"]
        assert [row["place"] for row in zero["origins"]] == [f"in part_{i}" for i in (1, 3, 2, 0)]
        (row,) = one["origins"]
        assert (row["count"], row["region"], row["pid"]) == (5, "DRAM", worker.pid)
