"""The exercises of chapter 11, positions.

``sinusoidal_encoding``, ``rotation_matrix`` and ``alibi_bias`` get no tensor whose dtype they could
keep, so a float64 answer is rounded before it is compared, and positions stay so small that angles
in float32 are right.
"""

from attncourse.bank.positions import alibi_bias, apply_rope, rotation_matrix, sinusoidal_encoding

EXERCISES = (
    sinusoidal_encoding.EXERCISE,
    rotation_matrix.EXERCISE,
    apply_rope.EXERCISE,
    alibi_bias.EXERCISE,
)
