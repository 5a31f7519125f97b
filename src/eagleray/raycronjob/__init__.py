"""The RayCronJob controller: one RayJob for each time at which a schedule is due."""
