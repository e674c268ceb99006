-- Write down an execution: a batch, and the rules its documents are classified by.
INSERT INTO executions (id, project, name, rules, total, most_resumes, moved_at, created_by, created_at)
VALUES (:execution, :project, :name, :rules, :total, :most, (SELECT clock()), :actor,
        (SELECT clock()));
