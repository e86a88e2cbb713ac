"""The parameters by which a route of a document or a community gives its summary as a text."""

from collections.abc import Callable
from typing import Annotated, NamedTuple

from fastapi import Depends, Query, Request

from query_api.auth import check_access
from query_api.errors import invalid_request
from query_api.routes.parameters import ServiceOf
from query_api.routes.search import unless_disconnected
from query_api.service_context import Service
from query_api.study.summarised import Summarised
from schemas.answers import AnswerForm, Summary


class AskedSummary(NamedTuple):
    request: Request
    service: Service
    form: AnswerForm | None
    refresh: bool

    async def of(self, summarised: Callable[[], Summarised]) -> Summary | None:
        """None where none is asked for. `summarised` may block. Raises ApiProblem, also where the client leaves."""
        if self.form is None:
            return None
        found = await self.service.read(summarised)
        if self.form == "extract":
            return found.extract
        writer = self.service.asked_model("summary_form").writer
        caller = getattr(self.request.state, "access", "anyone")
        written = self.service.summaries.written(writer, found, caller, anew=self.refresh)
        return await unless_disconnected(self.request, written)


async def asked_summary(
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
) -> AskedSummary:
    """Raises ApiProblem for what cannot be given, before anything is looked up."""
    if summary_form == "model":
        service.asked_model("summary_form")
    if refresh:
        if summary_form != "model":
            raise invalid_request("`refresh` has a summary written again: send `summary_form=model` with it.")
        check_access(getattr(request.state, "access", "full"), "refresh=true of", request.url.path)
    return AskedSummary(request, service, summary_form, refresh)


SummaryOf = Annotated[AskedSummary, Depends(asked_summary)]
