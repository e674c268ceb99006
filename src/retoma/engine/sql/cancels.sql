-- Jobs of one runner that somebody wants canceled.
SELECT id, epoch FROM jobs WHERE runner = :boot AND cancel_at IS NOT NULL;
