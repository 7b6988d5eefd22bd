"""Collecting submissions from a learning platform's download into the course's folders."""
