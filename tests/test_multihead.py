"""Chapter 9."""

RIGHT = {}
