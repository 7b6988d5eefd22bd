"""What happens to a course in the course of time: people leave, gradebooks move, terms end."""
