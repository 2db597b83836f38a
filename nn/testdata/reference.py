"""Writes what the tests of package nn compare with: PyTorch's results, computed in
float64 from float32 inputs and rounded once. Run it in this folder; it needs PyTorch.

layers.safetensors has for each case, by name: state.* before, in.*, out.*, the
derivatives of sum(out.0 * seed) by inputs and weights as grad.*, and buffers that
training changed as after.*. losses.safetensors has the same of losses. models.safetensors
has whole models, whose loss is a mean cross-entropy. mlp.safetensors is a state_dict.
"""

import json
import math
import struct

import torch
from torch import nn
from torch.nn import functional as F

KINDS = {torch.float32: "F32", torch.int64: "I64", torch.int32: "I32", torch.bool: "BOOL"}
torch.manual_seed(20261125)
torch.set_num_threads(1)


def save(path, tensors):
    header, at, data = {}, 0, []
    for name, t in sorted(tensors.items(), key=lambda e: (-e[1].element_size(), e[0])):
        t = t.detach().contiguous()
        if t.dtype == torch.float64:
            t = t.float()
        raw = t.numpy().tobytes()
        header[name] = {"dtype": KINDS[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + len(raw)]}
        at += len(raw)
        data.append(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def rand(*shape):
    return torch.randn(*shape)


def wide(t):
    return t.double() if t.is_floating_point() else t


def perturb(module):
    """Weights and statistics that are no ones and zeros."""
    with torch.no_grad():
        for name, p in list(module.named_parameters()) + list(module.named_buffers()):
            if not p.is_floating_point():
                p.fill_(3)
            elif name.endswith("running_var"):
                p.copy_(torch.rand_like(p) + 0.5)
            elif p.ndim == 1:
                p.copy_(p + 0.3 * torch.randn_like(p))


layers = {}


def case(name, module, *inputs, call=None, train=True, out=layers, seeded=True):
    """A module, or a function, on inputs; call says how, if not simply."""
    call = call or (lambda m, *xs: m(*xs))
    keep = lambda key, t: out.__setitem__(f"{name}/{key}", t.detach().clone())
    params, buffers = {}, {}
    if isinstance(module, nn.Module):
        perturb(module)
        for key, t in module.state_dict().items():
            keep("state." + key, t)
        module.double()
        module.train(train)
        params = dict(module.named_parameters())
        buffers = dict(module.named_buffers())
    xs = []
    for i, x in enumerate(inputs):
        keep(f"in.{i}", x)
        x = wide(x)
        xs.append(x.requires_grad_() if x.is_floating_point() else x)
    results = call(module, *xs)
    results = results if isinstance(results, tuple) else (results,)
    for i, r in enumerate(results):
        keep(f"out.{i}", r)
    if seeded:
        seed = rand(*results[0].shape)
        keep("seed", seed)
        loss = (results[0] * seed.double()).sum()
    else:
        loss = results[0]
    wrt = {f"in.{i}": x for i, x in enumerate(xs) if x.requires_grad} | params
    grads = torch.autograd.grad(loss, list(wrt.values()), allow_unused=True)
    for (key, x), g in zip(wrt.items(), grads):
        if g is not None:
            keep("grad." + key, g)
    if train:
        for key, t in buffers.items():
            keep("after." + key, t)


case("linear", nn.Linear(5, 4), rand(2, 3, 5))
case("linear_nobias", nn.Linear(5, 4, bias=False), rand(5))
case("conv1d", nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2), rand(2, 4, 9))
case("conv2d", nn.Conv2d(3, 4, (3, 2), stride=(2, 1), padding=(1, 0)), rand(2, 3, 7, 6))
case("conv2d_groups", nn.Conv2d(4, 4, 3, dilation=2, groups=4, bias=False), rand(2, 4, 8, 7))
case("convtranspose1d", nn.ConvTranspose1d(3, 2, 4, stride=3), rand(2, 3, 5))
case("convtranspose2d", nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), rand(2, 4, 4, 3))
for train in True, False:
    mode = "train" if train else "eval"
    case(f"batchnorm1d_{mode}", nn.BatchNorm1d(3), rand(5, 3) + 1, train=train)
    case(f"batchnorm1d_length_{mode}", nn.BatchNorm1d(3, momentum=0.3, eps=1e-3), rand(5, 3, 4), train=train)
    case(f"batchnorm2d_{mode}", nn.BatchNorm2d(3), rand(2, 3, 4, 5) * 2 - 1, train=train)
    case(f"batchnorm2d_plain_{mode}", nn.BatchNorm2d(3, affine=False), rand(2, 3, 4, 5), train=train)
