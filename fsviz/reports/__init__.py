"""What leaves fsviz on paper: tables as CSV, LaTeX and Markdown, and reports in one HTML file."""
