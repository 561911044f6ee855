"""Arrays in, arrays out: no model, no training, no global state."""
