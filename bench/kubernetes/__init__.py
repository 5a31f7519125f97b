"""What many objects of each kind cost the operator's process on a real control plane with fake nodes.

    python -m bench.kubernetes                              # 100 RayClusters; 500 and 1,000 take minutes
    python -m bench.kubernetes --kind rayjob --hang 0.1 100
    python -m bench.kubernetes --kind rayservice 100
    python -m bench.kubernetes --neighbour 500

etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok run on this machine; Pods run and are ready at
once. They take more of it than the operator does, so that seconds say as much about them: what travels between
machines is CPU as a part of kube-apiserver's own in the same run, requests per object, and memory. RayJobs and
RayServices have a stand-in for Ray, in a network of their own, which needs root.

The reference operator in its own runs on two cores, with one worker unless said:

- RayClusters: 11 requests each; 0.19 of kube-apiserver's CPU at 100, 0.27 at 500 and 0.35 at 1,000; 63, 148, 250 MiB.
- 100 RayJobs: all run after 8.5 to 12.6 s; an end is noticed after 1.5 s, p99 3 s, and beside 10 dashboards that hang
  after 8 to 10 s, p99 20 s (ten workers: 1.4 s and 3 s, but 300 jobs with 30 that hang 2.4 s and 4.3 s). They are asked
  2,000 times a minute for ever, at 2.0 CPU seconds.
- 100 RayServices: all ready after 14 to 28 s with 21 requests each, then 10 to 22 CPU seconds a minute for ever.
- A small RayCluster beside one that grows to 500 workers: 3 to 7 s, alone 0.08 s (ten workers: 0.15 to 0.5 s).
"""

from bench.figures import Figure


def measure() -> list[Figure]:
    """Return what every run of the benchmarks tells; RayServices and larger loads are on demand."""
    # A part of this package can do without the operator and the world of its tests.
    from bench.kubernetes import suite

    return suite.measure()
