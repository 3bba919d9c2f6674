"""Why a task is hard: support sets on which a classifier fails, and what differs between support and query."""
