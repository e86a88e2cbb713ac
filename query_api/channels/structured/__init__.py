"""The structured channel: documents whose own fields are what a question names, found without looking at texts."""
