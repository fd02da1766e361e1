# SPDX-License-Identifier: Apache-2.0
"""Circular buffers, dataflow buffers, scratchpads and kernels of programs."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any, Callable

import provision
import pytest
from basics import wait_for
from clusters import N150, N300, T3K
from commands import run_json
from programs import Failure, Program, assert_exact, regions_of
from tracked import row_of

Start = Callable[..., Program]

OFF = {"TT_ALLOC_TRACKING_ENABLED": None}
# These use circular buffers; most other operations use dataflow buffers, which the runtime does
# not count.
WITH_CBS = (
    "ttnn.add(x, x)",
    "ttnn.multiply(x, x)",
    "ttnn.where(x, x, x)",
    "ttnn.repeat(x, (2, 1))",
)


def region(server: Any, program: Program, name: str, chip: int = 0) -> dict[str, Any]:
    return regions_of(row_of(server, program.pid), chip).get(name, {})


def assert_cbs_exact(server: Any, program: Program, chips: tuple[int, ...] = (0,)) -> int:
    """What all programs hold, over all cores, is what the runtime itself counts, on each chip."""
    for chip in chips:
        truth = program.do(f"result = cb_bytes({chip})")
        wait_for(
            lambda: region(server, program, "CB", chip).get("registered_bytes", 0) == truth,
            f"circular buffers of chip {chip} to be {truth}, "
            f"{region(server, program, 'CB', chip)}",
        )
    assert_exact(server, program)
    return truth


def test_circular_buffers_with_the_cache_growing_and_cleared(start: Start, server: Any) -> None:
    program = start()
    program.do("device = open_device(); x = tensor(device, 128, 128)")
    assert assert_cbs_exact(server, program) == 0
    sizes = []
    for operation in WITH_CBS:
        program.do(f"y = {operation}")
        sizes.append(assert_cbs_exact(server, program))
    assert sizes[0] > 0
    told = region(server, program, "CB")
    # Programs in the cache share addresses: together they hold less than the sum.
    assert told["remaining_bytes"] > told["registered_bytes"]

    program.do(f"for _ in range(50):\n    {'; '.join('y = ' + o for o in WITH_CBS)}")
    assert assert_cbs_exact(server, program) == sizes[-1]
    again = region(server, program, "CB")
    assert again["allocs"] == told["allocs"]  # a program in the cache is not laid out again

    program.do("device.clear_program_cache()")
    assert assert_cbs_exact(server, program) == 0
    program.do("y = ttnn.add(x, x)")
    assert assert_cbs_exact(server, program) == sizes[0]
    program.do("device.disable_and_clear_program_cache()")
    assert assert_cbs_exact(server, program) == 0
    program.do("y = ttnn.add(x, x)")
    assert assert_cbs_exact(server, program) == 0
    assert region(server, program, "KERNEL")["remaining"] == 0


def test_the_program_sent_last_is_resident(start: Start, server: Any) -> None:
    program = start()
    program.do("device = open_device(); x = tensor(device, 256, 256); y = tensor(device, 32, 32)")
    program.do("z = ttnn.layer_norm(x)")
    large = region(server, program, "CB")
    program.do("z = ttnn.relu(x)")
    wait_for(
        lambda: region(server, program, "CB")["resident_bytes"] < large["resident_bytes"],
        "the smaller program to be resident",
    )
    assert region(server, program, "CB")["registered_bytes"] >= large["registered_bytes"]
    program.do("z = ttnn.layer_norm(x)")  # from the cache: no new layout, but it is sent again
    wait_for(
        lambda: region(server, program, "CB")["resident_bytes"] >= large["resident_bytes"],
        "the larger one to be resident again",
    )


@pytest.mark.parametrize("cluster", [N150, T3K], ids=["one chip", "eight chips"])
def test_a_recording_has_what_was_resident_and_registered(
    start: Start, server: Any, folder: Path, cluster: Any
) -> None:
    server.stop()
    server.start("--record", str(folder))
    program = start(cluster)
    opening = "open_device()" if cluster is N150 else "open_mesh(2, 4)"
    program.do(f"device = {opening}; x = tensor(device, 256, 256)")
    for operation in ("where(x, x, x)", "add(x, x)", "where(x, x, x)", "add(x, x)"):
        program.do(f"z = ttnn.{operation}")
    chips = sorted(cluster.places)
    keys = ("resident_bytes", "registered_bytes")
    before = [[region(server, program, "CB", chip)[key] for key in keys] for chip in chips]
    assert all(0 < resident < registered for resident, registered in before)
    os.kill(program.pid, signal.SIGKILL)
    wait_for(lambda: not row_of(server, program.pid), "the program to be gone")
    server.stop()
    (recording,) = folder.glob("*.ttmem")
    (process,) = run_json("report", recording)["processes"]
    told = [device["regions"]["CB"] for device in process["devices"]]
    assert [[row[key] for key in keys] for row in told] == before
    assert all(row["peak_resident_bytes"] > row["resident_bytes"] for row in told)


def part_bytes(server: Any, program: Program) -> dict[int, list[int]]:
    """Program: bytes of its parts, in the order they were laid out."""
    parts: dict[int, list[int]] = {}
    row = row_of(server, program.pid)
    for buffer in row["buffers"] if row else []:
        if buffer["region"] == "CB":
            parts.setdefault(buffer["program"], []).append(buffer["bytes"])
    return parts


def test_dataflow_buffers_and_scratchpads(start: Start, server: Any) -> None:
    program = start()
    program.do("device = open_device(); x = tensor(device, 32, 32)")
    # In tiles of 2 KiB: relu has two for its input and two for its output, on all cores; matmul
    # one for each of three, on the one core that has work.
    for operation, size in (("ttnn.relu(x)", 64 * 8192), ("ttnn.matmul(x, x)", 6144)):
        before = part_bytes(server, program)
        program.do(f"y = {operation}")
        (new,) = wait_for(
            lambda: [p for p in part_bytes(server, program).items() if p[0] not in before],
            f"dataflow buffers of {operation}",
        )
        assert sum(new[1]) == size, (operation, new)

    before = part_bytes(server, program)
    program.do("y = ttnn.pad(x, [(0, 32), (0, 0)], 0.0)")
    wait_for(lambda: part_bytes(server, program) != before, "parts of a pad")
    # The runtime does not count any of these. Before 0.81, relu had circular buffers instead.
    counted = 64 * 8192 if provision.is_older_than("0.81") else 0
    assert program.do("result = cb_bytes(0)") == counted
    program.do("device.clear_program_cache()")
    wait_for(lambda: part_bytes(server, program) == {}, "all of them to be given back")
    assert_exact(server, program)


def test_circular_buffers_on_a_shard_add_nothing(start: Start, server: Any) -> None:
    program = start()
    program.do("""
        device = open_device()
        cores = ttnn.CoreRangeSet({ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(3, 1))})
        spec = ttnn.ShardSpec(cores, (32, 64), ttnn.ShardOrientation.ROW_MAJOR)
        height = ttnn.TensorMemoryLayout.HEIGHT_SHARDED
        x = tensor(device, 256, 64, memory=ttnn.MemoryConfig(height, ttnn.BufferType.L1, spec))
        y = ttnn.add(x, x, memory_config=x.memory_config())
    """)
    assert assert_cbs_exact(server, program) == 0
    assert region(server, program, "KERNEL")["remaining"] > 0


def test_kernels_end_with_their_programs(start: Start, server: Any) -> None:
    program = start()
    program.do("device = open_device(); x = tensor(device, 64, 64); y = ttnn.add(x, x)")
    wait_for(lambda: region(server, program, "KERNEL").get("remaining"), "kernels")
    kernels = region(server, program, "KERNEL")
    # A reader, a writer and the computation, which is three binaries; of 8 bytes each.
    assert (kernels["remaining"], kernels["application_bytes"]) == (3, 40)
    program.do("device.clear_program_cache()")
    wait_for(lambda: not region(server, program, "KERNEL")["remaining"], "the kernels to be gone")


def test_close_ends_what_programs_hold(start: Start, server: Any) -> None:
    program = start()
    program.do("device = open_device(); x = tensor(device, 64, 64); y = ttnn.add(x, x)")
    assert assert_cbs_exact(server, program) > 0
    program.do("close(device)")
    for name in ("CB", "KERNEL", "DRAM"):
        wait_for(lambda: region(server, program, name).get("remaining", 0) == 0, f"no {name}")
    # The programs live on in the cache of the old object, and die with it.
    program.do("old, x, y = device, None, None; device = open_device()")
    program.do("x = tensor(device, 64, 64); y = ttnn.add(x, x); del old")
    wait_for(lambda: region(server, program, "CB").get("remaining"), "circular buffers")
    assert_exact(server, program)
    assert server.check()["unknown_frees"] == 0


def test_programs_from_before_tracking(start: Start, server: Any) -> None:
    program = start(env=OFF)
    program.do("device = open_device(); x = tensor(device, 128, 128)")
    program.do(f"for _ in range(2):\n    {'; '.join('y = ' + o for o in WITH_CBS)}")
    assert program.do("result = ctypes.CDLL(None).ttmem_enable()") == 0
    assert assert_cbs_exact(server, program) > 0
    wait_for(lambda: region(server, program, "CB")["resident_bytes"], "something to be resident")
    program.do("device.clear_program_cache()")
    assert assert_cbs_exact(server, program) == 0


def test_two_chips_have_the_same_programs(start: Start, server: Any) -> None:
    program = start(N300)
    program.do("mesh = open_mesh(1, 2); x = tensor(mesh, 64, 64); y = ttnn.add(x, x)")
    assert assert_cbs_exact(server, program, (0, 1)) > 0
    program.do("mesh.clear_program_cache()")
    assert assert_cbs_exact(server, program, (0, 1)) == 0


def test_one_program_for_each_chip(start: Start, server: Any) -> None:
    program = start(T3K)
    program.do("""
        ttnn.set_fabric_config(ttnn.FabricConfig.FABRIC_1D)
        mesh = open_mesh(2, 4)
        x = tensor(mesh, 32, 64)
    """)
    wait_for(
        lambda: all(
            region(server, program, "KERNEL", chip).get("fabric_bytes") for chip in range(8)
        ),
        "kernels of the fabric on every chip",
    )
    program.do("y = ttnn.all_gather(x, dim=0, cluster_axis=1, topology=ttnn.Topology.Linear)")
    wait_for(lambda: part_bytes(server, program), "parts of the programs")
    assert_exact(server, program)
    row = row_of(server, program.pid)
    chips: dict[int, set[tuple[int, ...]]] = {}
    for buffer in row["buffers"]:
        if buffer["region"] == "CB":
            chips.setdefault(buffer["program"], set()).add(tuple(buffer["device_ids"]))
    assert sorted(map(sorted, chips.values())) == [[(chip,)] for chip in range(8)]
    assert_cbs_exact(server, program, tuple(range(8)))


# ---- tensors that cached programs keep ----

CONV = """
def conv(side):
    return ttnn.conv2d(
        input_tensor=ttnn.zeros(
            (1, 1, side * side, 32), dtype=ttnn.bfloat16, layout=ttnn.ROW_MAJOR_LAYOUT, device=device
        ),
        weight_tensor=ttnn.zeros((32, 32, 3, 3), dtype=ttnn.bfloat16, layout=ttnn.ROW_MAJOR_LAYOUT),
        device=device, in_channels=32, out_channels=32, batch_size=1, input_height=side,
        input_width=side, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1),
    )
