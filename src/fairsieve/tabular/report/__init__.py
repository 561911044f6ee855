"""A run on a table → its page, its card, and its folder."""
