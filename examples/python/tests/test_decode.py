# SPDX-License-Identifier: Apache-2.0
"""Tests that keep leaks out: one fails, as leaky.py leaks.

pytest --ttmem
"""

import fixed
import leaky
import pytest


@pytest.mark.device_memory(leaks="0 B", peak="2 MiB", warmups=1)
def test_fixed(device, weights):
    fixed.decode_step(device, weights)


@pytest.mark.device_memory(leaks="0 B", warmups=1)
def test_leaky(device, weights):
    leaky.decode_step(device, weights)
