-- Nobody counts what work costs.
DROP TABLE reuse;

DROP TABLE budgets;

DROP TABLE exchange;

DROP TABLE prices;

DROP TABLE costs;

DROP TABLE charges;
