-- A session served a mission: what is told of one belongs to the other.
INSERT INTO ads_served (session, mission) VALUES (:session, :mission) ON CONFLICT DO NOTHING;
