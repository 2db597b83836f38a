"""Writes internal/testing/everyday/testdata: what NumPy, mpmath and PyTorch give for the everyday
operations of package millrace, one case a line. It needs numpy and mpmath; with torch
installed torch.json, images and convolutions, is written anew, else it is kept.

    python3 scripts/everyday.py          # in the repository's root

Inputs are float32 numbers of a fixed seed. Results are computed in float64 and rounded by
the test that reads them. Numbers are written as repr gives them.
"""

import json
import os
import warnings

import numpy as np

warnings.simplefilter("ignore")
FOLDER = os.path.join("internal", "everyday", "testdata")
rng = np.random.default_rng(20261126)
cases = []


def text(a):
    a = np.asarray(a)
    if a.dtype == np.bool_:
        a = a.astype(np.uint8)
    if a.dtype == np.float32:
        return " ".join(f"{x:.9g}" for x in a.reshape(-1).tolist())
    return " ".join(repr(x.item()).removesuffix(".0") for x in a.reshape(-1))


def tensor(a, dtype=None):
    a = np.asarray(a)
    return {"dtype": dtype or str(a.dtype), "shape": list(a.shape), "values": text(a)}


def case(op, args, ins, outs, tol=0.0, group=""):
    """One call: args are numbers or lists of them, tol is relative to max(1, |want|)."""
    cases.append({
        "op": op,
        "args": {k: np.asarray(v, dtype=float).reshape(-1).tolist() for k, v in args.items()},
        "in": [tensor(a) for a in ins],
        "out": [tensor(np.asarray(a, np.float32) if dt == F else a, dt) for a, dt in outs],
        "tol": tol,
        "group": group,
    })


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def ints(lo, hi, *shape):
    return rng.integers(lo, hi, shape).astype(np.int32)


F, I = "float32", "int32"


