"""Training killed (SIGKILL) thirty times at random moments: what was killed ends with the same bits.

    python tests/stress/kill_runs.py --kills 30

Prints how often a training was killed and begun again, how many kills left a half-written file (``parts``),
how many trainings came to their end, and how many of those with the bits of one that was left alone.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.support.kills import main

if __name__ == "__main__":
    main()
