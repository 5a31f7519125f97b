"""RayService: what is decided about clusters, traffic and status. All of it is pure: nothing here asks or acts."""
