"""The cluster's DNS: records from Services, a server for them, and the way to other servers for the rest."""
