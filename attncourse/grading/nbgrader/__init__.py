"""What nbgrader shows of a submission: the autograded notebook, feedback, its own steps."""
