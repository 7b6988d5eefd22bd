"""Chapter 9: Multi-head attention: several maps at once."""
