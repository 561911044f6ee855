"""A table in a file → its columns, typed, and what each is for."""
