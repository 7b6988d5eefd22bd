"""Chapter 8: Cross-attention: questions from another sequence."""
