"""Mail (RFC 5322, MIME) by the standard library: one message with its attachments, or a mailbox (mbox) of many.

The body is the HTML where there is one, else the plain text. Attachments are read by their own formats, each below a
heading with its name; those that cannot be read are noted.
"""

import re
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage, MIMEPart

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing import html, media_type_of, text
from indexer.parsing import parse as parse_any
from indexer.parsing.decoding import normalise
from indexer.parsing.document_builder import DocumentBuilder
from indexer.parsing.front_matter import field_name, first_value
from indexer.parsing.registry import MAX_ARCHIVE_MEMBERS, MAX_MAIL_DEPTH

_FIELDS = ("Subject", "From", "To", "Cc", "Date", "Reply-To", "List-Id")
_FROM_LINE = re.compile(rb"^From .*\n", re.MULTILINE)
MAX_ATTACHMENTS = 1_000
MAX_BOUNDARIES = 10 * MAX_ATTACHMENTS
_MESSAGE = "message/rfc822"


def parse(content: bytes) -> ParsedDocument:
    """One message. Its title is the subject."""
    return _read(_message(content), MAX_MAIL_DEPTH)


def parse_mailbox(content: bytes) -> ParsedDocument:
    """All messages of an mbox file (RFC 4155), each in a section below its subject."""
    if _FROM_LINE.match(content) is None:
        raise UnparsableDocument("malformed", "The content is not a mailbox: it does not begin with a line 'From '.")
    parts = _FROM_LINE.split(content)[1:]
    if len(parts) > MAX_ARCHIVE_MEMBERS:
        raise UnparsableDocument(
            "too_large", f"The mailbox holds {len(parts):,} messages; the limit is {MAX_ARCHIVE_MEMBERS:,}. Split it."
        )
    builder, notes = DocumentBuilder(), list[str]()
    for part in parts:
        message = _read(_message(part), MAX_MAIL_DEPTH)
        builder.append(message, message.title or "Without a subject")
        notes += message.notes
    return builder.finish(notes=dict.fromkeys(notes))


def _message(content: bytes) -> EmailMessage:
    if content.count(b"\n--") > MAX_BOUNDARIES:  # the library takes half a millisecond for each
        raise UnparsableDocument("too_large", f"The message has more than {MAX_ATTACHMENTS:,} attachments.")
    return message_from_bytes(content.lstrip(), policy=policy.default)


def _read(message: EmailMessage, depth: int) -> ParsedDocument:
    fields = list(_fields(message))
    if not fields:
        raise UnparsableDocument("malformed", "The content is not a message: it has no header such as 'Subject:'.")
    builder, notes = DocumentBuilder(), list[str]()
    builder.field_lines(fields)
    body = message.get_body(("html", "plain"))
    if body is not None:
        read = html.parse if body.get_content_subtype() == "html" else text.parse_body
        builder.append(read(normalise(_text(body))))
    attachments = list(message.iter_attachments())
    if len(attachments) > MAX_ATTACHMENTS:
        raise UnparsableDocument(
            "too_large", f"The message has {len(attachments):,} attachments; the limit is {MAX_ATTACHMENTS:,}."
        )
    for part in attachments:
        name = normalise(part.get_filename() or part.get_content_type())
        try:
            attached = _attachment(part, depth)
            builder.append(attached, part.get_filename() or attached.title or name)
            notes += attached.notes
        except UnparsableDocument as error:
            notes.append(f"The attachment {name[:80]!r} was left out: {error}")
    named = [(field_name(name), value) for name, value in fields]
    return builder.finish(first_value(named, "subject"), named, notes)


def _fields(message: EmailMessage) -> Iterator[tuple[str, str]]:
    for name in _FIELDS:
        try:
            value = normalise(" ".join(str(message.get(name, "")).split()))
        except (ValueError, IndexError, AttributeError, TypeError):  # what the library cannot make sense of
            continue
        if value:
            yield name, value


def _text(part: MIMEPart) -> str:
    """Decoded; characters that are not of its charset are replaced, and an unknown charset is read as UTF-8."""
    try:
        return str(part.get_content(errors="replace"))
    except (LookupError, KeyError):
        return _bytes(part).decode("utf-8", "replace")


def _bytes(part: MIMEPart) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _attachment(part: MIMEPart, depth: int) -> ParsedDocument:
    kind = media_type_of(part.get_filename() or "") or part.get_content_type()
    if _MESSAGE in (kind, part.get_content_type()):
        if depth == 0:
            raise UnparsableDocument("too_deep", f"Messages in messages are read to {MAX_MAIL_DEPTH} levels.")
        inner = part.get_content() if part.get_content_type() == _MESSAGE else _message(_bytes(part))
        return _read(inner, depth - 1)
    charset = part.get_content_charset()
    return parse_any(_bytes(part), f"{kind}; charset={charset}" if charset else kind)
