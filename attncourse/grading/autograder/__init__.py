"""The judge on Gradescope's machines: the zip that is uploaded there, and what runs in it."""
