"""Writes autodiff/testdata/derivatives.json: what PyTorch, JAX and exact mathematics give for
derivatives at points where a formula has 0/0, inf - inf or 0 * inf, where a square overflows
or vanishes, and where elements are equal. It needs numpy, mpmath, torch and jax.

    python3 scripts/derivatives.py          # in the repository's root

One case a line: the derivative of the sum of a function's results, each times its weight, by
one operand. Points have names that stand for a number of each dtype, such as huge. An exact
derivative of None is one that mathematics does not have, or not a single one.
"""

import json
import math
import os
import warnings

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import torch
from torch.nn import functional as T

jax.config.update("jax_enable_x64", True)
warnings.simplefilter("ignore")
mp.mp.dps = 450  # of the square of a huge number no digit is lost

NAMES = {
    "float32": {"huge": 1e20, "tiny": 1e-25, "max": float(np.finfo(np.float32).max), "denormal": 1e-40, "pi/2": float(np.float32(math.pi / 2))},
    "float64": {"huge": 1e200, "tiny": 1e-200, "max": float(np.finfo(np.float64).max), "denormal": 1e-310, "pi/2": math.pi / 2},
}
INF, NAN = math.inf, math.nan
cases = []


def number(word, dtype):
    """The number of a dtype that a word stands for."""
    w = str(word)
    sign = -1 if w.startswith("-") else 1
    value = NAMES[dtype].get(w.lstrip("-"))
    return float(np.dtype(dtype).type(float(w) if value is None else sign * value))


def text(v):
    if v is None:
        return "none"
    return repr(float(v)).removesuffix(".0")


def rounded(v, dtype):
    """An exact derivative as the nearest float, infinite where that is beyond the range."""
    if v is None:
        return None
    return float(np.dtype(dtype).type(float(v)))


def by_torch(f, ins, of, weights, dtype):
    xs = [torch.tensor(np.asarray(a, dtype)) for a in ins]
    xs[of].requires_grad_(True)
    try:
        y = f(*xs)
        (y * torch.tensor(np.asarray(weights, dtype)) if weights else y).sum().backward()
    except (RuntimeError, torch.linalg.LinAlgError):
        return "error"
    return " ".join(text(v) for v in xs[of].grad.reshape(-1).tolist())


def by_jax(f, ins, of, weights, dtype):
    xs = [jnp.asarray(np.asarray(a, dtype)) for a in ins]

    def loss(x):
        y = f(*xs[:of], x, *xs[of + 1:])
        return (y * jnp.asarray(np.asarray(weights, dtype)) if weights else y).sum()

    return " ".join(text(v) for v in np.asarray(jax.grad(loss)(xs[of])).reshape(-1).tolist())


def case(name, ins, t, j, exact, of=0, weights=None, shape=None, alike=True):
    """A function at ins, lists of words. exact is a list with one entry for each element: a
    number, None, or a function of the operands in many digits. alike: element by element."""
    for dtype in NAMES:
        a = [[number(w, dtype) for w in x] for x in ins]
        shapes = shape if isinstance(shape, list) else [shape or (len(x),) for x in ins]
        want = []
        for i, e in enumerate(exact):
            if callable(e):
                e = e(*[mp.mpf(x[i]) for x in a]) if alike else e(*[[mp.mpf(v) for v in x] for x in a])
            want.append(text(rounded(e, dtype)))
        full = [np.reshape(np.asarray(x, dtype), s) for x, s in zip(a, shapes)]
        cases.append({
            "name": name, "of": of, "dtype": dtype, "at": [" ".join(map(str, x)) for x in ins],
            "in": [" ".join(text(v) for v in x) for x in a], "shapes": [list(s) for s in shapes], "weights": weights or [],
            "torch": by_torch(t, full, of, weights, dtype) if t else "", "jax": by_jax(j, full, of, weights, dtype) if j else "",
            "exact": " ".join(want),
        })


