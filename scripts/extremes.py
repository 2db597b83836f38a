"""Writes internal/testing/everyday/testdata/statistics.json: what NumPy gives in float64, and PyTorch in
float32, for statistics of constant, huge, tiny and slowly rising float32 data. It needs numpy and torch.

    python3 scripts/extremes.py          # in the repository's root

Of a norm, nine elements from the first to the last are kept. Element i of a row is the float32 nearest to offset + step·i + scale·u, u = ((37·i mod 101) - 50) / 50.
"""

import json
import os
import warnings

import numpy as np
import torch
from torch.nn import functional as T

warnings.simplefilter("ignore")
MAX = float(np.finfo(np.float32).max)
ROWS = [
    ("1000000.125", 768, 1000000.125, 0, 0), ("0.1", 768, 0.1, 0, 0), ("3", 4096, 3, 0, 0), ("1e30", 768, 1e30, 0, 0), ("max", 768, MAX, 0, 0), ("1e-30", 768, 1e-30, 0, 0),
    ("1e-40", 768, 1e-40, 0, 0), ("0", 768, 0, 0, 0), ("40000 + i/1000", 5000, 40000, 1e-3, 0), ("1e6 + u", 768, 1e6, 0, 1), ("u", 768, 0, 0, 1),
    ("1e18·u", 768, 0, 0, 1e18), ("1e30·u", 768, 0, 0, 1e30), ("max·u", 768, 0, 0, MAX), ("1e-18·u", 768, 0, 0, 1e-18), ("1e-30·u", 768, 0, 0, 1e-30), ("1e-40·u", 768, 0, 0, 1e-40),
]


def row(n, offset, step, scale):
    i = np.arange(n)
    return (offset + step * i.astype(np.float64) + scale * ((37 * i % 101 - 50) / 50)).astype(np.float32)


def norm(x, centred, eps=1e-5):
    if centred:
        x = x - x.mean()
    # By the largest element, so that squares stay in range.
    m = np.abs(x).max()
    if m == 0:
        return x
    y = x / m
    return y / np.sqrt((y * y).mean() + eps / m / m)


def logsumexp(x):
    return x.max() + np.log(np.exp(x - x.max()).sum())


def euclid(x):
    m = np.abs(x).max()
    return m * np.sqrt(np.square(x / m).sum()) if m > 0 else 0.0


def halves(f, x):
    return np.concatenate([f(h, True) for h in np.split(x, 2)])


STATISTICS = [
    ("Sum", lambda x: x.sum(), lambda x: x.sum()), ("Mean", lambda x: x.mean(), lambda x: x.mean()),
    ("Var", lambda x: x.var(), lambda x: x.var(correction=0)), ("Std", lambda x: x.std(), lambda x: x.std(correction=0)),
    ("Norm1", lambda x: np.abs(x).sum(), lambda x: torch.linalg.vector_norm(x, 1)), ("Norm2", euclid, torch.linalg.vector_norm),
    ("LogSumExp", logsumexp, lambda x: torch.logsumexp(x, 0)), ("Median", np.median, lambda x: torch.quantile(x, 0.5)),
    ("Quantile 0.3", lambda x: np.quantile(x, 0.3), lambda x: torch.quantile(x, 0.3)),
    ("LayerNorm", lambda x: norm(x, True), lambda x: T.layer_norm(x, [len(x)])), ("RMSNorm", lambda x: norm(x, False), lambda x: T.rms_norm(x, [len(x)], eps=1e-5)),
    ("nn.BatchNorm", lambda x: norm(x, True), lambda x: T.batch_norm(x[:, None], None, None, training=True)[:, 0]),
    ("nn.GroupNorm", lambda x: halves(norm, x), lambda x: T.group_norm(x[None, :], 2)[0]),
]


def main():
    cases = []
    for name, n, offset, step, scale in ROWS:
        x = row(n, offset, step, scale)
        c = {"row": name, "n": n, "offset": offset, "step": step, "scale": scale, "numpy": {}, "torch": {}}
        places = [k * (n - 1) // 8 for k in range(9)]
        for stat, exact, t in STATISTICS:
            want = np.asarray(exact(x.astype(np.float64)))
            got = t(torch.from_numpy(x)).double().numpy()
            if want.ndim:
                want, got = want[places], got[places]
            c["numpy"][stat] = [repr(float(v)) for v in want.reshape(-1)]
            c["torch"][stat] = [repr(float(v)) for v in got.reshape(-1)]
        cases.append(c)
    path = os.path.join("internal", "everyday", "testdata", "statistics.json")
    with open(path, "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(c, ensure_ascii=False) for c in cases) + "\n]\n")
    print(path, len(cases), "rows,", os.path.getsize(path), "bytes, numpy", np.__version__, "torch", torch.__version__)


if __name__ == "__main__":
    main()
