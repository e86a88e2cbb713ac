"""Links between documents: targets resolved against the document that contains them."""

import posixpath
from collections.abc import Iterator
from urllib.parse import SplitResult, unquote, urlsplit

from indexer.documents import ChunkedDocument, DocumentLink, ParsedDocument
from indexer.extraction.offsets import OffsetIndex
from indexer.extraction.series import series_of_path
from schemas.events import DocumentUpsert
from schemas.ids import WIKI, DocumentKey, link_key, link_keys
from schemas.limits import MAX_LINKS

LINK_WEIGHT = 1.0
MAX_TARGET_CHARACTERS = 1_000


def resolve_links(
    upsert: DocumentUpsert, parsed: ParsedDocument, chunked: ChunkedDocument, offsets: OffsetIndex
) -> tuple[DocumentLink, ...]:
    """Links to documents, each target once, at the first chunk that links to it; by chunk, then by target.

    A target is the path that the link names; readers resolve it to the document of that id, else to one with the same
    `schemas.ids.link_key`. That of a wiki link is WIKI and a name, by which they find the document with the shortest
    id; a name with folders is a path. Links of the envelope are anchored at chunk 0. A web address counts only if it
    names a sibling of this document: under the address that its `uri` has before its id, in the folder of its `uri`, or
    in its own series. At most MAX_LINKS.
    """
    if not chunked.chunks:
        return ()
    first: dict[tuple[str, str], tuple[int, DocumentKey]] = {}
    own = {(upsert.key.collection, key) for key in link_keys(upsert.key.document_id)}
    for target, chunk in _targets(upsert, parsed, offsets):
        same = target.collection, link_key(target.document_id)
        if not same[1] or same in own or (same not in first and len(first) >= MAX_LINKS):
            continue
        first[same] = min(first.get(same, (chunk, target)), (chunk, target))
    return tuple(DocumentLink(chunk, target, LINK_WEIGHT) for chunk, target in sorted(first.values()))


def _targets(upsert: DocumentUpsert, parsed: ParsedDocument, offsets: OffsetIndex) -> Iterator[tuple[DocumentKey, int]]:
    for link in upsert.links:
        yield _named(link, upsert.key), 0
    for text_link in parsed.links:
        path = _document_path(text_link.target, upsert)
        if path:
            yield DocumentKey(upsert.key.collection, path.rstrip("/")), offsets.chunk_from(text_link.start)


def _named(link: str, key: DocumentKey) -> DocumentKey:
    """A link of the envelope: an id of the same collection, or `collection/id`.

    The part before the first slash is a collection, unless the document's own id begins with that folder.
    """
    head, _, rest = link.partition("/")
    own_folder = key.document_id.partition("/")[0] if "/" in key.document_id else None
    return DocumentKey(head, rest) if rest and head and head != own_folder else DocumentKey(key.collection, link)


def _document_path(target: str, upsert: DocumentUpsert) -> str | None:
    """The document path that a link in the text refers to; None if it leads elsewhere."""
    try:
        parts, own = urlsplit(target.strip()[:MAX_TARGET_CHARACTERS]), urlsplit(upsert.uri or "")
    except ValueError:
        return None
    path = unquote(parts.path)
    folder = posixpath.dirname(upsert.key.document_id)
    if f"{parts.scheme}:" == WIKI:
        return posixpath.normpath(path).strip("/.") if "/" in path else WIKI + path
    if parts.scheme or parts.netloc:
        return _sibling(parts, own, upsert.key.document_id)
    if path.startswith("/"):
        resolved = path.strip("/")
    else:
        resolved = posixpath.normpath(posixpath.join(folder, path)) if path else ""
    while resolved.startswith("../"):
        resolved = resolved[3:]
    if series_of_path(resolved) and "/" not in resolved:  # a page that is a folder of its site: `../pep-0008/`
        return posixpath.join(folder, resolved)
    return None if resolved in {"", ".", ".."} else resolved


def _sibling(parts: SplitResult, own: SplitResult, document_id: str) -> str | None:
    """The document that a web address refers to, for the document of this id whose address is `own`."""
    path, own_path = unquote(parts.path), unquote(own.path)
    parent, name = posixpath.split(path.rstrip("/"))
    if parts.scheme not in ("http", "https", "") or not name:
        return None
    same_host = own.netloc and own.netloc == parts.netloc
    root = own_path.removesuffix(document_id)
    if same_host and root != own_path and path.startswith(root):
        return path.removeprefix(root).strip("/")
    beside = same_host and posixpath.dirname(own_path.rstrip("/")) == parent
    series, own_series = series_of_path(name), series_of_path(document_id)
    is_same_series = series and own_series and series.series == own_series.series
    return posixpath.join(posixpath.dirname(document_id), name) if beside or is_same_series else None
