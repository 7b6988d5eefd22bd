"""The attention mechanism, built step by step.

One module per chapter. Import the one you need; importing the package itself loads neither torch
nor matplotlib.
"""

__version__ = "0.1.0"

STEMS = (  # the chapters, in the book's order
    "tokens",
    "mixing",
    "lookup",
    "self_attention",
    "kqv",
    "scoring",
    "scaling",
    "cross_attention",
    "multihead",
    "masking",
    "positions",
    "transformer",
    "gpt",
    "interpret",
    "vision",
    "sequences",
    "efficient",
    "llama",
    "circuits",
    "serving",
    "today",
)

MILESTONES = {  # after which chapter a model can be trained that is made of one's own parts
    "kqv": "recall",
    "cross_attention": "dates",
    "positions": "copying",
    "gpt": "language",
    "vision": "digits",
    "llama": "chat",
}
