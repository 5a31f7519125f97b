"""The light-weight submitter: hands one job to Ray, shows what it prints, and ends as it does."""
