"""Overview: pick a dataset, see what it is and what can be done with it."""

import streamlit as st

if __name__ == "app":  # `streamlit run app.py` imports this file as the server, then runs it as the first page
    from fsviz.ui.parts import server

    app = st.App(__file__, middleware=server.MIDDLEWARE, lifespan=server.lifespan)
else:
    from fsviz.ui.pages import overview
    from fsviz.ui.parts import shell

    with shell.page(
        "Why is a few-shot task hard?",
        "A few-shot task asks a classifier to tell classes apart after seeing only a few images of each. Average "
        "accuracy hides what makes one task harder than another; fsviz measures the causes, here on {dataset}.",
        icon="🔎",
    ) as dataset:
        overview.show(dataset)
