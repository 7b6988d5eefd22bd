"""What goes wrong in a way that the person at the keyboard can put right."""


class UserError(Exception):
    """One line that says what is wrong and what to do; the command line exits with status 2."""


class Unreadable(ValueError):
    """A file that is no notebook. The text says why, with the line where there is one."""
