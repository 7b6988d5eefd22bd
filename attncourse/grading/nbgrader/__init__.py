"""Files for nbgrader: the autograded notebook, feedback, its own steps."""
