#!/usr/bin/env bash
# Installs the libraries that benchmarks/hypergradient.py and bilevel.py compare with: install_peers.sh PYTHON
# A peer that cannot be had is left out with a line that says so; the benchmark does without it.
set -u
python=${1:?usage: install_peers.sh PYTHON}
constraints=$(dirname "$0")/../constraints.txt

try() {
  local name=$1
  shift
  "$python" -m pip install --quiet --disable-pip-version-check -c "$constraints" "$@" ||
    echo "install_peers: $name could not be installed; the benchmark will leave it out"
}

# Betty calls itself unfit for this Python, but its hypergradients run on it.
try "Betty" --no-deps --ignore-requires-python betty-ml==0.2.1
try "TorchOpt" torchopt==0.7.3
# BOAT pins an old numpy and wants torchvision; what we call of it uses neither, but imports these two.
try "BOAT" --no-deps boat-torch==1.1.1
try "what BOAT imports" higher matplotlib
# hypertorch is not on PyPI (the packages of that name there are others). HYPERTORCH can be a folder with its source.
try "hypertorch" --no-deps "${HYPERTORCH:-git+https://github.com/prolearner/hypertorch}"

try "the data of bilevel.py" scikit-learn

wanted=$(sed -n 's/^torch==//p' "$constraints")
found=$("$python" -c 'import torch; print(torch.__version__.split("+")[0])')
if [ "$found" != "$wanted" ]; then
  echo "install_peers: torch is now $found instead of $wanted: ratios would not compare" >&2
  exit 1
fi
