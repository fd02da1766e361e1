# SPDX-License-Identifier: Apache-2.0
"""Text logs as the original system wrote them, from lives that are known.

A Program is a made-up one that allocates and frees at random. ServerLog is what the original
server would have printed of it, with its count of references for each address; DebugLog what the
patched TT-Metal would have. Both keep books of what is in the log.
"""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from typing import Iterator

REGIONS = ("DRAM", "L1", "L1_SMALL", "TRACE")
RULE = "═" * 59


@dataclasses.dataclass(eq=False)
class Life:
    pid: int
    device: int
    region: str
    address: int
    bytes: int
    pointer: int = 0
    line: int = 0  # of code


class Truth:
    """By process, device and region: allocations, frees, and what remains."""

    def __init__(self) -> None:
        self.allocs: Counter[tuple[int, int, str]] = Counter()
        self.frees: Counter[tuple[int, int, str]] = Counter()
        self.live: list[Life] = []

    def born(self, life: Life) -> None:
        self.allocs[life.pid, life.device, life.region] += 1
        self.live.append(life)

    def freed(self, life: Life) -> None:
        self.frees[life.pid, life.device, life.region] += 1
        self.live.remove(life)

    def rows(self) -> dict[tuple[int, int, str], tuple[int, int, int, int]]:
        count, size = Counter(), Counter()
        for life in self.live:
            key = (life.pid, life.device, life.region)
            count[key] += 1
            size[key] += life.bytes
        return {
            key: (n, self.frees[key], count[key], size[key]) for key, n in self.allocs.items()
        }


def rows_of(report: dict) -> dict[tuple[int, int, str], tuple[int, int, int, int]]:
    """The same of a report."""
    return {
        (process["pid"], device["id"], name): (
            region["allocs"], region["frees"], region["remaining"], region["remaining_bytes"],
        )  # fmt: skip
        for process in report["processes"]
        for device in process["devices"]
        for name, region in device["regions"].items()
        if region["allocs"]
    }


def live_and_let_die(
    seed: int, count: int, pid: int = 42, devices: range = range(2)
) -> Iterator[tuple[str, Life]]:
    """Births and frees: addresses and pointers are used again as soon as they are free."""
    chance = random.Random(seed)
    live: list[Life] = []
    free_places = {
        (device, region): [0x10000 * (n + 1) + 0x1000000 * at for n in range(40)]
        for device in devices
        for at, region in enumerate(REGIONS)
    }
    free_pointers = [0x7F8A4C000000 + 16 * n for n in range(400)]
    for _ in range(count):
        if live and (len(live) > 60 or chance.random() < 0.45):
            life = live.pop(chance.randrange(len(live)))
            free_places[life.device, life.region].append(life.address)
            free_pointers.append(life.pointer)
            yield "free", life
            continue
        place = chance.choice(list(free_places))
        if not free_places[place]:
            continue
        device, region = place
        life = Life(
            pid, device, region,
            free_places[place].pop(), chance.choice((512, 2048, 32768, 1 << 20)),
            free_pointers.pop(), chance.randrange(5),
        )  # fmt: skip
        live.append(life)
        yield "alloc", life


