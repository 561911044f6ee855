"""Who answers the questions of the search: NumPy, torch on a device, several workers."""
