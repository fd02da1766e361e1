# SPDX-License-Identifier: Apache-2.0
"""leaky.py without its leak: what a step makes goes with the step.

tt-mem run --holders --fail-on-leak python fixed.py
"""

import leaky
import ttnn


def decode_step(device, weights):
    x = leaky.tensor(device, 32, 128)
    for weight in weights:
        x = ttnn.matmul(x, weight)
        scores = ttnn.add(x, x)
        ttnn.deallocate(scores)  # as soon as it is not needed, instead of whenever it goes
    return x


def main():
    device = ttnn.open_device(device_id=0)
    weights = leaky.load_weights(device)
    for _ in range(leaky.STEPS):
        decode_step(device, weights)
    del weights
    ttnn.close_device(device)


if __name__ == "__main__":
    main()
