"""Text to chunks: sentences by the rules of the language, sizes, changes of subject."""
