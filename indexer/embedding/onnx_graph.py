"""ONNX graphs in the making: what the graphs that are written here, not exported, have in common."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import DTypeLike, NDArray
from onnx import helper, numpy_helper

Precision = Literal["float32", "int8"]
Weights = Mapping[str, NDArray[np.float32]]
Shape = tuple[str | int, ...]

INT8_LARGEST = 127
_OPSETS = (("", 20), ("com.microsoft", 1))
_IR_VERSION = 9


class GraphBuilder:
    """Nodes and constants; every method that adds a node returns the name of its output."""

    def __init__(self, weights: Weights, precision: Precision) -> None:
        self.weights = weights
        self._int8 = precision == "int8"
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def node(self, kind: str, *inputs: str, output: str = "", domain: str = "", **attributes: Any) -> str:
        output = output or f"n{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **attributes))
        return output

    def split(self, value: str, parts: int) -> list[str]:
        outputs = [f"n{len(self._nodes)}.{part}" for part in range(parts)]
        self._nodes.append(helper.make_node("Split", [value], outputs, axis=0, num_outputs=parts))
        return outputs

    def constant(self, value: NDArray[Any]) -> str:
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def weight(self, name: str) -> str:
        return self.constant(self.weights[name])

    def norm(self, value: str, name: str, epsilon: float, output: str = "") -> str:
        scale, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.node("LayerNormalization", value, scale, bias, output=output, axis=-1, epsilon=epsilon)

    def named_dense(self, value: str, name: str) -> str:
        return self.dense(value, self.weights[f"{name}.weight"].T, self.weights[f"{name}.bias"])

    def dense(self, value: str, matrix: NDArray[np.float32], bias: NDArray[np.float32]) -> str:
        """value @ matrix + bias, with matrix (n_in, n_out). With int8 its columns are quantised symmetrically, and
        `value` when the graph runs, by its range."""
        if not self._int8:
            product = self.node("MatMul", value, self.constant(matrix.astype(np.float32)))
            return self.node("Add", product, self.constant(bias.astype(np.float32)))
        return self.node(
            "DynamicQuantizeMatMul",
            value,
            *self._quantised(matrix),
            "",  # no zero point: the weights are symmetric
            self.constant(bias.astype(np.float32)),
            domain="com.microsoft",
        )

    def convolution(self, value: str, name: str, distance: int) -> str:
        """A dense layer on each row with those `distance` before and behind it, (n, width) to (n, n_out), with zeros
        beyond the ends: a convolution of width 3 and this dilation.

        With int8 the result is that of `dense` on the three rows, but each is quantised once, and bytes are copied.
        """
        if not self._int8:
            return self.named_dense(self._shifted(value, distance), name)
        number = len(self._nodes)
        quantised, step, zero = (f"n{number}.{part}" for part in ("bytes", "step", "zero"))
        self._nodes.append(helper.make_node("DynamicQuantizeLinear", [value], [quantised, step, zero]))
        matrix, steps = self._quantised(self.weights[f"{name}.weight"].T)
        return self.node(
            "MatMulIntegerToFloat",
            self._shifted(quantised, distance, zero),
            matrix,
            step,
            steps,
            zero,
            "",
            self.weight(f"{name}.bias"),
            domain="com.microsoft",
        )

    def _quantised(self, matrix: NDArray[np.float32]) -> tuple[str, str]:
        """The bytes of a matrix and the steps of its columns."""
        steps = int8_steps(matrix)
        return self.constant(np.rint(matrix / steps).astype(np.int8)), self.constant(steps.astype(np.float32))

    def _shifted(self, value: str, distance: int, zero: str = "") -> str:
        """Beside each row those `distance` before and behind it: (n, width) to (n, 3 x width)."""
        padded = self.node("Pad", value, self.integers(distance, 0, distance, 0), *filter(None, [zero]))
        bounds = ((0, -2 * distance), (distance, -distance), (2 * distance, np.iinfo(np.int32).max))
        parts = [
            self.node("Slice", padded, self.integers(start), self.integers(end), self.integers(0))
            for start, end in bounds
        ]
        return self.node("Concat", *parts, axis=1)

    def model(
        self, name: str, inputs: Mapping[str, tuple[DTypeLike, Shape]], outputs: Mapping[str, Shape]
    ) -> onnx.ModelProto:
        """`outputs` are float32."""
        taken = [
            helper.make_tensor_value_info(each, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), shape)
            for each, (kind, shape) in inputs.items()
        ]
        given = [helper.make_tensor_value_info(each, onnx.TensorProto.FLOAT, shape) for each, shape in outputs.items()]
        graph = helper.make_graph(self._nodes, name, taken, given, self._constants)
        opsets = [helper.make_opsetid(domain, version) for domain, version in _OPSETS]
        return helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)


def int8_steps(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """The step of each column, (n_out,), by which it is quantised symmetrically."""
    steps: NDArray[np.float32] = (np.abs(matrix).max(axis=0) / INT8_LARGEST).clip(min=np.finfo(np.float32).tiny)
    return steps