class ServerLog:
    """The original server: what it prints, with the references that it counts."""

    def __init__(self, is_hex: bool = True) -> None:
        self.lines: list[str] = ["🚀 Allocation Server started", ""]
        self.references: Counter[tuple[int, int]] = Counter()
        self.sizes: dict[tuple[int, int], int] = {}
        self.number = hex if is_hex else str

    def alloc(self, life: Life) -> None:
        key = (life.device, life.address)
        self.references[key] += 1
        self.sizes.setdefault(key, life.bytes)  # it never learns of another one
        count = self.references[key]
        self.lines.append(
            f"✓ [PID {life.pid}] Allocated {life.bytes} bytes of {life.region} on device "
            f"{life.device} (buffer_id={self.number(life.address)}"
            + (f", ref_count={count})" if count > 1 else ")")
        )

    def free(self, life: Life) -> None:
        key = (life.device, life.address)
        name = self.number(life.address)
        if not self.references[key]:
            self.lines.append(
                f"⚠ [PID {life.pid}] Deallocation for unknown buffer {name} on device "
                f"{life.device} (allocated before tracking started)"
            )
            return
        self.references[key] -= 1
        left = self.references[key]
        size = self.sizes[key] if left else self.sizes.pop(key)
        self.lines.append(
            f"✗ [PID {life.pid}] Freed buffer {name} on device {life.device} ({size} bytes, "
            + (f"ref_count={left} remaining)" if left else "FINAL)")
        )

    def statistics(self) -> None:
        self.lines += [
            "", "📊 Current Statistics:", "  Device 0:", "    Buffers:",
            "    DRAM: 4096 bytes (4 KB)", "    L1: 0 bytes (0 KB)", "    Total: 4096 bytes",
            "  Active allocations: 1", "",
        ]  # fmt: skip

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def debug_block(title: str, life: Life, second: int = 0, stack: str = "", owns: str = "yes") -> str:
    kib = f"{life.bytes / 1024:.6g}"
    region = life.region if life.region in ("DRAM", "L1", "L1_SMALL") else "OTHER"
    owner = f"Owns Data: {owns}\nHooked: no\n" if title == "BUFFER ALLOCATED" else ""
    return (
        f"{RULE}\n{title}\nTime: {second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}\n"
        f"Device: {life.device}\nAddress: {life.address:#x} ({life.address})\n"
        f"Size: {life.bytes} bytes ({kib} KB)\nType: {region}\nBuffer*: {life.pointer:#x}\n{owner}"
        f"Call Stack:\n{stack}\n"
    )


DESTRUCTOR = "BUFFER DESTRUCTOR (still ALLOCATED - will deallocate)"


class DebugLog:
    """The patched TT-Metal: a block for each event."""

    def __init__(self) -> None:
        self.blocks: list[str] = []

    def alloc(self, life: Life) -> None:
        stack = (
            "    libtt_metal.so: tt::tt_metal::Buffer::allocate_impl()\n"
            f"    _ttnn.so: ttnn::operation_{life.line}::operator()(ttnn::Tensor const&)\n"
        )
        self.blocks.append(debug_block("BUFFER ALLOCATED", life, len(self.blocks) // 7, stack))

    def free(self, life: Life) -> None:
        second = len(self.blocks) // 7
        if life.line % 2:
            self.blocks.append(debug_block(DESTRUCTOR, life, second))
        self.blocks.append(debug_block("BUFFER DEALLOCATED", life, second))

    def text(self) -> str:
        return "".join(self.blocks)


def seed_one() -> str:
    """What the document of the original analyses: 176 allocations and one free at 0x18b20, and two
    addresses of DRAM, among buffers that come and go."""
    log = ServerLog()
    chance = random.Random(1)
    base = [Life(4242, 0, "L1", 0x18B20, n) for n in (32768, 4096, 12288, 134144, 8192)]
    places = [
        (base, 176, 1),
        ([Life(4242, 0, "DRAM", 0x18815E0, n) for n in (512, 65536, 16384, 8192, 34816)], 188, 71),
        ([Life(4242, 0, "DRAM", 0x1885800, n) for n in (16384, 8192, 524288, 262144)], 124, 41),
    ]
    for lives, allocs, frees in places:
        steps = ["alloc"] * (allocs - 2) + ["free"] * frees
        chance.shuffle(steps)
        for step in ["alloc", "alloc", *steps]:
            life = chance.choice(lives)
            if step == "alloc" or not log.references[0, life.address]:
                log.alloc(life)
            else:
                log.free(life)
            passing = Life(4242, 0, life.region, 0x2000000 + 64 * chance.randrange(9), 2048)
            log.alloc(passing)
            log.free(passing)
    log.statistics()
    return log.text()
