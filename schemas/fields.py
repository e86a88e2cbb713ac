"""The models of a collection's fields and their values, which forms of filters offer."""

from typing import Literal

from pydantic import BaseModel, Field


class FieldSummary(BaseModel):
    """A field that documents of a collection have."""

    name: str = Field(description="As `filter` takes it: `metadata.title` where documents have a `title` of their own.")
    origin: Literal["document", "metadata"]
    kind: Literal["text", "number", "date", "boolean"] = Field(
        description="What most of its values are, and so are compared as."
    )
    documents: int = Field(description="Documents that have a value in it.")


class FieldList(BaseModel):
    """The fields that most documents have come first; `total` counts those that are not listed too."""

    collection: str
    documents: int
    fields: list[FieldSummary]
    total: int


class FieldValue(BaseModel):
    """A value as most documents write it, those that differ in case counted together."""

    value: str
    documents: int
    filter: str | None = Field(
        description="The `filter` of a search that lets it through; null where none can be written, as for a field "
        "whose name holds an operator."
    )


class FieldValueList(BaseModel):
    """The values of most documents come first; `total` counts all distinct ones that begin with the prefix."""

    collection: str
    field: str
    values: list[FieldValue]
    total: int


class Facet(BaseModel):
    """The values of a field, counted over the documents that a search found."""

    field: str
    values: list[FieldValue] = Field(description="Those of most of them, 20 at most.")
    other: int = Field(description="How often these documents have a value that is not listed.")
    missing: int = Field(description="How many of them have none.")