"""


def kept_by_cache(server: Any, program: Program) -> dict[str, int]:
    """By region, how many buffers are said to be kept by the program cache."""
    row = assert_exact(server, program)
    counts: dict[str, int] = {}
    for origin in row["origins"] if row else []:
        if origin["class"] == "program_cache":
            assert not origin["suspect"] and "clear_program_cache()" in origin["advice"]
            counts[origin["region"]] = counts.get(origin["region"], 0) + origin["remaining"]
    return counts


@pytest.mark.parametrize("frames", ["8", "0"])
def test_buffers_that_go_with_the_program_cache_are_said_to_be_its_own(
    start: Start, server: Any, frames: str
) -> None:
    program = start(env={"TTMEM_PYTHON_FRAMES": frames, "TTMEM_NATIVE_FRAMES": frames})
    program.do("device = open_device(l1_small_size=32768)" + CONV)
    program.do("x = tensor(device, 64, 96); kept = [ttnn.add(x, x), ttnn.reshape(x, (96, 64))]")
    assert kept_by_cache(server, program) == {"DRAM": 1}
    before = {place: blocks for place, (blocks, _) in program.holds.items()}
    program.do("kept.append(ttnn.reshape(x, (96, 64)))")  # its program is there
    assert kept_by_cache(server, program) == {"DRAM": 1}
    assert program.holds[0, "DRAM"][0] == before[0, "DRAM"] + 1
    program.do("y = conv(16); del y")
    counts = kept_by_cache(server, program)
    assert counts["DRAM"] == 1 and counts["L1_SMALL"] == program.holds[0, "L1_SMALL"][0] > 0
    program.do("device.clear_program_cache()")
    assert kept_by_cache(server, program) == {}
    assert program.holds[0, "DRAM"][0] == before[0, "DRAM"]


def test_what_follows_a_program_that_could_not_be_made_is_the_users(
    start: Start, server: Any
) -> None:
    program = start()
    program.do("device = open_device()" + CONV)  # without any L1_SMALL
    with pytest.raises(Failure, match="L1_SMALL"):
        program.do("conv(16)")
    program.do("kept = [tensor(device, 64, 64) for _ in range(3)]")
    assert kept_by_cache(server, program) == {}
    program.do("kept += [ttnn.add(kept[0], kept[1]), ttnn.relu(kept[2])]")
    assert kept_by_cache(server, program) == {}
