"""Retrievers for other frameworks, each an extra of its own: what a search finds, as their documents."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from schemas.errors import install_extra
from schemas.hits import Hit

IN_METADATA = {"document_id", "collection", "title", "uri", "section", "score", "confidence", "start", "end"}


def metadata_of(hit: Hit) -> dict[str, Any]:
    """Where a hit's text is from, under the names that hits have."""
    return hit.model_dump(include=IN_METADATA)


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Raises ImportError, with how to install it, where the framework is not there to import."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(f"There is no package {error.name!r} here: {install_extra(extra)}.") from error
