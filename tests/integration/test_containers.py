# SPDX-License-Identifier: Apache-2.0
"""docs/containers.md, as written there: programs in containers, servers in and outside of them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from containers import AS_ROOT_OF_ITS_OWN, INSTALLED, Contained, Host, child_of, why_no_namespaces
from support import (
    HOOK_NAME,
    IS_ROOT,
    NOBODY,
    TRACKED_WORKER,
    WORKER_OPTIONS,
    Place,
    Server,
    Tracked,
    row_of,
    run_ok,
    totals_in,
    wait_for,
    wait_until_exact,
)

TT_MEM_INSIDE = f"{INSTALLED}/tt-mem"
WORKER = f"{INSTALLED}/worker"
# The container's command, with the environment that tracks it.
TRACKED = ("sh", "-c", f'eval "$({TT_MEM_INSIDE} env)"; exec {WORKER}')


obstacle = "needs root, to make namespaces" if not IS_ROOT else why_no_namespaces()
pytestmark = pytest.mark.skipif(obstacle != "", reason=obstacle)


@pytest.fixture
def host(folder: Path) -> Host:
    return Host(folder)


@pytest.fixture
def machine(host: Host, make_server: Any) -> Server:
    """The machine's server, whose folder of sockets is handed into containers."""
    server = make_server("tt-mem")
    server.socket = str(host.sockets / "tt-mem.sock")
    return server.start()


def only_row(server: Server) -> dict[str, Any] | None:
    rows = server.dump()["processes"]
    return rows[0] if rows else None


def test_the_socket_is_found_where_it_is_outside(host: Host, machine: Server) -> None:
    """docker run -v /run/tt-mem:/run/tt-mem -v /opt/tt-mem:/opt/tt-mem"""
    with Contained(host, *TRACKED, mounts={host.sockets: "/run/tt-mem"}) as worker:
        worker.do("alloc 0 0 3 1000")
        worker.do("alloc 1 1 2 500")
        wait_until_exact(machine, worker)
        (client,) = machine.check()["clients"]
        # It is process 1 in there; outside it has the number that ps shows.
        assert Path(f"/proc/{worker.pid}/status").read_text().split("NSpid:")[1].split()[:2] == [
            str(worker.pid),
            "1",
        ]
        assert client["pid"] == worker.pid and client["source"] == "tracked"
        assert client["command"] == WORKER
        worker.do("free 2")
        wait_until_exact(machine, worker)
        assert worker.end() == 0
    wait_for(lambda: machine.status()["processes"] == 0, "the end to be noticed")


def test_the_socket_is_told(host: Host, machine: Server) -> None:
    """docker run -v /run/tt-mem:/sockets -e TTMEM_SOCKET=/sockets/tt-mem.sock"""
    told = {"TTMEM_SOCKET": "/sockets/tt-mem.sock"}
    with Contained(host, *TRACKED, mounts={host.sockets: "/sockets"}, env=told) as worker:
        worker.do("alloc 0 0 3 1000")
        wait_until_exact(machine, worker)


def test_the_environment_is_told(host: Host, machine: Server) -> None:
    """docker run -e LD_PRELOAD=/opt/tt-mem/libttmem-hook.so -e TT_ALLOC_TRACKING_ENABLED=1"""
    told = (f"LD_PRELOAD={INSTALLED}/{HOOK_NAME}", "TT_ALLOC_TRACKING_ENABLED=1")
    with Contained(host, "env", *told, WORKER, mounts={host.sockets: "/run/tt-mem"}) as worker:
        worker.do("alloc 0 0 3 1000")
        wait_until_exact(machine, worker)


def test_tracking_is_switched_on_from_outside(host: Host, machine: Server) -> None:
    with Contained(
        host,
        "env",
        "TT_ALLOC_TRACKING_ENABLED=0",
        WORKER,
        mounts={host.sockets: "/run/tt-mem"},
    ) as worker:
        worker.do("alloc 0 0 3 1000")
        assert machine.status()["disabled"].count(worker.pid) == 1
        run_ok("enable", str(worker.pid), server=machine)
        worker.do("alloc 0 0 2 500")
        wait_for(lambda: row_of(machine, worker.pid), "the worker to be known")


def test_without_the_socket_the_program_runs_untracked(host: Host, machine: Server) -> None:
    with Contained(host, *TRACKED, mounts={}) as worker:
        worker.do("alloc 0 0 3 1000")
        assert worker.truth and worker.end() == 0
    assert machine.status()["processes_ended"] == 0


