"""The command `thalweg evaluate answers`. What it needs to run is imported when it runs."""

import json
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from query_api.cli.app import DataDir, Json, Url, service_client
from query_api.cli.completion import collections
from schemas.errors import plain_failures
from schemas.progress_bars import progress_bars

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
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Measure how well the running service answers labelled questions: what is found, cited, and refused.

    Labels are those of the questions' metadata: `answer`, `supporting_facts`, `decomposition`, `evidence`. A question
    of a file without documents is one that nothing answers.
    """
    from query_api.cli.display import PlainConsole, print_table
    from query_api.evaluation.answer_runner import evaluate_answers, questions_of
    from query_api.evaluation.datasets import already_loaded, corpus_of, load, read_folder, read_questions

    given = {"answer_sentences": answer_sentences, "answer_words": answer_words}
    options = {name: value for name, value in given.items() if value is not None}
    measured: dict[str, dict[str, Any]] = {}
    with closing(service_client(url, data_dir)) as client, progress_bars(shown=not as_json) as bars:
        for folder in folders:
            if within is None:
                labelled = read_folder(folder, split)
                corpus = corpus_of([labelled])
                into = load(client, corpus, bars(f"searchable: {labelled.name}", len(corpus.envelopes)).advance)
            else:
                labelled = read_questions(folder, split)
                into = already_loaded(client, within, labelled)
            bar = bars(f"asked: {labelled.name}", questions_of(labelled, most_questions))
            measured[labelled.name] = evaluate_answers(client, labelled, into.collection, most_questions, options, bar)
    if as_json:
        print(json.dumps(next(iter(measured.values())) if len(measured) == 1 else measured))
        return
    for name, figures in measured.items():
        PlainConsole().print(name, style="bold")
        print_table(
            ("figure", "value"), [(key, "–" if value is None else f"{value:g}") for key, value in figures.items()]
        )
