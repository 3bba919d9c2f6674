"""Paths of the files that come with fsviz: data/, app.py, pages/ and .streamlit/.

In a checkout they are next to the package; a wheel carries them inside it (pyproject.toml says so).
"""

from __future__ import annotations

from pathlib import Path

_INSIDE = Path(__file__).resolve().parent / "files"
INSTALLED = _INSIDE.is_dir()
ROOT = _INSIDE if INSTALLED else _INSIDE.parent.parent
DATA = ROOT / "data"
