"""Chapter 10."""

RIGHT = {}
