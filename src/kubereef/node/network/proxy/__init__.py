"""The Service proxy: addresses and ports of Services, served from their endpoints."""
