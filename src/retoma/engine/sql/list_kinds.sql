-- Which kinds anybody has ever declared, to which application each belongs, in which queue it stands.
SELECT name, application, queue FROM kinds ORDER BY name;
