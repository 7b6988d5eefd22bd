"""What is drawn in a test begins with one number: nothing in a run depends on luck.

That goes for what the tests draw, for the fresh seeds of checks and grades, and for generators that
answers make without a seed. ``ATTNCOURSE_TESTS_SEED=7 pytest …`` tries another number, and examples
that Hypothesis has not tried before.
"""

import os
import random
import secrets
import sys

import numpy as np

SEED = int(os.environ.get("ATTNCOURSE_TESTS_SEED", "0"))


def settle() -> None:
    """All that somebody could draw from begins anew."""
    random.seed(SEED)
    np.random.seed(SEED)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(SEED)
    fresh = random.Random(SEED)
    secrets.randbits, secrets.randbelow = fresh.getrandbits, fresh.randrange
    np.random.bit_generator.randbits = fresh.getrandbits  # NumPy's where it is given no seed
