-- In the same transaction: nobody ever sees what was tried.
DELETE FROM evidence WHERE sha256 = :name;
