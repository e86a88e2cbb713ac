"""Subtitles (WebVTT, https://www.w3.org/TR/webvtt1; SubRip): what is said, in passages under the times at which they
begin."""

import re
from html import unescape

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing.document_builder import DocumentBuilder

PASSAGE_SECONDS = 30  # a passage ends with the first sentence that ends later

_CUE = re.compile(
    r"^(?:(\d+):)?(\d\d):(\d\d)[.,]\d{1,3}[ \t]+-->[^\n]*\n(.*?)(?=\n[ \t]*\n|\Z)", re.MULTILINE | re.DOTALL
)
_SPEAKER = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]+)>")
_TAG = re.compile(r"<[^<>]*>|\{\\[^{}]*\}")
_SENTENCE_END = (".", "!", "?", "…", "。", "！", "？")


def parse(text: str) -> ParsedDocument:
    """Raises UnparsableDocument where there is no cue."""
    builder = DocumentBuilder()
    began: int | None = None
    last = said_before = ""
    for hours, minutes, seconds, cue in _CUE.findall(text):
        at = int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)
        if began is None or (at - began >= PASSAGE_SECONDS and last.endswith(_SENTENCE_END)):
            builder.open_section([f"{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}"])
            began = at
        speaker = _SPEAKER.search(cue)
        said = unescape(_TAG.sub("", cue)).strip()
        if not said or said == said_before:  # captions that roll repeat the line before
            continue
        said_before = last = said
        if speaker is not None:
            builder.break_block()
            said = f"{speaker[1].strip()}: {said}"
        builder.write(f"{said} ")
    if began is None:
        raise UnparsableDocument("malformed", "No subtitle is in the content: none has a line of times, '-->'.")
    return builder.finish()
