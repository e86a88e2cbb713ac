"""Makes `indexer/extraction/verbs.txt`: English verbs with their forms, and which of them are nothing but verbs.

    python -m training.list_verbs INFL_LU

INFL_LU is `resources/infl_lu.csv.gz` of the package lemminflect 0.2.3 (MIT; made from the SPECIALIST lexicon of the
United States' National Library of Medicine, which is free to use). A line has the lemma, the third person, the past and
the past participle, and `v` where the first two are never a noun or an adjective.
"""

import argparse
import gzip
from pathlib import Path

TARGET = Path(__file__).parents[1] / "indexer" / "extraction" / "verbs.txt"


def _is_plain(word: str) -> bool:
    return len(word) > 2 and word.isascii() and word.isalpha() and word.islower()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    verbs: dict[str, tuple[str, str, str]] = {}
    others: set[str] = set()
    with gzip.open(parser.parse_args().table, "rt", encoding="utf-8") as lines:
        for line in lines:
            lemma, kind, *forms = (part.partition("/")[0] for part in line.rstrip("\n").split(","))
            if kind in ("noun", "adj"):
                others |= {lemma, *forms}
            elif kind == "verb" and len(forms) == 4:
                past, participle, _, third = forms
                verbs[lemma] = third, past, participle or past
    plain = {lemma: forms for lemma, forms in verbs.items() if all(map(_is_plain, (lemma, *forms)))}
    TARGET.write_text(
        "".join(
            f"{' '.join((lemma, *forms))}{'' if {lemma, forms[0]} & others else ' v'}\n"
            for lemma, forms in sorted(plain.items())
        ),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
