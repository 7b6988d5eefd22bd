"""What crosses between checker and worker: frames, values as JSON and bytes, and how much of it."""
