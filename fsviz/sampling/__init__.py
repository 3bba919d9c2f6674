"""Drawing tasks: uniform and semantic class samplers, image assignment, testbed files.

Samplers take arrays: class ids, a distance matrix, the class of every image.
"""

from __future__ import annotations

from fsviz.sampling.draw import assign_images, count_distinct, sample_semantic, sample_uniform

__all__ = ["assign_images", "count_distinct", "sample_semantic", "sample_uniform"]
