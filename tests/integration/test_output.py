# SPDX-License-Identifier: Apache-2.0
"""What reaches the eye: colours, locales, terminals, names that other people chose."""

import json
import re
import shutil
import subprocess

import pytest
from support import (
    Command,
    Server,
    TT_MEM,
    Tail,
    end_named_client,
    run_json,
    run_ok,
    run_on_terminal,
    start_named_client,
    wait_for,
)

COMMANDS = [["dump"], ["dump", "--all"], ["monitor", "--once"], ["status", "--check"]]


@pytest.fixture
def busy(make_server):
    server = make_server().start("--board", "0=n300")
    with server.client() as client:
        for i in range(1, 30):
            client.alloc(0, i << 20, i)
        client.cb_alloc(0, 80 << 20, 1)
        client.sync()
        yield server


@pytest.mark.parametrize("command", COMMANDS)
def test_there_are_no_escape_codes_where_there_is_no_terminal(
    busy: Server, command: list[str]
) -> None:
    for env in ({}, {"TERM": "xterm-256color"}, {"COLUMNS": "200", "LINES": "5"}):
        assert "\033" not in run_ok(*command, server=busy, env=env).out


@pytest.mark.parametrize("command", ["--help", "--version", "help run", "report --help"])
def test_help_that_cannot_be_written_is_a_failure(command: str) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [TT_MEM, *command.split()], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (
        1,
        "tt-mem: cannot write the output: No space left on device\n",
    )


def test_help_fits_eighty_columns() -> None:
    names = re.findall(r"^  ([a-z]+) +[A-Z]", run_ok("--help").out, re.M)
    assert {"run", "report", "demo"} <= set(names)
    for args in (["--help"], *([name, "--help"] for name in names)):
        long = [line for line in run_ok(*args).lines if len(line) > 80]
        assert not long, (args, long)


@pytest.mark.parametrize("command", COMMANDS[:3])
def test_a_terminal_gets_colours_unless_they_are_not_wanted(
    busy: Server, command: list[str]
) -> None:
    status, text = run_on_terminal(*command, server=busy)
    assert status == 0 and "\033[" in text
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        status, text = run_on_terminal(*command, server=busy, env=env)
        assert status == 0 and "\033" not in text
    status, text = run_on_terminal(*command, server=busy, env={"NO_COLOR": ""})
    assert "\033[" in text  # empty means not set


def test_bars_turn_yellow_and_red(make_server) -> None:
    server = make_server().start("--board", "0=n300")
    gib = 1 << 30
    with server.client() as client:
        for total, colour in ((8, "32"), (9, "33"), (10, "33"), (11, "31")):
            client.alloc(0, total * gib, 1)
            client.sync()
            _, text = run_on_terminal("monitor", "--once", server=server)
            line = next(line for line in text.splitlines() if "DRAM" in line)
            assert f"\033[{colour}m" in line, line


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("locale", ["C", "POSIX", "nonsense", "en_US.ISO-8859-1"])
def test_other_locales_get_plain_ascii(busy: Server, command: list[str], locale: str) -> None:
    text = run_ok(*command, server=busy, env={"LC_ALL": locale}).out
    assert text.isascii() and len(text) > 50


def test_json_is_the_same_in_every_locale(busy: Server) -> None:
    for locale in ("C", "C.UTF-8", "de_DE.UTF-8"):
        document = run_json("monitor", "--once", server=busy, env={"LC_ALL": locale})
        assert document["devices"][0]["regions"]["CB"]["bytes"] == 80 << 20


def test_eighty_columns_are_enough(busy: Server) -> None:
    for command in (["monitor", "--once"], ["dump", "--all"]):
        text = run_ok(*command, server=busy).out
        table = [line for line in text.splitlines() if "python" not in line and "/" not in line]
        assert max(len(line) for line in table) <= 100


EVIL = "\033]0;pwned\007\033[2J\x9b31m\r\x08"


def test_control_characters_in_a_command_line_do_not_reach_the_terminal(server: Server) -> None:
    process = start_named_client(server, EVIL, "näme", "\u009b31m")
    try:
        for command in (["dump"], ["monitor", "--once"], ["status"]):
            status, text = run_on_terminal(*command, server=server, env={"NO_COLOR": "1"})
            assert status == 0
            assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]", text), text
            plain = run_ok(*command, server=server).out
            assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]", plain), plain
        for command in (["dump"], ["monitor", "--once"], ["status"]):
            out = run_ok(*command, "--json", server=server).out
            assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", out)
            names = re.findall(r"pwned", json.dumps(json.loads(out)))
            assert names
        (client,) = server.dump()["processes"]
        assert "\033]0;pwned\007" in client["command"]  # whole for programs
    finally:
        end_named_client(process)


def test_command_lines_that_are_not_utf8_give_valid_json(server: Server) -> None:
    process = start_named_client(server, b"\xff\xfe\xc3(".decode("utf-8", "surrogateescape"))
    try:
        for command in (["dump"], ["monitor", "--once"], ["status"]):
            out = run_ok(*command, "--json", server=server).out
            out.encode("utf-8")  # no surrogates: what was written is UTF-8
            json.loads(out)
        assert "\\xff" in run_ok("status", server=server).out
    finally:
        end_named_client(process)


def test_a_long_command_line_is_cut_between_characters(server: Server) -> None:
    for shift in range(4):
        process = start_named_client(server, "x" * shift + "ü€𝄞" * 200)
        try:
            (client,) = server.status()["clients"]
            assert len(client["command"].encode()) <= 255
            assert "\ufffd" not in client["command"]
            run_ok("monitor", "--once", server=server).out.encode("utf-8")
        finally:
            end_named_client(process)
        wait_for(lambda: server.status()["clients"] == [])


def test_tail_shows_its_lines_to_a_terminal_too(server: Server) -> None:
    with server.client() as client, Tail(server=server, marker=client) as tail:
        client.alloc(0, 10, 1)
        assert len(tail.lines_until_mark()) == 1


def test_a_small_window_is_enough_for_the_monitor(busy: Server) -> None:
    status, text = run_on_terminal(
        "monitor", "--once", server=busy, env={"COLUMNS": "20", "LINES": "3"}
    )
    assert status == 0 and "DRAM" in text


def test_a_device_of_which_nothing_is_known_has_no_name_in_a_short_row(server: Server) -> None:
    with server.client() as client:
        for device in range(12):
            client.alloc(device, 1 << 20, device + 1)
        client.sync()
        status, text = run_on_terminal("monitor", "--once", server=server)
    assert status == 0 and re.search(r"^ +11 +DRAM \[", text, re.M), text
    assert "unknow" not in text


def test_a_command_whose_reader_leaves_ends(busy: Server) -> None:
    with Command("monitor", "-r", "10", server=busy) as monitor:
        monitor.read_line()
        assert monitor.process.stdout
        monitor.process.stdout.close()
        assert monitor.process.wait() != 0
        monitor.process.stdout = None


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["exp"], ["export"]),
        (["export", "--format", ""], ["folded", "speedscope", "html", "debug-log", "ttmem"]),
        (["report", "--region", "L"], ["L1", "L1_SMALL"]),
        (["report", "--re"], ["--region"]),
        (["report", ""], []),  # the shell offers files
        (["report", "--suppressions", "-"], []),
    ],
)
def test_bash_completes(words: list[str], offered: list[str]) -> None:
    script = run_ok("--completion", "bash").out
    script += 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tt_mem; echo "${COMPREPLY[@]}"'
    done = subprocess.run(
        ["bash", "-c", script, "bash", "tt-mem", *words], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == offered
