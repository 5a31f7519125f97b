"""Requests in, responses out: the API server, apart from any transport."""
