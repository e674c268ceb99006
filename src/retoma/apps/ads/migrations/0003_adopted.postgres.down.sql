-- Forget what was taken over; what was made of it stays.
DROP TABLE ads_adopted;
