"""How labels went wrong: which are believed, and what that means for training."""
