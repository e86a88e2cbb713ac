"""Count in which case words are written, and write the list of common words that is shipped.

    python -m training.count_word_use corpus.jsonl.gz … [--out FILE]

A word counts where it stands inside a sentence, behind a word or a comma, since a sentence's first word has a capital
anyway. Words with one stem count as one. The list has a stem a line that is in lower case often enough, with the share
of its occurrences that are, in hundredths: `configuration` has 100, `black` 44, `python` is not there.
"""

import argparse
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from indexer.extraction.word_use import COMMON_WORDS_FILE, stems_of

OUT = Path(__file__).parents[1] / "indexer" / "extraction" / COMMON_WORDS_FILE
MIN_SHARE = 0.3  # of its occurrences in lower case
MIN_TIMES = 3
_INSIDE = re.compile(r"(?<=[a-z,;] )[A-Za-z][a-z]+(?![\w-])")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", type=Path, nargs="+", help="JSON lines with `text`, gzipped")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    common = lower_case_shares([word_counts(texts_of(corpus)) for corpus in options.corpora])
    options.out.write_text("".join(f"{stem} {share}\n" for stem, share in common.items()))
    print(f"{len(common):,} stems in {options.out}")


def texts_of(corpus: Path) -> Iterator[str]:
    with gzip.open(corpus, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["text"]


def word_counts(texts: Iterator[str]) -> Counter[str]:
    """How often each word stands inside a sentence, as it is written."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(_INSIDE.findall(text))
    return counts


def lower_case_shares(corpora: list[Counter[str]]) -> dict[str, int]:
    """{stem: hundredths of its occurrences that are in lower case}, of those in lower case MIN_TIMES or more, and with
    a share of at least MIN_SHARE; by the alphabet."""
    lower, total = Counter[str](), Counter[str]()
    for counts in corpora:
        words = list(counts)
        for word, stem in zip(words, stems_of(words), strict=True):
            total[stem] += counts[word]
            lower[stem] += counts[word] if word.islower() else 0
    return {
        stem: round(100 * times / total[stem])
        for stem, times in sorted(lower.items())
        if times >= MIN_TIMES and times >= MIN_SHARE * total[stem]
    }


if __name__ == "__main__":
    main()
