"""Shared by chapters, checks and grading: shapes, tensors, clocks, output, weight files."""
