"""The service's HTTP interface: strict bodies in, the documented JSON or one error sentence out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from answerer.engine import MOST_CHARACTERS, MOST_PASSAGES, Engine, Thread
from answerer.identity import Asker, Doorkeeper
from answerer.lines import LINES, as_lines
from answerer.results import Answer, Jsonable
from answerer.shown import parse_lines
from answerer.sockets import PEER
from answerer.visit import Reply, Where
from notewarden.errors import AskerUnknown, NotewardenError, UsageError
from notewarden.log import get_logger

NOTICES = "Notewarden-Notice"
"""The header that carries what the asker must be told besides: percent-encoded, repeated."""

_MOST_BYTES = 65_536  # of a request's body
_HTTP_STATUS = {1: 500, 2: 400, 3: 404, 4: 503, 5: 403, 6: 503, 7: 503, 8: 502, 9: 429}


class _Body(BaseModel):
    """A request. An unknown field, or a value of another type, is refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    as_user: Annotated[str | None, Field(alias="as", min_length=1, max_length=500)] = None


class _Scoped(_Body):
    folders: Annotated[list[Annotated[str, Field(max_length=8_192)]], Field(max_length=100)] = []
    share: Annotated[str | None, Field(max_length=100)] = None
    k: Annotated[int, Field(ge=1, le=MOST_PASSAGES)] = 8

    @property
    def where(self) -> Where:
        """Where to look."""
        return Where(self.share, tuple(self.folders))


class AskBody(_Scoped):
    """POST /v1/ask."""

    question: Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]
    continued: bool = False


class SearchBody(_Scoped):
    """POST /v1/search."""

    words: Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]
    explain: bool = False


class ShowBody(_Body):
    """POST /v1/show. `lines` is "A-B"."""

    path: Annotated[str, Field(min_length=1, max_length=8_192)]
    share: Annotated[str | None, Field(max_length=100)] = None
    lines: Annotated[str | None, Field(max_length=30)] = None


def _peer_uid(request: Request) -> int:
    found = request.scope.get(PEER)
    if not isinstance(found, int):
        raise AskerUnknown("The connection does not tell who you are, so nothing is shown.")
    return found


Peer = Annotated[int, Depends(_peer_uid)]


def make_app(engine: Engine, doorkeeper: Doorkeeper) -> Any:
    """Return the ASGI application. Who asks is the connection's peer, never a field of the request."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    _add_errors(app)

    @app.post("/v1/ask")
    def ask(body: AskBody, uid: Peer, request: Request) -> Response:
        asker = doorkeeper.asker(uid, body.as_user)

        def answer(show: Callable[[str], None]) -> Reply[Answer]:
            thread = Thread(body.continued, show)
            return engine.ask(asker, body.question, body.where, body.k, thread=thread)

        if LINES in request.headers.get("accept", ""):
            return as_lines(answer)
        return _reply(answer(lambda _: None))

    @app.post("/v1/forget")
    def forget(body: _Body, uid: Peer) -> JSONResponse:
        return _reply(engine.forget(doorkeeper.asker(uid, body.as_user)))

    @app.post("/v1/search")
    def search(body: SearchBody, uid: Peer) -> JSONResponse:
        asker = doorkeeper.asker(uid, body.as_user)
        return _reply(engine.search(asker, body.words, body.where, body.k, explain=body.explain))

    @app.post("/v1/show")
    def show(body: ShowBody, uid: Peer) -> JSONResponse:
        asker = doorkeeper.asker(uid, body.as_user)
        lines = None if body.lines is None else parse_lines(body.lines)
        return _reply(engine.show(asker, body.path, body.share, lines))

    @app.get("/v1/status")
    def status(request: Request, uid: Peer) -> JSONResponse:
        return _reply(engine.status(_status_asker(doorkeeper, request, uid)))

    return _Guard(app)


def _status_asker(doorkeeper: Doorkeeper, request: Request, uid: int) -> Asker:
    parameters = request.query_params.multi_items()
    if any(name != "as" for name, _ in parameters) or len(parameters) > 1:
        raise UsageError("status takes one parameter at most: as.")
    return doorkeeper.asker(uid, dict(parameters).get("as"), may_lack=True)


def _reply(reply: Reply[Any]) -> JSONResponse:
    result: Jsonable = reply.result
    response = JSONResponse(result.to_json())
    for notice in reply.notices:
        response.headers.append(NOTICES, quote(notice))
    return response


def _error(status: int, sentence: str, exit_code: int) -> JSONResponse:
    return JSONResponse({"error": sentence, "exit_code": exit_code}, status)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(NotewardenError)
    def ours(_: Request, error: NotewardenError) -> JSONResponse:
        return _error(_HTTP_STATUS.get(error.exit_code, 500), str(error), error.exit_code)

    @app.exception_handler(RequestValidationError)
    def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        return _error(400, _what_is_wrong(error.errors()), 2)

    @app.exception_handler(HTTPException)
    def http(_: Request, error: HTTPException) -> JSONResponse:
        return _error(error.status_code, f"There is nothing here: {error.detail}.", 2)

    @app.exception_handler(Exception)
    def bug(_: Request, error: Exception) -> JSONResponse:
        return _error(500, "The answerer failed unexpectedly; its log has more.", 1)


def _what_is_wrong(errors: Sequence[Any]) -> str:
    first = errors[0] if errors else {"loc": (), "msg": "unknown"}
    names = [str(part) for part in first["loc"] if part != "body"]
    return f"The request is not valid: {'.'.join(names) or 'body'}: {first['msg']}."


class _Guard:
    """What is refused before anything is parsed: credentials on this door, bodies too long to be honest."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        refusal = _refusal(scope["headers"])
        try:
            await (self._app if refusal is None else refusal)(scope, receive, send)
        except Exception as error:
            # It was answered with 500. Further up it would be logged whole, and it may quote a note.
            get_logger(__name__).error("unexpected fault", fault=type(error).__name__)


def _refusal(headers: Sequence[tuple[bytes, bytes]]) -> JSONResponse | None:
    names = [name.lower() for name, _ in headers]
    if b"authorization" in names or b"proxy-authorization" in names:
        return _error(400, "This door knows you by your account; remove the Authorization header.", 2)
    lengths = [value for name, value in headers if name.lower() == b"content-length"]
    if b"transfer-encoding" in names:
        return _error(411, "The request must say how long it is.", 2)
    if any(not value.isdigit() or int(value) > _MOST_BYTES for value in lengths):
        return _error(413, f"The request is longer than {_MOST_BYTES} bytes.", 2)
    return None
