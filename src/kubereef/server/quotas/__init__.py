"""Resource quotas: what objects count for, which quotas are about them, and the step that holds writes to them."""
