"""Ratios against what a user would use instead, both sides measured in the same run and their outputs compared.

python -m benchmarks NAME --json
"""

import os

# On both sides; numpy reads it when it is imported, which comes after this.
os.environ.setdefault("OMP_NUM_THREADS", "1")
