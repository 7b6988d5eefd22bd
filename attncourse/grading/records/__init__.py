"""What grading writes down: the journal, nbgrader's gradebook, the files of a course."""
