"""What the banks write exercises with: tables of cases, decisions and their wrong options."""
