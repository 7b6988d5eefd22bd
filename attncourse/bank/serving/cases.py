"""Cases that several of the chapter's exercises share."""

from attncourse.checks.exercise import Case


def all_cases_of(*several):
    """Return what makes the cases of each, one after the other; a case stays as it is."""

    def all_cases(rng):
        cases = []
        for case_or_maker in several:
            if isinstance(case_or_maker, Case):
                cases.append(case_or_maker)
            else:
                cases += case_or_maker(rng)
        return cases

    return all_cases
