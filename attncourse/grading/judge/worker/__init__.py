"""The jail's side: the processes in which a submission's cells run. They judge nothing."""
