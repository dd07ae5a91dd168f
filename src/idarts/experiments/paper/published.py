"""The numbers that the paper prints: mean and standard deviation of valid and test accuracy, in percent."""

DATASETS = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "imagenet16": "ImageNet16-120"}
SPLITS = ("valid", "test")
COLUMNS = tuple(f"{dataset}_{split}" for dataset in DATASETS for split in SPLITS)

Six = tuple[str, str, str, str, str, str]  # in the order of COLUMNS, as printed

# Table 1. The row DARTS is given once; the paper does not say of which order.
TABLE_1: dict[str, Six] = {
    "enas": ("37.51±3.19", "53.89±0.58", "13.37±2.35", "13.96±2.33", "15.06±1.95", "14.84±2.10"),
    "random-nas": ("80.42±3.58", "84.07±3.61", "52.12±5.55", "52.31±5.77", "27.22±3.24", "26.28±3.09"),
    "setn": ("84.04±0.28", "87.64±0.00", "58.86±0.06", "59.05±0.24", "33.06±0.02", "32.52±0.21"),
    "gdas": ("89.88±0.33", "93.40±0.49", "70.95±0.78", "70.33±0.87", "41.28±0.46", "41.47±0.21"),
    "darts": ("39.77±0.00", "54.30±0.00", "15.03±0.00", "15.61±0.00", "16.43±0.00", "16.32±0.00"),
    "idarts": ("89.86±0.60", "93.58±0.32", "70.57±0.24", "70.83±0.48", "40.38±0.593", "40.89±0.68"),
    "optimal": ("91.61", "94.37", "74.49", "73.51", "46.77", "47.31"),
}
TABLE_1_NOTES = (
    "Published values: Table 1 of the paper. Its optimum of CIFAR-100 valid, 74.49, is a misprint: the benchmark's is "
    "73.49; for ImageNet16-120 valid it prints 46.77, and the benchmark's table has 46.73.",
    "The paper's best single run of iDARTS: 93.76 / 71.11 / 41.44 on the three tests, six 3×3 convolutions.",
)

# The ablation of K on NAS-Bench-201 (Appendix C), by T and K.
TABLE_K: dict[tuple[int, int], Six] = {
    (1, 0): ("39.77±0.00", "54.30±0.00", "15.03±0.00", "15.61±0.00", "16.43±0.00", "16.32±0.00"),
    (1, 1): ("86.85±0.93", "89.67±1.31", "64.09±2.92", "64.17±3.26", "36.26±5.71", "36.11±5.77"),
    (4, 0): ("87.31±1.33", "90.36±1.79", "64.76±2.54", "64.43±2.47", "32.53±1.31", "32.42±1.54"),
    (4, 1): ("89.30±1.47", "92.44±1.14", "67.88±1.86", "68.17±2.81", "37.11±7.79", "36.61±7.47"),
    (4, 2): ("89.86±0.60", "93.58±0.32", "70.57±0.24", "70.83±0.48", "40.38±0.59", "40.89±0.68"),
    (4, 3): ("89.35±0.03", "92.29±0.26", "68.51±0.77", "68.58±1.18", "42.37±0.48", "42.26±0.41"),
}

# The figures are pictures without numbers; these are the paper's words about them.
FIGURE_1_CLAIMS = (
    "every T does better than DARTS along the search, T = 1 by a large margin",
    "a larger T converges to excellent cells faster; T = 5 is a good compromise",
)
FIGURE_2_CLAIMS = {
    "T": "a larger T gives better cells, and T = 4 is enough",
    "γ": "a smaller γ is preferred",
    "γ_α": "a smaller γ_α is recommended; a large one hardly converges",
}
FIGURE_K_CLAIMS = (
    "at T = 1 every K does better than DARTS, and K = 1 slightly better than more",
    "at T = 5 a larger K helps, K = 2 is enough, and all do better than at T = 1",
)

# The overview of hypergradients (Appendix E): Steps, in Hessian-vector products, and Memory Cost.
OVERVIEW: dict[str, tuple[str, str]] = {
    "exact": ("∞", "O(P+H)"),
    "one step (DARTS)": ("1", "O(P+H)"),
    "identity (T1–T2)": ("1", "O(P+H)"),
    "reverse mode": ("T", "O((P+H)T)"),
    "truncated reverse": ("K", "O((P+H)K)"),
    "conjugate gradient": ("S", "O(P+H)"),
    "Neumann": ("K", "O(P+H)"),
}
