# SPDX-License-Identifier: Apache-2.0
"""The tests with ttnn use the servers and commands of the integration tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "integration"))
pytest.register_assert_rewrite("basics", "commands", "servers", "support", "tracked", "programs")

from programs import Program, hooked  # noqa: E402
from skips import pytest_sessionfinish  # noqa: E402, F401
from support import folder, make_server, server  # noqa: E402, F401


@pytest.fixture
def start(folder: Path, server: Any) -> Iterator[Callable[..., Program]]:  # noqa: F811
    """Starts programs that are tracked by 'server'; those that run at the end are killed."""
    programs: list[Program] = []

    def start_one(*args: Any, **options: Any) -> Program:
        env = options.pop("env", {})
        place = folder / f"program-{len(programs)}"
        place.mkdir()
        programs.append(Program(place, *args, env=hooked(server, **env), **options))
        return programs[-1]

    yield start_one
    for program in programs:
        program.__exit__()
