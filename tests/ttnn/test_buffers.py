# SPDX-License-Identifier: Apache-2.0
"""Buffers: at every checkpoint the server has what ttnn's own allocators hold."""

from __future__ import annotations

from typing import Any, Callable

import pytest
from basics import wait_for
from clusters import N150, N300, P150, T3K, Cluster
from programs import Program, assert_exact, regions_of, tracked_holds
from tracked import row_of

Start = Callable[..., Program]


def test_one_device_from_open_to_close(start: Start, server: Any) -> None:
    program = start()
    program.do("device = open_device()")
    assert program.holds == {}
    assert_exact(server, program)

    program.do("kept = [tensor(device, 32 * n, 64) for n in range(1, 20)]")
    row = assert_exact(server, program)
    assert regions_of(row)["DRAM"]["remaining"] == 19
    # 32 x 64 numbers of 2 bytes are asked for, and 12 banks take a page each.
    first = {"bytes": 4096, "footprint_bytes": 24576, "banks": 12}
    assert first.items() <= row["buffers"][0].items()

    program.do("kept[3:9] = []")
    assert_exact(server, program)

    program.do("view = ttnn.reshape(kept[0], (1, 1, 32, 64)); another = kept[0]")
    assert program.holds[0, "DRAM"][0] == 13
    assert_exact(server, program)

    program.do("del view, another, kept; close(device)")
    assert program.holds == {}
    assert_exact(server, program)
    assert program.end() == 0


def test_threads_that_free_what_others_made(start: Start, server: Any) -> None:
    program = start()
    program.do("""
        device = open_device()
        made = [[] for _ in range(8)]

        def make(number):
            for n in range(40):
                made[number].append(tensor(device, 32, 32 * (n % 7 + 1)))
        in_threads(8, make)
    """)
    assert program.holds[0, "DRAM"][0] == 320
    assert_exact(server, program)
    program.do("""
        def free_and_make(number):
            for n in range(40):
                made[(number + 1) % 8][n] = None
                if n % 3 == 0:
                    made[number].append(tensor(device, 64, 64))
        in_threads(8, free_and_make)
    """)
    assert program.holds[0, "DRAM"][0] == 8 * 14
    assert_exact(server, program)


def test_l1_interleaved_and_sharded(start: Start, server: Any) -> None:
    program = start()
    program.do("""
        device = open_device()
        l1 = ttnn.L1_MEMORY_CONFIG
        interleaved = [tensor(device, 64 * n, 512, memory=l1) for n in range(1, 5)]
    """)
    assert program.holds[0, "L1"][0] == 4
    assert_exact(server, program)
    program.do("""
        def sharded(layout, rows, columns, shape):
            last = ttnn.CoreCoord(columns, rows)
            cores = ttnn.CoreRangeSet({ttnn.CoreRange(ttnn.CoreCoord(0, 0), last)})
            spec = ttnn.ShardSpec(cores, shape, ttnn.ShardOrientation.ROW_MAJOR)
            return ttnn.MemoryConfig(layout, ttnn.BufferType.L1, spec)
        height = ttnn.TensorMemoryLayout.HEIGHT_SHARDED
        block = ttnn.TensorMemoryLayout.BLOCK_SHARDED
        kept = [
            tensor(device, 256, 64, memory=sharded(height, 1, 3, (32, 64))),
            tensor(device, 128, 128, memory=sharded(block, 3, 3, (32, 32))),
        ]
        kept.append(ttnn.add(kept[0], kept[0]))
        kept.append(ttnn.to_memory_config(interleaved[0], ttnn.DRAM_MEMORY_CONFIG))
    """)
    assert program.holds[0, "L1"][0] == 7 and program.holds[0, "DRAM"][0] == 1
    row = assert_exact(server, program)
    banks = {(buffer["region"], buffer["banks"]) for buffer in row["buffers"]}
    assert {("L1", 64), ("DRAM", 12)} <= banks  # circular buffers and kernels have none
    program.do("kept = interleaved = None")
    assert program.holds == {}
    assert_exact(server, program)


def test_l1_small_and_trace(start: Start, server: Any) -> None:
    program = start()
    program.do("""
        device = open_device(l1_small_size=32768, trace_region_size=1 << 20)
        cores = ttnn.CoreRangeSet({ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(0, 0))})
        spec = ttnn.ShardSpec(cores, (32, 32), ttnn.ShardOrientation.ROW_MAJOR)
        height = ttnn.TensorMemoryLayout.HEIGHT_SHARDED
        small = ttnn.MemoryConfig(height, ttnn.BufferType.L1_SMALL, spec)
        trace = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.INTERLEAVED, ttnn.BufferType.TRACE)
        kept = [tensor(device, 32, 32, memory=small), tensor(device, 64, 64, memory=trace),
                tensor(device, 64, 64)]
    """)
    assert {region for _, region in program.holds} == {"DRAM", "L1_SMALL", "TRACE"}
    assert_exact(server, program)
    program.do("kept.pop(0)")
    assert_exact(server, program)
    program.do("kept = None")
    assert_exact(server, program)


