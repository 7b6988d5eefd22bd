"""Chapter 7."""

RIGHT = {}
