"""Writes linalg/testdata/numpy.json: what numpy.linalg gives for the functions of package
linalg, one case a line. It needs numpy.

    python3 scripts/linalg.py          # in the repository's root

Inputs have a fixed seed. Results are computed in float64, those of float32 inputs too.
"""

import json
import os

import numpy as np

rng = np.random.default_rng(20261128)
cases = []


def array(a):
    a = np.asarray(a)
    values = " ".join(f"{x:.9g}" if a.dtype == np.float32 else repr(x) for x in a.reshape(-1).tolist())
    return {"dtype": str(a.dtype), "shape": list(a.shape), "values": values}


def case(op, f, *ins):
    """The results of f on the operands in both dtypes, or that there are none."""
    for dtype in np.float64, np.float32:
        ops = [np.asarray(a, dtype) for a in ins]
        c = {"op": op, "in": [array(a) for a in ops]}
        try:
            out = f(*[a.astype(np.float64) for a in ops])
            out = out if isinstance(out, tuple) else (out,)
            c["out"] = [array(np.asarray(a, np.float64)) for a in out]
        except np.linalg.LinAlgError as e:
            c["error"] = str(e)
        cases.append(c)


def normal(*shape):
    return rng.standard_normal(shape)


def definite(*shape):
    a = normal(*shape)
    return a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1])


def symmetric(*shape):
    a = normal(*shape)
    return a + np.swapaxes(a, -1, -2)


SINGULAR = [np.zeros((2, 2)), np.ones((3, 3)), np.array([[1.0, 2], [2, 4]]), np.array([[[1.0, 2], [3, 4]], [[0, 0], [0, 1]]])]
SQUARE = [(1, 1), (2, 2), (5, 5), (16, 16), (3, 4, 4), (2, 1, 3, 3), (0, 0), (0, 3, 3), (3, 0, 0)]
MATRICES = [(1, 1), (4, 4), (6, 3), (3, 6), (1, 5), (5, 1), (12, 9), (9, 12), (3, 5, 2), (2, 2, 2, 4), (0, 3), (3, 0), (0, 0), (0, 3, 2), (2, 3, 0)]
SYSTEMS = [
    ((1, 1), (1,)), ((4, 4), (4,)), ((4, 4), (4, 3)), ((16, 16), (16, 2)), ((3, 4, 4), (3, 4, 2)), ((3, 4, 4), (4, 2)), ((4, 4), (3, 4, 2)),
    ((2, 1, 3, 3), (4, 3, 1)), ((3, 4, 4), (4,)), ((0, 0), (0, 2)), ((2, 2), (2, 0)), ((0, 2, 2), (2, 1)), ((5, 1, 0, 0), (2, 0, 3)), ((0, 0), (0,)),
]


def pinv(a):
    m, n = a.shape[-2:]
    return np.linalg.pinv(a, rcond=max(m, n) * np.finfo(float).eps)


def lstsq(a, b):
    """NumPy's, which takes no stacks."""
    if a.ndim == 2 and b.ndim <= 2:
        return np.linalg.lstsq(a, b, rcond=None)[0]
    return pinv(a) @ b


def main():
    la = np.linalg
    svd = lambda a: tuple(la.svd(a, full_matrices=False))
    pairs = {"qr": la.qr, "slogdet": la.slogdet, "eigh": la.eigh}
    several = {k: (lambda f: lambda a: tuple(f(a)))(f) for k, f in pairs.items()}
    for a, b in SYSTEMS:
        case("solve", la.solve, normal(*a), normal(*b))
    for shape in SQUARE:
        for op, f in ("inverse", la.inv), ("det", la.det), ("slogdet", several["slogdet"]):
            case(op, f, normal(*shape))
        case("cholesky", la.cholesky, definite(*shape))
        case("eigh", several["eigh"], symmetric(*shape))
    for shape in MATRICES:
        case("qr", several["qr"], normal(*shape))
        case("svd", svd, normal(*shape))
    for a in SINGULAR:
        case("solve", la.solve, a, np.ones(a.shape))
        case("inverse", la.inv, a)
        case("det", la.det, a)
        case("slogdet", several["slogdet"], a)
        case("cholesky", la.cholesky, a)
        case("qr", several["qr"], a)
        case("svd", svd, a)
    # Only the lower triangle is read.
    case("cholesky", la.cholesky, np.array([[4.0, 99], [2, 5]]))
    case("eigh", several["eigh"], np.array([[4.0, 99, 7], [2, 5, -3], [1, 0, 2]]))
    case("cholesky", la.cholesky, np.array([[1.0, 2], [2, 1]]))
    case("det", la.det, np.array([[1.0, np.nan], [2, 3]]))
    # Determinants beyond the range of the dtype.
    case("det", la.det, np.diag([1e30, 1e30, -1e-30, 1e20]))
    case("slogdet", several["slogdet"], np.diag([1e30, 1e30, -1e30, 1e30]))
    case("slogdet", several["slogdet"], np.diag([1e-30, 1e-30, 1e-30, 1e-30]))
    # Badly conditioned: Hilbert's matrix.
    h = 1 / (np.arange(5)[:, None] + np.arange(5) + 1)
    case("solve", la.solve, h, np.ones(5))
    case("svd", svd, h)
    case("eigh", several["eigh"], h)
    for shape in MATRICES:
        case("pseudoinverse", pinv, normal(*shape))
    for a, b in SYSTEMS[:9] + [((5, 3), (5,)), ((5, 3), (5, 2)), ((3, 5), (3, 2)), ((12, 4), (12, 1)), ((2, 5, 3), (5, 2)), ((4, 3), (2, 4, 2)), ((3, 1, 3, 4), (2, 3, 1)), ((3, 5, 2), (5,)), ((0, 3), (0, 2)), ((3, 0), (3, 2)), ((3, 0), (3,)), ((0, 3, 2), (3, 1)), ((3, 2), (3, 0)), ((0, 0), (0,))]:
        case("leastsquares", lstsq, normal(*a), normal(*b))
    low = np.arange(24.0).reshape(6, 4) % 7
    low[:, 3] = low[:, 0] - 2 * low[:, 1]
    for a in SINGULAR + [low, low.T, np.stack([low, np.eye(6, 4)])]:
        case("pseudoinverse", pinv, a)
        case("leastsquares", lstsq, a, normal(a.shape[-2], 2))
    # Values without vectors.
    svdvals, eigvalsh = lambda a: la.svd(a, compute_uv=False), la.eigvalsh
    for shape in MATRICES:
        case("singularvalues", svdvals, normal(*shape))
    for shape in SQUARE:
        case("eigvalsh", eigvalsh, symmetric(*shape))
    for a in SINGULAR + [low, low.T, np.eye(3), h]:
        case("singularvalues", svdvals, a)
    for a in [np.eye(3), np.zeros((2, 2)), np.diag([2.0, 2, -1]), np.array([[2e-130, 1e-130], [1e-130, 2e-130]]), np.array([[1, 0, 0], [0, 3e-200, 1e-200], [0, 1e-200, 3e-200]]), h, np.array([[4.0, 99, 7], [2, 5, -3], [1, 0, 2]])]:
        case("eigvalsh", eigvalsh, a)
    path = os.path.join("linalg", "testdata", "numpy.json")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
    print(path, len(cases), "cases,", os.path.getsize(path), "bytes, numpy", np.__version__)


if __name__ == "__main__":
    main()
