"""The paper's tables and figures: what they print, which runs they need, and the runs themselves."""
