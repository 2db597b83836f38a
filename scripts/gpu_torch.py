"""Times the suites of `fusebench gelu`, `softmax` and so on in PyTorch, eager and by
torch.compile, on the graphics card (scripts/gpu.sh calls this). It writes a report for each
suite in fusebench's JSON format, which `fusebench tables` puts beside Millrace's.

    python3 scripts/gpu_torch.py --out DIR [--small] [--seconds 140]

Each run is timed until the card is synchronised, as fusebench's are. Products of float32 are
without TF32. Kernels over one tensor, and products, also run in float16 and bfloat16."""

import argparse
import datetime
import json
import math
import os
import platform
import statistics
import sys
import time

import torch

F = torch.nn.functional
SQRT_HALF = 1 / math.sqrt(2)
HALVES = "float16", "bfloat16"


def gelu_with(erf, x):
    return x * (erf(x * SQRT_HALF) + 1) * 0.5


def erf_positive(x):
    a = [0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429]
    t = 1 / (x.abs() * 0.3275911 + 1)
    poly = t * a[4]
    for c in (a[3], a[2], a[1]):
        poly = (poly + c) * t
    return 1 - (poly + a[0]) * t * torch.exp(-x * x)


def custom_erf(x):
    return torch.where(x > 0, erf_positive(x), -erf_positive(-x))


def norm(axis):
    """Layer normalisation along an axis; PyTorch's own function has the last one only."""

    def run(x, w, b):
        if axis == x.ndim - 1:
            return F.layer_norm(x, w.shape, w, b, 1e-5)
        d = x - x.mean(axis, keepdim=True)
        return d * torch.rsqrt(d.square().mean(axis, keepdim=True) + 1e-5) * w + b

    return run


def plain_attention(q, k, v, *mask):
    scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]))
    return torch.softmax(scores + mask[0] if mask else scores, -1) @ v


def own_attention(q, k, v, *mask):
    return F.scaled_dot_product_attention(q, k, v, *mask)


def perceptron(x, *layers):
    for i in range(0, len(layers), 2):
        if i:
            x = F.gelu(x)
        x = torch.addmm(layers[i + 1], x, layers[i])
    return x


class Inputs:
    """Operands by shape, made once."""

    def __init__(self, device, dtype=torch.float32):
        self.device, self.dtype, self.made = device, dtype, {}
        self.random = torch.Generator(device).manual_seed(1)

    def normal(self, *shape, deviation=1.0, name=""):
        key = (shape, deviation, name)
        if key not in self.made:
            values = torch.randn(shape, device=self.device, generator=self.random) * deviation
            self.made[key] = values.to(self.dtype)
        return self.made[key]


def rows(make, part, shape):
    """Yields the workloads on one tensor of a shape; part is the end of their suites' names."""
    x = make.normal(*shape, deviation=2)
    middle, last = (len(shape) - 1) // 2, len(shape) - 1
    for variant, f in {"reference": F.gelu, "erf": lambda x: gelu_with(torch.erf, x), "custom": lambda x: gelu_with(custom_erf, x)}.items():
        yield "gelu" + part, variant, shape, f, [x]
    for variant, axis in {"last": last, "middle": middle}.items():
        yield "softmax" + part, variant, shape, lambda x, axis=axis: torch.softmax(x, axis), [x]
        # Along a middle axis the parameters are of a shape that broadcasts.
        of = [shape[axis]] + [1] * (last - axis)
        yield "layernorm" + part, variant, shape, norm(axis), [x, make.normal(*of, name="w"), make.normal(*of, name="b")]
    yield "softmax" + part, "logexp", shape, lambda x: torch.log_softmax(x, last).exp(), [x]
    for name in ("sum",) if part else ("sum", "max", "mean"):
        f = getattr(torch, "amax" if name == "max" else name)
        yield "reduce" + part, name, shape, lambda x, f=f: f(x, dim=(0, 1, 2)), [x]
        for axis in range(len(shape)):
            yield "reduce" + part, f"{name}-{axis}", shape, lambda x, f=f, axis=axis: f(x, dim=axis), [x]


def workloads(device, small):
    """Yields suite, variant, shape, program and operands of all workloads."""
    make, shape = Inputs(device), (4, 64, 256) if small else (32, 512, 2048)
    yield from products(make, small)
    for name in HALVES:
        yield from squares(Inputs(device, getattr(torch, name)), "matmul-" + name, (64, 128) if small else (1024, 2048, 4096, 8192))
    yield from rows(make, "", shape)
    for name in HALVES:
        yield from rows(Inputs(device, getattr(torch, name)), "-" + name, shape)
    make.made.clear()
    yield from rows(make, "-large", (8, 64, 256) if small else (128, 512, 2048))


def squares(make, suite, sizes):
    """Yields products of square matrices."""
    for n in sizes:
        yield suite, str(n), (n, n, n), torch.mm, [make.normal(n, n), make.normal(n, n, deviation=n**-0.5)]
        make.made.clear()


