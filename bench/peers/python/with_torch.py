"""PyTorch, eager or compiled, with new memory for every result or, kept, into
memory that is there."""

import numpy as np
import torch
from peer import LAYER_NORM_EPS, SQRT_HALF, chain, chain_scalars, custom_erf, gelu

F = torch.nn.functional


def versions():
    return {"torch": torch.__version__}


def program(work):
    """The workload as a function of its tensors, and for chains of the scalars."""
    axis = work.axis
    if work.name.startswith("matmul"):
        return torch.mm
    return {
        "gelu": F.gelu,
        "gelu-tanh": lambda x: F.gelu(x, approximate="tanh"),
        "gelu-erf": lambda x: gelu(x, torch.erf),
        "gelu-custom": lambda x: gelu(x, lambda x: custom_erf(x, torch.exp, torch.where)),
        "softmax": lambda x: torch.softmax(x, axis),
        "softmax-middle": lambda x: torch.softmax(x, axis),
        "layernorm": lambda x, w, b: F.layer_norm(x, w.shape, w, b, LAYER_NORM_EPS),
        "sum": torch.sum,
        "sum-0": lambda x: torch.sum(x, 0),
        "chain": lambda x: chain(x, chain_scalars(0)),
        "chain-vary": chain,
    }[work.name]


def result(f, operands):
    """Memory for a result of f, which is not computed for that."""
    return torch.empty(f(*[o.to("meta") if torch.is_tensor(o) else o for o in operands]).shape)


def gelu_erf_into(x, y):
    torch.mul(x, SQRT_HALF, out=y)
    return y.erf_().add_(1).mul_(x).mul_(0.5)


def chain_into(x, scalars, y):
    torch.mul(x, scalars[0], out=y)
    for i, s in enumerate(scalars[1:], 1):
        y.mul_(s) if i % 2 == 0 else y.add_(s)
    return y


def layer_norm_into(work, xs):
    x, w, b = xs
    y, mean, scale = torch.empty_like(x), torch.empty(x.shape[:-1] + (1,)), torch.empty(x.shape[:-1] + (1,))
    op = torch.ops.aten.native_layer_norm.out
    return lambda: op(x, w.shape, w, b, LAYER_NORM_EPS, out0=y, out1=mean, out2=scale)[0]


def eager_into(work, xs):
    """The workload by the library's forms with out= and in place, as a function
    of the step; None where it has none."""
    x, axis = xs[0], work.axis
    if work.name == "gelu-custom":
        return None  # its intermediates are kept by the allocator
    if work.name == "layernorm":
        run = layer_norm_into(work, xs)
        return lambda step: run()
    y = torch.empty_like(x) if work.name.startswith("chain") else result(program(work), xs)
    aten = torch.ops.aten
    return {
        "gelu": lambda step: aten.gelu.out(x, out=y),
        "gelu-tanh": lambda step: aten.gelu.out(x, approximate="tanh", out=y),
        "gelu-erf": lambda step: gelu_erf_into(x, y),
        "softmax": lambda step: torch.softmax(x, axis, out=y),
        "softmax-middle": lambda step: torch.softmax(x, axis, out=y),
        "sum": lambda step: torch.sum(x, dim=(0, 1, 2), out=y),
        "sum-0": lambda step: torch.sum(x, 0, out=y),
        "chain": lambda step: chain_into(x, chain_scalars(0), y),
        "chain-vary": lambda step: chain_into(x, chain_scalars(step), y),
    }.get(work.name, lambda step: torch.mm(*xs, out=y))


def compiled(work, xs):
    """The compiled program as a function of the step. Scalars that vary are a
    tensor, so that they are no constants of the code."""
    f = program(work)
    varies = work.name == "chain-vary"
    if not work.kept:
        g = torch.compile(f)
        return (lambda step: g(*xs, torch.tensor(chain_scalars(step)))) if varies else (lambda step: g(*xs))
    y = result(f, [*xs, chain_scalars(0)] if varies else xs)
    g = torch.compile(lambda y, *xs: y.copy_(f(*xs)))
    return (lambda step: g(y, *xs, torch.tensor(chain_scalars(step)))) if varies else (lambda step: g(y, *xs))


def eager(work, xs):
    run = eager_into(work, xs) if work.kept else None
    if run is not None:
        return run
    f = program(work)
    return (lambda step: f(*xs, chain_scalars(step))) if work.name == "chain-vary" else (lambda step: f(*xs))


def prepare(work):
    torch.set_num_threads(work.threads)
    torch.set_grad_enabled(False)
    torch._dynamo.reset()  # workloads before count towards its limit of compiles
    xs = [torch.from_numpy(x) for x in work.inputs]
    run = (compiled if work.compile else eager)(work, xs)
    return run, lambda y: y.numpy()
