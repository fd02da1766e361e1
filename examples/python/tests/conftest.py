# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import pytest
import ttnn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


@pytest.fixture(scope="session")
def device():
    opened = ttnn.open_device(device_id=0)
    yield opened
    ttnn.close_device(opened)


@pytest.fixture(scope="session")
def weights(device):
    import leaky

    return leaky.load_weights(device)
