"""From a document to KV on disk: parts, prefill, commit, and the queue of jobs that does it."""
