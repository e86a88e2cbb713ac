"""Which installation answers: every answer names it, and a request that is meant for another one is refused."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from query_api.errors import ApiProblem
from schemas.runtime import INSTALLATION_HEADER


class InstallationMiddleware:
    """ASGI middleware, before the keys are looked at: an id says nothing of where the installation is."""

    def __init__(self, app: ASGIApp, installation: str) -> None:
        """`installation` is empty for a data directory without an id."""
        self._app = app
        self._installation = installation

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start" and self._installation:
                MutableHeaders(scope=message)[INSTALLATION_HEADER] = self._installation
            await send(message)

        meant = Headers(scope=scope).get(INSTALLATION_HEADER)
        if meant is None or meant == self._installation:
            await self._app(scope, receive, send_named)
            return
        problem = ApiProblem(
            421,
            "Another installation",
            f"The request is meant for the installation {meant[:40]!r}, and this one is "
            f"{self._installation or 'without an id'}. Nothing was done. Ask the service of that one, or leave the "
            f"header {INSTALLATION_HEADER} out.",
            members={"reason": "another_installation"},
        )
        await problem.response()(scope, receive, send_named)
