-- How many reais a dollar is by now; zero rows: nobody has said.
SELECT brl_per_usd, since, actor FROM exchange WHERE since <= (SELECT clock())
ORDER BY since DESC LIMIT 1;
