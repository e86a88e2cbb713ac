"""A cross-encoder on this machine, by sentence-transformers, in torch."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.embedding.encoder import encodable
from query_api.rerankers import RerankerRefused, TextsNotScored, checked
from query_api.settings import RerankerSettings
from schemas.errors import install_extra

BATCH_TEXTS = 16
_HEADS = ("ForSequenceClassification", "ForCausalLM", "ForConditionalGeneration")
_PROBE = ("Is this a question?", "This is a text.")


class CrossEncoderReranker:
    """A model from a folder, or by its name from what this machine has downloaded before; never from a hub.

    A question's texts are scored together, those of about the same length side by side.
    """

    at_once = 1  # a model on the processor has use for all of it

    def __init__(self, settings: RerankerSettings) -> None:
        """Takes ten seconds and more, most of them to import torch. Raises RerankerRefused."""
        self.name = settings.model or ""
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        try:
            from sentence_transformers import CrossEncoder
        except ImportError as error:
            raise RerankerRefused(
                f"The re-ranker {self.name!r} runs in torch, which is not installed: {install_extra('torch')}."
            ) from error
        try:
            self._model: Any = CrossEncoder(self.name, device="cpu", local_files_only=True)
            probed = np.shape(self._predicted([_PROBE]))
        except Exception as error:
            raise RerankerRefused(
                f"The re-ranker {self.name!r} cannot be loaded ({type(error).__name__}): set THALWEG_RERANKER__MODEL "
                "to a folder that holds a cross-encoder, or to the name of one this machine has downloaded before."
            ) from error
        declared = getattr(getattr(self._model, "config", None), "architectures", None) or ()
        if declared and not any(name.endswith(_HEADS) for name in declared):  # the library gives it a head of chance
            raise RerankerRefused(
                f"The model {self.name!r} is not a cross-encoder but {declared[0]}: set THALWEG_RERANKER__MODEL to one "
                "that was trained to score a question with a text."
            )
        if probed != (1,):
            raise RerankerRefused(
                f"The model {self.name!r} gives several numbers for a text, so it is not a re-ranker: set "
                "THALWEG_RERANKER__MODEL to a cross-encoder with one."
            )

    def scores(self, question: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """(n_texts,) as the model scores them. Raises TextsNotScored for whatever its libraries fail on."""
        if not texts:
            return np.zeros(0)
        encodable_question = encodable(question)
        try:
            predicted = self._predicted([(encodable_question, encodable(text)) for text in texts])
        except Exception as error:
            raise TextsNotScored(f"The re-ranker {self.name!r} failed ({type(error).__name__}).") from error
        return checked(predicted, len(texts))

    def close(self) -> None:
        """Nothing is open; the memory goes with the last reference."""

    def _predicted(self, pairs: Sequence[tuple[str, str]]) -> Any:
        return self._model.predict(list(pairs), batch_size=BATCH_TEXTS, show_progress_bar=False)
