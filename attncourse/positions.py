"""Chapter 11: Positions: how attention learns of order."""
