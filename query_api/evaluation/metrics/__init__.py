"""The figures of an evaluation: arithmetic on lists of numbers, each formula with its source."""
