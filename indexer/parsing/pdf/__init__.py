"""PDF, by PDFium: `document` reads a file, page by page, as `page` gives their lines in reading order."""
