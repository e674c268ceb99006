-- How often a person let a mission go on that was parked.
SELECT parks FROM ads_missions WHERE id = :mission;
