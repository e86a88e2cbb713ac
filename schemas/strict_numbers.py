"""Numbers of a request that are numbers: `true` is no 1, whatever Python says."""

from typing import Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator, ValidationInfo, field_validator


def no_truth(value: object) -> object:
    """The value, where it is neither true nor false. Raises ValueError."""
    if isinstance(value, bool):
        raise ValueError(f"give a number; {str(value).lower()} is none")  # noqa: TRY004 -- what pydantic makes a 422 of
    return value


Count = Annotated[int, BeforeValidator(no_truth)]


class StrictNumbers(BaseModel):
    """A model whose numbers may be text, as in a query string, but no truth values."""

    @field_validator("*", mode="before")
    @classmethod
    def _numbers_are_numbers(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, bool):
            return value
        kinds = _kinds(cls.model_fields[str(info.field_name)].annotation)
        return no_truth(value) if {int, float} & kinds and bool not in kinds else value


def _kinds(annotation: Any) -> set[Any]:
    """A type with all that it is made from."""
    return {annotation}.union(*(_kinds(argument) for argument in get_args(annotation)))
