"""Tools with which the banks write exercises: tables of cases, decisions and their wrong options."""
