"""Files of office programs and books: ZIP archives of XML, opened by `archive` within limits."""
