"""Symptoms: sentences on wrong results that no known mistake explains.

A symptom is a sentence that holds in every case: the result is the expected one times 2, or
transposed, or right but for the first row.
"""
