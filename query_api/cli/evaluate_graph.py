"""The command `thalweg evaluate graph`.

What it needs to run is imported when it runs, so that `--help` answers at once.
"""

import json
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from query_api.cli.app import DataDir, Json, Url, service_client
from schemas.errors import WrongSetting, plain_failures
from schemas.progress_bars import progress_bars
from schemas.terminal import plain_json

if TYPE_CHECKING:
    from query_api.evaluation.graph_runner import Extract

graph_app = typer.Typer(add_completion=False)
MOST_DRAWN = 1_000


@graph_app.command(epilog="Example: thalweg evaluate graph redocred/ --split test")
@plain_failures()
def graph(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Folders with labels of mentions, of typed relations, or of categories.")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Which labelled documents, <split>.jsonl[.gz].", show_default="dev, else test")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="The first documents of each folder alone.", show_default="all")
    ] = None,
    by_rules: Annotated[
        bool, typer.Option("--rules", help="By rules alone, also where the embedding model has a tagger of mentions.")
    ] = False,
    sample: Annotated[
        int | None,
        typer.Option(min=1, max=MOST_DRAWN, help="Instead: this many entities and statements of the running service."),
    ] = None,
    collection: Annotated[str | None, typer.Option(help="Of the sample.", show_default="all")] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Of the sample; the same draws the same.")] = 1,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Measure the graph that is extracted from labelled documents: mentions, entities, relations, communities.

    Everything runs in this process, by the embedding model of the settings; no service is asked and nothing is stored.
    A folder's files show what its labels are of: <split>.jsonl, events.jsonl with relations.tsv, or leads.jsonl.
    With --sample the running service draws entities and statements at random, each with its sentence, to be judged.
    """
    if (sample is None) == (not folders):
        raise WrongSetting("Name folders with labels, or --sample of a running service.")
    if sample is not None:
        _show_sample(sample, collection, seed, as_json=as_json, url=url, data_dir=data_dir)
    else:
        _measure(folders or [], split, limit, by_rules=by_rules, as_json=as_json)


def _measure(folders: list[Path], split: str | None, limit: int | None, *, by_rules: bool, as_json: bool) -> None:
    from query_api.cli.display import PlainConsole
    from query_api.evaluation.graph_folders import plan_folder, show_report
    from query_api.evaluation.graph_runner import extraction_of, rule_mentions

    @cache
    def extract() -> "Extract":
        from indexer.embedding.backends import load_encoder
        from query_api.settings import ServiceSettings

        return rule_mentions if by_rules else extraction_of(load_encoder(ServiceSettings.load().embedding))

    planned = {folder.resolve().name: plan_folder(folder, split, limit, extract) for folder in folders}
    with progress_bars(shown=not as_json) as bars:
        measured = {name: run(bars) for name, run in planned.items()}
    if as_json:
        print(json.dumps(next(iter(measured.values())) if len(measured) == 1 else measured))
        return
    for name, figures in measured.items():
        show_report(PlainConsole(soft_wrap=True), name, figures)


def _show_sample(
    size: int, collection: str | None, seed: int, *, as_json: bool, url: str | None, data_dir: Path | None
) -> None:
    from query_api.cli.display import PlainConsole
    from query_api.evaluation.graph_sample import draw_sample, show_sample

    with closing(service_client(url, data_dir)) as client, progress_bars(shown=not as_json) as bars:
        drawn = draw_sample(client, collection, size, seed, bars)
    if as_json:
        print(plain_json(json.dumps(drawn)))
    else:
        show_sample(PlainConsole(soft_wrap=True), drawn)
