# SPDX-License-Identifier: Apache-2.0
"""What the integration and stress tests share, under one name.

Server        a real `tt-mem serve` on private sockets, watched for sanitizer reports
Original      a stand-in of the original client and monitor, in each of its three layouts
Native        a client of the native protocol, byte by byte
Worker        a client in a process of its own: can be killed, can be another user
Run           a `tt-mem run` in a runtime folder of its own
Tracked       a program on libttmem that keeps books of its own
Tree          a folder that stands in for a machine with cards
Library       a program that calls each function of ttmem.h as it is told
run, run_json our own commands

Nothing here waits for time: waits are for events, or for a condition that is asked again and again
until a limit that is only there to end a test that hangs.
"""

from basics import *  # noqa: F403
from commands import *  # noqa: F403
from library import *  # noqa: F403
from native import *  # noqa: F403
from original import *  # noqa: F403
from runs import *  # noqa: F403
from servers import *  # noqa: F403
from tracked import *  # noqa: F403
from trees import *  # noqa: F403
from workers import *  # noqa: F403
