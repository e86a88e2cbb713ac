"""What a question says: its words, names, fields, dates and parts; nothing is searched here."""
