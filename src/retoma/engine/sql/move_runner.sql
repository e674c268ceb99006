-- One runner goes from a living state to another; zero rows: somebody was first.
UPDATE runners SET state = :to WHERE boot = :boot AND state IN ('alive', 'leaving')
RETURNING boot, name;
