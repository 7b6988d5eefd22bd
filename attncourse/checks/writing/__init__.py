"""Tools to write a bank's exercises: tables of cases, decisions and their wrong options."""
