"""Parts of graphs against what they compute, written plainly."""

from typing import Literal

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

from indexer.embedding.onnx_encoder import single_threaded
from indexer.embedding.onnx_graph import GraphBuilder

WIDTH, GIVEN = 6, 5
CHANCE = np.random.default_rng(2)
WEIGHTS = {
    "mix.weight": CHANCE.normal(size=(GIVEN, 3 * WIDTH)).astype(np.float32),
    "mix.bias": CHANCE.normal(size=GIVEN).astype(np.float32),
}


def run(graph: GraphBuilder, width: int, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    model = graph.model("part", {"rows": (np.float32, ("n", width))}, {"made": ("n", GIVEN)})
    session = onnxruntime.InferenceSession(model.SerializeToString(), single_threaded())
    made: NDArray[np.float32] = session.run(["made"], {"rows": rows})[0]
    return made


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize(("count", "distance"), [(1, 1), (3, 4), (9, 2)])
def test_a_convolution_is_a_dense_layer_on_rows_and_their_neighbours(
    precision: Literal["float32", "int8"], count: int, distance: int
) -> None:
    rows = CHANCE.normal(size=(count, WIDTH)).astype(np.float32)
    zeros = np.zeros((distance, WIDTH), np.float32)
    padded = np.concatenate([zeros, rows, zeros])
    around = np.concatenate([padded[at : at + count] for at in (0, distance, 2 * distance)], axis=1)
    convolved, plain = GraphBuilder(WEIGHTS, precision), GraphBuilder(WEIGHTS, precision)
    convolved.node("Identity", convolved.convolution("rows", "mix", distance), output="made")
    plain.node("Identity", plain.named_dense("rows", "mix"), output="made")
    expected = run(plain, 3 * WIDTH, around)
    np.testing.assert_allclose(run(convolved, WIDTH, rows), expected, rtol=1e-5, atol=1e-5)
