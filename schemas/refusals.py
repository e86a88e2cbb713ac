"""What each reason of a refusal means to a person, and what to do about it: one place for the service, the page and the
commands, which show it beside the reason's own name."""

from collections.abc import Mapping
from typing import NamedTuple

from schemas.errors import DeadLetterReason


class Explanation(NamedTuple):
    """`title` is a few words without a full stop, `advice` one or two sentences on what to do."""

    title: str
    advice: str


_SEND_AGAIN = "Correct it at its producer and send it again."
_REPORT = "Send it again after an update of Thalweg; if it is refused again, report it with its bytes."

EXPLANATIONS: Mapping[DeadLetterReason, Explanation] = {
    # keys and envelopes
    "missing_id": Explanation("No document id", "Send it with the record key `<collection>/<document id>`."),
    "bad_key": Explanation(
        "No valid document id",
        "The record key is to be `<collection>/<document id>`, without control characters: collections have up to 128 "
        "characters, ids up to 2,048 bytes. Send it with such a key.",
    ),
    "key_mismatch": Explanation(
        "Two different ids", "The record key and the document name different documents: make them agree and send it."
    ),
    "not_json": Explanation("Not JSON", f"It was cut off, or is not JSON. {_SEND_AGAIN}"),
    "wrong_type": Explanation("A field that does not fit", f"The message names the field. {_SEND_AGAIN}"),
    "empty_content": Explanation(
        "Nothing to read",
        "It is empty, or has no text in it: add some, or give it a title.",
    ),
    "title_too_large": Explanation("Title too long", "Send it with a shorter title."),
    "uri_too_large": Explanation("Address too long", "Send it with a shorter `uri`, or with none."),
    "content_type_too_large": Explanation("Media type too long", "Send it with the media type alone, as `text/html`."),
    "links_too_large": Explanation("Too many links, or too long ones", "Send it with fewer or shorter `links`."),
    "metadata_too_large": Explanation(
        "Too much metadata", "Send less metadata with it, or raise THALWEG_LIMITS__MAX_METADATA_BYTES."
    ),
    "metadata_too_deep": Explanation("Metadata nests too deep", "Send it with flatter metadata."),
    "number_too_large": Explanation("Number too large", "Send the number as text, or in 64 bits."),
    "reserved_metadata": Explanation("Reserved name in the metadata", "Give that field of the metadata another name."),
    "too_large": Explanation(
        "Too large", "Split it into parts, or raise the limit that the message names and send it again."
    ),
    # parsing, embedding and linking
    "unknown_media_type": Explanation(
        "Not a format that Thalweg reads",
        "Convert it to one that is read, such as PDF, DOCX, HTML or Markdown (/v1/formats lists all), or send it with "
        "its right media type or file name.",
    ),
    "media_type_mismatch": Explanation(
        "Not the declared format", "Send it with the media type, or the file name, of the format that it is in."
    ),
    "undecodable": Explanation("Text that cannot be decoded", "Save it as UTF-8, or name its right character set."),
    "malformed": Explanation(
        "Damaged",
        "The message states which rule of its format it breaks: correct that, or save it again in the program that "
        "made it, and send it again.",
    ),
    "protected": Explanation("Protected by a password", "Save it without its password and send it again."),
    "pictures_only": Explanation(
        "Pictures without text", "It is a scan: recognise its text (OCR), save that with it, and send it again."
    ),
    "too_deep": Explanation("Nests too deep", f"Its parts lie within each other without end. {_SEND_AGAIN}"),
    "unsafe": Explanation(
        "Looks like an attack",
        "It contains constructs used in attacks. Check where it came from before you send it again.",
    ),
    "parser_limit": Explanation(
        "Takes too long or too much memory to read",
        "Split it into parts, or save it in a simpler format, and send it again.",
    ),
    "parser_failed": Explanation("Could not be read", f"Thalweg failed to read it. {_REPORT}"),
    "embedding_failed": Explanation(
        "No vector for its text", "The model fails on one of its parts: look at its text, or choose another model."
    ),
    "failed": Explanation("Could not be indexed", f"Thalweg failed on it. {_REPORT}"),
    # other topics
    "unknown_setting": Explanation("Unknown setting of a collection", "Use a name that `thalweg collections` knows."),
    "bad_setting": Explanation(
        "Setting that does not fit", "The earlier setting stays in force: choose again, as the message states."
    ),
    "bad_contribution": Explanation(
        "Foreign record on the contributions topic",
        "Nothing but Thalweg's worker may write to that topic: find who did.",
    ),
    "bad_retrieval": Explanation(
        "Foreign record on the provenance topic", "Nothing but Thalweg's service may write to that topic: find who did."
    ),
    "unreadable_batch": Explanation(
        "Batch that was skipped", "What it held is lost to the index: send its documents again, if you know them."
    ),
}


_BY_NAME: Mapping[str, Explanation] = {str(reason): each for reason, each in EXPLANATIONS.items()}


def is_explained(reason: str) -> bool:
    return reason in _BY_NAME


def explanation(reason: str) -> Explanation:
    """Of a reason that is none of ours, as another program may have written it: that the record was refused."""
    return _BY_NAME.get(reason, Explanation("Refused", "The message states why: correct it and send it again."))


def explanation_fields(reason: str) -> dict[str, str]:
    """The reason with its explanation, by the names that answers have for them."""
    title, advice = explanation(reason)
    return {"reason": reason, "reason_title": title, "advice": advice}
