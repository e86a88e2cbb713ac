"""Study sets."""
from pydantic import BaseModel, Field
from schemas.entities import EntityRef, Evidence


class StudySource(Evidence):
    """The sentence, and its place in the text that was read from the document."""

    section: list[str] = Field(description="The headings above it, outermost first.")
    start: int = Field(description="Where it begins in that text, in Unicode characters.")
    end: int = Field(description="Where it ends, exclusive.")
