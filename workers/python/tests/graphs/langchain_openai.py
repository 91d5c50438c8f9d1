"""Stands in for a provider's package."""

from langchain_core.embeddings import Embeddings


class OpenAIEmbeddings(Embeddings):
    def __init__(self, model, **_):
        self.model = model

    def embed_documents(self, texts):
        return [[4.0] for _ in texts]

    def embed_query(self, text):
        return [4.0]
