"""Names altered as people alter them: how many of their originals are found, by equal key or as candidates.

    python -m tests.bench.knowledge_graph.duplicates FOLDER

FOLDER holds documents with `entities: [{type, mentions: [{name}]}]` as lines of `*.jsonl.gz`. Further names are made up
by combining the words of real ones, which is harder than other names would be: they share first and family names.
Precision is that of the pairs with an altered name whose keys are equal; any pair but that with its original is wrong.
"""

import argparse
import gc
import gzip
import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil

from indexer.resolution.candidates import CandidateIndex, NamedEntity
from indexer.resolution.keys import resolution_key, types_agree
from schemas.ids import normalise_name

TYPES = {"PER": "person", "ORG": "organisation", "LOC": "place", "MISC": "thing"}
Alter = Callable[[str, str, random.Random], str | None]
"""(name, type, chance) → the altered name; None where it does not apply."""


def case(name: str, _type: str, chance: random.Random) -> str | None:
    return chance.choice([name.upper(), name.lower(), name.title()])


def brackets(name: str, entity_type: str, _chance: random.Random) -> str | None:
    return f"{name} ({entity_type})"


def initials(name: str, entity_type: str, _chance: random.Random) -> str | None:
    words = name.split()
    if entity_type != "person" or len(words) < 2 or not words[0][0].isalpha():
        return None
    return " ".join([f"{words[0][0]}.", *words[1:]])


def hyphens(name: str, _type: str, _chance: random.Random) -> str | None:
    if "-" in name:
        return name.replace("-", " ")
    return name.replace(" ", "-") if " " in name else None


def order(name: str, entity_type: str, chance: random.Random) -> str | None:
    words = name.split()
    if len(words) < 2:
        return None
    if entity_type == "person" and chance.random() < 0.5:
        return f"{words[-1]}, {' '.join(words[:-1])}"
    return " ".join([words[-1], *words[:-1]])


def articles(name: str, entity_type: str, _chance: random.Random) -> str | None:
    if entity_type == "person":
        return None
    return name[4:] if name.lower().startswith("the ") else f"the {name}"


def plural(name: str, entity_type: str, _chance: random.Random) -> str | None:
    return None if entity_type == "person" or not name[-1].isalpha() or name.endswith("s") else f"{name}s"


def typo(name: str, _type: str, chance: random.Random) -> str | None:
    """One letter left out, doubled, replaced, or changed with the next, in a word of at least five letters."""
    words = name.split()
    long = [at for at, word in enumerate(words) if len(word) >= 5 and word.isalpha()]
    if not long:
        return None
    at = chance.choice(long)
    word = words[at]
    letter = chance.randrange(1, len(word) - 1)
    head, here, tail = word[:letter], word[letter], word[letter + 1 :]
    words[at] = chance.choice(
        [
            head + tail,
            head + here + here + tail,
            head + chance.choice("aeioumnrst") + tail,
            head + tail[0] + here + tail[1:],
        ]
    )
    return " ".join(words)


ALTERATIONS: dict[str, Alter] = {
    each.__name__: each for each in (case, brackets, initials, hyphens, order, articles, plural, typo)
}


def names_in(folder: Path) -> list[tuple[str, str]]:
    """(name, type) of the entities, the first mention of each; distinct as normalised names."""
    found: dict[str, tuple[str, str]] = {}
    for file in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(file, "rt") as lines:
            for line in lines:
                for entity in json.loads(line)["entities"]:
                    name, entity_type = entity["mentions"][0]["name"], TYPES.get(entity["type"])
                    if entity_type and len(normalise_name(name)) > 1:
                        found.setdefault(normalise_name(name), (name, entity_type))
    return list(found.values())


def combined(real: Sequence[tuple[str, str]], chance: random.Random) -> Iterator[tuple[str, str]]:
    """Without end: the first words of one name and the last word of another of its type, which may be real ones."""
    by_type = defaultdict(list)
    for name, entity_type in real:
        if len(name.split()) > 1:
            by_type[entity_type].append(name.split())
    while True:
        entity_type = chance.choice(list(by_type))
        first, last = chance.choice(by_type[entity_type]), chance.choice(by_type[entity_type])
        middle = [chance.choice(by_type[entity_type])[0]] if chance.random() < 0.5 else []
        yield " ".join([*first[:-1], *middle, last[-1]]), entity_type


def enough(real: Sequence[tuple[str, str]], count: int, chance: random.Random) -> list[tuple[str, str]]:
    """`count` names, the real ones first; distinct as normalised names."""
    found = {normalise_name(name): (name, entity_type) for name, entity_type in real[:count]}
    for name, entity_type in combined(real, chance):
        if len(found) >= count:
            break
        found.setdefault(normalise_name(name), (name, entity_type))
    return list(found.values())


