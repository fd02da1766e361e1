# SPDX-License-Identifier: Apache-2.0
"""Meshes, submeshes and submeshes of those, opened and closed in any order: the server stays exact."""

from __future__ import annotations

import dataclasses
import json
import random
import subprocess
from pathlib import Path
from typing import Any, Callable

import pytest
from basics import LONG, PATIENCE_S, TT_MEM
from clusters import T3K
from programs import PYTHON, Failure, Program, assert_exact, environment

Start = Callable[..., Program]

STEPS = 60
SEEDS = range(24) if LONG else (0, 7, 8)  # these found what was wrong in 0.1
NO_STACKS = {"TTMEM_PYTHON_FRAMES": "0", "TTMEM_NATIVE_FRAMES": "0"}  # a dump is fast

# The parent is closed before its submeshes, and everything is dropped; twice.
TWICE = """
import ttnn
for turn in range(2):
    mesh = ttnn.open_mesh_device(ttnn.MeshShape(2, 4))
    parts = mesh.create_submeshes(ttnn.MeshShape(2, 2))
    kept = [ttnn.zeros((64, 64), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=part)
            for part in parts]
    ttnn.close_mesh_device(mesh)
    del kept, parts, mesh
"""


# Rows, columns, and where they begin.
ROOTS = [(2, 4, 0, 0), (2, 2, 0, 0), (2, 2, 0, 2), (1, 2, 0, 0), (1, 4, 1, 0), (2, 1, 0, 3)]


@dataclasses.dataclass
class Mesh:
    """A mesh that is open in the program, where its name is 'name'."""

    name: str
    rows: int
    columns: int
    parent: Mesh | None
    has_devices: bool = True  # else the runtime has closed them under it, for another mesh

    def root(self) -> Mesh:
        return self.parent.root() if self.parent else self


class Walk:
    """
    Random steps of a program on eight chips. Each is one line of Python; the runtime may refuse it.
    """

    def __init__(self, program: Program, seed: int):
        self.program = program
        self.random = random.Random(seed)
        self.meshes: list[Mesh] = []
        self.made = 0
        self.steps: list[str] = []
        program.do("kept = {}")

    def do(self, code: str) -> bool:
        """Returns False when it was refused."""
        self.steps.append(code)
        try:
            self.program.do(code)
        except Failure as failure:
            self.steps[-1] += f"  # refused: {failure.text.splitlines()[0]}"
            return False
        return True

    def add(self, expression: str, mesh: Mesh) -> None:
        mesh.name = f"mesh_{self.made}"
        self.made += 1
        code = f"{mesh.name} = {expression}; kept['{mesh.name}'] = []"
        if mesh.parent:
            code += f"; meshes.append({mesh.name})"
        if self.do(code):
            self.meshes.append(mesh)

    def open(self) -> None:
        """
        A mesh alone, or chips beside each other, the same one again among them: a second mesh would
        have ttnn close some chips of the first, and it aborts by itself.
        """
        rows, columns, row, column = self.random.choice(ROOTS)
        chip = self.random.randrange(8)
        roots = [mesh.root() for mesh in self.meshes]
        if any(root.rows * root.columns > 1 for root in roots):
            return
        if roots or self.random.random() < 0.3:
            self.add(f"open_device({chip})", Mesh("", 1, 1, None))
        else:
            place = f"offset=ttnn.MeshCoordinate({row}, {column})"
            self.add(f"open_mesh({rows}, {columns}, {place})", Mesh("", rows, columns, None))

    def divide(self, mesh: Mesh) -> None:
        if not mesh.has_devices:  # ttnn crashes by itself
            return
        rows = self.random.randint(1, mesh.rows)
        columns = self.random.randint(1, mesh.columns)
        row = self.random.randint(0, mesh.rows - rows)
        column = self.random.randint(0, mesh.columns - columns)
        shape = f"ttnn.MeshShape({rows}, {columns})"
        place = f"ttnn.MeshCoordinate({row}, {column})"
        part = Mesh("", rows, columns, mesh)
        self.add(f"{mesh.name}.create_submesh({shape}, {place})", part)

    def allocate(self, mesh: Mesh) -> None:
        height = 32 * self.random.randint(1, 4)
        memory = self.random.choice(["DRAM", "L1"])
        options = f"memory=ttnn.{memory}_MEMORY_CONFIG"
        self.do(f"kept['{mesh.name}'].append(tensor({mesh.name}, {height}, 64, {options}))")

    def free(self, mesh: Mesh) -> None:
        self.do(f"del kept['{mesh.name}'][:1]")

    def forget(self, mesh: Mesh) -> None:
        """With the last mesh of a family the runtime may close the chips of others."""
        self.meshes.remove(mesh)
        if all(other.root() is not mesh.root() for other in self.meshes):
            for other in self.meshes:
                other.has_devices = False

    def close(self, mesh: Mesh) -> None:
        """Its tensors, and the Python object of the mesh, may stay."""
        self.forget(mesh)
        end = f"close({mesh.name})"
        if self.random.random() < 0.5:
            end += f"; del {mesh.name}"
        if self.random.random() < 0.5:
            end += f"; del kept['{mesh.name}']"
        assert self.do(end)

    def drop(self, mesh: Mesh) -> None:
        """
        Nobody closes it, and its parent may keep it. Without devices a tensor that goes stays in its
        allocator, and nobody could ask that any more.
        """
        if not mesh.has_devices:
            return
        for other in [other for other in self.meshes if other.parent is mesh]:
            self.drop(other)
        self.forget(mesh)
        self.do(f"del kept['{mesh.name}']")
        self.do(f"meshes[:] = [m for m in meshes if m is not {mesh.name}]; del {mesh.name}")

    def step(self) -> None:
        if not self.meshes:
            self.open()
            return
        mesh = self.random.choice(self.meshes)
        kinds = [self.allocate, self.free, self.divide, self.close, self.drop]
        weights = [30, 5, 25, 25, 3]
        if self.random.random() < 0.1:
            self.open()
        else:
            self.random.choices(kinds, weights)[0](mesh)


