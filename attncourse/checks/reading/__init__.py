"""Reading a student's notebook: its cells as they ran, and the lines of an error."""
