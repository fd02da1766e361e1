# SPDX-License-Identifier: Apache-2.0
"""A file of tests of which none could run is skipped (77), and says why."""

from __future__ import annotations

import pytest


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", [])
    if not skipped or any(reporter.stats.get(kind) for kind in ("passed", "failed", "error")):
        return
    for reason in sorted({report.longrepr[2].removeprefix("Skipped: ") for report in skipped}):
        print(f"\nskipped: {reason}")
    session.exitstatus = 77
