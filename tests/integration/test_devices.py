# SPDX-License-Identifier: Apache-2.0
"""tt-mem devices: on trees that stand in for machines."""

import json
import os
import stat

import pytest
from support import IS_ROOT, NOBODY, Server, Tree, needs_root, run, wait_for

N300, P150A = "0000:41:00.0", "0000:01:00.0"


@pytest.fixture
def two_cards(tree: Tree) -> Tree:
    """The driver found them in another order than that of their addresses."""
    tree.card(0, N300)
    tree.p150a(1, P150A)
    return tree


def test_json_has_the_keys_of_the_contract(two_cards: Tree) -> None:
    device = two_cards.devices()[N300]
    assert device["id"] == 0
    assert device["arch"] == "wormhole_b0"
    assert device["board"] == "n300"
    assert device["asic_id"] == "6A1D3F0027B5C4E1"
    assert device["remote"] is False
    assert device["state"] == "ok"
    expected = {
        "temperature_c": 54.312,
        "power_w": 12,
        "aiclk_mhz": 500,
        "voltage_mv": 795,
        "current_a": 16,
        "fan_rpm": None,
        "heartbeat_ok": None,
    }
    assert expected.items() <= device["telemetry"].items()
    assert device["limits"] == {
        "temperature_c": 75,
        "power_w": 100,
        "voltage_mv": 1000,
        "current_a": 240,
    }
    assert {"gen": 4, "width": 16}.items() <= device["link"].items()
    assert len(device["link_counters"]) == 12
    assert device["link_counters"]["mst_rd_data_word_received1"] == 123456
    assert device["regions"]["DRAM"]["capacity_bytes"] == 12 << 30
    assert device["regions"]["L1"]["capacity_bytes"] == 95_944_704
    assert device["regions"]["TRACE"]["capacity_bytes"] is None
    for region in device["regions"].values():
        assert region["bytes"] is None and region["footprint_bytes"] is None


def test_a_card_has_its_own_values_whatever_the_order_of_folders(two_cards: Tree) -> None:
    device = two_cards.devices()[P150A]
    assert device["id"] == 1 and device["board"] == "p150a" and device["arch"] == "blackhole"
    assert device["telemetry"]["temperature_c"] == 38.036
    assert device["telemetry"]["fan_rpm"] == 1882
    assert device["limits"]["power_w"] == 150
    assert device["link"]["gen"] == 5
    assert device["metal_id"] == 0  # TT-Metal goes by the address


def test_the_second_chip_of_an_n300_is_remote(two_cards: Tree) -> None:
    (remote,) = (d for d in two_cards.json("devices")["devices"] if d["remote"])
    assert (remote["id"], remote["metal_id"], remote["bdf"]) == (2, 2, None)
    assert remote["board"] == "n300"
    assert set(remote["telemetry"].values()) == {None}
    assert set(remote["link"].values()) == {None}
    assert remote["link_counters"] is None
    assert remote["regions"]["DRAM"]["capacity_bytes"] == 12 << 30


def test_no_device_is_said_helpfully(tree: Tree) -> None:
    assert tree.json("devices")["devices"] == []
    assert "no Tenstorrent device found" in tree.text("devices")
    assert "tt-mem demo" in tree.text("devices")


def test_a_card_without_a_driver_is_said(tree: Tree) -> None:
    tree.write("sys/bus/pci/devices/0000:41:00.0/vendor", "0x1e52\n")
    tree.write("sys/bus/pci/devices/0000:42:00.0/vendor", "0x8086\n")
    assert "PCI lists 1, and the driver has taken none" in tree.text("devices")
    (tree.root / "sys/module/tenstorrent/version").unlink()
    assert "modprobe tenstorrent" in tree.text("devices")