def unary(name, points, t, j, slope, **special):
    """An elementwise function: its slope, and the derivatives at special points, by words in
    which - is written minus, and a digit comes behind an n."""
    words = points.split()
    key = lambda w: w.replace("-", "minus_").replace("/", "_") if not w[-1].isdigit() else w.replace("-", "minus_").replace(".", "p").replace("0", "zero").replace("1", "one").replace("2", "two")
    case(name, [words], t, j, [special.get(key(w), slope) for w in words])


def functions():
    none = None
    ends = "0 huge -huge inf -inf"
    unary("Abs", "0 -0 huge inf -inf", torch.abs, jnp.abs, none, huge=1, inf=1, minus_inf=-1)
    unary("Sqrt", "0 -0 -1 tiny huge inf", torch.sqrt, jnp.sqrt, lambda x: 1 / (2 * mp.sqrt(x)), zero=INF, minus_zero=none, minus_one=none, inf=0)
    unary("Rsqrt", "0 -0 -1 tiny huge inf", torch.rsqrt, jax.lax.rsqrt, lambda x: -1 / (2 * x * mp.sqrt(x)), zero=-INF, minus_zero=none, minus_one=none, inf=0)
    unary("Recip", "0 -0 tiny huge inf", torch.reciprocal, lambda x: 1 / x, lambda x: -1 / x**2, zero=-INF, minus_zero=-INF, inf=0)
    unary("Square", "0 huge max inf -inf", torch.square, jnp.square, lambda x: 2 * x, inf=INF, minus_inf=-INF)
    unary("Exp", ends, torch.exp, jnp.exp, lambda x: 1 if x == 0 else INF if x > 0 else 0, inf=INF, minus_inf=0)
    unary("Exp2", ends, torch.exp2, jnp.exp2, lambda x: mp.log(2) if x == 0 else INF if x > 0 else 0, inf=INF, minus_inf=0)
    unary("Expm1", ends, torch.expm1, jnp.expm1, lambda x: 1 if x == 0 else INF if x > 0 else 0, inf=INF, minus_inf=0)
    for name, t, j, k in [("Log", torch.log, jnp.log, 1), ("Log2", torch.log2, jnp.log2, 2), ("Log10", torch.log10, jnp.log10, 10)]:
        unary(name, "0 -0 -1 tiny denormal inf", t, j, lambda x, k=k: 1 / x / (mp.log(k) if k > 1 else 1), zero=INF, minus_zero=none, minus_one=none, inf=0)
    unary("Log1p", "-1 -2 0 tiny huge inf", torch.log1p, jnp.log1p, lambda x: 1 / (1 + x), minus_one=INF, minus_two=none, inf=0)
    unary("Sin", "0 inf -inf", torch.sin, jnp.sin, none, zero=1)
    unary("Cos", "0 inf -inf", torch.cos, jnp.cos, none, zero=0)
    unary("Tan", "0 pi/2 inf", torch.tan, jnp.tan, lambda x: mp.sec(x) ** 2, inf=none)
    unary("Sinh", ends, torch.sinh, jnp.sinh, INF, zero=1)
    unary("Cosh", ends, torch.cosh, jnp.cosh, lambda x: mp.sign(x) * INF if x else 0)
    unary("Tanh", ends, torch.tanh, jnp.tanh, 0, zero=1)
    unary("Sigmoid", ends, torch.sigmoid, jax.nn.sigmoid, 0, zero=0.25)
    unary("Erf", ends, torch.erf, jax.lax.erf, 0, zero=lambda x: 2 / mp.sqrt(mp.pi))
    unary("Asin", "1 -1 2 0", torch.asin, jnp.arcsin, INF, two=none, zero=1)
    unary("Acos", "1 -1 2 0", torch.acos, jnp.arccos, -INF, two=none, zero=-1)
    unary("Atan", "0 tiny huge inf -inf", torch.atan, jnp.arctan, lambda x: 1 / (1 + x**2), inf=0, minus_inf=0)
    unary("Asinh", "0 tiny huge -huge max inf -inf", torch.asinh, jnp.arcsinh, lambda x: 1 / mp.sqrt(1 + x**2), inf=0, minus_inf=0)
    unary("Acosh", "1 huge max inf 0 -2", torch.acosh, jnp.arccosh, lambda x: 1 / mp.sqrt(x**2 - 1), one=INF, inf=0, zero=none, minus_two=none)
    unary("Atanh", "0 1 -1 2", torch.atanh, jnp.arctanh, lambda x: 1 / (1 - x**2), one=INF, minus_one=INF, two=none)
    unary("Relu", "0 -0 inf -inf nan", torch.relu, jax.nn.relu, none, inf=1, minus_inf=0)
    step = lambda x: 0.5 if x == 0 else 1 if x > 0 else 0
    unary("Gelu", ends, T.gelu, lambda x: jax.nn.gelu(x, approximate=False), step, inf=1, minus_inf=0)
    unary("GeluTanh", ends, lambda x: T.gelu(x, approximate="tanh"), lambda x: jax.nn.gelu(x, approximate=True), step, inf=1, minus_inf=0)
    unary("Silu", ends, T.silu, jax.nn.silu, step, inf=1, minus_inf=0)
    unary("Softplus", ends, T.softplus, jax.nn.softplus, step, inf=1, minus_inf=0)
    unary("nn.LeakyReLU", "0 -0 huge -huge inf -inf", T.leaky_relu, jax.nn.leaky_relu, lambda x: none if x == 0 else 1 if x > 0 else 0.01, inf=1, minus_inf=0.01)
    unary("nn.ELU", "0 -0 huge -huge inf -inf", T.elu, jax.nn.elu, lambda x: 0 if x < 0 else 1, inf=1, minus_inf=0)


