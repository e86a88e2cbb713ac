"""What the trained parts were trained on: there, figures of theirs say how well they remember, and are not shown."""

import re
from collections.abc import Collection
from importlib.resources import as_file, files

from query_api.retrieval.confidence import fitted_calibration

_SAMPLE_OR_HASH = re.compile(r"(?:-[0-9a-f]{12}|-\d+)+$")


def confidence_fitted_to(*names: str) -> str | None:
    """The collection that confidence was fitted to, if one of these names is its own or a sample's of it."""
    return same_collection(fitted_calibration().collections, names)


def same_collection(known: Collection[str], names: Collection[str]) -> str | None:
    """The first of the known ones that one of the names means: numbers of a sample and the hash of a corpus
    (`scifact-200-1`, `scifact-0123456789ab`) make no other collection."""
    wanted = {_without_suffixes(name) for name in names}
    return next((name for name in known if _without_suffixes(name) in wanted), None)


def tagger_trained_on(folder: str, split: str) -> str | None:
    """What the header of the tagger's weights says, if it names the split of the folder."""
    from safetensors import safe_open

    from indexer.extraction.mention_tagger import WEIGHTS_FILE  # half a second, which a service need not wait for

    with as_file(files("indexer.extraction") / WEIGHTS_FILE) as path, safe_open(path, "numpy") as file:
        trained_on: str = file.metadata()["trained_on"]
    asked = {_letters(folder), _letters(folder + split)}
    return trained_on if any(_letters(part) in asked for part in trained_on.split(",")) else None


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _without_suffixes(name: str) -> str:
    return _SAMPLE_OR_HASH.sub("", name.casefold())
