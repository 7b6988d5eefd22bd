"""The wire between checker and worker: frames, values as JSON and bytes, and their size limits."""
