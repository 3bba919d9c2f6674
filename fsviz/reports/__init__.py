"""Tables as CSV, LaTeX and Markdown, and reports in one HTML file."""
