"""Chapter 8."""

RIGHT = {}
