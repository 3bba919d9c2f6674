"""The only room that knows streamlit: widgets, state, cached wrappers, galleries. It shows; the engine computes."""
