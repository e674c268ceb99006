"""Two leagues: their teams, each by the two names that people and sites call it, and who plays for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Final

FIRST: Final = (
    *("Adriano", "Alan", "Bruno", "Caio", "Cássio", "Davi", "Diego", "Éder", "Fábio", "Gabriel"),
    *("Hugo", "Igor", "João", "Júnior", "Kaique", "Léo", "Lucas", "Márcio", "Matheus", "Nathan"),
    *("Otávio", "Pedro", "Rafael", "Renê", "Tiago", "Vítor", "Wesley", "Yago", "Zé"),
)  # fmt: skip
LAST: Final = (
    *("Alves", "Araújo", "Barbosa", "Brandão", "Cardoso", "Conceição", "da Silva", "de Sá"),
    *("dos Santos", "Esteves", "Falcão", "Gonçalves", "Guimarães", "Henrique", "Inácio"),
    *("Leão", "Magalhães", "Moraes", "Nóbrega", "Oliveira", "Paixão", "Queirós", "Ramos"),
    *("Sampaio", "Teixeira", "Uchôa", "Vilela", "Xavier"),
)  # fmt: skip
# Names that somebody who shows them must not trust; one player of every team has one.
HOSTILE: Final = (
    "<script>alert('gol')</script>",
    'Zé "Bala" d\'Ávila & Filhos',
    "محمد عبد الله",
    "<img src=x onerror=alert(1)>",
    "&lt;b&gt; Júnior",
    "'; DROP TABLE partidas; --",
    "{{ 7 * 7 }}",
)
STARTERS: Final = 11
BENCH: Final = 9


class Name(StrEnum):
    """Of the leagues, as they stand in addresses."""

    BRASILEIRAO = "brasileirao"
    LIGA_PORTUGAL = "liga-portugal"


@dataclass(frozen=True, slots=True)
class Player:
    number: int
    name: str


@dataclass(frozen=True, slots=True)
class Team:
    """`short` is what tables call it, `long` what it calls itself."""

    key: str
    short: str
    long: str


@dataclass(frozen=True, slots=True, kw_only=True)
class League:
    name: Name
    title: str
    zone: str  # of its kick-offs
    year: int
    teams: tuple[Team, ...]

    @property
    def rounds(self) -> int:
        return 2 * (len(self.teams) - 1)

    @property
    def each(self) -> int:
        """Matches of a round."""
        return len(self.teams) // 2


def squad(seed: int, league: League, team: Team) -> tuple[Player, ...]:
    """The first eleven begin more often than not; no two have one name."""
    chance = Random(f"{seed}:squad:{league.name}:{team.key}")  # noqa: S311 — a world, not a secret
    names: dict[str, None] = {}
    while len(names) < STARTERS + BENCH:
        names[f"{chance.choice(FIRST)} {chance.choice(LAST)}"] = None
    called = list(names)
    called[chance.randrange(len(called))] = chance.choice(HOSTILE)
    return tuple(Player(number, name) for number, name in enumerate(called, 1))


LEAGUES: Final[Mapping[str, League]] = {
    Name.BRASILEIRAO: League(
        name=Name.BRASILEIRAO,
        title="Brasileirão Série A",
        zone="America/Sao_Paulo",
        year=2026,
        teams=(
            Team("athletico-pr", "Athletico-PR", "Athletico Paranaense"),
            Team("atletico-mg", "Atlético-MG", "Atlético Mineiro"),
            Team("bahia", "Bahia", "Esporte Clube Bahia"),
            Team("botafogo", "Botafogo", "Botafogo de Futebol e Regatas"),
            Team("bragantino", "Bragantino", "Red Bull Bragantino"),
            Team("chapecoense", "Chapecoense", "Associação Chapecoense de Futebol"),
            Team("corinthians", "Corinthians", "Corinthians Paulista"),
            Team("coritiba", "Coritiba", "Coritiba Foot Ball Club"),
            Team("cruzeiro", "Cruzeiro", "Cruzeiro Esporte Clube"),
            Team("flamengo", "Flamengo", "Clube de Regatas do Flamengo"),
            Team("fluminense", "Fluminense", "Fluminense Football Club"),
            Team("gremio", "Grêmio", "Grêmio Foot-Ball Porto Alegrense"),
            Team("internacional", "Internacional", "Sport Club Internacional"),
            Team("mirassol", "Mirassol", "Mirassol Futebol Clube"),
            Team("palmeiras", "Palmeiras", "Sociedade Esportiva Palmeiras"),
            Team("remo", "Remo", "Clube do Remo"),
            Team("santos", "Santos", "Santos Futebol Clube"),
            Team("sao-paulo", "São Paulo", "São Paulo Futebol Clube"),
            Team("vasco", "Vasco", "Vasco da Gama"),
            Team("vitoria", "Vitória", "Esporte Clube Vitória"),
        ),
    ),
    Name.LIGA_PORTUGAL: League(
        name=Name.LIGA_PORTUGAL,
        title="Liga Portugal",
        zone="Europe/Lisbon",
        year=2026,
        teams=(
            Team("alverca", "Alverca", "FC Alverca"),
            Team("arouca", "Arouca", "FC Arouca"),
            Team("avs", "AVS", "AVS Futebol SAD"),
            Team("benfica", "Benfica", "Sport Lisboa e Benfica"),
            Team("braga", "Braga", "Sporting Clube de Braga"),
            Team("casa-pia", "Casa Pia", "Casa Pia Atlético Clube"),
            Team("estoril", "Estoril", "Estoril Praia"),
            Team("estrela", "Estrela", "Estrela da Amadora"),
            Team("famalicao", "Famalicão", "FC Famalicão"),
            Team("gil-vicente", "Gil Vicente", "Gil Vicente Futebol Clube"),
            Team("guimaraes", "V. Guimarães", "Vitória Sport Clube"),
            Team("moreirense", "Moreirense", "Moreirense FC"),
            Team("nacional", "Nacional", "Clube Desportivo Nacional"),
            Team("porto", "Porto", "Futebol Clube do Porto"),
            Team("rio-ave", "Rio Ave", "Rio Ave Futebol Clube"),
            Team("santa-clara", "Santa Clara", "Clube Desportivo Santa Clara"),
            Team("sporting", "Sporting", "Sporting Clube de Portugal"),
            Team("tondela", "Tondela", "Clube Desportivo de Tondela"),
        ),
    ),
}
