"""All kinds of this application: documents and the tidying behind them, questions that cost money, and the webhook."""

from retoma.apps.embeddings import completion, questions, steps
from retoma.apps.embeddings.providers import check_provider_name
from retoma.apps.embeddings.questions import Questions
from retoma.apps.tools import Tools
from retoma.engine.kind import Kind


def stories(tools: Tools) -> list[Kind]:
    """Made with these tools. A provider that is not installed is refused before there is work for it."""
    check_provider_name(tools.settings.embeddings_provider)
    return [
        *steps.stories(tools),
        *questions.kinds_of(tools.one(Questions)),
        *completion.kinds_of(tools),
    ]
