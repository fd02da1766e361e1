# SPDX-License-Identifier: Apache-2.0
"""A folder that stands in for a machine with Tenstorrent cards: its /sys, /proc and /dev."""

from __future__ import annotations

import dataclasses
import os
import struct
import time
from pathlib import Path
from typing import Any, Iterator

import pytest
from commands import Result, run

COUNTERS = (
    "slv_posted_wr_data_word_received",
    "slv_nonposted_wr_data_word_received",
    "slv_rd_data_word_sent",
    "mst_posted_wr_data_word_sent",
    "mst_nonposted_wr_data_word_sent",
    "mst_rd_data_word_received",
)
SHM_SIZE = 8576
UPTIME_S = 18842.13


@dataclasses.dataclass
class Card:
    """Where the files of one card lie."""

    number: int
    bdf: str
    node: Path  # the class folder
    pci: Path
    hwmon: Path

    def values(self) -> Iterator[Path]:
        """Every file that the driver fills in."""
        yield from sorted(self.node.glob("tt_*"))
        yield from sorted(self.hwmon.glob("*_*"))

    def reset(self) -> None:
        for path in self.values():
            path.write_text("")


class Tree:
    """Made piece by piece; 'devices' and 'ps' run our commands on it."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.root = folder / "machine"
        self.write("sys/module/tenstorrent/version", "2.10.0\n")
        self.write("proc/uptime", f"{UPTIME_S} 290011.02\n")
        (self.root / "dev/shm").mkdir(parents=True)

    def write(self, path: str, text: str | bytes) -> Path:
        whole = self.root / path
        whole.parent.mkdir(parents=True, exist_ok=True)
        whole.write_bytes(text.encode() if isinstance(text, str) else text)
        return whole

    def card(self, number: int, bdf: str, **changes: Any) -> Card:
        """A Wormhole n300 as driver 2.10 shows it; 'changes' to files, None leaves one out."""
        pci = self.root / f"sys/devices/pci{bdf[:4]}:{number:02x}/{bdf}"
        card = Card(
            number,
            bdf,
            pci / f"tenstorrent/tenstorrent!{number}",
            pci,
            pci / f"hwmon/hwmon{90 - number}",  # in another order than the cards
        )
        files = {
            card.node: {
                "tt_card_type": "n300",
                "tt_serial": "010001451172208F",
                "tt_asic_id": "6A1D3F0027B5C4E1",
                "tt_fw_bundle_ver": "18.12.0.0",
                "tt_aiclk": 500,
                "tt_axiclk": 900,
                "tt_arcclk": 540,
                "tt_heartbeat": 7018819,
                "dev": f"510:{number}",
            },
            pci: {
                "vendor": "0x1e52",
                "device": "0x401e",
                "subsystem_device": "0x0014",
                "current_link_speed": "16.0 GT/s PCIe",
                "max_link_speed": "16.0 GT/s PCIe",
                "current_link_width": 16,
                "max_link_width": 16,
            },
            card.hwmon: {
                "name": "wormhole",
                "temp1_input": 54312,
                "temp1_max": 75000,
                "in0_input": 795,
                "in0_max": 1000,
                "curr1_input": 16000,
                "curr1_max": 240000,
                "power1_input": 12000000,
                "power1_max": 100000000,
            },
        }
        for folder, entries in files.items():
            folder.mkdir(parents=True, exist_ok=True)
            for name, value in entries.items():
                value = changes.pop(name, value)
                if value is not None:
                    (folder / name).write_text(f"{value}\n")
        for name, value in changes.items():  # those that an n300 does not have
            place = card.node if name.startswith("tt_") else card.hwmon
            (place / name).write_text(f"{value}\n")
        for counter in COUNTERS:
            for noc in (0, 1):
                self.write(
                    f"{(card.node / 'pcie_perf_counters').relative_to(self.root)}/{counter}{noc}",
                    "123456\n",
                )
        (card.node / "device").symlink_to(f"../../../{bdf}")
        self._link(f"sys/class/tenstorrent/tenstorrent!{number}", card.node)
        self._link(f"sys/bus/pci/devices/{bdf}", pci)
        self.write(f"proc/driver/tenstorrent/{number}/pids", "")
        return card

    def p150a(self, number: int, bdf: str, **changes: Any) -> Card:
        files = {
            "tt_card_type": "p150a",
            "tt_serial": "0000040331914049",
            "tt_asic_id": "F5DDD9F78D7E0BEE",
            "tt_fw_bundle_ver": "19.11.0.0",
            "tt_aiclk": 800,
            "tt_heartbeat": 43874,
            "tt_therm_trip_count": 0,
            "device": "0xb140",
            "subsystem_device": "0x0040",
            "current_link_speed": "32.0 GT/s PCIe",
            "max_link_speed": "32.0 GT/s PCIe",
            "name": "blackhole",
            "temp1_input": 38036,
            "temp1_max": 90000,
            "in0_input": 718,
            "in0_max": 900,
            "curr1_input": 23000,
            "curr1_max": 200000,
            "power1_input": 16000000,
            "power1_max": 150000000,
            "fan1_input": 1882,
        }
        return self.card(number, bdf, **{**files, **changes})

    def _link(self, path: str, target: Path) -> None:
        whole = self.root / path
        whole.parent.mkdir(parents=True, exist_ok=True)
        whole.symlink_to(os.path.relpath(target, whole.parent))

    def unplug(self, card: Card) -> None:
        (self.root / f"sys/class/tenstorrent/tenstorrent!{card.number}").unlink()

    def pids(self, number: int, *pids: int) -> None:
        """One line for each open file, as the driver writes them; 0 is outside our namespace."""
        self.write(f"proc/driver/tenstorrent/{number}/pids", "".join(f"{pid}\n" for pid in pids))

    def old_driver(self) -> None:
        """2.4, which does not tell who holds a device."""
        self.write("sys/module/tenstorrent/version", "2.4.1\n")
        for path in (self.root / "proc/driver/tenstorrent").iterdir():
            (path / "pids").unlink()

    def process(
        self,
        pid: int,
        command: str | bytes = "python3 serve.py",
        uid: int = 1000,
        holds: tuple[int, ...] = (),
        maps: str = "",
        start_s: float = 8842.13,
    ) -> Path:
        words = command.encode() if isinstance(command, str) else command
        folder = f"proc/{pid}"
        self.write(f"{folder}/comm", "python3\n")
        self.write(f"{folder}/cmdline", words.replace(b" ", b"\0") + b"\0")
        self.write(
            f"{folder}/status",
            f"Name:\tpython3\nPid:\t{pid}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n",
        )
        self.write(
            f"{folder}/stat",
            f"{pid} (python3) S 1 {pid} {pid} 0 -1 4194304 5120 0 3 0 8421 377 0 0 20 0 9 0 "
            f"{int(start_s * 100)} 9126805504 4587520\n",
        )
        self.write(f"{folder}/maps", maps + "7f1200000000-7f1200021000 rw-p 00000000 00:00 0 \n")
        (self.root / folder / "fd").mkdir()
        (self.root / folder / "fd/0").symlink_to("/dev/pts/3")
        for fd, number in enumerate(holds, 17):
            (self.root / folder / f"fd/{fd}").symlink_to(f"/dev/tenstorrent/{number}")
        return self.root / folder

    def real_process(self, pid: int) -> None:
        """A process of this machine, seen from the tree."""
        (self.root / f"proc/{pid}").symlink_to(f"/proc/{pid}")

    def shm(
        self,
        unique_id: int,
        processes: dict[int, tuple[int, ...]],
        device: int = 0,
        version: int = 3,
        age_s: float = 5.0,
        name: bytes = b"python3",
    ) -> Path:
        """
        A file of the runtime: what each process holds in DRAM, L1, L1_SMALL, TRACE and CB.
        """
        data = bytearray(SHM_SIZE)
        now_ns = time.time_ns() - int(age_s * 1e9)
        totals = [sum(p[i] if i < len(p) else 0 for p in processes.values()) for i in range(5)]
        struct.pack_into("<IIQI", data, 0, version, len(processes), now_ns, len(processes))
        struct.pack_into("<Qi", data, 32, unique_id & (2**64 - 1), device)
        struct.pack_into("<5Q", data, 48, *totals)
        for i in range(16):
            struct.pack_into("<I", data, 88 + 48 * i, 0xFFFFFFFF)
        struct.pack_into("<II5Q", data, 88, device, 0, *totals)
        for i, (pid, held) in enumerate(processes.items()):
            at = 856 + 120 * i
            struct.pack_into("<i4x5Q", data, at, pid, *(*held, 0, 0, 0, 0, 0)[:5])
            struct.pack_into("<Q64s", data, at + 48, now_ns, name)
        if version == 4:
            struct.pack_into("<I", data, 8536, 0x52454459)
        return self.write(f"dev/shm/tt_device_{unique_id}_memory", bytes(data))

    # Our commands.

    def env(self) -> dict[str, str | None]:
        return {
            "TTMEM_ROOT": str(self.root),
            "TTMEM_SOCKET": str(self.folder / "no-server"),
            "COLUMNS": "80",
        }

    def run(self, *args: str, **options: Any) -> Result:
        env = {**self.env(), **options.pop("env", {})}
        if options.get("server"):
            env.pop("TTMEM_SOCKET")
        return run(*args, env=env, **options)

    def text(self, command: str, columns: int = 80, **options: Any) -> str:
        result = self.run(command, env={"COLUMNS": str(columns)}, **options)
        assert result.status == 0 and result.err == "", result
        return result.out

    def json(self, command: str, **options: Any) -> dict[str, Any]:
        result = self.run(command, "--json", **options)
        assert result.status == 0 and result.err == "", result
        return result.json

    def devices(self, **options: Any) -> dict[str, dict[str, Any]]:
        """The devices by their PCI address; those without one are left out."""
        document = self.json("devices", **options)
        assert document["schema"] == "tt-mem/devices/1"
        return {d["bdf"]: d for d in document["devices"] if d["bdf"]}

    def processes(self, **options: Any) -> dict[int, dict[str, Any]]:
        document = self.json("ps", **options)
        assert document["schema"] == "tt-mem/ps/1"
        return {p["pid"]: p for p in document["processes"]}


@pytest.fixture
def tree(folder: Path) -> Tree:
    return Tree(folder)
