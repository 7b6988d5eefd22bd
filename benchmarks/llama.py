"""What SmolLM2 takes through chapter 18's parts, on one core: to load, to read, to write a token.

python benchmarks/llama.py
"""

import resource
import statistics
import sys
import time

import torch

from attncourse.gpt import likeliest
from attncourse.pretrained.model import load

QUESTION, NEW = "What is the capital of France?", 24


def megabytes() -> float:
    """The most memory that this process has had."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1e6 if sys.platform == "darwin" else 1e3)


def timed(what) -> tuple[float, object]:
    """Seconds of processor time, and what came out."""
    began = time.process_time()
    result = what()
    return time.process_time() - began, result


@torch.no_grad()
def main() -> None:
    """Print the processor time and the memory that the real model takes."""
    torch.set_num_threads(1)
    print(f"{'processor time, one core':36} {'s':>7}   {megabytes():5.0f} MB with torch imported")
    seconds, (model, words) = timed(load)
    print(f"{'load (with the hash)':36} {seconds:7.2f}   {megabytes():5.0f} MB at most so far")
    ids = words.chat(QUESTION)
    seconds, (logits, cache) = timed(lambda: model(ids, []))
    print(f"{f'first token, {len(ids)} read':36} {seconds:7.2f}")
    with_cache, without, written, token = [], [], ids, likeliest(logits[-1])[None]
    for _ in range(NEW):
        written = torch.cat([written, token])
        seconds, (logits, cache) = timed(lambda: model(token, cache))  # noqa: B023
        with_cache.append(seconds)
        seconds, again = timed(lambda: model(written))  # noqa: B023
        without.append(seconds)
        assert (logits[-1] - again[-1]).abs().max() < 1e-3
        token = likeliest(logits[-1])[None]
    for name, all_of_them in (("with a cache", with_cache), ("without", without)):
        median = statistics.median(all_of_them)
        print(f"{f'a token {name}, {len(ids)} to {len(written)}':36} {median:7.3f}")
    print(f"{'in all':36} {'':7}   {megabytes():5.0f} MB at most")


if __name__ == "__main__":
    main()
