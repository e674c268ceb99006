"""Why a request that fits the document of the API may be refused all the same: `python -m tests.web.rejections` writes the page."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.house.files import ROOT
from tests.web.refusals import pattern_of, refusals

PAGE: Final = ROOT / "docs" / "reference" / "rejections.md"
AGAIN: Final = "python -m tests.web.rejections"

# Each sentence by which a request may be refused, as the code has it, and why no schema of JSON says it.
REASONS: Final[Mapping[str, str]] = {
    "nobody removes themselves; nothing was changed": "who asks, and until when, is known when it is asked",
    "{length:g} s is too long: at most {most:g} s ({days:g} days)": "a length of time has a bound that follows from its unit",
    "a role is one of {known}, not {value!r}": "which roles there are, the role of who asks says",
    "{name!r} mixes letters that look alike; write it with those of one script": "which letters do is a table of Unicode",
    "{name!r} stands for ourselves in the audit log; take another name": "which names look alike, and which characters can be seen, is a table of Unicode",
    "{thing} has only characters that can be seen, and no space around them": "which names look alike, and which characters can be seen, is a table of Unicode",
    "{thing} has {least} to {most} characters": "blanks around a name do not count",
    "{name!r} looks like {other!r}; take another name": "which names look alike, and which characters can be seen, is a table of Unicode",
    "{until} is past: the key would never be good, and was not made": "an instant has bounds that move with the clock",
    "that would be {n} missions, and at most {most} are made at a time": "one field times another",
    "1 line is wrong; nothing was added": "a table in a text",
    "{n} lines are wrong; nothing was added": "a table in a text",
    "date_end is before date_start": "one field beside another",
    "is no address such as https://worker.example.org": "what an address is, only reading it tells",
    "is no host such as proxy.example.org": "the name of a host has rules of its own",
    "is no host, or host:port": "the name of a host has rules of its own",
    "is no language such as pt or pt-BR": "a tag of a language has a grammar of its own",
    "{names}: cannot be nothing": "left out is as before, and null is nothing",
    "has a NUL character": "no text may have one: PostgreSQL keeps none",
    "more than {most} characters at a time": "a table in a text",
    "more than {most} lines at a time": "a table in a text",
    "nothing is there to be read": "a table in a text",
    "the first line names columns, each once, of: {known}": "a table",
    "more than {most} missions match: narrow the filter; nothing was changed": "what is stored already decides",
    "{id} has no storage_domain: nobody could fetch what it finds; nothing was changed": "what is stored already decides",
    "{id} is active: it keeps a storage_domain; nothing was changed": "what is stored already decides",
    "the ads application is not installed here": "what is stored already decides",
    "an archive has {most} files at most": "what is in a file or an archive, only reading it tells",
    "the archive has {packed} bytes and would have {unpacked}: nothing was taken": "what is in a file or an archive, only reading it tells",
    "the archive leads out of itself, by a path or a link; nothing was taken": "what is in a file or an archive, only reading it tells",
    "the archive names two files alike; nothing was taken": "what is in a file or an archive, only reading it tells",
    "there are no files in the archive": "what is in a file or an archive, only reading it tells",
    "this is no archive, or a broken one; nothing was taken": "what is in a file or an archive, only reading it tells",
    "files come as multipart/form-data, or one by one": "a file without its name",
    "more than {most} files at a time": "what is in a file or an archive, only reading it tells",
    "the upload breaks off, or is no form with files": "a form without a file",
    "a file has no name": "a form without the name of a file",
    "a name has {most} characters at most: {name}…": "what is in a file or an archive, only reading it tells",
    "an archive has {most} bytes at most": "what is in a file or an archive, only reading it tells",
    "line {line} of the manifest: it has the columns codigo and arquivo, and both in every line": "what is in a file or an archive, only reading it tells",
    "no file came": "what is in a file or an archive, only reading it tells",
    "the form says more than anybody asks": "what is in a file or an archive, only reading it tells",
    "the manifest does not name: {names}": "what is in a file or an archive, only reading it tells",
    "the manifest is no text": "what is in a file or an archive, only reading it tells",
    "the manifest names what did not come: {names}": "what is in a file or an archive, only reading it tells",
    "the manifest names {file} twice": "what is in a file or an archive, only reading it tells",
    "there is no such folder among those that documents may come from": "which folders there are is the operator's setting",
    "there is one manifest, of {most} bytes": "what is in a file or an archive, only reading it tells",
    "two documents are called alike; nothing was taken: {names}": "what is in a file or an archive, only reading it tells",
    "{path}: there is no such file or folder": "what is in a file or an archive, only reading it tells",
    "a confidence is from 0 to 1": "labels are checked one by one, so that each flaw names its label",
    "a label needs a printable name of 1 to {most} characters, not {name!r}": "labels are checked one by one, so that each flaw names its label",
    "a model is shown {least} to {most} characters": "labels are checked one by one, so that each flaw names its label",
    "a project has {most} labels at most": "labels are checked one by one, so that each flaw names its label",
    "a project needs one label at least": "labels are checked one by one, so that each flaw names its label",
    "label {name}: a description has {most} characters at most": "labels are checked one by one, so that each flaw names its label",
    "labels given twice: {labels}": "no name twice",
    "retries are from 0 to {most}": "labels are checked one by one, so that each flaw names its label",
    "{label!r} is not a label of this execution: {labels}": "what is stored already decides",
    "an execution needs one document at least": "what is stored already decides",
    "codes given twice: {codes}": "what is stored already decides",
    "more than {most} documents at a time": "what is stored already decides",
    "no document that came is called {codes}": "what is stored already decides",
    "upload these first, nothing was begun: {codes}": "what is stored already decides",
    "a project needs a printable name": "what is stored already decides",
    "1 to {most} documents come at once": "documents are checked one by one, so that each flaw names its document",
    "document {place} has a name, a text and, if you like, metadata, and nothing else": "documents are checked one by one, so that each flaw names its document",
    "the body has a collection and documents, and nothing else": "its documents are checked one by one",
    "a chunk has {least} to {most} characters, not {size}": "one field beside another",
    "chunks of {size} characters overlap by 0 to {most}, not by {overlap}": "half of `size` at most",
    "a collection is called by 1 to 100 letters, digits, - _ and ., not {name!r}": "as its address needs it",
    "a document needs a name of 1 to {most} characters": "documents are checked one by one, so that each flaw names its document",
    "a key of metadata has 1 to 50 letters, digits, - _ and ., not {key!r}": "documents are checked one by one, so that each flaw names its document",
    "a text has {most} MiB at most": "documents are checked one by one, so that each flaw names its document",
    "chunks of a collection have {least} to {most} characters, not {size}": "documents are checked one by one, so that each flaw names its document",
    "metadata has {most} keys at most": "documents are checked one by one, so that each flaw names its document",
    "metadata is given as key=value, not {text!r}": "documents are checked one by one, so that each flaw names its document",
    "metadata {key}: a value is yes or no, a whole number, or up to {most} characters": "documents are checked one by one, so that each flaw names its document",
    "the text has NULs or halves of characters in it, which nobody can keep": "documents are checked one by one, so that each flaw names its document",
    "the text has nothing in it": "documents are checked one by one, so that each flaw names its document",
    "another document of this submission has the same name": "documents are checked one by one, so that each flaw names its document",
    "a question has 1 to {most} characters": "which texts can be searched for, the database says",
    "a search gives 1 to {most} hits": "which texts can be searched for, the database says",
    "a search names {most} documents at most": "which texts can be searched for, the database says",
    "this cannot be searched for: {why}": "which texts can be searched for, the database says",
    "the layouts are {known}, not {unknown}": "which layouts there are is a setting",
    "the match does not add up; nothing was changed": "the rules of a match: docs/howto/matches.md",
    "only a match that is over is stored, not {status}": "what is stored already decides",
    "a range of rounds goes up, and has {most} at most": "what is stored already decides",
    "a season is a year, not {season}": "which years, the league says",
    "{league} has the rounds 1 to {last}": "which seasons and rounds there are, the league says",
    "name the codigo {code} twice": "no code twice in one lote",
    "says nothing": "a text of blanks alone",
    "a name has {most} characters at most": "a table in a file",
    "has characters that cannot be read: save the table as UTF-8 or as XLSX": "a table in a file",
    "is a formula: copy its value": "a table in a file",
    "is an error of the spreadsheet: {value}": "a table in a file",
    "is none of `produto`, `veículo`, `automático`": "a table in a file",
    "is the name of the column again": "a table in a file",
    "more than {most} quotes at a time": "a table in a file",
    "the first line names no column `descricao`": "a table",
    "the first line names the column {name} twice": "a table in a file",
    "the table cannot be read: {why}": "a table in a file",
    "the table has no lines": "a table in a file",
    "the table is neither UTF-8, UTF-16 nor Windows-1252": "a table in a file",
    "was shortened by the spreadsheet to {value}: format the column as text": "a table in a file",
    "{code} is that of line {first} already": "a table in a file",
    "a batch is named by its number, not {name!r}": "an amount, a unit or a currency in a text",
    "a budget is of one batch, one provider or one application": "one of three fields",
    "a budget is per {all}, not {text!r}": "an amount, a unit or a currency in a text",
    "a {what} has 1 to {most} printable characters: {text!r}": "an amount, a unit or a currency in a text",
    "say what is to be forgotten: a kind, step, key or date; or everything": "an amount, a unit or a currency in a text",
    "the budget of a batch is for all of it, not per day or month": "one field beside another",
    "this cannot be the key of a result: {error}": "an amount, a unit or a currency in a text",
    "{name} is a whole number from {least} to {most}, not {number!r}": "an amount, a unit or a currency in a text",
    "{name} is from {least} to {most}, not {amount!r}": "an amount, a unit or a currency in a text",
    "a name has 1 to {most} printable characters, not {name!r}": "numbers of one limit, one beside another",
    "pick is one of {all}, not {pick!r}": "numbers of one limit, one beside another",
    "{key}: a burst below one lets nothing through": "numbers of one limit, one beside another",
    "{name} is a number, not {number!r}": "numbers of one limit, one beside another",
    "{name} is a whole number from {least}, not {number!r}": "numbers of one limit, one beside another",
    "{name} is more than nothing and finite, not {number!r}": "numbers of one limit, one beside another",
    "{name}: a breaker needs some rest": "numbers of one limit, one beside another",
    "an alert is silenced for up to {most:g} days, not for {length:g} s": "one field beside another",
    "codes are names such as 'ERROR202', one at least, not {codes!r}": "one field beside another",
    "say what to skip: one job, or the codes of those that failed": "one field beside another",
    "what is paused is one of {known}, not {given!r}": "one field beside another",
    "a schedule has a printable name of 1 to {most} characters: {name!r}": "which names can be printed is a table of Unicode",
    "schedule {name}: missed ticks are run once ('one') or not at all ('skip'), not {missed!r}": "which names can be printed is a table of Unicode",
    "schedule {name}: {error}": "which names can be printed is a table of Unicode",
    "until ({until}) is before since ({since})": "one field beside another",
    "{at} needs a time zone: it could be any instant": "one field beside another",
    "the pace is told for up to a week, not for {span:g} s": "one field beside another",
    "a page has 1 to {most} {what}, not {limit}": "one field beside another",
    "a text to look for has 1 to {most} characters": "one field beside another",
    "only dead letters have a fingerprint": "one field beside another",
    "a cost says at least one number: money, tokens, bytes or others": "an amount, a unit or a currency in a text",
    "a unit is a word such as input_tokens, not {name!r}": "as in `input_tokens`",
    "{currency} is no currency here: there are {all}": "an amount, a unit or a currency in a text",
    "no time zone is called {timezone!r}; write one like America/Sao_Paulo or UTC": "five fields and a time zone, each with rules of its own",
    "{line!r} is no cron line: it has {has} fields, not {fields} (minute hour day month weekday)": "five fields, each with rules of its own",
    "{line!r} is no cron line: {why}": "five fields, each with rules of its own",
    "{line!r} never ticks: no year has such a day": "five fields and a time zone, each with rules of its own",
    "an instant is a datetime with a time zone, not {since}": "an instant is written in more ways than one",
    "{since} is no instant of ours": "an instant is written in more ways than one",
    "{since} is too far away: from 1970 to 100 years from now": "an instant has bounds that move with the clock",
    "{text} is no length of time; write '250ms', '90s' or '1h30m'": "text such as `1h30m`",
    "{value} is no length of time: it must be finite and not negative": "text such as `1h30m`",
    "{value} is no length of time; write seconds, or text like '5m'": "text such as `1h30m`",
    "{value} is too long: a length of time is at most 100 years": "a length of time has a bound that follows from its unit",
    "a limit lets 1 to {most} jobs run at once, not {cap!r}": "which characters can be printed is a table of Unicode",
    "a limit per 'kind' would be taken for a kind's own: call it otherwise": "which characters can be printed is a table of Unicode",
    "the key of a limit has 1 to {most} printable characters: {key!r}": "which characters can be printed is a table of Unicode",
    "{kind}: the key of a limit is text, not {value!r}": "which characters can be printed is a table of Unicode",
    "{kind}: the key of its limit cannot be told from the payload: {name}: {error}": "which characters can be printed is a table of Unicode",
    "{kind}: two limits of the same sort, give one of them": "which characters can be printed is a table of Unicode",
    "a knob is called by small letters, digits and _, not {name!r}": "each setting has a rule of its own",
    "{name} is {rule}, not {given!r}; nothing was changed": "each setting has a rule of its own",
    "{name}: a knob is one of {known}, not {type!r}": "each setting has a rule of its own",
    "{name} is a number, not {amount!r}": "an amount, a unit or a currency in a text",
    "{name} is an amount and a currency, such as '25 USD', not {text!r}": "an amount, a unit or a currency in a text",
    "{name} is finite, not {amount!r}": "an amount, a unit or a currency in a text",
    "{name} is more than nothing, not {text!r}": "an amount, a unit or a currency in a text",
    "a reason is a text of 1 to {most} characters, not {why!r}": "blanks alone are no reason",
    "a deadline of no length leaves no time to run at all": "one field beside another",
    "a delay of {wait:g} s leaves nothing of a deadline of {lasts:g} s": "one field beside another",
    "a priority is from -1000 to 1000, not {priority!r}": "one field beside another",
    "a traceparent is as W3C Trace Context has it, not {text!r}": "one field beside another",
    "run_at and delay say the same thing twice: give one of them": "one field beside another",
    "run_at is a datetime with a time zone, not {run_at}": "one field beside another",
    "run_at needs a time zone: {run_at} could be any instant": "one field beside another",
    "{name} takes no payload": "one field beside another",
    "{name}: the payloads of many jobs are a list with one for each, not {payloads!r}": "one field beside another",
    "{payloads} payloads and {keys} keys: one key for each": "one field beside another",
    "job {job}: a handle is a value of at most {most} characters, not {handle}": "how long a value is once it is written",
    "the URL must not contain a user or password": "what an address is, only reading it tells",
    "a proxy needs a port from 1 to 65535, and a user without a colon": "what an address is, only reading it tells",
    "the URL must begin with https:// or http://": "what an address is, only reading it tells",
    "policy {name}: the schemes must be https or http": "what an address is, only reading it tells",
    "policy {name}: {problems}": "what an address is, only reading it tells",
    "policy: {name} must be a set, not a string": "what an address is, only reading it tells",
    "private hosts must be exact names, without *": "what an address is, only reading it tells",
    "the URL is not valid": "what an address is, only reading it tells",
    "the host name is not valid": "what an address is, only reading it tells",
    "host {host} is not on its list of hosts": "what an address is, only reading it tells",
    "{host}: the port is not one of {known}": "what an address is, only reading it tells",
    "{host}: the scheme is not one of {known}": "what an address is, only reading it tells",
    "purpose {purpose} may not use this address: {why}": "what an address is, only reading it tells",
    "line {n}: a row has at most {most} characters": "a table in a file",
    "the spreadsheet is damaged: open it, and save it again as XLSX or as CSV": "a table in a file",
    "the spreadsheet unpacks to too much: save it as CSV, or in parts": "a table in a file",
    "this file is no XLSX spreadsheet: save it as XLSX or as CSV": "a table in a file",
    "this spreadsheet is in the old XLS format or asks for a password: save it as XLSX without a password, or as CSV": "a table in a file",
    "the form cannot be read; load the page again": "a form in a file",
    "a secret must have 1 to {most} characters": "where a secret lies, only looking there tells",
    "a secret must be text without NUL characters": "where a secret lies, only looking there tells",
    "env: needs the name of an environment variable that is not one of retoma's own": "where a secret lies, only looking there tells",
    "file: needs an absolute path": "where a secret lies, only looking there tells",
    "the environment variable {name} is not set: set it and restart": "where a secret lies, only looking there tells",
    "the file {path} cannot be read: {why}": "where a secret lies, only looking there tells",
    "this is not a reference to a secret: write env:NAME or file:/path": "where a secret lies, only looking there tells",
    "this is not a secret that a retoma vault encrypted": "where a secret lies, only looking there tells",
    "an encrypted secret cannot be copied from elsewhere: enter the secret itself": "where a secret lies, only looking there tells",
    "{path} does not hold a secret of 1 to {most} bytes of text": "where a secret lies, only looking there tells",
    "{path} is not a regular file": "where a secret lies, only looking there tells",
    "has half a surrogate pair": "it is no text, though JSON can write it",
    "has more than {most} characters": "how long one text may be: [limits of a request](request-limits.md)",
    "a key stands in a header, never in an address: addresses are written down": "what a key looks like",
    "the cursor is not one of this list with this filter: begin without one": "a cursor is what a page before gave",
    "is less than {least}": "some readers of JSON tell numbers near 2⁶³ not apart",
    "is more than {most}": "some readers of JSON tell numbers near 2⁶³ not apart",
    "is not a text as it should be": "where a text or a whole number may stand",
    "is not a whole number": "a schema takes `3.0` for one",
    "the budget of a batch is for all of it, any other is per day or month": "one field beside another",
    "a value cannot be stored as it is; nothing was changed": "what a database keeps, the database says",
    "has a character that cannot be looked for": "no text may have a NUL: PostgreSQL keeps none",
    "is said more than once": "`metadata` is a list of `KEY=VALUE`, and a key has one value",
    "no job {kind!r} can be submitted here": "which kinds there are is known when the server starts",
    "the cursor names no instant: begin without one": "a cursor is what a page before gave",
    "a handle goes with adopt, and adopt with a handle": "likewise",
    "has characters that cannot be seen": "which characters can be seen is a table of Unicode",
    "say which: a job, or codes, and not both": "one of two fields",
    "say which: ids, or where, and not both": "one of two fields",
    "whoever skips says why, and nobody else": "one field needs another",
    "what it gave is given as JSON (17, or \"w-17\" with its quotes): {error}": "JSON in a text",
    "a key is given as JSON, such as '\"a text\"' or '{example}'": "JSON in a text",
    "costs are told by {all}, not {text!r}": "words in a text, separated by commas",
    "{text!r} is no date such as 2026-03-01 or 2026-03-01T08:30": "an instant is written in more ways than one",
    "{n} runners are meant by {text!r}: say which by its boot, {boots}": "which runners there are, the database says",
}  # fmt: skip

# Sentences of the same files that no request meets which fits the document, and why.
NONE: Final[Mapping[str, tuple[str, ...]]] = {
    "the document says it": (
        "has fewer than {least}",
        "has more than {most}",
        "is longer than {most}",
        "is shorter than {least}",
        "is missing",
        "is neither true nor false",
        "is no JSON",
        "is none of {known}",
        "is not a day such as 2026-01-31",
        "is not a finite number",
        "is not a list",
        "is not a number",
        "is not an instant such as 2026-01-31T12:00:00Z",
        "is not an object",
        "is not known here",
        "is not more than {least}",
        "needs a time zone",
        "is not allowed",
        "a body here is application/json in UTF-8, and says so",
        "the request cannot be read",
        "the body cannot be read: {why}",
        "NaN and Infinity are no numbers of JSON",
        "a number in it is too large",
        "it has more than {most} keys",
        "an object in it has more than {most} keys",
        "it has more than {most} lists and objects",
        "it has more than {most} values",
        "it is nested deeper than {most}",
        "it is no JSON",
        "it is not UTF-8",
        "it says the same key twice",
        "a body here has at most {most} bytes",
        "X-Correlation-Id has 1 to {most} printable ASCII characters",
        "a body has a Content-Length or a Transfer-Encoding, never both",
        "a value is not allowed; nothing was changed",
    ),
    "it stands in another sentence": (
        "a person's name",
        "the label of a key",
        "an exchange rate",
        "does not fit",
        "{shown} and {more} more",
    ),
    "whoever wrote or started the program hears it": (
        "RETOMA_API_KEY has {has} characters, and a key that can be guessed opens everything: give {least} to {most}, or none",
        "route {path} declares {n} roles: every route declares one",
        "a folder that documents may come from is named by its whole path",
        "the league {league} is brought by {first} and by {second}: uninstall one",
        "{where} is no Site and no list of them",
        "{where} is no Layout, or another is called {name!r} already",
    ),
}  # fmt: skip

# Files whose refusals answer no request of the API, and whom they answer.
ELSEWHERE: Final[Mapping[str, str]] = {
    r"cli/.*|apps/\w+/(cli|commands|adopt)\.py|apps/ads/service/adoption\.py": "the command line",
    r".*/pages/.*|apps/documents/service/status\.py|apps/quotes/service/recovery\.py|web/site\.py": "pages, which no schema describes",
    r"(backup|bundle|upgrade|bootstrap|manifest|settings|blob_stores|otel|logs|grants)\.py|console/.*|demo/.*|engine/(handlers|isolation)/.*|engine/rules/(retry|errors|outcome|step_names|size)\.py|library/.*|engine/run/(attempt|endings|error_details|runner\w*|transaction)\.py|engine/ops/watchdog\.py|apps/\w+/steps\.py|engine/ops/retention\.py|engine/store/(pool|rate|retire)\.py|engine/limits/rates\.py": "what starts a program, and what handlers call",
    r"programs/.*|dispatch/.*|simulation/.*|sandbox/.*|apps/\w+/sandbox/.*": "other programs",
    r"outbound/(?!policy\.py).*|vault/(?!ref\.py).*|apps/(?!documents/|matches/)\w+/clients/.*|apps/embeddings/(providers/.*|vectors/pgvector\.py|export\.py)|apps/quotes/face\.py|apps/embeddings/face\.py|apps/matches/words\.py|words/.*|engine/rules/price\.py": "what is called, read or stored later",
}  # fmt: skip


def unlisted() -> list[str]:
    """Sentences by which the code may refuse a request, and of which no table here says anything."""
    return sorted(asked() - REASONS.keys() - _none())


def outdated() -> list[str]:
    """Sentences of the tables by which no request is refused any more."""
    return sorted((REASONS.keys() | _none()) - asked())


def asked() -> set[str]:
    """Sentences of the files that a request of the API gets to."""
    return {
        template
        for template, places in refusals().items()
        if any(not _is_elsewhere(each) for each in places)
    }


def _none() -> set[str]:
    return {template for templates in NONE.values() for template in templates}


def _is_elsewhere(place: str) -> bool:
    return any(re.fullmatch(each, place) for each in ELSEWHERE)


def unknown_reasons(problem: Mapping[str, Any]) -> list[str]:
    """Those of an answer that are not in the table."""
    flaws = [each["message"] for each in problem.get("errors", ())]
    told = flaws if flaws and not _is_known(problem["detail"]) else [problem["detail"]]
    return [each for each in told if not _is_known(each)]


def _is_known(reason: str) -> bool:
    return any(re.fullmatch(pattern_of(one), reason, re.DOTALL) for one in REASONS)


def lines() -> Iterator[str]:
    yield "# Requests that fit the document and are refused"
    yield ""
    yield "`/openapi.json` says what a request may be. What follows it cannot say; such a request is answered with 400 or 422 and one of these reasons."
    yield f"Written by `{AGAIN}`. A test finds every reason in the code; the tests send what fits the document, and take no other reason."
    yield ""
    yield "| reason | why the document does not say it |"
    yield "|---|---|"
    for template, why in REASONS.items():
        yield f"| `{_shown(template)}` | {why} |"


def _shown(template: str) -> str:
    return re.sub(r"\{[^}]*\}", "…", template).replace("`", "'").replace("|", "/")


def written() -> str:
    return "\n".join(lines()) + "\n"


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
