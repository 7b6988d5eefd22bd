#!/usr/bin/env bash
# Run once, as root, when Gradescope builds the image: a Python, and what the course needs in it.
set -euo pipefail

for version in 3.13 3.12 3.11; do
  if apt-get install -y "python$version-venv"; then
    python=python$version
    break
  fi
done
if [ -z "${python:-}" ]; then
  echo "no Python 3.11 or newer: choose Ubuntu 22.04 or newer as the base image" >&2
  exit 1
fi
"$python" -m venv /autograder/venv
# The second address has PyTorch without what a graphics card needs, which is gigabytes.
/autograder/venv/bin/pip install --no-cache-dir \
  --extra-index-url https://download.pytorch.org/whl/cpu \
  -r /autograder/source/requirements.txt
