"""`thalweg load` and `delete`: files to records, followed to searchable; it never opens a store."""
