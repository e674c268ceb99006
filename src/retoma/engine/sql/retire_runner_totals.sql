-- Delete what runners did whose rows are gone: nobody is shown by a boot any more.
DELETE FROM runner_totals WHERE boot NOT IN (SELECT boot FROM runners);

DELETE FROM runner_kinds WHERE boot NOT IN (SELECT boot FROM runners);
