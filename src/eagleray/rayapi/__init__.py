"""The four Ray kinds: fields, defaults, CRDs and validation."""
