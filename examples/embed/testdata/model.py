#!/usr/bin/env python3
"""Writes an encoder like BERT as ONNX, with a tokenizer and what onnxruntime computes with it.

    pip install onnx onnxruntime numpy tokenizers
    python3 testdata/model.py testdata/small
    python3 testdata/model.py /tmp/minilm --layers 6 --hidden 384 --heads 12 --inner 1536 --vocab 30522 --positions 512

The graph is the one that exporters of PyTorch write: sizes are read from the inputs,
and layer norm, GELU and attention are their parts. Weights are random, of a fixed seed.
"""

import argparse
import json
import math
import os

import numpy as np
import onnx
import onnxruntime
import tokenizers
from onnx import TensorProto, helper, numpy_helper

WORDS = """the a of to and in is was for on that with as it at by from which this be have not are or an
one two three first last new old small large river water mill stone wheel grain flour morning evening light
dark field forest road bridge house window door garden stream turns runs falls grinds carries waits opens
closes ##s ##ing ##ed ##er ##ly slow quick quiet loud deep cold warm . , ! ? ' -""".split()

SENTENCES = [
    ["the mill turns."],
    ["a quick stream carries the grain to the mill", "the stone waits"],
    ["The wheel of the old mill grinds slowly, and the river runs quietly by it in the morning light!",
     "water", "is this the first road from the bridge to the forest, or the last one?"],
    ["it was cold"],
    ["flour and grain and flour and grain and flour", "doors opened", "windows closed", "unknownword here", "a garden"],
    ["the evening is warm in the field, dark in the deep forest", "two houses"],
]


class Graph:
    """Collects nodes and weights."""

    def __init__(self, seed):
        self.nodes, self.weights, self.count = [], {}, 0
        self.random = np.random.default_rng(seed)

    def op(self, kind, *inputs, **attributes):
        self.count += 1
        out = f"{kind.lower()}_{self.count}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=out, **attributes))
        return out

    def weight(self, name, value):
        self.weights[name] = np.asarray(value)
        return name

    def normal(self, name, *shape, scale):
        return self.weight(name, (self.random.standard_normal(shape) * scale).astype(np.float32))

    def scalar(self, name, value):
        return self.weight(name, np.float32(value))

    def ints(self, *values):
        name = "ints_" + "_".join(str(v).replace("-", "m") for v in values)
        return self.weight(name, np.array(values, np.int64))

    def index(self, value):
        return self.weight(f"index_{value}", np.int64(value))

    def linear(self, name, x, n, m):
        w = self.normal(name + ".weight", n, m, scale=1 / math.sqrt(n))
        return self.op("Add", self.op("MatMul", x, w), self.normal(name + ".bias", m, scale=0.1))

    def norm(self, name, x, n):
        centred = self.op("Sub", x, self.op("ReduceMean", x, axes=[-1]))
        square = self.op("Pow", centred, self.scalar("two", 2))
        deviation = self.op("Sqrt", self.op("Add", self.op("ReduceMean", square, axes=[-1]), self.scalar("epsilon", 1e-12)))
        scaled = self.op("Mul", self.op("Div", centred, deviation), self.weight(name + ".weight", 1 + self.random.standard_normal(n).astype(np.float32) / 10))
        return self.op("Add", scaled, self.normal(name + ".bias", n, scale=0.1))

    def size(self, x, axis):
        return self.op("Unsqueeze", self.op("Gather", self.op("Shape", x), self.index(axis), axis=0), self.ints(0))


