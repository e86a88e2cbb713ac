"""`thalweg up`: the parts started, watched, started again; it never touches a record or a store."""
