"""Running an answer on cases: safely, watched, and compared with the reference."""
