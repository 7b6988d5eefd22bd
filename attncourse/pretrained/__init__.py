"""Real models: fetch one, cut text into its pieces, convert PyTorch's own layers."""
