"""Documents, pages, figures and tables; knows nothing of fairness or training."""
