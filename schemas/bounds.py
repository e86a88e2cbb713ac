"""How long may be what a producer says of a document beside its content and metadata: title, address, links.

A title and an address stand in every answer that shows the document, so their lengths are fixed, as those of ids are.
"""

from collections.abc import Sequence

from schemas.errors import MalformedEvent
from schemas.ids import MAX_COLLECTION_CHARACTERS, MAX_DOCUMENT_ID_BYTES

MAX_TITLE_CHARACTERS = 2_000
MAX_URI_CHARACTERS = 4_000
MAX_CONTENT_TYPE_CHARACTERS = 500
MAX_LINKS = 2_000
MAX_LINK_CHARACTERS = MAX_COLLECTION_CHARACTERS + 1 + MAX_DOCUMENT_ID_BYTES


def check_bounds(*, title: str | None, uri: str | None, content_type: str, links: Sequence[str]) -> None:
    """Raises MalformedEvent: `title_too_large`, `uri_too_large`, `content_type_too_large` or `links_too_large`."""
    for name, text, most in (
        ("title", title, MAX_TITLE_CHARACTERS),
        ("uri", uri, MAX_URI_CHARACTERS),
        ("content_type", content_type, MAX_CONTENT_TYPE_CHARACTERS),
    ):
        if text is not None and len(text) > most:
            raise MalformedEvent(
                f"{name}_too_large", f"The {name} has {len(text):,} characters; the limit is {most:,}. Shorten it."
            )
    if len(links) > MAX_LINKS:
        raise MalformedEvent(
            "links_too_large", f"There are {len(links):,} links; the limit is {MAX_LINKS:,}. Send the most important."
        )
    longest = max(map(len, links), default=0)
    if longest > MAX_LINK_CHARACTERS:
        raise MalformedEvent(
            "links_too_large",
            f"A link has {longest:,} characters; the limit is {MAX_LINK_CHARACTERS:,}. A link is the id of a document, "
            "or '<collection>/<document id>'.",
        )


def shortened_title(title: str) -> str:
    """A title read from content, which its producer cannot shorten: at most MAX_TITLE_CHARACTERS, `…` for the rest."""
    return title if len(title) <= MAX_TITLE_CHARACTERS else title[: MAX_TITLE_CHARACTERS - 1].rstrip() + "…"
