"""The outputs of the book's pages, kept by jupyter-cache while several processes write them."""

from __future__ import annotations

from jupyter_cache.cache.main import JupyterCacheBase


class OutputCache(JupyterCacheBase):
    """Outputs by a page's code; the oldest are dropped when that is asked for."""

    def truncate_caches(self) -> None:
        """Drop nothing, though jupyter-cache asks for it whenever a page's outputs are kept.

        It looks first for those that stay and then for the rest, so what another page's process
        keeps in between would go, too.
        """

    def drop_oldest(self) -> None:
        """Drop the oldest outputs beyond jupyter-cache's limit."""
        super().truncate_caches()

    def outcome_of(self, uri: str) -> str:
        """Return what became of a page that has just run: `executed in 3.1 s` or `failed`."""
        record = self.get_cached_project_nb(uri)
        return f"executed in {record.data['execution_seconds']:.1f} s" if record else "failed"
