# fsviz with its demo, for looking, as an ordinary user. Give other flags of `python -m fsviz app` after the image's name.
FROM python:3.11-slim

# Without a GPU the small build of torch will do; any other index: --build-arg TORCH_INDEX=URL
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
COPY requirements.txt /tmp/requirements.txt
RUN pip install --no-cache-dir --extra-index-url "${TORCH_INDEX}" -r /tmp/requirements.txt && rm /tmp/requirements.txt

RUN useradd --create-home --uid 1000 fsviz && install -d -o fsviz -g fsviz /workspace
WORKDIR /app
COPY app.py README.md ./
COPY .streamlit/config.toml .streamlit/config.toml
COPY pages pages
COPY fsviz fsviz
COPY data data
# The code and the data belong to root: who gets in as the user below cannot change them.
RUN python -m compileall -q app.py pages fsviz && chmod -R a+rX,go-w /app

USER fsviz
ENV FSVIZ_HOME=/workspace NUMBA_CACHE_DIR=/tmp/numba HOME=/tmp PYTHONDONTWRITEBYTECODE=1
VOLUME /workspace
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]
ENTRYPOINT ["python", "-m", "fsviz", "app", "--address", "0.0.0.0", "--port", "8501", "--no-browser"]
CMD ["--share"]
