"""The parameters by which a route of a document or a community gives its summary with sources."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Query, Request

from query_api.auth import check_access
from query_api.errors import invalid_request
from query_api.routes.parameters import ServiceOf
from query_api.routes.search import unless_disconnected
from query_api.study.summarised import Summarised
from schemas.answers import AnswerForm, Summary

Summarise = Callable[[Callable[[], Summarised]], Awaitable[Summary | None]]
"""What is summarised, which may block → the summary; None where none is asked for. May raise ApiProblem."""


async def summarise_as_asked(
    request: Request,
    service: ServiceOf,
    summary_form: Annotated[
        AnswerForm | None,
        Query(
            description="Give `written_summary`: `extract`, sentences of documents, or `model`, written by a language "
            "model and kept until what it is of changes."
        ),
    ] = None,
    refresh: Annotated[
        bool, Query(description="With `summary_form=model`: have it written again. Needs a key that may write.")
    ] = False,
) -> Summarise:
    """Raises ApiProblem for what cannot be given, before anything is looked up."""
    writer = service.writer_for("summary_form") if summary_form == "model" else None
    if refresh and writer is None:
        raise invalid_request("`refresh` has a summary written again: send `summary_form=model` with it.")
    if refresh:
        check_access(getattr(request.state, "access", "full"), "refresh=true of", request.url.path)

    async def summarise(summarised: Callable[[], Summarised]) -> Summary | None:
        if summary_form is None:
            return None
        of = await service.read(summarised)
        if writer is None:
            return of.extract
        caller = getattr(request.state, "access", "anyone")
        return await unless_disconnected(request, service.summaries.written(writer, of, caller, again=refresh))

    return summarise


SummariseAsAsked = Annotated[Summarise, Depends(summarise_as_asked)]
