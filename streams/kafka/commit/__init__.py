"""The commit protocol: an offset is committed only when all effects of the records before it are acknowledged."""
