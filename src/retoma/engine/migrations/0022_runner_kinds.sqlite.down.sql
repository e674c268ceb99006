-- Nobody asks what a runner did for one kind.
DROP TABLE runner_kinds;