def test_a_server_that_is_restarted_is_found_again(host: Host, machine: Server) -> None:
    """The folder is mounted and not the socket: that would stay the old one."""
    with Contained(host, *TRACKED, mounts={host.sockets: "/run/tt-mem"}) as worker:
        worker.do("alloc 0 0 3 1000")
        wait_until_exact(machine, worker)
        machine.stop()
        worker.do("alloc 0 0 2 500")
        machine.start()
        wait_until_exact(machine, worker)


def test_a_container_that_is_killed_is_gone(host: Host, machine: Server) -> None:
    with Contained(host, *TRACKED, mounts={host.sockets: "/run/tt-mem"}) as worker:
        worker.do("alloc 0 0 3 1000")
        wait_until_exact(machine, worker)
        worker.kill()
        wait_for(lambda: machine.status()["processes"] == 0, "the end to be noticed")
    assert machine.check()["lives"] == 0


def test_two_containers_with_the_same_pid_are_two(host: Host, machine: Server) -> None:
    shared = {host.sockets: "/run/tt-mem"}
    with (
        Contained(host, *TRACKED, mounts=shared) as first,
        Contained(host, *TRACKED, mounts=shared) as second,
    ):
        first.do("alloc 0 0 3 1000")
        second.do("alloc 0 0 5 2000")
        wait_until_exact(machine, first)
        wait_until_exact(machine, second)
        pids = {client["pid"] for client in machine.status()["clients"]}
        assert pids == {first.pid, second.pid}


def test_commands_in_a_container(host: Host, machine: Server) -> None:
    shared = {host.sockets: "/run/tt-mem"}
    with Tracked(machine) as worker:
        worker.do("alloc 0 0 3 1000")
        wait_until_exact(machine, worker)
        done = host.run(TT_MEM_INSIDE, "dump", "--json", mounts=shared)
        assert done.returncode == 0, done
        (process,) = json.loads(done.stdout)["processes"]
        assert process["pid"] == worker.pid  # as the server sees it
        assert totals_in(process) == worker.truth


def test_root_of_a_container_is_a_user_outside(host: Host, machine: Server) -> None:
    """Rootless Docker and Podman: root inside is somebody outside, with that one's rights."""
    if reason := why_no_namespaces(AS_ROOT_OF_ITS_OWN, NOBODY):
        pytest.skip(reason)
    host.folder.chmod(0o777)  # for the root folders of containers
    shared = {host.sockets: "/run/tt-mem"}
    with (
        Tracked(machine) as others,
        Contained(host, *TRACKED, mounts=shared, more=AS_ROOT_OF_ITS_OWN, uid=NOBODY) as worker,
    ):
        others.do("alloc 0 0 1 10")
        worker.do("alloc 0 0 3 1000")
        wait_until_exact(machine, worker)
        wait_until_exact(machine, others)
        clients = {client["pid"]: client for client in machine.status()["clients"]}
        assert clients[worker.pid]["uid"] == NOBODY
        assert clients[others.pid]["uid"] == os.geteuid()


def test_a_server_in_a_container_and_a_program_outside(host: Host) -> None:
    """Its pid does not exist in there: totals are exact, and it ends with its connection."""
    serve = (TT_MEM_INSIDE, "serve", "--no-legacy", "--socket", "/run/tt-mem/tt-mem.sock")
    with Contained(host, *serve, mounts={host.sockets: "/run/tt-mem"}) as inside:
        assert child_of(inside.process.pid)
        outside = Server(host.folder, "outside")  # for asking it
        outside.socket = str(host.sockets / "tt-mem.sock")
        wait_for(lambda: os.path.exists(outside.socket), "the server to listen")
        with Tracked(outside) as worker:
            worker.do("alloc 0 0 3 1000")
            wait_for(lambda: totals_in(only_row(outside)) == worker.truth, "exactness")
            (client,) = outside.check()["clients"]
            assert client["pid"] == 0 and client["command"] == ""
            worker.kill()
            wait_for(lambda: outside.status()["processes"] == 0, "the end to be noticed")


def test_run_in_a_container(host: Host) -> None:
    """docker run -v /opt/tt-mem:/opt/tt-mem IMAGE /opt/tt-mem/tt-mem run COMMAND"""
    work = f"cd /tmp; printf 'alloc 0 0 3 1000\\n' | {TT_MEM_INSIDE} run --no-record {WORKER}"
    done = host.run("sh", "-c", work)
    assert done.returncode == 0, done
    assert json.loads(done.stdout)["truth"]
    assert "tracked on 1 device · 3 allocations, 0 frees, nothing lost" in done.stderr
    assert "3 allocations remain" in done.stderr


