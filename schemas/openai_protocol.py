"""OpenAI's protocol, as far as it is read and answered here."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StrictBool

CHAT_PATH, RESPONSES_PATH, MODELS_PATH = "/v1/chat/completions", "/v1/responses", "/v1/models"
OPENAI_PATHS = frozenset({CHAT_PATH, RESPONSES_PATH, MODELS_PATH})
BAD_REQUESTS = frozenset({413, 414, 415, 422})  # which the protocol has one status for, 400
MODEL = "thalweg"


class ContentPart(BaseModel):
    type: str = Field(description="Of a user's message, `text` or `input_text`.")
    text: str | None = None


class Message(BaseModel):
    """One turn of a conversation, or another item of a request, which is passed over."""

    role: str | None = Field(None, examples=["user"])
    content: str | list[ContentPart] | None = Field(None, examples=["Who wrote PEP 8?"])

    @property
    def text(self) -> str:
        parts = self.content if isinstance(self.content, list) else [ContentPart(type="text", text=self.content)]
        return "\n".join(part.text for part in parts if part.text).strip()


Messages = Annotated[list[Message], Field(min_length=1)]


class ModelRequest(BaseModel):
    """What both kinds of request have. Other fields of the protocol are accepted and mean nothing here."""

    model: str = Field(description=f"`{MODEL}`.", examples=[MODEL])
    stream: StrictBool | None = Field(None, description="Whether to answer with events as the answer becomes known.")
    thalweg: dict[str, Any] | None = Field(
        None,
        description="How to search: the parameters of `/v1/answers`, but `q`.",
        examples=[{"collection": "manuals", "k": 5}],
    )


class ChatRequest(ModelRequest):
    messages: Messages = Field(
        description="The last one of the user is answered; the six before it say what a follow-up is about."
    )


class ResponsesRequest(ModelRequest):
    input: str | Messages = Field(description="A question, or messages as of a chat.", examples=["Who wrote PEP 8?"])
    previous_response_id: None = Field(None, description="Responses are not kept: send earlier messages in `input`.")


class UrlCitation(BaseModel):
    """The source of what a marker follows, which is at these characters of the text; `end_index` exclusive."""

    type: Literal["url_citation"] = "url_citation"
    start_index: int
    end_index: int
    url: str
    title: str


class ErrorBody(BaseModel):
    """An error as OpenAI's clients read it: `message`, `type`, `param`, `code`."""

    error: dict[str, str | None]
