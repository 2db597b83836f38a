"""A contestant of bench/peers in Python: peer.py LIBRARY [--kept | --compile | --versions].

It answers the questions of package talk. The module with_LIBRARY has
versions(), and prepare(work), which gives a function of the step that runs the
workload until its result is in memory and returns it, and a function that makes
a numpy array of that result."""

import importlib
import json
import os
import sys
import time

import numpy as np


class Unsupported(Exception):
    """The library has no operations for the workload."""


class Work:
    """A workload with its inputs loaded."""

    def __init__(self, question, options):
        self.name = question["workload"]
        self.threads = question["threads"]
        self.kept = "--kept" in options
        self.compile = "--compile" in options
        self.inputs = [load(i) for i in question["inputs"]]
        # softmax-middle works along the axis in the middle, others on the last
        self.axis = 1 if self.name.endswith("-middle") else self.inputs[0].ndim - 1


def load(source):
    """An input, at a multiple of 64 bytes, as every library here likes it."""
    count = int(np.prod(source["shape"]))
    space = np.empty(4 * count + 64, np.uint8)
    skip = -space.ctypes.data % 64
    array = space[skip : skip + 4 * count].view(np.float32)
    with open(source["file"], "rb") as f:
        if f.readinto(memoryview(array).cast("B")) != 4 * count:
            raise ValueError(f"{source['file']} is too short")
    return array.reshape(source["shape"])


# Formula 7.1.26 of Abramowitz and Stegun for the error function.
ERF_P = 0.3275911
ERF_A = [0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429]

SQRT_HALF = 0.5**0.5
TANH_SCALE = (2 / np.pi) ** 0.5
TANH_CUBE = 0.044715
LAYER_NORM_EPS = 1e-5
CHAIN_OPS = 20


def custom_erf(x, exp, where):
    """The error function from a library's other operations, for -x and for x,
    chosen by sign: what bench/peers and fusebench call custom."""

    def positive(x):
        t = 1 / (abs(x) * ERF_P + 1)
        y = t * ERF_A[4]
        for a in reversed(ERF_A[1:4]):
            y = (y + a) * t
        return 1 - (y + ERF_A[0]) * t * exp(-x * x)

    return where(x > 0, positive(x), -positive(-x))


def gelu(x, erf):
    return x * (erf(x * SQRT_HALF) + 1) * 0.5


def chain_scalars(step):
    """The chain's factors (even positions) and addends (odd ones) of a step."""
    k = (step % 1000 + 1) * 1e-6
    return [1 + k * (i % 7 - 3) if i % 2 == 0 else k * (i + 1) for i in range(CHAIN_OPS)]


def chain(x, scalars):
    for i, s in enumerate(scalars):
        x = x * s if i % 2 == 0 else x + s
    return x


class Contestant:
    def __init__(self, library, options):
        self.library, self.options = library, options
        self.run = self.read = self.last = None

    def answer(self, question):
        if "work" in question:
            self.run = self.read = self.last = None  # of the workload before
            work = Work(question["work"], self.options)
            self.run, self.read = self.library.prepare(work)
            return {"ready": True}
        if "run" in question:
            return {"seconds": self.sample(question["run"])}
        array = np.ascontiguousarray(self.read(self.last), np.float32)
        array.tofile(question["write"])
        return {"wrote": array.size}

    def sample(self, n):
        run, last = self.run, self.last
        start = time.perf_counter()
        for step in range(n):
            last = run(step)
        took = time.perf_counter() - start
        self.last = last
        return took / n


def main(name, options):
    # What libraries print goes to standard error: the other one is the driver's.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.modules.setdefault("peer", sys.modules["__main__"])
    library = importlib.import_module("with_" + name)
    if "--versions" in options:
        versions = {"python": sys.version.split()[0], **library.versions()}
        print(json.dumps(versions), file=out, flush=True)
        return
    contestant = Contestant(library, options)
    for line in sys.stdin:
        try:
            answer = contestant.answer(json.loads(line))
        except Unsupported as e:
            answer = {"unsupported": str(e)}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
