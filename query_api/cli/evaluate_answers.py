"""The command `thalweg evaluate answers`. What it needs to run is imported when it runs."""

import json
import os
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from query_api.cli.app import DataDir, Json, Url, service_client
from query_api.cli.completion import choice, collections
from schemas.errors import plain_failures
from schemas.progress_bars import progress_bars
from schemas.terminal import say

answers_app = typer.Typer(add_completion=False)


@answers_app.command(epilog="Example: thalweg evaluate answers hotpotqa/ --answer-sentences 5")
@plain_failures()
def answers(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Folders as `thalweg evaluate` takes them; with --within also files of questions."),
    ],
    within: Annotated[
        str | None,
        typer.Option(help="Load nothing; ask in this collection of the service, as it is.", autocompletion=collections),
    ] = None,
    split: Annotated[str | None, typer.Option(help="Which judgements, qrels/<split>.tsv.")] = None,
    most_questions: Annotated[
        int | None, typer.Option("--questions", min=1, help="Ask at most this many of each folder, evenly spaced.")
    ] = None,
    answer_sentences: Annotated[int | None, typer.Option(min=1, help="The most sentences of an answer.")] = None,
    answer_words: Annotated[int | None, typer.Option(min=1, help="The most words of an answer.")] = None,
    answer_form: Annotated[
        str | None, choice(("extract", "model"), help="Sentences of documents, or a language model's.")
    ] = None,
    judge: Annotated[str, choice(("scorer", "model"), help="Labels and words, or the set language model.")] = "scorer",
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Measure how well the running service answers labelled questions: what is found, said, cited, and refused.

    Labels are those of the questions' metadata: `answer`, `supporting_facts`, `decomposition`, `evidence`. A question
    of a file without documents is one that nothing answers.
    """
    from indexer.runtime.user_cache import user_cache_dir
    from query_api.cli.display import PlainConsole, print_table
    from query_api.evaluation.answer_judge import ModelJudge
    from query_api.evaluation.answer_runner import Figure, evaluate_answers
    from query_api.evaluation.datasets import already_loaded, corpus_of, load, read_folder, read_questions
    from query_api.settings import ServiceSettings

    given = {"answer_form": answer_form, "answer_sentences": answer_sentences, "answer_words": answer_words}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    model = None
    if judge == "model":
        settings = ServiceSettings.load({"storage": {"data_dir": data_dir}}).language_model
        model = ModelJudge(settings, user_cache_dir(os.environ, "judgements"))
    measured: dict[str, dict[str, Figure]] = {}
    with closing(service_client(url, data_dir)) as client, progress_bars(shown=not as_json) as bars:
        for folder in folders:
            if within is None:
                labelled = read_folder(folder, split)
                corpus = corpus_of([labelled])
                into = load(client, corpus, bars(f"searchable: {labelled.name}", len(corpus.envelopes)).advance)
            else:
                labelled = read_questions(folder, split)
                into = already_loaded(client, within, labelled)
            options["collection"] = into.collection
            measured[labelled.name] = evaluate_answers(client, labelled, most_questions, options, bars, model)
    if model is not None:
        why = "".join(f" {len(model.failures)} are not judged: {first}" for first in model.failures[:1])
        say(f"{model.usage.model} took {model.usage.total_tokens:,} tokens to judge the answers.{why}", error=True)
    if as_json:
        shown = {name: {key: each._asdict() for key, each in of.items()} for name, of in measured.items()}
        print(json.dumps(next(iter(shown.values())) if len(shown) == 1 else shown))
        return
    for name, figures in measured.items():
        PlainConsole().print(name, style="bold")
        rows = [
            (key, "–" if mean is None else f"{mean:g}", str(of), by or "") for key, (mean, of, by) in figures.items()
        ]
        print_table(("figure", "value", "of", "judged by"), rows, numbers=("value", "of"))
