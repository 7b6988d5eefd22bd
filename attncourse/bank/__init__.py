"""The exercises of the course: a package for each chapter, a file for each exercise."""
