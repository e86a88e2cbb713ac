"""How much a document of each format may hold. What exceeds a bound is refused before it costs time or memory.

The limited child process (`indexer.sandbox.sandbox`) stands behind these: it ends whatever they do not foresee.
"""

MIB = 1024 * 1024

MAX_MARKDOWN_DEPTH = 100
MAX_HTML_DEPTH = 256  # deeper start tags are left out, their words stay
MAX_JSON_DEPTH = 100
MAX_XML_DEPTH = 256  # libxml2's own bound
MAX_XML_TAGS = 1_000_000  # start and end tags; a book of 10 MB has some 300,000

MAX_TABLE_ROWS = 20_000  # each is a section with a chunk of its own
MAX_TABLE_COLUMNS = 1_000
MAX_TABLE_ROW_CHARACTERS = 1_000_000
MAX_TABLE_FIELD_CHARACTERS = 131_072  # the csv module's own bound

MAX_PDF_PAGES = 2_000
MAX_PDF_PAGE_CHARACTERS = 200_000  # a page of dense print has about 10,000
MAX_PDF_CHARACTERS = 10_000_000
MAX_PDF_CPU_SECONDS = 6  # for all pages; a page of print takes 1 to 5 ms
MAX_OUTLINE_ENTRIES = 4_000
MAX_OUTLINE_DEPTH = 16

MAX_ARCHIVE_MEMBERS = 5_000
MAX_UNPACKED_BYTES = 256 * MIB
MAX_UNPACKED_XML_BYTES = 12 * MIB
MAX_DOCX_ELEMENTS = 100_000  # without those of layout; mammoth reads some 15,000 of them a CPU second
MAX_UNPACKED_RATIO = 250  # of a member of a MiB or more; XML of long tables reaches about 100
