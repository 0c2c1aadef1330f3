"""A GPU autoscaler for Kubernetes: observe -> decide -> act.

Stores and series become a snapshot; the planner turns it into a plan; requests turn it into HTTP.
"""

__version__ = "0.1.0"
