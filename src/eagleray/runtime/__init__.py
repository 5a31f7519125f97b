"""What every controller stands on: queues, outcomes, leases, events, metrics, health, options and logs.

Nothing here knows Ray beyond the names of options; nothing here reaches a cluster except through callables it is given.
"""
