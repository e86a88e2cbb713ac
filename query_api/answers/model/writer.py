"""An answer that a language model writes: its sentences, each as it is found to be supported; else the extract."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any

import msgspec
import structlog
from cachetools import LRUCache

from indexer.errors import ChatModelFailure
from indexer.runtime.chat_model import LIKELIEST, VARIED, ChatModel, Message
from query_api.answers.answer import citation_of, frames_of, limits_of
from query_api.answers.model.prompt import messages, repair
from query_api.answers.model.reply import Claim, ReplyReader, T, read_reply
from query_api.answers.model.support import Source, sources_of, supporting
from query_api.answers.sentences import HITS
from schemas.answers import AnswerCitation, AnswerDelta, Citation, TokenUsage
from schemas.frames import Done
from schemas.hits import Hit
from schemas.search import SearchRequest

log = structlog.get_logger(__name__)

HOW_TO_CONFIGURE = (
    "`{0}=model`: this service has no language model. Set THALWEG_LANGUAGE_MODEL__BASE_URL and "
    "THALWEG_LANGUAGE_MODEL__MODEL and start it again, or leave `{0}` out."
)
NO_ANSWER = (
    "The language model found no answer in the first passages. Ask without `answer_form` for the likeliest sentences."
)
AT_ONCE = 16  # answers being written; further ones are extracts
TOKENS_A_WORD = 4  # of the answer, in any language
OTHER_TOKENS = 1_024  # what some models think aloud before it
MOST_CHARACTERS = 12_000  # of a reply
MOST_SECONDS = 15.0  # of a decision, which a search waits for
REMEMBERED = 256  # decisions: a stream that is resumed is of the same question
_REPAIR = "That cannot be used. Write nothing but the JSON object, in words that you were shown."

CountTokens = Callable[[str, TokenUsage], None]


class AnswerWriter:
    """Has answers written by one model, and what is to be asked decided by another, which may be smaller. `count` gets
    the caller and the usage of each. On the event loop only."""

    def __init__(self, model: ChatModel, decider: ChatModel, count: CountTokens) -> None:
        self._model, self._decider, self._count = model, decider, count
        self.name = model.name
        self._places = asyncio.Semaphore(AT_ONCE)
        self._decided: LRUCache[bytes, Any] = LRUCache(REMEMBERED)

    async def decide(self, asked: Sequence[Message], read: Callable[[str], T | None], caller: str) -> T | None:
        """What `read` takes of the reply; None where the model fails, or twice replies what `read` refuses: then a rule
        decides."""
        key = msgspec.json.encode(asked)
        if (known := self._decided.get(key)) is not None:
            found: T = known
            return found
        usage = TokenUsage(model=self._decider.name)
        try:
            async with asyncio.timeout(MOST_SECONDS), self._places:
                self._decided[key] = found = await read_reply(self._decider, asked, read, usage, _REPAIR)
        except (ChatModelFailure, TimeoutError) as failure:
            log.warning("a rule decides in place of the language model", why=str(failure) or "It is late.")
            return None
        finally:
            self._count(caller, usage)
        return found

    async def write(
        self, request: SearchRequest, hits: Sequence[Hit], done: Done, caller: str
    ) -> AsyncGenerator[AnswerCitation | AnswerDelta]:
        """The frames of an answer from the first hits, which takes the place of the extract in `done` unless that is
        refused. The extract stays, and a note says why, where the model fails or says nothing that is supported. Where
        it fails after some sentences, these stay. Raises nothing for the model."""
        extract = done.answer
        if extract is None or extract.refused:
            return
        began, (most, words) = time.perf_counter(), limits_of(request)
        draft = await self._draft(hits[:HITS], most, words)
        asked = messages(request.q, draft.hits, sentences=most, words=words)
        async with aclosing(self._frames(asked, draft, caller)) as frames:
            async for frame in frames:
                yield frame
        done.timings["write"] = round(time.perf_counter() - began, 6)
        about: dict[str, Any] = {"dropped": draft.dropped, "usage": draft.usage}
        if draft.citations:
            about |= {"form": "model", "text": draft.text, "citations": draft.citations}
            done.notes += [f"The answer may lack something: {draft.problem}"] if draft.problem else []
        elif draft.is_nothing:
            about |= {"form": "model", "text": "", "citations": [], "refused": True, "reason": NO_ANSWER}
        else:
            why = draft.problem or "Nothing that the language model wrote is supported by what was found."
            done.notes.append(f"{why} The answer is sentences of the documents instead, word for word.")
            for frame in frames_of(extract):
                yield frame
        done.answer = extract.model_copy(update=about)

    async def summarise(
        self, asked: Sequence[Message], hits: Sequence[Hit], most: int, words: int, caller: str, *, again: bool
    ) -> "Draft":
        """What the model writes when it is `asked` to summarise the passages of these hits; `again` in other words than
        before. Raises nothing for the model."""
        draft = await self._draft(hits, most, words)
        async with aclosing(self._frames(asked, draft, caller, VARIED if again else LIKELIEST)) as frames:
            async for _ in frames:
                pass
        return draft

    async def _draft(self, hits: Sequence[Hit], most: int, words: int) -> "Draft":
        sources = await asyncio.to_thread(sources_of, hits)
        return Draft(hits, sources, most, words, TokenUsage(model=self.name))

    async def _frames(
        self, asked: Sequence[Message], draft: "Draft", caller: str, temperature: float = LIKELIEST
    ) -> AsyncGenerator[AnswerCitation | AnswerDelta]:
        """Those of the sentences that are supported. The draft says what was wrong where the model fails."""
        try:
            async with aclosing(self._claims(asked, draft, temperature)) as claims:
                async for claim in claims:
                    for frame in draft.add(claim):
                        yield frame
        except ChatModelFailure as failure:
            draft.problem = str(failure)
        finally:  # also where the client leaves
            self._count(caller, draft.usage)

    async def _claims(self, asked: Sequence[Message], draft: "Draft", temperature: float) -> AsyncGenerator[Claim]:
        """The sentences of the reply; of a second one where none of the first names a passage."""
        deadline = asyncio.get_running_loop().time() + self._model.seconds
        most_tokens = TOKENS_A_WORD * draft.most_words + OTHER_TOKENS
        if self._places.locked():
            raise ChatModelFailure("The language model writes as many answers as it can at once.")
        async with self._places:
            for warmth in (temperature, VARIED):
                reader = ReplyReader()
                reply = self._model.reply(
                    asked, draft.usage, most_tokens=most_tokens, deadline=deadline, temperature=warmth
                )
                async with aclosing(reply) as pieces:
                    async for piece in pieces:
                        for claim in reader.add(piece):
                            yield claim
                        if len(reader.text) > MOST_CHARACTERS:
                            break
                for claim in reader.end():
                    yield claim
                if reader.is_usable:
                    return
                asked = repair(asked, reader.text)


class Draft:
    """What is written so far, at most `most` sentences of `most_words` words together, and what it took; `problem` is
    what the model failed by."""

    def __init__(
        self, hits: Sequence[Hit], sources: Sequence[Sequence[Source]], most: int, most_words: int, usage: TokenUsage
    ) -> None:
        self.hits, self.most, self.most_words, self.usage = hits, most, most_words, usage
        self.text = self.problem = ""
        self.citations: list[Citation] = []
        self.dropped = 0
        self.is_nothing = False
        self._sources = sources
        self._numbers: dict[tuple[int, int], int] = {}  # of a citation, by hit and place
        self._sentences = self._words = 0

    def add(self, claim: Claim) -> Iterator[AnswerCitation | AnswerDelta]:
        """The frames of a sentence that is supported, and for which there is room."""
        self.is_nothing |= claim.is_nothing
        words = len(claim.text.split())
        is_full = self._sentences >= self.most or (self._sentences and self._words + words > self.most_words)
        if claim.is_nothing or is_full:
            return
        cited = [number - 1 for number in dict.fromkeys(claim.numbers) if 1 <= number <= len(self._sources)]
        support = supporting(claim.text, [source for at in cited for source in self._sources[at]])
        if not support:
            self.dropped += 1
            return
        numbers = []
        for sentence in support:
            place = (sentence.hit, sentence.start)
            if place not in self._numbers:
                self._numbers[place] = len(self._numbers) + 1
                self.citations.append(citation_of(self._numbers[place], self.hits[sentence.hit], sentence))
                yield AnswerCitation(**self.citations[-1].model_dump())
            numbers.append(self._numbers[place])
        marks = "".join(f" [{number}]" for number in numbers)
        piece = "\n" * bool(self.text) + claim.text + marks
        yield AnswerDelta(index=self._sentences, text=piece, citations=numbers)
        self.text += piece
        self._sentences += 1
        self._words += words
