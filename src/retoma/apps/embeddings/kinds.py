"""All kinds of this application: documents and the tidying behind them, and questions that cost money."""

from retoma.apps.embeddings import questions, steps
from retoma.apps.embeddings.questions import Questions
from retoma.apps.tools import Tools
from retoma.engine.kind import Kind


def stories(tools: Tools) -> list[Kind]:
    """Made with these tools."""
    return [*steps.stories(tools), *questions.kinds_of(tools.one(Questions))]
