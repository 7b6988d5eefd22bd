"""Feedback for students: a page each, and zips as learning platforms accept them."""
