"""Pure builders: what the operator makes of a Ray object, as plain dicts."""