def numbers():
    """Functions of a tensor and a number."""
    power = lambda e: lambda x: mp.mpf(e) * x ** (mp.mpf(e) - 1)

    def pow_(e, points, **special):
        unary(f"PowScalar {e}", points, lambda x: x.pow(e), lambda x: jnp.power(x, e), power(e), **special)

    pow_(0, "0 -1 inf", zero=0, minus_one=0, inf=0)
    pow_(0.5, "0 -1 inf huge", zero=INF, minus_one=None, inf=0)
    pow_(1, "0 -1 inf", zero=1, inf=1)
    pow_(1.5, "0 -1 inf", zero=0, minus_one=None, inf=INF)
    pow_(2, "0 -1 huge inf -inf", zero=0, inf=INF, minus_inf=-INF)
    pow_(3, "0 -1 inf -inf", zero=0, inf=INF, minus_inf=INF)
    pow_(-1, "0 tiny huge inf", zero=-INF, inf=0)
    pow_(-0.5, "0 tiny inf", zero=-INF, inf=0)
    for n in (0, 1, 3, -1):
        special = {0: {"zero": 0, "inf": 0}, 1: {"zero": 1, "inf": 1}, 3: {"zero": 0, "inf": INF}, -1: {"zero": -INF, "inf": 0}}[n]
        unary(f"PowInt {n}", "0 -1 inf", lambda x: x.pow(n), lambda x: jnp.power(x, n), power(n), **special)
    unary("ScalarPow 0", "0 1 2 inf -1", lambda x: torch.pow(0, x), lambda x: jnp.power(0.0, x), 0, zero=None, minus_one=None)
    unary("ScalarPow 1", "0 inf -inf", lambda x: torch.pow(1, x), lambda x: jnp.power(1.0, x), 0)
    unary("ScalarPow 2", "0 inf -inf -huge", lambda x: torch.pow(2, x), lambda x: jnp.power(2.0, x), 0, zero=mp.log(2), inf=INF)
    unary("ScalarPow -2", "0 2", lambda x: torch.pow(-2, x), lambda x: jnp.power(-2.0, x), None)
    unary("ScalarDiv 1", "0 -0 tiny huge inf", lambda x: 1 / x, lambda x: 1 / x, lambda x: -1 / x**2, zero=-INF, minus_zero=-INF, inf=0)
    unary("MaximumScalar 0", "0 -0 nan inf", lambda x: torch.clamp(x, min=0), lambda x: jnp.maximum(x, 0), None, inf=1)
    unary("MinimumScalar 0", "0 -0 nan inf", lambda x: torch.clamp(x, max=0), lambda x: jnp.minimum(x, 0), None, inf=0)
    unary("ClampScalar -1 1", "-1 1 nan inf -inf", lambda x: torch.clamp(x, -1, 1), lambda x: jnp.clip(x, -1, 1), None, inf=0, minus_inf=0)
    unary("RemScalar 2", "0 2 -2 inf", lambda x: torch.remainder(x, 2), lambda x: jnp.remainder(x, 2), None)
    unary("where x > 0: sqrt(x), else 0", "0 -1", lambda x: torch.where(x > 0, torch.sqrt(x), 0), lambda x: jnp.where(x > 0, jnp.sqrt(x), 0), None, minus_one=0)
    unary("where x > 0: sqrt(where x > 0: x, else 1), else 0", "0 -1", lambda x: torch.where(x > 0, torch.sqrt(torch.where(x > 0, x, 1)), 0), lambda x: jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1)), 0), None, minus_one=0)


