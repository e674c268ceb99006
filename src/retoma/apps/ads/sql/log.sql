-- One line of what mission_logs tells: of a mission, or of a session and so of all it served.
INSERT INTO ads_logs (mission, session, event, details, at)
VALUES (:mission, :session, :event, :details, (SELECT clock()));
