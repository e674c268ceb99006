-- A mission is done with a session: what becomes of that is no longer its story.
UPDATE ads_served SET left_at = (SELECT clock()) WHERE session = :session AND mission = :mission;
