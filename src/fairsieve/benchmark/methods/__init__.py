"""The methods that the paper compares, and others, behind one contract."""
