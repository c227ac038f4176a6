"""What other projects' benchmarks ask of a memory system, answered by a running worker of Siltstone."""
