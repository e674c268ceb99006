-- Without it quotes of the past are looked for among all quotes.
DROP INDEX quotes_history;
