-- Where the secret of one place lies.
SELECT ref FROM secrets WHERE owner = :owner AND field = :field AND row = :row;
