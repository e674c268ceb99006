-- Every writer, as the document shows it.
SELECT id, name, url, active, last_test_ok FROM writers ORDER BY id;
