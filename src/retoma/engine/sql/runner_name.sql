-- What people call the runner of a boot.
SELECT name FROM runners WHERE boot = :boot;