def pairs():
    def pair(name, points, t, j, *exact):
        xs, ys = [p.split(",")[0] for p in points.split()], [p.split(",")[1] for p in points.split()]
        for of, e in enumerate(exact):
            case(name, [xs, ys], t, j, e, of=of)

    n = None
    f = lambda x, y: y
    pair("Mul", "0,inf inf,0 inf,inf huge,huge", torch.mul, jnp.multiply, [INF, 0, INF, f], [0, INF, INF, lambda x, y: x])
    dx, dy = lambda x, y: 1 / y, lambda x, y: -x / y**2
    pair("Div", "0,0 1,0 0,inf 1,inf inf,inf huge,huge 1,tiny tiny,tiny", torch.div, jnp.divide, [n, n, 0, 0, n, dx, dx, dx], [n, -INF, 0, 0, n, dy, dy, dy])
    pair("Rem", "4,2 -4,2 0,2 1,0 1,inf inf,2 5,2", torch.remainder, jnp.remainder, [n, n, n, n, 1, n, 1], [n, n, n, n, 0, n, -2])
    dx, dy = lambda x, y: y * x ** (y - 1), lambda x, y: x**y * mp.log(x)
    pair("Pow", "0,0 0,0.5 0,1 0,2 0,-1 0,inf -1,2 -1,1.5 1,inf huge,0.5 inf,0 inf,-1 inf,inf", torch.pow, jnp.power,
         [0, INF, 1, 0, -INF, 0, -2, n, n, dx, 0, 0, n], [n, 0, 0, 0, n, 0, n, n, 0, dy, n, 0, INF])
    pair("Maximum", "1,1 0,-0 -0,0 inf,inf nan,1 1,nan nan,nan", torch.maximum, jnp.maximum, [n] * 7, [n] * 7)
    pair("Minimum", "1,1 0,-0 -0,0 inf,inf nan,1 1,nan nan,nan", torch.minimum, jnp.minimum, [n] * 7, [n] * 7)
    dx, dy = lambda x, y: y / (x**2 + y**2), lambda x, y: -x / (x**2 + y**2)
    pair("Atan2", "0,0 0,1 0,-1 1,0 tiny,tiny huge,huge tiny,huge denormal,denormal 1,inf inf,1 inf,inf", torch.atan2, jnp.arctan2,
         [n, 1, n, 0, dx, dx, dx, dx, 0, 0, 0], [n, 0, 0, -1, dy, dy, dy, dy, 0, 0, 0])
    points = "1,1,2 2,1,2 1,1,1 0,2,1 nan,1,2 0,nan,1".split()
    cols = [[p.split(",")[k] for p in points] for k in range(3)]
    for of in range(3):
        case("Clamp", cols, torch.clamp, jnp.clip, [n, n, n, {0: 0, 1: 0, 2: 1}[of], n, n], of=of)
    length = [n] + [lambda x, y: x / mp.sqrt(x**2 + y**2)] * 3
    case("sqrt(x² + y²)", ["0 tiny huge 3".split(), "0 tiny huge 4".split()], lambda x, y: torch.sqrt(x**2 + y**2), lambda x, y: jnp.sqrt(x**2 + y**2), length)


