"""The commands `thalweg evaluate` and `thalweg questions`; `evaluate graph` and `evaluate answers` are in modules of
their own.

What they need to run is imported when they run, so that `--help` answers at once.
"""

import json
import sys
from collections.abc import Iterable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer
from typer.core import TyperCommand
from typer.main import get_command

from query_api.cli.app import DataDir, Json, Url, service_client
from query_api.cli.completion import choice, collections
from query_api.cli.evaluate_answers import answers_app
from query_api.cli.evaluate_graph import graph_app
from query_api.evaluation.approaches import APPROACHES
from schemas.errors import NoAccess, WrongSetting, plain_failures
from schemas.filters import MAX_HITS, Group
from schemas.progress_bars import progress_bars
from schemas.terminal import plain_json, say

app = typer.Typer()
BESIDE = {"graph": graph_app, "answers": answers_app}


class EvaluateCommand(TyperCommand):
    """`evaluate FOLDER...`, `evaluate graph FOLDER...` and `evaluate answers FOLDER...`; a folder of such a name is
    `./graph`."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        if args and args[0] in BESIDE:
            return get_command(BESIDE[args[0]]).make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@app.command(cls=EvaluateCommand, epilog="Example: thalweg evaluate questions/ -k 5 --out report")
@plain_failures()
def evaluate(
    folders: Annotated[
        list[Path],
        typer.Argument(
            help="Folders with corpus.jsonl[.gz], queries.jsonl[.gz] and qrels/<split>.tsv; with --within also without "
            "a corpus, or a file of lines `question <tab> document ids`."
        ),
    ],
    approach: Annotated[
        list[str] | None,
        choice(
            tuple(APPROACHES),
            help=f"One of {', '.join(APPROACHES)}; may be repeated. The others are compared with the first.",
            metavar="APPROACH",
            show_default="all",
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Which judgements, qrels/<split>.tsv.", show_default="dev, or the only one")
    ] = None,
    most_questions: Annotated[
        int | None,
        typer.Option(
            "--questions", min=1, help="Ask at most this many of each folder, evenly spaced.", show_default="all"
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", "--k", min=1, max=MAX_HITS, help="Hits asked for and judged.")] = 10,
    group: Annotated[str, choice(get_args(Group), help="What a hit is.")] = "document",
    lower_case: Annotated[bool, typer.Option("--lower-case", help="Ask every question in lower case.")] = False,
    pool: Annotated[
        str | None, typer.Option(help="Load all folders into one collection of this name and search it as a whole.")
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(help="Load nothing; ask in this collection of the service, as it is.", autocompletion=collections),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write report.json, report.md and report.html there.", file_okay=False)
    ] = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Measure how well the running service answers labelled questions, approach beside approach.

    The documents are published into a collection of their own, named after the folder and a hash of its corpus, and
    kept: a second evaluation of the same corpus finds them there. `thalweg evaluate graph FOLDER` measures the
    extracted graph instead, `thalweg evaluate answers FOLDER` the answers.
    """
    from query_api.cli.display import PlainConsole
    from query_api.evaluation.approaches import approaches_named
    from query_api.evaluation.datasets import read_folder, read_questions
    from query_api.evaluation.html_report import write_reports
    from query_api.evaluation.report import NO_TERMINAL_WIDTH, as_json_text, show_summary
    from query_api.evaluation.runner import Plan
    from query_api.evaluation.runner import evaluate as evaluate_service

    plan = Plan(
        approaches=approaches_named(approach or ()),
        collections=tuple(map(partial(read_folder if within is None else read_questions, split=split), folders)),
        k=k,
        group=cast("Group", group),
        questions=most_questions,
        lower_case=lower_case,
        pool=pool,
        within=within,
    )
    if out is not None:
        _make_folder(out)
    with closing(service_client(url, data_dir)) as client, progress_bars(shown=not as_json) as bars:
        found = evaluate_service(plan, client, bars)
    if out is not None:
        write_reports(found, out)
    if as_json:
        print(plain_json(as_json_text(found)))
    else:
        show_summary(PlainConsole(soft_wrap=True, width=None if sys.stdout.isatty() else NO_TERMINAL_WIDTH), found, out)
        if within is None:
            say(_kept(dict.fromkeys(each.loaded.collection for each in found.collections)))


@app.command(epilog="Example: thalweg questions notes --out questions --count 100")
@plain_failures()
def questions(
    collection: Annotated[
        str,
        typer.Argument(help="A collection of the running service, loaded and searchable.", autocompletion=collections),
    ],
    out: Annotated[Path, typer.Option(help="The folder to write; it must not hold labelled questions yet.")],
    kinds: Annotated[
        str, typer.Option(help="Kinds, comma-separated: exact, structured, semantic, temporal, multi-hop.")
    ] = "exact,structured,semantic,temporal,multi-hop",
    count: Annotated[int, typer.Option(min=1, max=100_000, help="Questions of each kind, at most.")] = 50,
    seed: Annotated[int, typer.Option(help="The same seed makes the same set.")] = 1,
    to_judge: Annotated[
        bool, typer.Option("--to-judge", help="Also put them into the web console, where people judge them.")
    ] = False,
    confirmed: Annotated[
        bool, typer.Option("--confirmed", help="Make none: write those that people confirmed, with their corrections.")
    ] = False,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Make labelled questions from what is indexed, with their answers; no language model.

    The folder is one that `thalweg evaluate FOLDER --within COLLECTION` reads. Each question's metadata has its kind
    and the path to its answer. It says so where the collection gives fewer of a kind than asked for.
    """
    from query_api.evaluation.synthetic.generator import generate_questions, parse_kinds, write_folder
    from query_api.evaluation.synthetic.judged import confirmed_questions, put_to_judge
    from query_api.evaluation.synthetic.source import read_collection

    wanted = parse_kinds(kinds)
    _make_folder(out)
    with closing(service_client(url, data_dir)) as client, progress_bars(shown=not as_json) as bars:
        documents = read_collection(client, collection, bars)
        if confirmed:
            made = confirmed_questions(client, collection, documents)
            wanted = tuple(dict.fromkeys(each.kind for each in made.made))
        else:
            made = generate_questions(collection, documents, wanted, count, seed)
        write_folder(made, out)
        if to_judge:
            put_to_judge(client, made)
    counts = made.counts(wanted)
    if as_json:
        print(json.dumps({"collection": collection, "seed": seed, "documents": len(documents), "questions": counts}))
        return
    for kind, number in counts.items():
        fewer = "" if number == count or confirmed else f" ({count:,} were asked for; the collection gives no more)"
        print(f"{number:6,}  {kind}{fewer}")
    say(f"Written to {out}. Next: thalweg evaluate {out} --within {collection}")


def _kept(collections: Iterable[str]) -> str:
    """What becomes of the documents that were loaded."""
    names = list(collections)
    go = "; ".join(f"`thalweg collections delete {name}`" for name in names)
    return (
        f"The documents stay in {', '.join(names)} for the next evaluation, and searches of all collections find them. "
        f"They go with {go}."
    )


def _make_folder(out: Path) -> None:
    """Before any search, so that an hour's figures are not lost for want of a folder."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise WrongSetting(f"{out} cannot be a folder: a file is in the way. Name another with --out.") from error
    except PermissionError as error:
        raise NoAccess(f"This user may not write to {out}. Name another folder with --out.") from error
