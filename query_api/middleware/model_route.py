"""Routes whose body FastAPI makes a model of: what the body holds is counted before."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from query_api.errors import ApiProblem
from query_api.middleware.json_size import check_members, json_size

MAX_FIELDS = 100


class ModelRoute(APIRoute):
    """`APIRouter(route_class=ModelRoute)`. A model that does not fit costs a sentence for each member that is wrong, so
    a body has no more of them than a right one could have."""

    max_members = 2_000

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        if self.body_field is None:
            return handle

        async def counted(request: Request) -> Response:
            body = await request.body()  # which keeps it for the handler
            size = await asyncio.to_thread(json_size, body, self.max_members)
            check_members(size, self.max_members)
            if size.top > MAX_FIELDS:
                raise ApiProblem(
                    422, "Request does not fit", f"The body has {size.top:,} fields; no route takes over {MAX_FIELDS}."
                )
            return await handle(request)

        return counted


class LargeModelRoute(ModelRoute):
    """For lists of questions and judgements."""

    max_members = 100_000
