-- No pools, rates or breakers.
DROP TABLE breakers;

DROP TABLE rates;

DROP TABLE pool_items;

DROP TABLE pools;
