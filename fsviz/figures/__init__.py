"""Records in, plotly (or ECharts) figures out, and nothing else: no computing, no disk, no streamlit."""
