-- The money of one account in one period, and that which is not yet added up, with its time.
SELECT unit, at, amount FROM charges
WHERE sort = 'spent' AND unit IN ('usd', 'brl', 'unpriced')
  AND CASE CAST(:scope AS text) WHEN 'batch' THEN CAST(batch AS text)
          WHEN 'application' THEN application ELSE provider END = :name
UNION ALL
SELECT unit, NULL, amount FROM costs
WHERE scope = :scope AND name = :name AND period = :period AND sort = 'spent'
  AND unit IN ('usd', 'brl', 'unpriced');
