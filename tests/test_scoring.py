"""Chapter 6."""

RIGHT = {}
