"""What a reader can see: text may be of blanks alone, also of those that take no room, such as U+200B."""

import re

# Blanks, controls and Unicode's default-ignorable code points (DerivedCoreProperties.txt), with the blank Braille cell;
# but not NUL: content that holds it is no text, and refused for that.
_SEEN = re.compile(
    "[^\\s\\x01-\\x1f\\x7f-\\x9f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f"
    "\\u202a-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb"
    "\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff]"
)
_SEEN_ASCII = re.compile(rb"[!-~]")


def is_visible(text: str | None) -> bool:
    """Whether anything of it can be seen."""
    return text is not None and _SEEN.search(text) is not None


def is_blank(content: bytes) -> bool:
    """Whether it is empty, or UTF-8 of which nothing can be seen. Bytes that are no UTF-8 may be anything."""
    if not content.strip():
        return True
    if _SEEN_ASCII.search(content):
        return False
    try:
        return not is_visible(content.decode())
    except UnicodeDecodeError:
        return False
