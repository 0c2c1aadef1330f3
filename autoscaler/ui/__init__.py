"""What people and scripts see: tables, JSON, YAML. This room knows plans and explain rows only.

It knows no cluster, no metrics store and no planner: every view can be drawn from a saved plan.
"""
