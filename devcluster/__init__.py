"""A real Kubernetes control plane on this machine, for runs, tests and benchmarks.

etcd, kube-apiserver, controller-manager and scheduler are the real ones, KWOK plays the kubelets of fake
nodes, and a real Prometheus scrapes an exporter that plays the GPUs.  Nothing here ships to users: the
product must never import it, and it must never import the product.
"""

from devcluster.cluster import Cluster, running_cluster
from devcluster.errors import DevclusterError

__all__ = ["Cluster", "DevclusterError", "running_cluster"]
