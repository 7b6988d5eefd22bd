"""The course's gradebook, nbgrader's database: the one room that opens, reads and writes it."""
