"""What the processes of ``forked`` part from: imported once, and left alone by the collector."""

import gc
from importlib import import_module

gc.disable()
for name in ("nbgrader.apps.api", "nbgrader.apps.nbgraderapp", "torch"):
    import_module(name)
gc.freeze()
gc.set_threshold(50_000)
gc.enable()
