"""`/api/disk`: what takes how much room."""

from retoma.services.disk import disk_seen
from retoma.web.house import AHouse
from retoma.web.route import router
from retoma.web.sign_in import Admin
from retoma.web.wire import DiskShown

routes = router("disk")


@routes.get("/api/disk")
async def show_disk(_: Admin, house: AHouse) -> DiskShown:
    """The database and its largest tables, the evidence, what retention keeps and last deleted."""
    seen = await disk_seen(house.retoma, house.settings)
    return DiskShown.model_validate(seen.document)
