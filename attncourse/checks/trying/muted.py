"""Where printed text goes that nobody is to see."""

import io


class Muted(io.TextIOBase):
    """Takes what an answer prints, call after call, and shows nothing of it."""

    used = False

    def write(self, text: str) -> int:
        self.used = True
        return len(text)
