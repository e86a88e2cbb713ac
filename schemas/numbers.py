"""Numbers in the bodies of requests."""

from typing import Any

from pydantic import field_validator


def whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def whole_numbers(*fields: str) -> Any:
    """A validator of a strict model: in these fields 63.0 is an integer, too, as JSON has it. Elsewhere only 63 is.

    Not a type: bounds of a field around one do not come into the OpenAPI document.
    """
    return field_validator(*fields, mode="before")(whole)