def encoder(args):
    g = Graph(args.seed)
    hidden, heads = args.hidden, args.heads
    words = g.op("Gather", g.normal("words", args.vocab, hidden, scale=0.5), "input_ids")
    kinds = g.op("Gather", g.normal("kinds", 2, hidden, scale=0.5), "token_type_ids")
    numbers = g.weight("numbers", np.arange(args.positions, dtype=np.int64).reshape(1, -1))
    position = g.op("Slice", numbers, g.ints(0), g.size("input_ids", 1), g.ints(1))
    places = g.op("Gather", g.normal("places", args.positions, hidden, scale=0.5), position)
    x = g.norm("embeddings.norm", g.op("Add", g.op("Add", words, kinds), places), hidden)

    mask = g.op("Cast", g.op("Unsqueeze", "attention_mask", g.ints(1, 2)), to=TensorProto.FLOAT)
    mask = g.op("Mul", g.op("Sub", g.scalar("one", 1), mask), g.scalar("far", np.finfo(np.float32).min))

    batch, length = g.size("input_ids", 0), g.size("input_ids", 1)
    apart = g.op("Concat", batch, length, g.ints(heads), g.ints(hidden // heads), axis=0)
    together = g.op("Concat", batch, length, g.ints(hidden), axis=0)

    def head(name, x, perm):
        return g.op("Transpose", g.op("Reshape", g.linear(name, x, hidden, hidden), apart), perm=perm)

    for i in range(args.layers):
        name = f"layer.{i}"
        q = head(name + ".query", x, [0, 2, 1, 3])
        k = head(name + ".key", x, [0, 2, 3, 1])
        v = head(name + ".value", x, [0, 2, 1, 3])
        scores = g.op("Div", g.op("MatMul", q, k), g.scalar("root", math.sqrt(hidden // heads)))
        weights = g.op("Softmax", g.op("Add", scores, mask), axis=-1)
        mixed = g.op("Reshape", g.op("Transpose", g.op("MatMul", weights, v), perm=[0, 2, 1, 3]), together)
        x = g.norm(name + ".norm1", g.op("Add", g.linear(name + ".out", mixed, hidden, hidden), x), hidden)
        inner = g.linear(name + ".inner", x, hidden, args.inner)
        erf = g.op("Add", g.op("Erf", g.op("Div", inner, g.scalar("root2", math.sqrt(2)))), g.scalar("one", 1))
        inner = g.op("Mul", g.op("Mul", inner, erf), g.scalar("half", 0.5))
        x = g.norm(name + ".norm2", g.op("Add", g.linear(name + ".outer", inner, args.inner, hidden), x), hidden)
    g.nodes[-1].output[0] = "last_hidden_state"

    axes = ["batch_size", "sequence_length"]
    graph = helper.make_graph(
        g.nodes, "encoder",
        [helper.make_tensor_value_info(n, TensorProto.INT64, axes) for n in ("input_ids", "attention_mask", "token_type_ids")],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, axes + [hidden])],
        [numpy_helper.from_array(v, n) for n, v in g.weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def tokenizer(size):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [c for c in "abcdefghijklmnopqrstuvwxyz"]
    words = list(dict.fromkeys(special + WORDS + letters))
    assert len(words) <= size, f"a vocabulary of {size} has no room for {len(words)} words"
    added = [{"id": i, "content": w, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
             for i, w in enumerate(special)]
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
            "pair": [],
            "special_tokens": {w: {"id": w, "ids": [words.index(w)], "tokens": [w]} for w in ("[CLS]", "[SEP]")},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                  "vocab": {w: i for i, w in enumerate(words)}},
    }


def expected(path):
    """What onnxruntime gives for each batch: the mean of a sentence's tokens, of length 1."""
    session = onnxruntime.InferenceSession(os.path.join(path, "model.onnx"), providers=["CPUExecutionProvider"])
    words = tokenizers.Tokenizer.from_file(os.path.join(path, "tokenizer.json"))
    batches = []
    for sentences in SENTENCES:
        encoded = [words.encode(s).ids for s in sentences]
        length = max(map(len, encoded))
        ids, mask = np.zeros((2, len(encoded), length), np.int64)
        for row, e in enumerate(encoded):
            ids[row, :len(e)], mask[row, :len(e)] = e, 1
        hidden, = session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})
        mean = (hidden.astype(np.float64) * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        mean /= np.linalg.norm(mean, axis=1, keepdims=True)
        batches.append({"sentences": sentences, "tokens": encoded, "embeddings": [[float(str(v)) for v in row] for row in mean.astype(np.float32)]})
    return {"onnxruntime": onnxruntime.__version__, "batches": batches}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", help="the folder to write to")
    for name, value in dict(layers=2, hidden=32, heads=4, inner=64, vocab=160, positions=64, seed=1).items():
        parser.add_argument("--" + name, type=int, default=value)
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    onnx.save(encoder(args), os.path.join(args.out, "model.onnx"))
    files = {"tokenizer.json": tokenizer(args.vocab), "config.json": {"model_type": "bert", "max_position_embeddings": args.positions}}
    for name, content in files.items():
        with open(os.path.join(args.out, name), "w") as f:
            json.dump(content, f, separators=(",", ":"))
            f.write("\n")
    with open(os.path.join(args.out, "expected.json"), "w") as f:
        want = expected(args.out)
        f.write(json.dumps(want, separators=(",", ":")).replace('{"sentences"', '\n{"sentences"') + "\n")


if __name__ == "__main__":
    main()