@pytest.mark.parametrize("cluster", [N150, P150], ids=["wormhole", "blackhole"])
def test_buffers_smaller_than_what_is_handed_out(
    start: Start, server: Any, cluster: Cluster
) -> None:
    program = start(cluster)
    program.do("""
        device = open_device(l1_small_size=32768)
        cores = ttnn.CoreRangeSet({ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(0, 0))})

        def sharded(where, width):
            spec = ttnn.ShardSpec(cores, (1, width), ttnn.ShardOrientation.ROW_MAJOR)
            return ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, where, spec)

        kept = []
        for width in (4, 8, 16, 24, 40, 56):
            for memory in (ttnn.DRAM_MEMORY_CONFIG, ttnn.L1_MEMORY_CONFIG,
                           sharded(ttnn.BufferType.L1, width),
                           sharded(ttnn.BufferType.L1_SMALL, width)):
                kept.append(ttnn.empty((1, width), dtype=ttnn.bfloat16, device=device,
                                       layout=ttnn.ROW_MAJOR_LAYOUT, memory_config=memory))
    """)
    assert program.holds[0, "L1"][0] == 12 and program.holds[0, "L1_SMALL"][0] == 6
    assert_exact(server, program)


def test_buffers_in_single_cores(start: Start, server: Any) -> None:
    """
    A mode of the runtime in which chips have allocators of their own beside the mesh's: buffers
    with another place in each of their cores take nothing in other cores. The view of the mesh's
    allocator does not have them.
    """
    program = start(N300, env={"TT_METAL_ALLOCATOR_MODE_HYBRID": "1"})
    function = "experimental_set_per_core_allocation"
    if not program.do(f"result = hasattr(ttnn.MemoryConfig, '{function}')"):
        pytest.skip("needs a ttnn with allocation by core")
    program.do("""
        mesh = open_mesh(1, 2)
        kept = [tensor(mesh, 64, 64, memory=ttnn.L1_MEMORY_CONFIG) for _ in range(3)]
        kept.append(tensor(mesh, 64, 64))
    """)
    assert program.holds[1, "L1"][0] == 3
    assert_exact(server, program)  # what lies alike in all cores is as ever

    program.do("""
        def by_core(count):
            cores = ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(count - 1, 0))
            spec = ttnn.ShardSpec(ttnn.CoreRangeSet({cores}), (32, 64),
                                  ttnn.ShardOrientation.ROW_MAJOR)
            memory = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED,
                                       ttnn.BufferType.L1, spec)
            memory.experimental_set_per_core_allocation(True)
            made = tensor(mesh, 32 * count, 64, memory=memory)
            assert made.is_per_core_allocated()
            return made

        few = [by_core(1), by_core(3)]
    """)
    lockstep = dict(program.holds)

    def holds(cores: int, buffers: int) -> bool:
        expected = dict(lockstep)
        for chip in (0, 1):  # 32 x 64 numbers of 2 bytes in each core
            count, size = lockstep[chip, "L1"]
            expected[chip, "L1"] = (count + buffers, size + cores * 4096)
        return tracked_holds(row_of(server, program.pid)) == expected

    wait_for(lambda: holds(4, 2), "the buffers in single cores")
    row = row_of(server, program.pid)
    few = [b["banks"] for b in row["buffers"] if b["footprint_bytes"] <= 3 * 4096]
    assert sorted(few) == [1, 1, 3, 3]
    program.do("del few[0]; kept.pop(0)")
    lockstep = dict(program.holds)
    wait_for(lambda: holds(3, 1), "one to end")
    program.do("close(mesh)")
    assert_exact(server, program)
    program.do("few = kept = None")
    assert_exact(server, program)
    assert program.end() == 0


def test_operations_and_their_results(start: Start, server: Any) -> None:
    program = start()
    program.do("""
        device = open_device()
        x = tensor(device, 128, 128)
        for n in range(25):
            y = ttnn.softmax(ttnn.add(x, x), dim=-1)
            x = ttnn.multiply(ttnn.matmul(y, x), y)
    """)
    assert_exact(server, program)
    program.do("del x, y")
    assert program.holds == {}
    assert_exact(server, program)


def test_two_chips(start: Start, server: Any) -> None:
    program = start(N300)
    program.do("mesh = open_mesh(1, 2); kept = [tensor(mesh, 64, 64) for _ in range(3)]")
    assert {chip for chip, _ in program.holds} == {0, 1}
    row = assert_exact(server, program)
    # One tensor on two chips is one allocation.
    assert len([b for b in row["buffers"] if b["region"] == "DRAM"]) == 3


