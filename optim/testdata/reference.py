"""Writes rules.json, schedules.json and training.json: what PyTorch makes of the same numbers.

    python -m venv /tmp/torch && /tmp/torch/bin/pip install torch numpy
    /tmp/torch/bin/python reference.py

Lion and LAMB, which PyTorch does not have, are written here as their papers have them.
"""

import json
import warnings

import torch

warnings.filterwarnings("ignore")
SHAPES = [(2, 3), (5,), (), (3, 1, 2)]
STEPS = 10
KEPT = [1, 2, 10]


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_((m * b1 + p.grad * (1 - b1)).sign(), alpha=-group["lr"])
                m.mul_(b2).add_(p.grad, alpha=1 - b2)


class Lamb(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                s = self.state[p]
                if not s:
                    s["t"], s["m"], s["v"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                s["t"] += 1
                s["m"].lerp_(p.grad, 1 - b1)
                s["v"].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                m = s["m"] / (1 - b1 ** s["t"])
                v = s["v"] / (1 - b2 ** s["t"])
                d = m / (v.sqrt() + group["eps"]) + group["weight_decay"] * p
                long, dlong = p.norm(), d.norm()
                ratio = long / dlong if long > 0 and dlong > 0 else 1.0
                p.sub_(group["lr"] * ratio * d)


o = torch.optim
RULES = {
    "SGD": (o.SGD, {}),
    "SGD lr=0.1 momentum=0.9": (o.SGD, dict(lr=0.1, momentum=0.9)),
    "SGD lr=0.1 momentum=0.9 dampening=0.3 decay=0.05": (o.SGD, dict(lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.05)),
    "SGD lr=0.1 momentum=0.9 nesterov decay=0.05": (o.SGD, dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.05)),
    "Adam": (o.Adam, {}),
    "Adam lr=0.1 betas=0.3,0.7 eps=0.001 decay=0.1": (o.Adam, dict(lr=0.1, betas=(0.3, 0.7), eps=1e-3, weight_decay=0.1)),
    "Adam lr=0.1 amsgrad": (o.Adam, dict(lr=0.1, amsgrad=True)),
    "Adam lr=0.1 betas=0,0.5": (o.Adam, dict(lr=0.1, betas=(0.0, 0.5))),
    "AdamW": (o.AdamW, {}),
    "AdamW lr=0.1 decay=0.2 amsgrad": (o.AdamW, dict(lr=0.1, weight_decay=0.2, amsgrad=True)),
    "RMSProp": (o.RMSprop, {}),
    "RMSProp lr=0.1 alpha=0.8 eps=0.01 decay=0.1": (o.RMSprop, dict(lr=0.1, alpha=0.8, eps=0.01, weight_decay=0.1)),
    "RMSProp lr=0.1 momentum=0.5": (o.RMSprop, dict(lr=0.1, momentum=0.5)),
    "RMSProp lr=0.1 centered": (o.RMSprop, dict(lr=0.1, centered=True)),
    "RMSProp lr=0.1 centered momentum=0.5": (o.RMSprop, dict(lr=0.1, centered=True, momentum=0.5)),
    "Adagrad": (o.Adagrad, {}),
    "Adagrad lr=0.1 ratedecay=0.2 initial=0.5 eps=0.001 decay=0.1": (
        o.Adagrad, dict(lr=0.1, lr_decay=0.2, initial_accumulator_value=0.5, eps=1e-3, weight_decay=0.1)),
    "Lion": (Lion, {}),
    "Lion lr=0.1 betas=0.8,0.9 decay=0.1": (Lion, dict(lr=0.1, betas=(0.8, 0.9), weight_decay=0.1)),
    "LAMB": (Lamb, {}),
    "LAMB lr=0.1 decay=0.1": (Lamb, dict(lr=0.1, weight_decay=0.1)),
    "Adam lr=0.1 clipnorm=1": (o.Adam, dict(lr=0.1)),
    "SGD lr=0.1 clipnorm=0.5": (o.SGD, dict(lr=0.1)),
    "SGD lr=0.1 clipnorm=1000": (o.SGD, dict(lr=0.1)),
    "SGD lr=0.1 clipvalue=0.3": (o.SGD, dict(lr=0.1)),
    "SGD lr=0.1 clipvalue=0.9 clipnorm=2": (o.SGD, dict(lr=0.1)),
}


def clip(name, params):
    said = dict(w.split("=") for w in name.split() if w.startswith("clip"))
    if "clipvalue" in said:
        torch.nn.utils.clip_grad_value_(params, float(said["clipvalue"]))
    if "clipnorm" in said:
        torch.nn.utils.clip_grad_norm_(params, float(said["clipnorm"]))


def rules():
    torch.manual_seed(1)
    start = [torch.randn(s, dtype=torch.float32) for s in SHAPES]
    grads = [[torch.randn(s, dtype=torch.float32) for s in SHAPES] for _ in range(STEPS)]
    flat = lambda ts: [x for t in ts for x in t.reshape(-1).tolist()]
    out = {"shapes": SHAPES, "kept": KEPT, "start": flat(start), "grads": [flat(g) for g in grads], "cases": []}
    for name, (make, args) in RULES.items():
        case = {"name": name}
        for dt, key in ((torch.float32, "float32"), (torch.float64, "float64")):
            params = [torch.nn.Parameter(t.to(dt).clone()) for t in start]
            opt = make(params, **args)
            got = []
            for i, gs in enumerate(grads):
                for p, g in zip(params, gs):
                    p.grad = g.to(dt).clone()
                clip(name, params)
                opt.step()
                if i + 1 in KEPT:
                    got.append(flat(params))
            case[key] = got
        out["cases"].append(case)
    return out


def schedules():
    s = o.lr_scheduler
    made = {
        "constant": lambda p: s.ConstantLR(p, factor=1.0),
        "step": lambda p: s.StepLR(p, step_size=7, gamma=0.5),
        "multistep": lambda p: s.MultiStepLR(p, milestones=[3, 11, 12], gamma=0.1),
        "exponential": lambda p: s.ExponentialLR(p, gamma=0.9),
        "linear": lambda p: s.LinearLR(p, start_factor=0.25, end_factor=0.75, total_iters=8),
        "cosine": lambda p: s.CosineAnnealingLR(p, T_max=30, eta_min=0.01),
        "restarts": lambda p: s.CosineAnnealingWarmRestarts(p, T_0=4, T_mult=2, eta_min=0.01),
        "restarts same": lambda p: s.CosineAnnealingWarmRestarts(p, T_0=5, T_mult=1, eta_min=0),
        "warmup cosine": lambda p: s.SequentialLR(
            p, [s.LinearLR(p, start_factor=0.1, total_iters=6), s.CosineAnnealingLR(p, T_max=24)], milestones=[6]),
        "onecycle": lambda p: s.OneCycleLR(p, max_lr=0.5, total_steps=30),
        "onecycle linear": lambda p: s.OneCycleLR(
            p, max_lr=0.5, total_steps=30, anneal_strategy="linear", pct_start=0.25, div_factor=10, final_div_factor=100),
        "onecycle three": lambda p: s.OneCycleLR(p, max_lr=0.5, total_steps=30, three_phase=True),
    }
    out = {}
    for name, make in made.items():
        opt = o.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
        sched = make(opt)
        got = []
        for i in range(30):
            got.append(opt.param_groups[0]["lr"])
            opt.step()
            if i < 29:
                sched.step()
        out[name] = got
    return out


def training():
    """A network learns two classes for some steps: losses, and weights at the end."""
    torch.manual_seed(2)
    flat = lambda ts: [x for t in ts for x in t.detach().reshape(-1).tolist()]
    start = [torch.randn(s) * 0.5 for s in [(8, 5), (8,), (3, 8), (3,)]]
    x, y = torch.randn(7, 5), torch.randint(0, 3, (7,))
    out = {"start": flat(start), "x": flat([x]), "y": y.tolist()}
    for dt, key in ((torch.float32, "float32"), (torch.float64, "float64")):
        net = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).to(dt)
        with torch.no_grad():
            for p, t in zip(net.parameters(), start):
                p.copy_(t)
        opt = o.AdamW(net.parameters(), lr=0.1, weight_decay=0.1)
        sched = o.lr_scheduler.CosineAnnealingLR(opt, T_max=20)
        losses = []
        for _ in range(20):
            loss = torch.nn.functional.cross_entropy(net(x.to(dt)), y)
            losses.append(loss.item())
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.2)
            opt.step()
            sched.step()
        out[key] = {"losses": losses, "end": flat(net.parameters())}
    return out


with open("training.json", "w") as f:
    json.dump(training(), f, separators=(",", ":"))
with open("rules.json", "w") as f:
    json.dump(rules(), f, separators=(",", ":"))
with open("schedules.json", "w") as f:
    json.dump(schedules(), f, indent=0)
