-- How many each of the limits lets run whose keys lie between these two.
UPDATE limits SET cap = :cap WHERE key >= :first AND key < :after AND cap <> :cap;
