"""A run of `attncourse grade`: in lanes or on a cluster, into the journal and the gradebook."""
