"""The outputs of the book's pages, kept by jupyter-cache while several processes write them."""

from __future__ import annotations

from functools import cached_property

from jupyter_cache.cache.db import create_db
from jupyter_cache.cache.main import JupyterCacheBase
from sqlalchemy import Engine, create_engine

PATIENCE = 120.0  # seconds; another page's process may wait for a busy disk


class OutputCache(JupyterCacheBase):
    """Outputs by a page's code; the oldest are dropped when that is asked for."""

    @cached_property
    def db(self) -> Engine:
        """Jupyter-cache's database, which a process waits for while another one writes."""
        made = create_db(self.path)
        return create_engine(made.url, connect_args={"timeout": PATIENCE})

    def __getstate__(self) -> dict:
        """Return the attributes without the database's connections: each process has its own."""
        return {name: value for name, value in vars(self).items() if name != "db"}

    def truncate_caches(self) -> None:
        """Drop nothing, though jupyter-cache asks for it whenever a page's outputs are kept.

        It looks first for those that stay and then for the rest, so what another page's process
        keeps in between would go, too.
        """

    def drop_oldest(self) -> None:
        """Drop the oldest outputs beyond jupyter-cache's limit."""
        super().truncate_caches()
