"""The drawings of the chapters, one module each: what flows where, described in a few lines."""
