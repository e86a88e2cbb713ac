"""What the encoder made of a text: its vector, and the entities that were tagged in the same run."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class EncodedText(NamedTuple):
    """`vector` is (dimension,) float32, L2-normalised; `spans` are those of `entity_mentions.encode_spans`, None where
    no tagger looked at the text."""

    vector: NDArray[np.float32]
    spans: bytes | None = None
