"""One file per question that a page, a command or a report answers at once: nothing here runs as a job."""