def rows():
    n = None

    def row(name, words, t, j, exact, weights=None, shape=None):
        words = words.split()
        if callable(exact):
            slopes = exact
            exact = [(lambda v, i=i: slopes(v)[i]) for i in range(len(words))]
        case(name, [words], t, j, exact, weights=weights, shape=shape, alike=False)

    def others(v):
        return [mp.fprod(v[:i] + v[i + 1:]) for i in range(len(v))]

    row("Sum", "inf -inf", torch.sum, jnp.sum, [1, 1])
    row("Mean", "inf 1 max max", torch.mean, jnp.mean, [0.25] * 4)
    for w in "0 2 3", "0 0 3", "0 0 0", "2 -0 3":
        row("Prod", w, torch.prod, jnp.prod, others)
    row("Prod", "0 inf 2", torch.prod, jnp.prod, [INF, 0, n])
    row("Prod", "huge huge tiny", torch.prod, jnp.prod, others)
    for w in "1 3 3 2", "3 3 3 3", "-inf -inf", "1 nan 2 nan", "0 -0", "-0 0":
        row("Max", w, lambda x: x.amax(), jnp.max, [n] * len(w.split()))
    for w in "3 1 1 2", "inf inf", "1 nan 2", "-0 0":
        row("Min", w, lambda x: x.amin(), jnp.min, [n] * len(w.split()))
    row("CumProd", "2 0 3 4", lambda x: x.cumprod(0), jnp.cumprod, [1, 32, 0, 0])
    row("CumProd", "0 0 3", lambda x: x.cumprod(0), jnp.cumprod, [1, 0, 0])
    row("CumProd", "2 0 0 5", lambda x: x.cumprod(0), jnp.cumprod, [1, 2, 0, 0])
    row("CumProd", "0 inf", lambda x: x.cumprod(0), jnp.cumprod, [INF, 0])
    row("CumProd", "huge huge tiny", lambda x: x.cumprod(0), jnp.cumprod, lambda v: [1 + v[1] + v[1] * v[2], v[0] + v[0] * v[2], v[0] * v[1]])
    for w in "1 3 3 2", "2 2 2", "1 nan 2":
        row("CumMax", w, lambda x: x.cummax(0)[0], jax.lax.cummax, [n] * len(w.split()))
        row("CumMin", w, lambda x: x.cummin(0)[0], jax.lax.cummin, [n] * len(w.split()))
    row("Sort", "2 1 2 1", lambda x: x.sort(stable=True)[0], jnp.sort, [n] * 4, [1, 2, 3, 4])
    row("TopK 2", "3 1 3 3", lambda x: x.topk(2)[0], lambda x: jax.lax.top_k(x, 2)[0], [n] * 4, [1, 2])
    row("Median", "2 2 2", lambda x: torch.quantile(x, 0.5), jnp.median, [n] * 3)
    row("Median", "1 2 2 3", lambda x: torch.quantile(x, 0.5), jnp.median, [n] * 4)
    row("Median", "inf 1 2", lambda x: torch.quantile(x, 0.5), jnp.median, [0, 0, 1])
    q = 0.22236856212514483
    row(f"Quantile {q}", "-0.71286124 -0.7128612", lambda x: torch.quantile(x, q), lambda x: jnp.quantile(x, q), [1 - q, q])
    row("Quantile 0.5", "1 inf", lambda x: torch.quantile(x, 0.5), lambda x: jnp.quantile(x, 0.5), [0.5, 0.5])

    def soft(v, w):
        e = [mp.exp(x - max(v)) if mp.isfinite(x) else mp.mpf(0) for x in v]
        p = [x / sum(e) for x in e]
        dot = sum(a * b for a, b in zip(p, w))
        return [a * (b - dot) for a, b in zip(p, w)]

    def share(v):
        e = [mp.exp(x - max(v)) if mp.isfinite(x) else mp.mpf(0) for x in v]
        return [x / sum(e) for x in e]

    w3 = [1, 2, 4]
    softmax, logsoftmax = (lambda x: torch.softmax(x, 0)), (lambda x: torch.log_softmax(x, 0))
    for words in "-inf 0 1", "huge 0 -huge", "-inf -inf 3":
        row("Softmax", words, softmax, jax.nn.softmax, lambda v: soft(v, w3), w3)
        row("MaskedSoftmax", words, None, None, lambda v: soft(v, w3), w3)
        row("LogSumExp", words, lambda x: torch.logsumexp(x, 0), jax.nn.logsumexp, share)
        row("LogSoftmax", words, logsoftmax, jax.nn.log_softmax, lambda v: [b - 7 * a for a, b in zip(share(v), w3)], w3)
    for words in "-inf -inf -inf", "inf 0 1", "inf inf 0", "nan 0 1":
        row("Softmax", words, softmax, jax.nn.softmax, [n] * 3, w3)
        row("LogSoftmax", words, logsoftmax, jax.nn.log_softmax, [n] * 3, w3)
        row("LogSumExp", words, lambda x: torch.logsumexp(x, 0), jax.nn.logsumexp, [1, 0, 0] if words == "inf 0 1" else [n] * 3)
    row("MaskedSoftmax", "-inf -inf -inf", None, None, [0, 0, 0], w3)
    row("MaskedLogSoftmax", "-inf 0 0", None, None, [0, 2 - 3, 4 - 3], w3)
    row("MaskedLogSoftmax", "-inf -inf -inf", None, None, [0, 0, 0], w3)

    row("Norm1", "0 -0 -2", lambda x: torch.linalg.vector_norm(x, 1), lambda x: jnp.abs(x).sum(), [n, n, -1])
    unit = lambda v: [x / mp.sqrt(mp.fsum(y**2 for y in v)) for x in v]
    for words, e in [("0 0", [n, n]), ("0 -2", [0, -1]), ("tiny -tiny", unit), ("huge -huge", unit), ("max max", unit), ("denormal denormal", unit), ("inf 1", [1, 0]), ("inf -inf", [n, n])]:
        row("Norm2", words, torch.linalg.vector_norm, jnp.linalg.norm, e)

    def deviation(ddof):
        def slope(v):
            m = mp.fsum(v) / len(v)
            d = [x - m for x in v]
            s = mp.sqrt(mp.fsum(x**2 for x in d) / (len(v) - ddof))
            return [x / s / (len(v) - ddof) for x in d]
        return slope

    for words, e in [("0 0 0", [n] * 3), ("0.1 0.1 0.1", [n] * 3), ("1000000.125 1000000.125 1000000.125", [n] * 3), ("huge -huge", deviation(0)), ("tiny -tiny", deviation(0)), ("1000000 1000000.5 1000000", deviation(0)), ("5", [n]), ("inf 1", [n, n])]:
        row("Std 0", words, lambda x: x.std(correction=0), jnp.std, e)
    row("Std 1", "5", lambda x: x.std(correction=1), lambda x: jnp.std(x, ddof=1), [n])
    for words in "0.1 0.1 0.1", "1000000.125 1000000.125 1000000.125":
        row("Var 0", words, lambda x: x.var(correction=0), jnp.var, [0, 0, 0])
    row("Var 0", "huge -huge", lambda x: x.var(correction=0), jnp.var, lambda v: [2 * (x - mp.fsum(v) / 2) / 2 for x in v])
    row("Var 0", "inf 1", lambda x: x.var(correction=0), jnp.var, [n, n])

    def layer(x, eps):
        return (x - x.mean()) / jnp.sqrt(x.var() + eps)

    def normed(eps, centred):
        def slope(v):
            k = len(v)
            m = mp.fsum(v) / k if centred else mp.mpf(0)
            r = 1 / mp.sqrt(mp.fsum((x - m) ** 2 for x in v) / k + mp.mpf(eps))
            z = [(x - m) * r for x in v]
            dot = mp.fsum(a * b for a, b in zip(z, w3)) / k
            mean = mp.mpf(sum(w3)) / k if centred else 0
            return [r * (b - mean - a * dot) for a, b in zip(z, w3)]
        return slope

    for words in "0 0 0", "0.1 0.1 0.1", "3 3 3":
        row("LayerNorm 1e-5", words, lambda x: T.layer_norm(x, [3], eps=1e-5), lambda x: layer(x, 1e-5), normed(1e-5, True), w3)
    row("LayerNorm 0", "3 3 3", lambda x: T.layer_norm(x, [3], eps=0), lambda x: layer(x, 0), [n] * 3, w3)
    row("LayerNorm 1e-5", "huge 0 -huge", lambda x: T.layer_norm(x, [3], eps=1e-5), lambda x: layer(x, 1e-5), normed(1e-5, True), w3)
    row("LayerNorm 1e-5", "inf 0 1", lambda x: T.layer_norm(x, [3], eps=1e-5), lambda x: layer(x, 1e-5), [n] * 3, w3)
    rms = lambda eps: lambda x: x / jnp.sqrt((x * x).mean() + eps)
    row("RMSNorm 1e-5", "0 0 0", lambda x: T.rms_norm(x, [3], eps=1e-5), rms(1e-5), normed(1e-5, False), w3)
    row("RMSNorm 0", "0 0 0", lambda x: T.rms_norm(x, [3], eps=0), rms(0), [n] * 3, w3)
    row("RMSNorm 1e-5", "huge 0 -huge", lambda x: T.rms_norm(x, [3], eps=1e-5), rms(1e-5), normed(1e-5, False), w3)

    def entropy(k):
        t = lambda x: T.cross_entropy(x, torch.tensor(k))
        return t, lambda x: -jax.nn.log_softmax(x)[k]

    for k, words, e in [(1, "-inf 0 0", [0, -0.5, 0.5]), (0, "-inf 0 0", [-1, 0.5, 0.5]), (0, "huge 0 -huge", [0, 0, 0]), (2, "huge 0 -huge", [1, 0, -1]), (0, "inf 0 0", [n] * 3), (1, "inf 0 0", [n] * 3), (0, "-inf -inf -inf", [n] * 3)]:
        row(f"CrossEntropy {k}", words, *entropy(k), e)
    pool = lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (2,), (1,), "VALID")
    row("MaxPool 2", "1 1 1 0", lambda x: T.max_pool1d(x[None], 2, 1), pool, [n] * 4)
    row("MaxPool 2", "-inf -inf -inf", lambda x: T.max_pool1d(x[None], 2, 1), pool, [n] * 3)
    row("MaxPool 2", "1 nan 2", lambda x: T.max_pool1d(x[None], 2, 1), pool, [n] * 3)
    windows = lambda x: jnp.stack([x[:-1], x[1:]]).prod(0)
    row("product of windows of 2", "0 0 3", lambda x: x.unfold(0, 2, 1).prod(1), windows, [0, 3, 0])
    index, updates = np.array([0, 0]), [2.0, 2.0]
    into = lambda mode: lambda x: x.scatter_reduce(0, torch.tensor(index), torch.tensor(updates, dtype=x.dtype), mode)
    row("ScatterMax 2 2", "2 1", into("amax"), lambda x: x.at[index].max(jnp.asarray(updates, x.dtype)), [n, 1])
    row("ScatterMul 2 0", "3 1", lambda x: x.scatter_reduce(0, torch.tensor(index), torch.tensor([2.0, 0.0], dtype=x.dtype), "prod"), lambda x: x.at[index].mul(jnp.asarray([2.0, 0.0], x.dtype)), [0, 1])


