-- Where one boot stands: zero rows, nobody has heard of it.
SELECT name, state FROM runners WHERE boot = :boot;
