"""The command, also as ``python -m attncourse`` where the folder of scripts is on no PATH.

Ctrl-C is heard before anything is loaded, which takes a few tenths of a second.
"""

from attncourse.grading.stopping import ending_at_ctrl_c


def main() -> None:
    """Load the command and run it; Ctrl-C before it begins is one sentence and status 130."""
    with ending_at_ctrl_c("nothing was begun"):
        from attncourse.grading.cli import main as run_command

        run_command()


if __name__ == "__main__":
    main()
