"""The exercise ``noam_schedule``: a learning rate that rises and then falls."""

from attncourse import transformer
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise
from attncourse.checks.writing.cases import once_more
from attncourse.checks.writing.recipes import made, mistake

# --- decisions and mistakes ----------------------------------------------------------------------


def refuse_step_0(step):
    if not step >= 1:
        raise ValueError("steps count from 1")
    return step


@composition
def compose_noam_schedule(
    start=refuse_step_0,
    roles=lambda step, warmup: (step, warmup),
    size=lambda d_model: d_model**-0.5,
    rise=lambda step, warmup: step * warmup**-1.5,
    fall=lambda step, warmup: step**-0.5,
    parts=lambda size, rise, fall: (size, rise, fall),
    join=lambda rise, fall, step, warmup: min(rise, fall),
    finish=lambda rate: rate,
):
    """Return a ``noam_schedule`` made of decisions."""

    def noam_schedule(step, d_model, warmup):
        step, warmup = roles(start(step), warmup)
        factor, rising, falling = parts(size(d_model), rise(step, warmup), fall(step, warmup))
        return finish(factor * join(rising, falling, step, warmup))

    return noam_schedule


def width_to_the_power(exponent: float) -> dict:
    return {"size": lambda d_model: d_model**exponent}


EXPONENTS_HALVED = {
    "size": lambda d_model: d_model**-1 / 2,
    "rise": lambda step, warmup: step * warmup**-3 / 2,
    "fall": lambda step, warmup: step**-1 / 2,
}


def assert_step(step):
    assert step >= 1, "steps count from 1"
    return step


BY_HAND = Case((1, 4, 4), note="d_model 4, warm-up 4: (1/2) · min(1, 1/8)")


def cases_at_steps(*steps: float):
    """Return what makes cases at these steps, as shares of a warm-up that is drawn."""

    def cases(rng: Rng) -> list[Case]:
        schedule_cases = []
        for share in steps:
            warmup = int(rng.integers(40, 4000))
            step = max(1, round(share * warmup))
            schedule_cases.append(Case((step, int(rng.integers(3, 800)), warmup)))
        return schedule_cases

    return cases


# --- the exercise --------------------------------------------------------------------------------

