"""The model, batch and optimizer of examples/sorter in PyTorch, whose figures stand beside it:

python3 scripts/sorter.py --steps 500
"""

import argparse
import math
import time

import torch
from torch import nn

F = nn.functional


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, h):
        n = self.norm1(h)
        h = h + self.attention(n, n, n, need_weights=False)[0]
        return h + self.down(F.gelu(self.up(self.norm2(h))))


class Sorter(nn.Module):
    def __init__(self, length, width, heads, layers):
        super().__init__()
        self.digits, self.places = nn.Embedding(10, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x):
        h = self.digits(x) + self.places(torch.arange(x.shape[1]))
        return self.out(self.norm(self.blocks(h)))


def sequences(n, length):
    x = torch.randint(0, 10, (n, length))
    return x, x.sort(-1).values


def main():
    p = argparse.ArgumentParser()
    for name, value in {"length": 10, "batch": 128, "steps": 500, "width": 64, "heads": 4, "layers": 2, "tested": 2000, "threads": 2, "seed": 1}.items():
        p.add_argument("--" + name, type=int, default=value)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--compile", action="store_true", help="torch.compile the model")
    o = p.parse_args()
    torch.manual_seed(o.seed)
    torch.set_num_threads(o.threads)
    model = Sorter(o.length, o.width, o.heads, o.layers)
    step = torch.compile(model) if o.compile else model
    opt = torch.optim.AdamW(model.parameters(), o.lr)
    warm = o.steps // 20
    rate = torch.optim.lr_scheduler.LambdaLR(
        opt, lambda i: i / warm if i < warm else 0.5 * (1 + math.cos(math.pi * (i - warm) / o.steps)))
    took, processor = [], []
    began = time.perf_counter()
    for i in range(o.steps):
        at, used = time.perf_counter(), time.process_time()
        x, y = sequences(o.batch, o.length)
        loss = F.cross_entropy(step(x).flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1)
        opt.step()
        rate.step()
        took.append(time.perf_counter() - at)
        processor.append(time.process_time() - used)
        if i % 50 == 49:
            print(f"step {i + 1:5d}  loss {loss.item():.4f}")
    print(f"{time.perf_counter() - began:.1f} s, a step {1e3 * torch.tensor(took).median():.2f} ms, "
          f"processor {1e3 * torch.tensor(processor).median():.2f} ms (medians)")
    with torch.no_grad():
        x, y = sequences(o.tested, o.length)
        right = (model.eval()(x).argmax(-1) == y).all(-1).float().mean()
    print(f"{100 * right:.2f} % of {o.tested} new sequences sorted")


if __name__ == "__main__":
    main()