case("layernorm", nn.LayerNorm(6), rand(2, 3, 6))
case("layernorm_two", nn.LayerNorm([3, 6]), rand(2, 3, 6))
case("layernorm_plain", nn.LayerNorm(6, elementwise_affine=False), rand(2, 6))
case("rmsnorm", nn.RMSNorm(6), rand(2, 3, 6))
case("groupnorm", nn.GroupNorm(2, 6), rand(3, 6, 4))
case("embedding", nn.Embedding(7, 3), torch.tensor([[1, 6, 1], [0, 2, 1]]))
case("embedding_padding", nn.Embedding(7, 3, padding_idx=1), torch.tensor([[1, 6, 1], [0, 2, 1]]))

attend = lambda **kw: lambda m, q, k=None, v=None, *more: m(
    q, q if k is None else k, q if v is None else v, need_weights=False,
    **{key: more[i] if isinstance(i, int) else i for key, i in kw.items()})[0]
case("attention", nn.MultiheadAttention(8, 2, batch_first=True), rand(2, 5, 8), call=attend())
case("attention_nobias", nn.MultiheadAttention(8, 4, bias=False, batch_first=True), rand(2, 5, 8), call=attend())
hidden = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
case("attention_causal", nn.MultiheadAttention(8, 2, batch_first=True), rand(2, 5, 8), call=attend(attn_mask=hidden))
padded = torch.tensor([[False] * 4, [False, False, True, True]])
case("attention_cross", nn.MultiheadAttention(8, 2, batch_first=True), rand(2, 3, 8), rand(2, 4, 8), rand(2, 4, 8), padded,
     call=attend(key_padding_mask=0))
case("attention_mask", nn.MultiheadAttention(8, 2, batch_first=True), rand(2, 3, 8), rand(2, 4, 8), rand(2, 4, 8), rand(3, 4),
     call=attend(attn_mask=0))


