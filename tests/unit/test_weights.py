"""How much there is of what a person has to read or to choose."""

from schemas.setting_names import NAMES

MOST_SETTINGS = 55


def test_settings_are_few() -> None:
    """What only tunes the product is a constant beside the code that uses it."""
    assert len(NAMES) <= MOST_SETTINGS
