"""What a submission is locked into: namespaces, a private root, limits, Landlock, seccomp."""
