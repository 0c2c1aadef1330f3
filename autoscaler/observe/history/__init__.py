"""The service's own history: of devices over the evidence window, of workloads over the history window.

What a metrics store can aggregate ends with the series of a pod and cannot add up boards that take turns. Here values
are kept by interval, and loads by workload, so that they survive rollouts and new pod names; after a restart the same
store fills them again. All of it is columnar and bounded. This package knows no sockets: who asks is handed in.
"""
