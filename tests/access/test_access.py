"""Keys, links and sessions: good for whom they were made, until they end, and only what they allow."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from retoma import BadInput, IllegalMove, NotFound, db
from retoma.access import Access, Person, Role
from retoma.access import store as access_store
from retoma.db import adhoc
from retoma.engine.ports import Clock, Ids
from tests.access.aids import audit, desk, everything

ENV_KEY = "e" * 40


# — roles —


def test_each_role_may_what_those_before_it_may():
    allowed = {role: [each for each in Role if role.allows(each)] for role in Role}

    assert {
        Role.VIEWER: [Role.VIEWER],
        Role.OPERATOR: [Role.VIEWER, Role.OPERATOR],
        Role.ADMIN: [Role.VIEWER, Role.OPERATOR, Role.ADMIN],
    } == allowed


# — keys —


async def test_a_key_is_its_persons_and_is_kept_only_as_a_hash(database_url):
    async with desk(database_url) as access:
        made = await access.create_key("Ana", Role.OPERATOR, label="deploys", actor="cli")

        found = await access.identify(made.token)

        assert found is not None
        assert ("Ana", Role.OPERATOR) == (found.name, found.role)
        assert made.token.startswith(f"retoma_{made.id}_")
        secret = made.token.rpartition("_")[2]
        assert secret not in repr(await everything(access._database))
        assert secret not in repr(made)


async def test_every_command_is_in_the_audit_log_with_who_did_it(database_url):
    async with desk(database_url) as access:
        key = await access.create_key("Ana", "admin", actor="cli")
        new = await access.rotate_key(key.id, "1h", "Ana")
        await access.revoke_key(new.id, "Bo")
        link = await access.invite("Bo", "viewer", "Ana")
        cookie = await access.enter(link, "Firefox")
        assert cookie is not None
        session = await access.session(cookie)
        assert session is not None
        await access.end_session(session.id, "Ana")
        await access.invite("Bo", "operator", "Ana")
        await access.remove_person("Bo", "Ana")
        await access.denied(session.person, "POST /api/jobs/1/cancel")

        told = [(actor, verb, subject) for actor, verb, subject, _ in await audit(access)]
        assert told == [
            ("cli", "person.added", "Ana"),
            ("cli", "key.created", f"key {key.id}"),
            ("Ana", "key.rotated", f"key {key.id}"),
            ("Bo", "key.revoked", f"key {new.id}"),
            ("Ana", "person.added", "Bo"),
            ("Ana", "person.invited", "Bo"),
            ("Bo", "session.begun", f"session {session.id}"),
            ("Ana", "session.ended", f"session {session.id}"),
            ("Ana", "person.role", "Bo"),
            ("Ana", "person.invited", "Bo"),
            ("Ana", "person.removed", "Bo"),
            ("Bo", "authz_denied", "POST /api/jobs/1/cancel"),
        ]


async def test_a_key_ends_when_it_expires_by_the_databases_clock(database_url, test_clock):
    async with desk(database_url) as access:
        made = await access.create_key("Ana", "viewer", expires="1h", actor="cli")
        assert await access.identify(made.token) is not None

        test_clock.jump(3599)
        assert await access.identify(made.token) is not None
        test_clock.jump(2)

        assert await access.identify(made.token) is None
        assert [False] == [key.good for key in await access.keys()]
        assert not await access.any_keys()


async def test_a_clock_set_back_neither_ends_nor_opens_anything(database_url, test_clock):
    async with desk(database_url) as access:
        made = await access.create_key("Ana", "viewer", expires="1h", actor="cli")
        revoked = await access.create_key("Ana", "viewer", actor="cli")
        await access.revoke_key(revoked.id, "cli")
        cookie = await access.enter(await access.invite("Ana", "viewer", "cli"), "x")
        assert cookie is not None

        test_clock.jump(-7200)

        assert await access.identify(made.token) is not None
        assert await access.identify(revoked.token) is None
        assert await access.session(cookie) is not None
        used = [key.used_at for key in await access.keys() if key.id == made.id]
        assert used != [None], "a use is told although the last one lies in the future"


async def test_the_last_use_is_written_at_most_once_a_minute(database_url, test_clock):
    async with desk(database_url) as access:
        made = await access.create_key("Ana", "viewer", actor="cli")

        uses = set()
        for _ in range(5):
            await access.identify(made.token)
            uses.add((await access.keys())[0].used_at)
        test_clock.jump(61)
        await access.identify(made.token)
        uses.add((await access.keys())[0].used_at)

        assert None not in uses
        assert 2 == len(uses)


async def test_a_use_that_cannot_be_written_turns_nobody_away(database_url):
    async with desk(database_url) as access:
        made = await access.create_key("Ana", "viewer", actor="cli")
        refuse = {
            "sqlite": "CREATE TRIGGER no BEFORE UPDATE ON api_keys"
            " BEGIN SELECT raise(ABORT, 'no'); END",
            "postgres": "CREATE RULE no AS ON UPDATE TO api_keys DO INSTEAD"
            " INSERT INTO people (name, role) VALUES (NULL, 'x')",
        }[access._database.dialect]
        await access._database.write(lambda tx: tx.run(adhoc(refuse)), verb="refuse")

        assert await access.identify(made.token) is not None
        assert [None] == [key.used_at for key in await access.keys()]


async def test_a_revoked_key_opens_nothing_and_may_be_revoked_again(database_url):
    async with desk(database_url) as access:
        made = await access.create_key("Ana", "viewer", actor="cli")

        await access.revoke_key(made.id, "cli")
        await access.revoke_key(made.id, "cli")

        assert await access.identify(made.token) is None
        assert [] == await access.keys()
        assert [made.id] == [key.id for key in await access.keys(every=True)]
        assert 1 == [verb for _, verb, *_ in await audit(access)].count("key.revoked")


async def test_rotation_leaves_both_good_until_the_overlap_ends(database_url, test_clock):
    async with desk(database_url) as access:
        old = await access.create_key("Ana", "operator", label="ci", actor="cli")

        new = await access.rotate_key(old.id, timedelta(hours=1), "Ana")

        both = [await access.identify(each.token) for each in (old, new)]
        assert both[0] == both[1] is not None
        test_clock.jump(3601)
        assert await access.identify(old.token) is None
        assert await access.identify(new.token) is not None
        [kept] = [key for key in await access.keys() if key.id == new.id]
        assert ("Ana", "ci", None) == (kept.person, kept.label, kept.expires_at)


async def test_a_rotated_key_lives_as_long_as_the_old_one_was_made_for(
    database_url, test_clock
):
    async with desk(database_url) as access:
        old = await access.create_key("Ana", "viewer", expires="10d", actor="cli")
        test_clock.jump(9 * 86_400)

        new = await access.rotate_key(old.id, "30d", "cli")

        by_id = {key.id: key for key in await access.keys()}
        for each in (by_id[new.id], by_id[old.id]):
            assert each.expires_at is not None
            assert each.created_at is not None
            lives = each.expires_at - each.created_at
            assert abs(lives - timedelta(days=10)) < timedelta(seconds=60), "and no longer"


async def test_of_many_rotations_at_once_one_happens(database_url):
    async with desk(database_url) as access:
        old = await access.create_key("Ana", "viewer", actor="cli")

        ended = await asyncio.gather(
            *(access.rotate_key(old.id, 60, "cli") for _ in range(5)), return_exceptions=True
        )

        assert 4 == sum(isinstance(each, IllegalMove) for each in ended)
        assert 2 == len(await access.keys(every=True))


async def test_a_key_never_allows_more_than_its_person_may(database_url):
    async with desk(database_url) as access:
        key = await access.create_key("Ana", "admin", actor="cli")
        await access.invite("Ana", "viewer", "Bo")

        found = await access.identify(key.token)
        with pytest.raises(IllegalMove, match="Ana is viewer"):
            await access.create_key("Ana", "operator", actor="cli")

        assert found is not None
        assert Role.VIEWER is found.role
        assert 1 == len(await access.keys())


async def test_a_person_who_is_removed_is_out_at_once_and_the_name_is_free(database_url):
    async with desk(database_url) as access:
        key = await access.create_key("Ana", "admin", actor="cli")
        cookie = await access.enter(await access.invite("Ana", "admin", "cli"), "x")
        link = await access.invite("Ana", "admin", "cli")

        await access.remove_person("Ana", "Bo")

        assert cookie is not None
        assert await access.identify(key.token) is None
        assert await access.session(cookie) is None
        assert await access.enter(link, "x") is None
        assert [] == await access.people()
        again = await access.create_key("Ana", "viewer", actor="cli")
        assert await access.identify(key.token) is None
        assert await access.identify(again.token) is not None


# — what is no key —


async def test_row_1_whatever_is_not_good_is_nobody(database_url):
    async with desk(database_url, ENV_KEY) as access:
        key = (await access.create_key("Ana", "admin", actor="cli")).token
        link = await access.invite("Ana", "admin", "cli")
        cookie = await access.enter(link, "x")
        assert cookie is not None
        wrong = [
            *(
                "",
                " ",
                "retoma_",
                "\0",
                key + "\0",
                "\0" + key,
                key[:-1],
                key + "0",
                key.upper(),
            ),
            *(f" {key}", f"{key}\n", key.replace("_", "-"), key[:-1] + "é", "\ud800", "e" * 39),
            *("retoma_" + "0" * 16 + "_" + "0" * 43, "x" * 1_000_000, key + "x" * 1_000_000),
            *(link, cookie, ENV_KEY + "e", ENV_KEY * 30_000),
        ]

        assert [None] * len(wrong) == [await access.identify(each) for each in wrong]
        assert [None] * len(wrong) == [
            await access.enter(each, "x") if each != link else None for each in wrong
        ]
        assert await access.identify(key) is not None


async def test_ten_thousand_wrong_tokens_change_nothing(database_url, soak):
    async with desk(database_url) as access:
        made = await access.create_key("Ana", "admin", actor="cli")
        before = await everything(access._database)

        for n in range(10_000 if soak else 1_000):
            wrong = f"{made.token[:-5]}{n:05d}"
            assert wrong == made.token or await access.identify(wrong) is None

        assert before == await everything(access._database)


async def test_row_1_an_unknown_id_costs_a_hash_and_a_look_as_a_known_one_does(database_url):
    """Constant work: the same statement is asked whatever was brought."""
    asked = []

    class Spy:
        def __init__(self, database):
            self._database = database

        async def read(self, fn):
            def spied(tx):
                class Told:
                    def one(self, statement, **params):
                        asked.append((statement.name, len(params["id"])))
                        return tx.one(statement, **params)

                return fn(Told())

            return await self._database.read(spied)

    async with desk(database_url) as access:
        made = await access.create_key("Ana", "admin", actor="cli")
        access._database = Spy(access._database)  # type: ignore[assignment]
        for each in (made.token[:-1] + "_", f"retoma_{'0' * 16}_{'0' * 43}", "", "x" * 10**6):
            assert await access.identify(each) is None

    assert [("find_key", 16)] * 4 == asked


# — the key of the environment —


async def test_the_key_of_the_environment_is_an_admins_and_is_stored_nowhere(database_url):
    async with desk(database_url, ENV_KEY) as access:
        assert Person(0, "RETOMA_API_KEY", Role.ADMIN) == await access.identify(ENV_KEY)
        assert await access.any_keys()
        assert ENV_KEY not in repr(await everything(access._database))


@pytest.mark.parametrize("key", ["", "short", "e" * 31, "e" * 257])
def test_a_key_of_the_environment_that_can_be_guessed_is_refused(tmp_path, key):
    with pytest.raises(BadInput, match="RETOMA_API_KEY"):
        Access(db.open(f"sqlite:///{tmp_path / 'work.db'}"), Clock(), Ids(), key)


# — sign-in links and sessions —


async def test_a_link_is_good_once_however_many_come_at_once(database_url):
    async with desk(database_url) as access:
        link = await access.invite("Ana", "operator", "cli")

        cookies = await asyncio.gather(*(access.enter(link, "Firefox") for _ in range(10)))

        [cookie] = [each for each in cookies if each is not None]
        session = await access.session(cookie)
        assert session is not None
        assert ("Ana", Role.OPERATOR) == (session.person.name, session.person.role)
        assert await access.enter(link, "Firefox") is None
        assert ["Firefox"] == [each.agent for each in await access.sessions()]


async def test_a_link_is_good_for_a_while_only(database_url, test_clock):
    async with desk(database_url) as access:
        link = await access.invite("Ana", "viewer", "cli")

        test_clock.jump(access_store.LINK + 1)

        assert await access.enter(link, "x") is None
        assert [] == await access.sessions()


async def test_a_session_ends_when_it_rests_too_long(database_url, test_clock):
    async with desk(database_url) as access:
        cookie = await access.enter(await access.invite("Ana", "viewer", "cli"), "x")
        assert cookie is not None

        for _ in range(3):
            test_clock.jump(access_store.IDLE - 60)
            assert await access.session(cookie) is not None, "it was used in time"
        test_clock.jump(access_store.IDLE + 61)

        assert await access.session(cookie) is None
        assert [] == await access.sessions()


async def test_a_session_ends_however_busy_it_is(database_url, test_clock):
    async with desk(database_url) as access:
        cookie = await access.enter(await access.invite("Ana", "viewer", "cli"), "x")
        assert cookie is not None

        lasted = 0.0
        while await access.session(cookie) is not None:
            # A request does not wait for long until its use is recorded; here the clock would jump past it.
            await asyncio.gather(*access._telling)
            test_clock.jump(access_store.IDLE - 60)
            lasted += access_store.IDLE - 60
            assert lasted < access_store.LIFE + access_store.IDLE

        assert lasted >= access_store.LIFE


async def test_a_session_ended_by_somebody_is_over_at_once(database_url):
    async with desk(database_url) as access:
        cookie = await access.enter(await access.invite("Ana", "viewer", "cli"), "x")
        assert cookie is not None
        session = await access.session(cookie)
        assert session is not None

        await access.end_session(session.id, "Bo")
        await access.end_session(session.id, "Bo")

        assert await access.session(cookie) is None


async def test_csrf_belongs_to_one_session_and_tells_nothing_of_the_cookie(database_url):
    async with desk(database_url) as access:
        cookies = [
            await access.enter(await access.invite("Ana", "viewer", "cli"), "x")
            for _ in range(2)
        ]
        first, other = [await access.session(each or "") for each in cookies]

        assert first is not None
        assert other is not None
        assert first.csrf != other.csrf
        assert first.csrf not in (cookies[0] or "")
        assert first.csrf not in repr(first)
        assert first == await access.session(cookies[0] or "")


async def test_what_is_long_over_is_forgotten(database_url, test_clock):
    async with desk(database_url) as access:
        await access.enter(await access.invite("Ana", "viewer", "cli"), "x")
        test_clock.jump(access_store.LIFE + access_store.KEPT + 60)

        await access.invite("Bo", "viewer", "cli")

        rows = await everything(access._database)
        assert [] == rows["sign_in_sessions"]
        assert 1 == len(rows["sign_in_links"])


async def test_a_browser_may_call_itself_what_it_likes(database_url):
    async with desk(database_url) as access:
        await access.enter(
            await access.invite("Ana", "viewer", "cli"), "a\0\r\n\x1b[31m\ud800" + "b" * 10_000
        )

        [session] = await access.sessions()
        assert session.agent.isprintable()
        assert len(session.agent) <= 200


# — bad input —


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"person_name": ""}, "1 to 200"),
    ({"person_name": "a" * 10_000}, "1 to 200"),
    ({"person_name": "a\0b"}, "can be seen"),
    ({"person_name": "a\nb"}, "can be seen"),
    ({"person_name": "a\u202eb"}, "can be seen"),
    ({"person_name": "a\u200bb"}, "can be seen"),
    ({"person_name": "\ud800"}, "can be seen"),
    ({"person_name": " a"}, "no space around"),
    ({"person_name": 7}, "1 to 200"),
    ({"person_name": "CLI"}, "ourselves"),
    ({"person_name": "retoma_api_key"}, "ourselves"),
    ({"role": "root"}, "viewer, operator, admin"),
    ({"role": ""}, "viewer, operator, admin"),
    ({"role": None}, "viewer, operator, admin"),
    ({"label": "a" * 201}, "0 to 200"),
    ({"label": "\0"}, "can be seen"),
    ({"expires": datetime(2001, 1, 1, tzinfo=UTC)}, "is past"),
    ({"expires": timedelta(0)}, "is past"),
    ({"expires": timedelta(seconds=-1)}, "no length of time"),
    ({"expires": "0s"}, "is past"),
    ({"expires": datetime(2101, 1, 1)}, "with a time zone"),  # noqa: DTZ001
    ({"expires": "soon"}, "no length of time"),
    ({"expires": timedelta.max}, "at most 100 years"),
    ({"expires": "999999999999d"}, "at most 100 years"),
]


async def test_bad_input_is_refused_and_changes_nothing(database_url):
    async with desk(database_url) as access:
        await access.create_key("Bo", "admin", actor="cli")
        before = await everything(access._database)
        good = {"person_name": "Ana", "role": "viewer", "actor": "cli"}

        for wrong, said in WRONG:
            with pytest.raises(BadInput, match=said):
                await access.create_key(**{**good, **wrong})

        assert before == await everything(access._database)


async def test_what_is_not_there_is_said_to_be_not_there(database_url):
    async with desk(database_url) as access:
        made = await access.create_key("Ana", "admin", actor="cli")
        before = await everything(access._database)

        for wrong in ("0" * 16, "", "\0", "'; DROP TABLE api_keys", "x" * 10_000, "é"):
            with pytest.raises(NotFound):
                await access.revoke_key(wrong, "cli")
            with pytest.raises(NotFound):
                await access.rotate_key(wrong, 60, "cli")
            with pytest.raises(NotFound):
                await access.end_session(wrong, "cli")
        with pytest.raises(NotFound, match="Bo"):
            await access.remove_person("Bo", "cli")
        with pytest.raises(BadInput, match="too long"):
            await access.rotate_key(made.id, "91d", "cli")
        with pytest.raises(BadInput, match="too long"):
            await access.invite("Ana", "admin", "cli", expires="8d")

        assert before == await everything(access._database)
