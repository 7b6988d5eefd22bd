"""What several test files share, imported as ``from helpers.small_course import …``."""
