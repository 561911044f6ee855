"""The records of ``fairsieve reproduce`` as tables, figures, verdicts and a page; never trains."""
