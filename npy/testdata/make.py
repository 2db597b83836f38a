"""Writes the files in this folder with NumPy, which no test needs.

They were made with NumPy 2.4.6: python3 make.py
"""

import os

import numpy as np
from numpy.lib import format as npf

os.chdir(os.path.dirname(os.path.abspath(__file__)))

DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


def ramp(dtype, shape):
    """0, 1, 2 … of which every second is negative where that can be."""
    n = np.arange(int(np.prod(shape))).reshape(shape)
    if dtype == "bool":
        return n % 3 == 0
    signed = np.dtype(dtype).kind in "if"
    return np.where(n % 2 == 1, -n if signed else n, n).astype(dtype)


for d in DTYPES:
    x = ramp(d, (2, 3, 4))
    np.save(f"{d}.npy", x)
    np.save(f"{d}_big.npy", x.astype(x.dtype.newbyteorder(">")))
    np.save(f"{d}_fortran.npy", np.asfortranarray(x))

np.save("fortran_big.npy", np.asfortranarray(ramp("float32", (2, 3, 4)).astype(">f4")))
np.save("scalar.npy", np.float32(1.5))
np.save("empty.npy", np.zeros((0, 3), np.int32))
np.save("one.npy", np.arange(5, dtype=np.int64))
np.save("nine_dims.npy", np.zeros((1,) * 9, np.uint8))
np.save("special.npy", np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324], np.float64))
for version in (1, 0), (2, 0), (3, 0):
    with open(f"version{version[0]}.npy", "wb") as f:
        npf.write_array(f, ramp("int32", (2, 3)), version)
with open("two.npy", "wb") as f:
    np.save(f, ramp("int32", (3,)))
    np.save(f, ramp("float32", (2,)))

np.save("complex.npy", np.zeros(2, np.complex64))
np.save("string.npy", np.array(["ab", "c"]))
np.save("bytes.npy", np.array([b"ab", b"c"]))
np.save("record.npy", np.zeros(2, [("a", "<f4"), ("b", "<i4", (2, 2))]))
np.save("object.npy", np.array([None, {}], object), allow_pickle=True)
np.save("date.npy", np.array(["2020-01-01"], "datetime64[D]"))
np.save("longdouble.npy", np.zeros(2, np.longdouble))

arrays = {"weights": ramp("float32", (2, 3)), "bias": ramp("float64", (3,)), "steps": np.int64(7)}
np.savez("stored.npz", **arrays)
np.savez_compressed("compressed.npz", **arrays)
