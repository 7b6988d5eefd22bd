"""What a student's notebook says: its cells as they ran, and the lines of an error."""
