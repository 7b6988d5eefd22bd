"""The attention mechanism, built step by step.

One module per chapter, in the order of the book: ``tokens``, ``mixing``, ``lookup``,
``self_attention``, ``kqv``. Import the one you need; importing the package itself loads
neither torch nor matplotlib.
"""

__version__ = "0.1.0"
