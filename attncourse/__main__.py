"""``python -m attncourse``: the command, where the folder of scripts is on no PATH."""

from attncourse.grading.cli import main

if __name__ == "__main__":
    main()
