"""Chapter 20: bytes of keys and values a token, by arithmetic, for models of published sizes.

Two numbers a layer, key/value head and feature; with latent attention (MLA) one vector a layer,
from which keys and values of all heads are made anew, and one key that is turned by its position.
Sources of the sizes: SmolLM2, its file; Llama 2, its published configuration; Grattafiori et al.
(2024), The Llama 3 Herd of Models, table 3; Chowdhery et al. (2023), PaLM; DeepSeek-AI (2024),
DeepSeek-V2, section 3.1.2.
"""

from typing import NamedTuple

from attncourse.efficient import kv_cache_bytes

BYTES, TOKENS, ROOM = 2, 8192, 40e9  # 16 bits a number; a long text; room for caches, in bytes


class Sizes(NamedTuple):
    """A model's sizes: layers, heads of queries, of keys and values, features of each.

    Or a latent vector and a turned key of so many numbers in place of the keys and values of all
    heads.
    """

    name: str
    kind: str
    layers: int
    heads: int
    kv_heads: int
    d_head: int
    source: str
    latent: int = 0
    turned: int = 0

    def numbers(self) -> int:
        """Return how many numbers the keys and values of a token are."""
        if self.latent:
            return self.layers * (self.latent + self.turned)
        return kv_cache_bytes(1, self.layers, self.kv_heads, self.d_head, 1)

    def with_all_heads(self) -> int:
        """Return the same if every query head had a key and a value of its own."""
        return kv_cache_bytes(1, self.layers, self.heads, self.d_head, 1)


MODELS = (
    Sizes("SmolLM2 135M", "grouped", 30, 9, 3, 64, "its file"),
    Sizes("Llama 2 7B", "multi-head", 32, 32, 32, 128, "touvron2023llama2"),
    Sizes("Llama 2 70B", "grouped", 80, 64, 8, 128, "touvron2023llama2"),
    Sizes("Llama 3 8B", "grouped", 32, 32, 8, 128, "grattafiori2024llama3"),
    Sizes("Llama 3 405B", "grouped", 126, 128, 8, 128, "grattafiori2024llama3"),
    Sizes("PaLM 540B", "multi-query", 118, 48, 1, 256, "chowdhery2023palm"),
    Sizes("DeepSeek-V2 236B", "latent", 60, 128, 128, 128, "deepseek2024v2", 512, 64),
)


def cache_size_row(sizes: Sizes) -> dict:
    """Return a row of the table: bytes a token, their share, and how many texts fit.

    The share is of what a key/value head for each query head would take; the texts are of
    ``TOKENS`` tokens, in ``ROOM`` bytes.
    """
    token = BYTES * sizes.numbers()
    return {
        **{name: value for name, value in sizes._asdict().items() if value},
        "bytes_a_token": token,
        "share": round(sizes.numbers() / sizes.with_all_heads(), 4),
        "texts": int(ROOM // (token * TOKENS)),
    }


def cache_size_table() -> dict:
    """Return the cache sizes of the models as rows of a table."""
    rows = [cache_size_row(sizes) for sizes in MODELS]
    return {"bytes_per_number": BYTES, "tokens": TOKENS, "room": ROOM, "rows": rows}
