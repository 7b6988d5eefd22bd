"""The jail of a submission: namespaces, a private root, limits, Landlock, seccomp."""