def losses():
    n = None

    def pair(name, points, t, j, *exact):
        xs, ys = [p.split(",")[0] for p in points.split()], [p.split(",")[1] for p in points.split()]
        for of, e in enumerate(exact):
            if e:
                case(name, [xs, ys], t, j, e, of=of)

    pair("nn.L1", "1,1 inf,1 inf,inf", lambda x, y: T.l1_loss(x, y, reduction="sum"), lambda x, y: jnp.abs(x - y).sum(), [n, 1, n])
    pair("nn.MSE", "1,1 inf,1 huge,-huge", lambda x, y: T.mse_loss(x, y, reduction="sum"), lambda x, y: jnp.square(x - y).sum(), [0, INF, lambda x, y: 2 * (x - y)])
    jh = lambda x, y: jnp.where(jnp.abs(x - y) <= 1, 0.5 * jnp.square(x - y), jnp.abs(x - y) - 0.5).sum()
    pair("nn.Huber", "1,1 2,1 inf,1 huge,-huge", lambda x, y: T.huber_loss(x, y, reduction="sum"), jh, [0, 1, 1, 1])
    jb = lambda x, y: (y * jax.nn.softplus(-x) + (1 - y) * jax.nn.softplus(x)).sum()
    pair("nn.BCEWithLogits", "inf,1 inf,0 -inf,0 -inf,1 huge,1 -huge,1 huge,0.5", lambda x, y: T.binary_cross_entropy_with_logits(x, y, reduction="sum"), jb, [0, 1, 0, -1, 0, -1, 0.5])
    jk = lambda x, y: (jax.scipy.special.xlogy(y, y) - y * x).sum()
    pair("nn.KLDiv", "-1,0 -inf,0 -1,0.5", lambda x, y: T.kl_div(x, y, reduction="sum"), jk, [0, 0, -0.5], [-INF, n, lambda x, y: mp.log(y) + 1 - x])


