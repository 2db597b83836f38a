"""Writes a model's weights as PyTorch users do, and what the model computes, which the
tests of package nn compare with. It needs torch and safetensors:

    python3 scripts/pytorch_weights.py nn/testdata

pytorch.safetensors is the state_dict of a small network of a convolution, BatchNorm,
attention, an LSTM and a linear layer, after some steps of training. pytorch_io.safetensors
has an input, and the results in evaluation of each layer in turn, computed in float64.
"""

import sys

import torch
from safetensors.torch import save_file
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, stride=2, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.attn = nn.MultiheadAttention(8, 2, batch_first=True)
        self.lstm = nn.LSTM(8, 6, batch_first=True)
        self.head = nn.Linear(6, 3)

    def forward(self, x, seen=None):
        seen = {} if seen is None else seen
        seen["conv"] = self.conv(x)
        seen["bn"] = self.bn(seen["conv"])
        y = seen["bn"].relu().flatten(2).transpose(1, 2)
        seen["attn"] = self.attn(y, y, y, need_weights=False)[0]
        seen["lstm"] = self.lstm(y + seen["attn"])[0]
        seen["head"] = self.head(seen["lstm"][:, -1])
        return seen["head"]


torch.manual_seed(20261127)
torch.set_num_threads(1)
folder = sys.argv[1]
model = Net()
opt = torch.optim.Adam(model.parameters(), 1e-2)
for _ in range(20):
    x = torch.randn(16, 1, 8, 8)
    loss = nn.functional.cross_entropy(model(x), (x.mean((1, 2, 3)) > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()

save_file(model.state_dict(), f"{folder}/pytorch.safetensors")

model.double().eval()
seen = {}
x = torch.randn(2, 1, 8, 8)
with torch.no_grad():
    model(x.double(), seen)
save_file({"x": x} | {name: t.float().contiguous() for name, t in seen.items()}, f"{folder}/pytorch_io.safetensors")
