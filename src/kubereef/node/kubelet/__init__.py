"""The kubelet: what Pods go through on this node, from their manifest to their processes and back to their status.

Decisions are pure functions of what is known, and apart from what carries them out:

- `records` holds what is known of a Pod's containers, `plan` says what to do next, `status` what to tell.
- `worker` carries plans out for one Pod, with `starting`, `stopping`, `probing`, `hooks` and `volumes`.
- `kubelet` has all Pods of the node; `interfaces` is what it is given, `handles` what its HTTPS API sees of it.
"""