def rotate(_, x):
    n, d = x.shape[-2:]
    turns = torch.tensor([10000.0 ** (-2 * i / d) for i in range(d // 2)]).double()
    angle = torch.arange(n).double()[:, None] * torch.cat([turns, turns])
    half = torch.cat([-x[..., d // 2:], x[..., :d // 2]], -1)
    return x * angle.cos() + half * angle.sin()


case("rotary", None, rand(2, 3, 7, 6), call=rotate)
case("gru", nn.GRU(4, 3), rand(5, 2, 4))
case("gru_deep", nn.GRU(4, 3, num_layers=2, bidirectional=True, batch_first=True), rand(2, 5, 4), rand(4, 2, 3))
case("gru_nobias", nn.GRU(4, 3, bias=False), rand(5, 2, 4))
lstm = lambda m, x, *s: (lambda r: (r[0], *r[1]))(m(x, s if s else None))
case("lstm", nn.LSTM(4, 3), rand(5, 2, 4), call=lstm)
case("lstm_deep", nn.LSTM(4, 3, num_layers=2, bidirectional=True, batch_first=True), rand(2, 5, 4), rand(4, 2, 3), rand(4, 2, 3),
     call=lstm)
case("maxpool1d", nn.MaxPool1d(3), rand(2, 3, 10))
case("maxpool2d", nn.MaxPool2d(2), rand(2, 3, 6, 5))
case("maxpool2d_moved", nn.MaxPool2d((3, 2), stride=(1, 2), padding=(1, 0), dilation=(2, 1)), rand(2, 3, 6, 5))
case("avgpool1d", nn.AvgPool1d(2, stride=1), rand(2, 3, 6))
case("avgpool2d", nn.AvgPool2d(2), rand(2, 3, 6, 5))
case("avgpool2d_padded", nn.AvgPool2d(3, stride=2, padding=1), rand(2, 3, 6, 5))
case("avgpool2d_exclude", nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False), rand(2, 3, 6, 5))
case("globalavgpool", None, rand(2, 3, 4, 5), call=lambda _, x: x.mean((2, 3)))
for name, f in {
    "relu": F.relu, "gelu": F.gelu, "gelutanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "tanh": torch.tanh,
    "sigmoid": torch.sigmoid, "softplus": F.softplus, "leakyrelu": lambda x: F.leaky_relu(x, 0.1),
    "elu": lambda x: F.elu(x, 1.5), "softmax": lambda x: F.softmax(x, 1), "flatten": lambda x: x.flatten(1),
}.items():
    case(name, None, rand(2, 5, 3) * 2, call=lambda _, x: f(x))
case("sequential", nn.Sequential(nn.Conv2d(1, 2, 3, padding=1, bias=False), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 3)),
     rand(3, 1, 4, 4))
save("layers.safetensors", layers)

losses = {}


def loss(name, f, *inputs):
    """A loss with its three reductions."""
    for how in "mean", "sum", "none":
        case(f"{name}_{how}", None, *inputs, call=lambda _, *xs: f(how, *xs), out=losses, seeded=how == "none")


logits, labels = rand(6, 5), torch.tensor([0, 4, 2, 2, 1, 3])
some = torch.tensor([0, -100, 2, 2, -100, 3])
weights = torch.rand(5) + 0.5
wide_weights = weights.double()
losses["weights"] = weights
loss("crossentropy", lambda r, x, y: F.cross_entropy(x, y, reduction=r), logits, labels)
loss("crossentropy_ignore", lambda r, x, y: F.cross_entropy(x, y, reduction=r), logits, some)
loss("crossentropy_weights", lambda r, x, y: F.cross_entropy(x, y, wide_weights, reduction=r), logits, some)
loss("crossentropy_smooth", lambda r, x, y: F.cross_entropy(x, y, label_smoothing=0.1, reduction=r), logits, some)
loss("crossentropy_all", lambda r, x, y: F.cross_entropy(x, y, wide_weights, label_smoothing=0.1, reduction=r), logits, some)
loss("crossentropy_soft", lambda r, x, y: F.cross_entropy(x, y, wide_weights, label_smoothing=0.1, reduction=r), logits,
     F.softmax(rand(6, 5), -1))
loss("crossentropy_image", lambda r, x, y: F.cross_entropy(x, y, reduction=r), rand(2, 5, 3, 2), torch.randint(5, (2, 3, 2)))
loss("nll", lambda r, x, y: F.nll_loss(x, y, reduction=r), F.log_softmax(logits, -1), labels)
loss("nll_all", lambda r, x, y: F.nll_loss(x, y, wide_weights, reduction=r), F.log_softmax(logits, -1), some)
loss("bce", lambda r, x, y: F.binary_cross_entropy_with_logits(x, y, reduction=r), rand(4, 3) * 4, torch.rand(4, 3))
loss("bce_pos", lambda r, x, y, w: F.binary_cross_entropy_with_logits(x, y, pos_weight=w.detach(), reduction=r), rand(4, 3) * 4, torch.rand(4, 3),
     torch.tensor([0.5, 2, 3]))
loss("mse", lambda r, x, y: F.mse_loss(x, y, reduction=r), rand(4, 3), rand(4, 3))
loss("l1", lambda r, x, y: F.l1_loss(x, y, reduction=r), rand(4, 3), rand(4, 3))
loss("huber", lambda r, x, y: F.huber_loss(x, y, delta=0.7, reduction=r), rand(4, 3), rand(4, 3))
loss("smoothl1", lambda r, x, y: F.smooth_l1_loss(x, y, beta=0.7, reduction=r), rand(4, 3), rand(4, 3))
chances = F.softmax(rand(4, 3), -1)
chances[0] = torch.tensor([0.0, 0.25, 0.75])
loss("kldiv", lambda r, x, y: F.kl_div(x, y.detach(), reduction=r), F.log_softmax(rand(4, 3), -1), chances)
loss("kldiv_log", lambda r, x, y: F.kl_div(x, y, log_target=True, reduction=r), F.log_softmax(rand(4, 3), -1), F.log_softmax(rand(4, 3), -1))
case("kldiv_batch", None, F.log_softmax(rand(4, 3), -1), chances, call=lambda _, x, y: F.kl_div(x, y.detach(), reduction="batchmean"),
     out=losses, seeded=False)
save("losses.safetensors", losses)

models = {}


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(12, 16), nn.Linear(16, 16), nn.Linear(16, 5)])

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)


class Block(nn.Module):
    """A residual block, as ResNet has it."""

    def __init__(self, n, m, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(n, m, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(m)
        self.conv2 = nn.Conv2d(m, m, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(m)
        self.downsample = nn.Sequential(nn.Conv2d(n, m, 1, stride, bias=False), nn.BatchNorm2d(m)) if stride > 1 else None

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (self.downsample(x) if self.downsample else x))


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(4)
        self.blocks = nn.Sequential(Block(4, 4, 1), Block(4, 6, 2))
        self.fc = nn.Linear(6, 5)

    def forward(self, x):
        return self.fc(self.blocks(torch.relu(self.bn1(self.conv1(x)))).mean((2, 3)))


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 6)
        self.gru = nn.GRU(6, 8, batch_first=True)
        self.out = nn.Linear(8, 5)

    def forward(self, x):
        return self.out(self.gru(self.embed(x))[0][:, -1])


class GPTBlock(nn.Module):
    def __init__(self, n, heads):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n)
        self.attn = nn.MultiheadAttention(n, heads, batch_first=True)
        self.ln_2 = nn.LayerNorm(n)
        self.fc = nn.Linear(n, 4 * n)
        self.proj = nn.Linear(4 * n, n)

    def forward(self, x):
        t = x.shape[1]
        hide = torch.triu(torch.ones(t, t, dtype=torch.bool), 1)
        y = self.ln_1(x)
        x = x + self.attn(y, y, y, attn_mask=hide, need_weights=False)[0]
        return x + self.proj(F.gelu(self.fc(self.ln_2(x))))


class GPT(nn.Module):
    """With the output's weight tied to the table of tokens."""

    def __init__(self, vocabulary=11, n=12, heads=3, depth=2, context=7):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, n)
        self.wpe = nn.Embedding(context, n)
        self.h = nn.ModuleList([GPTBlock(n, heads) for _ in range(depth)])
        self.ln_f = nn.LayerNorm(n)

    def forward(self, x):
        y = self.wte(x) + self.wpe(torch.arange(x.shape[1]))
        for block in self.h:
            y = block(y)
        return self.ln_f(y) @ self.wte.weight.T


def model(name, module, x, y):
    def call(m, *xs):
        logits = m(xs[0])
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), xs[1].reshape(-1)), logits

    case(name, module, x, y, call=call, out=models, seeded=False)


model("mlp", MLP(), rand(6, 12), torch.randint(5, (6,)))
model("cnn", CNN(), rand(4, 3, 8, 8), torch.randint(5, (4,)))
model("gru", Reader(), torch.randint(20, (3, 6)), torch.randint(5, (3,)))
model("gpt", GPT(), torch.randint(11, (2, 7)), torch.randint(11, (2, 7)))
save("models.safetensors", models)
save("mlp.safetensors", {key[len("mlp/state."):]: t for key, t in models.items() if key.startswith("mlp/state.")})
