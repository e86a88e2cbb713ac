"""Typed relations that documents state, against labelled ones: a folder with a stream of documents and a table.

- `events.jsonl[.xz|.gz]`: {op, path, text} a line, in order; `op` is `delete`, else the text replaces what was there.
- `relations.tsv[.gz]`: a header and `head`, `relation`, `tail` of each labelled relation. `mentions` is none.

The final state of each document is prepared as the indexer does it, in this process; what its header states is
compared, names normalised. Relations that no label has are not counted.
"""

import csv
import gzip
import io
import lzma
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import prepare
from indexer.extraction.metadata import EXTRACTOR
from query_api.evaluation.graph_metrics import Agreement
from schemas.errors import WrongSetting
from schemas.events import DocumentUpsert
from schemas.ids import DocumentKey, normalise_name

Triple = tuple[str, str, str]
Advance = Callable[[int], None]
EVENTS = ("events.jsonl", "events.jsonl.xz", "events.jsonl.gz")
RELATIONS = ("relations.tsv", "relations.tsv.gz")
COLUMNS = {"head", "relation", "tail"}
_NO_RELATION = "mentions"
_MEDIA_TYPES = {".rst": "text/x-rst", ".md": "text/markdown", ".html": "text/html"}


class _Event(msgspec.Struct):
    op: str
    path: str
    text: str = ""


def files_of(folder: Path) -> tuple[Path, Path] | None:
    """The events and the labels; None for a folder without."""
    found = [
        next((folder / name for name in names if (folder / name).is_file()), None) for names in (EVENTS, RELATIONS)
    ]
    return (found[0], found[1]) if found[0] and found[1] else None


def final_texts(events: Path) -> dict[str, str]:
    """Path → text of each document that is left when all events are applied. Raises WrongSetting."""
    live: dict[str, str] = {}
    try:
        with opened(events) as lines:
            for line in lines:
                event = msgspec.json.decode(line, type=_Event)
                if event.op == "delete":
                    live.pop(event.path, None)
                else:
                    live[event.path] = event.text
    except (OSError, EOFError, lzma.LZMAError, msgspec.DecodeError) as error:
        raise WrongSetting(f"{events} has a line that is not an event of a document: {error}. Repair it.") from error
    return live


def labelled_relations(table: Path) -> set[Triple]:
    """Raises WrongSetting for a table without the columns."""
    try:
        with opened(table) as lines:
            rows = csv.DictReader((line.decode() for line in lines), delimiter="\t", quoting=csv.QUOTE_NONE)
            if not set(rows.fieldnames or ()) >= COLUMNS:
                raise WrongSetting(f"{table} has no columns head, relation and tail, with tabs between. Repair it.")
            return {
                (normalise_name(row["head"]), row["relation"], normalise_name(row["tail"]))
                for row in rows
                if row["relation"] != _NO_RELATION and row["tail"] is not None
            }
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise WrongSetting(f"{table} cannot be read as a table: {error}. Repair it.") from error


def stated_relations(texts: Mapping[str, str], advance: Advance) -> Iterator[Triple]:
    """What the documents' headers state."""
    for path, text in texts.items():
        media_type = _MEDIA_TYPES.get(Path(path).suffix, "text/plain")
        upsert = DocumentUpsert(key=DocumentKey("labelled", path), content=text.encode(), content_type=media_type)
        for statement in prepare(upsert, ChunkingParameters()).statements:
            if statement.extractor == EXTRACTOR:
                names = {role: name for role, name, _ in statement.roles}
                yield names["subject"], statement.predicate, names["object"]
        advance(1)


def relation_report(texts: Mapping[str, str], labelled: set[Triple], advance: Advance) -> dict[str, Any]:
    """As JSON: of all relations together, and of each."""
    relations = sorted({relation for _, relation, _ in labelled})
    found = {triple for triple in stated_relations(texts, advance) if triple[1] in relations}
    whole = Agreement.of(found, labelled)
    return {
        "documents": len(texts),
        "relation_f1": round(whole.f1, 6),
        "relation_precision": round(whole.precision, 6),
        "relation_recall": round(whole.recall, 6),
        "relation": whole.figures(),
        "by_relation": {
            name: Agreement.of(
                [one for one in found if one[1] == name], [one for one in labelled if one[1] == name]
            ).figures()
            for name in relations
        },
    }


def opened(file: Path) -> io.BufferedIOBase:
    """A file, unpacked as its name says."""
    if file.suffix == ".gz":
        return gzip.open(file, "rb")
    return lzma.open(file, "rb") if file.suffix == ".xz" else file.open("rb")
