-- One sign-in link.
SELECT hash FROM sign_in_links WHERE id = :id;
