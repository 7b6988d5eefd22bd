"""A late penalty that takes a share of what was earned for each day that has begun.

It is a plugin of nbgrader's, named in ``nbgrader_config.py``, and both ways of grading ask it.
"""

from nbgrader.plugins import BasePlugin
from traitlets import Float

from attncourse.grading.course.late import days_begun

GRACE_HELP = "Minutes after the due date that cost nothing; a later day has none."


class LateDays(BasePlugin):
    """A plugin of nbgrader's: ``percent`` of the points for each day begun, after a grace."""

    percent = Float(10.0, min=0.0, max=100.0, help="What a day costs.").tag(config=True)
    grace_minutes = Float(0.0, min=0.0, help=GRACE_HELP).tag(config=True)

    def late_submission_penalty(
        self, student_id: str, score: float, total_seconds_late: float
    ) -> float:
        """Return the points to take off for being ``total_seconds_late``."""
        days = days_begun(total_seconds_late, 60 * self.grace_minutes)
        return score * min(1.0, days * self.percent / 100)
