"""`thalweg load` and `delete`: files to records, followed until searchable; it never writes to a store."""
