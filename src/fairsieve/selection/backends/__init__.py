"""Who answers the questions of the search: compiled loops, tensors on a device, Triton."""
