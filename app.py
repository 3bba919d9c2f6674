"""The server, and the first page."""

import streamlit as st

if __name__ == "app":  # `streamlit run app.py` imports this file as the server, then runs it as the first page
    from fsviz.ui.parts import server

    app = st.App(__file__, middleware=server.MIDDLEWARE, lifespan=server.lifespan)
else:
    from fsviz.ui.pages import overview
    from fsviz.ui.parts import shell

    shell.run(overview.PAGE)
