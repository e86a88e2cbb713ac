"""`thalweg load` and `delete`: files to records, followed until searchable."""