def altered(originals: Sequence[tuple[str, str]], chance: random.Random) -> Iterator[tuple[int, str, str, str]]:
    """(number of the original, altered name, type, alteration), of as many kinds of alteration alike."""
    kinds = list(ALTERATIONS)
    for number, (name, entity_type) in enumerate(originals):
        for kind in kinds[number % len(kinds) :] + kinds:
            made = ALTERATIONS[kind](name, entity_type, chance)
            if made is not None and made != name:
                yield number, made, entity_type, kind
                break


def quality(names: Sequence[tuple[str, str]], altered_count: int, seed: int) -> None:
    chance = random.Random(seed)
    # The first names are real; a sample of them is altered.
    real = range(min(len(names), 5_000))
    chosen = sorted(chance.sample(real, min(altered_count, len(real))))
    entities = [NamedEntity(f"o{at}", "bench", name, kind, 1) for at, (name, kind) in enumerate(names)]
    index, by_key = CandidateIndex(entities), defaultdict(list)
    for each in entities:
        by_key[resolution_key(each.name, each.type)].append(each)
    shared = [group for key, group in by_key.items() if key and len(group) > 1]
    tally: dict[str, Counter[str]] = defaultdict(Counter)
    wrong, missed = [], []
    for at, name, entity_type, kind in altered([names[number] for number in chosen], chance):
        source = f"o{chosen[at]}"
        same = [each for each in by_key[resolution_key(name, entity_type)] if types_agree(each.type, entity_type)]
        same_name = normalise_name(name) == normalise_name(names[chosen[at]][0])
        automatic = same_name or any(each.id == source for each in same)
        others = [each.name for each in same if each.id != source]
        wrong += [(name, other) for other in others]
        tally[kind]["automatic"] += automatic
        tally[kind]["wrong"] += len(others)
        index.add(NamedEntity("a", "bench", name, entity_type, 1))
        pairs = index.candidates("a")
        tally[kind]["review"] += not automatic and any(source in pair[:2] for pair in pairs)
        tally[kind]["pairs"] += len(pairs)
        tally[kind]["of"] += 1
        if not automatic and not any(source in pair[:2] for pair in pairs):
            missed.append((kind, names[chosen[at]][0], name))
    total = sum(tally.values(), Counter())
    print(f"{len(names):,} names, {total['of']:,} altered, seed {seed}")
    print(f"{'alteration':12}{'of':>6}{'automatic':>11}{'in review':>11}{'recall':>8}{'wrong':>7}{'pairs a name':>14}")
    for kind, each in [*tally.items(), ("all", total)]:
        recall = (each["automatic"] + each["review"]) / each["of"]
        counts = f"{each['of']:>6}{each['automatic']:>11}{each['review']:>11}{recall:>8.3f}{each['wrong']:>7}"
        print(f"{kind:12}{counts}{each['pairs'] / each['of']:>14.1f}")
    precision = total["automatic"] / (total["automatic"] + total["wrong"])
    print(f"precision of automatic merges {precision:.4f}; wrong: {wrong[:8]}")
    print(f"{len(shared):,} keys shared among the others, such as {[[e.name for e in g] for g in shared[:12]]}")
    print(f"missed: {missed[:12]}")


def cost(names: Sequence[tuple[str, str]], size: int, probes: int) -> None:
    """Adds and looks up `probes` new entities beside `size` others."""
    gc.collect()
    before, began = psutil.Process().memory_info().rss, time.process_time()
    index = CandidateIndex(NamedEntity(f"o{at}", "bench", *names[at], 1) for at in range(size))
    built, memory = time.process_time() - began, psutil.Process().memory_info().rss - before
    new = names[size : size + probes]
    began = time.process_time()
    found = 0
    for at, (name, entity_type) in enumerate(new):
        index.add(NamedEntity(f"n{at}", "bench", name, entity_type, 1))
        found += len(index.candidates(f"n{at}"))
    each = (time.process_time() - began) / probes
    print(
        f"{size:>9,} entities: built in {built:.1f} s, {memory / 2**20:.0f} MiB; a new one {each * 1e6:.0f} µs, "
        f"{found / probes:.1f} candidates"
    )


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--others", type=int, default=20_000)
    asked.add_argument("--altered", type=int, default=1_000)
    asked.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000])
    asked.add_argument("--probes", type=int, default=2_000)
    asked.add_argument("--seed", type=int, default=1)
    given = asked.parse_args()
    chance = random.Random(given.seed)
    real = names_in(given.folder)
    if given.sizes:
        many = enough(real, max(given.sizes) + given.probes, chance)
        chance.shuffle(many)  # real and made-up ones alike at each size
        for size in given.sizes:
            cost(many, size, given.probes)
    quality(enough(real, given.others + given.altered, chance), given.altered, given.seed)


if __name__ == "__main__":
    main()
