# fsviz with its demo, for looking, as an ordinary user. Other flags of `python -m fsviz app` go after the image's name.
FROM python:3.11-slim

# The small build of torch, for processors; for another one: --build-arg TORCH_INDEX=URL
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
COPY requirements.txt /tmp/requirements.txt
RUN pip install --no-cache-dir --extra-index-url "${TORCH_INDEX}" -r /tmp/requirements.txt && rm /tmp/requirements.txt

# Code and data belong to root, so that whoever gets in as the user below cannot change them.
WORKDIR /app
COPY app.py app.py
COPY .streamlit/config.toml .streamlit/config.toml
COPY pages pages
COPY fsviz fsviz
COPY data data
RUN chmod -R a+rX,go-w /app && useradd --uid 1000 --no-create-home fsviz && install -d -o fsviz -g fsviz /workspace

USER fsviz
ENV FSVIZ_HOME=/workspace HOME=/tmp NUMBA_CACHE_DIR=/tmp/numba PYTHONDONTWRITEBYTECODE=1
VOLUME /workspace
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]
ENTRYPOINT ["python", "-m", "fsviz", "app", "--address", "0.0.0.0", "--port", "8501", "--no-browser"]
CMD ["--share"]
