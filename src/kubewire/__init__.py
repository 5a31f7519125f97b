"""Kubernetes' vocabulary, pure: objects, quantities, selectors, schemas, CEL, patches, errors, times, names."""
