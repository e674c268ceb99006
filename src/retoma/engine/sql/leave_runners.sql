-- Nobody of before lives in a database that was restored: no boot it knows may write to it.
UPDATE runners SET state = 'gone' WHERE state IN ('alive', 'leaving')
RETURNING boot, name;
