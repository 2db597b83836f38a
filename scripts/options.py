"""The prices of examples/options by NumPy, whose figures stand beside it:

python3 scripts/options.py --paths 10000000
"""

import argparse
import math
import time

import numpy as np

SHARE, STRIKE, RATE, VOLATILITY, YEARS, DATES = 100, 105, 0.03, 0.25, 1, 12


def prices(rng, paths, dtype):
    step = YEARS / DATES
    drift = dtype((RATE - VOLATILITY**2 / 2) * step)
    spread = dtype(VOLATILITY * math.sqrt(step))
    x = np.full(paths, math.log(SHARE), dtype)
    total = np.zeros(paths, dtype)
    for _ in range(DATES):
        z = rng.standard_normal(paths, dtype)
        z *= spread
        z += drift
        x += z
        price = np.exp(x)
        total += price
    for pays in (price, total / DATES):
        pays = np.maximum(pays - STRIKE, 0) * dtype(math.exp(-RATE * YEARS))
        yield pays.mean(dtype=np.float64), pays.std(dtype=np.float64) / math.sqrt(paths)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--paths", type=int, default=10_000_000)
    p.add_argument("--rounds", type=int, default=10)
    p.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    o = p.parse_args()
    rng = np.random.default_rng(1)
    took, processor = [], []
    for _ in range(o.rounds + 1):
        at, used = time.perf_counter(), time.process_time()
        result = list(prices(rng, o.paths, getattr(np, o.dtype)))
        took.append(time.perf_counter() - at)
        processor.append(time.process_time() - used)
    for name, (mean, err) in zip(["European", "Asian"], result):
        print(f"{name} {mean:.4f} ± {err:.4f}")
    print(f"{np.median(took[1:]):.3f} s, processor {np.median(processor[1:]):.3f} s (medians of {o.rounds})")


if __name__ == "__main__":
    main()
