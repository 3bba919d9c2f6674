"""Tasks between sampler and study: which settings fit a dataset, the id of a task, the tasks that a run keeps."""
