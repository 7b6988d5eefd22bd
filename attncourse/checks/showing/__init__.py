"""What a student sees: the verdict, as text and in a notebook, and the table at its end."""
