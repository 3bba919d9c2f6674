"""The server, and the router of its pages."""

import streamlit as st

if __name__ == "app":  # `streamlit run app.py` imports this file as the server, then runs it for every visitor
    from fsviz.ui.parts import navigation, server

    navigation.take_over()
    app = st.App(__file__, middleware=server.MIDDLEWARE, lifespan=server.lifespan)
else:
    from fsviz.ui.parts import shell

    shell.navigate().run()
