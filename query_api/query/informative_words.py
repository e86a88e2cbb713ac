"""What was recognised in a question, as it is told: the filters that it would be, with the words that say so."""

from query_api.query.field_constraints import Recognised
from schemas.hits import FieldInQuestion


def told_fields(recognised: Recognised) -> tuple[FieldInQuestion, ...]:
    """In the order of the question; a range is two of them, a lower and an upper bound."""
    return tuple(
        FieldInQuestion(words=each.said, fields=each.fields, operator=operator, value=value)
        for each in recognised.constraints
        for operator, value in each.bounds
    )
