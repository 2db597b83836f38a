"""numexpr, with new memory for every result or, kept, with out=."""

import numexpr
import numpy as np
from peer import ERF_A, ERF_P, SQRT_HALF, TANH_CUBE, TANH_SCALE
from peer import Unsupported, chain_scalars


def versions():
    return {"numexpr": numexpr.__version__, "numpy": np.__version__}


def positive(x):
    """custom_erf's inner function of x, in text."""
    t = f"(one / (abs({x}) * p + one))"
    y = f"{t} * a4"
    for i in (3, 2, 1):
        y = f"({y} + a{i}) * {t}"
    return f"(one - ({y} + a0) * {t} * exp(-{x} * {x}))"


U = "(x * r)"
EXPRESSIONS = {
    "gelu-tanh": "half * x * (one + tanh(scale * (x + cube * (x * x * x))))",
    "gelu-custom": f"x * (where({U} > zero, {positive(U)}, -{positive('(-' + U + ')')}) + one) * half",
    "sum": "sum(x)",
    "sum-0": "sum(x, axis=0)",
}
NUMBERS = {
    "zero": 0, "half": 0.5, "one": 1, "scale": TANH_SCALE, "cube": TANH_CUBE, "r": SQRT_HALF, "p": ERF_P,
    **{f"a{i}": a for i, a in enumerate(ERF_A)},
}


def chain_expression():
    text = "x"
    for i in range(len(chain_scalars(0))):
        text = f"({text} {'*' if i % 2 == 0 else '+'} s{i})"
    return text


def prepare(work):
    numexpr.set_num_threads(work.threads)
    x = work.inputs[0]
    # numbers are operands of float32: a number in the text would make it all float64
    known = {"x": x, **{name: np.float32(v) for name, v in NUMBERS.items()}}
    out = np.empty_like(x) if work.kept else None
    if work.name in ("chain", "chain-vary"):
        return chain(work, known, chain_expression(), out), np.asarray
    text = EXPRESSIONS.get(work.name)
    if text is None:
        raise Unsupported("numexpr has no erf, no products of matrices and no rows")
    if work.name.startswith("sum"):
        out = None
    return lambda step: numexpr.evaluate(text, local_dict=known, global_dict={}, out=out), np.asarray


def chain(work, known, text, out):
    def run(step):
        scalars = chain_scalars(step if work.name == "chain-vary" else 0)
        operands = {f"s{i}": np.float32(s) for i, s in enumerate(scalars)}
        return numexpr.evaluate(text, local_dict={"x": known["x"], **operands}, global_dict={}, out=out)

    return run
