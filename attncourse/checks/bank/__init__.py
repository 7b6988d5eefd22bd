"""The exercises of each chapter, as tables: one module a chapter."""