def test_a_galaxy_of_32_chips_fits_the_screen(tree: Tree) -> None:
    for number in range(32):
        bus = (0xC0, 0x80, 0x00, 0x40)[number // 8] + number % 8 + 1
        tree.card(
            number,
            f"0000:{bus:02x}:00.0",
            tt_card_type="galaxy-wormhole",
            tt_asic_id=f"{0xABC0 + number:016X}",
            temp1_input=40000 + 1000 * number,
        )
    document = tree.json("devices")
    assert [d["id"] for d in document["devices"]] == list(range(32))
    assert [d["telemetry"]["temperature_c"] for d in document["devices"]] == list(range(40, 72))
    assert sorted(d["metal_id"] for d in document["devices"]) == list(range(32))
    for columns in (80, 103, 104, 119, 120, 149, 150, 200):
        lines = tree.text("devices", columns=columns).splitlines()
        assert len(lines) >= 34 and all(len(line) <= columns for line in lines), lines


def test_a_chip_in_reset_has_no_values(two_cards: Tree) -> None:
    card = two_cards.root / "sys/class/tenstorrent/tenstorrent!1"
    for path in [*card.glob("tt_*"), *(card / "device/hwmon/hwmon89").glob("*_input")]:
        path.write_text("")
    device = two_cards.devices()[P150A]
    assert device["state"] == "reset"
    assert set(device["telemetry"].values()) == {None}
    assert device["arch"] == "blackhole"  # PCI still tells
    assert device["board"] is None and device["asic_id"] is None
    assert two_cards.devices()[N300]["state"] == "ok"
    assert "device 1 is in reset" in two_cards.text("devices")


def test_an_unplugged_card_is_gone(two_cards: Tree) -> None:
    (two_cards.root / "sys/class/tenstorrent/tenstorrent!1").unlink()
    assert list(two_cards.devices()) == [N300]


def test_a_chip_that_hangs_does_not_hold_up_the_others(two_cards: Tree) -> None:
    """A read of a chip that is being reset waits; a FIFO without a writer does so too."""
    path = two_cards.root / "sys/class/tenstorrent/tenstorrent!1/tt_aiclk"
    path.unlink()
    os.mkfifo(path)
    devices = two_cards.devices()
    assert devices[N300]["telemetry"]["temperature_c"] == 54.312
    assert devices[P150A]["state"] == "reset" and devices[P150A]["stalled"] is True
    assert devices[P150A]["arch"] == "blackhole"
    assert set(devices[P150A]["telemetry"].values()) == {None}
    assert "device 1 does not answer" in two_cards.text("devices")


def test_an_old_driver_and_firmware_show_less(tree: Tree) -> None:
    tree.p150a(
        0,
        P150A,
        tt_asic_id=None,
        tt_heartbeat=None,
        tt_therm_trip_count=None,
        temp1_max=None,
        in0_max=None,
        curr1_max=None,
        power1_max=None,
    )
    (tree.root / "sys/class/tenstorrent/tenstorrent!0/tt_therm_trip_count").unlink()
    tree.old_driver()
    document = tree.json("devices")
    assert document["driver"] == "2.4.1"
    (device,) = document["devices"]
    assert device["state"] == "ok" and device["asic_id"] is None
    assert set(device["limits"].values()) == {None}
    assert device["telemetry"]["temperature_c"] == 38.036


def test_numbers_that_cannot_be_are_null(tree: Tree) -> None:
    """Seen with driver 2.7-rc1 and firmware 19.6; the fan is how a card without one shows it."""
    tree.p150a(
        0,
        P150A,
        in0_input=3211313,
        curr1_input=3342387000,
        power1_input=4080000000,
        fan1_input=4294967295,
    )
    telemetry = tree.devices()[P150A]["telemetry"]
    for key in ("voltage_mv", "current_a", "power_w", "fan_rpm"):
        assert telemetry[key] is None, key
    assert telemetry["temperature_c"] == 38.036 and telemetry["aiclk_mhz"] == 800


GARBAGE = [b"", b"\n", b"\xff\xfe\x00\x01", b"A" * 100_000, b"-1\n", b"\x1b[2J\n", b"%n\n", b"1e9"]


@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_in_every_file_is_survived(tree: Tree, garbage: bytes) -> None:
    tree.card(0, N300)
    tree.process(4242, holds=(0,))
    tree.shm(9956368527, {4242: (1,)})
    for folder in ("sys", "proc", "dev"):
        for path, _, names in os.walk(tree.root / folder):
            for name in names:
                whole = f"{path}/{name}"
                if stat.S_ISREG(os.lstat(whole).st_mode):
                    with open(whole, "wb") as file:
                        file.write(garbage)
    devices = tree.devices()
    assert list(devices) == [N300]
    assert set(devices[N300]["telemetry"].values()) == {None}
    assert set(devices[N300]["link"].values()) == {None}
    for command in ("devices", "ps"):
        assert "\x1b" not in tree.text(command)
        tree.json(command)


def test_what_is_wrong_is_said(tree: Tree) -> None:
    tree.card(0, N300, temp1_input=76000, current_link_speed="8.0 GT/s PCIe", current_link_width=8)
    text = tree.text("devices")
    assert "device 0 is too hot" in text
    assert "generation 3 of 4" in text and "8 of 16 PCIe lanes" in text


def test_no_device_is_opened(two_cards: Tree) -> None:
    """A FIFO in its place would hold up whoever opens it."""
    (two_cards.root / "dev/tenstorrent").mkdir()
    for number in (0, 1):
        os.mkfifo(two_cards.root / f"dev/tenstorrent/{number}")
    for device in two_cards.devices().values():
        assert device["stalled"] is False
    two_cards.json("ps")


def test_a_server_tells_what_is_used_on_the_right_card(two_cards: Tree, make_server) -> None:
    """Programs number chips by PCI address: their device 0 is the card with the lower one."""
    server: Server = make_server().start(env={"TTMEM_ROOT": str(two_cards.root)})
    with server.client() as client:
        client.alloc(0, 1000, 1)
        client.alloc(2, 500, 2)
        client.sync()
        document = two_cards.json("devices", server=server)
        used = {d["id"]: d["regions"]["DRAM"]["bytes"] for d in document["devices"]}
        assert used == {0: 0, 1: 1000, 2: 500}
        p150a = two_cards.devices(server=server)[P150A]["regions"]["DRAM"]
        assert p150a["footprint_bytes"] == 1000 and p150a["runtime_bytes"] == 0
        assert p150a["capacity_bytes"] == 34_225_520_640
        assert "0.00/31.88 GiB" in two_cards.text("devices", server=server)


def test_devices_of_a_simulated_run_are_listed_too(tree: Tree, server: Server) -> None:
    with server.client() as client:
        client.alloc(5, 1 << 20, 1)
        client.sync()
        (device,) = tree.json("devices", server=server)["devices"]
        assert device["id"] == 5 and device["bdf"] is None and device["state"] is None
        assert device["regions"]["DRAM"]["bytes"] == 1 << 20
        assert device["regions"]["DRAM"]["capacity_bytes"] is None
        assert "no card" in tree.text("devices", server=server)


def test_the_runtimes_own_count_goes_to_its_card(two_cards: Tree) -> None:
    two_cards.process(4242)
    two_cards.shm(9956368527, {4242: (3 << 20, 2 << 20)}, device=7)  # n300, its PCIe chip
    two_cards.shm(14251335823, {4242: (1 << 20,)}, device=8)  # n300, the other
    two_cards.shm(0xF5DDD9F78D7E0BEE, {4242: (5 << 20,)}, device=9)  # by ASIC id
    by_id = {d["id"]: d["regions"] for d in two_cards.json("devices")["devices"]}
    assert by_id[0]["DRAM"]["bytes"] == by_id[0]["DRAM"]["runtime_bytes"] == 3 << 20
    assert by_id[0]["L1"]["bytes"] == 2 << 20
    assert by_id[0]["DRAM"]["footprint_bytes"] is None  # the runtime does not count it
    assert by_id[0]["KERNEL"]["bytes"] is None
    assert by_id[2]["DRAM"]["bytes"] == 1 << 20
    assert by_id[1]["DRAM"]["bytes"] == 5 << 20


def test_files_that_were_left_behind_make_no_devices(tree: Tree) -> None:
    tree.shm(9000000003, {4242: (1 << 20,)}, device=3)
    assert tree.json("devices")["devices"] == []
    tree.process(4242)
    assert [d["id"] for d in tree.json("devices")["devices"]] == [3]
    assert "TT-Metal's own count" in tree.text("devices")


def test_memory_on_a_chip_that_is_no_card_is_said_and_given_to_none(two_cards: Tree) -> None:
    two_cards.process(4242)
    two_cards.shm(0, {4242: (3 << 20,)}, device=0)  # a simulated run
    for device in two_cards.json("devices")["devices"]:
        assert device["regions"]["DRAM"]["bytes"] is None
    assert "TT-Metal counts 3.0 MiB on a chip that is none of these" in two_cards.text("devices")


def test_a_tracked_process_is_not_counted_twice(tree: Tree, make_server) -> None:
    tree.card(0, N300)
    tree.real_process(os.getpid())
    server = make_server().start(env={"TTMEM_ROOT": str(tree.root)})
    tree.process(4242)
    tree.shm(9956368527, {os.getpid(): (7000,), 4242: (20,)}, age_s=-1)
    with server.client() as client:
        client.alloc(0, 1000, 1)
        client.sync()
        region = tree.devices(server=server)[N300]["regions"]["DRAM"]
        assert region["bytes"] == 1020 and region["runtime_bytes"] == 20
    assert tree.devices()[N300]["regions"]["DRAM"]["bytes"] == 7020  # nobody tracks it now


def test_what_dead_processes_left_behind_is_not_counted(tree: Tree) -> None:
    tree.card(0, N300)
    tree.process(4242)
    tree.process(4243, start_s=18000)
    tree.shm(9956368527, {4242: (10,), 4243: (200,), 4299: (3000,)}, age_s=2000)
    assert tree.devices()[N300]["regions"]["DRAM"]["bytes"] == 10


@pytest.mark.parametrize("version", range(1, 6))
def test_versions_of_the_runtimes_file(tree: Tree, version: int) -> None:
    tree.card(0, N300)
    tree.process(4242)
    tree.shm(9956368527, {4242: (10,)}, version=version)
    assert tree.devices()[N300]["regions"]["DRAM"]["bytes"] == (10 if 2 <= version <= 4 else None)


def test_a_chosen_server_that_is_not_there_is_an_error(two_cards: Tree) -> None:
    for command in ("devices", "ps"):
        line = two_cards.run(command, "--socket", str(two_cards.folder / "none")).complains(1)
        assert "none is running there" in line


@pytest.mark.parametrize("command", ["devices", "ps"])
def test_wrong_options_are_told_in_one_line(command: str) -> None:
    for arguments in (["--nonsense"], ["word"], ["--socket"]):
        assert "--help" in run(command, *arguments).complains(2)


@pytest.mark.parametrize("command", ["devices", "ps"])
def test_output_that_cannot_be_written_is_told(two_cards: Tree, command: str) -> None:
    with open("/dev/full", "wb") as full:
        for arguments in ([], ["--json"]):
            result = two_cards.run(command, *arguments, stdout=full)
            assert result.status == 1 and "No space left" in result.err


@needs_root
def test_another_user_sees_the_devices_and_not_the_runtimes_count(two_cards: Tree) -> None:
    two_cards.process(4242)
    two_cards.shm(9956368527, {4242: (10,)}).chmod(0o600)
    device = two_cards.devices(uid=NOBODY)[N300]
    assert device["telemetry"]["temperature_c"] == 54.312
    assert device["regions"]["DRAM"]["bytes"] is None


def test_files_that_may_not_be_read_are_null(two_cards: Tree) -> None:
    for name in ("temp1_input", "temp1_max"):
        (two_cards.root / f"sys/bus/pci/devices/{N300}/hwmon/hwmon90/{name}").chmod(0)
    options = {"uid": NOBODY} if IS_ROOT else {}
    device = two_cards.devices(**options)[N300]
    assert device["telemetry"]["temperature_c"] is None
    assert device["telemetry"]["power_w"] == 12


def test_the_document_is_one_line_of_json(two_cards: Tree) -> None:
    out = two_cards.run("devices", "--json").out
    assert out.count("\n") == 1 and json.loads(out)["schema"] == "tt-mem/devices/1"


def test_a_server_that_ends_is_no_longer_asked(two_cards: Tree, server: Server) -> None:
    assert two_cards.devices(server=server)[N300]["regions"]["DRAM"]["bytes"] == 0
    server.stop()
    wait_for(lambda: not os.path.exists(server.socket), "the socket to go")
    assert two_cards.devices(server=server)[N300]["regions"]["DRAM"]["bytes"] is None
