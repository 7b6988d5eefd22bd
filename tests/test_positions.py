"""Chapter 11."""

RIGHT = {}