def test_eight_chips_and_a_part_of_them(start: Start, server: Any) -> None:
    program = start(T3K)
    program.do("mesh = open_mesh(2, 4); kept = [tensor(mesh, 64, 32 * n) for n in range(1, 9)]")
    assert len(program.holds) == 8
    row = assert_exact(server, program)
    assert sorted(row["buffers"][0]["device_ids"]) == list(range(8))

    # A part of a mesh has an allocator of its own over the same memory.
    program.do("""
        part = mesh.create_submesh(ttnn.MeshShape(1, 2), ttnn.MeshCoordinate(1, 1))
        meshes.append(part)
        kept += [tensor(part, 64, 64), tensor(part, 128, 64)]
    """)
    assert sorted(blocks for blocks, _ in program.holds.values()) == [8] * 6 + [10] * 2
    assert_exact(server, program)
    program.do("kept[4:9] = []; kept.append(ttnn.add(kept[0], kept[0]))")
    assert_exact(server, program)


def test_a_mesh_closed_before_a_part_of_it(start: Start, server: Any) -> None:
    program = start(N300)
    program.do("""
        mesh = open_mesh(1, 2)
        part = mesh.create_submesh(ttnn.MeshShape(1, 1), ttnn.MeshCoordinate(0, 0))
        meshes.append(part)
        kept = [tensor(mesh, 64, 64), tensor(part, 64, 64), tensor(part, 64, 64)]
        close(mesh)
    """)
    assert {chip: blocks for (chip, _), (blocks, _) in program.holds.items()} == {0: 2}
    assert_exact(server, program)  # those of the part live on
    program.do("kept.pop(); kept.append(tensor(part, 32, 32)); close(part)")
    assert program.holds == {}
    assert_exact(server, program)


@pytest.mark.parametrize("first", [0, 1])
def test_one_of_two_devices_closed(start: Start, server: Any, first: int) -> None:
    """The runtime closes both chips of the pair; the other's allocator goes on, and so do we."""
    program = start(N300)
    program.do("""
        devices = [open_device(chip) for chip in (0, 1)]
        kept = [tensor(device, 64, 64) for device in devices for _ in range(2)]
    """)
    assert {chip: blocks for (chip, _), (blocks, _) in program.holds.items()} == {0: 2, 1: 2}
    assert_exact(server, program)
    program.do(f"close(devices[{first}])")
    assert {chip: blocks for (chip, _), (blocks, _) in program.holds.items()} == {1 - first: 2}
    assert_exact(server, program)
    program.do(f"kept.append(tensor(devices[{1 - first}], 32, 32))")
    assert {chip: blocks for (chip, _), (blocks, _) in program.holds.items()} == {1 - first: 3}
    assert_exact(server, program)
    program.do(f"close(devices[{1 - first}])")
    assert program.holds == {}
    assert_exact(server, program)


def test_device_closed_with_buffers_alive(start: Start, server: Any) -> None:
    program = start()
    program.do("device = open_device(); kept = [tensor(device, 64, 64) for _ in range(5)]")
    assert_exact(server, program)
    program.do("close(device)")
    assert program.holds == {}
    assert_exact(server, program)
    program.do("kept = None")  # raises no event
    assert_exact(server, program)


def test_open_close_open(start: Start, server: Any) -> None:
    program = start()
    program.do("stale = []")
    for count in (3, 5, 2):
        program.do(f"""
            device = open_device()
            kept = [tensor(device, 64, 64) for _ in range({count})]
        """)
        assert program.holds[0, "DRAM"][0] == count
        assert_exact(server, program)
        program.do("stale.append(kept); close(device)")
        assert_exact(server, program)
    program.do("device = open_device(); fresh = tensor(device, 32, 32); stale.clear()")
    assert program.holds[0, "DRAM"][0] == 1
    assert_exact(server, program)


def test_tensors_of_graph_capture_take_nothing(start: Start, server: Any) -> None:
    program = start()
    program.do("""
        device = open_device()
        real = tensor(device, 64, 64)
        # With a capture under way ttnn looks for tensors of torch, which need not be there.
        import sys, types
        sys.modules["torch"] = types.SimpleNamespace(Tensor=type("Tensor", (), {}))
        ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NO_DISPATCH)
        virtual = tensor(device, 64, 64)
        summed = ttnn.add(virtual, virtual)
    """)
    assert program.holds[0, "DRAM"][0] == 1
    assert_exact(server, program)
    program.do("del virtual, summed; ttnn.graph.end_graph_capture()")
    assert program.holds[0, "DRAM"][0] == 1
    assert_exact(server, program)