def shapes():
    for n, m in [(1, 1), (3, 3), (2, 5), (4, 0), (0, 0)]:
        case("eye", {"n": n, "m": m}, [], [(np.eye(n, m), F)])
        case("eye", {"n": n, "m": m}, [], [(np.eye(n, m), "uint8")])
    for a, b, n in [(0, 1, 5), (-3, 7.5, 11), (5, 5, 3), (1, -1, 6), (0.1, 0.7, 2), (3, 4, 1), (3, 4, 0), (-1e6, 1e6, 1001)]:
        case("linspace", {"start": a, "stop": b, "n": n}, [], [(np.linspace(np.float32(a), np.float32(b), n, dtype=np.float64), F)], tol=2.5e-7)
        case("linspace", {"start": a, "stop": b, "n": n}, [], [(np.linspace(a, b, n), "float64")], tol=5e-16)
    x = normal(4, 6)
    for sizes in [(1, 2, 3), (6,), (0, 6), (2, 2, 2)]:
        parts = np.split(x, np.cumsum(sizes)[:-1], axis=1)
        case("split", {"axis": -1, "sizes": sizes}, [x], [(p, F) for p in parts])
    for n in [1, 2, 4, 5, 9]:
        size = -(-6 // n)
        case("chunk", {"n": n, "axis": 1}, [x], [(x[:, i:i + size], F) for i in range(0, 6, size)])
    y = normal(2, 3, 4, 5)
    for i, j in [(0, 1), (-1, 0), (2, 2), (1, 3), (3, 1)]:
        case("transpose", {"i": i, "j": j}, [y], [(np.swapaxes(y, i, j), F)])
        case("moveaxis", {"i": i, "j": j}, [y], [(np.moveaxis(y, i, j), F)])
    for i, j in [(0, -1), (1, 2), (0, 0), (-2, -1)]:
        s = list(y.shape)
        a, b = i % 4, j % 4
        case("flatten", {"i": i, "j": j}, [y], [(y.reshape(s[:a] + [-1] + s[b + 1:]), F)])
    for n, k in [(3, 0), (3, 1), (3, -2), (1, 0), (0, 0), (0, 2), (1, -3)]:
        v = normal(n)
        case("diag", {"k": k}, [v], [(np.diag(v, k), F)])
        w = ints(-5, 5, n)
        case("diag", {"k": k}, [w], [(np.diag(w, k), I)])
    for shape in [(3, 3), (2, 5), (5, 2), (1, 1), (0, 3)]:
        m = normal(*shape)
        for k in [0, 1, -1, 4, -4, 9]:
            case("diag", {"k": k}, [m], [(np.diag(m, k) if abs(k) < 9 else np.zeros(0), F)])
        case("trace", {}, [m], [(np.trace(m.astype(np.float64)), F)], tol=1e-6)
    case("diag", {"k": 1}, [y], [(np.diagonal(y, 1, -2, -1), F)])
    case("trace", {}, [y], [(np.trace(y.astype(np.float64), 0, -2, -1), F)], tol=1e-6)
    b = rng.integers(0, 2, 4).astype(bool)
    case("diag", {"k": 1}, [b], [(np.diag(b, 1), "bool")])
    u, v = normal(4), normal(6)
    case("outer", {}, [u, v], [(np.outer(u, v).astype(np.float32), F)])
    u, v = ints(-9, 9, 3), ints(-9, 9, 1)
    case("outer", {}, [u, v], [(np.outer(u, v), I)])


def functions():
    """Correctly rounded results in float64, by mpmath, in a file of their own."""
    from mpmath import mp, mpf
    mp.prec = 1500
    rows = []

    def add(name, f, xs):
        for x in sorted({float(x) for x in xs}):
            rows.append(f"{name} {x.hex()} {float(f(mpf(x))).hex()}")

    def spread(lo, hi, n):
        return [float(np.ldexp(1 + rng.random(), int(e))) for e in rng.integers(lo, hi, n)]

    one = [1 + np.ldexp(rng.random(), int(e)) for e in rng.integers(-52, 1, 150)]
    below = [1 - np.ldexp(rng.random(), int(e)) for e in rng.integers(-53, 0, 150)]
    tens = [10.0 ** k for k in range(-40, 41)]
    large = [2.0 ** 53, 2.0 ** 54, 2.0 ** 55, 1e300, 1.7e308, 3e154, 1e16, 2.0 ** 27]
    tiny = [5e-324, 1e-310, 2.3e-308, 1e-20, 1e-8, 2.0 ** -27, 2.0 ** -53]
    both = spread(-60, 60, 200) + spread(-3, 8, 200) + tiny
    add("log10", mp.log10, spread(-1000, 1000, 200) + spread(-3, 3, 200) + one + below + tens + large + tiny)
    add("asinh", mp.asinh, [s * x for s in (1, -1) for x in both + large])
    add("acosh", mp.acosh, one + [1.0] + [1 + x for x in spread(-10, 10, 200)] + spread(1, 1000, 150) + large)
    add("atanh", mp.atanh, [s * x for s in (1, -1) for x in [min(x, 1 / (1 + x)) for x in both] + below if x < 1])
    with open(os.path.join(FOLDER, "functions.txt"), "w") as f:
        f.write("\n".join(rows) + "\n")

    for name, f, xs in [("log10", np.log10, np.exp(normal(40) * 20)), ("asinh", np.arcsinh, normal(40) * 50), ("acosh", np.arccosh, 1 + np.abs(normal(40)) * 9), ("atanh", np.arctanh, np.tanh(normal(40)))]:
        edge = np.array([0.0, -0.0, 1, -1, 0.5, 2, 1000, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-30], dtype=np.float32)
        x = np.concatenate([xs.astype(np.float32), edge])
        case(name, {}, [x], [(f(x.astype(np.float64)), F)], tol=5e-7)


def order():
    x = normal(3, 4, 5)
    zeros = np.where(rng.random((3, 4, 5)) < 0.6, 0, x).astype(np.float32)
    for a in [zeros, zeros > 0, np.zeros((2, 3), np.float32), np.array([np.nan, 0, -0.0, 1], np.float32), np.zeros((0, 3), np.float32), ints(-1, 2, 40), zeros[0, 0, 0]]:
        case("nonzero", {}, [a], [(np.argwhere(np.atleast_1d(a) if np.ndim(a) == 0 else a)[:, :np.ndim(a)], I)])
    for m in [x > 0, x[:, :, 0] > 0, x[:, 0, 0] > 9, np.ones((3, 4, 5), bool)]:
        case("maskedselect", {}, [x, m], [(x[m], F)])
    v, m = ints(-9, 9, 6), np.array([1, 0, 1, 1, 0, 0], bool)
    case("maskedselect", {}, [v, m], [(v[m], I)])

    repeated = np.array([3, 1, np.nan, 1, -2, np.inf, np.nan, 3, -np.inf, 0.5, 3, np.nan], np.float32).reshape(3, 4)
    for a in [repeated, ints(-5, 5, 4, 6), rng.integers(0, 2, 9).astype(bool), np.zeros(0, np.float32), np.float32([7]), rng.integers(0, 9, 30).astype(np.uint8), np.ones((2, 2), np.float32)]:
        u, inv, n = np.unique(a, return_inverse=True, return_counts=True)
        case("unique", {}, [a], [(u, None)])
        case("uniqueall", {}, [a], [(u, None), (inv.reshape(a.shape), I), (n, I)])

    sorted_ = np.sort(np.concatenate([np.round(normal(30), 1), [np.nan, np.inf, -np.inf, np.nan]]).astype(np.float32))
    values = np.concatenate([sorted_[::3], normal(14), [np.nan, np.inf, -np.inf, 0]]).astype(np.float32).reshape(2, -1)
    for a, b in [(sorted_, values), (sorted_[:1], values), (sorted_[:0], values), (sorted_, values[0, 0]), (np.sort(ints(0, 20, 17)), ints(-3, 23, 25)), (np.arange(64, dtype=np.int32), ints(-3, 70, 40)), (np.arange(63, dtype=np.float32), np.arange(-1, 65, dtype=np.float32))]:
        for right in (0, 1):
            case("searchsorted", {"right": right}, [a, b], [(np.searchsorted(a, b, "right" if right else "left"), I)])

    for a, n in [(ints(0, 9, 50), 0), (ints(0, 9, 5, 5), 20), (np.zeros(0, np.int32), 3), (np.zeros(0, np.int32), 0), (rng.integers(0, 7, 300).astype(np.uint8), 0), (rng.integers(0, 7, 30).astype(np.int8), 2)]:
        case("bincount", {"n": n}, [a], [(np.bincount(a.reshape(-1), minlength=n), I)])
    for a, bins, lo, hi in [(normal(500), 10, 0, 0), (normal(50, 4), 7, -1, 1), (np.arange(0, 11, dtype=np.float32), 10, 0, 10), (np.zeros(0, np.float32), 4, 0, 0), (np.float32([2, 2, 2]), 3, 0, 0), (normal(20), 1, -0.5, 0.5), (normal(20), 5, 3, 3), (normal(200), 64, -2, 2)]:
        kw = {} if lo == hi == 0 else {"range": (lo, hi)}
        n, e = np.histogram(a.astype(np.float64), bins, **kw)
        # NumPy takes the edges of float64; no element of these is between both roundings.
        case("histogram", {"bins": bins, "lo": lo, "hi": hi}, [a], [(n, I), (e, F)], tol=5e-7)
    a = np.float32([np.nan, -5, 0.5, 1, 2, 9, np.inf])
    case("histogram", {"bins": 2, "lo": 0, "hi": 2}, [a], [(np.array([1, 2]), I), (np.array([0, 1, 2]), F)])

    odd = normal(5, 7)
    hole = odd.copy()
    hole[1, 2] = np.nan
    ends = np.float32([[np.inf, 1, 2, 3], [-np.inf, 1, 2, np.inf], [1, 1, 1, 1]])
    for a in [odd, normal(4, 6), hole, ends, np.float32([[3]])]:
        for axes in [(0,), (1,), (), (0, 1)]:
            w = a.astype(np.float64)
            case("median", {"axes": axes}, [a], [(np.median(w, axis=axes or None), F)], tol=1e-6)
            if a is ends:
                continue  # NumPy subtracts infinities
            for q in [0, 0.25, 0.5, 0.9, 1, 1 / 3]:
                case("quantile", {"q": q, "axes": axes}, [a], [(np.quantile(w, q, axis=axes or None), F)], tol=1e-6)
    case("median", {"axes": (1, -1)}, [x], [(np.median(x.astype(np.float64), axis=(1, 2)), F)], tol=1e-6)

    bools = x > 0
    small = rng.integers(0, 256, (4, 50)).astype(np.uint8)
    for a, axes, dt in [(bools, (0,), I), (bools, (), F), (small, (1,), I), (small, (), "uint32"), (rng.integers(-128, 128, 200).astype(np.int8), (), I), (small, (0, 1), F)]:
        case("sumas", {"axes": axes}, [a], [(a.astype(np.int64).sum(axis=axes or None), dt)])

    t = normal(4, 5)
    for k in [np.array([0, -1, 2, -4], np.int32), np.array([[3, 0], [1, 1]], np.uint8), np.array([3, -4], np.int8), np.array([2, 0], np.uint16), np.array([1, 3], np.uint32), np.array([-1, 2], np.int16)]:
        case("takefromend", {"axis": 0}, [t, k], [(np.take(t, k.astype(np.int64), 0), F)])
    k = np.array([[0, -1, -5, 2, 4]], np.int32)
    case("takealongfromend", {"axis": 1}, [t, k], [(np.take_along_axis(t, np.repeat(k, 4, 0), 1), F)])
    case("addfromend", {}, [np.float32([1, 2, 3]), np.array([-1, 0, -1], np.int8), np.float32([10, 20, 30])], [(np.float32([21, 2, 43]), F)])


def philox(counter, key):
    """The block of Philox4x32-10 (Salmon, Moraes, Dror and Shaw, 2011)."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, (p0 >> 32) ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def splitmix64(x):
    m = 2**64 - 1
    x = (x + 0x9E3779B97F4A7C15) & m
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & m
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & m
    return x ^ x >> 31


def random():
    """Draws by the streams that the documentation describes, written down once more here."""
    assert philox([0] * 4, [0] * 2)[0] == 0x6627E8D5

    def word(seed, i):
        s = splitmix64(seed)
        return philox([i & 0xFFFFFFFF, 0, s >> 32, 0], [s & 0xFFFFFFFF, 0])[0]

    for dt, seed, lo, hi, shape in [("int32", 1, 0, 10, (4, 5)), ("int32", 2, -5, 6, (30,)), ("int32", 3, -2**31, 2**31 - 1, (9,)), ("uint8", 4, 0, 256, (50,)), ("int8", 5, -128, 128, (50,)), ("uint32", 6, 0, 2**32, (9,)), ("uint32", 6, 1, 2**32, (9,)), ("int64", 7, -7, 2**20, (9,)), ("int16", 8, 3, 4, (2,)), ("uint16", 9, 60000, 65536, (8,)), ("int32", 10, 0, 3, (0, 2))]:
        n = int(np.prod(shape))
        draws = [lo + ((word(seed, 2 * i) << 32 | word(seed, 2 * i + 1)) * (hi - lo) >> 64) for i in range(n)]
        if hi - lo == 2**32:
            draws = [lo + word(seed, 2 * i) for i in range(n)]
        case("integers", {"seed": seed, "lo": lo, "hi": hi, "shape": shape}, [], [(np.array(draws, dtype=np.int64).reshape(shape), dt)])
    for dt, seed, lo, hi in [("int64", 7, -2**40, 2**41), ("int64", 8, 0, 2**33)]:
        key = splitmix64(seed)

        def wide(i):
            b = philox([i, 0, 0, 0], [key & 0xFFFFFFFF, key >> 32])
            return b[1] << 32 | b[0]

        draws = [lo + ((wide(2 * i) << 64 | wide(2 * i + 1)) * (hi - lo) >> 128) for i in range(12)]
        case("integers", {"seed": seed, "lo": lo, "hi": hi, "shape": (12,)}, [], [(np.array(draws), dt)])
    for seed, n in [(1, 10), (2, 1), (3, 0), (4, 100)]:
        keys = [word(seed, 2 * i + 1) << 32 | word(seed, 2 * i) for i in range(n)]
        case("permutation", {"seed": seed, "n": n}, [], [(np.argsort(np.array(keys, dtype=np.uint64), kind="stable"), I)])


def transforms():
    for n in [1, 2, 3, 16, 60, 67, 127, 131, 360]:
        rows = 2
        re, im = normal(rows, n), normal(rows, n)
        z = re.astype(np.float64) + 1j * im
        tol = 1.2e-7 * 1.5 * (1 + np.log2(n)) * float(np.linalg.norm(z))
        f, g = np.fft.fft(z), np.fft.ifft(z)
        case("fft", {"axis": 1}, [re, im], [(f.real, F), (f.imag, F)], tol=tol)
        case("ifft", {"axis": -1}, [re, im], [(g.real, F), (g.imag, F)], tol=tol / n)
        h = np.fft.rfft(re.astype(np.float64))
        case("rfft", {"axis": 1}, [re], [(h.real, F), (h.imag, F)], tol=tol)
        a, b = h.real.astype(np.float32), h.imag.astype(np.float32)
        case("irfft", {"n": n, "axis": 1}, [a, b], [(np.fft.irfft(a.astype(np.float64) + 1j * b, n), F)], tol=tol / n * 8)
    re, im = normal(3, 10, 2), normal(3, 10, 2)
    f = np.fft.fft(re.astype(np.float64) + 1j * im, axis=1)
    case("fft", {"axis": 1}, [re, im], [(f.real, F), (f.imag, F)], tol=2e-6)
    f = np.fft.rfft(re.astype(np.float64), axis=0)
    case("rfft", {"axis": 0}, [re], [(f.real, F), (f.imag, F)], tol=2e-6)
    # DC and Nyquist with imaginary parts, which are not read.
    a, b = normal(2, 5), normal(2, 5)
    case("irfft", {"n": 8, "axis": 1}, [a, b], [(np.fft.irfft(a.astype(np.float64) + 1j * b, 8), F)], tol=1e-6)
    case("irfft", {"n": 9, "axis": 1}, [a, b], [(np.fft.irfft(a.astype(np.float64) + 1j * b, 9), F)], tol=1e-6)

    def einsum(spec, *shapes):
        xs = [normal(*s) for s in shapes]
        case("einsum " + spec, {}, xs, [(np.einsum(spec, *[x.astype(np.float64) for x in xs]), F)], tol=3e-6)

    einsum("ij,jk,kl->il", (3, 4), (4, 5), (5, 2))
    einsum("ab,bc,cd,de,ef->af", (2, 6), (6, 3), (3, 5), (5, 4), (4, 2))
    einsum("i,j,k->ijk", (2,), (3,), (4,))
    einsum("i,i,i->", (7,), (7,), (7,))
    einsum("i,i,i->i", (7,), (7,), (7,))
    einsum("bik,bkj,bj->bi", (2, 3, 4), (2, 4, 5), (2, 5))
    einsum("ii,ij,jj->j", (3, 3), (3, 4), (4, 4))
    einsum("...i,ij,jk->...k", (2, 3, 4), (4, 5), (5, 2))
    einsum("ij,kl,m->m", (2, 3), (3, 2), (5,))
    einsum("abc,bd,ce,af->def", (2, 3, 4), (3, 5), (4, 2), (2, 3))
    einsum("ij,j,jk", (3, 4), (4,), (4, 2))
    einsum("pqrs,pi,qj,rk,sl->ijkl", (2, 3, 2, 3), (2, 3), (3, 2), (2, 2), (3, 2))


def several():
    """FFTs along several axes, and reductions that keep the axes."""
    x = normal(3, 4, 5)
    hole = x.copy()
    hole[1, 2, 3] = np.nan
    for a in [x, hole]:
        w = a.astype(np.float64)
        for axes in [(0,), (1, -1), (), (0, 1, 2)]:
            kw = {"axis": axes or None, "keepdims": True}
            case("mediankeep", {"axes": axes}, [a], [(np.median(w, **kw), F)], tol=1e-6)
            case("quantilekeep", {"q": 0.3, "axes": axes}, [a], [(np.quantile(w, 0.3, **kw), F)], tol=1e-6)
    for shape, axes in [((4, 6), ()), ((3, 8, 5), (-2, -1)), ((3, 8, 5), (2, 0)), ((2, 1, 67), (0, 2)), ((5, 4, 3), (0, 1, 2)), ((7,), (0,)), ((6, 6), (1, 0))]:
        re, im = normal(*shape), normal(*shape)
        z = re.astype(np.float64) + 1j * im
        n = np.prod([shape[a] for a in axes or range(len(shape))])
        tol = 1.2e-7 * 3 * (1 + np.log2(n)) * float(np.linalg.norm(z))
        f, g = np.fft.fftn(z, axes=axes or None), np.fft.ifftn(z, axes=axes or None)
        case("fftn", {"axes": axes}, [re, im], [(f.real, F), (f.imag, F)], tol=tol)
        case("ifftn", {"axes": axes}, [re, im], [(g.real, F), (g.imag, F)], tol=tol / n)
        h = np.fft.rfftn(re.astype(np.float64), axes=axes or None)
        case("rfftn", {"axes": axes}, [re], [(h.real, F), (h.imag, F)], tol=tol)
        last = shape[(axes or (-1,))[-1]]
        a, b = normal(*h.shape), normal(*h.shape)
        s = [shape[k] for k in axes] if axes else list(shape)
        back = np.fft.irfftn(a.astype(np.float64) + 1j * b, s=s, axes=axes or range(len(shape)))
        case("irfftn", {"n": last, "axes": axes}, [a, b], [(back, F)], tol=tol / n * 8)


def images():
    """In testdata/torch.json: PyTorch's, where it is installed."""
    import torch
    from torch.nn import functional as T

    def double(*xs):
        return [torch.from_numpy(x).double() for x in xs]

    for c, o, x, k, stride, dilation, pad, groups in [
        (3, 4, (7,), (3,), (1,), (1,), (0,), 1), (4, 6, (9,), (3,), (2,), (2,), (2,), 2),
        (2, 3, (6, 5), (3, 2), (1, 1), (1, 1), (1, 0), 1), (4, 4, (7, 8), (3, 3), (2, 1), (1, 2), (1, 2), 4),
        (2, 3, (5, 6, 4), (2, 3, 2), (1, 1, 1), (1, 1, 1), (0, 0, 0), 1), (4, 6, (6, 5, 7), (3, 2, 3), (2, 1, 2), (2, 1, 1), (2, 1, 1), 2), (2, 2, (3, 3, 3), (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    ]:
        a, b = normal(2, c, *x), normal(o, c // groups, *k)
        f = [T.conv1d, T.conv2d, T.conv3d][len(x) - 1]
        y = f(*double(a, b), None, stride, pad, dilation, groups)
        case(f"conv{len(x)}d", {"stride": stride, "dilation": dilation, "pad": pad, "groups": groups}, [a, b], [(y.numpy(), F)], tol=2e-6)
    for shape, size in [((1, 2, 4, 5), (8, 10)), ((2, 1, 5, 7), (3, 4)), ((1, 1, 4, 4), (9, 3)), ((1, 1, 1, 3), (4, 1)), ((1, 2, 6), (11,)), ((1, 1, 3, 5), (3, 2))]:
        a = normal(*shape)
        for mode, name in enumerate(["nearest", "bilinear" if len(size) == 2 else "linear", "bicubic"]):
            for align in (False, True):
                if mode == 0 and align or mode == 2 and len(size) == 1:
                    continue
                y = T.interpolate(double(a)[0], size, mode=name, align_corners=None if mode == 0 else align)
                case("resize", {"mode": mode, "align": align, "size": size}, [a], [(y.numpy(), F)], tol=2e-6)
    # Not to one column, of which PyTorch 2.15 makes all rows the first one.
    for shape, size in [((1, 2, 9, 12), (4, 5)), ((2, 1, 16, 7), (2, 7)), ((1, 1, 40, 3), (3, 2)), ((1, 1, 5, 5), (1, 9)), ((1, 2, 3, 4), (7, 11)), ((1, 1, 33, 21), (4, 10))]:
        a = normal(*shape)
        for mode, name in enumerate(["bilinear", "bicubic"]):
            y = T.interpolate(double(a)[0], size, mode=name, antialias=True)
            case("resize", {"mode": mode + 1, "align": 0, "antialias": 1, "size": size}, [a], [(y.numpy(), F)], tol=2e-6)
    a = normal(1, 1, 9, 12)
    a[0, 0, 0, 0], a[0, 0, 8, 11] = np.inf, np.nan  # reach no further than the filter does
    y = T.interpolate(double(a)[0], (4, 5), mode="bilinear", antialias=True)
    case("resize", {"mode": 1, "align": 0, "antialias": 1, "size": (4, 5)}, [a], [(y.numpy(), F)], tol=2e-6)


def formats():
    """What NumPy prints, by verbs that pad to the longest and with print options, in
    testdata/formats.txt: a line "verb or options dtype shape values", then the text."""
    blocks = []

    def block(head, a, printed):
        # Digits of float64: that is what these files are read as.
        values = "arange" if a.size > 300 else text(a.astype(np.float64) if a.dtype == np.float32 else a)
        blocks.append(f"{head} {a.dtype} {','.join(map(str, a.shape)) or '-'} {values}\n----\n{printed}")

    def verb(spec, a, python=None):
        python = python or spec
        cells = [python % x for x in a.reshape(-1).tolist()]
        shown = [python % x for x in (np.concatenate([a[:3], a[-3:]]) if a.size > 1000 else a).reshape(-1).tolist()]
        width = max(len(c) for c in (shown if a.size > 1000 else cells))
        pad = (lambda x: (python % x).ljust(width)) if "-" in spec else (lambda x: (python % x).rjust(width))
        block(spec, a, np.array2string(a, formatter={"all": pad}))

    x = normal(3, 4)
    verb("%.3f", x)
    verb("%8.2e", x * 1e3)
    verb("%+.1f", x)
    verb("%-9.2f", x)
    verb("%09.3f", x)
    verb("%g", np.array([1.5, 100000, 0.0625, -2], dtype=np.float32), "%.10g")
    verb("%.4f", normal(2, 3, 2).astype(np.float64))
    verb("%.0f", normal(30) * 100)
    verb("%.2f", np.array(3.14159, dtype=np.float32))
    verb("%d", ints(-1000, 1000, 3, 5))
    verb("%6d", ints(-10, 10, 4))
    verb("%x", rng.integers(0, 256, (2, 4)).astype(np.uint8))
    verb("%.1f", np.arange(2000, dtype=np.float32))
    verb("%d", np.arange(1200).astype(np.int32).reshape(1200))

    def options(head, a, **kw):
        with np.printoptions(**kw):
            block(head, a, str(a))

    options("threshold=5", np.arange(9, dtype=np.float32), threshold=5)
    options("threshold=5,edge=1", np.arange(24, dtype=np.int32).reshape(4, 6), threshold=5, edgeitems=1)
    options("threshold=-1", np.arange(1100, dtype=np.int32), threshold=10**9)
    options("width=40", np.arange(40, dtype=np.int32), linewidth=40)
    options("precision=3", x, precision=3)
    options("precision=2", normal(2, 3).astype(np.float64) * 1e6, precision=2)
    options("precision=-1", x * 10, precision=0)
    options("edge=2", np.arange(3000, dtype=np.float32).reshape(30, 100), edgeitems=2)
    with open(os.path.join("testdata", "formats.txt"), "w") as f:
        f.write("# what NumPy prints: see scripts/everyday.py\n" + "\n====\n".join(blocks) + "\n")


GROUPS = [shapes, functions, formats, order, random, transforms, several]


def write(path, groups):
    cases.clear()
    for f in groups:
        first = len(cases)
        f()
        for c in cases[first:]:
            c["group"] = f.__name__
    with open(path, "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
    print(path, len(cases), "cases,", os.path.getsize(path), "bytes")


def main():
    global rng
    write(os.path.join(FOLDER, "numpy.json"), GROUPS)
    rng = np.random.default_rng(20261127)
    try:
        import torch
    except ImportError:
        print("without torch: torch.json stays as it is")
        return
    write(os.path.join(FOLDER, "torch.json"), [images])


if __name__ == "__main__":
    main()
