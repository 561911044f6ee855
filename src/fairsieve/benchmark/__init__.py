"""Methods side by side: what they are, the problems they are given, and runs that are recorded."""
