"""SQL files are split, marked and told apart as their databases need it."""

import pytest

from retoma.db.statements import adhoc, pyformat, split, statement


def test_statements_are_parted_by_a_semicolon_and_an_empty_line():
    text = "-- Its promise.\nSELECT 1;\n\nSELECT 2\nFROM a;  \n  \n\nSELECT 3;\n"

    assert ("-- Its promise.\nSELECT 1", "SELECT 2\nFROM a", "SELECT 3") == split(text)


def test_a_semicolon_inside_a_body_parts_nothing():
    body = "CREATE FUNCTION f() AS $$\nBEGIN\n    a := 1;\n    RETURN;\nEND $$"

    assert (body, "SELECT 1") == split(f"{body};\n\nSELECT 1;")


def test_what_only_comments_is_not_a_statement():
    assert ("SELECT 1",) == split("-- alone;\n\nSELECT 1;\n\n-- at the end\n")


@pytest.mark.parametrize(
    ("ours", "psycopg"),
    [
        ("SELECT :a, :b_2", "SELECT %(a)s, %(b_2)s"),
        ("SELECT ':a', '10 %', :a", "SELECT ':a', '10 %%', %(a)s"),
        ("SELECT 'it''s :a', :a", "SELECT 'it''s :a', %(a)s"),
        ("SELECT 7 % :n", "SELECT 7 %% %(n)s"),
        ("SELECT 1 -- of :a\n, :b", "SELECT 1 -- of :a\n, %(b)s"),
        ("SELECT '12:30'", "SELECT '12:30'"),
        ("SELECT (:a)", "SELECT (%(a)s)"),
    ],
)
def test_a_named_parameter_is_written_as_psycopg_wants_it(ours, psycopg):
    assert psycopg == pyformat(ours)


@pytest.mark.parametrize(
    ("sql", "answers"),
    [
        ("SELECT 1", True),
        ("WITH a AS (SELECT 1) SELECT * FROM a", True),
        ("INSERT INTO a VALUES (1)", False),
        ("INSERT INTO a VALUES (1) RETURNING id", True),
        ("UPDATE a SET b = 'returning'", False),
        ("SELECT 'insert' -- update", True),
        ("CREATE TABLE a (b text)", False),
        ("SELECT a FROM b WHERE c = 1 FOR UPDATE", True),
        ("SELECT a FROM b ORDER BY a FOR NO KEY UPDATE SKIP LOCKED", True),
        ("SELECT updated_at, offset_us FROM b", True),
    ],
)
def test_it_is_known_beforehand_whether_a_statement_answers(sql, answers):
    assert [answers] == [text.answers for text in adhoc(sql).sqlite]
    assert [answers] == [text.answers for text in adhoc(sql).postgres]


def test_a_verb_with_one_file_says_the_same_on_both_databases():
    verb = statement("retoma.engine.store.sql", "get_job")

    assert [text.sql for text in verb.postgres] == [pyformat(text.sql) for text in verb.sqlite]


def test_of_twins_each_database_gets_its_own():
    verb = statement("retoma.engine.store.sql", "claim_jobs")

    assert "json_to_recordset" in verb.postgres[0].sql
    assert "temp.picked" in verb.sqlite[1].sql


def test_an_unknown_verb_is_named_in_the_error():
    with pytest.raises(FileNotFoundError, match="has no section `-- name: dance`"):
        statement("retoma.engine.store.sql", "dance")
