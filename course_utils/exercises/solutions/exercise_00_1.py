"""The rank of a process, from its node and its number there."""


def global_rank(node_rank: int, local_rank: int, ranks_on_node: list[int]) -> int:
    """The rank of process `local_rank` on node `node_rank`; node i has ranks_on_node[i] ranks."""
    if not 0 <= node_rank < len(ranks_on_node):
        raise ValueError(f"there is no node {node_rank}: there are {len(ranks_on_node)} nodes")
    if not 0 <= local_rank < ranks_on_node[node_rank]:
        raise ValueError(f"node {node_rank} has no local rank {local_rank}")
    return sum(ranks_on_node[:node_rank]) + local_rank  # all nodes before come first
