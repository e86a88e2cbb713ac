"""How retrievals and analytics look on a terminal; plain text when it is none."""

from typing import Any

from rich.console import Console
from rich.markup import escape

from query_api.cli.display import snippet

JSONObject = dict[str, Any]


def show_retrievals(console: Console, page: JSONObject) -> None:
    """A line a search, and how to see more."""
    for each in page["retrievals"]:
        marks = "".join(f"  [yellow]{escape(mark)}[/yellow]" for mark in _marks(each))
        console.print(
            f"{escape(each['at'][:19])}Z  [bold]{escape(each['retrieval_id'])}[/bold]  "
            f"{each['seconds'] * 1000:6.0f} ms  {each['hits']:>4} hits  {escape(snippet(each['query']))}{marks}",
            highlight=False,
        )
    if not page["retrievals"]:
        console.print("No such retrieval.", highlight=False)
    if page["next_cursor"] is not None:
        console.print(f"Older ones: --cursor {page['next_cursor']}", highlight=False, style="dim")


def show_retrieval(console: Console, retrieval: JSONObject) -> None:
    """What was asked and read, then two lines a hit, then what was said."""
    snapshot = retrieval["snapshot"]
    told = [
        ("question", retrieval["query"]),
        ("time", f"{retrieval['at']}, {retrieval['seconds'] * 1000:.0f} ms"),
        ("asked", ", ".join(f"{name} {value}" for name, value in _asked(retrieval).items())),
        ("as of", f"{snapshot.get('positions') or 'an empty log'} ({snapshot.get('generation', 'unknown')})"),
        ("outcome", ", ".join([retrieval["outcome"], *(["cached"] if retrieval["cached"] else [])])),
        *(("without", f"{channel}: {reason}") for channel, reason in retrieval["failed_channels"].items()),
    ]
    for name, text in told:
        console.print(f"[dim]{name:<8}[/dim] {escape(text)}", highlight=False)
    for hit in retrieval["hits"]:
        channels = "  ".join(
            f"{channel} {score:.3g}" + (f" (rank {hit['ranks'][channel]})" if channel in hit["ranks"] else "")
            for channel, score in hit["scores"].items()
        )
        sure = "" if hit.get("confidence") is None else f"{hit['confidence']:.0%} sure  "
        console.print(
            f"[bold]{hit['rank']:>3}  {escape(hit['collection'])}/{escape(hit['document_id'])}[/bold]  {sure}"
            f"score {hit['score']:.4g}  [dim]{escape(channels)}[/dim]",
            highlight=False,
        )
        console.print(f"     [dim]chunk {escape(hit['chunk_id'])}[/dim]", highlight=False)
    for said in retrieval["feedback"]:
        by = f" by {said['caller']}" if said["caller"] else ""
        comment = f": {snippet(said['comment'])}" if said["comment"] else ""
        console.print(escape(f"{said['rating']:+g}{by} for {said['chunk_id']}{comment}"), highlight=False)


def show_popular(console: Console, answer: JSONObject) -> None:
    """Two lines a chunk."""
    for chunk in answer["chunks"]:
        rank = "" if chunk["mean_rank"] is None else f", mean rank {chunk['mean_rank']:.1f}"
        said = chunk["feedback"]
        liked = f", {said['helpful']} helpful, {said['unhelpful']} not" if said["mean_rating"] is not None else ""
        console.print(
            f"[bold]{chunk['count']:>6}  {escape(chunk['title'])}[/bold]  "
            f"[dim]{escape(chunk['collection'])}/{escape(chunk['document_id'])}{rank}{liked}[/dim]",
            highlight=False,
        )
        console.print(f"        {escape(snippet(chunk['text']))}", highlight=False)
    if not answer["chunks"]:
        console.print("No chunk was a hit in this time.", highlight=False)


def _marks(retrieval: JSONObject) -> list[str]:
    return [
        *(["cached"] if retrieval["cached"] else []),
        *([retrieval["outcome"]] if retrieval["outcome"] != "done" else []),
    ]


def _asked(retrieval: JSONObject) -> JSONObject:
    collection = {} if retrieval["collection"] is None else {"collection": retrieval["collection"]}
    return {"mode": retrieval["mode"], **collection, **retrieval["parameters"]}
