"""The methods of the paper, and those that `compare` has beside them."""
