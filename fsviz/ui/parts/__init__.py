"""Pieces that several pages are made of: the frame, controls, walls of images, runs under way."""
