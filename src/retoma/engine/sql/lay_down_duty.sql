-- Let another have the duty; nothing where this boot no longer holds it in this term.
UPDATE duties SET boot = NULL WHERE name = :name AND boot = :boot AND term = :term;
