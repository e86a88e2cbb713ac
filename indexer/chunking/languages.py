"""Which language a text is in, told by CLD2 from its first characters: it decides by which rules sentences end."""

import pycld2

SAMPLE_CHARACTERS = 1_000
LEAST_SHARE = 60  # percent of the text: in a text of several languages the rules of none of them are taken
USUAL = "en"  # where the language cannot be told
_REGIONS = {"zh-Hant": "zh", "iw": "he", "jw": "jv", "nb": "no"}  # CLD2's names → those of ISO 639-1


def language_of(text: str) -> str:
    """The language as an ISO 639 code; `en` for what cannot be told, such as code and a few words. Deterministic."""
    sample = text[:SAMPLE_CHARACTERS].encode("utf-8", "replace")
    try:
        is_reliable, _, found = pycld2.detect(sample, isPlainText=True)
    except pycld2.error:  # control characters, which CLD2 takes for no text
        return USUAL
    _, code, share, _ = found[0]
    return _REGIONS.get(code, code) if is_reliable and share >= LEAST_SHARE else USUAL
