"""The validating webhooks: what admission asks, the certificate, and the server that answers."""
