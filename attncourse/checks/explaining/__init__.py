"""Why a result is wrong: the named mistakes, the symptoms, the change that mends the code."""
