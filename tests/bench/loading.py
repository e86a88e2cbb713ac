"""`python -m tests.bench.loading`: what `thalweg load` costs above the ingest itself, with 5,000 small files.

The same documents are published straight to Kafka and waited for, by a process that runs already. The rounds are
direct, load, load, direct. The command's own start counts against it. Vectors come from feature hashing.
"""

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench.bench import commit, machine, say
from tests.bench.poison import TEXT, Sent, publish
from tests.support.processes.installation import Installation, installation

ROUNDS = ("load0", "load1")


def text(folder: str, number: int) -> str:
    """The texts of a round are its own, so that each has to encode all of them."""
    return f"# Station {number}\n\n{TEXT.format(f'{folder} {number}', number % 97)}\n"


def write_files(folder: Path, count: int) -> None:
    for number in range(count):
        place = folder / f"{number % 50:02}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number:05}.md").write_text(text(folder.name, number))


def load(thalweg: Installation, files: Path, collection: str, count: int) -> float:
    """Seconds until `thalweg load` has ended, everything searchable."""
    started = time.perf_counter()
    loaded = thalweg.run_json("load", str(files), "--collection", collection, "--patience", "600", timeout=3000)
    seconds = time.perf_counter() - started
    if loaded["outcomes"] != {"indexed": count} or loaded["refused"]:
        raise SystemExit(f"{loaded['outcomes']}, {len(loaded['refused'])} refused; expected were {count} indexed.")
    return seconds


def publish_directly(thalweg: Installation, collection: str, count: int) -> float:
    sent = [
        Sent(f"{collection}/{number % 50:02}/{number:05}.md", text(collection, number).encode(), "text/markdown", None)
        for number in range(count)
    ]
    rate, _ = asyncio.run(publish(thalweg.kafka, sent))
    return count / rate


def measure(thalweg: Installation, files: Path, count: int) -> dict[str, Any]:
    publish_directly(thalweg, "warm", 500)
    direct = [publish_directly(thalweg, "direct0", count)]
    loaded = [load(thalweg, files / name, name, count) for name in ROUNDS]
    direct.append(publish_directly(thalweg, "direct1", count))
    say(f"direct {direct}, load {loaded}")
    return {
        "files": count,
        "direct_seconds": [round(each, 2) for each in direct],
        "load_seconds": [round(each, 2) for each in loaded],
        "ratio": round(sum(loaded) / sum(direct), 3),
        "machine": machine(),
        "commit": commit(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=5_000)
    count = parser.parse_args().files
    with tempfile.TemporaryDirectory() as folder:
        for name in ROUNDS:
            write_files(Path(folder) / name, count)
        with installation(Path(folder) / "data", THALWEG_EMBEDDING__PROVIDER="hashing") as thalweg:
            print(json.dumps(measure(thalweg, Path(folder), count)))


if __name__ == "__main__":
    main()
