"""`/` and `/console/…`: the web console, one page with its scripts and styles, built by `make console`.

The page is a client of the public routes and holds no data, so it needs no API key. Views are distinguished by hashes
(`/#/search?q=…`), so there is one page to serve.
"""

from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from fastapi.staticfiles import StaticFiles

from query_api.middleware import PAGE_FILES, PAGE_PATH

router = APIRouter(include_in_schema=False)

DIST = Path(__file__).parents[1] / "console" / "dist"
NOT_BUILT = (
    "The web console is not built here. In a checkout of Thalweg, `make console` builds it; then load this page again. "
    "The service itself works without: /docs describes it.\n"
)
POLICY = (
    "default-src 'self'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
)
HEADERS = {
    "Content-Security-Policy": "; ".join(POLICY),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
FOREVER = "public, max-age=31536000, immutable"


@router.api_route(PAGE_PATH, methods=["GET", "HEAD"])
async def page(request: Request) -> Response:
    """The page; a sentence that says how to build it, with the status 503, where it is not built."""
    if not (DIST / "index.html").is_file():
        return PlainTextResponse(NOT_BUILT, 503, HEADERS | {"Cache-Control": "no-store"})
    answer = await _files().get_response("index.html", request.scope)
    answer.headers.update(HEADERS | {"Cache-Control": "no-cache"})
    return answer


@router.api_route(PAGE_FILES + "{name:path}", methods=["GET", "HEAD"])
async def file(name: str, request: Request) -> Response:
    """What the page loads. A name holds the hash of the file's content, so it is never asked for twice."""
    answer = await _files().get_response(f"console/{name}", request.scope)
    answer.headers.update(HEADERS | {"Cache-Control": FOREVER})
    return answer


def _files() -> StaticFiles:
    """Raises HTTPException 404 for what is none of them, from `get_response`."""
    return StaticFiles(directory=DIST, check_dir=False)
