"""Metrics that only the studies of images and of much data ask for."""
