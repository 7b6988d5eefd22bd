"""Chapter 16: sequences, their clusters at an edit distance, and two splits of them."""

from collections.abc import Sequence
from html import escape

import numpy as np

from attncourse.figures.moving.controls import button, controls, slider_control
from attncourse.figures.moving.figure import Moving
from attncourse.support.arrays import require_count

MOST, LONGEST = 24, 14  # sequences, and letters of one: what a phone has room for
LOOPS = (
    *("CASSIRSSYEQYF", "CASSIRSAYEQYF", "CASSMRSAYEQYF", "CASSIRSTDTQYF"),
    *("CASSLAPGNEQFF", "CASSLAPGTEQFF", "CASSLAPGATNEF"),
    *("CASSYQTGASYGF", "CASSYSTGASYGF", "CASSYTGASYGYTF"),
    *("CSARDGTGNGYTF", "CSARDRTGNGYTF", "CSARDTGNGYTF"),
    *("CATSDLNRAAFF", "CATSELNRAAFF", "CAWNDKQPQHF", "CSVGAGEEKLFF"),
)


def family_split(
    sequences: Sequence[str] = LOOPS, max_distance: int = 1, test_fraction: float = 0.3
) -> Moving:
    """Return clusters of sequences, with test marked in a random split and in one by similarity.

    A slider changes the edit distance from 0 to 4, a button draws both splits anew. sequences: 2 to
    24, of at most 14 letters, any text. Raises ``ValueError`` for others, a distance not from 0 to
    4 and a fraction not between 0 and 1.
    """
    if isinstance(sequences, str) or not 2 <= len(sequences) <= MOST:
        raise ValueError(f"sequences: expected a list of 2 to {MOST}, got {sequences!r}")
    if not all(
        isinstance(sequence, str) and 0 < len(sequence) <= LONGEST for sequence in sequences
    ):
        raise ValueError(f"sequences: expected texts of 1 to {LONGEST} letters")
    require_count("max_distance", max_distance, least=0)
    if max_distance > 4:
        raise ValueError(f"max_distance: expected 0 to 4, got {max_distance}")
    if not 0 < test_fraction < 1:
        raise ValueError(f"test_fraction: expected a share between 0 and 1, got {test_fraction}")
    listed = [sequences[i] for i in nested(sequences)]
    keys = np.random.default_rng(4).permutation(len(listed)).tolist()
    clusters = cluster_numbers(listed, max_distance)
    rows = "".join(
        f"<tr{' class=fs-first' if k and clusters[k] != clusters[k - 1] else ''}>"
        f'<th scope="row">{escape(sequence)}</th><td>{clusters[k] + 1}</td><td></td><td></td></tr>'
        for k, sequence in enumerate(listed)
    )
    return Moving(
        "family_split",
        "Near-copies and two splits",
        '<table data-part="rows"><thead><tr><th scope="col">sequence</th><th scope="col">cluster'
        '</th><th scope="col">random</th><th scope="col">by similarity</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
        + controls(
            slider_control("distance", "max_distance", 0, 4, max_distance), button("again", "Draw")
        ),
        "In a browser that runs scripts, a slider changes the edit distance, and both splits are "
        "drawn again and again.",
        {"sequences": listed, "fraction": test_fraction, "keys": keys},
        f"At a distance of {max_distance} there are {max(clusters) + 1} clusters.",
    )


def cluster_numbers(sequences: Sequence[str], max_distance: int) -> list[int]:
    """Return the number of each sequence's cluster, counted from 0 in the order of the list."""
    from attncourse.sequences import similarity_clusters  # pages on NumPy do without torch

    number = [0] * len(sequences)
    for k, cluster in enumerate(sorted(similarity_clusters(sequences, max_distance))):
        for i in cluster:
            number[i] = k
    return number


def nested(sequences: Sequence[str]) -> list[int]:
    """Return an order in which the clusters at every distance from 0 to 4 stand together."""
    levels = [cluster_numbers(sequences, distance) for distance in (4, 3, 2, 1, 0)]
    return sorted(range(len(sequences)), key=lambda i: tuple(level[i] for level in levels))
