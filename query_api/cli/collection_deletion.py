"""Deleting a collection: a tombstone for each of its documents, followed until no search shows them."""

import shlex
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from query_api.client import ServiceClient, document_positions
from schemas.api import describe_collections
from schemas.errors import Failure, WrongSetting
from schemas.receipts import Token, merge_tokens, parse_token

THREADS = 16
PAUSE_SECONDS = 0.25

Advance = Callable[[], None]


@dataclass(frozen=True)
class CollectionDeleted:
    """`documents` were there and have a tombstone; `left` are in the collection after all, sent again meanwhile. None
    where nobody waited."""

    collection: str
    documents: int
    left: int | None
    token: str


def documents_of(client: ServiceClient, collection: str) -> list[str]:
    """The ids of the collection's documents. Raises WrongSetting, with the collections there are, for none."""
    ids = list(document_positions(client, collection))
    if ids:
        return ids
    names = [
        each["name"] for each in client.get("/v1/collections")["collections"] if each["documents"] or each["hand_made"]
    ]
    there = describe_collections(names) if names else "No document is in any collection."
    raise WrongSetting(f"No document is in the collection {collection!r}, so there is nothing to delete. {there}")


def publish_tombstones(
    client: ServiceClient, collection: str, ids: Iterable[str], advance: Advance = lambda: None
) -> dict[str, Token]:
    """The token of each document's tombstones, once the log has them all. Safe to break off and to repeat."""

    def publish(document_id: str) -> tuple[str, Token]:
        return document_id, parse_token(client.withdraw(collection, document_id)["token"])

    tokens: dict[str, Token] = {}
    with ThreadPoolExecutor(THREADS) as pool:
        for document_id, token in pool.map(publish, ids):
            tokens[document_id] = token
            advance()
    return tokens


def follow_tombstones(
    client: ServiceClient,
    collection: str,
    tokens: Mapping[str, Token],
    advance: Advance = lambda: None,
    *,
    timeout_seconds: float,
    sleep: Callable[[float], None] = time.sleep,
    now_seconds: Callable[[], float] = time.monotonic,
) -> None:
    """Wait until searches show none of the documents, by text or by the graph; `advance` is called for each that is
    gone from the text tables.

    A partition keeps its order, so the newest tombstone of each covers those before it. Raises Failure when nothing
    moves for `timeout_seconds`.
    """
    newest: dict[int, tuple[str, Token]] = {}
    for document_id, each in tokens.items():
        for partition, offset in each.positions.items():
            if partition not in newest or newest[partition][1].positions[partition] < offset:
                newest[partition] = document_id, each
    deleted, last, since = 0, None, now_seconds()
    while True:
        reached = merge_tokens([client.get("/v1/status")["positions"] or ""]).positions
        gone = sum(each.is_reached(reached) for each in tokens.values())
        for _ in range(deleted, gone):
            advance()
        deleted = max(deleted, gone)
        newest = {
            partition: (document_id, each)
            for partition, (document_id, each) in newest.items()
            if not client.document_status(collection, document_id, str(each))["final"]
        }
        if not newest:
            return
        if (deleted, len(newest)) != last:
            last, since = (deleted, len(newest)), now_seconds()
        elif now_seconds() - since > timeout_seconds:
            raise Failure(
                f"Nothing was deleted for {timeout_seconds:.0f} s, {deleted:,} of {len(tokens):,} documents are. The "
                "tombstones are safe in Kafka; is a worker running? See 'thalweg status'."
            )
        sleep(PAUSE_SECONDS)


def token_of(tokens: Mapping[str, Token]) -> str:
    """What to search after, to see none of the documents."""
    return str(merge_tokens(str(token) for token in tokens.values()))


def still_listed(client: ServiceClient, collection: str, ids: Iterable[str]) -> int:
    """How many of the documents the service lists again, or still."""
    return len(document_positions(client, collection).keys() & set(ids))


def summary_of(dropped: CollectionDeleted, chosen: Mapping[str, Any]) -> list[str]:
    """Sentences; `chosen` are the settings of the collection by name, null where nothing was chosen."""
    if dropped.left is None:
        sentences = [f"{dropped.documents:,} tombstones of {dropped.collection} are in the log; the worker deletes."]
    else:
        sentences = [f"{dropped.documents - dropped.left:,} documents of {dropped.collection} deleted."]
    if dropped.left:
        sentences.append(f"{dropped.left:,} were sent again meanwhile, and are there.")
    quoted = shlex.quote(dropped.collection)
    sentences += [
        f"Its {name} stays chosen; 'thalweg collections settings {quoted} {name} --reset' takes it back."
        for name in ("chunking", "linking", "extraction")
        if chosen.get(name) is not None
    ]
    return sentences
