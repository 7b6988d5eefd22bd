"""Practice: functions with one wrong line, to be found and mended."""
