"""``fairsieve train``, ``predict`` and ``audit``: from a table."""
