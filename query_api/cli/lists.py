"""The commands that list things: a table on a terminal, a line each elsewhere, and how to go on."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from query_api.cli import app as commands
from query_api.cli.app import print_json
from schemas.terminal import say

OF_ALL_COLLECTIONS = "Looked in all collections; --collection names one."

Limit = Annotated[int, typer.Option(min=1, help="At most this many.")]
WholeLimit = Annotated[int | None, typer.Option(min=1, help="At most this many.", show_default="all")]
Cursor = Annotated[str | None, typer.Option(help="Continue after the page that named this cursor.")]

Member = dict[str, Any]


def notes(answer: Member) -> Iterable[str]:
    """What the service adds to a list."""
    return (str(note) for note in answer.get("notes", ()))


@dataclass(frozen=True)
class Listing:
    """A list of the service: `members` of the answer of `path`, which gives `page_limit` at a time, or all of them.

    `columns` give by heading the text of a member, the last one of one or several lines; `numbers` are those of the
    right. Then come the lines of `after`, and for none of them what to do about it, `hint`.
    """

    path: str
    members: str
    columns: dict[str, Callable[[Member], str]]
    numbers: Sequence[str] = ()
    page_limit: int | None = None
    after: Callable[[Member], Iterable[str]] = notes
    hint: str = ""

    def show(
        self, params: dict[str, Any], *, limit: int | None, as_json: bool, url: str | None, data_dir: Path | None
    ) -> None:
        """GET the list with the parameters that are given, following its cursors until `limit` of its members are
        there, and print it as one page; with a line where it could be of one collection and is of all."""
        given = {name: value for name, value in params.items() if value is not None}
        with closing(commands.service_client(url, data_dir)) as client:
            answer = client.get(self.path, given | self._size(limit))
            found = answer[self.members]
            while limit is not None and len(found) < limit and answer.get("next_cursor") is not None:
                following = {"cursor": answer["next_cursor"], **self._size(limit - len(found))}
                answer = client.get(self.path, given | following)
                found = [*found, *answer[self.members]]
        answer |= {self.members: found[:limit]}
        if as_json:
            print_json(answer)
            return
        self._print(answer, filtered=any(value for name, value in given.items() if name != "cursor"))
        if "collection" in params and params["collection"] is None:
            say(OF_ALL_COLLECTIONS)

    def _size(self, limit: int | None) -> dict[str, int]:
        return {} if self.page_limit is None or limit is None else {"limit": min(limit, self.page_limit)}

    def _print(self, answer: Member, *, filtered: bool) -> None:
        from query_api.cli.display import print_table

        if found := answer[self.members]:
            rows = [[text(member) for text in self.columns.values()] for member in found]
            print_table(list(self.columns), rows, numbers=self.numbers, with_ids=True)
        elif answer.get("next_cursor") is not None:
            say("None here.")
        else:
            what = self.members.replace("_", " ")
            say(f"There are no {'such ' if filtered else ''}{what}.{self.hint}")
        for line in self.after(answer):
            say(line)
        if answer.get("next_cursor") is not None:
            say(f"There are more: --cursor {answer['next_cursor']}")
