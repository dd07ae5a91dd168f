"""For all tests: small problems are fastest on one thread, and two cores are shared with whatever else runs."""

import torch

torch.set_num_threads(1)
