"""The declarations: one module per kind, and the fields of each are found nowhere else."""
