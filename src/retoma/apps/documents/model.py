"""Nouns of the documents application: a project, its closed set of labels, an execution, a document.

The words are those of the document. An execution is a batch, each document of it a job.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from retoma.codec import digest, encode
from retoma.engine.rules.errors import ENGINE_CODES, Action, BadInput, Code, ErrorClass, table
from retoma.engine.rules.states import State
from retoma.toolkit.readers.rules import MOST_TEXT, Ocr
from retoma.words import Language, Said, say

KIND: Final = "documents.document"
ROUTE: Final = "/classificador/"
QUIET: Final = 300.0  # seconds in which nothing moved before an execution can be TRAVADO
MOST_DOCUMENTS: Final = 10_000  # of one execution
MOST_LABELS: Final = 200
LONGEST_NAME: Final = 100  # characters of a label
LONGEST_TEXT: Final = 2_000  # characters of a description
MOST_CHARS: Final = 24_000  # of a document that a model is shown, where a project says nothing
CHARS: Final = (500, MOST_TEXT)
MOST_RETRIES: Final = 10


class ExecutionStatus(StrEnum):
    """Of an execution, as the document says it."""

    PENDENTE = "PENDENTE"
    EM_ANDAMENTO = "EM_ANDAMENTO"
    CONCLUIDO = "CONCLUIDO"
    TRAVADO = "TRAVADO"
    ERRO = "ERRO"


class DocumentStatus(StrEnum):
    """Of a document in an execution, as the document says it."""

    PENDENTE = "PENDENTE"
    PROCESSANDO = "PROCESSANDO"
    CONCLUIDO = "CONCLUIDO"
    ERRO = "ERRO"
    PULADO = "PULADO"


_E = ExecutionStatus

# Where an execution may go. What is stuck goes on before it can have ended (C3); what has ended goes
# on by a new generation.
MOVES: Final[Mapping[ExecutionStatus, frozenset[ExecutionStatus]]] = {
    _E.PENDENTE: frozenset({_E.EM_ANDAMENTO, _E.TRAVADO}),
    _E.EM_ANDAMENTO: frozenset({_E.CONCLUIDO, _E.TRAVADO}),
    _E.TRAVADO: frozenset({_E.EM_ANDAMENTO, _E.ERRO}),
    _E.ERRO: frozenset({_E.EM_ANDAMENTO}),
    _E.CONCLUIDO: frozenset({_E.EM_ANDAMENTO}),
}

TERMINAL: Final = frozenset(
    {DocumentStatus.CONCLUIDO, DocumentStatus.ERRO, DocumentStatus.PULADO}
)
STATUS: Final[Mapping[State, DocumentStatus]] = {
    State.WAITING: DocumentStatus.PENDENTE,
    State.PARKED: DocumentStatus.PENDENTE,
    State.RUNNING: DocumentStatus.PROCESSANDO,
    State.DONE: DocumentStatus.CONCLUIDO,
    State.DEAD: DocumentStatus.ERRO,
    State.SKIPPED: DocumentStatus.PULADO,
    State.CANCELED: DocumentStatus.PULADO,
}

# What may end an attempt of a document, and what follows: codes of our own, and the engine's in words for
# whoever handed the document in. The meaning is all that a message says: what a library or a model said
# may hold text of the document (C8).
_ENGINES: Final[Mapping[str, str]] = {
    "exception": "erro interno; o rastreamento está com o admin",
    "transient": "não deu desta vez",
    "permanent": "nenhuma nova tentativa ajuda",
    "timeout": "o documento levou tempo demais",
    "throttled": "o serviço pediu para esperar",
    "no_answer": "o serviço não respondeu",
    "ssrf_blocked": "o endereço do serviço não é permitido",
    "unsure": "a resposta do serviço se perdeu",
    "stalled": "o documento parou de avançar",
    "deadline": "o prazo do documento passou",
    "unstorable_result": "o resultado não pode ser guardado",
    "bad_payload": "o que já foi guardado não se deixa ler",
    "bad_input": "erro interno do classificador",
    "duplicate_step": "erro interno do classificador: uma etapa foi pedida duas vezes",
    "child_died": "o arquivo derrubou o leitor",
    "out_of_memory": "a leitura do arquivo pede memória demais",
    "remote_failed": "o trabalho remoto falhou",
    "remote_gone": "o trabalho remoto não existe mais",
    "remote_stopped": "o trabalho remoto foi parado",
    "remote_timeout": "o trabalho remoto levou tempo demais",
    "remote_stalled": "o trabalho remoto parou de avançar",
    "bad_handle": "a resposta do trabalho remoto não é válida",
    "lease_lost": "o executor perdeu o documento; outro continua",
    "poison": "três executores morreram com este documento",
    "released_too_often": "o documento foi devolvido vezes demais",
    "canceled": "cancelado por uma pessoa",
    "config": "o serviço não tem o modelo pedido",
    "budget": "o saldo ou o orçamento acabou",
    "unknown_remote": "ninguém sabe se o serviço respondeu",
}
CODES: Final = table(
    Code("corrupt", ErrorClass.DATA, Action.BURY, None, "o arquivo está corrompido"),
    Code("encrypted", ErrorClass.DATA, Action.BURY, None, "o arquivo pede uma senha"),
    Code(
        "needs_ocr", ErrorClass.DATA, Action.BURY, None, "páginas digitalizadas: precisa de OCR"
    ),
    Code("empty", ErrorClass.DATA, Action.BURY, None, "o arquivo não tem texto"),
    Code("unsupported", ErrorClass.DATA, Action.BURY, None, "tipo de arquivo não aceito"),
    Code(
        "wrong_extension",
        ErrorClass.DATA,
        Action.BURY,
        None,
        "o conteúdo não é o que o nome do arquivo diz",
    ),
    Code("too_large", ErrorClass.DATA, Action.BURY, None, "o arquivo é grande demais"),
    Code("nested", ErrorClass.DATA, Action.BURY, None, "um arquivo compactado dentro de outro"),
    Code("link", ErrorClass.DATA, Action.BURY, None, "um atalho que leva para fora da pasta"),
    Code("unreadable", ErrorClass.DATA, Action.BURY, None, "o arquivo não pôde ser lido"),
    Code("no_content", ErrorClass.DATA, Action.BURY, None, "o conteúdo não está mais guardado"),
    Code(
        "unknown_label", ErrorClass.DATA, Action.RETRY, None, "rótulo fora do conjunto fechado"
    ),
    Code("truncated", ErrorClass.DATA, Action.RETRY, None, "a resposta do modelo veio cortada"),
    Code(
        "bad_answer", ErrorClass.DATA, Action.RETRY, None, "a resposta do modelo não é válida"
    ),
    Code("refused", ErrorClass.DATA, Action.BURY, None, "o serviço recusou este documento"),
    Code("rejected", ErrorClass.CONFIG, Action.PARK, None, "o serviço rejeitou o pedido"),
    Code(
        "no_ocr", ErrorClass.CONFIG, Action.PARK, None, "falta o OCR onde rodam os executores"
    ),
    Code("no_key", ErrorClass.CONFIG, Action.PARK, None, "falta a chave do serviço"),
    Code(
        "unauthorized", ErrorClass.CONFIG, Action.PARK, None, "a chave do serviço foi recusada"
    ),
    Code("server_error", ErrorClass.TRANSIENT, Action.RETRY, None, "o serviço falhou"),
    *(replace(ENGINE_CODES[code], meaning=meaning) for code, meaning in _ENGINES.items()),
)

# The same for whoever reads English.
MEANINGS: Final[Mapping[str, Said]] = {
    "corrupt": say("the file is broken"),
    "encrypted": say("the file asks for a password"),
    "needs_ocr": say("scanned pages: it needs OCR"),
    "empty": say("there is no text in the file"),
    "unsupported": say("a type of file that is not accepted"),
    "wrong_extension": say("the content is not what the name of the file says"),
    "too_large": say("the file is too large"),
    "nested": say("an archive inside another"),
    "link": say("a link that leads out of the folder"),
    "unreadable": say("the file could not be read"),
    "no_content": say("the content is no longer kept"),
    "unknown_label": say("a label that is not of the closed set"),
    "truncated": say("the answer of the model was cut off"),
    "bad_answer": say("the answer of the model is not valid"),
    "refused": say("the service refused this document"),
    "rejected": say("the service rejected the request"),
    "no_ocr": say("OCR is not installed where the runners run"),
    "no_key": say("the key of the service is missing"),
    "unauthorized": say("the key of the service was refused"),
    "server_error": say("the service failed"),
    "exception": say("an error of our own; an admin has the stack"),
    "transient": say("it did not work this time"),
    "permanent": say("no further try will help"),
    "timeout": say("the document took too long"),
    "throttled": say("the service asked us to wait"),
    "no_answer": say("the service did not answer"),
    "ssrf_blocked": say("the address of the service is not allowed"),
    "unsure": say("the answer of the service was lost"),
    "stalled": say("the document made no progress any more"),
    "deadline": say("the time of the document is over"),
    "unstorable_result": say("the result cannot be stored"),
    "bad_payload": say("what was kept cannot be read"),
    "bad_input": say("an error of the classifier's own"),
    "duplicate_step": say("an error of the classifier's own: a step was asked for twice"),
    "child_died": say("the file brought its reader down"),
    "out_of_memory": say("reading the file takes too much memory"),
    "remote_failed": say("the remote work failed"),
    "remote_gone": say("the remote work is no longer there"),
    "remote_stopped": say("the remote work was stopped"),
    "remote_timeout": say("the remote work took too long"),
    "remote_stalled": say("the remote work made no progress any more"),
    "bad_handle": say("the answer of the remote work is not valid"),
    "lease_lost": say("the runner lost the document; another goes on"),
    "poison": say("three runners died of this document"),
    "released_too_often": say("the document was given back too often"),
    "canceled": say("canceled by a person"),
    "config": say("the service does not have the model that was asked for"),
    "budget": say("the credit or the budget is spent"),
    "unknown_remote": say("nobody knows whether the service answered"),
}

# What a person does about a service that turns down every request of an execution, whatever the document.
CURES: Final[Mapping[str, Said]] = {
    "no_key": say(
        "Set RETOMA_OPENROUTER_KEY where the runners run, restart them, then resume."
    ),
    "unauthorized": say(
        "Put a valid key into RETOMA_OPENROUTER_KEY where the runners run, restart them, then"
        " resume."
    ),
    "budget": say("Add credit at the service, then resume."),
    "config": say(
        "Choose another model in the project, or in RETOMA_OPENROUTER_MODEL where the runners"
        " run, then resume: the execution takes the model of its project."
    ),
    "rejected": say(
        "Change what the service complains about (the model, or how many characters it is shown:"
        " both in the project), then resume. If it complains about one document, skip that one."
    ),
}
CERTAIN: Final = frozenset({"no_key", "unauthorized", "budget", "config"})  # of every document


def meaning_of(code: str, language: Language = Language.PT_BR) -> str:
    """All that is told of a failure besides its code. What is written down is Portuguese."""
    if code not in CODES:
        return code
    return CODES[code].meaning if language is Language.PT_BR else str(MEANINGS[code])


@dataclass(frozen=True, slots=True)
class Label:
    """One of a closed set: its name is the answer, its description tells the model when."""

    name: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRules:
    """How the documents of an execution are classified; an execution keeps those it began with."""

    labels: tuple[Label, ...]
    model: str | None = None  # the house's, where a project names none
    instructions: str = ""
    most_chars: int = MOST_CHARS  # of the text, that a model is shown
    least_confidence: float = 0.0  # below it a person should look
    max_retries_documento: int = 2
    max_retries_execucao: int = 3
    ocr: Ocr = Ocr.NEVER

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(label.name for label in self.labels)

    @property
    def attempts(self) -> int:
        """How often a document may be tried."""
        return 1 + self.max_retries_documento

    def recipe(self, prompt_version: str, models: Sequence[str]) -> str:
        """What an answer depends on, besides the content: the same of both is not paid for twice."""
        labels = [[each.name, each.description] for each in self.labels]
        asked = [self.model] if self.model else [*models]
        told = [prompt_version, asked, labels, self.instructions, self.most_chars]
        if self.ocr is not Ocr.NEVER:  # what was answered before there was any stays answered
            told.append(self.ocr)
        return digest(encode(told))


def checked_rules(rules: ProjectRules) -> ProjectRules:
    """These rules, or BadInput that says which is none."""
    if not rules.labels:
        raise BadInput(say("a project needs one label at least"))
    if len(rules.labels) > MOST_LABELS:
        raise BadInput(say("a project has {most} labels at most", most=MOST_LABELS))
    for label in rules.labels:
        _check_label(label)
    names = [name.casefold() for name in rules.names]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadInput(say("labels given twice: {labels}", labels=", ".join(twice)))
    _check_numbers(rules)
    return rules


def _check_label(label: Label) -> None:
    if not label.name.strip() or len(label.name) > LONGEST_NAME or not label.name.isprintable():
        raise BadInput(
            say(
                "a label needs a printable name of 1 to {most} characters, not {name!r}",
                most=LONGEST_NAME,
                name=label.name,
            )
        )
    if len(label.description) > LONGEST_TEXT or "\0" in label.description:
        raise BadInput(
            say(
                "label {name}: a description has {most} characters at most",
                name=label.name,
                most=LONGEST_TEXT,
            )
        )


def _check_numbers(rules: ProjectRules) -> None:
    least, most = CHARS
    if not least <= rules.most_chars <= most:
        raise BadInput(
            say("a model is shown {least} to {most} characters", least=least, most=most)
        )
    if not 0 <= rules.least_confidence <= 1:
        raise BadInput(say("a confidence is from 0 to 1"))
    for retries in (rules.max_retries_documento, rules.max_retries_execucao):
        if not 0 <= retries <= MOST_RETRIES:
            raise BadInput(say("retries are from 0 to {most}", most=MOST_RETRIES))


@dataclass(frozen=True, slots=True)
class Classified:
    """What a document ends with. `origin`: the document that was paid for, where this one was not."""

    label: str
    confidence: float
    justification: str
    model: str
    review: bool = False  # a person should look: less sure than the project wants
    cut: bool = False  # the model was shown a part of it
    pages: int = 0
    origin: int | None = None
