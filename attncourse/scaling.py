"""Chapter 7: Scaling: why the root of d_k."""
