"""Train the mention tagger on labelled folders and write the weights that are shipped.

    python -m training.train_mentions FOLDER… [--cross-check] [--unlabelled corpus.jsonl.gz …] [--out FILE]

Folders are those of `thalweg evaluate graph`, with whole documents. With `--teachers 2` as many networks of other seeds
are trained first; one then learns from the labels and from the mean of their probabilities, on the labelled texts and
on unlabelled ones (Hinton et al. 2015, "Distilling the Knowledge in a Neural Network").
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.numpy import save_file

from indexer.embedding.backends import load_encoder
from indexer.embedding.encoder import PromptedEncoder
from indexer.extraction.mention_tagger import WEIGHTS_FILE, MentionTagger, dequantised, labels_of, quantised
from query_api.evaluation.graph_runner import measure, tagged_mentions
from query_api.evaluation.labelled_graphs import read_graphs
from schemas.progress_bars import Bar
from schemas.settings import EmbeddingSettings
from training.mention_data import ENTITY_TYPES, Example, labelled_examples, unlabelled_examples
from training.mention_model import Network, probabilities, train, weights_of

WEIGHTS = Path(__file__).parents[1] / "indexer" / "extraction" / WEIGHTS_FILE
TYPES = list(ENTITY_TYPES.values())
LABELS = len(labels_of(TYPES))
LAYERS = 3
DIGEST_CHARACTERS = 32  # of an encoder's digest: its files, without precision and prompts
TEACHER_EPOCHS, TEACHER_DROPOUT = 12, 0.35
EPOCHS, DROPOUT = 7, 0.2


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
    for name, even in (("even", 0), ("odd", 1)):
        if options.cross_check in ("both", name):
            half = [example for example in examples if example.document % 2 == even]
            held_back = [graph for number, graph in enumerate(graphs) if number % 2 != even]
            tagger = _tagger(_trained(name, half, more, options), encoder)
            figures = measure("held back", held_back, tagged_mentions(encoder, tagger), Bar).report()
            say(f"trained on the {name} ones, scored on the others: {json.dumps(figures)}")
    if options.out:
        stored = _trained("all", examples, more, options)
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
    parser.add_argument("--unlabelled-documents", type=int, default=150, help="of each file")
    parser.add_argument("--teachers", type=int, default=0, help="networks to learn from; about 1 point with two")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--provider", default="onnx-int8", choices=["onnx-int8", "onnx"])
    parser.add_argument(
        "--cross-check",
        nargs="?",
        const="both",
        choices=["both", "even", "odd"],
        help="train on a half, score the other",
    )
    parser.add_argument("--teachers-kept", type=Path, help="a folder that keeps the teachers, for a run that was cut")
    parser.add_argument("--out", type=Path, nargs="?", const=WEIGHTS, help="write the weights, to the shipped file")
    parser.add_argument("--trained-on", help="names and licences of the data, kept in the file")
    return parser.parse_args()


def _trained(
    name: str, examples: Sequence[Example], more: Sequence[Example], options: argparse.Namespace
) -> dict[str, object]:
    """Weights as they are stored. `name` is that of the examples."""
    started = time.monotonic()
    seed = options.seed
    teachers = [
        _teacher(f"{name}-{number}", examples, seed + number + 1, options.teachers_kept)
        for number in range(options.teachers)
    ]
    taught = [*examples, *(more if teachers else [])]
    for example, teacher in zip(taught, probabilities(teachers, taught) if teachers else [], strict=bool(teachers)):
        example.teacher = teacher
    network = (
        train(taught, LABELS, epochs=EPOCHS, dropout=DROPOUT, seed=seed)
        if teachers
        else train(taught, LABELS, epochs=TEACHER_EPOCHS, dropout=TEACHER_DROPOUT, seed=seed)
    )
    for example in taught:
        example.teacher = None
    say(f"trained in {time.monotonic() - started:.0f} s")
    return quantised(weights_of(network))


def _teacher(name: str, examples: Sequence[Example], seed: int, kept: Path | None) -> Network:
    """Trained, or as it was kept."""
    file = kept / f"{name}-{seed}.pt" if kept else None
    if file and file.exists():
        network = Network(examples[0].states.shape[1], LABELS, TEACHER_DROPOUT)
        network.load_state_dict(torch.load(file, weights_only=True))
        return network.eval()
    network = train(examples, LABELS, epochs=TEACHER_EPOCHS, dropout=TEACHER_DROPOUT, seed=seed)
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        torch.save(network.state_dict(), file)
    return network


def _tagger(stored: dict[str, object], encoder: PromptedEncoder) -> MentionTagger:
    precision = "int8" if encoder.provider == "onnx-int8" else "float32"
    return MentionTagger(dequantised(stored), TYPES, encoder.digest[:DIGEST_CHARACTERS], LAYERS, precision)


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