def products(make, small):
    """Yields the workloads that multiply matrices."""
    for n in (64, 128) if small else (256, 1024, 2048, 4096):
        a, b = make.normal(n, n), make.normal(n, n, deviation=n**-0.5)
        yield "matmul", str(n), (n, n, n), torch.mm, [a, b]
        if n in (64, 1024, 4096):
            yield "matmul", f"{n}+gelu", (n, n, n), lambda a, b, c: F.gelu(a @ b + c), [a, b, make.normal(n)]
    count, width, hidden = (32, 64, 128) if small else (512, 1024, 4096)

    def layers(*sizes):
        return [t for i, o in zip(sizes, sizes[1:]) for t in (make.normal(i, o, deviation=i**-0.5), make.normal(o, deviation=0.5))]

    x, two = make.normal(count, width), layers(width, hidden, width)
    yield "mlp", "mlp", (count, width, hidden), perceptron, [x, *two]
    yield "mlp", "matmuls", (count, width, hidden), lambda x, v, w: x @ v @ w, [x, two[0], two[2]]
    yield "mlp", "4-layer", (count, width, hidden), perceptron, [x, *layers(*[width] * 5)]
    shape = (1, 2, 128, 32) if small else (4, 8, 1024, 64)
    q, k, v = (make.normal(*shape, name=n) for n in "qkv")
    mask = torch.full((shape[2], shape[2]), -math.inf, device=make.device).triu(1)
    for name, f in {"": plain_attention, ", its own kernel": own_attention}.items():
        yield "attention", "plain" + name, shape, f, [q, k, v]
        yield "attention", "causal" + name, shape, f, [q, k, v, mask]
    shape = (1, 8, 16, 16) if small else (8, 64, 56, 56)
    x, c = make.normal(*shape), shape[1]
    for side in (3, 1):
        kernels = make.normal(2 * c, c, side, side, deviation=(c * side * side) ** -0.5)
        f = lambda x, k, b, side=side: F.relu(F.conv2d(x, k, b, padding=side // 2))
        yield "conv", f"{side}x{side}", shape, f, [x, kernels, make.normal(2 * c)]


class Clock:
    def __init__(self, device, small):
        self.wait = torch.cuda.synchronize if device == "cuda" else lambda: None
        self.runs, self.warm = (10, 0.0) if small else (100, 0.25)

    def time(self, f, operands):
        """Seconds of each run, hot: the first runs compile, and wake the card."""
        for _ in range(3):
            f(*operands)
        self.wait()
        start = time.perf_counter()
        while time.perf_counter() - start < self.warm:
            f(*operands)
            self.wait()
        taken = []
        for _ in range(self.runs):
            start = time.perf_counter()
            f(*operands)
            self.wait()
            taken.append(time.perf_counter() - start)
        return taken


def figure(seconds):
    return float(f"{seconds * 1e3:.5g}")


def row(suite, dtype, variant, mode, shape, seconds, copy):
    return {
        "suite": suite.split("-")[0], "device": "PyTorch", "variant": variant, "mode": mode, "tier": "", "shape": list(shape),
        "dtype": dtype, "threads": 0, "runs": len(seconds), "median_ms": figure(statistics.median(seconds)), "min_ms": figure(min(seconds)),
        "copy_ms": copy and figure(copy), "copy_kind": "kernel" if copy else "", "samples_ms": [figure(s) for s in seconds],
    }  # fmt: skip


def machine(device):
    name = torch.cuda.get_device_name() if device == "cuda" else "no card"
    return {
        "cpu": platform.processor() or platform.machine(), "cores": os.cpu_count(), "os": f"{sys.platform}/{platform.machine()}",
        "go": f"Python {platform.python_version()}", "millrace": "none", "date": datetime.date.today().isoformat(),
        "command": " ".join(os.path.basename(a) for a in sys.argv),
        "note": f"PyTorch {torch.__version__} (CUDA {torch.version.cuda}) on {name}, float32 without TF32",
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="folder for the reports")
    parser.add_argument("--small", action="store_true", help="small tensors, few rounds")
    parser.add_argument("--seconds", type=float, default=140, help="begin nothing after this time")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.set_grad_enabled(False)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    clock, reports, copies, failed, end = Clock(device, options.small), {}, {}, 0, time.monotonic() + options.seconds
    # Eager runs come first: compiling takes most of the time.
    for mode in "eager", "compiled":
        for suite, variant, shape, f, operands in workloads(device, options.small):
            if time.monotonic() > end:
                print(f"left out, the time is over: {suite} {variant} {mode}", file=sys.stderr)
                failed += 1
                continue
            try:
                if mode == "compiled":
                    torch._dynamo.reset()  # its limit of compiles counts all programs
                    f = torch.compile(f)
                if len(operands) == 1 and suite not in copies:
                    copies[suite] = statistics.median(clock.time(torch.neg, operands))
                seconds = clock.time(f, operands)
            except Exception as e:  # the others are timed all the same
                print(f"{suite} {variant} {mode}: {type(e).__name__}: {str(e)[:300]}", file=sys.stderr)
                failed += 1
                continue
            rows = reports.setdefault(suite, [])
            rows.append(row(suite, str(operands[0].dtype).removeprefix("torch."), variant, mode, shape, seconds, copies.get(suite)))
            print(f"{suite:16} {variant:24} {mode:8} {rows[-1]['median_ms']:8} ms ({rows[-1]['min_ms']})", flush=True)
            with open(os.path.join(options.out, f"{suite}-torch.json"), "w") as out:
                json.dump({"machine": machine(device), "rows": rows}, out, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