def matrices():
    n = None

    def of(name, words, t, j, exact, weights=None):
        k = int(math.sqrt(len(words.split())))
        case(name, [words.split()], t, j, exact, weights=weights, shape=(k, k))

    eye = "1 0 0 0 1 0 0 0 1"
    same = [1, 0, 0, 0, 1, 0, 0, 0, 1]
    for words, e in [("0", [1]), ("1 2 2 4", [4, -2, -2, 1]), ("0 0 0 0", [0] * 4), ("1 2 3 4 5 6 5 7 9", [3, -6, 3, 3, -6, 3, -3, 6, -3]), ("tiny 0 0 tiny", [lambda x: x, 0, 0, lambda x: x])]:
        if words == "tiny 0 0 tiny":
            e = [lambda x: x, 0, 0, lambda x: x]
        of("linalg.Det", words, torch.linalg.det, jnp.linalg.det, e)
    of("linalg.SlogDet", "1 2 2 4", lambda x: torch.linalg.slogdet(x)[1], lambda x: jnp.linalg.slogdet(x)[1], [n] * 4)
    of("linalg.Inverse", "1 2 2 4", torch.linalg.inv, jnp.linalg.inv, [n] * 4)
    of("linalg.SingularValues", eye, torch.linalg.svdvals, lambda x: jnp.linalg.svd(x, compute_uv=False), same)
    of("linalg.SVD values", eye, lambda x: torch.linalg.svd(x)[1], lambda x: jnp.linalg.svd(x)[1], same)
    of("linalg.SingularValues", "0 0 0 0", torch.linalg.svdvals, lambda x: jnp.linalg.svd(x, compute_uv=False), [n] * 4)
    of("linalg.Eigvalsh", eye, torch.linalg.eigvalsh, jnp.linalg.eigvalsh, same)
    of("linalg.Eigh values", eye, lambda x: torch.linalg.eigh(x)[0], lambda x: jnp.linalg.eigh(x)[0], same)
    of("linalg.Eigh vectors", "1 0 0 1", lambda x: torch.linalg.eigh(x)[1], lambda x: jnp.linalg.eigh(x)[1], [n] * 4, [[1, 2], [3, 4]])
    of("linalg.Cholesky", "1 1 1 1", torch.linalg.cholesky, jnp.linalg.cholesky, [n] * 4)
    of("linalg.QR r", "1 1 1 1", lambda x: torch.linalg.qr(x)[1], lambda x: jnp.linalg.qr(x)[1], [n] * 4)
    of("linalg.PseudoInverse", "0 0 0 0", torch.linalg.pinv, jnp.linalg.pinv, [n] * 4)


GROUPS = [functions, numbers, pairs, rows, losses, matrices]


def main():
    for f in GROUPS:
        first = len(cases)
        f()
        for c in cases[first:]:
            c["group"] = f.__name__
    path = os.path.join("autodiff", "testdata", "derivatives.json")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(c, ensure_ascii=False) for c in cases) + "\n]\n")
    print(path, len(cases), "cases,", os.path.getsize(path), "bytes, torch", torch.__version__, "jax", jax.__version__)


if __name__ == "__main__":
    main()
