"""The API kit: FastAPI at the edge, the library behind it. Knows applications by their manifest."""

from retoma.web.bounds import Bound
from retoma.web.house import AHouse, AVisit, Face, House
from retoma.web.problems import Refusal
from retoma.web.route import router
from retoma.web.sign_in import Admin, Anybody, Operator, Viewer
from retoma.web.site import build_site, face_of

__all__ = [
    "AHouse",
    "AVisit",
    "Admin",
    "Anybody",
    "Bound",
    "Face",
    "House",
    "Operator",
    "Refusal",
    "Viewer",
    "build_site",
    "face_of",
    "router",
]
