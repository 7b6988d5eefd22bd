"""Chapter 10: Masking: what a model must not see."""