def test_the_server_of_a_run_is_found_in_its_container(host: Host) -> None:
    """docker exec CONTAINER /opt/tt-mem/tt-mem dump"""
    elsewhere = f"env -u TTMEM_SOCKET -u LD_PRELOAD {TT_MEM_INSIDE} dump --json"
    ask = f"until {elsewhere} | grep -q remaining.:3,; do :; done; echo found >&2"
    work = f"{TT_MEM_INSIDE} run --no-record sh -c '(echo alloc 0 0 3 1000; {ask}) | {WORKER}'"
    done = host.run("sh", "-c", work)
    assert done.returncode == 0 and "found\n" in done.stderr, done


def test_run_in_a_container_reports_to_a_server_outside(host: Host, machine: Server) -> None:
    run = f"{TT_MEM_INSIDE} run --connect /run/tt-mem/tt-mem.sock {WORKER}"
    work = f"cd /tmp; printf 'alloc 0 0 3 1000\\nexit 7\\n' | {run}"
    done = host.run("sh", "-c", work, mounts={host.sockets: "/run/tt-mem"})
    assert done.returncode == 7, done
    assert machine.status()["allocs"] == 3 and machine.status()["processes_ended"] == 1
    assert "by the server at /run/tt-mem/tt-mem.sock" in done.stderr, done
    assert "3 allocations remained, 2.9 KiB" in done.stderr, done
    assert "still running" not in done.stderr, done


def test_run_in_a_container_sums_up_its_own_processes_alone(host: Host, machine: Server) -> None:
    """To a server outside others report too, and their numbers may be those of ours in here."""
    run = f"{TT_MEM_INSIDE} run --connect /run/tt-mem/tt-mem.sock"
    two = f"printf 'alloc 0 0 3 1000\\n' | {WORKER}; printf 'alloc 1 0 2 500\\n' | {WORKER}; exit 3"
    shared = {host.sockets: "/run/tt-mem"}
    with Tracked(machine) as others, Contained(host, *TRACKED, mounts=shared) as neighbour:
        others.do("alloc 0 0 7 10")
        neighbour.do("alloc 0 0 9 10")
        wait_until_exact(machine, others)
        wait_until_exact(machine, neighbour)
        done = host.run("sh", "-c", f'cd /tmp; {run} sh -c "$1"', "sh", two, mounts=shared)
        assert done.returncode == 3, done
        assert "5 allocations remained, 3.9 KiB" in done.stderr, done
        rows = done.stderr.split("2 processes")[1].splitlines()
        assert rows[0].split() == ["remain", "requested"], done  # how many there were is not known
        assert [row.split()[-3] for row in rows[1:3]] == ["3", "2"], done
        assert "still running" not in done.stderr, done


def test_a_process_that_outlives_a_run_in_a_container(host: Host, machine: Server) -> None:
    """It has left the tree of its run, and says whose it is all the same."""
    run = f"{TT_MEM_INSIDE} run --connect /run/tt-mem/tt-mem.sock"
    left = f"(echo alloc 0 0 3 1000; sleep 100) | setsid {WORKER} > /tmp/said & "
    wait = "until grep -q truth /tmp/said; do :; done"
    work = f"{run} sh -c '{left} {wait}'; echo ended"
    done = host.run("sh", "-c", work, mounts={host.sockets: "/run/tt-mem"})
    assert done.stdout == "ended\n", done
    assert "still running, and tracked by the server: " in done.stderr, done


def test_run_outside_and_its_server_in_a_container(host: Host) -> None:
    """No process of ours has a number in there."""
    serve = (TT_MEM_INSIDE, "serve", "--no-legacy", "--socket", "/run/tt-mem/tt-mem.sock")
    socket = str(host.sockets / "tt-mem.sock")
    with Contained(host, *serve, mounts={host.sockets: "/run/tt-mem"}) as inside:
        assert child_of(inside.process.pid)
        wait_for(lambda: os.path.exists(socket), "the server to listen")
        work = "(echo alloc 0 0 3 1000; echo exit 4) | $WORKER"
        env: dict[str, str | None] = {**WORKER_OPTIONS, "WORKER": TRACKED_WORKER}
        place = Place(host.sockets)
        result = place.run("--connect", socket, "sh", "-c", f"{work}; {work}", env=env)
        assert result.status == 4, result
        assert "6 allocations remained" in result.err and "2 processes" in result.err, result


def test_files_of_a_container_are_reached_through_its_root(host: Host, machine: Server) -> None:
    """What a native frame is in has a path that means nothing, or something else, outside."""
    assert not os.path.exists(WORKER)
    with Contained(host, *TRACKED, mounts={host.sockets: "/run/tt-mem"}) as worker:
        worker.do("truth")
        assert os.path.samefile(f"/proc/{worker.pid}/root{WORKER}", host.bin / "worker")
