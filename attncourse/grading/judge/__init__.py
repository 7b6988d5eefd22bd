"""The judge: a submission computes in its own process, the tests run in another."""
