"""An answer as Markdown whose markers are links, for front ends that know no citations, and the same as annotations.

What documents say stays text there: of their Markdown and HTML, what would load or link something is escaped.
"""

import re
from typing import NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from schemas.answers import AnswerCitation, AnswerDelta
from schemas.frames import Done
from schemas.hits import SearchAnswer
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

    def add(self, frame: object) -> Piece | None:
        """What a frame, or the whole answer after the frames of its text, adds: at the end the list of sources, or the
        reason where nothing answers. None for a frame that adds nothing."""
        text, citations = "", list[UrlCitation]()
        match frame:
            case AnswerCitation(number=number):
                title = " ".join(frame.title.split()) or frame.document_id
                self._links[number] = UrlCitation(start_index=0, end_index=0, url=self._url(frame), title=title)
            case AnswerDelta(text=text, citations=numbers):
                for number in reversed(numbers):
                    text = text.removesuffix(f" [{number}]")
                text = _escaped(text)
                for number in numbers:
                    link, start = self._links[number], len(self.text) + len(text) + 1
                    text += f" [{number}]({link.url})"
                    place = {"start_index": start, "end_index": len(self.text) + len(text)}
                    citations.append(link.model_copy(update=place))
            case Done(answer=answer, notes=notes) | SearchAnswer(answer=answer, notes=notes):
                reason = (answer and answer.reason) or "Nothing answers it."
                text = self._sources() if answer and not answer.refused else " ".join([reason, *notes])
        self.text += text
        self.citations += citations
        return Piece(text, citations) if text else None

    def _sources(self) -> str:
        numbers: dict[str, list[str]] = {}
        for number, link in self._links.items():
            title = _escaped(link.title).replace("[", "(").replace("]", ")")
            numbers.setdefault(f"[{title}]({link.url})", []).append(str(number))
        return "\n".join(["\n\nSources:\n", *(f"- {', '.join(some)}: {link}" for link, some in numbers.items())])

    def _url(self, source: AnswerCitation) -> str:
        if source.uri and urlsplit(source.uri).scheme in ("http", "https"):
            return quote(source.uri, safe=_LEFT_IN_ADDRESSES)
        place = {"id": source.document_id, "in": source.collection, "passage": source.passage_id}
        return f"{self._service}#/documents?{urlencode(place)}"


def _escaped(text: str) -> str:
    return _LINKS_OR_TAGS.sub(lambda found: found[1] + (r"]\(" if found[2] else r"\<"), text)
