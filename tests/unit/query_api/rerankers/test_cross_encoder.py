"""The cross-encoder, with a stub in place of its library: what it is asked, and what becomes of what it cannot do."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from query_api.rerankers import RerankerRefused, TextsNotScored
from query_api.rerankers.cross_encoder import CrossEncoderReranker
from query_api.rerankers.reranker import load_reranker
from query_api.settings import RerankerSettings

SETTINGS = RerankerSettings(provider="cross-encoder", model="models/reader")


class CrossEncoder:
    """Scores a pair by the lengths of both."""

    labels = 1
    failing: Exception | None = None
    config = SimpleNamespace(architectures=["BertForSequenceClassification"])

    def __init__(self, name: str, **how: Any) -> None:
        if name == "models/nowhere":
            raise OSError(f"{name} is no folder")
        self.how = how
        self.asked: list[tuple[str, str]] = []

    def predict(self, pairs: list[tuple[str, str]], **_: Any) -> list[Any]:
        if self.failing is not None:
            raise self.failing
        self.asked = pairs
        scores = [len(question) - len(text) for question, text in pairs]
        return scores if self.labels == 1 else [[score] * self.labels for score in scores]


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> type[CrossEncoder]:
    class Fresh(CrossEncoder):
        pass

    module = ModuleType("sentence_transformers")
    module.CrossEncoder = Fresh  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return Fresh


def test_it_is_loaded_from_this_machine_only_and_scores_each_pair(library: type[CrossEncoder]) -> None:
    reranker = load_reranker(SETTINGS)
    assert isinstance(reranker, CrossEncoderReranker)
    assert reranker.scores("who?", ["", "x", "lone \ud800 one"]).tolist() == [4.0, 3.0, -6.0]
    assert reranker.scores("who?", []).shape == (0,)
    assert (reranker.name, reranker._model.how) == ("models/reader", {"device": "cpu", "local_files_only": True})
    assert reranker._model.asked[2] == ("who?", "lone ? one")
    reranker.close()


def test_a_model_that_is_not_there_is_told_with_what_to_do(library: type[CrossEncoder]) -> None:
    settings = SETTINGS.model_copy(update={"model": "models/nowhere"})
    with pytest.raises(RerankerRefused, match=r"cannot be loaded \(OSError\): set THALWEG_RERANKER__MODEL"):
        load_reranker(settings)


def test_without_its_libraries_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(RerankerRefused, match=r"pip install -e '\.\[torch\]'"):
        load_reranker(SETTINGS)


def test_a_model_of_classes_is_no_reranker(library: type[CrossEncoder]) -> None:
    library.labels = 3
    with pytest.raises(RerankerRefused, match="several numbers for a text"):
        load_reranker(SETTINGS)


def test_a_sentence_encoder_which_the_library_would_give_a_head_of_chance_is_refused(
    library: type[CrossEncoder],
) -> None:
    library.config = SimpleNamespace(architectures=["BertModel"])
    with pytest.raises(RerankerRefused, match="is not a cross-encoder but BertModel"):
        load_reranker(SETTINGS)
    library.config = SimpleNamespace(architectures=None)
    assert load_reranker(SETTINGS).name == "models/reader"


def test_what_the_library_fails_on_is_told_without_a_text(library: type[CrossEncoder]) -> None:
    reranker = load_reranker(SETTINGS)
    library.failing = RuntimeError("out of memory at: my diary")
    with pytest.raises(TextsNotScored, match=r"'models/reader' failed \(RuntimeError\)") as caught:
        reranker.scores("who?", ["my diary"])
    assert "diary" not in str(caught.value)


def test_none_is_no_model() -> None:
    with pytest.raises(RerankerRefused, match="No re-ranker is configured: set THALWEG_RERANKER__PROVIDER"):
        load_reranker(RerankerSettings())
