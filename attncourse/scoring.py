"""Chapter 6: Scoring: ways to compare a query with a key."""
