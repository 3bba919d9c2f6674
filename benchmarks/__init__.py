"""Ratios against what a user would use instead, both sides measured in the same run and their outputs compared.

python -m benchmarks NAME --json
"""
