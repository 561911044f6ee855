"""Tables of more rows than fit into memory."""
