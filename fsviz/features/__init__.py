"""Features: backbones, image-text models, extraction, and the store on disk.

load(dataset, backbone)      features of a dataset's images
available(dataset)           backbones that have features of it
list_features()              all that is stored
extract(dataset, backbone)   images to features
"""