EXERCISE = exercise(
    transformer.noam_schedule,
    section="Chapter 12, “Where the norm stands”",
    difficulty=1,
    minutes=8,
    criteria=(
        Criterion("rises in proportion to the step", 2).on(
            lambda rng: [
                BY_HAND,
                *cases_at_steps(0.1, 0.5, 0.9)(rng),
                Case((1, 512, 4000), note="the first step"),
                Case((2, 512, 4000), note="the second step"),
            ]
        ),
        Criterion("its value at step warmup", 1).on(
            lambda rng: [*cases_at_steps(1, 1)(rng), Case((1, 16, 1), note="a warm-up of 1")]
        ),
        Criterion("then falls as 1/√step", 2).on(
            lambda rng: [*cases_at_steps(1.2, 3, 50)(rng), once_more(BY_HAND)]
        ),
        Criterion("a step below 1 is refused", 1).on(
            lambda rng: [
                Case((0, 64, 100), note="step 0", raises=ValueError),
                Case((-3, 64, 100), note="step −3", raises=ValueError),
            ]
        ),
    ),
    mistakes=made(
        compose_noam_schedule,
        mistake("""a step below 1 is not refused
            A step below 1 does not raise ValueError (an `assert` raises AssertionError). Steps
            count from 1: test it and `raise ValueError(…)`.""")
        .by(start=lambda step: step, fall=lambda step, warmup: max(step, 1) ** -0.5)
        .by(start=lambda step: step)
        .by(start=lambda step: max(step, 1))
        .by(start=assert_step)
        .by(start=lambda step: refuse_step_0(step or 1))
        .by(start=lambda step: refuse_step_0(abs(step))),
        mistake("""the first step is refused
            Step 1 is the first one and allowed. Only what lies below it is refused.
        """).by(start=lambda step: refuse_step_0(step - 1) + 1),
        mistake("""steps counted from 0
            You add 1 to the step, or take 1 off. Steps count from 1, and the first is 1.""")
        .by(roles=lambda step, warmup: (step + 1, warmup))
        .by(roles=lambda step, warmup: (max(step - 1, 1e-9), warmup)),
        mistake("""the larger of the two
            You take the maximum, or the fall before step `warmup` and the rise after it. Of the two
            the smaller one counts.""")
        .by(join=lambda rise, fall, step, warmup: max(rise, fall))
        .by(join=lambda rise, fall, step, warmup: fall if step < warmup else rise),
        mistake("""rise and fall added or multiplied
            You add the two, or multiply them. The smaller of the two counts: `min(…)`.""")
        .by(join=lambda rise, fall, step, warmup: rise + fall)
        .by(join=lambda rise, fall, step, warmup: rise * fall),
        mistake("""no warm-up
            Your rate falls from the first step on. Until step `warmup` it rises: step ·
            warmup^(−3/2).""").by(join=lambda rise, fall, step, warmup: fall),
        mistake("""it never falls
            Your rate goes on rising, or stays at its peak. After step `warmup` it falls as
            step^(−1/2).""")
        .by(join=lambda rise, fall, step, warmup: rise)
        .by(join=lambda rise, fall, step, warmup: min(rise, warmup**-0.5)),
        mistake("""exponents without their brackets
            `step**-1/2` is (1/step)/2, and `warmup**-3/2` is warmup^(−3), halved: the power binds
            first. Put exponents in brackets, `step**(-1/2)`, or write `step**-0.5`.""")
        .by(EXPONENTS_HALVED)
        .by(EXPONENTS_HALVED | {"size": lambda d_model: d_model**-0.5})
        .by(*({name: change} for name, change in EXPONENTS_HALVED.items())),
        mistake("""another power of warmup
            The rise is step · warmup^(−3/2), so that it meets the fall at step `warmup`. You have
            another power of warmup there.""")
        .by(rise=lambda step, warmup: step / warmup)
        .by_any(
            lambda power: {"rise": lambda step, warmup: step * warmup**power},
            (-0.5, -1.0, -2.0, -0.75, -1.25),
        ),
        mistake("""another power of d_model
            The factor in front is d_model^(−1/2), one over its root.""")
        .by(width_to_the_power(-1))
        .by_any(width_to_the_power, (-1.0, 0.5, 0.0, -0.25, -1.5, 1.0)),
        mistake("""it falls at another pace
            After the warm-up the rate falls as one over the *root* of the step.""")
        .by(fall=lambda step, warmup: warmup**0.5 / step)
        .by(fall=lambda step, warmup: 1 / step)
        .by(fall=lambda step, warmup: warmup**-0.5 * max(0, 2 - step / warmup))
        .by(fall=lambda step, warmup: step**-0.25),
        mistake("""the fall counts from the end of the warm-up
            You count the steps of the fall from `warmup` on. The same step stands in both parts:
            step^(−1/2).""")
        .by(fall=lambda step, warmup: max(step - warmup, 1) ** -0.5)
        .by(fall=lambda step, warmup: (step - warmup + 1) ** -0.5 if step >= warmup else 1.0),
        mistake("""step and warmup exchanged
            You use the one for the other, everywhere or in the rise. The signature is (step,
            d_model, warmup), and the rise is step · warmup^(−3/2).""")
        .by(roles=lambda step, warmup: (warmup, step))
        .by(rise=lambda step, warmup: warmup * step**-1.5),
        mistake("""d_model in one of the two parts
            d_model^(−1/2) stands before the minimum and counts for rise and fall. You multiply one
            of the two by it.""")
        .by(parts=lambda size, rise, fall: (1, rise, size * fall))
        .by(parts=lambda size, rise, fall: (1, size * rise, fall)),
        mistake("""a peak that warmup does not lower
            You scale the schedule so that its peak is 1, or d_model^(−1/2). Its peak is (d_model ·
            warmup)^(−1/2).""")
        .by(
            size=lambda d_model: 1,
            rise=lambda step, warmup: step / warmup,
            fall=lambda step, warmup: (warmup / step) ** 0.5,
        )
        .by(
            rise=lambda step, warmup: step / warmup,
            fall=lambda step, warmup: (warmup / step) ** 0.5,
        ),
        mistake("""rounded on the way
            You divide with `//` or round. The rates are small numbers, and whole numbers are 0.""")
        .by(rise=lambda step, warmup: (step // warmup) * warmup**-0.5)
        .by(finish=int)
        .by(finish=lambda rate: round(rate, 4))
        .by(finish=lambda rate: round(rate, 6)),
    ),
)
