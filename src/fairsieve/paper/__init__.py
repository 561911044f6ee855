"""The paper, reproduced: its methods, its experiments, its tables and figures, and the demo."""
