"""Features: backbones, image-text models, extraction, and the store on disk.

load(dataset, backbone)      features of a dataset's images
available(dataset)           backbones that have features of it
required(dataset)            the same, refused if there are none
list_features()              all that is stored
fingerprint(dataset)         changes when its images do
extract(dataset, backbone)   images to features
import_features(name, file)  features made elsewhere, as a dataset of their own
"""

from __future__ import annotations

from typing import Any

from fsviz.features.store import available, fingerprint, list_features, load, required

__all__ = ["available", "extract", "fingerprint", "import_features", "list_features", "load", "required"]


def extract(*args: Any, **options: Any) -> Any:
    """Images to features; see fsviz.features.extraction.extract."""
    from fsviz.features.extraction import extract as run  # torch comes with it

    return run(*args, **options)


def import_features(*args: Any, **options: Any) -> Any:
    """Features made elsewhere; see fsviz.features.importing.import_features."""
    from fsviz.features.importing import import_features as run

    return run(*args, **options)
