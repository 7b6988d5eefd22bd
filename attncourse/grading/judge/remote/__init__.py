"""The checker's side: a submission's functions, classes and objects as tests see them."""
