"""Writes the files in this folder with the Python package, which no test needs.

They were made with safetensors 0.8.0, NumPy 2.4.6, ml_dtypes 0.6.0: python3 make.py
"""

import json
import os
import struct

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

os.chdir(os.path.dirname(os.path.abspath(__file__)))

DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


def ramp(dtype, shape):
    """0, 1, 2 … of which every second is negative where that can be."""
    n = np.arange(int(np.prod(shape))).reshape(shape)
    if dtype == "bool":
        return n % 3 == 0
    signed = np.dtype(dtype).kind in "if"
    return np.where(n % 2 == 1, -n if signed else n, n).astype(dtype)


every = {d: ramp(d, (2, 3, 4)) for d in DTYPES}
every["scalar"] = np.array(1.5, np.float32)
every["empty"] = np.zeros((0, 3), np.int32)
save_file(every, "every.safetensors", {"format": "np"})
save_file({d: ramp(d, (2, 3)) for d in ("bool", "float32", "int32", "float64", "int64", "uint8")}, "first.safetensors")
save_file({}, "none.safetensors")
save_file({"a\"\\\n\u00e9\U0001f600": ramp("int32", (2,))}, "names.safetensors")


def by_hand(path, header, data):
    """For dtypes that NumPy does not have."""
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


values = [0.0, -1.0, 1.5, 3.140625]
half = np.array(values, ml_dtypes.bfloat16).tobytes()
eight = np.array(values, ml_dtypes.float8_e4m3fn).tobytes()
by_hand("bfloat16.safetensors", {"x": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]}}, half)
by_hand(
    "float8.safetensors",
    {
        "x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        "y": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [8, 12]},
    },
    ramp("float32", (2,)).tobytes() + eight,
)
