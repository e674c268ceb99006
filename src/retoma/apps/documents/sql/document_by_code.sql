-- Which document of an execution has this code.
SELECT id FROM documents WHERE execution = :execution AND code = :code;
