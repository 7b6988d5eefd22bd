"""What a learning platform gives of a class's submissions, brought to where grading finds it."""
