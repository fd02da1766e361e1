# SPDX-License-Identifier: Apache-2.0
"""A decode loop that leaks: each step's keys stay in a list that nobody empties.

    tt-mem run --holders python leaky.py

names the line, how fast it grows, and the list. fixed.py is the same without the leak.
"""

import ttnn

try:
    import ttmem  # what is said with it is shown; without it everything else is
except ImportError:
    ttmem = None

LAYERS, STEPS = 4, 50
HISTORY = []  # the mistake: it was meant for debugging


def tensor(device, *shape):
    return ttnn.zeros(shape, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)


def load_weights(device):
    weights = [tensor(device, 128, 128) for _ in range(LAYERS)]
    if ttmem:
        for number, weight in enumerate(weights):
            ttmem.track_buffer(weight, name=f"layer_{number}", context="weights")
    return weights


def decode_step(device, weights):
    x = tensor(device, 32, 128)
    for weight in weights:
        x = ttnn.matmul(x, weight)
        HISTORY.append(ttnn.add(x, x))
    return x


def main():
    device = ttnn.open_device(device_id=0)
    weights = load_weights(device)
    for _ in range(STEPS):
        decode_step(device, weights)
    ttnn.close_device(device)


if __name__ == "__main__":
    main()
