"""How labels went wrong: the estimate, labels that somebody checked, and what follows for training."""
