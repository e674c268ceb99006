-- Changes nothing; a database that takes no writes refuses it all the same.
UPDATE duties SET boot = boot WHERE name = '';
