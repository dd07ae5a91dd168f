"""How tables with rows are stored: columns of numbers in one .npz file, made from Parquet or official files."""
