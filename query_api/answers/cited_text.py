"""An answer as Markdown whose markers are links, for front ends that know no citations, and the same as annotations.

What documents say stays text there: of their Markdown and HTML, what would load or link something is escaped.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from schemas.answers import Answer, AnswerCitation, AnswerDelta
from schemas.openai_protocol import UrlCitation

_LINKS_OR_TAGS = re.compile(r"(?<!\\)((?:\\\\)*)(?:(\])\(|<(?=[A-Za-z/!?]))")
_LEFT_IN_ADDRESSES = ":/?#@!$&'*+,;=%-._~"


class Piece(NamedTuple):
    """The next piece of the text, and the annotations of its markers."""

    text: str
    citations: list[UrlCitation]


class CitedText:
    """The text so far, made of an answer's frames as they come. `service` is the address of the service, with a slash
    at its end: documents without one of their own on the web are shown there."""

    def __init__(self, service: str) -> None:
        self.text = ""
        self.citations: list[UrlCitation] = []
        self._service = service
        self._links: dict[int, UrlCitation] = {}  # their places are not known yet

    def add(self, frame: object) -> Iterator[Piece]:
        """What a frame adds; nothing for those that are not of the answer's text."""
        if isinstance(frame, AnswerCitation):
            title = " ".join(frame.title.split()) or frame.document_id
            self._links[frame.number] = UrlCitation(start_index=0, end_index=0, url=self._url(frame), title=title)
        elif isinstance(frame, AnswerDelta):
            text, citations = frame.text, []
            for number in reversed(frame.citations):
                text = text.removesuffix(f" [{number}]")
            text = _escaped(text)
            for number in frame.citations:
                marker, start = f"[{number}]({self._links[number].url})", len(self.text) + len(text) + 1
                place = {"start_index": start, "end_index": start + len(marker)}
                citations.append(self._links[number].model_copy(update=place))
                text += f" {marker}"
            yield self._added(Piece(text, citations))

    def end(self, answer: Answer | None, notes: list[str]) -> Iterator[Piece]:
        """The list of sources; the reason where there is no answer."""
        if answer is None or answer.refused:
            yield self._added(Piece(" ".join([(answer and answer.reason) or "Nothing answers it.", *notes]), []))
        else:
            numbers: dict[str, list[str]] = {}
            for number, link in self._links.items():
                title = _escaped(link.title).replace("[", "(").replace("]", ")")
                numbers.setdefault(f"[{title}]({link.url})", []).append(str(number))
            listed = [f"- {', '.join(some)}: {link}" for link, some in numbers.items()]
            yield self._added(Piece("\n".join(["\n\nSources:\n", *listed]), []))

    def _added(self, piece: Piece) -> Piece:
        self.text += piece.text
        self.citations += piece.citations
        return piece

    def _url(self, source: AnswerCitation) -> str:
        if source.uri and urlsplit(source.uri).scheme in ("http", "https"):
            return quote(source.uri, safe=_LEFT_IN_ADDRESSES)
        place = {"id": source.document_id, "in": source.collection, "passage": source.passage_id}
        return f"{self._service}#/documents?{urlencode(place)}"


def _escaped(text: str) -> str:
    return _LINKS_OR_TAGS.sub(lambda found: found[1] + (r"]\(" if found[2] else r"\<"), text)
