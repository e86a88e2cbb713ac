"""Train the mention tagger on labelled folders and write the weights that are shipped.

    python -m training.train_mentions FOLDER… [--cross-check] [--unlabelled corpus.jsonl.gz …] [--out FILE]

Folders are those of `thalweg evaluate graph`, with whole documents. Several networks of other seeds are trained first;
one small network then learns from the labels and from the mean of their probabilities, on the labelled texts and on
unlabelled ones (Hinton et al. 2015, "Distilling the Knowledge in a Neural Network").
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from safetensors.numpy import save_file

from indexer.embedding.encoder import PromptedEncoder, load_encoder
from indexer.extraction.mention_tagger import WEIGHTS_FILE, MentionTagger, dequantised, labels_of, quantised
from query_api.evaluation.graph_runner import measure, tagged_mentions
from query_api.evaluation.labelled_graphs import read_graphs
from schemas.settings import EmbeddingSettings
from training.mention_data import ENTITY_TYPES, Example, labelled_examples, unlabelled_examples
from training.mention_model import probabilities, train, weights_of

WEIGHTS = Path(__file__).parents[1] / "indexer" / "extraction" / WEIGHTS_FILE
TYPES = list(ENTITY_TYPES.values())
LABELS = len(labels_of(TYPES))
LAYERS = 3
DIGEST_CHARACTERS = 32  # of an encoder's digest: its files, without precision and prompts
TEACHER_DROPOUT, DROPOUT = 0.35, 0.25


def main() -> None:
    options = _options()
    encoder = load_encoder(EmbeddingSettings(provider=options.provider))
    graphs = [
        graph for folder in options.folders for graph in read_graphs(folder, options.split)[1] if not graph.domain
    ]
    say(f"{len(graphs):,} labelled documents")
    examples = labelled_examples(graphs, encoder)
    more = unlabelled_examples(options.unlabelled, options.unlabelled_documents, encoder, options.seed)
    say(f"{len(examples):,} chunks with labels, {len(more):,} without")
    if options.cross_check:
        for name, even in (("even", 0), ("odd", 1)):
            half = [example for example in examples if example.document % 2 == even]
            held_back = [graph for number, graph in enumerate(graphs) if number % 2 != even]
            tagger = _tagger(_trained(half, more, options), encoder)
            figures = measure("held back", held_back, tagged_mentions(encoder, tagger), _quiet).report()
            say(f"trained on the {name} ones, scored on the others: {json.dumps(figures)}")
    if options.out:
        stored = _trained(examples, more, options)
        metadata = {
            "entity_types": ",".join(TYPES),
            "layers": str(LAYERS),
            "encoder": encoder.digest[:DIGEST_CHARACTERS],
            "trained_on": options.trained_on or ", ".join(folder.resolve().name for folder in options.folders),
        }
        save_file(stored, options.out, metadata)
        say(f"{options.out}: {options.out.stat().st_size:,} bytes")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--unlabelled", type=Path, nargs="*", default=[], help="JSON lines with title and text")
    parser.add_argument("--unlabelled-documents", type=int, default=1000, help="of each file")
    parser.add_argument("--teachers", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--provider", default="onnx-int8", choices=["onnx-int8", "onnx"])
    parser.add_argument("--cross-check", action="store_true", help="train on each half, score on the other")
    parser.add_argument("--out", type=Path, nargs="?", const=WEIGHTS, help="write the weights, to the shipped file")
    parser.add_argument("--trained-on", help="names and licences of the data, kept in the file")
    return parser.parse_args()


def _trained(examples: Sequence[Example], more: Sequence[Example], options: argparse.Namespace) -> dict[str, object]:
    """Weights as they are stored."""
    started = time.monotonic()
    epochs, seed = options.epochs, options.seed
    teachers = [
        train(examples, LABELS, epochs=epochs, dropout=TEACHER_DROPOUT, seed=seed + number + 1)
        for number in range(options.teachers)
    ]
    taught = [*examples, *(more if teachers else [])]
    for example, teacher in zip(taught, probabilities(teachers, taught) if teachers else [], strict=bool(teachers)):
        example.teacher = teacher
    network = train(taught, LABELS, epochs=epochs, dropout=DROPOUT if teachers else TEACHER_DROPOUT, seed=seed)
    for example in taught:
        example.teacher = None
    say(f"trained in {time.monotonic() - started:.0f} s")
    return quantised(weights_of(network))


def _tagger(stored: dict[str, object], encoder: PromptedEncoder) -> MentionTagger:
    precision = "int8" if encoder.provider == "onnx-int8" else "float32"
    return MentionTagger(dequantised(stored), TYPES, encoder.digest[:DIGEST_CHARACTERS], LAYERS, precision)


def _quiet(_what: str, _parts: int) -> Callable[[int], None]:
    return lambda _done: None


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