def check(server: Any, walk: Walk, step: Callable[[], None]) -> None:
    try:
        step()
        row = assert_exact(server, walk.program)
    except (AssertionError, pytest.fail.Exception) as failure:
        raise AssertionError("not exact after these steps:\n" + "\n".join(walk.steps)) from failure
    assert row is None or row["complete"]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_order_of_opening_and_closing_stays_exact(
    start: Start, server: Any, seed: int
) -> None:
    walk = Walk(start(T3K, env=NO_STACKS), seed)
    for _ in range(STEPS):
        check(server, walk, walk.step)
    while walk.meshes:
        check(server, walk, lambda: walk.close(walk.random.choice(walk.meshes)))
    assert walk.program.holds == {}


def test_a_mesh_closed_before_its_submeshes_twice(start: Start, server: Any) -> None:
    program = start(T3K)
    for turn in (1, 2):
        program.do("""
            mesh = open_mesh(2, 4)
            parts = mesh.create_submeshes(ttnn.MeshShape(2, 2))
            meshes += parts
            kept = [tensor(mesh, 32, 32)] + [tensor(part, 64, 64) for part in parts]
            close(mesh)
        """)
        assert {chip: blocks for (chip, _), (blocks, _) in program.holds.items()} == {
            chip: 1 for chip in range(8)
        }, turn
        assert_exact(server, program)
        program.do("meshes.clear(); del kept, parts, mesh")
        assert_exact(server, program)


def test_what_was_dropped_before_its_submesh_was_closed_does_not_remain(folder: Path) -> None:
    script, recording = folder / "twice.py", folder / "twice.ttmem"
    script.write_text(TWICE)
    subprocess.run(
        [TT_MEM, "run", "-o", recording, PYTHON, script],
        env=environment(folder, T3K),
        cwd=folder,
        capture_output=True,
        timeout=PATIENCE_S,
        check=True,
    )
    told = subprocess.run(
        [TT_MEM, "report", "--json", recording], capture_output=True, timeout=PATIENCE_S, check=True
    )
    (process,) = json.loads(told.stdout)["processes"]
    assert process["complete"] and process["unknown_frees"] == 0
    dram = {device["id"]: device["regions"]["DRAM"] for device in process["devices"]}
    assert set(dram) == set(range(8))
    for chip, region in dram.items():
        assert (region["allocs"], region["frees"], region["remaining"]) == (2, 2, 0), chip
