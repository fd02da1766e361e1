# SPDX-License-Identifier: Apache-2.0
"""Machines that ttnn is told to run on: descriptions of clusters, as tt-umd reads them."""

from __future__ import annotations

import dataclasses
import json


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Chips by their place in the mesh, and what connects and carries them."""

    arch: str
    places: dict[int, tuple[int, int]]
    harvest_masks: dict[int, int]  # the rows of cores that a chip lacks
    links: tuple[tuple[int, int, int, int], ...]  # chip, first channel, chip, first channel
    boards: tuple[tuple[str, tuple[int, ...]], ...]
    pci_cards: dict[int, int]  # chip: number of its card
    board_family: int  # part of the serial number of a board, which has to fit its name
    eth_harvest_mask: int = 0
    pcie_harvest_mask: int = 0
    first_asic_id: int = 7_000_000_000  # by it TT-Metal names its files in /dev/shm

    def asic_id(self, chip: int) -> int:
        return self.first_asic_id + 11 * chip

    def description(self) -> str:
        """YAML; JSON is part of it, but for keys, which have to be numbers."""
        cards = ", ".join(f"{{{chip}: {card}}}" for chip, card in self.pci_cards.items())
        lines = [
            "arch: " + mapping({chip: self.arch for chip in self.places}),
            "chips: " + mapping({chip: [x, y, 0, 0] for chip, (x, y) in self.places.items()}),
            "chip_unique_ids: " + mapping({chip: self.asic_id(chip) for chip in self.places}),
            "ethernet_connections: " + json.dumps(self._connections()),
            f"chips_with_mmio: [{cards}]",
            "harvesting:",
        ]
        for chip, mask in self.harvest_masks.items():
            facts = {
                "noc_translation": True,
                "harvest_mask": mask,
                "dram_harvesting_mask": 0,
                "eth_harvesting_mask": self.eth_harvest_mask,
                "pcie_harvesting_mask": self.pcie_harvest_mask,
            }
            lines.append(f"  {chip}: {json.dumps(facts)}")
        lines.append("boards:")
        for number, (kind, chips) in enumerate(self.boards):
            facts = [{"board_id": self.board_family << 36 | number + 1}, {"board_type": kind}]
            lines.append(f"  - {json.dumps([*facts, {'chips': list(chips)}])}")
        return "\n".join(lines) + "\n"

    def _connections(self) -> list[list[dict[str, int]]]:
        """Each link has two channels beside each other."""
        return [
            [{"chip": a, "chan": at_a + i}, {"chip": b, "chan": at_b + i}]
            for a, at_a, b, at_b in self.links
            for i in (0, 1)
        ]


def mapping(entries: dict[int, object]) -> str:
    return "{" + ", ".join(f"{key}: {json.dumps(value)}" for key, value in entries.items()) + "}"


N150 = Cluster(
    arch="wormhole_b0",
    board_family=0x18,
    places={0: (0, 0)},
    harvest_masks={0: 64},
    links=(),
    boards=(("n150", (0,)),),
    pci_cards={0: 0},
)

N300 = Cluster(
    arch="wormhole_b0",
    board_family=0x14,
    places={0: (0, 0), 1: (1, 0)},
    harvest_masks={0: 513, 1: 576},
    links=((0, 8, 1, 0),),
    boards=(("n300", (0, 1)),),
    pci_cards={0: 0},
)

P150 = Cluster(
    arch="blackhole",
    board_family=0x40,
    places={0: (0, 0)},
    harvest_masks={0: 0},
    links=(),
    boards=(("p150", (0,)),),
    pci_cards={0: 0},
    eth_harvest_mask=0x120,
    pcie_harvest_mask=2,
)

# Four boards of two chips; chips 0 to 3 are on the PCI bus, 4 to 7 behind them.
T3K = Cluster(
    arch="wormhole_b0",
    board_family=0x14,
    places={4: (0, 0), 0: (1, 0), 2: (2, 0), 6: (3, 0), 5: (0, 1), 1: (1, 1), 3: (2, 1), 7: (3, 1)},
    harvest_masks={0: 544, 1: 513, 2: 640, 3: 513, 4: 576, 5: 513, 6: 513, 7: 528},
    links=(
        (0, 6, 2, 6),
        (0, 8, 4, 0),
        (0, 14, 1, 14),
        (1, 0, 3, 0),
        (1, 8, 5, 0),
        (2, 8, 6, 0),
        (2, 14, 3, 14),
        (3, 8, 7, 0),
        (4, 6, 5, 6),
        (6, 6, 7, 6),
    ),
    boards=tuple(("n300", (chip, chip + 4)) for chip in range(4)),
    pci_cards={0: 0, 1: 1, 2: 2, 3: 3},
)
