"""Search: which chunks of a collection are nearest to a question."""

from retoma.apps.embeddings.vectors.matrix import Matrix, Near
from retoma.apps.embeddings.vectors.search import Found, Hit, Mode, Question, Searcher
from retoma.apps.embeddings.vectors.spans import spans_of

__all__ = ["Found", "Hit", "Matrix", "Mode", "Near", "Question", "Searcher", "spans_of"]
