"""The exercise ``balanced_accuracy``: the mean of the classes' recalls."""

import numpy as np

from attncourse import sequences as chapter
from attncourse.checks.exercise import Case, Criterion, Rng, composition, exercise, unchanged
from attncourse.checks.writing.cases import once_more
from attncourse.checks.writing.recipes import made, mistake


def random_predictions(
    rng: Rng, n: int, classes: int, others: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return labels of unequal frequency, and predictions that are often right."""
    common = np.arange(1, classes + 1) ** 1.5
    labels = rng.choice(classes, n, p=common / common.sum())
    labels[:classes] = np.arange(classes)
    guesses = np.where(rng.random(n) < 0.6, labels, rng.integers(classes + others, size=n))
    return labels, guesses


BY_HAND = Case(
    (np.array([0, 0, 0, 0, 1, 1]), np.array([0, 0, 0, 1, 1, 0])), note="recalls 3/4 and 1/2"
)


def as_names(labels):
    return np.array(["flu", "cmv", "ebv", "hiv", "hcv"])[labels]


def balanced_cases(rng: Rng) -> list[Case]:
    return [
        BY_HAND,
        Case(random_predictions(rng, 41, 3)),
        Case(random_predictions(rng, 23, 2), note="two classes"),
        Case(random_predictions(rng, 97, 5), note="five classes"),
        Case((np.array([0] * 9 + [1]), np.zeros(10, int)), note="always the larger class"),
    ]


def edge_cases(rng: Rng) -> list[Case]:
    labels, guesses = random_predictions(rng, 31, 3)
    return [
        Case((labels[labels < 2], guesses[labels < 2]), note="a class that is only predicted"),
        Case(
            random_predictions(rng, 37, 3, others=2),
            note="predictions of classes that no label has",
        ),
        Case((np.array([5, 9, 9, 40]), np.array([5, 9, 5, 40])), note="classes 5, 9 and 40"),
        Case((np.array([-1, 1, 1, -1, 1]), np.array([-1, 1, -1, 1, 1])), note="classes −1 and 1"),
        Case((np.array([0, 0, 1]), np.array([1, 1, 0])), note="nothing right"),
        once_more(BY_HAND),
    ]


def cases_of_types(rng: Rng) -> list[Case]:
    labels, guesses = random_predictions(rng, 19, 4)
    return [
        Case((as_names(labels), as_names(guesses)), note="classes are strings"),
        Case((as_names(labels).tolist(), as_names(guesses).tolist()), note="lists of strings"),
        Case((labels.tolist(), guesses.tolist()), note="lists of numbers"),
        Case((labels > 1, guesses > 1), note="True and False"),
        Case((np.array([2, 2, 2, 2]), np.array([2, 0, 2, 2])), note="one class"),
        Case((np.array([1]), np.array([1])), note="one prediction"),
    ]


@composition
def compose_balanced_accuracy(
    read=lambda labels, guesses: (np.asarray(labels), np.asarray(guesses)),
    classes=lambda labels, guesses: np.unique(labels),
    recall=lambda labels, guesses, c: np.mean(guesses[labels == c] == c),
    gather=np.mean,
    finish=lambda value, recalls: float(value),
):
    """Return ``balanced_accuracy`` made of decisions."""

    def balanced_accuracy(labels, predictions):
        labels, guesses = read(labels, predictions)
        recalls = np.array([recall(labels, guesses, c) for c in classes(labels, guesses)])
        return finish(gather(recalls), recalls)

    return balanced_accuracy


def accuracy(labels, guesses, c):
    return np.mean(labels == guesses)


def ratio_or_0(hits, total):
    return hits / total if total else 0.0


def precision(labels, guesses, c):
    return ratio_or_0(np.sum((labels == c) & (guesses == c)), np.sum(guesses == c))


def f_one(labels, guesses, c):
    return ratio_or_0(
        2 * np.sum((labels == c) & (guesses == c)), np.sum(labels == c) + sum(guesses == c)
    )


def recall_or_zero(labels, guesses, c):
    return ratio_or_0(np.sum((labels == c) & (guesses == c)), np.sum(labels == c))


def accuracy_against_rest(labels, guesses, c):
    return np.mean((labels == c) == (guesses == c))


def one_class_only(place, exactly=False):
    """Return a ``read``: one class and the rest; ``exactly``: of the rest the very class counts."""

    def read(labels, guesses):
        labels, guesses = np.asarray(labels), np.asarray(guesses)
        is_class = labels == np.unique(labels)[place]
        predicted = (
            is_class == (labels == guesses) if exactly else guesses == np.unique(labels)[place]
        )
        return is_class, predicted

    return read


def mean_of_both_recalls(labels, guesses, c):
    """Return the mean of a class's recall and that of all the rest."""
    rest = labels != c
    of_rest = np.mean(guesses[rest] != c) if rest.any() else 1.0
    return (np.mean(guesses[labels == c] == c) + of_rest) / 2


EXERCISE = exercise(
    chapter.balanced_accuracy,
    section="Chapter 16, “A score that a guess cannot win”",
    difficulty=1,
    minutes=10,
    criteria=(
        Criterion("the mean of the classes' recalls", 3).on(balanced_cases),
        Criterion("the classes are those of the labels", 2).on(edge_cases),
        Criterion("numbers or strings, arrays or lists; one class", 1).on(cases_of_types),
        unchanged(),
    ),
    mistakes=made(
        compose_balanced_accuracy,
        mistake("""plain accuracy
            You count right answers among all, so the larger class decides. Take the share of right
            answers in each class, then the mean of these.""").by(recall=accuracy),
        mistake("""precision, not recall
            You divide by how often a class was *predicted*, or labels and predictions are
            exchanged. Divide by how often it is the label.""")
        .by(recall=precision)
        .by(recall=lambda labels, guesses, c: np.mean(labels[guesses == c] == c))
        .by(read=lambda labels, guesses: (np.asarray(guesses), np.asarray(labels))),
        mistake("""a class is left out
            Your loop over the classes misses the first of them or the last. Each class that occurs
            in `labels` has a recall, and all of them are averaged.""")
        .by(gather=lambda recalls: recalls[:-1].sum() / len(recalls))
        .by(gather=lambda recalls: recalls[1:].sum() / len(recalls))
        .by(gather=lambda recalls: recalls[:-1].mean())
        .by(gather=lambda recalls: recalls[1:].mean()),
        mistake("""what is wrong is counted
            You count the sequences of a class that were *not* predicted as it. Recall is the share
            of those that were.
        """).by(recall=lambda labels, guesses, c: np.mean(guesses[labels == c] != c)),
        mistake("""classes that are only predicted count too
            You average over classes that no label has; their recall is 0/0. Take
            `np.unique(labels)`.""")
        .by(classes=lambda labels, guesses: np.union1d(labels, guesses), recall=recall_or_zero)
        .by(classes=lambda a, b: np.union1d(a, b)),
        mistake("""classes from the predictions
            You go through the classes that were predicted and miss those that were never. Take
            `np.unique(labels)`.""")
        .by(classes=lambda labels, guesses: np.unique(guesses), recall=recall_or_zero)
        .by(classes=lambda labels, guesses: np.unique(guesses))
        .by(classes=np.intersect1d),
        mistake("""classes 0 to the largest
            You go through 0, 1, 2, … up to the largest label, as `np.bincount` does. Classes that
            no label has have no recall, and classes may be strings.""")
        .by(classes=lambda labels, guesses: range(int(labels.max()) + 1), recall=recall_or_zero)
        .by(classes=lambda labels, guesses: range(int(labels.max()) + 1))
        .by(classes=lambda labels, guesses: sorted({*range(int(labels.max()) + 1)} & {*labels})),
        mistake("""two classes alone
            You average two recalls, of 0 and of 1 or of one class and of all the rest: sensitivity
            and specificity. There may be any number of classes, with any names, and each has a
            recall of its own.""")
        .by(classes=lambda labels, guesses: (0, 1), recall=recall_or_zero)
        .by(classes=lambda labels, guesses: (0, 1))
        .by(classes=lambda labels, guesses: np.unique(labels)[:2])
        .by(read=one_class_only(-1))
        .by(read=one_class_only(0))
        .by(read=one_class_only(-1, exactly=True))
        .by(read=one_class_only(0, exactly=True)),
        mistake("""another mean
            The recalls are averaged plainly: their sum over their number. Yours is a geometric or
            harmonic mean, a median or the least.""")
        .by(gather=np.min)
        .by(gather=np.median)
        .by(gather=lambda r: r.prod() ** (1 / len(r)))
        .by(gather=lambda r: len(r) / (1 / np.maximum(r, 1e-12)).sum()),
        mistake("""the recalls are added
            You return the sum of the recalls. Divide by the number of classes.
        """).by(gather=np.sum),
        mistake("""F1, not recall
            You take the F1 score of each class, which mixes in precision. Only recall is asked.
        """).by(recall=f_one),
        mistake("""each class against the rest
            You take the accuracy of “this class or not”, which counts the others' agreement too.
            Look only where the label is the class.""")
        .by(recall=accuracy_against_rest)
        .by(recall=mean_of_both_recalls),
        mistake("""corrected for chance
            You rescale so that a guess has 0. The plain mean recall is asked: a guess has
            1/classes.""")
        .by(
            finish=lambda value, recalls: float(
                (value - 1 / len(recalls)) / max(1 - 1 / len(recalls), 1e-9)
            )
        )
        .by(
            finish=lambda value, recalls: float(
                (value * len(recalls) - 1) / (len(recalls) - 1) if len(recalls) > 1 else value
            )
        ),
        mistake("""the hits of a class among all
            You divide the hits of each class by the number of all sequences. Divide by how many
            have this label.
        """).by(recall=lambda labels, guesses, c: np.mean((labels == c) & (guesses == c))),
        mistake("""divided in whole numbers
            `//` gives whole numbers: a recall below 1 becomes 0. A share is divided with `/`.
        """).by(recall=lambda labels, guesses, c: recall_or_zero(labels, guesses, c) // 1),
        mistake("""the recalls, not their mean
            You return a number for each class. Average them.
        """).by(finish=lambda value, recalls: recalls),
        mistake("""the largest class alone
            You return the recall of one class, the commonest. Every class counts.""").by(
            classes=lambda labels, guesses: [
                max(np.unique(labels).tolist(), key=labels.tolist().count)
            ]
        ),
        mistake("""lists are compared as a whole
            `labels == predictions` of two lists is one True or False. Begin with `np.asarray`.""")
        .by(
            read=lambda labels, guesses: (
                (labels, guesses)
                if isinstance(labels, np.ndarray)
                else (np.array([0, 1]), np.array([0, 0]))
            )
        )
        .by(read=lambda labels, guesses: (labels, guesses)),
    ),
)
