"""onnxruntime on a model of one workload; kept: inputs and result are bound."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from peer import ERF_A, ERF_P, LAYER_NORM_EPS, SQRT_HALF, chain_scalars

OPSET = 20


def versions():
    return {"onnxruntime": onnxruntime.__version__, "onnx": onnx.__version__}


class Model:
    """Nodes that are added one after another; every op returns its result's name."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def op(self, kind, *operands, **attributes):
        name = f"v{len(self.nodes)}"
        names = [o if isinstance(o, str) else self.constant(o) for o in operands]
        self.nodes.append(helper.make_node(kind, names, [name], **attributes))
        return name

    def constant(self, value):
        name = f"c{len(self.constants)}"
        array = np.asarray(value, np.float32 if isinstance(value, float) else np.int64)
        self.constants.append(onnx.numpy_helper.from_array(array, name))
        return name

    def erf_positive(self, x):
        t = self.op("Reciprocal", self.op("Add", self.op("Mul", self.op("Abs", x), ERF_P), 1.0))
        y = self.op("Mul", t, ERF_A[4])
        for a in reversed(ERF_A[1:4]):
            y = self.op("Mul", self.op("Add", y, a), t)
        y = self.op("Mul", self.op("Add", y, ERF_A[0]), t)
        e = self.op("Exp", self.op("Mul", self.op("Neg", x), x))
        return self.op("Sub", 1.0, self.op("Mul", y, e))

    def erf(self, x):
        negative = self.op("Neg", self.erf_positive(self.op("Neg", x)))
        return self.op("Where", self.op("Greater", x, 0.0), self.erf_positive(x), negative)

    def gelu(self, erf):
        u = erf(self.op("Mul", "x", SQRT_HALF))
        return self.op("Mul", self.op("Mul", "x", self.op("Add", u, 1.0)), 0.5)

    def chain(self, scalars):
        x = "x"
        for i, s in enumerate(scalars):
            x = self.op("Mul" if i % 2 == 0 else "Add", x, s)
        return x

    def of(self, work, names):
        """The result of the workload."""
        if work.name.startswith("matmul"):
            return self.op("MatMul", *names)
        return {
            "gelu": lambda: self.op("Gelu", "x"),
            "gelu-tanh": lambda: self.op("Gelu", "x", approximate="tanh"),
            "gelu-erf": lambda: self.gelu(lambda x: self.op("Erf", x)),
            "gelu-custom": lambda: self.gelu(self.erf),
            "softmax": lambda: self.op("Softmax", "x", axis=work.axis),
            "softmax-middle": lambda: self.op("Softmax", "x", axis=work.axis),
            "layernorm": lambda: self.op("LayerNormalization", *names, axis=-1, epsilon=LAYER_NORM_EPS),
            "sum": lambda: self.op("ReduceSum", "x", keepdims=0),
            "sum-0": lambda: self.op("ReduceSum", "x", [0], keepdims=0),
            "chain": lambda: self.chain(chain_scalars(0)),
            "chain-vary": lambda: self.chain(names[1:]),
        }[work.name]()


def session(work, names, arrays):
    m = Model()
    result = m.of(work, names)
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in zip(names, arrays)]
    output = helper.make_tensor_value_info(result, TensorProto.FLOAT, None)
    graph = helper.make_graph(m.nodes, work.name, inputs, [output], m.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = work.threads, 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def prepare(work):
    varies = work.name == "chain-vary"
    scalars = [np.asarray(s, np.float32) for s in chain_scalars(0)] if varies else []
    arrays = work.inputs + scalars
    names = ["x", *(f"x{i}" for i in range(1, len(arrays)))]
    s = session(work, names, arrays)
    fixed = dict(zip(names, work.inputs))

    def operands(step):
        if not varies:
            return fixed
        return {**fixed, **{n: np.asarray(v, np.float32) for n, v in zip(names[1:], chain_scalars(step))}}

    if not work.kept:
        return (lambda step: s.run(None, operands(step))[0]), np.asarray
    result = s.get_outputs()[0].name
    shape = s.run(None, operands(0))[0].shape
    out = onnxruntime.OrtValue.ortvalue_from_shape_and_type(shape, np.float32, "cpu")
    bound = s.io_binding()
    bound.bind_ortvalue_output(result, out)
    for name, array in fixed.items():
        bound.bind_cpu_input(name, array)

    def run(step):
        given = operands(step)  # lives until the run is over
        for name in given.keys() - fixed.keys():
            bound.bind_cpu_input(name, given[name])
        s.run_with_iobinding(bound)
        return out.numpy() if work.name.startswith("chain") else out

    return run, lambda y: y if isinstance(y, np.ndarray) else y.numpy()
